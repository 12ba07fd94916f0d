// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What may be placed now, and what is held: the receiver resolves the fences
 * (DESIGN's ordering contract), so that they cost no round trip.
 */
#include "state.h"

/* ---- gates ---- */

/* Is op @op_no of the peer performed, so that what waits for it may go on? */
static bool performed(struct medge_conn *c, u32 op_no)
{
	const struct medge_recv_op *rop = medge_rop(c, op_no);

	if (medge_seq_before(op_no, c->rop_next))
		return !medge_response_pending(c, op_no);
	return rop->op.opcode == MEDGE_OP_WRITE && rop->op.op_no == op_no &&
	       rop->flags & MEDGE_RECV_DONE && !rop->nak;
}

static void resolve(struct medge_conn *c, struct medge_recv_op *rop)
{
	struct medge_target t = { };

	c->ops->target(c, &rop->op, &t);
	if (t.nak == MEDGE_NAK_RNR)
		return;
	rop->nak = t.nak;
	rop->flags |= MEDGE_RECV_TARGET;
	if (t.relaxed)
		rop->flags |= MEDGE_RECV_RELAXED;
	/* Frames that came before the receive did are held, and can go on. */
	if (c->nheld_loose)
		c->recheck = true;
}

/*
 * The op whose turn it is has no receive. That must not stop the frames behind
 * it, so all that are held count as arrived for good; the peer, told of it,
 * sends no more requests meanwhile.
 */
void medge_fence_enter_rnr(struct medge_conn *c)
{
	struct medge_rx *rx;

	if (c->rcv_rnr)
		return;
	c->rcv_rnr = true;
	c->rnr_nak_seq++;
	c->ack_now = true;
	for (rx = c->held; rx; rx = rx->next)
		medge_recvq_settle(c, rx);
}

void medge_fence_leave_rnr(struct medge_conn *c)
{
	if (!c->rcv_rnr)
		return;
	c->rcv_rnr = false;
	/* the peer waits for the word */
	c->ack_word = true;
}

/* Its own frames are placed in order, it waits for its turn. */
static bool is_strict(const struct medge_recv_op *rop)
{
	return rop->op.flags & MEDGE_OP_STRICT &&
	       !(rop->flags & MEDGE_RECV_RELAXED);
}

/* May the current op's piece of @rx be placed? */
enum medge_gate medge_fence_gate(struct medge_conn *c,
				 const struct medge_rx *rx)
{
	struct medge_recv_op *rop = medge_rop(c, rx->op_no);
	bool turn = rx->op_no == c->rop_next;

	if (!(rop->flags & MEDGE_RECV_TARGET))
		resolve(c, rop);
	if (!(rop->flags & MEDGE_RECV_TARGET)) {
		if (turn)
			medge_fence_enter_rnr(c);
		return MEDGE_GATE_LOOSE;
	}
	if (turn)
		medge_fence_leave_rnr(c);
	/* What will be refused, or carries nothing to place, blocks nothing. */
	if (rop->nak || medge_opcode_answers(rop->op.opcode) ||
	    medge_opcode_bare(rop->op.opcode))
		return MEDGE_GATE_OPEN;
	if (is_strict(rop) || rop->op.flags & MEDGE_OP_FENCE_BACKWARD) {
		if (!turn)
			return MEDGE_GATE_TURN;
	}
	if (is_strict(rop) && (rop->busy || rop->placed != rx->offset))
		return MEDGE_GATE_TURN;
	if (rop->op.flags & MEDGE_OP_FENCE_BACKWARD &&
	    !medge_response_none(c))
		return MEDGE_GATE_LOOSE;
	if (rx->fence_dist && !performed(c, rx->op_no - rx->fence_dist))
		return MEDGE_GATE_LOOSE;
	return MEDGE_GATE_OPEN;
}

/* ---- held frames ---- */

/* Sorted by psn; frames mostly come in order, so look from the end first. */
void medge_fence_hold(struct medge_conn *c, u64 now, struct medge_rx *rx,
		      enum medge_gate gate)
{
	struct medge_rx **at = &c->held;

	if (c->held_last && medge_seq_before(c->held_last->psn, rx->psn)) {
		at = &c->held_last->next;
	} else {
		while (*at && medge_seq_before((*at)->psn, rx->psn))
			at = &(*at)->next;
	}
	rx->next = *at;
	*at = rx;
	if (!rx->next)
		c->held_last = rx;
	c->nheld++;
	c->stats.held++;
	rx->state &= ~MEDGE_RX_LOOSE;
	if (gate == MEDGE_GATE_LOOSE) {
		rx->state |= MEDGE_RX_LOOSE;
		c->nheld_loose++;
	}
	if (c->rcv_rnr)
		medge_recvq_settle(c, rx);
	medge_ack_due(c, now, rx);
}

static void unhold(struct medge_conn *c, struct medge_rx **at,
		   struct medge_rx *prev)
{
	struct medge_rx *rx = *at;

	*at = rx->next;
	if (c->held_last == rx)
		c->held_last = prev;
	rx->next = NULL;
	c->nheld--;
	if (rx->state & MEDGE_RX_LOOSE)
		c->nheld_loose--;
}

struct medge_rx *medge_conn_released(struct medge_conn *c)
{
	struct medge_rx **at = &c->held, *prev = NULL;

	if (!c->recheck)
		return NULL;
	c->recheck = false;
	while (*at) {
		struct medge_rx *rx = *at;
		enum medge_gate gate = MEDGE_GATE_OPEN;

		if (!c->refused)
			gate = medge_fence_gate(c, rx);

		if (gate == MEDGE_GATE_OPEN) {
			unhold(c, at, prev);
			c->recheck = true;
			return rx;
		}
		/* Behind one that waits for its turn only loose ones can be ready. */
		if (gate == MEDGE_GATE_TURN && !c->nheld_loose)
			break;
		prev = rx;
		at = &rx->next;
	}
	return NULL;
}

struct medge_rx *medge_conn_unhold(struct medge_conn *c)
{
	struct medge_rx *rx = c->held;

	if (rx)
		unhold(c, &c->held, NULL);
	return rx;
}
