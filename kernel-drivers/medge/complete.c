// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What the connection tells the QP: check targets, perform, complete, fail. */
#include <linux/atomic.h>
#include <linux/highmem.h>

#include "compat.h"
#include "device.h"
#include "mw.h"
#include "qp.h"
#include "snap.h"
#include "srq.h"
#include "trace.h"

static const u8 wc_status[MEDGE_STATUSES] = {
	[MEDGE_OK] = IB_WC_SUCCESS,
	[MEDGE_LOCAL_LENGTH] = IB_WC_LOC_LEN_ERR,
	[MEDGE_LOCAL_PROTECTION] = IB_WC_LOC_PROT_ERR,
	[MEDGE_LOCAL_OPERATION] = IB_WC_LOC_QP_OP_ERR,
	[MEDGE_REMOTE_INVALID_REQUEST] = IB_WC_REM_INV_REQ_ERR,
	[MEDGE_REMOTE_ACCESS] = IB_WC_REM_ACCESS_ERR,
	[MEDGE_REMOTE_OPERATION] = IB_WC_REM_OP_ERR,
	[MEDGE_RETRY_EXCEEDED] = IB_WC_RETRY_EXC_ERR,
	[MEDGE_RNR_RETRY_EXCEEDED] = IB_WC_RNR_RETRY_EXC_ERR,
	[MEDGE_LOCAL_BIND] = IB_WC_MW_BIND_ERR,
};

static const u8 wc_opcode[MEDGE_WQE_OPCODES] = {
	[MEDGE_WQE_WRITE] = IB_WC_RDMA_WRITE,
	[MEDGE_WQE_WRITE_IMM] = IB_WC_RDMA_WRITE,
	[MEDGE_WQE_SEND] = IB_WC_SEND,
	[MEDGE_WQE_SEND_IMM] = IB_WC_SEND,
	[MEDGE_WQE_READ] = IB_WC_RDMA_READ,
	[MEDGE_WQE_CMP_SWAP] = IB_WC_COMP_SWAP,
	[MEDGE_WQE_FETCH_ADD] = IB_WC_FETCH_ADD,
	[MEDGE_WQE_SEND_INV] = IB_WC_SEND,
	[MEDGE_WQE_ATOMIC_WRITE] = IB_WC_ATOMIC_WRITE,
	[MEDGE_WQE_FLUSH] = IB_WC_FLUSH,
	[MEDGE_WQE_LOCAL_INV] = IB_WC_LOCAL_INV,
	[MEDGE_WQE_BIND_MW] = IB_WC_BIND_MW,
	[MEDGE_WQE_REG_MR] = IB_WC_REG_MR,
};

/* Right that a request needs, on the QP and on the memory it names. */
static const int op_access[MEDGE_OPCODES] = {
	[MEDGE_OP_WRITE] = IB_ACCESS_REMOTE_WRITE,
	[MEDGE_OP_WRITE_IMM] = IB_ACCESS_REMOTE_WRITE,
	[MEDGE_OP_READ] = IB_ACCESS_REMOTE_READ,
	[MEDGE_OP_CMP_SWAP] = IB_ACCESS_REMOTE_ATOMIC,
	[MEDGE_OP_FETCH_ADD] = IB_ACCESS_REMOTE_ATOMIC,
	[MEDGE_OP_ATOMIC_WRITE] = IB_ACCESS_REMOTE_WRITE,
};

static bool op_is_send(const struct medge_op *op)
{
	return op->opcode == MEDGE_OP_SEND ||
	       op->opcode == MEDGE_OP_SEND_IMM ||
	       op->opcode == MEDGE_OP_SEND_INV;
}

static bool op_consumes(const struct medge_op *op)
{
	return op_is_send(op) || op->opcode == MEDGE_OP_WRITE_IMM;
}

static bool op_has_imm(const struct medge_op *op)
{
	return op->opcode == MEDGE_OP_WRITE_IMM ||
	       op->opcode == MEDGE_OP_SEND_IMM;
}

static bool op_is_atomic(const struct medge_op *op)
{
	return op->opcode == MEDGE_OP_CMP_SWAP ||
	       op->opcode == MEDGE_OP_FETCH_ADD;
}

static bool op_needs_alignment(const struct medge_op *op)
{
	return op_is_atomic(op) || op->opcode == MEDGE_OP_ATOMIC_WRITE;
}

/* ---- receive WQEs ---- */

/* Whether the memory may be used is remembered, for the message that needs it. */
static void recv_check_sges(struct medge_qp *qp, struct medge_recv_snap *snap)
{
	u64 len = 0;
	u32 i;

	snap->relaxed = true;
	for (i = 0; i < snap->num_sge; i++) {
		const struct medge_sge *sge = &snap->sge[i];
		struct medge_mr *mr;

		if (!sge->length)
			continue;
		len += sge->length;
		mr = medge_mr_get_locked(qp, snap->pd, sge->lkey, sge->addr,
					 sge->length, IB_ACCESS_LOCAL_WRITE);
		if (!mr) {
			snap->status = MEDGE_LOCAL_PROTECTION;
			continue;
		}
		if (!(mr->access & IB_ACCESS_RELAXED_ORDERING))
			snap->relaxed = false;
		medge_mr_put(mr);
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
static bool recv_await(struct medge_ring *rq, u32 ahead)
{
	if (ahead < rq->prod - rq->done || recv_posted(rq, ahead))
		return true;
	WRITE_ONCE(rq->hdr->need_doorbell, MEDGE_DOORBELL_NOW);
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

/* What @snap holds is receive @index, and not an older one in its place. */
static bool recv_is_taken(const struct medge_recv_snap *snap, u32 index)
{
	return snap->valid && snap->index == index;
}

/* Messages that overtake others leave them the receives that come first. */
static struct medge_recv_snap *srq_take(struct medge_qp *qp, u32 index)
{
	struct medge_recv_snap *snap;
	u32 i = qp->rq.done;

	do {
		snap = medge_snap_recv(qp, i);
		if (!recv_is_taken(snap, i) &&
		    !medge_srq_take(qp->srq, qp, snap, i))
			return NULL;
	} while (i++ != index);
	return snap;
}

struct medge_recv_snap *medge_recv_take(struct medge_qp *qp, u32 index,
					u32 srqn)
{
	struct medge_ring *rq = &qp->rq;
	u32 ahead = index - rq->done;
	struct medge_recv_snap *snap;

	if (!qp->rq_snaps || ahead > rq->mask)
		return NULL;
	snap = medge_snap_recv(qp, index);
	if (recv_is_taken(snap, index))
		return snap;
	if (qp->srq)
		return srq_take(qp, index);
	if (medge_qp_is_xrc_tgt(qp))
		return xrc_take(qp, snap, index, srqn) ? snap : NULL;
	if (!recv_await(rq, ahead))
		return NULL;
	medge_recv_snapshot(qp, snap, medge_ring_entry(rq, index), rq->shift,
			    index, qp->ibqp.pd);
	return snap;
}

/* WQEs are given back to the user before the CQE tells him that. */
static void ring_done(struct medge_ring *ring, u32 index)
{
	ring->done = index;
	if (!ring->hdr)
		return;
	/* The user writes an entry again only after we have read it. */
	smp_store_release(&ring->hdr->cons, index);
}

/* XRC: it goes where the SRQ says, if that is there still. */
static void recv_cqe(struct medge_qp *qp, const struct medge_recv_snap *snap,
		     const struct medge_cqe *cqe, bool solicited)
{
	struct medge_srq *srq;

	if (!medge_qp_is_xrc_tgt(qp)) {
		medge_cq_add(medge_qp_recv_cq(qp), cqe, solicited);
		return;
	}
	srq = medge_srq_get(qp, snap->srqn);
	if (!srq)
		return;
	medge_cq_add(to_medge_cq(srq->ibsrq.ext.cq), cqe, solicited);
	medge_srq_put(srq);
}

void medge_recv_done(struct medge_qp *qp, struct medge_recv_snap *snap,
		     const struct medge_cqe *cqe, bool solicited)
{
	snap->valid = false;
	ring_done(&qp->rq, snap->index + 1);
	recv_cqe(qp, snap, cqe, solicited);
}

static void recv_complete(struct medge_qp *qp, struct medge_recv_snap *snap,
			  const struct medge_op *op, enum medge_status status)
{
	struct medge_cqe cqe = {
		.wr_id = snap->wr_id,
		.status = wc_status[status],
		.opcode = IB_WC_RECV,
		.qp_num = qp->qpn,
		.src_qp = qp->attr.dest_qp_num,
		.byte_len = op->op_len,
		.timestamp = qp->now,
	};

	if (op->opcode == MEDGE_OP_WRITE_IMM)
		cqe.opcode = IB_WC_RECV_RDMA_WITH_IMM;
	if (op_has_imm(op)) {
		cqe.imm = op->imm;
		cqe.wc_flags = IB_WC_WITH_IMM;
	} else if (op->opcode == MEDGE_OP_SEND_INV) {
		cqe.imm = (__force __be32)op->rkey;
		cqe.wc_flags = MEDGE_WC_WITH_INV;
	}
	medge_recv_done(qp, snap, &cqe,
			status || op->flags & MEDGE_OP_SOLICITED);
}

/* ---- upcalls: the peer's requests ---- */

static void target_send(struct medge_qp *qp, const struct medge_op *op,
			struct medge_target *t)
{
	struct medge_recv_snap *snap;

	snap = medge_recv_take(qp, qp->recv_base + (u32)op->addr, op->addr >> 32);
	if (!snap) {
		trace_medge_rnr(qp, op->op_no, MEDGE_NAK_RNR);
		t->nak = MEDGE_NAK_RNR;
		return;
	}
	t->relaxed = snap->relaxed;
	/* The receive of a WRITE_IMM needs no memory, as one of no bytes. */
	if (!op->op_len)
		return;
	if (snap->status) {
		t->nak = MEDGE_NAK_OPERATION;
	} else if (op->op_len > snap->len) {
		snap->status = MEDGE_LOCAL_LENGTH;
		t->nak = MEDGE_NAK_INVALID_REQUEST;
	}
}

static void target_memory(struct medge_qp *qp, const struct medge_op *op,
			  struct medge_target *t)
{
	int access = op_access[op->opcode];
	u32 len = op_is_atomic(op) ? sizeof(u64) : op->op_len;
	struct medge_mr *mr;

	if (!(qp->attr.qp_access_flags & access) ||
	    (op_needs_alignment(op) && !IS_ALIGNED(op->addr, sizeof(u64)))) {
		t->nak = MEDGE_NAK_INVALID_REQUEST;
		return;
	}
	/* No bytes, no key: IBTA 9.7.4.1.3 asks for no check then. */
	if (!len)
		return;
	mr = medge_mr_get_locked(qp, medge_op_pd(qp, op), op->rkey, op->addr,
				 len, access);
	if (!mr) {
		t->nak = MEDGE_NAK_ACCESS;
		return;
	}
	if (mr->odp)
		medge_conn_may_wait(qp->conn);
	t->relaxed = mr->access & IB_ACCESS_RELAXED_ORDERING;
	medge_mr_put(mr);
}

/*
 * What is placed is seen by all who look, so a FLUSH has but to take its turn.
 * Durable it is not made: no region is registered for that.
 */
static void target_flush(struct medge_qp *qp, const struct medge_op *op,
			 struct medge_target *t)
{
	u32 what = be32_to_cpu(op->imm);
	u32 len = what & MEDGE_FLUSH_WHOLE_MR ? 0 : op->op_len;
	struct medge_mr *mr;
	int access = 0;

	if (what & MEDGE_FLUSH_VISIBLE)
		access |= IB_ACCESS_FLUSH_GLOBAL;
	if (what & MEDGE_FLUSH_DURABLE)
		access |= IB_ACCESS_FLUSH_PERSISTENT;
	if (!access) {
		t->nak = MEDGE_NAK_INVALID_REQUEST;
		return;
	}
	mr = medge_mr_get(qp, medge_op_pd(qp, op), op->rkey, op->addr, len, access);
	if (mr)
		medge_mr_put(mr);
	else
		t->nak = MEDGE_NAK_ACCESS;
}

/* XRC goes one way, and its frames have no room for an SRQ with these two. */
static bool may_ask(const struct medge_qp *qp, const struct medge_op *op)
{
	if (medge_qp_is_xrc_ini(qp))
		return false;
	return !medge_qp_is_xrc_tgt(qp) || (op->opcode != MEDGE_OP_WRITE_IMM &&
					    op->opcode != MEDGE_OP_FLUSH);
}

static void op_target(struct medge_conn *c, const struct medge_op *op,
		      struct medge_target *t)
{
	struct medge_qp *qp = medge_conn_user(c);

	t->nak = MEDGE_NAK_NONE;
	t->relaxed = false;
	if (!may_ask(qp, op))
		t->nak = MEDGE_NAK_INVALID_REQUEST;
	else if (op_is_send(op))
		target_send(qp, op, t);
	else if (op->opcode < MEDGE_OPCODES && op_access[op->opcode])
		target_memory(qp, op, t);
	else if (op->opcode == MEDGE_OP_FLUSH)
		target_flush(qp, op, t);
	else if (op->opcode != MEDGE_OP_NOP)
		t->nak = MEDGE_NAK_INVALID_REQUEST;
}

static void op_performed(struct medge_conn *c, const struct medge_op *op,
			 u32 recv_index)
{
	struct medge_qp *qp = medge_conn_user(c);
	struct medge_recv_snap *snap;

	trace_medge_perform(qp, op->op_no, MEDGE_NAK_NONE);
	if (qp->state == IB_QPS_ERR || !op_consumes(op))
		return;
	snap = medge_recv_take(qp, qp->recv_base + recv_index, op->addr >> 32);
	if (!snap) {
		/* The connection asked for it before: the user took it back. */
		medge_qp_fail(qp, IB_EVENT_QP_FATAL);
		return;
	}
	recv_complete(qp, snap, op, MEDGE_OK);
}

static u8 do_atomic(struct medge_mr *mr, const struct medge_op *op,
		    u64 operand, u64 swap, u64 *original)
{
	struct page *page;
	atomic64_t *word;
	void *map;
	u32 off;

	page = medge_mr_page(mr, op->addr, IB_ACCESS_REMOTE_ATOMIC, &off);
	if (!page)
		return mr->odp ? MEDGE_NAK_LATER : MEDGE_NAK_ACCESS;
	if (!IS_ALIGNED(off, sizeof(u64)))
		return MEDGE_NAK_INVALID_REQUEST;
	map = kmap_local_page(page);
	word = map + off;
	if (op->opcode == MEDGE_OP_CMP_SWAP)
		*original = atomic64_cmpxchg(word, operand, swap);
	else
		*original = atomic64_fetch_add(operand, word);
	flush_dcache_page(page);
	kunmap_local(map);
	return MEDGE_NAK_NONE;
}

static u8 op_atomic(struct medge_conn *c, const struct medge_op *op,
		    u64 operand, u64 swap, u64 *original)
{
	struct medge_qp *qp = medge_conn_user(c);
	struct medge_absent absent = {
		.addr = op->addr,
		.len = sizeof(u64),
		.write = true,
	};
	struct medge_mr *mr;
	u8 nak;

	mr = medge_mr_get(qp, medge_op_pd(qp, op), op->rkey, op->addr, sizeof(u64),
			  IB_ACCESS_REMOTE_ATOMIC);
	if (!mr)
		return MEDGE_NAK_ACCESS;
	medge_mr_enter(mr);
	nak = do_atomic(mr, op, operand, swap, original);
	medge_mr_leave(mr);
	if (nak != MEDGE_NAK_LATER) {
		medge_mr_put(mr);
		return nak;
	}
	absent.mr = mr;
	return medge_faults_wait(qp, MEDGE_FAULT_ATOMIC, op->opcode, op->op_no,
				 &absent) ?
	       MEDGE_NAK_LATER : MEDGE_NAK_ACCESS;
}

static u8 op_invalidate(struct medge_conn *c, const struct medge_op *op)
{
	return medge_key_invalidate(medge_conn_user(c), op->rkey) ?
	       MEDGE_NAK_NONE : MEDGE_NAK_ACCESS;
}

static int nak_event(enum medge_nak nak)
{
	switch (nak) {
	case MEDGE_NAK_ACCESS:
		return IB_EVENT_QP_ACCESS_ERR;
	case MEDGE_NAK_INVALID_REQUEST:
		return IB_EVENT_QP_REQ_ERR;
	default:
		return IB_EVENT_QP_FATAL;
	}
}

static void op_refused(struct medge_conn *c, const struct medge_op *op,
		       enum medge_nak nak, enum medge_status status)
{
	struct medge_qp *qp = medge_conn_user(c);
	struct medge_recv_snap *snap = NULL;

	trace_medge_refuse(qp, op->op_no, nak);
	if (qp->state == IB_QPS_ERR)
		return;
	/* All before it are performed, so its receive is the oldest. */
	if (op_consumes(op) && qp->rq_snaps)
		snap = medge_snap_recv(qp, qp->rq.done);
	if (snap && recv_is_taken(snap, qp->rq.done)) {
		if (snap->status)
			status = snap->status;
		if (status)
			recv_complete(qp, snap, op, status);
	}
	qp->refused = true;
	medge_qp_fail(qp, nak_event(nak));
}

/* ---- upcalls: our own requests ---- */

static void send_complete(struct medge_qp *qp, u64 wr_id, u8 opcode,
			  u32 byte_len, u8 status)
{
	struct medge_cqe cqe = {
		.wr_id = wr_id,
		.status = status,
		.opcode = wc_opcode[opcode],
		.qp_num = qp->qpn,
		.src_qp = qp->attr.dest_qp_num,
		.byte_len = byte_len,
		.timestamp = qp->now,
	};

	medge_cq_add(medge_qp_send_cq(qp), &cqe, status != IB_WC_SUCCESS);
}

void medge_send_done(struct medge_qp *qp, const struct medge_send_snap *snap,
		     enum medge_status status)
{
	ring_done(&qp->sq, snap->index + 1);
	if (status || snap->wqe.flags & MEDGE_WQE_SIGNALED)
		send_complete(qp, snap->wqe.wr_id, snap->wqe.opcode, snap->len,
			      wc_status[status]);
	medge_qp_drained(qp);
}

void medge_qp_drained(struct medge_qp *qp)
{
	if (qp->state != IB_QPS_SQD || !qp->tell_drained ||
	    medge_qp_draining(qp))
		return;
	qp->tell_drained = false;
	medge_qp_event(qp, IB_EVENT_SQ_DRAINED);
}

static void op_completed(struct medge_conn *c, u32 op_no,
			 enum medge_status status)
{
	struct medge_qp *qp = medge_conn_user(c);
	const struct medge_send_snap *snap;

	trace_medge_complete(qp, op_no, status);
	if (qp->state == IB_QPS_ERR)
		return;
	snap = medge_snap_send(qp, op_no);
	qp->second.ops++;
	qp->second.bytes += snap->len;
	medge_send_done(qp, snap, status);
	if (status)
		medge_qp_fail(qp, -1);
}

const struct medge_conn_ops medge_conn_upcalls = {
	.target = op_target,
	.performed = op_performed,
	.atomic = op_atomic,
	.present = medge_send_present,
	.invalidate = op_invalidate,
	.completed = op_completed,
	.refused = op_refused,
};

/* ---- failure ---- */

/* WQEs that the connection has, in order; it is dead. */
static void flush_sq_taken(struct medge_qp *qp)
{
	while (qp->sq.done != qp->sq.cons) {
		struct medge_send_snap *snap;

		snap = medge_snap_send(qp, qp->op_base + qp->sq.done);
		ring_done(&qp->sq, qp->sq.done + 1);
		send_complete(qp, snap->wqe.wr_id, snap->wqe.opcode, 0,
			      IB_WC_WR_FLUSH_ERR);
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
		ring_done(&qp->sq, qp->sq.cons);
		send_complete(qp, wr_id, opcode, 0, IB_WC_WR_FLUSH_ERR);
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
		struct medge_recv_snap *snap = medge_snap_recv(qp, rq->done);
		struct medge_recv_wqe *wqe = medge_ring_entry(rq, rq->done);
		struct medge_cqe cqe = {
			.wr_id = snap->valid ? snap->wr_id :
					       READ_ONCE(wqe->wr_id),
			.status = IB_WC_WR_FLUSH_ERR,
			.opcode = IB_WC_RECV,
			.qp_num = qp->qpn,
			.timestamp = qp->now,
		};

		snap->valid = false;
		ring_done(rq, rq->done + 1);
		rq->prod = rq->done;
		medge_cq_add(medge_qp_recv_cq(qp), &cqe, true);
	}
}

/* What the QP has taken is lost to the others; what it has not is theirs. */
static void flush_srq_taken(struct medge_qp *qp)
{
	u32 i;

	for (i = 0; i <= qp->rq.mask; i++) {
		struct medge_recv_snap *snap;
		struct medge_cqe cqe = {
			.status = IB_WC_WR_FLUSH_ERR,
			.opcode = IB_WC_RECV,
			.qp_num = qp->qpn,
			.timestamp = qp->now,
		};

		snap = medge_snap_recv(qp, qp->rq.done + i);
		if (!snap->valid)
			continue;
		snap->valid = false;
		cqe.wr_id = snap->wr_id;
		recv_cqe(qp, snap, &cqe, true);
	}
}

void medge_flush_rq(struct medge_qp *qp)
{
	if (!qp->rq_snaps)
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

void medge_qp_fail(struct medge_qp *qp, int event)
{
	if (qp->state == IB_QPS_ERR || qp->state == IB_QPS_RESET)
		return;
	qp->state = IB_QPS_ERR;
	medge_flush_sq(qp);
	medge_flush_rq(qp);
	if (event >= 0)
		medge_qp_event(qp, event);
	/* It takes no more of its SRQ's receives. */
	if (qp->srq)
		medge_qp_event(qp, IB_EVENT_QP_LAST_WQE_REACHED);
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
