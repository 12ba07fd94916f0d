// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The connection's deadlines, and that of late doorbells, on one lazy timer a QP. */
#include <linux/ktime.h>

#include "qp.h"

static void timer_set(struct medge_qp *qp, u64 at)
{
	/* A timer that fires too early costs less than one moved each time. */
	if (at >= qp->timer_at)
		return;
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
		timer_set(qp, at);
}

void medge_timer_kick(struct medge_qp *qp)
{
	timer_set(qp, qp->now);
}

void medge_timer_late(struct medge_qp *qp)
{
	timer_set(qp, qp->late.at);
}

/* Runs in softirq. */
enum hrtimer_restart medge_timer_fire(struct hrtimer *timer)
{
	struct medge_qp *qp = container_of(timer, struct medge_qp, timer);

	if (!medge_qp_hold(qp))
		return HRTIMER_NORESTART;
	spin_lock_bh(&qp->lock);
	qp->timer_at = MEDGE_NEVER;
	qp->now = ktime_get_ns();
	if (qp->conn && qp->state != IB_QPS_ERR &&
	    medge_conn_deadline(qp->conn) <= qp->now)
		medge_conn_timeout(qp->conn, qp->now);
	if (qp->late.at > qp->now)
		medge_timer_late(qp);
	else if (qp->late.at)
		medge_late_due(qp);
	medge_send_unlock(qp);
	medge_qp_put(qp);
	return HRTIMER_NORESTART;
}
