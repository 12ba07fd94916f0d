// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The way in: frames become pieces to place, and ops that are performed. A
 * frame is accepted once; its bytes are placed when the fences allow; an op is
 * done when all its bytes are placed; it is performed when its turn comes.
 */
#include "state.h"

/* ---- accept ---- */

/* May @op, as a frame has it, go on what is known of it? */
static bool goes_on(const struct medge_recv_op *rop, const struct medge_op *op)
{
	if (!(rop->flags & MEDGE_RECV_KNOWN))
		return true;
	return !(rop->flags & MEDGE_RECV_DONE) && medge_op_same(&rop->op, op);
}

/* Is this op one that the peer can send a frame of now? */
static enum medge_drop check_op(struct medge_conn *c, const struct medge_frame *f)
{
	const struct medge_op *op = &f->op;
	const struct medge_recv_op *rop;
	u32 ahead = op->op_no - c->rop_next;

	if (op->opcode == MEDGE_OP_RESPONSE) {
		const struct medge_send_op *sop = medge_sop(c, op->op_no);
		u32 len = sop->req.opcode == MEDGE_OP_READ ? sop->req.len : 8;

		if (op->op_no - c->op_oldest >= c->op_send - c->op_oldest ||
		    !medge_opcode_answers(sop->req.opcode) || sop->answered ||
		    op->op_len != len)
			return MEDGE_DROP_MISMATCH;
		return MEDGE_DROP_NONE;
	}
	if (ahead >= MEDGE_OP_WINDOW || ahead + f->nops > MEDGE_OP_WINDOW ||
	    !medge_table_grow(&c->rops, sizeof(*rop), ahead + f->nops,
			      MEDGE_OP_WINDOW, c->rop_next,
			      medge_table_size(&c->rops)))
		return MEDGE_DROP_WINDOW;
	rop = medge_rop(c, op->op_no);
	return goes_on(rop, op) ? MEDGE_DROP_NONE : MEDGE_DROP_MISMATCH;
}

/* The next stretch of frames that are new, from *skip on; 0: none. */
static u32 new_frames(struct medge_conn *c, const struct medge_frame *f,
		      u16 *skip)
{
	u32 i = *skip, n = 0;

	while (i < f->nframes && n == 0) {
		u32 psn = f->psn + i;

		if (medge_seq_before(psn, c->rcv_nxt) ||
		    medge_bit(c->received, psn)) {
			c->stats.dups++;
			/* our ack may have been lost */
			c->ack_now = true;
			c->ack_doubt = true;
			if (f->flags & MEDGE_FRAME_ACK_REQ)
				medge_share_doubt(c, c->ack_last_path);
			i++;
			continue;
		}
		n = medge_bits_alike(c->received, psn, f->nframes - i);
		medge_bits_set(c->received, psn, n);
	}
	*skip = i + n;
	return n;
}

static void init_rx(struct medge_rx *rx, const struct medge_frame *f, u32 first,
		    u32 count)
{
	u32 skip = first * f->seg_len;
	bool last = first + count == f->nframes;

	rx->next = NULL;
	rx->psn = f->psn + first;
	rx->nframes = count;
	rx->parts = min_t(u32, f->parts, count);
	rx->flags = last ? f->flags : f->flags & ~MEDGE_FRAME_LAST_FLAGS;
	rx->nops = f->nops;
	rx->state = 0;
	rx->fence_dist = f->fence_dist;
	rx->opcode = f->op.opcode;
	rx->op_no = f->op.op_no;
	rx->offset = f->op.offset + skip;
	rx->len = last ? f->op.len - skip : count * f->seg_len;
	rx->hdr_off = f->op.hdr_off;
	rx->data_off = f->op.data_off + skip;
}

/* There is room for what is to be known of @rail. */
static bool has_rail(struct medge_conn *c, u32 rail)
{
	return medge_table_grow(&c->rails, sizeof(struct medge_conn_rail),
				rail + 1, MEDGE_MAX_RAILS, 0,
				medge_table_size(&c->rails));
}

/*
 * Not @f's end: that of a run which begins half the numbers' range ahead is
 * behind again.
 */
static bool in_window(const struct medge_conn *c, const struct medge_frame *f)
{
	return medge_seq_diff(f->psn, c->rcv_nxt) <= MEDGE_WINDOW - f->nframes;
}

bool medge_conn_expects(const struct medge_conn *c, const struct medge_frame *f)
{
	return medge_seq_diff(f->psn, c->rcv_nxt) <= 0;
}

enum medge_drop medge_conn_receive(struct medge_conn *c, u64 now, u32 rail,
				   const struct medge_frame *f,
				   const struct medge_ack *ack,
				   struct medge_rx *rx, u16 *skip)
{
	enum medge_drop drop = MEDGE_DROP_NONE;
	u32 first = *skip, n;

	rx->nframes = 0;
	c->acks_on = rail;
	if (f->type == MEDGE_FRAME_DATAGRAM)
		drop = MEDGE_DROP_TYPE;
	else if (!first)
		drop = medge_ack_process(c, now, f, ack);
	if (drop == MEDGE_DROP_NONE && f->type == MEDGE_FRAME_DATA) {
		if (c->refused) {
			/* the refusal may have been lost */
			c->ack_now = true;
			drop = MEDGE_DROP_STATE;
		} else if (!in_window(c, f) || !has_rail(c, rail)) {
			drop = MEDGE_DROP_WINDOW;
		} else if (c->nheld >= 2 * MEDGE_WINDOW) {
			drop = MEDGE_DROP_HOLD;
		}
	}
	if (drop || f->type != MEDGE_FRAME_DATA) {
		c->stats.drops[drop]++;
		*skip = f->nframes;
		return drop;
	}
	if (!first)
		medge_ack_path(c, rail, f);
	/* A repeated frame may be of an op that is long done: look at it first. */
	while (first < f->nframes &&
	       (medge_seq_before(f->psn + first, c->rcv_nxt) ||
		medge_bit(c->received, f->psn + first)))
		first++;
	if (first < f->nframes) {
		drop = check_op(c, f);
		if (drop) {
			c->stats.drops[drop]++;
			*skip = f->nframes;
			return drop;
		}
	}
	n = new_frames(c, f, skip);
	if (!n)
		return MEDGE_DROP_NONE;
	init_rx(rx, f, *skip - n, n);
	c->stats.rx_frames += n;
	c->stats.rx_bytes += rx->len;
	medge_ack_received(c, now, rail, rx->psn + n - 1, rx->len);
	return MEDGE_DROP_NONE;
}

/* ---- settle ---- */

void medge_recvq_settle(struct medge_conn *c, struct medge_rx *rx)
{
	u32 n;

	if (rx->state & MEDGE_RX_SETTLED)
		return;
	rx->state |= MEDGE_RX_SETTLED;
	if (rx->psn == c->rcv_nxt) {
		medge_bits_clear(c->received, c->rcv_nxt, rx->nframes);
		c->rcv_nxt += rx->nframes;
	} else {
		medge_bits_set(c->settled, rx->psn, rx->nframes);
	}
	while (medge_bit(c->settled, c->rcv_nxt)) {
		n = medge_bits_alike(c->settled, c->rcv_nxt, MEDGE_WINDOW);
		medge_bits_clear(c->settled, c->rcv_nxt, n);
		medge_bits_clear(c->received, c->rcv_nxt, n);
		c->rcv_nxt += n;
	}
}

/* ---- perform ---- */

void medge_recvq_refuse(struct medge_conn *c, const struct medge_op *op, u8 nak)
{
	c->refused = true;
	c->refuse_nak = nak;
	c->refuse_op = op->op_no;
	c->ack_now = true;
	c->recheck = true;
	c->rcv_rnr = false;
	/* From here on it only answers, and has all windows for that. */
	medge_loss_forget_requests(c);
	c->window = MEDGE_WINDOW;
	c->ops->refused(c, op, nak, nak == MEDGE_NAK_INVALID_REQUEST &&
			medge_opcode_is_send(op->opcode) ?
			MEDGE_LOCAL_LENGTH : MEDGE_OK);
}

/* A WRITE_IMM consumes a receive as a SEND of no bytes would. */
static u8 imm_receive(struct medge_conn *c, const struct medge_op *op)
{
	struct medge_op send = *op;
	struct medge_target t = { };

	send.opcode = MEDGE_OP_SEND_IMM;
	send.op_len = 0;
	send.addr = c->recv_msn;
	c->ops->target(c, &send, &t);
	return t.nak;
}

/* Perform the op whose turn it is. False: not yet, or refused. */
static bool perform(struct medge_conn *c, struct medge_recv_op *rop)
{
	struct medge_op *op = &rop->op;
	u64 original = 0;
	u8 nak = rop->nak;

	if (!nak && medge_opcode_is_send(op->opcode) &&
	    (u32)op->addr != c->recv_msn)
		nak = MEDGE_NAK_INVALID_REQUEST;
	if (!nak && op->opcode == MEDGE_OP_WRITE_IMM)
		nak = imm_receive(c, op);
	if (nak == MEDGE_NAK_RNR) {
		medge_fence_enter_rnr(c);
		return false;
	}
	if (!nak && medge_opcode_answers(op->opcode)) {
		if (!medge_response_room(c) ||
		    (op->flags & MEDGE_OP_FENCE_BACKWARD &&
		     !medge_response_none(c)))
			return false;
		if (op->opcode != MEDGE_OP_READ)
			nak = c->ops->atomic(c, op, rop->operand, rop->swap,
					     &original);
		if (nak == MEDGE_NAK_LATER)
			return false;
	}
	if (!nak && op->opcode == MEDGE_OP_SEND_INV)
		nak = c->ops->invalidate(c, op);
	if (nak) {
		medge_recvq_refuse(c, op, nak);
		return false;
	}
	if (medge_opcode_answers(op->opcode))
		medge_response_queue(c, op, original);
	medge_fence_leave_rnr(c);
	c->ops->performed(c, op, c->recv_msn);
	if (medge_opcode_consumes(op->opcode))
		c->recv_msn++;
	return true;
}

void medge_recvq_advance(struct medge_conn *c)
{
	while (!c->refused) {
		struct medge_recv_op *rop = medge_rop(c, c->rop_next);

		if (!(rop->flags & MEDGE_RECV_KNOWN) || rop->busy ||
		    !(rop->flags & MEDGE_RECV_DONE || rop->nak))
			return;
		if (!perform(c, rop))
			return;
		if (rop->flags & MEDGE_RECV_ACK_REQ)
			medge_reply_asked(c);
		rop->flags = 0;
		rop->nak = 0;
		c->rop_next++;
		c->recheck = true;
	}
}

void medge_conn_recv_posted(struct medge_conn *c)
{
	if (!c->rcv_rnr)
		return;
	c->recheck = true;
	medge_recvq_advance(c);
}

void medge_conn_memory_came(struct medge_conn *c)
{
	c->waits = false;
	c->recheck = true;
	medge_recvq_advance(c);
}

bool medge_conn_rnr(const struct medge_conn *c)
{
	return c->rcv_rnr;
}

bool medge_recvq_poked(struct medge_conn *c, u16 poke_seq)
{
	c->ack_word = true;
	if (!c->rcv_rnr || poke_seq != c->rnr_nak_seq)
		return false;
	c->rnr_nak_seq++;
	c->recheck = true;
	medge_recvq_advance(c);
	return true;
}

/* ---- place ---- */

/* The frame's last op is dealt with. */
static enum medge_rx_step finish(struct medge_conn *c, u64 now,
				 struct medge_rx *rx)
{
	medge_recvq_settle(c, rx);
	medge_ack_due(c, now, rx);
	return MEDGE_RX_DONE;
}

/* Take notice of the op that a frame carries; false: it contradicts itself. */
static bool know(struct medge_conn *c, const struct medge_op *op, u8 flags)
{
	struct medge_recv_op *rop = medge_rop(c, op->op_no);

	if (!goes_on(rop, op))
		return false;
	if (flags & MEDGE_FRAME_ACK_REQ)
		rop->flags |= MEDGE_RECV_ACK_REQ;
	if (rop->flags & MEDGE_RECV_KNOWN)
		return true;
	rop->op = *op;
	rop->placed = 0;
	rop->busy = 0;
	rop->nak = 0;
	rop->flags |= MEDGE_RECV_KNOWN;
	return true;
}

static u64 operand_at(const void *buf, u32 off)
{
	__be64 be;

	memcpy(&be, buf + off, sizeof(be));
	return be64_to_cpu(be);
}

/* Go to the next op of a frame with several. */
static void next_op(struct medge_rx *rx, const void *buf)
{
	struct medge_op op = {
		.hdr_off = rx->hdr_off,
		.data_off = rx->data_off,
		.len = rx->len,
	};
	u8 flags = medge_wire_op_flags(buf, rx->hdr_off);

	rx->state &= ~MEDGE_RX_PIECE;
	medge_wire_next_op(buf, &op);
	/* The nearest forward fence before the next op is this one, or as far + 1. */
	if (flags & MEDGE_OP_FENCE_FORWARD)
		rx->fence_dist = 1;
	else if (rx->fence_dist)
		rx->fence_dist++;
	rx->opcode = op.opcode;
	rx->op_no = op.op_no;
	rx->offset = 0;
	rx->len = op.len;
	rx->hdr_off = op.hdr_off;
	rx->data_off = op.data_off;
}

void medge_conn_piece(const struct medge_rx *rx, const void *buf,
		      struct medge_piece *piece)
{
	medge_wire_decode_op(buf, rx->hdr_off, &piece->op);
	piece->op.offset = rx->offset;
	piece->op.len = rx->len;
	piece->op.data_off = rx->data_off;
	piece->recv_index = piece->op.addr;
}

/* Nothing to place: an atomic notes its operands, the refused is skipped. */
static void skip_piece(struct medge_conn *c, struct medge_rx *rx,
		       const void *buf)
{
	struct medge_recv_op *rop = medge_rop(c, rx->op_no);

	if (!rop->nak && rx->opcode != MEDGE_OP_READ &&
	    medge_opcode_answers(rx->opcode)) {
		rop->operand = operand_at(buf, rx->data_off);
		rop->swap = operand_at(buf, rx->data_off + sizeof(u64));
	}
	if (!rop->nak)
		rop->flags |= MEDGE_RECV_DONE;
	rx->state |= MEDGE_RX_PIECE;
	medge_recvq_advance(c);
}

/* One op of the frame; MEDGE_RX_DONE: go on to the next. */
static enum medge_rx_step step_op(struct medge_conn *c, u64 now,
				  struct medge_rx *rx, const void *buf,
				  struct medge_piece *piece)
{
	enum medge_gate gate;

	medge_conn_piece(rx, buf, piece);
	if (rx->opcode == MEDGE_OP_RESPONSE) {
		medge_sop(c, rx->op_no)->busy++;
		return MEDGE_RX_PLACE;
	}
	if (c->refused || medge_seq_before(rx->op_no, c->rop_next) ||
	    !know(c, &piece->op, rx->flags)) {
		c->stats.drops[MEDGE_DROP_MISMATCH]++;
		rx->state |= MEDGE_RX_PIECE;
		return MEDGE_RX_DONE;
	}
	gate = medge_fence_gate(c, rx);
	if (gate != MEDGE_GATE_OPEN) {
		medge_fence_hold(c, now, rx, gate);
		return MEDGE_RX_HELD;
	}
	if (medge_rop(c, rx->op_no)->nak || medge_opcode_answers(rx->opcode) ||
	    medge_opcode_bare(rx->opcode)) {
		skip_piece(c, rx, buf);
		return MEDGE_RX_DONE;
	}
	medge_rop(c, rx->op_no)->busy++;
	return MEDGE_RX_PLACE;
}

enum medge_rx_step medge_conn_step(struct medge_conn *c, u64 now,
				   struct medge_rx *rx, const void *buf,
				   struct medge_piece *piece)
{
	while (rx->nops) {
		enum medge_rx_step step;

		if (!(rx->state & MEDGE_RX_PIECE)) {
			step = step_op(c, now, rx, buf, piece);
			if (step != MEDGE_RX_DONE)
				return step;
		}
		if (!--rx->nops)
			break;
		next_op(rx, buf);
	}
	return finish(c, now, rx);
}

static void placed_response(struct medge_conn *c, const struct medge_op *op,
			    enum medge_nak nak)
{
	struct medge_send_op *sop = medge_sop(c, op->op_no);

	/* It may have completed meanwhile, with an error. */
	if (op->op_no - c->op_oldest >= c->op_send - c->op_oldest ||
	    !medge_opcode_answers(sop->req.opcode))
		return;
	sop->busy--;
	if (nak)
		medge_conn_fail_op(c, op->op_no, MEDGE_LOCAL_PROTECTION);
	else
		medge_request_answered(c, op->op_no, op->len);
}

/*
 * May a held frame go on, now that a piece of @rop is placed? One that waits for all
 * of it, or is of it and next; that is held first then, since it has the least psn.
 */
static bool lets_go(const struct medge_conn *c, const struct medge_recv_op *rop)
{
	const struct medge_rx *first = c->held;

	if (!first)
		return false;
	return rop->flags & MEDGE_RECV_DONE || rop->nak ||
	       (first->op_no == rop->op.op_no && first->offset == rop->placed);
}

void medge_conn_placed(struct medge_conn *c, u64 now, struct medge_rx *rx,
		       const struct medge_piece *piece, enum medge_nak nak)
{
	struct medge_recv_op *rop = medge_rop(c, rx->op_no);

	rx->state |= MEDGE_RX_PIECE;
	if (rx->opcode == MEDGE_OP_RESPONSE) {
		/* An answer that comes is as good as an ack of its request. */
		c->progress = now;
		c->backoff = 0;
		placed_response(c, &piece->op, nak);
		return;
	}
	rop->busy--;
	if (nak && !rop->nak)
		rop->nak = nak;
	rop->placed += piece->op.len;
	if (rop->placed >= rop->op.op_len)
		rop->flags |= MEDGE_RECV_DONE;
	c->recheck = c->recheck || lets_go(c, rop);
	medge_recvq_advance(c);
}
