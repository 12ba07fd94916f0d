// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Turns of sending: frames are built, and given to the rails. */
#include <linux/skbuff.h>

#include "batch.h"
#include "build.h"
#include "complete.h"
#include "device.h"
#include "loop.h"
#include "post.h"
#include "qp.h"
#include "seat.h"
#include "stats.h"
#include "trace.h"
#include "uc.h"
#include "ud.h"

enum {
	/* skbs built in one go, under the lock; and where two CPUs build by turns. */
	TX_BATCH = 16,
	TX_BATCH_SHARED = 8,
	/* Of ops from so long on, those of a part, of which an op has an even number, in bytes. */
	TX_PARTED = 256 << 10,
	TX_PART = 512 << 10,
	/* Goes of one turn: within another's, by two, by who lends his CPU, in softirq, else. */
	TX_GOES_NEAR = 2,
	TX_GOES_SHARED = 16,
	TX_GOES_LENT = 4,
	TX_GOES_SOFTIRQ = 12,
	TX_GOES = 32,
	/* Looks at a ring whose user posts just what leads to no frame. */
	TX_LOOKS = 4,
};

static void build_into(struct medge_send_batch *out, struct medge_qp *qp,
		       const struct medge_tx *tx)
{
	struct sk_buff *skb = medge_build(qp, tx);

	if (skb)
		__skb_queue_tail(&out->skbs, skb);
}

/* Is the last of a part of the whole op in this? It is TX_PARTED long, or more. */
static bool ends_part(const struct medge_op *op)
{
	u32 pairs = (op->op_len - 1) / (2 * TX_PART) + 1;
	u32 part = op->op_len / (2 * pairs);
	u32 end = op->offset + op->len;

	return end == op->op_len || end / part != op->offset / part;
}

/*
 * Of two CPUs that build by turns, each copies what it has built, if the peer is near. A
 * program uses its buffers time and again: if it is the same CPU that has the same part of
 * them, op after op, it has that in its cache, and not the other's.
 */
static bool is_others_turn(const struct medge_tx *tx, u32 built)
{
	if (tx->op.op_len >= TX_PARTED)
		return ends_part(&tx->op);
	return built >= TX_BATCH_SHARED;
}

/* Return: there may be more to send. */
static bool fill(struct medge_qp *qp, struct medge_send_batch *out)
{
	bool shared = medge_poller_is_shared(qp);
	struct medge_tx tx __uninitialized;
	u32 n;

	for (n = 1; n <= TX_BATCH && medge_qp_talks(qp); n++) {
		if (!medge_conn_poll_tx(qp->conn, qp->now, &tx)) {
			qp->full = qp->unsent &&
				   medge_conn_is_full(qp->conn, qp->now);
			return false;
		}
		trace_medge_send(qp, &tx);
		build_into(out, qp, &tx);
		if (shared && is_others_turn(&tx, n))
			break;
	}
	qp->full = false;
	return true;
}

/*
 * Until what is built is sent, nobody else builds, be it acks alone: they need no
 * order, but between QPs of one host who answers from within would have to be
 * answered from within that, which is deeper than medge_loop_receive() goes.
 */
void medge_send_build(struct medge_qp *qp, struct medge_send_batch *out)
{
	u32 looks;

	__skb_queue_head_init(&out->skbs);
	out->qp = NULL;
	if (!qp->conn || !medge_qp_talks(qp))
		return;
	medge_rails_look(&qp->dev->rails, qp->now);
	medge_node_sync(qp);
	if (qp->sending) {
		qp->look_again = true;
		return;
	}
	for (looks = 0; looks < TX_LOOKS; looks++) {
		bool more;

		medge_post_take(qp);
		more = fill(qp, out);
		qp->look_again = more;
		if (!skb_queue_empty(&out->skbs)) {
			out->qp = qp;
			qp->sending = true;
			return;
		}
		if (!more && medge_post_idle(qp))
			return;
	}
	if (medge_qp_talks(qp))
		medge_timer_kick(qp);
}

/*
 * There may be more to send. Who polls looks again at once, and needs no timer for
 * that. A peer that is near has acknowledged all there was, so there could be for ever,
 * and one timer after the other would leave no time to anybody else on this CPU: tasklets
 * do.
 */
static void go_on_later(struct medge_qp *qp, bool near)
{
	if (medge_seat_is_mine(qp))
		medge_seat_hand(qp);
	else if (near)
		tasklet_schedule(&qp->kpost.bell);
	else
		medge_timer_kick(qp);
}

static u32 turn_goes(const struct medge_qp *qp)
{
	if (medge_loop_busy())
		return TX_GOES_NEAR;
	if (qp && medge_poller_is_lent(&qp->dev->poller))
		return TX_GOES_LENT;
	if (qp && medge_poller_is_shared(qp))
		return TX_GOES_SHARED;
	return in_serving_softirq() ? TX_GOES_SOFTIRQ : TX_GOES;
}

/* At qp->now. */
static void build_unlock(struct medge_qp *qp, struct medge_send_batch *out)
	__releases(&qp->lock)
{
	if (qp->polled.watched && medge_seat_sends(qp))
		out->qp = NULL;
	else
		medge_send_build(qp, out);
	/* Who sends does it when that is done. */
	if (!out->qp)
		medge_timer_update(qp);
	medge_qp_forget_mr(qp);
	spin_unlock_bh(&qp->lock);
}

/*
 * A turn: the batch goes out, then what has become ready meanwhile. Nobody
 * else builds for this QP until then, so each rail sees its frames in order;
 * and nobody preempts us, so the others never wait long.
 *
 * But where two CPUs send, the other may build while the frames are received here.
 */
void medge_send_flush(struct medge_device *dev, struct medge_send_batch *out)
{
	struct medge_qp *qp = out->qp;
	u32 goes = turn_goes(qp);
	bool near, again;

	while (out->qp) {
		again = false;
		local_bh_disable();
		near = medge_batch_xmit(dev, &out->skbs);
		spin_lock(&qp->lock);
		qp->sending = false;
		out->qp = NULL;
		/* Or nothing has changed, and no look would find anything. */
		if (qp->look_again || !medge_post_idle(qp)) {
			qp->now = ktime_get_ns();
			if (medge_poller_is_shared(qp)) {
				medge_seat_hand(qp);
				again = --goes;
			} else if (--goes) {
				medge_send_build(qp, out);
			} else {
				go_on_later(qp, near);
			}
		}
		medge_timer_update(qp);
		medge_qp_forget_mr(qp);
		spin_unlock(&qp->lock);
		/* Here the frames may be received, if the peer is near. */
		local_bh_enable();
		if (again) {
			spin_lock_bh(&qp->lock);
			qp->now = ktime_get_ns();
			build_unlock(qp, out);
		}
	}
}

void medge_send_unlock(struct medge_qp *qp) __releases(&qp->lock)
{
	struct medge_send_batch out;

	build_unlock(qp, &out);
	medge_send_flush(qp->dev, &out);
}

void medge_send_farewell(struct medge_qp *qp)
{
	struct medge_send_batch out = {};
	struct medge_tx tx;
	u32 n;

	__skb_queue_head_init(&out.skbs);
	spin_lock_bh(&qp->lock);
	if (qp->conn && medge_qp_talks(qp)) {
		qp->now = ktime_get_ns();
		for (n = 0; n < MEDGE_FAREWELLS; n++) {
			if (!medge_conn_farewell(qp->conn, qp->now, &tx))
				break;
			trace_medge_send(qp, &tx);
			build_into(&out, qp, &tx);
		}
	}
	spin_unlock(&qp->lock);
	medge_batch_xmit(qp->dev, &out.skbs);
	local_bh_enable();
}

void medge_send_ready_unlock(struct medge_qp *qp) __releases(&qp->lock)
{
	if (medge_qp_is_ud(qp))
		medge_ud_send_unlock(qp);
	else if (medge_qp_is_uc(qp))
		medge_uc_send_unlock(qp);
	else
		medge_send_unlock(qp);
}

/* At qp->now. */
static void look_unlock(struct medge_qp *qp) __releases(&qp->lock)
{
	if (qp->polled.watched && qp->state == IB_QPS_RTS) {
		if (READ_ONCE(qp->polled.streams))
			medge_second_look(qp);
		WRITE_ONCE(qp->sq.hdr->need_doorbell,
			   medge_poller_doorbell(qp));
	}
	if (qp->state == IB_QPS_ERR || qp->state == IB_QPS_SQE)
		medge_flush_sq(qp);
	medge_send_ready_unlock(qp);
}

void medge_send_look(struct medge_qp *qp)
{
	spin_lock_bh(&qp->lock);
	qp->now = ktime_get_ns();
	look_unlock(qp);
}

bool medge_send_try_look(struct medge_qp *qp)
{
	if (READ_ONCE(qp->sending) || !spin_trylock_bh(&qp->lock))
		return false;
	qp->now = ktime_get_ns();
	look_unlock(qp);
	return true;
}

u64 medge_send_rung(struct medge_qp *qp)
{
	u64 began;

	if (READ_ONCE(qp->polled.wanted))
		medge_poller_wake(&qp->dev->poller);
	spin_lock_bh(&qp->lock);
	medge_count(qp->dev, doorbells);
	if (medge_poller_is_shared(qp) || medge_poller_is_helped(qp))
		medge_count(qp->dev, poller_shared);
	began = ktime_get_ns();
	qp->now = began;
	medge_late_rang(qp);
	if (medge_seat_needs_no_bell(qp)) {
		medge_count(qp->dev, poller_kept);
		spin_unlock_bh(&qp->lock);
	} else {
		look_unlock(qp);
	}
	return began;
}

void medge_send_doorbell(struct medge_qp *qp)
{
	if (!medge_qp_hold(qp))
		return;
	medge_send_rung(qp);
	medge_qp_put(qp);
}

void medge_recv_look(struct medge_qp *qp, struct sk_buff_head *used)
{
	if (qp->rq.hdr)
		WRITE_ONCE(qp->rq.hdr->need_doorbell, MEDGE_DOORBELL_NONE);
	/* Who still sees it rings again; the others' prod we see. */
	smp_mb();
	if (!qp->conn || !medge_conn_rnr(qp->conn))
		return;
	medge_completions_gather(qp);
	medge_conn_recv_posted(qp->conn);
	medge_receive_released(qp, used);
	medge_completions_tell(qp);
}

void medge_recv_doorbell(struct medge_qp *qp)
{
	struct sk_buff_head used;

	if (!medge_qp_hold(qp))
		return;
	__skb_queue_head_init(&used);
	spin_lock_bh(&qp->lock);
	medge_count(qp->dev, doorbells);
	qp->now = ktime_get_ns();
	if (qp->state == IB_QPS_ERR) {
		medge_flush_rq(qp);
	} else if (qp->rq_snaps.size) {
		medge_late_recv_rang(qp);
		medge_recv_look(qp, &used);
	}
	medge_send_unlock(qp);
	medge_skbs_used(&used);
	medge_qp_put(qp);
}
