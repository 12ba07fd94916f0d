/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A random scenario: what the network does, what both applications post and
 * when, what goes wrong on purpose, and what must come of it.
 */
#include <stdlib.h>

#include "alloc.h"
#include "pair.h"
#include "scenario.h"

enum kind {
	KIND_GOOD,		/* all must end well */
	KIND_BAD_RKEY,		/* an op for memory the peer has not granted */
	KIND_BAD_LENGTH,	/* a SEND larger than its receive */
	KIND_PLACE_NAK,		/* the target is gone when bytes are placed */
	KIND_FAIL_OP,		/* the sender's memory is gone */
	KIND_FAIL_RESPONSE,	/* the responder's */
	KIND_SINK_GONE,		/* the reader's */
	KIND_ALL_DEAD,		/* every rail dies for good */
	KIND_NO_RECEIVE,	/* a receive never comes, patience ends */
	KINDS,
};

static const char *const kind_names[KINDS] = {
	"good", "bad rkey", "bad length", "place nak", "fail op",
	"fail response", "sink gone", "all dead", "no receive",
};

struct scenario {
	struct pair pair;
	struct rng rng;
	enum kind kind;
	u32 bad_side;		/* whose op fails */
	u32 bad_op;		/* which */
	enum medge_status bad_status;
	u32 region_len;
	u32 max_len;
	u64 post_spread;	/* posts come within this time */
	u64 recv_spread;	/* receives come late, by this much; 0: in time */
	u32 relaxed_qp;		/* ppm of ops without the strict mark */
	u32 fences;		/* ppm of ops with one */
	u32 overlap;		/* ppm of ops anywhere in a region */
	u64 next_free[2][REGIONS];
};

/* ---- the network ---- */

/* One of: nothing, a little, a lot. */
static u32 some_ppm(struct rng *r, u32 little, u32 lot)
{
	switch (rng_below(r, 4)) {
	case 0:
	case 1:
		return 0;
	case 2:
		return rng_below(r, little) + 1;
	default:
		return rng_below(r, lot) + 1;
	}
}

static void make_link(struct rng *r, struct net_link_cfg *l)
{
	static const u64 rates[] = { 100, 1000, 10000, 25000, 100000 };

	l->rate = rates[rng_below(r, ARRAY_SIZE(rates))] * 1000000;
	l->delay_ns = 1 + rng_log(r, 2 * MSEC);
	l->jitter_ns = rng_below(r, 3) ? 0 : rng_log(r, MSEC);
	l->loss_ppm = some_ppm(r, 20000, 200000);
	l->burst = rng_below(r, 4) ? 0 : rng_range(r, 2, 20);
	l->corrupt_ppm = some_ppm(r, 1000, 20000);
	l->dup_ppm = some_ppm(r, 10000, 200000);
	l->reorder_ppm = some_ppm(r, 50000, 500000);
	l->reorder_ns = 1 + rng_log(r, 3 * MSEC);
	l->cut_ppm = rng_below(r, 3) * 500000;
	l->queue_bytes = rng_below(r, 4) ? 0 : rng_range(r, 30000, 200000);
}

static void make_network(struct scenario *s, struct pair_params *p)
{
	struct rng *r = &s->rng;
	bool symmetric = rng_below(r, 2);
	bool calm = !rng_below(r, 5);
	u32 i, turn, tx;

	p->nrails = rng_below(r, 3) ? rng_range(r, 1, 4) : rng_range(r, 5, 8);
	for (i = 0; i < p->nrails; i++) {
		if (i && rng_below(r, 2))
			p->link[0][i] = p->link[0][0];
		else
			make_link(r, &p->link[0][i]);
		if (calm) {
			p->link[0][i].loss_ppm = 0;
			p->link[0][i].corrupt_ppm = 0;
			p->link[0][i].queue_bytes = 0;
		}
		p->link[1][i] = p->link[0][i];
		if (!symmetric && !calm)
			make_link(r, &p->link[1][i]);
	}
	/* Which rail of the peer a rail reaches need not be the same number. */
	turn = rng_below(r, 3) ? 0 : rng_below(r, p->nrails);
	for (i = 0; i < p->nrails; i++) {
		p->link[0][i].to = (i + turn) % p->nrails;
		p->link[1][(i + turn) % p->nrails].to = i;
	}
	for (tx = 0; tx < 2; tx++)
		for (i = 0; i < p->nrails; i++)
			p->weight[tx][i] = rng_below(r, 4) ?
				p->link[tx][i].rate / 1000000 :
				rng_range(r, 1, 100000);
}

/* ---- the connections ---- */

static void make_config(struct scenario *s, struct pair_params *p)
{
	static const u16 seg_lens[] = { 64, 100, 256, 1000, 1024, 1408, 4096, 8916 };
	struct rng *r = &s->rng;
	bool wrap = !rng_below(r, 4), same_mtu = rng_below(r, 4);
	u32 side, seg_len = seg_lens[rng_below(r, ARRAY_SIZE(seg_lens))];

	for (side = 0; side < 2; side++) {
		struct medge_conn_config *c = &p->cfg[side];

		/* no initializer: compilers call rng in the order they like */
		c->psn = wrap ? 0u - rng_below(r, 100) : rng_next(r);
		c->dest_qpn = rng_below(r, 1 << 24);
		c->seg_len = seg_len;
		c->window = medge_window_first(seg_len);
		if (!same_mtu)
			seg_len = seg_lens[rng_below(r, ARRAY_SIZE(seg_lens))];
		c->run_max = rng_below(r, 4) ? MEDGE_RUN_MAX :
			     rng_range(r, 1, MEDGE_RUN_MAX);
		c->ord = rng_below(r, 2) ? 16 : rng_range(r, 1, 128);
		c->ird = 128;
		c->retry_cnt = rng_below(r, 8);
		c->rnr_retry = 7;
		c->rnr_timer = rng_range(r, 1, 12);
		c->ack_frames = rng_below(r, 2) ? MEDGE_ACK_FRAMES :
				rng_range(r, 1, 128);
		c->ack_delay_ns = rng_below(r, 2) ? MEDGE_ACK_DELAY_NS :
				  rng_range(r, 1000, 10 * MSEC);
		p->op_base[side] = wrap ? 0u - rng_below(r, 60) :
				   rng_below(r, 2) ? rng_next(r) : 0;
		p->recv_base[side] = wrap ? 0u - rng_below(r, 20) : 0;
	}
	p->cfg[0].peer_psn = p->cfg[1].psn;
	p->cfg[1].peer_psn = p->cfg[0].psn;
}

static void make_params(struct scenario *s, struct pair_params *p, u64 seed)
{
	struct rng *r = &s->rng;

	memset(p, 0, sizeof(*p));
	p->seed = seed;
	p->joins = seed % 3 == 0;
	make_network(s, p);
	make_config(s, p);
	/* Small segments make many frames of few bytes; keep a run short. */
	s->max_len = min_t(u32, 200 * 1024,
			   min(p->cfg[0].seg_len, p->cfg[1].seg_len) *
			   (rng_below(r, 8) ? 60u : 1500u));
	s->region_len = 2 * s->max_len + 4096;
	p->region_len = s->region_len;
	p->place_ppm = rng_below(r, 3) * 500000;
	p->place_ns = 1 + rng_log(r, MSEC);
	p->slop_ns = rng_below(r, 2) ? 0 : rng_log(r, 4 * MSEC);
	p->budget = rng_below(r, 3) ? 0 : rng_range(r, 1, 20);
	p->event_limit = 3 * 1000 * 1000;
}

/* ---- the applications ---- */

static u8 pick_opcode(struct rng *r)
{
	static const u8 opcodes[] = {
		MEDGE_OP_WRITE, MEDGE_OP_WRITE, MEDGE_OP_WRITE, MEDGE_OP_WRITE,
		MEDGE_OP_WRITE_IMM, MEDGE_OP_SEND, MEDGE_OP_SEND,
		MEDGE_OP_SEND_IMM, MEDGE_OP_READ, MEDGE_OP_READ,
		MEDGE_OP_CMP_SWAP, MEDGE_OP_FETCH_ADD, MEDGE_OP_SEND_INV,
		MEDGE_OP_ATOMIC_WRITE, MEDGE_OP_FLUSH, MEDGE_OP_NOP,
	};

	return opcodes[rng_below(r, ARRAY_SIZE(opcodes))];
}

static u32 pick_len(struct scenario *s)
{
	switch (rng_below(&s->rng, 4)) {
	case 0:
		return rng_below(&s->rng, 65);
	case 1:
		return rng_below(&s->rng, min(4u * s->pair.params.cfg[0].seg_len,
					      s->max_len));
	default:
		return rng_log(&s->rng, s->max_len);
	}
}

/*
 * Where an op goes. Mostly behind the one before, so that relaxed ops do not
 * overlap, sometimes anywhere.
 */
static u64 pick_place(struct scenario *s, u32 side, enum host_region region,
		      u32 len)
{
	u64 *next = &s->next_free[side][region];
	u64 at;

	if (rng_ppm(&s->rng, s->overlap))
		return rng_below(&s->rng, s->region_len - len + 1);
	if (*next + len > s->region_len)
		*next = 0;
	at = *next;
	*next += len;
	return at;
}

static void pick_marks(struct scenario *s, struct medge_request *req)
{
	struct rng *r = &s->rng;

	if (!rng_ppm(r, s->relaxed_qp))
		req->flags |= MEDGE_OP_STRICT;
	if (rng_ppm(r, s->fences))
		req->flags |= MEDGE_OP_FENCE_BACKWARD;
	if (rng_ppm(r, s->fences))
		req->flags |= MEDGE_OP_FENCE_FORWARD;
	if (rng_ppm(r, s->fences / 2))
		req->submit |= MEDGE_SUBMIT_FENCE;
	if (rng_below(r, 2))
		req->submit |= MEDGE_SUBMIT_SIGNALED;
	if (rng_below(r, 2) && op_consumes(req->opcode))
		req->flags |= MEDGE_OP_SOLICITED;
}

static void make_request(struct scenario *s, u32 side, struct medge_request *req)
{
	struct rng *r = &s->rng;
	enum host_region region = rng_below(r, 2) ? REGION_RELAXED : REGION_STRICT;

	memset(req, 0, sizeof(*req));
	req->opcode = pick_opcode(r);
	pick_marks(s, req);
	if (op_is_atomic(req->opcode)) {
		req->len = MEDGE_ATOMIC_LEN;
		req->addr = host_addr(REGION_ATOMIC, 8 * rng_below(r, 4));
		req->rkey = host_rkey(REGION_ATOMIC);
		return;
	}
	req->len = pick_len(s);
	if (req->opcode == MEDGE_OP_NOP)
		req->len = 0;
	if (req->opcode == MEDGE_OP_ATOMIC_WRITE) {
		req->len = MEDGE_ATOMIC_WRITE_LEN;
		req->flags |= MEDGE_OP_FENCE_BACKWARD;
	}
	if (req->opcode == MEDGE_OP_FLUSH)
		req->imm = cpu_to_be32(MEDGE_FLUSH_VISIBLE);
	if (req->opcode == MEDGE_OP_SEND_IMM || req->opcode == MEDGE_OP_WRITE_IMM)
		req->imm = rng_next(r);
	if (op_is_send(req->opcode))
		return;
	req->addr = host_addr(region, pick_place(s, side, region, req->len));
	req->rkey = host_rkey(region);
}

/* What only the op itself can say: what is gone when its turn comes. */
static void mark_bad(const struct scenario *s, struct op *o)
{
	o->memory_gone = s->kind == KIND_FAIL_OP;
	o->response_gone = s->kind == KIND_FAIL_RESPONSE;
	o->sink_gone = s->kind == KIND_SINK_GONE;
	if (s->kind == KIND_PLACE_NAK)
		o->place_nak = MEDGE_NAK_ACCESS;
}

struct post_event {
	struct scenario *s;
	u32 side;
	u32 count;
	struct medge_request reqs[];
};

static void post_event(void *arg, bool run)
{
	struct post_event *e = arg;
	struct pair *p = &e->s->pair;
	struct host *h = &p->host[e->side];
	u32 i;

	if (run && !h->failed) {
		for (i = 0; i < e->count; i++) {
			struct op *o = host_post(h, &e->reqs[i]);

			if (e->side == e->s->bad_side &&
			    h->nops == e->s->bad_op + 1)
				mark_bad(e->s, o);
		}
		pair_poll(p, e->side);
	}
	free(e);
}

struct recv_event {
	struct scenario *s;
	u32 side;
	u32 len;
	bool relaxed;
};

struct ring_event {
	struct host *host;
};

static void ring_event(void *arg, bool run)
{
	struct ring_event *e = arg;

	if (run)
		host_ring_recv(e->host);
	free(e);
}

/* A frame may find the receive before the doorbell has told of it. */
static void recv_event(void *arg, bool run)
{
	struct recv_event *e = arg;
	struct pair *p = &e->s->pair;

	if (run) {
		struct ring_event *ring = malloc(sizeof(*ring));

		ring->host = &p->host[e->side];
		host_fill_recv(ring->host, e->len, e->relaxed);
		events_add(&p->events, pair_now(p) +
			   (rng_below(&e->s->rng, 2) ? 0 :
			    rng_log(&e->s->rng, MSEC)), ring_event, ring);
	}
	free(e);
}

/* The receive that @req of @side will consume, posted in time or not. */
static void schedule_recv(struct scenario *s, u32 side, u32 index,
			  const struct medge_request *req, u64 *at)
{
	struct recv_event *e = malloc(sizeof(*e));
	struct rng *r = &s->rng;

	*e = (struct recv_event){ s, !side, 0, rng_below(r, 2) };
	e->len = rng_below(r, 32);
	if (op_is_send(req->opcode))
		e->len += req->len;
	if (s->kind == KIND_BAD_LENGTH && side == s->bad_side &&
	    index == s->bad_op)
		e->len = rng_below(r, req->len);
	if (s->kind == KIND_NO_RECEIVE && side == s->bad_side &&
	    index >= s->bad_op)
		*at = 1000 * SEC;
	if (s->recv_spread)
		*at += rng_log(r, s->recv_spread);
	events_add(&s->pair.events, *at, recv_event, e);
}

/* Turn op @index into the one that goes wrong. */
static void spoil(struct scenario *s, u32 side, struct medge_request *req)
{
	struct rng *r = &s->rng;

	switch (s->kind) {
	case KIND_BAD_RKEY:
		while (op_is_send(req->opcode) || !req->len)
			make_request(s, side, req);
		if (rng_below(r, 2))
			req->rkey = BAD_RKEY;
		else
			req->addr += REGION_STEP / 2;
		break;
	case KIND_BAD_LENGTH:
		while (!op_is_send(req->opcode) || !req->len)
			make_request(s, side, req);
		break;
	case KIND_NO_RECEIVE:
		while (!op_consumes(req->opcode))
			make_request(s, side, req);
		break;
	case KIND_FAIL_RESPONSE:
		while (req->opcode != MEDGE_OP_READ || !req->len)
			make_request(s, side, req);
		break;
	case KIND_SINK_GONE:
		while (!op_answers(req->opcode) || !req->len)
			make_request(s, side, req);
		break;
	case KIND_PLACE_NAK:
		while (medge_opcode_bare(req->opcode) || !req->len)
			make_request(s, side, req);
		break;
	case KIND_FAIL_OP:
		while (medge_opcode_bare(req->opcode) || !req->len)
			make_request(s, side, req);
		break;
	default:
		break;
	}
}

static void make_side(struct scenario *s, u32 side, u32 nops)
{
	struct rng *r = &s->rng;
	u32 i = 0, k;
	u64 at = 0, recv_at = 0;

	while (i < nops) {
		u32 count = min_t(u32, nops - i, 1 + rng_log(r, nops));
		struct post_event *e = malloc(sizeof(*e) +
					      count * sizeof(e->reqs[0]));

		*e = (struct post_event){ s, side, count };
		for (k = 0; k < count; k++, i++) {
			make_request(s, side, &e->reqs[k]);
			if (s->kind != KIND_GOOD && side == s->bad_side &&
			    i == s->bad_op)
				spoil(s, side, &e->reqs[k]);
			if (op_consumes(e->reqs[k].opcode))
				schedule_recv(s, side, i, &e->reqs[k], &recv_at);
		}
		events_add(&s->pair.events, at, post_event, e);
		at += rng_log(r, s->post_spread);
	}
}

/* ---- rails that die and live again ---- */

struct rail_event {
	struct scenario *s;
	u8 rail;
	u8 what;	/* bit 0, 1: that side knows; bit 2, 3: its frames vanish */
	bool up;
};

static void rail_event(void *arg, bool run)
{
	struct rail_event *e = arg;
	struct pair *p = &e->s->pair;
	u32 side;

	for (side = 0; run && side < 2; side++) {
		u32 rail = side ? p->params.link[0][e->rail].to : e->rail;

		if (e->what & 4 << side)
			pair_dark(p, side, rail, !e->up);
		if (e->what & 1 << side)
			pair_rail(p, side, rail,
				  e->up ? p->params.weight[side][rail] : 0);
	}
	free(e);
}

static void add_rail_event(struct scenario *s, u64 at, u32 rail, u8 what, bool up)
{
	struct rail_event *e = malloc(sizeof(*e));

	*e = (struct rail_event){ s, rail, what, up };
	events_add(&s->pair.events, at, rail_event, e);
}

/* All but one rail may die, each for a while or for good. */
static void make_rail_faults(struct scenario *s)
{
	/* carrier lost at one side or both; black holes, one way or both */
	static const u8 whats[] = { 1, 2, 3, 15, 12, 4, 8, 13, 14 };
	struct rng *r = &s->rng;
	u32 n = s->pair.params.nrails, rail, survivor = rng_below(r, n);

	if (s->kind == KIND_ALL_DEAD) {
		u64 at = rng_log(r, 20 * MSEC);
		u8 what = whats[rng_below(r, ARRAY_SIZE(whats))] | 12;

		for (rail = 0; rail < n; rail++)
			add_rail_event(s, at, rail, what, false);
		return;
	}
	if (rng_below(r, 3))
		return;
	for (rail = 0; rail < n; rail++) {
		u64 at = rng_log(r, 20 * MSEC);
		u32 cycles = rng_range(r, 1, 3);

		/* the survivor, too, if it comes back */
		if (rng_below(r, 2))
			continue;
		while (cycles--) {
			u8 what = whats[rng_below(r, ARRAY_SIZE(whats))];

			add_rail_event(s, at, rail, what, false);
			at += rng_log(r, 200 * MSEC);
			if (!cycles && rail != survivor && rng_below(r, 2))
				break;
			add_rail_event(s, at, rail, what, true);
			at += rng_log(r, 20 * MSEC);
		}
	}
}

/* ---- what a kernel may do at any time ---- */

struct whim_event {
	struct scenario *s;
	u8 side;
	u8 rail;
	u32 weight;	/* 0: a timer that goes off for nothing */
};

static void whim_event(void *arg, bool run)
{
	struct whim_event *e = arg;
	struct pair *p = &e->s->pair;
	struct host *h = &p->host[e->side];

	if (run && !e->weight) {
		medge_conn_timeout(h->conn, pair_now(p));
		host_released(h);
		pair_poll(p, e->side);
	} else if (run && p->weight[e->side][e->rail]) {
		pair_rail(p, e->side, e->rail, e->weight);
	}
	free(e);
}

static void make_whims(struct scenario *s)
{
	struct rng *r = &s->rng;
	u32 n = rng_below(r, 2) ? 0 : rng_below(r, 20);

	while (n--) {
		struct whim_event *e = malloc(sizeof(*e));

		*e = (struct whim_event){ .s = s, .side = rng_below(r, 2) };
		e->rail = rng_below(r, s->pair.params.nrails);
		e->weight = rng_below(r, 2) ? rng_range(r, 1, 100000) : 0;
		events_add(&s->pair.events, rng_log(r, 20 * MSEC), whim_event, e);
	}
}

/* ---- what must come of it ---- */

static const enum medge_status kind_status[KINDS] = {
	[KIND_BAD_RKEY] = MEDGE_REMOTE_ACCESS,
	[KIND_BAD_LENGTH] = MEDGE_REMOTE_INVALID_REQUEST,
	[KIND_PLACE_NAK] = MEDGE_REMOTE_ACCESS,
	[KIND_FAIL_OP] = MEDGE_LOCAL_PROTECTION,
	[KIND_FAIL_RESPONSE] = MEDGE_REMOTE_ACCESS,
	[KIND_SINK_GONE] = MEDGE_LOCAL_PROTECTION,
	[KIND_ALL_DEAD] = MEDGE_RETRY_EXCEEDED,
	[KIND_NO_RECEIVE] = MEDGE_RNR_RETRY_EXCEEDED,
};

static void pick_kind(struct scenario *s)
{
	struct rng *r = &s->rng;

	s->kind = rng_below(r, 4) ? KIND_GOOD : rng_range(r, 1, KINDS - 1);
	s->bad_status = kind_status[s->kind];
	s->bad_side = rng_below(r, 2);
}

/* All ops before the bad one are done well, it is done badly, none is after. */
static void check_failed(struct scenario *s)
{
	struct host *h = &s->pair.host[s->bad_side];

	if (!h->failed)
		pair_dump(&s->pair);
	CHECK(h->failed, "%s: op index %u of side %u did not fail, %u of %u completed",
	      kind_names[s->kind], s->bad_op, s->bad_side, h->completed, h->nops);
	CHECK_EQ(h->completed, s->bad_op + 1);
	CHECK(h->ops[s->bad_op].status == s->bad_status, "%s: status %u, not %u",
	      kind_names[s->kind], h->ops[s->bad_op].status, s->bad_status);
	if (s->kind == KIND_BAD_LENGTH)
		CHECK_EQ(h->peer->refused_status, MEDGE_LOCAL_LENGTH);
	if (s->kind == KIND_BAD_RKEY || s->kind == KIND_BAD_LENGTH ||
	    s->kind == KIND_PLACE_NAK || s->kind == KIND_FAIL_RESPONSE)
		CHECK(h->peer->refused);
}

static void check_dead(struct scenario *s)
{
	u32 side;

	for (side = 0; side < 2; side++) {
		struct host *h = &s->pair.host[side];

		if (h->completed == h->nops && !h->failed)
			continue;
		if (!h->failed)
			pair_dump(&s->pair);
		CHECK(h->failed, "side %u: all rails dead, no op failed", side);
		CHECK_EQ(h->ops[h->completed - 1].status, MEDGE_RETRY_EXCEEDED);
	}
}

/* Far above what any lossy run needs; a lost wakeup or livelock passes it. */
static const u64 good_limit = 60 * SEC;

/*
 * What was sent again answers what was lost. The factors are wide, for rails
 * that reorder by many round trips; a storm without end passes them.
 */
static void check_effort(const struct scenario *s)
{
	u64 lost = 0, again = 0, needed = 0;
	u32 side, i;

	for (side = 0; side < 2; side++) {
		const struct host *h = &s->pair.host[side];

		needed += h->count.frames_new;
		again += medge_conn_stats(h->conn)->retransmits;
		for (i = 0; i < s->pair.params.nrails; i++)
			lost += s->pair.net.links[side][i].dropped;
	}
	CHECK(again <= 3 * lost + 20 * needed + 100,
	      "%llu frames needed, %llu lost, %llu sent again", needed, lost, again);
}

static void run(struct scenario *s)
{
	struct pair *p = &s->pair;

	switch (s->kind) {
	case KIND_GOOD:
		pair_finish(p, good_limit);
		check_effort(s);
		break;
	case KIND_ALL_DEAD:
		pair_run(p, good_limit);
		check_dead(s);
		break;
	default:
		while (!p->host[s->bad_side].failed && pair_now(p) < good_limit)
			if (pair_run(p, pair_now(p) + 10 * MSEC))
				break;
		/* What is still on its way must not do harm. */
		pair_run(p, pair_now(p) + 50 * MSEC);
		check_failed(s);
		break;
	}
}

static void scenario_init(struct scenario *s, u64 seed)
{
	struct pair_params params;
	struct rng *r = &s->rng;
	u32 nops[2], side;

	memset(s, 0, sizeof(*s));
	rng_seed(r, seed);
	pick_kind(s);
	make_params(s, &params, seed);
	nops[0] = rng_range(r, 5, rng_below(r, 4) ? 20 : 60);
	nops[1] = rng_below(r, 3) ? 0 : rng_range(r, 1, 40);
	if (s->kind != KIND_GOOD && !nops[s->bad_side])
		nops[s->bad_side] = 5;
	s->bad_op = rng_below(r, nops[s->bad_side]);
	if (s->kind == KIND_ALL_DEAD)
		params.cfg[0].timeout_ns = params.cfg[1].timeout_ns =
			rng_range(r, MSEC, 200 * MSEC);
	if (s->kind == KIND_NO_RECEIVE)
		params.cfg[s->bad_side].rnr_retry = rng_below(r, 7);
	s->post_spread = rng_log(r, 20 * MSEC);
	s->recv_spread = rng_below(r, 3) ? 0 : rng_log(r, 10 * MSEC);
	/* a late receive must not spoil the patience of the one tested */
	if (s->kind == KIND_NO_RECEIVE)
		s->recv_spread = 0;
	s->relaxed_qp = rng_below(r, 3) * 500000;
	s->fences = some_ppm(r, 100000, 400000);
	s->overlap = some_ppm(r, 100000, 1000000);
	pair_init(&s->pair, &params);
	for (side = 0; side < 2; side++)
		make_side(s, side, nops[side]);
	make_rail_faults(s);
	make_whims(s);
}

void scenario_run(u64 seed, struct scenario_result *result)
{
	struct scenario *s = malloc(sizeof(*s));
	u32 side, i;

	scenario_init(s, seed);
	/* In some, memory is short. */
	alloc_fail(seed, seed % 4 ? 0 : 8);
	run(s);
	alloc_fail(0, 0);
	*result = (struct scenario_result){
		.kind = kind_names[s->kind],
		.steps = s->pair.steps,
		.virtual_ns = pair_now(&s->pair),
		.nrails = s->pair.params.nrails,
	};
	for (side = 0; side < 2; side++) {
		result->ops += s->pair.host[side].nops;
		result->frames += s->pair.host[side].count.frames_sent;
		result->needed += s->pair.host[side].count.frames_new;
		for (i = 0; i < s->pair.params.nrails; i++)
			result->lost += s->pair.net.links[side][i].dropped;
		result->retransmits +=
			medge_conn_stats(s->pair.host[side].conn)->retransmits;
	}
	pair_free(&s->pair);
	free(s);
}
