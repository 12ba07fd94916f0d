// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Doorbells that may be late. */
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/math64.h>

#include "cq.h"
#include "device.h"
#include "late.h"
#include "qp.h"
#include "stats.h"

void medge_late_init(struct medge_qp *qp)
{
	qp->late = (struct medge_late) {
		.rested = jiffies,
		.rest_ms = MEDGE_LATE_REST_MS,
	};
	qp->late_recv = (struct medge_late_recv) { .rested = jiffies };
}

/* How many CQEs its user has read; wraps. */
static u32 reaped(struct medge_qp *qp)
{
	struct medge_cq *cq = medge_qp_send_cq(qp);
	u32 cons;

	spin_lock(&cq->lock);
	medge_cq_unread(cq, &cons);
	spin_unlock(&cq->lock);
	return cons;
}

static void note_begin(struct medge_qp *qp)
{
	qp->late.began = qp->now;
	qp->late.from = qp->sq.cons;
}

void medge_late_rang(struct medge_qp *qp)
{
	struct medge_late *late = &qp->late;
	bool many = false;
	u32 cons;

	/* Who has nothing to send with may ring nevertheless. */
	if (!qp->sq.hdr)
		return;
	if (late->may)
		many = qp->sq.cons + medge_ring_posted(&qp->sq) - late->from >=
		       MEDGE_LATE_RINGS;
	late->may = false;
	if (qp->kpost.kernel ||
	    READ_ONCE(qp->dev->poller.mode) != MEDGE_POLL_AUTO)
		return;
	note_begin(qp);
	cons = reaped(qp);
	late->rings = cons == late->reaped ? late->rings + 1 : 1;
	late->reaped = cons;
	/* Who was late, and has told of as many at once, may read some between them. */
	late->may = (many || late->rings >= MEDGE_LATE_RINGS) &&
		    time_after_eq(jiffies, late->rested);
}

/*
 * Where ops take long, their doorbells cost little, and to take many at once would
 * keep who posts for as long from his own.
 */
static u32 worth_telling(const struct medge_qp *qp)
{
	u64 took = max_t(u64, qp->now - qp->late.began, 1);
	u32 posts = max_t(u32, qp->sq.cons - qp->late.from, 1);

	posts = min_t(u32, posts, MEDGE_LATE_POSTS);
	return min_t(u64, MEDGE_LATE_POSTS,
		     div64_u64((u64)posts * MEDGE_LATE_WORK_US * NSEC_PER_USEC,
			       took));
}

u32 medge_late_doorbell(struct medge_qp *qp)
{
	u32 posts;

	if (!qp->late.may)
		return MEDGE_DOORBELL_NOW;
	posts = worth_telling(qp);
	if (posts < MEDGE_DOORBELL_LATE)
		return MEDGE_DOORBELL_NOW;
	/* Since qp->now a slow kernel may have taken as long: he is not back yet. */
	qp->late.at = ktime_get_ns() + MEDGE_LATE_US * NSEC_PER_USEC;
	medge_timer_set(qp, qp->late.at);
	return posts;
}

void medge_late_due(struct medge_qp *qp)
{
	struct medge_ring_hdr *hdr = qp->sq.hdr;
	struct medge_late *late = &qp->late;
	u32 posted;

	late->at = 0;
	late->may = false;
	if (!hdr || READ_ONCE(hdr->need_doorbell) < MEDGE_DOORBELL_LATE)
		return;
	WRITE_ONCE(hdr->need_doorbell, MEDGE_DOORBELL_NOW);
	/* Pairs with the barrier between the user's prod and his look at this. */
	smp_mb();
	posted = medge_ring_posted(&qp->sq);
	if (!posted)
		return;
	medge_count(qp->dev, late_looks);
	note_begin(qp);
	/* He is at it still, or has turned to something else. */
	if (posted >= MEDGE_LATE_RINGS || reaped(qp) != late->reaped) {
		late->may = true;
		late->rest_ms = MEDGE_LATE_REST_MS;
		return;
	}
	late->rested = jiffies + msecs_to_jiffies(late->rest_ms);
	late->rest_ms = min_t(u32, 2 * late->rest_ms, MEDGE_LATE_REST_MS_MAX);
}

/* ---- receives ---- */

u32 medge_late_recv_doorbell(struct medge_qp *qp)
{
	struct medge_late_recv *late = &qp->late_recv;

	if (!late->since)
		late->since = qp->now;
	if (late->posts < MEDGE_DOORBELL_LATE ||
	    time_before(jiffies, late->rested))
		return MEDGE_DOORBELL_NOW;
	if (!late->at) {
		late->at = ktime_get_ns() + MEDGE_LATE_RECV_US * NSEC_PER_USEC;
		medge_timer_set(qp, late->at);
	}
	return late->posts;
}

/* Who is back so soon has nothing else to do. What he posts goes to half of the ring. */
void medge_late_recv_rang(struct medge_qp *qp)
{
	struct medge_late_recv *late = &qp->late_recv;
	u32 most = min_t(u32, MEDGE_LATE_POSTS, (qp->rq.mask + 1) / 2);
	bool soon = qp->now - late->since < MEDGE_LATE_RECV_US * NSEC_PER_USEC;

	late->at = 0;
	late->since = 0;
	if (qp->kpost.kernel || !soon ||
	    READ_ONCE(qp->dev->poller.mode) == MEDGE_POLL_OFF)
		late->posts = MEDGE_DOORBELL_NOW;
	else
		late->posts = min(2 * max(late->posts, 1u), most);
}

bool medge_late_recv_due(struct medge_qp *qp)
{
	struct medge_late_recv *late = &qp->late_recv;
	struct medge_ring_hdr *hdr = qp->rq.hdr;

	late->at = 0;
	late->since = 0;
	if (!hdr || READ_ONCE(hdr->need_doorbell) < MEDGE_DOORBELL_LATE)
		return false;
	WRITE_ONCE(hdr->need_doorbell, MEDGE_DOORBELL_NOW);
	/* Pairs with the barrier between the user's prod and his look at this. */
	smp_mb();
	if (READ_ONCE(hdr->prod) == qp->rq.done)
		return false;
	medge_count(qp->dev, late_looks);
	/* He has turned to something else. */
	late->posts = MEDGE_DOORBELL_NOW;
	late->rested = jiffies + msecs_to_jiffies(MEDGE_LATE_REST_MS);
	return true;
}
