// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Queues that fail: what was posted is flushed, and the user hears of it. */
#include "complete.h"
#include "qp.h"
#include "snap.h"

/* WQEs that the connection has, in order; it is dead. */
static void flush_sq_taken(struct medge_qp *qp)
{
	while (qp->sq.done != qp->sq.cons) {
		struct medge_send_snap *snap;

		snap = medge_snap_send(qp, qp->op_base + qp->sq.done);
		medge_ring_done(&qp->sq, qp->sq.done + 1);
		medge_send_complete(qp, snap->wqe.wr_id, snap->wqe.opcode, 0,
				    IB_WC_WR_FLUSH_ERR);
		medge_snaps_sent(qp);
	}
}

/* WQEs that are in the ring now. */
static void flush_sq_posted(struct medge_qp *qp)
{
	u32 n = medge_ring_posted(&qp->sq);

	while (n--) {
		struct medge_send_wqe *wqe;
		u64 wr_id;
		u8 opcode;

		wqe = medge_ring_entry(&qp->sq, qp->sq.cons++);
		wr_id = READ_ONCE(wqe->wr_id);
		opcode = READ_ONCE(wqe->opcode);
		if (opcode >= MEDGE_WQE_OPCODES)
			opcode = MEDGE_WQE_WRITE;
		medge_ring_done(&qp->sq, qp->sq.cons);
		medge_send_complete(qp, wr_id, opcode, 0, IB_WC_WR_FLUSH_ERR);
		medge_snaps_sent(qp);
	}
}

void medge_flush_sq(struct medge_qp *qp)
{
	if (!qp->sq.hdr)
		return;
	if (qp->placing) {
		qp->flush_late = true;
		return;
	}
	flush_sq_taken(qp);
	flush_sq_posted(qp);
	WRITE_ONCE(qp->sq.hdr->need_doorbell, MEDGE_DOORBELL_NOW);
	/* Who has not seen it has posted what we see now; the others ring. */
	smp_mb();
	flush_sq_posted(qp);
	medge_ring_show_taken(&qp->sq);
}

static void flush_rq_posted(struct medge_qp *qp)
{
	struct medge_ring *rq = &qp->rq;
	/* Pairs with the user's release of prod: the entries are there. */
	u32 n = smp_load_acquire(&rq->hdr->prod) - rq->done;

	for (n = min(n, rq->mask + 1); n; n--) {
		struct medge_recv_snap *snap = medge_snap_taken(qp, rq->done);
		struct medge_recv_wqe *wqe = medge_ring_entry(rq, rq->done);
		struct medge_cqe cqe = {
			.wr_id = snap ? snap->wr_id : READ_ONCE(wqe->wr_id),
			.status = IB_WC_WR_FLUSH_ERR,
			.opcode = IB_WC_RECV,
			.qp_num = qp->qpn,
			.timestamp = qp->now,
		};

		if (snap)
			snap->valid = false;
		medge_ring_done(rq, rq->done + 1);
		rq->prod = rq->done;
		medge_recv_cqe(qp, snap, &cqe, true);
		medge_snaps_received(qp);
	}
}

/* What the QP has taken is lost to the others; what it has not is theirs. */
static void flush_srq_taken(struct medge_qp *qp)
{
	u32 i;

	for (i = 0; i <= qp->rq_snaps.mask; i++) {
		struct medge_recv_snap *snap = medge_snap_taken(qp, qp->rq.done + i);
		struct medge_cqe cqe = {
			.status = IB_WC_WR_FLUSH_ERR,
			.opcode = IB_WC_RECV,
			.qp_num = qp->qpn,
			.timestamp = qp->now,
		};

		if (!snap)
			continue;
		snap->valid = false;
		cqe.wr_id = snap->wr_id;
		medge_recv_cqe(qp, snap, &cqe, true);
	}
}

void medge_flush_rq(struct medge_qp *qp)
{
	if (!qp->rq_snaps.size)
		return;
	if (qp->placing) {
		qp->flush_late = true;
		return;
	}
	if (qp->srq || medge_qp_is_xrc_tgt(qp)) {
		flush_srq_taken(qp);
		return;
	}
	flush_rq_posted(qp);
	WRITE_ONCE(qp->rq.hdr->need_doorbell, MEDGE_DOORBELL_NOW);
	/* Who has not seen it has posted what we see now; the others ring. */
	smp_mb();
	flush_rq_posted(qp);
}

void medge_qp_flush(struct medge_qp *qp)
{
	qp->flush_late = false;
	medge_flush_sq(qp);
	medge_flush_rq(qp);
	/* It takes no more of its SRQ's receives, and has given back what it took. */
	if (qp->srq && !qp->flush_late)
		medge_qp_event(qp, IB_EVENT_QP_LAST_WQE_REACHED);
}

void medge_qp_fail(struct medge_qp *qp, int event)
{
	if (qp->state == IB_QPS_ERR || qp->state == IB_QPS_RESET)
		return;
	qp->state = IB_QPS_ERR;
	medge_qp_flush(qp);
	if (event >= 0)
		medge_qp_event(qp, event);
}

void medge_qp_event(struct medge_qp *qp, enum ib_event_type type)
{
	set_bit(type, &qp->events);
	schedule_work(&qp->event_work);
}

static void raise_event(struct medge_qp *qp, enum ib_event_type type)
{
	struct ib_event event = {
		.device = qp->ibqp.device,
		.element.qp = &qp->ibqp,
		.event = type,
	};

	if (qp->ibqp.event_handler)
		qp->ibqp.event_handler(&event, qp->ibqp.qp_context);
}

void medge_qp_events(struct work_struct *work)
{
	struct medge_qp *qp = container_of(work, struct medge_qp, event_work);
	u32 type;

	for (type = 0; type < BITS_PER_LONG; type++)
		if (test_and_clear_bit(type, &qp->events))
			raise_event(qp, type);
}
