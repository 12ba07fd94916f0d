/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The application of one side: its memory, its posted work. */
#include <stdlib.h>

#include "host.h"
#include "pair.h"

u8 noise[NOISE_LEN];

static void __attribute__((__constructor__)) make_noise(void)
{
	struct rng rng;
	u32 i;

	rng_seed(&rng, 1);
	for (i = 0; i < NOISE_LEN; i += 8) {
		u64 v = rng_next(&rng);

		memcpy(noise + i, &v, 8);
	}
}

u64 host_addr(enum host_region region, u64 offset)
{
	return REGION_BASE + region * REGION_STEP + offset;
}

u32 host_rkey(enum host_region region)
{
	return REGION_RKEY + region;
}

u8 *host_memory(struct host *h, u32 rkey, u64 addr, u32 len,
		enum host_region *region)
{
	u32 i = rkey - REGION_RKEY;

	if (i >= REGIONS)
		return NULL;
	addr -= host_addr(i, 0);
	if (addr > h->regions[i].len || len > h->regions[i].len - addr)
		return NULL;
	*region = i;
	return h->regions[i].bytes + addr;
}

struct recv *host_recv(struct host *h, u32 index)
{
	index -= h->recv_base;
	return index < h->nrecvs ? &h->recvs[index] : NULL;
}

void host_init(struct host *h, u32 region_len)
{
	u32 i;

	for (i = 0; i < REGIONS; i++) {
		struct region *r = &h->regions[i];

		r->len = i == REGION_ATOMIC ? 64 : region_len;
		r->src = rng_below(&h->pair->rng, NOISE_LEN - r->len);
		r->bytes = malloc(r->len);
		memcpy(r->bytes, noise + r->src, r->len);
	}
}

void host_free(struct host *h)
{
	u32 i;

	if (h->waiting.packet)
		packet_put(h->waiting.packet);
	for (i = 0; i < h->nops; i++) {
		free(h->ops[i].sink);
		free(h->ops[i].sunk_map);
		free(h->ops[i].placed_map);
	}
	for (i = 0; i < h->nrecvs; i++)
		free(h->recvs[i].bytes);
	for (i = 0; i < REGIONS; i++)
		free(h->regions[i].bytes);
	free(h->ops);
	free(h->recvs);
	medge_conn_fini(h->conn);
	free(h->conn);
	free(h->remote);
}

struct op *host_op(struct host *h, u32 op_no)
{
	u32 i = op_no - h->first_op;

	CHECK(i < h->submitted, "op %u of side %u was never submitted", op_no,
	      h->side);
	return &h->ops[i];
}

static u32 request_payload(const struct medge_request *req)
{
	return medge_opcode_bare(req->opcode) ? 0 : req->len;
}

struct op *host_post(struct host *h, const struct medge_request *req)
{
	struct rng *rng = &h->pair->rng;
	struct op *op;

	if (h->nops == h->ops_size) {
		h->ops_size = h->ops_size ? 2 * h->ops_size : 64;
		h->ops = realloc(h->ops, h->ops_size * sizeof(*h->ops));
	}
	op = &h->ops[h->nops++];
	memset(op, 0, sizeof(*op));
	op->req = *req;
	op->src = rng_below(rng, NOISE_LEN - request_payload(req));
	op->operand = rng_next(rng);
	op->swap = rng_next(rng);
	op->fence_before = -1;
	if (h->nops > 1)
		op->fence_before = op[-1].req.flags & MEDGE_OP_FENCE_FORWARD ?
				   (s32)h->nops - 2 : op[-1].fence_before;
	if (op_consumes(req->opcode))
		op->recv_index = h->peer->recv_base + h->recvs_wanted++;
	return op;
}

void host_fill_recv(struct host *h, u32 len, bool relaxed)
{
	struct recv *r;

	if (h->nrecvs == h->recvs_size) {
		h->recvs_size = h->recvs_size ? 2 * h->recvs_size : 64;
		h->recvs = realloc(h->recvs, h->recvs_size * sizeof(*h->recvs));
	}
	r = &h->recvs[h->nrecvs++];
	*r = (struct recv){ malloc(len + RECV_SLACK), len, relaxed, false };
	memset(r->bytes, 0xa5, len + RECV_SLACK);
	TRACE("%llu side %u posts receive %u of %u bytes%s\n", pair_now(h->pair),
	      h->side, h->nrecvs - 1, len, relaxed ? ", relaxed" : "");
}

void host_ring_recv(struct host *h)
{
	if (!medge_conn_rnr(h->conn))
		return;
	medge_conn_recv_posted(h->conn);
	host_released(h);
	pair_poll(h->pair, h->side);
}

void host_post_recv(struct host *h, u32 len, bool relaxed)
{
	host_fill_recv(h, len, relaxed);
	host_ring_recv(h);
}

static void trace_submit(struct host *h, const struct op *op, u32 op_no)
{
	TRACE("%llu side %u submits op %u: %s len %u flags %x submit %x addr %llx rkey %x\n",
	      pair_now(h->pair), h->side, op_no,
	      medge_opcode_name(op->req.opcode), op->req.len, op->req.flags,
	      op->req.submit, op->req.addr, op->req.rkey);
}

void host_submit(struct host *h)
{
	while (!h->failed && h->submitted < h->nops &&
	       medge_conn_send_room(h->conn, h->nops - h->submitted)) {
		struct op *op = &h->ops[h->submitted++];
		u32 want = medge_conn_next_op(h->conn);
		u32 op_no;

		trace_submit(h, op, want);
		op_no = medge_conn_submit(h->conn, &op->req);
		CHECK_EQ(op_no, want);
		CHECK_EQ(op_no, h->first_op + h->submitted - 1);
	}
}
