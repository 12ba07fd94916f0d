// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The deadlines of a QP, on one lazy timer. */
#include <linux/ktime.h>
#include <linux/math.h>

#include "qp.h"
#include "seat.h"
#include "uc.h"

enum {
	/*
	 * While there is traffic, a QP's timer fires every ms, and finds its deadline
	 * moved on. If it is early by a part of that, those of many QPs do at once, in
	 * one interrupt; for what is left to a deadline that stands, it is set again.
	 */
	SLOT_NS = 1 << 18,
	SLOT_WAIT_NS = 2 * SLOT_NS,
};

void medge_timer_set(struct medge_qp *qp, u64 at)
{
	/* A timer that fires too early costs less than one moved each time. */
	if (at >= qp->timer_at)
		return;
	if (at >= qp->now + SLOT_WAIT_NS)
		at = round_down(at, SLOT_NS);
	qp->timer_at = at;
	hrtimer_start(&qp->timer, ns_to_ktime(at), HRTIMER_MODE_ABS_SOFT);
}

void medge_timer_update(struct medge_qp *qp)
{
	u64 at;

	if (!qp->conn || qp->state == IB_QPS_ERR)
		return;
	/* Nothing is due before it fires. */
	if (qp->timer_at <= medge_conn_earliest(qp->conn))
		return;
	at = medge_conn_deadline(qp->conn);
	if (at != MEDGE_NEVER)
		medge_timer_set(qp, at);
}

void medge_timer_kick(struct medge_qp *qp)
{
	qp->look_again = true;
	medge_timer_set(qp, qp->now);
}

/* What is due at @at (0: nothing is), is it so now? If not, the timer is to fire by then. */
static bool has_come(struct medge_qp *qp, u64 at)
{
	if (at > qp->now)
		medge_timer_set(qp, at);
	return at && at <= qp->now;
}

/* Receives that were posted, and not told of. */
static bool recv_is_due(struct medge_qp *qp, struct sk_buff_head *used)
{
	if (!has_come(qp, qp->late_recv.at) || !medge_late_recv_due(qp))
		return false;
	medge_recv_look(qp, used);
	return true;
}

/* Most of the time it is early, and the CPU another than where the QP is at work. */
static bool is_due(struct medge_qp *qp, struct sk_buff_head *used)
{
	bool due = qp->look_again;

	if (qp->conn && qp->state != IB_QPS_ERR &&
	    medge_conn_deadline(qp->conn) <= qp->now) {
		medge_conn_timeout(qp->conn, qp->now);
		due = true;
	}
	if (has_come(qp, qp->late.at)) {
		medge_late_due(qp);
		due = true;
	}
	if (has_come(qp, qp->polled.alone_at)) {
		medge_seat_is_alone(qp);
		due = true;
	}
	if (has_come(qp, qp->uc.order.until))
		medge_uc_timeout(qp, used);
	return recv_is_due(qp, used) || due;
}

/* Runs in softirq. */
enum hrtimer_restart medge_timer_fire(struct hrtimer *timer)
{
	struct medge_qp *qp = container_of(timer, struct medge_qp, timer);
	struct sk_buff_head used;

	if (!medge_qp_hold(qp))
		return HRTIMER_NORESTART;
	__skb_queue_head_init(&used);
	spin_lock_bh(&qp->lock);
	qp->timer_at = MEDGE_NEVER;
	qp->now = ktime_get_ns();
	if (is_due(qp, &used)) {
		medge_send_ready_unlock(qp);
	} else {
		medge_timer_update(qp);
		spin_unlock_bh(&qp->lock);
	}
	medge_skbs_used(&used);
	medge_qp_put(qp);
	return HRTIMER_NORESTART;
}
