/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the kernel does on the way in: frames become bytes in memory, upcalls. */
#include <stdlib.h>

#include "alloc.h"
#include "host.h"
#include "pair.h"

/* A frame between receive and its last piece placed, as an skb would be. */
struct hold {
	struct medge_rx rx;	/* first, so that one is the other */
	struct host *host;
	struct packet *packet;
	struct medge_piece piece;
	bool held;
};

/* ---- pieces ---- */

/* Where the bytes of @piece go; NULL: nowhere, the memory is gone. */
static u8 *destination(struct host *h, const struct medge_piece *piece)
{
	const struct medge_op *op = &piece->op;
	enum host_region region;
	u8 *to;

	if (op->opcode == MEDGE_OP_RESPONSE)
		return host_op(h, op->op_no)->sink + op->offset;
	if (op_is_send(op->opcode)) {
		struct recv *r = host_recv(h, piece->recv_index);

		CHECK(r, "receive %u not posted", piece->recv_index);
		CHECK(op->op_len <= r->len);
		return r->bytes + op->offset;
	}
	to = host_memory(h, op->rkey, op->addr, op->op_len, &region);
	CHECK(to, "a piece for memory that is not ours");
	return to + op->offset;
}

/* Copy part of a piece, byte by byte as a CPU that others overtake. */
static void copy(struct hold *hold, u32 from, u32 to)
{
	const struct medge_op *op = &hold->piece.op;
	u8 *dst;

	/* No bytes need no memory: verbs do not even look at the key. */
	if (!op->op_len)
		return;
	dst = destination(hold->host, &hold->piece);
	CHECK(op->data_off + op->len <= hold->packet->len,
	      "a piece beyond its frame");
	memcpy(dst + from, hold->packet->data + op->data_off + from, to - from);
	if (hold->host->pair->on_copied && op->opcode != MEDGE_OP_RESPONSE)
		hold->host->pair->on_copied(hold->host, op,
					    hold->piece.recv_index,
					    op->offset + from, dst + from,
					    to - from);
}

static u8 place_nak(struct host *h, const struct medge_op *op)
{
	if (h->pair->hostile)
		return rng_ppm(&h->pair->rng, h->pair->params.gone_ppm) ?
		       MEDGE_NAK_ACCESS : MEDGE_NAK_NONE;
	if (op->opcode == MEDGE_OP_RESPONSE)
		return host_op(h, op->op_no)->sink_gone ? MEDGE_NAK_ACCESS : 0;
	return host_op(h->peer, op->op_no)->place_nak;
}

static void step(struct hold *hold);

static void finish(struct hold *hold)
{
	struct host *h = hold->host;
	u32 len = hold->piece.op.len;
	u8 nak = place_nak(h, &hold->piece.op);

	if (!nak)
		copy(hold, len / 2, len);
	check_place(h, &hold->piece, false);
	h->count.placing--;
	medge_conn_placed(h->conn, pair_now(h->pair), &hold->rx, &hold->piece,
			  nak);
}

static void placed_event(void *arg, bool run)
{
	struct hold *hold = arg;
	struct host *h = hold->host;

	if (!run) {
		packet_put(hold->packet);
		free(hold);
		return;
	}
	finish(hold);
	step(hold);
	host_released(h);
	pair_poll(h->pair, h->side);
}

/* Returns whether the piece is placed already. */
static bool place(struct hold *hold)
{
	struct host *h = hold->host;
	const struct medge_op *op = &hold->piece.op;
	u64 delay = pair_place_delay(h->pair);

	TRACE("%llu side %u places %s op %u offset %u len %u%s\n",
	      pair_now(h->pair), h->side, medge_opcode_name(op->opcode),
	      op->op_no, op->offset, op->len, delay ? " slowly" : "");
	check_place(h, &hold->piece, true);
	h->count.placing_high = max(h->count.placing_high, ++h->count.placing);
	if (!place_nak(h, op))
		copy(hold, 0, op->len / 2);
	if (!delay) {
		finish(hold);
		return true;
	}
	events_add(&h->pair->events, pair_now(h->pair) + delay, placed_event,
		   hold);
	return false;
}

/* As far as @hold gets; it may be gone afterwards. */
static void step(struct hold *hold)
{
	struct host *h = hold->host;

	for (;;) {
		enum medge_rx_step what;

		what = medge_conn_step(h->conn, pair_now(h->pair), &hold->rx,
				       hold->packet->data, &hold->piece);
		switch (what) {
		case MEDGE_RX_PLACE:
			if (!place(hold))
				return;
			continue;
		case MEDGE_RX_HELD:
			TRACE("%llu side %u holds psn %u\n", pair_now(h->pair),
			      h->side, hold->rx.psn);
			hold->held = true;
			h->count.held_high = max(h->count.held_high,
						 ++h->count.held);
			CHECK(h->count.held <= HELD_MAX);
			return;
		case MEDGE_RX_DONE:
			packet_put(hold->packet);
			free(hold);
			return;
		default:
			FAIL("step %d", what);
		}
	}
}

static void unhold(struct hold *hold)
{
	CHECK(hold->held, "a frame released that was not held");
	hold->held = false;
	hold->host->count.held--;
}

void host_released(struct host *h)
{
	struct medge_rx *rx;

	while ((rx = medge_conn_released(h->conn))) {
		struct hold *hold = (struct hold *)rx;

		unhold(hold);
		step(hold);
	}
}

void host_drop_held(struct host *h)
{
	struct medge_rx *rx;

	while ((rx = medge_conn_unhold(h->conn))) {
		struct hold *hold = (struct hold *)rx;

		unhold(hold);
		packet_put(hold->packet);
		free(hold);
	}
	CHECK_EQ(h->count.held, 0);
}

/* ---- frames ---- */

/*
 * Nothing of an honest peer is dropped, but what comes when all is over, and
 * what it sent on without knowing that we wait for a receive.
 */
static bool may_drop(const struct host *h, enum medge_drop drop)
{
	if (h->refused || h->failed || h->peer->failed || h->peer->refused)
		return true;
	/* Its ops would need memory that there is none of. */
	if (drop == MEDGE_DROP_WINDOW && alloc_fails())
		return true;
	return drop == MEDGE_DROP_HOLD &&
	       medge_conn_stats(h->conn)->rnr_naks_sent;
}

static void accept(struct host *h, u32 rail, struct packet *p,
		   const struct medge_frame *f, const struct medge_ack *ack)
{
	u16 skip = 0, before;

	do {
		struct hold *hold = calloc(1, sizeof(*hold));
		enum medge_drop drop;

		hold->host = h;
		hold->packet = packet_get(p);
		before = skip;
		drop = medge_conn_receive(h->conn, pair_now(h->pair), rail, f,
					  ack, &hold->rx, &skip);
		CHECK(!drop || h->pair->hostile || may_drop(h, drop),
		      "honest frame dropped: %s", medge_drop_name(drop));
		if (drop || !hold->rx.nframes) {
			packet_put(hold->packet);
			free(hold);
			if (drop)
				return;
		} else {
			step(hold);
		}
		if (f->type != MEDGE_FRAME_DATA)
			return;
		CHECK(skip > before, "receive makes no progress");
	} while (skip < f->nframes);
}

/* Decode from a copy that ends where the kernel's linear part ends. */
static enum medge_drop decode_linear(const struct packet *p, u32 linear,
				     struct medge_frame *f,
				     struct medge_ack *ack)
{
	enum medge_drop drop;
	u8 *head;

	head = malloc(linear);
	memcpy(head, p->data, linear);
	drop = medge_wire_decode(head, linear, p->len, f);
	if (!drop && f->type == MEDGE_FRAME_ACK)
		medge_wire_decode_ack(head, ack);
	free(head);
	return drop;
}

static enum medge_drop decode(const struct packet *p, struct medge_frame *f,
			      struct medge_ack *ack)
{
	u32 len = p->len, first = min_t(u32, len, MEDGE_HDR_LEN), linear;
	enum medge_drop drop;
	u8 *head;

	if (len < sizeof(struct medge_frame_hdr))
		return MEDGE_DROP_RUNT;
	head = malloc(first);
	memcpy(head, p->data, first);
	linear = min(medge_wire_linear(head, first, len), len);
	free(head);
	drop = decode_linear(p, linear, f, ack);
	/* As the kernel does: an atomic's operands may be anywhere behind. */
	if (drop == MEDGE_DROP_RUNT && linear < len)
		drop = decode_linear(p, len, f, ack);
	return drop;
}

static void note_ack(struct host *h, const struct medge_frame *f)
{
	if (medge_seq_before(h->acked, f->ack_psn))
		h->acked = f->ack_psn;
}

/* What is between nodes: it needs no connection. */
static void receive_probe(struct host *h, u32 rail, struct packet *p)
{
	struct medge_probe probe;

	medge_wire_decode_probe(p->data, &probe);
	TRACE("%llu side %u < rail %u %s\n", pair_now(h->pair), h->side, rail,
	      probe.type == MEDGE_FRAME_PROBE ? "probe" : "reply");
	if (memcmp(probe.to, h->me.node, MEDGE_MAC_LEN))
		return;
	if (probe.type == MEDGE_FRAME_PROBE) {
		host_answer(h, rail, &probe);
		medge_peer_probed(h->remote, pair_now(h->pair), rail, &probe);
	} else {
		medge_peer_replied(h->remote, pair_now(h->pair), &probe);
	}
	pair_poll(h->pair, h->side);
}

static void receive_frame(struct host *h, u32 rail, struct packet *p,
			  const struct medge_frame *f,
			  const struct medge_ack *ack)
{
	if (h->silent)
		return;
	TRACE("%llu side %u < rail %u %s psn %u+%u ack_psn %u ack_op %u\n",
	      pair_now(h->pair), h->side, rail,
	      f->type == MEDGE_FRAME_ACK ? "ack" : "data", f->psn, f->nframes,
	      f->ack_psn, f->ack_op);
	if (!h->pair->hostile) {
		CHECK_EQ(f->qpn, pair_qpn(h->pair, h->side));
		note_ack(h, f);
	}
	accept(h, rail, p, f, ack);
	host_released(h);
	pair_poll(h->pair, h->side);
}

/* ---- joined frames ---- */

/* How long a frame waits for the next; where a kernel's softirq would end. */
enum { JOIN_NS = 5000 };

static void end_wait(struct host *h)
{
	struct waiting w = h->waiting;

	h->waiting.packet = NULL;
	if (!w.packet)
		return;
	receive_frame(h, w.rail, w.packet, &w.frame, NULL);
	packet_put(w.packet);
}

static void wait_over(void *arg, bool run)
{
	struct host *h = arg;

	if (run && pair_now(h->pair) >= h->waiting.until)
		end_wait(h);
}

static bool is_all_payload(const struct packet *p, const struct medge_frame *f)
{
	return p->len == f->op.data_off + f->op.len;
}

/* Return: the frame follows the one that waits, and is a part of it now. */
static bool join(struct host *h, u32 rail, const struct packet *p,
		 const struct medge_frame *f)
{
	struct waiting *w = &h->waiting;
	struct packet *both;

	if (!w->packet || w->rail != rail || !is_all_payload(p, f) ||
	    !medge_wire_join(&w->frame, f))
		return false;
	both = packet_new(w->packet->len + f->op.len);
	memcpy(both->data, w->packet->data, w->packet->len);
	memcpy(both->data + w->packet->len, p->data + f->op.data_off, f->op.len);
	packet_put(w->packet);
	w->packet = both;
	if (!medge_wire_goes_on(&w->frame))
		end_wait(h);
	return true;
}

/* Return: it waits for others, or is a part of one that does. */
static bool waits(struct host *h, u32 rail, struct packet *p,
		  const struct medge_frame *f)
{
	if (join(h, rail, p, f))
		return true;
	end_wait(h);
	if (!medge_wire_goes_on(f) || !is_all_payload(p, f))
		return false;
	h->waiting = (struct waiting) {
		.packet = packet_get(p),
		.frame = *f,
		.rail = rail,
		.until = pair_now(h->pair) + JOIN_NS,
	};
	events_add(&h->pair->events, h->waiting.until, wait_over, h);
	return true;
}

void host_receive(struct host *h, u32 rail, struct packet *p)
{
	struct medge_frame f;
	struct medge_ack ack;
	enum medge_drop drop;

	drop = decode(p, &f, &ack);
	CHECK(!drop || h->pair->hostile, "honest frame does not decode: %s",
	      medge_drop_name(drop));
	if (drop)
		return;
	if (f.type == MEDGE_FRAME_PROBE || f.type == MEDGE_FRAME_REPLY) {
		receive_probe(h, rail, p);
		return;
	}
	if (h->pair->params.joins) {
		f.parts = f.nframes;
		if (waits(h, rail, p, &f))
			return;
	}
	receive_frame(h, rail, p, &f, f.type == MEDGE_FRAME_ACK ? &ack : NULL);
}

/* ---- upcalls ---- */

static u8 send_target(struct host *h, const struct medge_op *op,
		      struct medge_target *t)
{
	struct recv *r = host_recv(h, op->addr);

	if (!r)
		return MEDGE_NAK_RNR;
	t->relaxed = r->relaxed;
	if (op->op_len > r->len)
		return MEDGE_NAK_INVALID_REQUEST;
	return MEDGE_NAK_NONE;
}

static u8 memory_target(struct host *h, const struct medge_op *op,
			struct medge_target *t)
{
	u32 len = op_is_atomic(op->opcode) ? 8 : op->op_len;
	enum host_region region = REGION_STRICT;

	if (!len)
		return MEDGE_NAK_NONE;
	if (!host_memory(h, op->rkey, op->addr, len, &region))
		return MEDGE_NAK_ACCESS;
	t->relaxed = region == REGION_RELAXED;
	return MEDGE_NAK_NONE;
}

/* Does the transport show us what was posted? */
static void check_target(struct host *h, const struct medge_op *op,
			 const struct medge_target *t)
{
	struct op *o = host_op(h->peer, op->op_no);

	CHECK(!o->performed, "target of op %u, already performed", op->op_no);
	if (o->req.opcode == MEDGE_OP_WRITE_IMM &&
	    op->opcode == MEDGE_OP_SEND_IMM) {
		CHECK_EQ(op->op_len, 0);
		CHECK_EQ(op->addr, o->recv_index);
		return;
	}
	CHECK(!o->targeted, "target of op %u asked for again", op->op_no);
	CHECK_EQ(op->opcode, o->req.opcode);
	CHECK_EQ(op->flags, o->req.flags);
	CHECK_EQ(op->op_len, o->req.len);
	if (op_is_send(op->opcode)) {
		CHECK_EQ(op->addr, o->recv_index);
	} else {
		CHECK_EQ(op->addr, o->req.addr);
		CHECK_EQ(op->rkey, o->req.rkey);
	}
	if (t->nak == MEDGE_NAK_RNR)
		return;
	o->targeted = true;
	o->relaxed = t->relaxed;
	o->target_nak = t->nak;
}

/* As a hostile peer's ops are granted; one that reuses a slot replaces it. */
static void grant(struct host *h, const struct medge_op *op,
		  const struct medge_target *t)
{
	if (t->nak || op_answers(op->opcode))
		return;
	h->grants[op->op_no % GRANTS] = (struct grant){
		true, op->opcode, op->op_no, op->op_len, op->addr, op->rkey,
	};
}

static void target(struct medge_conn *c, const struct medge_op *op,
		   struct medge_target *t)
{
	struct host *h = medge_conn_user(c);

	h->targets++;
	t->relaxed = false;
	t->nak = op_is_send(op->opcode) ? send_target(h, op, t) :
					  memory_target(h, op, t);
	TRACE("%llu side %u target of op %u: nak %u%s\n", pair_now(h->pair),
	      h->side, op->op_no, t->nak, t->relaxed ? ", relaxed" : "");
	pair_target(h, op, t);
	if (h->pair->hostile)
		grant(h, op, t);
	else
		check_target(h, op, t);
}

static void performed(struct medge_conn *c, const struct medge_op *op,
		      u32 recv_index)
{
	struct host *h = medge_conn_user(c);

	check_performed(h, op, recv_index);
	if (h->pair->on_performed)
		h->pair->on_performed(h, op);
}

static u8 atomic(struct medge_conn *c, const struct medge_op *op, u64 operand,
		 u64 swap, u64 *original)
{
	struct host *h = medge_conn_user(c);
	enum host_region region;
	u8 *cell = host_memory(h, op->rkey, op->addr, 8, &region);
	u64 after;
	u8 nak;

	CHECK(cell, "atomic outside of memory");
	TRACE("%llu side %u atomic op %u\n", pair_now(h->pair), h->side,
	      op->op_no);
	if (h->pair->is_absent && h->pair->is_absent(h, op))
		return MEDGE_NAK_LATER;
	nak = pair_atomic(h, op, cell, operand, swap, original);
	if (!nak && h->pair->on_atomic) {
		memcpy(&after, cell, sizeof(after));
		h->pair->on_atomic(h, op, *original, after);
	}
	return nak;
}

static u8 invalidate(struct medge_conn *c, const struct medge_op *op)
{
	struct host *h = medge_conn_user(c);
	struct op *o;

	CHECK_EQ(op->opcode, MEDGE_OP_SEND_INV);
	if (h->pair->hostile)
		return op->rkey == BAD_RKEY ? MEDGE_NAK_ACCESS : MEDGE_NAK_NONE;
	o = host_op(h->peer, op->op_no);
	CHECK_EQ(op->rkey, o->req.rkey);
	CHECK(!o->invalidated && !o->performed, "op %u invalidates twice",
	      op->op_no);
	if (op->rkey == BAD_RKEY)
		return MEDGE_NAK_ACCESS;
	o->invalidated = true;
	return MEDGE_NAK_NONE;
}

static void completed(struct medge_conn *c, u32 op_no, enum medge_status status)
{
	check_completed(medge_conn_user(c), op_no, status);
}

static void refused(struct medge_conn *c, const struct medge_op *op,
		    enum medge_nak nak, enum medge_status status)
{
	struct host *h = medge_conn_user(c);

	TRACE("%llu side %u refuses op %u: nak %u status %u\n",
	      pair_now(h->pair), h->side, op->op_no, nak, status);
	CHECK(!h->refused, "refused twice");
	h->refused = true;
	h->refused_nak = nak;
	h->refused_status = status;
	h->refused_op = op->op_no;
}

static bool present(struct medge_conn *c, const struct medge_op *op)
{
	struct host *h = medge_conn_user(c);

	CHECK(op->len, "asked for the memory of nothing");
	return !h->pair->is_absent(h, op);
}

const struct medge_conn_ops host_conn_ops = {
	.target = target,
	.performed = performed,
	.atomic = atomic,
	.invalidate = invalidate,
	.completed = completed,
	.refused = refused,
	.present = present,
};
