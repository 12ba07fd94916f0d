// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Take frames from a rail to their connection, and place what they bring. */
#include <linux/etherdevice.h>
#include <linux/skbuff.h>

#include "complete.h"
#include "device.h"
#include "compat.h"
#include "offload.h"
#include "place.h"
#include "qp.h"
#include "rail.h"
#include "receive.h"
#include "stats.h"
#include "trace.h"
#include "uc.h"
#include "ud.h"

enum {
	/* Copies up to this cost less than giving up the lock, and reading a clock after that. */
	RX_COPY_LOCKED = 4096,
};

/* A frame's state lives in its skb, which the connection may hold. */
static struct medge_rx *skb_rx(struct sk_buff *skb)
{
	BUILD_BUG_ON(sizeof(struct medge_rx) > sizeof(skb->cb));
	return (struct medge_rx *)skb->cb;
}

static struct sk_buff *rx_skb(struct medge_rx *rx)
{
	return container_of((void *)rx, struct sk_buff, cb);
}

/* As it comes: by its fragments' addresses. Those that are not are rare, and copied. */
static bool is_readable(const struct sk_buff *skb)
{
	return !skb_has_frag_list(skb) &&
	       !(IS_ENABLED(CONFIG_HIGHMEM) && skb_is_nonlinear(skb));
}

static enum medge_drop decode(struct sk_buff *skb, struct medge_frame *f)
{
	enum medge_drop drop;
	u32 linear;

	if (unlikely(!is_readable(skb)) && skb_linearize(skb))
		return MEDGE_DROP_RUNT;
	if (!pskb_may_pull(skb, sizeof(struct medge_frame_hdr)))
		return MEDGE_DROP_RUNT;
	linear = medge_wire_linear(skb->data, skb_headlen(skb), skb->len);
	if (!pskb_may_pull(skb, min(linear, skb->len)))
		return MEDGE_DROP_RUNT;
	drop = medge_wire_decode(skb->data, skb_headlen(skb), skb->len, f);
	/* Unless it wants operands that are behind what we have given it. */
	if (likely(drop != MEDGE_DROP_RUNT) || !skb_is_nonlinear(skb) ||
	    skb_linearize(skb))
		return drop;
	return medge_wire_decode(skb->data, skb->len, skb->len, f);
}

static bool may_receive(const struct medge_qp *qp, const struct medge_rx_l2 *l2)
{
	return qp->conn && medge_l2_matches(&qp->l2, l2->smac, l2->vlan) &&
	       !l2->multicast && medge_qp_talks(qp);
}

/* How it went with a piece. */
enum place {
	PLACED,		/* or it cannot be */
	LATER,		/* it is being copied, or its memory is absent: its frame is cared for */
	FAILED,		/* the QP has, before or meanwhile: the piece is of no matter */
};

/* A piece that counts in qp->placing has been copied, or not. */
static enum place end_placing(struct medge_qp *qp)
{
	qp->now = ktime_get_ns();
	qp->placing--;
	if (qp->state != IB_QPS_ERR)
		return PLACED;
	if (qp->flush_late && !qp->placing)
		medge_qp_flush(qp);
	return FAILED;
}

/* Copy a piece; a large one without the lock, so that several CPUs can at once. */
static enum place place(struct medge_qp *qp, struct sk_buff *skb,
			const struct medge_piece *piece, enum medge_nak *nak)
	__must_hold(&qp->lock)
{
	bool locked = piece->op.len <= RX_COPY_LOCKED, given = false;
	struct medge_absent absent = {};

	/* An op before it may have done that, and the QP's receives are its user's again. */
	if (qp->state == IB_QPS_ERR)
		return FAILED;
	if (locked) {
		*nak = medge_place_piece(qp, skb, piece, true, NULL, &absent);
		if (likely(!absent.mr))
			return PLACED;
		qp->placing++;
	} else {
		qp->placing++;
		medge_completions_tell(qp);
		spin_unlock(&qp->lock);
		if (unlikely(medge_offload_wants(&qp->dev->offload, piece->op.len)))
			given = medge_offload_piece(qp, skb, piece, nak, &absent);
		else
			*nak = medge_place_piece(qp, skb, piece, false, NULL, &absent);
		spin_lock(&qp->lock);
		if (given)
			return LATER;
		if (likely(!absent.mr))
			return end_placing(qp);
	}
	/* It is found again when it is needed, and may be there by then. */
	medge_mr_put(absent.mr);
	medge_count(qp->dev, page_faults);
	medge_faults_hold(qp, skb);
	return LATER;
}

/* Go as far as possible with an accepted frame; it is used up, or held. */
static void proceed(struct medge_qp *qp, struct medge_rx *rx,
		    struct sk_buff_head *used)
{
	struct sk_buff *skb = rx_skb(rx);
	struct medge_piece piece;
	enum medge_rx_step step;
	enum medge_nak nak;
	enum place how;

	for (;;) {
		step = medge_conn_step(qp->conn, qp->now, rx, skb->data, &piece);
		if (step == MEDGE_RX_HELD) {
			medge_held_add(&qp->dev->held, &qp->held_bytes, skb);
			trace_medge_hold(qp, rx);
			return;
		}
		if (step == MEDGE_RX_DONE)
			break;
		how = place(qp, skb, &piece, &nak);
		if (how == LATER)
			return;
		if (how == FAILED)
			break;
		medge_conn_placed(qp->conn, qp->now, rx, &piece, nak);
	}
	__skb_queue_tail(used, skb);
}

void medge_receive_released(struct medge_qp *qp, struct sk_buff_head *used)
{
	struct medge_rx *rx;

	while ((rx = medge_conn_released(qp->conn))) {
		trace_medge_release(qp, rx);
		medge_held_sub(&qp->dev->held, &qp->held_bytes, rx_skb(rx));
		proceed(qp, rx, used);
	}
}

/* A piece that was set aside is placed, or cannot be: its frame goes on. */
static void go_on(struct medge_qp *qp, struct sk_buff *skb,
		  const struct medge_piece *piece, enum medge_nak nak)
	__releases(&qp->lock)
{
	struct medge_rx *rx = skb_rx(skb);
	struct sk_buff_head used;

	__skb_queue_head_init(&used);
	if (end_placing(qp) == PLACED) {
		medge_conn_placed(qp->conn, qp->now, rx, piece, nak);
		proceed(qp, rx, &used);
		medge_receive_released(qp, &used);
	} else {
		__skb_queue_tail(&used, skb);
	}
	medge_send_unlock(qp);
	medge_skbs_used(&used);
}

void medge_receive_again(struct medge_qp *qp, struct sk_buff *skb)
	__must_hold(&qp->lock)
{
	struct medge_piece piece;
	enum medge_nak nak;

	medge_conn_piece(skb_rx(skb), skb->data, &piece);
	spin_unlock_bh(&qp->lock);
	nak = medge_faults_place(qp, skb, &piece);
	spin_lock_bh(&qp->lock);
	go_on(qp, skb, &piece, nak);
	spin_lock_bh(&qp->lock);
}

void medge_receive_copied(struct medge_qp *qp, struct sk_buff *skb,
			  const struct medge_piece *piece, enum medge_nak nak)
{
	spin_lock_bh(&qp->lock);
	go_on(qp, skb, piece, nak);
}

/*
 * There is memory for it, should it be held; the next frame that the connection
 * waits for is what makes room.
 */
static bool has_room(const struct medge_qp *qp, const struct sk_buff *skb,
		     const struct medge_frame *f)
{
	return f->type != MEDGE_FRAME_DATA ||
	       medge_held_room(&qp->dev->held, qp->held_bytes, skb) ||
	       medge_conn_expects(qp->conn, f);
}

/*
 * Give the frame to the connection. Of an uncut superframe it may want some
 * frames and have others: then each stretch of new ones has its own clone.
 */
static void receive_frames(struct medge_qp *qp, struct medge_arrivals *in,
			   struct sk_buff *skb, const struct medge_frame *f)
{
	u32 rail = in->rail->index;
	struct medge_ack ack __uninitialized;
	struct sk_buff *rest;
	u16 skip = 0;

	if (f->type == MEDGE_FRAME_ACK)
		medge_wire_decode_ack(skb->data, &ack);
	while (skb) {
		struct medge_rx *rx = skb_rx(skb);
		enum medge_drop drop;
		bool more;

		memset(rx, 0, sizeof(*rx));
		drop = medge_conn_receive(qp->conn, qp->now, rail, f,
					  f->type == MEDGE_FRAME_ACK ? &ack : NULL,
					  rx, &skip);
		trace_medge_receive(qp, rail, f, drop);
		if (drop != MEDGE_DROP_NONE)
			break;
		more = skip < f->nframes;
		if (!rx->nframes) {
			if (more)
				continue;
			break;
		}
		rest = more ? skb_clone(skb, GFP_ATOMIC) : NULL;
		proceed(qp, rx, &in->used);
		medge_receive_released(qp, &in->used);
		skb = rest;
		if (skb && !medge_qp_talks(qp))
			break;
	}
	if (skb)
		__skb_queue_tail(&in->used, skb);
	/* The acknowledgment alone may have let others go. */
	medge_receive_released(qp, &in->used);
}

/* Several ops are in it, or completed by it; one alone is told of as it is added. */
static bool brings_many(const struct medge_qp *qp, const struct medge_frame *f)
{
	return f->nops > 1 || f->ack_op - medge_conn_oldest_op(qp->conn) > 1;
}

/* To in->qp. */
static void receive(struct medge_arrivals *in, struct sk_buff *skb,
		    const struct medge_frame *f, const struct medge_rx_l2 *l2)
{
	struct medge_qp *qp = in->qp;

	if (!may_receive(qp, l2)) {
		medge_count(qp->dev, rx_bad_peer);
		kfree_skb(skb);
		return;
	}
	if (!in->heard)
		qp->now = ktime_get_ns();
	in->heard = true;
	if (!has_room(qp, skb, f)) {
		medge_count(qp->dev, rx_held_full);
		__skb_queue_tail(&in->used, skb);
		return;
	}
	if (brings_many(qp, f))
		medge_completions_gather(qp);
	receive_frames(qp, in, skb, f);
}

/* It stays locked as long as @in has it, which sparse cannot follow. */
static void begin_qp(struct medge_arrivals *in, struct medge_qp *qp)
{
	spin_lock_bh(&qp->lock);
	__release(&qp->lock);
	in->qp = qp;
	in->heard = false;
	__skb_queue_head_init(&in->used);
}

void medge_arrivals_end_qp(struct medge_arrivals *in)
{
	struct medge_qp *qp = in->qp;

	__acquire(&qp->lock);
	in->qp = NULL;
	if (in->heard) {
		medge_completions_tell(qp);
		medge_send_unlock(qp);
		medge_skbs_used(&in->used);
	} else {
		spin_unlock_bh(&qp->lock);
	}
	medge_qp_put(qp);
}

bool medge_receive_decode(struct medge_device *dev, struct sk_buff *skb,
			  struct medge_frame *f)
{
	enum medge_drop drop = decode(skb, f);

	if (likely(drop == MEDGE_DROP_NONE))
		return true;
	medge_count_drop(dev, drop);
	kfree_skb(skb);
	return false;
}

void medge_receive_decoded(struct medge_arrivals *in, struct sk_buff *skb,
			   const struct medge_frame *f,
			   const struct medge_rx_l2 *l2)
{
	struct medge_device *dev = in->rail->dev;
	struct medge_qp *qp = in->qp;

	if (f->type == MEDGE_FRAME_DATAGRAM) {
		medge_arrivals_end(in);
		medge_ud_receive(dev, skb, l2);
		return;
	}
	if (f->type == MEDGE_FRAME_PROBE || f->type == MEDGE_FRAME_REPLY) {
		medge_arrivals_end(in);
		medge_node_receive(in->rail, skb, l2);
		medge_skb_used(skb);
		return;
	}
	if (!qp || qp->qpn != f->qpn) {
		medge_arrivals_end(in);
		qp = medge_qp_get(dev, f->qpn);
	}
	if (!qp) {
		medge_count(dev, rx_no_qp);
		kfree_skb(skb);
		return;
	}
	if (READ_ONCE(qp->polled.wanted))
		medge_poller_frame(&dev->poller, in->rail->index, skb);
	if (medge_qp_is_uc(qp)) {
		medge_uc_receive(qp, skb, f, l2);
		medge_qp_put(qp);
		return;
	}
	if (!in->qp)
		begin_qp(in, qp);
	receive(in, skb, f, l2);
}

void medge_receive(struct medge_rail *rail, struct sk_buff *skb,
		   const struct medge_rx_l2 *l2)
{
	struct medge_arrivals in __uninitialized;
	struct medge_frame f __uninitialized;

	if (!medge_receive_decode(rail->dev, skb, &f))
		return;
	medge_arrivals_init(&in, rail);
	medge_receive_decoded(&in, skb, &f, l2);
	medge_arrivals_end(&in);
}

void medge_receive_free_held(struct medge_qp *qp)
{
	struct medge_rx *rx;

	while ((rx = medge_conn_unhold(qp->conn))) {
		medge_held_sub(&qp->dev->held, &qp->held_bytes, rx_skb(rx));
		kfree_skb(rx_skb(rx));
	}
}
