/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Random RC traffic between two devices, every byte of it checked.
 *
 * Each lane is a pair of connected QPs. An end has memory that others read
 * (source) and memory that others write (target), and a model of what its
 * target should hold. A round posts random operations on all lanes, in both
 * directions, waits for their completions, applies the operations to the
 * models in post order, and compares target and model as a whole: a stray byte
 * anywhere shows. In some rounds the operations overlap each other, which on
 * memory without IBV_ACCESS_RELAXED_ORDERING has one right outcome.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "verbs_test.h"

enum {
	MAX_OPS = 32,		/* of one end in a round */
	MAX_PIECES = 4,		/* SGEs of one operation */
	MAX_LANES = 64,
	MAX_INLINE = 256,
	WINDOW = 20000,		/* bytes that overlapping operations share */
};

enum memory { STRICT, RELAXED, MEMORIES };

struct region {
	uint8_t *buf;
	size_t len;
	struct ibv_mr *mr[MEMORIES];
};

struct piece {
	size_t off;
	size_t len;
};

/* One operation; pieces are offsets into the initiator's or target's region. */
struct op {
	enum ibv_wr_opcode opcode;
	unsigned int flags;
	enum memory memory;
	size_t len;
	__be32 imm;
	struct piece local[MAX_PIECES];
	int nlocal;
	size_t remote;			/* offset in the peer's region */
	bool from_target;		/* READ: of the peer's target memory */
	struct piece recv[MAX_PIECES];	/* where the peer receives it */
	int nrecv;
};

struct peer {			/* one end of a lane and its memory */
	struct end *end;
	struct region source;
	struct region target;
	uint8_t *model;
	size_t cursor;			/* target is allotted up to here */
	struct op ops[MAX_OPS];
	int nops;
	int posted;
	int next_signaled;		/* the next completion is of this op */
	int next_recv;			/* the peer's op we receive next */
};

struct lane {
	struct pair pair;
	struct peer peer[2];
};

static struct {
	uint64_t seed;
	uint64_t rounds;
	uint64_t seconds;
	uint64_t min, max;
	int lanes;
	int depth;
	bool use[MEMORIES];
	bool imm, reads, sends, fences, overlap, late;
	bool huge;
	bool verbose;
} opt = {
	.rounds = 200,
	.max = 1 << 20,
	.lanes = 2,
	.depth = MAX_OPS,
	.use = { true, true },
	.imm = true,
	.reads = true,
	.sends = true,
	.fences = true,
	.overlap = true,
	.late = true,
};

static uint64_t rng;
static uint64_t round_no;
static uint64_t total_ops, total_bytes;

#define fail(fmt, ...)                                                         \
	die("round %llu, seed %llu: " fmt, (unsigned long long)round_no,       \
	    (unsigned long long)opt.seed, ##__VA_ARGS__)

static void region_create(struct region *r, struct side *side, size_t len)
{
	r->buf = opt.huge ? alloc_huge_pages(len) : alloc_pages(len);
	r->len = len;
	rng_fill(&rng, r->buf, len);
	r->mr[STRICT] = must_reg(side, r->buf, len, FULL_ACCESS);
	r->mr[RELAXED] = must_reg(side, r->buf, len,
				  FULL_ACCESS | IBV_ACCESS_RELAXED_ORDERING);
}

static void region_destroy(struct region *r)
{
	if (ibv_dereg_mr(r->mr[STRICT]) || ibv_dereg_mr(r->mr[RELAXED]))
		die("ibv_dereg_mr failed");
}

static void peer_create(struct peer *p, struct end *end)
{
	size_t target = opt.max + opt.max / 2 + 4 * WINDOW;

	p->end = end;
	region_create(&p->source, end->side, opt.max + 65536);
	region_create(&p->target, end->side, target);
	p->model = alloc_pages(target);
	memcpy(p->model, p->target.buf, target);
}

static void lane_create(struct lane *lane, struct side *a, struct side *b)
{
	struct pair_options options = {
		.send_wr = MAX_OPS,
		.recv_wr = MAX_OPS,
		.send_sge = MAX_PIECES,
		.recv_sge = MAX_PIECES,
		.inline_data = MAX_INLINE,
	};

	pair_create(&lane->pair, a, b, &options);
	peer_create(&lane->peer[0], &lane->pair.a);
	peer_create(&lane->peer[1], &lane->pair.b);
}

static void lane_destroy(struct lane *lane)
{
	int i;

	pair_destroy(&lane->pair);
	for (i = 0; i < 2; i++) {
		region_destroy(&lane->peer[i].source);
		region_destroy(&lane->peer[i].target);
	}
}

/* Sizes where something changes: nothing, words, inline, frames, superframes. */
static size_t random_len(size_t max_inline)
{
	static const size_t edges[] = { 256, 512, 1024, 1500, 2048, 4096, 8192,
					8960, 9000, 16384, 65536 };
	size_t len;

	switch (rng_below(&rng, 8)) {
	case 0:
		len = rng_below(&rng, 4) ? 1 : 0;
		break;
	case 1:
		len = 1 + rng_below(&rng, 64);
		break;
	case 2:
		len = max_inline - rng_below(&rng, 4) + rng_below(&rng, 4);
		break;
	case 3:
	case 4:
		len = edges[rng_below(&rng, ARRAY_LEN(edges))] *
			      (1 + rng_below(&rng, 3)) -
		      rng_below(&rng, 100);
		break;
	case 5:
		len = rng_below(&rng, 5000);
		break;
	case 6:
		len = rng_below(&rng, 65536);
		break;
	default:
		len = rng_below(&rng, opt.max + 1);
		break;
	}
	if (len < opt.min)
		len = opt.min + rng_below(&rng, opt.max - opt.min + 1);
	return len > opt.max ? opt.max : len;
}

/* Cut @len bytes into pieces, some of them empty; -1 per piece's place. */
static int cut(size_t len, struct piece *pieces)
{
	int i, n = 1 + rng_below(&rng, MAX_PIECES);
	size_t left = len;

	for (i = 0; i < n; i++) {
		pieces[i].len = i == n - 1 ? left : rng_below(&rng, left + 1);
		left -= pieces[i].len;
	}
	return n;
}

/* Allot @len bytes of target memory with a gap before it, or return false. */
static bool allot(struct peer *p, size_t len, size_t *off)
{
	size_t gap = rng_below(&rng, 80);

	if (p->cursor + gap + len > p->target.len)
		return false;
	*off = p->cursor + gap;
	p->cursor = *off + len;
	return true;
}

static bool allot_pieces(struct peer *p, struct piece *pieces, int n)
{
	int i;

	for (i = 0; i < n; i++)
		if (!allot(p, pieces[i].len, &pieces[i].off))
			return false;
	return true;
}

static void pick_pieces(const struct region *r, struct piece *pieces, int n)
{
	int i;

	for (i = 0; i < n; i++)
		pieces[i].off = rng_below(&rng, r->len - pieces[i].len + 1);
}

static enum memory pick_memory(void)
{
	if (opt.use[STRICT] && opt.use[RELAXED])
		return rng_below(&rng, 2) ? STRICT : RELAXED;
	return opt.use[STRICT] ? STRICT : RELAXED;
}

static enum ibv_wr_opcode pick_opcode(void)
{
	switch (rng_below(&rng, 5)) {
	case 0:
		if (opt.sends)
			return IBV_WR_SEND;
		break;
	case 1:
		if (opt.sends && opt.imm)
			return IBV_WR_SEND_WITH_IMM;
		break;
	case 2:
		if (opt.imm)
			return IBV_WR_RDMA_WRITE_WITH_IMM;
		break;
	case 3:
		if (opt.reads)
			return IBV_WR_RDMA_READ;
		break;
	}
	return IBV_WR_RDMA_WRITE;
}

static bool is_send(const struct op *op)
{
	return op->opcode == IBV_WR_SEND || op->opcode == IBV_WR_SEND_WITH_IMM;
}

static bool has_imm(const struct op *op)
{
	return op->opcode == IBV_WR_SEND_WITH_IMM ||
	       op->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static bool consumes_recv(const struct op *op)
{
	return is_send(op) || has_imm(op);
}

/* The receive may be larger than the message: its rest must stay untouched. */
static bool plan_recv(struct op *op, struct peer *to)
{
	size_t room = 0;
	int i;

	if (!is_send(op)) {
		op->nrecv = 0;		/* WRITE_WITH_IMM needs none of it */
		return true;
	}
	op->nrecv = cut(op->len, op->recv);
	if (rng_below(&rng, 2))
		op->recv[op->nrecv - 1].len += rng_below(&rng, 300);
	for (i = 0; i < op->nrecv; i++)
		room += op->recv[i].len;
	if (room < op->len)
		fail("the test itself is wrong");
	return allot_pieces(to, op->recv, op->nrecv);
}

static bool plan_op(struct op *op, struct peer *from, struct peer *to)
{
	uint32_t max_inline = from->end->cap.max_inline_data;

	memset(op, 0, sizeof(*op));
	op->opcode = pick_opcode();
	op->memory = pick_memory();
	op->len = random_len(max_inline);
	op->imm = htonl(rng_next(&rng));
	op->nlocal = op->len || rng_below(&rng, 2) ? cut(op->len, op->local) : 0;

	if (op->opcode == IBV_WR_RDMA_READ) {
		op->remote = rng_below(&rng, to->source.len - op->len + 1);
		if (!allot_pieces(from, op->local, op->nlocal))
			return false;
	} else {
		pick_pieces(&from->source, op->local, op->nlocal);
		if (is_send(op)) {
			if (!plan_recv(op, to))
				return false;
		} else if (!allot(to, op->len, &op->remote)) {
			return false;
		}
		if (op->len <= max_inline && rng_below(&rng, 2))
			op->flags |= IBV_SEND_INLINE;
	}
	if (opt.fences && rng_below(&rng, 8) == 0)
		op->flags |= IBV_SEND_FENCE;
	if (rng_below(&rng, 2))
		op->flags |= IBV_SEND_SIGNALED;
	if (rng_below(&rng, 4) == 0)
		op->flags |= IBV_SEND_SOLICITED;
	return true;
}

/*
 * Writes and reads of one window of the peer's target memory. A write after a
 * read may overtake it unless it is fenced (IBTA 10.8.3.3), so it is.
 */
static bool plan_overlapping(struct op *op, struct peer *from, struct peer *to,
			     bool after_read)
{
	memset(op, 0, sizeof(*op));
	op->opcode = opt.reads && opt.fences && rng_below(&rng, 4) == 0 ?
			     IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE;
	op->memory = STRICT;
	op->len = 1 + rng_below(&rng, rng_below(&rng, 2) ? WINDOW : 64);
	op->nlocal = cut(op->len, op->local);
	op->remote = rng_below(&rng, WINDOW - op->len + 1);
	if (op->opcode == IBV_WR_RDMA_READ) {
		op->from_target = true;
		if (!allot_pieces(from, op->local, op->nlocal))
			return false;
	} else {
		pick_pieces(&from->source, op->local, op->nlocal);
		if (after_read)
			op->flags |= IBV_SEND_FENCE;
	}
	if (rng_below(&rng, 2))
		op->flags |= IBV_SEND_SIGNALED;
	return true;
}

static void plan_end(struct peer *from, struct peer *to, bool overlapping)
{
	int n = 1 + rng_below(&rng, opt.depth);
	bool after_read = false;
	struct op *op;

	for (from->nops = 0; from->nops < n; from->nops++) {
		op = &from->ops[from->nops];
		if (!(overlapping ? plan_overlapping(op, from, to, after_read) :
				    plan_op(op, from, to)))
			break;
		after_read |= op->opcode == IBV_WR_RDMA_READ;
		if (op->flags & IBV_SEND_FENCE)
			after_read = false;
		total_bytes += op->len;
	}
	total_ops += from->nops;
	if (from->nops)
		from->ops[from->nops - 1].flags |= IBV_SEND_SIGNALED;
}

static void plan_lane(struct lane *lane)
{
	bool overlapping = opt.overlap && opt.use[STRICT] &&
			   rng_below(&rng, 4) == 0;
	int i, first = rng_below(&rng, 2);
	struct peer *p;

	for (i = 0; i < 2; i++) {
		p = &lane->peer[i];
		p->cursor = overlapping ? WINDOW : 0;
		p->nops = p->posted = p->next_signaled = p->next_recv = 0;
	}
	plan_end(&lane->peer[first], &lane->peer[!first], overlapping);
	if (!overlapping)
		plan_end(&lane->peer[!first], &lane->peer[first], false);
}

static int fill_sges(struct ibv_sge *sge, const struct region *r,
		     enum memory memory, const struct piece *pieces, int n)
{
	int i;

	for (i = 0; i < n; i++) {
		sge[i].addr = (uintptr_t)r->buf + pieces[i].off;
		sge[i].length = pieces[i].len;
		sge[i].lkey = r->mr[memory]->lkey;
	}
	return n;
}

/* Receives for what @from sends; wr_id is the op's index. */
static void post_recvs(struct peer *from, struct peer *to)
{
	struct ibv_sge sge[MAX_PIECES];
	struct ibv_recv_wr wr, *bad;
	struct op *op;
	int i, ret;

	for (i = 0; i < from->nops; i++) {
		op = &from->ops[i];
		if (!consumes_recv(op))
			continue;
		wr = (struct ibv_recv_wr){
			.wr_id = i,
			.sg_list = sge,
			.num_sge = fill_sges(sge, &to->target, op->memory,
					     op->recv, op->nrecv),
		};
		ret = ibv_post_recv(to->end->qp, &wr, &bad);
		if (ret)
			fail("ibv_post_recv: %s", strerror(ret));
	}
}

static void fill_send_wr(struct ibv_send_wr *wr, struct ibv_sge *sge, int index,
			 struct peer *from, struct peer *to)
{
	struct op *op = &from->ops[index];
	bool read = op->opcode == IBV_WR_RDMA_READ;
	const struct region *local = read ? &from->target : &from->source;
	const struct region *remote =
		read && !op->from_target ? &to->source : &to->target;

	*wr = (struct ibv_send_wr){
		.wr_id = index,
		.sg_list = sge,
		.num_sge = fill_sges(sge, local, op->memory, op->local,
				     op->nlocal),
		.opcode = op->opcode,
		.send_flags = op->flags,
		.imm_data = op->imm,
		.wr.rdma.remote_addr = (uintptr_t)remote->buf + op->remote,
		.wr.rdma.rkey = remote->mr[op->memory]->rkey,
	};
	if (op->flags & IBV_SEND_INLINE)	/* the key is not looked at */
		sge->lkey = 0xdead;
}

/* Lists of random length, each with one call. */
static void post_sends(struct peer *from, struct peer *to)
{
	struct ibv_sge sge[MAX_OPS][MAX_PIECES];
	struct ibv_send_wr wr[MAX_OPS], *bad;
	int i, n, ret;

	while (from->posted < from->nops) {
		n = 1 + rng_below(&rng, from->nops - from->posted);
		for (i = 0; i < n; i++) {
			fill_send_wr(&wr[i], sge[i], from->posted + i, from, to);
			wr[i].next = i < n - 1 ? &wr[i + 1] : NULL;
		}
		ret = ibv_post_send(from->end->qp, wr, &bad);
		if (ret)
			fail("ibv_post_send of %d: %s at request %d", n,
			     strerror(ret), (int)(bad - wr));
		from->posted += n;
	}
}

static const enum ibv_wc_opcode wc_opcodes[] = {
	[IBV_WR_RDMA_WRITE] = IBV_WC_RDMA_WRITE,
	[IBV_WR_RDMA_WRITE_WITH_IMM] = IBV_WC_RDMA_WRITE,
	[IBV_WR_SEND] = IBV_WC_SEND,
	[IBV_WR_SEND_WITH_IMM] = IBV_WC_SEND,
	[IBV_WR_RDMA_READ] = IBV_WC_RDMA_READ,
};

static int next_signaled(const struct peer *p, int i)
{
	while (i < p->nops && !(p->ops[i].flags & IBV_SEND_SIGNALED))
		i++;
	return i;
}

static int next_recv(const struct peer *from, int i)
{
	while (i < from->nops && !consumes_recv(&from->ops[i]))
		i++;
	return i;
}

static void check_send_wc(struct peer *p, const struct ibv_wc *wc)
{
	int i = next_signaled(p, p->next_signaled);

	if (wc->status != IBV_WC_SUCCESS)
		fail("op %d of %s: %s (vendor %#x)", (int)wc->wr_id,
		     p->end->side->name, ibv_wc_status_str(wc->status),
		     wc->vendor_err);
	if (i == p->nops)
		fail("completion of op %d, which none is due for",
		     (int)wc->wr_id);
	if (wc->wr_id != (uint64_t)i)
		fail("completion of op %d before that of %d", (int)wc->wr_id, i);
	if (wc->opcode != wc_opcodes[p->ops[i].opcode])
		fail("op %d: opcode %d", i, wc->opcode);
	if (wc->qp_num != p->end->qp->qp_num)
		fail("op %d: QP %#x", i, wc->qp_num);
	p->next_signaled = i + 1;
}

static void check_recv_wc(struct peer *from, struct peer *to,
			  const struct ibv_wc *wc)
{
	int i = next_recv(from, to->next_recv);
	struct op *op = &from->ops[i];

	if (wc->status != IBV_WC_SUCCESS)
		fail("receive %d of %s: %s (vendor %#x)", (int)wc->wr_id,
		     to->end->side->name, ibv_wc_status_str(wc->status),
		     wc->vendor_err);
	if (i == from->nops || wc->wr_id != (uint64_t)i)
		fail("receive of op %d instead of op %d", (int)wc->wr_id, i);
	if (wc->byte_len != op->len)
		fail("receive %d: %u bytes instead of %zu", i, wc->byte_len,
		     op->len);
	if (wc->opcode != (is_send(op) ? IBV_WC_RECV :
					 IBV_WC_RECV_RDMA_WITH_IMM))
		fail("receive %d: opcode %d", i, wc->opcode);
	if (!(wc->wc_flags & IBV_WC_WITH_IMM) != !has_imm(op))
		fail("receive %d: flags %#x", i, wc->wc_flags);
	if (has_imm(op) && wc->imm_data != op->imm)
		fail("receive %d: immediate %#x instead of %#x", i,
		     ntohl(wc->imm_data), ntohl(op->imm));
	to->next_recv = i + 1;
}

/* Take what completions there are. Returns their number. */
static int poll_peer(struct peer *p, struct peer *other)
{
	struct ibv_wc wc[16];
	int i, n, m;

	n = ibv_poll_cq(p->end->scq, ARRAY_LEN(wc), wc);
	for (i = 0; i < n; i++)
		check_send_wc(p, &wc[i]);
	m = ibv_poll_cq(p->end->rcq, ARRAY_LEN(wc), wc);
	for (i = 0; i < m; i++)
		check_recv_wc(other, p, &wc[i]);
	if (n < 0 || m < 0)
		fail("ibv_poll_cq failed");
	return n + m;
}

static bool peer_done(const struct peer *p, const struct peer *other)
{
	return next_signaled(p, p->next_signaled) == p->nops &&
	       next_recv(other, p->next_recv) == other->nops;
}

static void wait_all(struct lane *lanes)
{
	uint64_t until = now_ms() + PATIENCE_MS;
	int i, e, n;
	bool done;

	for (;;) {
		done = true;
		n = 0;
		for (i = 0; i < opt.lanes; i++)
			for (e = 0; e < 2; e++) {
				struct peer *p = &lanes[i].peer[e];
				struct peer *o = &lanes[i].peer[!e];

				n += poll_peer(p, o);
				done &= peer_done(p, o);
			}
		if (done)
			return;
		if (n) {
			until = now_ms() + PATIENCE_MS;
			continue;
		}
		sched_yield();
		if (now_ms() > until)
			break;
	}
	for (i = 0; i < opt.lanes; i++)
		for (e = 0; e < 2; e++) {
			struct peer *p = &lanes[i].peer[e];
			struct peer *o = &lanes[i].peer[!e];

			if (!peer_done(p, o))
				fprintf(stderr,
					"lane %d, %s: send completion of op %d of %d, receive of op %d of %d are missing\n",
					i, p->end->side->name,
					next_signaled(p, p->next_signaled),
					p->nops, next_recv(o, p->next_recv),
					o->nops);
		}
	fail("nothing completed for %d s", PATIENCE_MS / 1000);
}

static void copy_pieces(uint8_t *to, const uint8_t *from, size_t len,
			const struct piece *pieces, int n, bool scatter)
{
	size_t part;
	int i;

	for (i = 0; i < n && len; i++) {
		part = pieces[i].len < len ? pieces[i].len : len;
		if (scatter)
			memcpy(to + pieces[i].off, from, part);
		else
			memcpy(to, from + pieces[i].off, part);
		if (scatter)
			from += part;
		else
			to += part;
		len -= part;
	}
}

static void apply_op(const struct op *op, struct peer *from, struct peer *to,
		     uint8_t *scratch)
{
	if (op->opcode == IBV_WR_RDMA_READ) {
		copy_pieces(from->model,
			    (op->from_target ? to->model : to->source.buf) +
				    op->remote,
			    op->len, op->local, op->nlocal, true);
		return;
	}
	copy_pieces(scratch, from->source.buf, op->len, op->local, op->nlocal,
		    false);
	if (is_send(op))
		copy_pieces(to->model, scratch, op->len, op->recv, op->nrecv,
			    true);
	else
		memcpy(to->model + op->remote, scratch, op->len);
}

static void report_mismatch(const struct lane *lane, int e)
{
	const struct peer *p = &lane->peer[e];
	size_t i, bad = 0, first = 0, last = 0;
	int k, j;

	for (i = 0; i < p->target.len; i++)
		if (p->target.buf[i] != p->model[i]) {
			if (!bad++)
				first = i;
			last = i;
		}
	for (k = 0; k < 2; k++)
		for (j = 0; j < lane->peer[k].nops; j++) {
			const struct op *op = &lane->peer[k].ops[j];

			fprintf(stderr,
				"  op %d of %s: opcode %d, flags %#x, %s, %zu bytes, %d pieces, remote %zu, recv %d pieces\n",
				j, lane->peer[k].end->side->name, op->opcode,
				op->flags,
				op->memory == STRICT ? "strict" : "relaxed",
				op->len, op->nlocal, op->remote, op->nrecv);
		}
	fail("target of %s: %zu bytes are wrong, from offset %zu to %zu",
	     p->end->side->name, bad, first, last);
}

static void verify_lane(struct lane *lane, uint8_t *scratch)
{
	struct peer *p;
	int e, i;

	for (e = 0; e < 2; e++) {
		p = &lane->peer[e];
		for (i = 0; i < p->nops; i++)
			apply_op(&p->ops[i], p, &lane->peer[!e], scratch);
	}
	for (e = 0; e < 2; e++) {
		p = &lane->peer[e];
		if (memcmp(p->target.buf, p->model, p->target.len))
			report_mismatch(lane, e);
	}
}

static void run_round(struct lane *lanes, uint8_t *scratch)
{
	bool late[MAX_LANES];
	int i, e;

	for (i = 0; i < opt.lanes; i++) {
		plan_lane(&lanes[i]);
		late[i] = opt.late && rng_below(&rng, 8) == 0;
		for (e = 0; e < 2 && !late[i]; e++)
			post_recvs(&lanes[i].peer[e], &lanes[i].peer[!e]);
	}
	for (i = 0; i < opt.lanes; i++)
		for (e = 0; e < 2; e++)
			post_sends(&lanes[i].peer[e], &lanes[i].peer[!e]);
	for (i = 0; i < opt.lanes; i++)
		for (e = 0; e < 2 && late[i]; e++)
			post_recvs(&lanes[i].peer[e], &lanes[i].peer[!e]);
	wait_all(lanes);
	for (i = 0; i < opt.lanes; i++)
		verify_lane(&lanes[i], scratch);
}

static void usage(void)
{
	fputs("usage: verbs_pattern [--seed N] [--rounds N] [--time SECONDS] [--qps N]\n"
	      "         [--depth N] [--min BYTES] [--max BYTES] [--memory strict|relaxed|both]\n"
	      "         [--no-imm] [--no-reads] [--no-sends] [--no-fences] [--no-overlap] [--no-late]\n"
	      "         [--huge]    memory in huge pages\n"
	      "DEV_A, GID_A, DEV_B and GID_B are taken from the environment. SIGINT: no round after this one.\n",
	      stderr);
	exit(2);
}

static uint64_t number(const char *arg, uint64_t min, uint64_t max)
{
	char *end;
	uint64_t n = strtoull(arg, &end, 0);

	if (end == arg || *end || n < min || n > max) {
		fprintf(stderr, "verbs_pattern: '%s' is not between %llu and %llu\n",
			arg, (unsigned long long)min, (unsigned long long)max);
		exit(2);
	}
	return n;
}

static void parse(int argc, char **argv)
{
	static const struct option options[] = {
		{ "seed", 1, NULL, 's' },	{ "rounds", 1, NULL, 'r' },
		{ "time", 1, NULL, 't' },	{ "qps", 1, NULL, 'q' },
		{ "depth", 1, NULL, 'd' },
		{ "min", 1, NULL, 'n' },	{ "max", 1, NULL, 'm' },
		{ "memory", 1, NULL, 'M' },	{ "no-imm", 0, NULL, 'I' },
		{ "no-reads", 0, NULL, 'R' },	{ "no-sends", 0, NULL, 'S' },
		{ "no-fences", 0, NULL, 'F' },	{ "no-overlap", 0, NULL, 'O' },
		{ "no-late", 0, NULL, 'L' },	{ "huge", 0, NULL, 'H' },
		{ "verbose", 0, NULL, 'v' },
		{},
	};
	const char *seed = NULL;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 's': seed = optarg; break;
		case 'r': opt.rounds = number(optarg, 1, UINT64_MAX); break;
		case 't': opt.seconds = number(optarg, 1, 1000000); break;
		case 'q': opt.lanes = number(optarg, 1, MAX_LANES); break;
		case 'd': opt.depth = number(optarg, 1, MAX_OPS); break;
		case 'm': opt.max = number(optarg, 1, 1 << 30); break;
		case 'n': opt.min = number(optarg, 0, 1 << 30); break;
		case 'M':
			opt.use[STRICT] = strcmp(optarg, "relaxed");
			opt.use[RELAXED] = strcmp(optarg, "strict");
			if (opt.use[STRICT] && opt.use[RELAXED] &&
			    strcmp(optarg, "both"))
				usage();
			break;
		case 'I': opt.imm = false; break;
		case 'R': opt.reads = false; break;
		case 'S': opt.sends = false; break;
		case 'F': opt.fences = false; break;
		case 'O': opt.overlap = false; break;
		case 'L': opt.late = false; break;
		case 'H': opt.huge = true; break;
		case 'v': opt.verbose = true; break;
		default: usage();
		}
	}
	if (optind != argc || opt.min > opt.max)
		usage();
	opt.seed = rng_seed(seed);
	if (opt.seconds)
		opt.rounds = UINT64_MAX;
}

static volatile sig_atomic_t interrupted;

static void interrupt(int sig)
{
	interrupted = sig;
}

int main(int argc, char **argv)
{
	/* What waits for a completion goes on doing so. */
	static const struct sigaction on_interrupt = {
		.sa_handler = interrupt,
		.sa_flags = SA_RESTART,
	};
	static struct lane lanes[MAX_LANES];
	struct side a, b;
	uint8_t *scratch;
	uint64_t until;
	int i;

	parse(argc, argv);
	sigaction(SIGINT, &on_interrupt, NULL);
	printf("verbs_pattern: seed %llu\n", (unsigned long long)opt.seed);
	fflush(stdout);
	rng = opt.seed;
	side_open_both(&a, &b);
	scratch = alloc_pages(opt.max + 65536);
	for (i = 0; i < opt.lanes; i++)
		lane_create(&lanes[i], &a, &b);

	until = now_ms() + opt.seconds * 1000;
	for (round_no = 0; round_no < opt.rounds; round_no++) {
		run_round(lanes, scratch);
		if (opt.verbose && round_no % 100 == 0) {
			printf("round %llu\n", (unsigned long long)round_no);
			fflush(stdout);
		}
		if (interrupted || (opt.seconds && now_ms() >= until))
			break;
	}

	for (i = 0; i < opt.lanes; i++)
		lane_destroy(&lanes[i]);
	side_close(&a);
	side_close(&b);
	printf("verbs_pattern: %llu rounds, %llu operations, %.1f MB, every byte right\n",
	       (unsigned long long)round_no, (unsigned long long)total_ops,
	       total_bytes / 1e6);
	return 0;
}
