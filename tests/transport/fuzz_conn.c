/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A live pair with honest traffic, into which a hostile neighbour feeds frames:
 * copies of real ones with bits changed, old ones again, forged ones that fit
 * the state, garbage. Whatever comes, no byte goes where it was not allowed,
 * no receive is consumed twice, and the state stays whole.
 *
 * The input is a script: one byte says what to do, those behind it how.
 */
#include <stdlib.h>

#include "fuzz_driver.h"
#include "pair.h"

const char *const fuzz_name = "fuzz_conn";
const u32 fuzz_count = 6000;

enum { CAPTURED = 32, STEPS = 200 };

struct script {
	const u8 *at, *end;
};

static u8 byte(struct script *s)
{
	return s->at < s->end ? *s->at++ : 0;
}

static u32 word(struct script *s)
{
	u32 v = byte(s);

	return v << 8 | byte(s);
}

/*
 * Mostly near 0, on both sides, as what is near an edge finds most; or near
 * where serial numbers turn from far ahead to long ago.
 */
static u32 near(struct script *s)
{
	u8 v = byte(s);

	if (v < 192)
		return (v & 31) - 8;
	if (v < 208)
		return (1U << 31) - 16 + 2 * (v & 15);
	return v < 250 ? word(s) - 1024 : word(s) << 16 | word(s);
}

struct neighbour {
	struct pair pair;
	struct packet *captured[CAPTURED];
	u8 side_of[CAPTURED];		/* that sent it */
	u32 ncaptured;
};

static enum net_verdict capture(void *user, u32 side, u32 rail, struct packet *p,
				u64 *delay)
{
	struct neighbour *n = user;
	u32 i = n->ncaptured++ % CAPTURED;

	if (n->captured[i])
		packet_put(n->captured[i]);
	n->captured[i] = packet_get(p);
	n->side_of[i] = side;
	return NET_PASS;
}

/* ---- what the neighbour does ---- */

static struct packet *copy_captured(struct neighbour *n, struct script *s,
				    u32 *side)
{
	u32 have = min_t(u32, n->ncaptured, CAPTURED), i;
	struct packet *p;

	if (!have)
		return NULL;
	i = (n->ncaptured - 1 - byte(s) % have) % CAPTURED;
	p = packet_new(n->captured[i]->len);
	memcpy(p->data, n->captured[i]->data, p->len);
	*side = !n->side_of[i];
	return p;
}

static void inject(struct neighbour *n, struct script *s, u32 side,
		   struct packet *p)
{
	u32 rail = byte(s) % n->pair.params.nrails;

	host_receive(&n->pair.host[side], rail, p);
	packet_put(p);
}

static void replay(struct neighbour *n, struct script *s)
{
	u32 side;
	struct packet *p = copy_captured(n, s, &side);

	if (p)
		inject(n, s, side ^ (byte(s) == 0), p);
}

static void mutate(struct neighbour *n, struct script *s)
{
	u32 side, changes = 1 + byte(s) % 4;
	struct packet *p = copy_captured(n, s, &side);

	if (!p)
		return;
	while (changes--) {
		u32 at = byte(s) % min_t(u32, p->len, 144);

		p->data[at] ^= byte(s);
	}
	if (!(byte(s) % 8))
		p->len -= word(s) % p->len;
	inject(n, s, side, p);
}

static void garbage(struct neighbour *n, struct script *s)
{
	u32 i, len = byte(s);
	struct packet *p = packet_new(len);

	for (i = 0; i < len; i++)
		p->data[i] = byte(s);
	inject(n, s, byte(s) % 2, p);
}

/* What an op of the victim's peer might look like. */
static void forge_op(struct neighbour *n, struct script *s, u32 side,
		     struct medge_op *op, u32 seg_len)
{
	struct host *h = &n->pair.host[side];
	u32 peer_next = medge_conn_next_op(n->pair.host[!side].conn);
	enum host_region region = byte(s) % REGIONS;
	u32 frames = byte(s) % 8;

	*op = (struct medge_op){
		.opcode = byte(s) % MEDGE_OPCODES,
		.flags = byte(s) & MEDGE_OP_FLAGS,
		.op_no = peer_next + near(s),
		.op_len = word(s) % 5000,
		.addr = host_addr(region, word(s)),
		.rkey = host_rkey(region),
		.imm = near(s),
	};
	if (op->opcode == MEDGE_OP_RESPONSE)
		op->op_no = medge_conn_next_op(h->conn) + near(s);
	if (op_is_send(op->opcode))
		op->addr = h->recv_base + h->consumed + near(s);
	if (op_is_atomic(op->opcode))
		op->op_len = MEDGE_ATOMIC_LEN;
	if (op->opcode == MEDGE_OP_ATOMIC_WRITE)
		op->op_len = MEDGE_ATOMIC_WRITE_LEN;
	if (op->opcode == MEDGE_OP_NOP)
		op->op_len = 0;
	if (op->opcode == MEDGE_OP_FLUSH)
		op->imm = cpu_to_be32(byte(s) & MEDGE_FLUSH_BITS);
	if (medge_opcode_bare(op->opcode))
		return;
	op->offset = frames * seg_len;
	if (op->offset >= op->op_len)
		op->offset = 0;
	op->len = op->op_len - op->offset;
	if (byte(s) & 1)
		op->len = min_t(u32, op->len, seg_len);
}

static void forge_ack_fields(struct neighbour *n, struct script *s, u32 side,
			     struct medge_frame *f)
{
	struct host *h = &n->pair.host[side];

	f->ack_psn = h->snd_nxt + near(s);
	f->ack_op = medge_conn_next_op(h->conn) + near(s);
	f->sack_base = word(s) % (MEDGE_WINDOW + 1);
	f->sack = (u64)near(s) << 32 | near(s);
	f->psn = n->pair.host[!side].snd_nxt + near(s);
}

static void forge_ack(struct neighbour *n, struct script *s)
{
	struct packet *p = packet_new(MEDGE_ACK_MAX);
	u32 side = byte(s) % 2, i;
	struct medge_frame f = {
		.type = MEDGE_FRAME_ACK,
		.flags = byte(s) & MEDGE_FRAME_FLAGS,
	};
	struct medge_ack ack = {
		.nak = byte(s) % (MEDGE_NAKS + 1),
		.rnr_timer = byte(s),
		.nak_seq = byte(s),
		.nak_op = medge_conn_oldest_op(n->pair.host[side].conn) + near(s),
		.dups = near(s),
		.words = MEDGE_ACK_WORDS,
	};

	forge_ack_fields(n, s, side, &f);
	for (i = 0; i < MEDGE_ACK_WORDS; i++)
		ack.bitmap[i] = (u64)near(s) << (byte(s) & 63);
	medge_wire_encode_frame(p->data, &f);
	medge_wire_encode_ack(p->data + sizeof(struct medge_frame_hdr), &ack);
	inject(n, s, side, p);
}

static void forge_data(struct neighbour *n, struct script *s)
{
	u32 side = byte(s) % 2, seg_len = n->pair.params.cfg[0].seg_len, i;
	u8 nops = byte(s) & 1 ? 1 : 1 + byte(s) % 5;
	struct medge_frame f = {
		.type = MEDGE_FRAME_DATA,
		.flags = byte(s) & MEDGE_FRAME_ACK_REQ,
		.nops = nops,
		.fence_dist = byte(s) & 1 ? 0 : word(s) % (MEDGE_OP_WINDOW + 1),
	};
	struct packet *p = packet_new(32768);
	u32 at = medge_wire_headers(nops);
	struct medge_op op, first = { };

	if (byte(s) % 8 == 0)
		seg_len = 1 + byte(s);
	f.seg_len = nops == 1 ? seg_len : 0;
	memset(p->data, 0, p->len);
	forge_ack_fields(n, s, side, &f);
	for (i = 0; i < nops; i++) {
		forge_op(n, s, side, &op, seg_len);
		if (!i)
			first = op;
		op.op_no = first.op_no + i;
		if (nops > 1) {
			op.offset = 0;
			op.len = medge_opcode_bare(op.opcode) ? 0 : op.op_len;
		}
		medge_wire_encode_op(p->data + medge_wire_headers(i), &op);
		at += op.len;
	}
	medge_wire_encode_frame(p->data, &f);
	p = realloc(p, sizeof(*p) + at);
	p->len = at;
	inject(n, s, side, p);
}

/* ---- what the honest do meanwhile ---- */

static void honest_post(struct neighbour *n, struct script *s)
{
	u32 side = byte(s) % 2;
	enum host_region region = byte(s) % 2;
	struct medge_request req = {
		.opcode = byte(s) % MEDGE_OP_RESPONSE,
		.flags = byte(s) & MEDGE_OP_FLAGS,
		.submit = byte(s) & 3,
		.len = word(s) % 6000,
		.addr = host_addr(region, byte(s)),
		.rkey = host_rkey(region),
	};

	if (op_is_atomic(req.opcode)) {
		req.len = MEDGE_ATOMIC_LEN;
		req.addr = host_addr(REGION_ATOMIC, 8 * (byte(s) % 8));
		req.rkey = host_rkey(REGION_ATOMIC);
	}
	if (req.opcode == MEDGE_OP_ATOMIC_WRITE)
		req.len = MEDGE_ATOMIC_WRITE_LEN;
	if (req.opcode == MEDGE_OP_NOP)
		req.len = 0;
	pair_post(&n->pair, side, &req);
}

static void honest_recv(struct neighbour *n, struct script *s)
{
	host_post_recv(&n->pair.host[byte(s) % 2], word(s) % 6000, byte(s) & 1);
}

static void rails(struct neighbour *n, struct script *s)
{
	pair_rail(&n->pair, byte(s) % 2, byte(s) % n->pair.params.nrails,
		  byte(s) % 3 * 1000);
}

static void wait(struct neighbour *n, struct script *s)
{
	u64 ns = (u64)word(s) << byte(s) % 12;

	pair_run(&n->pair, pair_now(&n->pair) + ns);
}

static void (*const acts[])(struct neighbour *n, struct script *s) = {
	wait, wait, wait, honest_post, honest_post, honest_recv, honest_recv,
	mutate, mutate, mutate, replay, replay, forge_data, forge_data,
	forge_data, forge_ack, garbage, rails,
};

/* ---- a run ---- */

static void setup(struct neighbour *n, struct script *s)
{
	struct pair_params params;
	u32 side, i;

	memset(n, 0, sizeof(*n));
	pair_params_default(&params, 1 + byte(s) % 3);
	params.seed = byte(s);
	params.region_len = 6000 + 256;
	params.place_ppm = byte(s) % 3 * 500000;
	params.place_ns = 50 * USEC;
	params.gone_ppm = byte(s) % 4 ? 0 : 50000;
	params.event_limit = 200000;
	for (side = 0; side < 2; side++) {
		params.cfg[side].seg_len = 200;
		params.cfg[side].timeout_ns = 10 * MSEC;
		params.cfg[side].retry_cnt = 2;
		params.cfg[side].rnr_retry = byte(s) % 8;
		params.cfg[side].ord = 4;
		params.cfg[side].rnr_timer = 14;
		params.op_base[side] = 0u - byte(s) % 8;
		params.recv_base[side] = 0u - byte(s) % 4;
		for (i = 0; i < params.nrails; i++)
			params.link[side][i].cut_ppm = byte(s) % 3 * 500000;
	}
	pair_init(&n->pair, &params);
	n->pair.hostile = true;
	n->pair.net.ops.filter = capture;
	n->pair.net.ops.filter_user = n;
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t len)
{
	struct neighbour *n = malloc(sizeof(*n));
	struct script s = { data, data + len };
	u32 steps = STEPS, i;

	setup(n, &s);
	while (s.at < s.end && steps--) {
		acts[byte(&s) % ARRAY_SIZE(acts)](n, &s);
		conn_check(n->pair.host[0].conn);
		conn_check(n->pair.host[1].conn);
	}
	pair_run(&n->pair, pair_now(&n->pair) + 60 * MSEC);
	conn_check(n->pair.host[0].conn);
	conn_check(n->pair.host[1].conn);
	pair_free(&n->pair);
	for (i = 0; i < CAPTURED; i++)
		if (n->captured[i])
			packet_put(n->captured[i]);
	free(n);
	return 0;
}

#ifndef MEDGE_LIBFUZZER
size_t fuzz_input(struct rng *rng, u8 *buf, size_t max)
{
	size_t len = rng_range(rng, 50, 1500), i;

	for (i = 0; i < len; i++)
		buf[i] = rng_next(rng);
	return len;
}
#endif
