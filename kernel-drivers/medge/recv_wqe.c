// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Receive WQEs: taken from where they were posted, once, and checked. */
#include "qp.h"
#include "snap.h"
#include "srq.h"

/* Whether the memory may be used is remembered, for the message that needs it. */
static void recv_check_sges(struct medge_qp *qp, struct medge_recv_snap *snap)
{
	u64 len = 0;
	u32 i;

	snap->relaxed = true;
	for (i = 0; i < snap->num_sge; i++) {
		const struct medge_sge *sge = &snap->sge[i];
		u32 what;

		if (!sge->length)
			continue;
		len += sge->length;
		what = medge_mr_check_locked(qp, snap->pd, sge->lkey, sge->addr,
					     sge->length, IB_ACCESS_LOCAL_WRITE);
		if (!what)
			snap->status = MEDGE_LOCAL_PROTECTION;
		else if (!(what & MEDGE_MR_RELAXED))
			snap->relaxed = false;
	}
	snap->len = min_t(u64, len, U32_MAX);
}

void medge_recv_snapshot(struct medge_qp *qp, struct medge_recv_snap *snap,
			 const void *entry, u32 shift, u32 index,
			 const struct ib_pd *pd)
{
	struct medge_recv_wqe wqe;

	memcpy(&wqe, entry, sizeof(wqe));
	/* From here on, nothing that has been read is read again. */
	barrier();
	snap->wr_id = wqe.wr_id;
	snap->pd = pd;
	snap->num_sge = wqe.num_sge;
	snap->index = index;
	snap->status = MEDGE_OK;
	snap->named = false;
	snap->valid = true;
	if (snap->num_sge > qp->max_recv_sge ||
	    snap->num_sge * sizeof(*snap->sge) >
	    BIT(shift) - sizeof(wqe)) {
		snap->num_sge = 0;
		snap->status = MEDGE_LOCAL_OPERATION;
	}
	memcpy(snap->sge, entry + sizeof(wqe),
	       snap->num_sge * sizeof(*snap->sge));
	recv_check_sges(qp, snap);
}

/* Has the user posted the receive that is @ahead of the oldest? */
static bool recv_posted(struct medge_ring *rq, u32 ahead)
{
	/* Pairs with the user's release of prod: the entries are there. */
	u32 n = smp_load_acquire(&rq->hdr->prod) - rq->done;

	rq->prod = rq->done + min(n, rq->mask + 1);
	return ahead < rq->prod - rq->done;
}

/* As above, but if not, the user will ring when he posts. */
static bool recv_await(struct medge_qp *qp, u32 ahead)
{
	struct medge_ring *rq = &qp->rq;

	if (ahead < rq->prod - rq->done || recv_posted(rq, ahead))
		return true;
	WRITE_ONCE(rq->hdr->need_doorbell, qp->conn ? medge_late_recv_doorbell(qp) :
						      MEDGE_DOORBELL_NOW);
	/* Pairs with the barrier between the user's prod and his look at this. */
	smp_mb();
	if (!recv_posted(rq, ahead))
		return false;
	WRITE_ONCE(rq->hdr->need_doorbell, MEDGE_DOORBELL_NONE);
	return true;
}

/* An SRQ that is not there is as one that is empty: it may be made yet. */
static bool xrc_take(struct medge_qp *qp, struct medge_recv_snap *snap,
		     u32 index, u32 srqn)
{
	struct medge_srq *srq = medge_srq_get(qp, srqn);
	bool taken;

	if (!srq)
		return false;
	taken = medge_srq_take(srq, qp, snap, index);
	snap->srqn = srqn;
	medge_srq_put(srq);
	return taken;
}

static bool recv_enter(struct medge_qp *qp, u32 index)
{
	struct medge_snaps *s = &qp->rq_snaps;

	if (!medge_snaps_enter(s, index))
		return false;
	if ((s32)(index - s->end) >= 0)
		s->end = index + 1;
	return true;
}

/* Messages that overtake others leave them the receives that come first. */
static struct medge_recv_snap *srq_take(struct medge_qp *qp, u32 index)
{
	u32 i;

	for (i = qp->rq.done; i - 1 != index; i++)
		if (!medge_snap_taken(qp, i) &&
		    (!recv_enter(qp, i) ||
		     !medge_srq_take(qp->srq, qp, medge_snap_recv(qp, i), i)))
			return NULL;
	return medge_snap_recv(qp, index);
}

struct medge_recv_snap *medge_recv_take(struct medge_qp *qp, u32 index,
					u32 srqn)
{
	struct medge_ring *rq = &qp->rq;
	u32 ahead = index - rq->done;
	struct medge_recv_snap *snap;

	if (!qp->rq_snaps.size || ahead > qp->rq_snaps.mask)
		return NULL;
	snap = medge_snap_taken(qp, index);
	if (snap)
		return snap;
	if (qp->srq)
		return srq_take(qp, index);
	/* What there always is memory for is for the oldest: others wait for that. */
	if (!medge_snaps_enter(&qp->rq_snaps, rq->done) || !recv_enter(qp, index))
		return NULL;
	snap = medge_snap_recv(qp, index);
	if (medge_qp_is_xrc_tgt(qp))
		return xrc_take(qp, snap, index, srqn) ? snap : NULL;
	if (!recv_await(qp, ahead))
		return NULL;
	medge_recv_snapshot(qp, snap, medge_ring_entry(rq, index), rq->shift,
			    index, qp->ibqp.pd);
	return snap;
}
