// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What the connection tells the QP: perform, complete, refuse. */
#include <linux/atomic.h>
#include <linux/highmem.h>

#include "build.h"
#include "complete.h"
#include "qp.h"
#include "snap.h"
#include "srq.h"
#include "target.h"
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

static bool op_consumes(const struct medge_op *op)
{
	return medge_op_is_send(op) || op->opcode == MEDGE_OP_WRITE_IMM;
}

static bool op_has_imm(const struct medge_op *op)
{
	return op->opcode == MEDGE_OP_WRITE_IMM ||
	       op->opcode == MEDGE_OP_SEND_IMM;
}

/* ---- several at once ---- */

void medge_completions_gather(struct medge_qp *qp)
{
	qp->gathered.on = true;
}

void medge_completions_tell_all(struct medge_qp *qp)
{
	struct medge_gathered g = qp->gathered;

	qp->gathered = (struct medge_gathered){};
	if (g.done)
		medge_ring_show_done(&qp->sq);
	if (g.send.any)
		medge_cq_tell(medge_qp_send_cq(qp), g.send.solicited);
	if (g.recv.any)
		medge_cq_tell(medge_qp_recv_cq(qp), g.recv.solicited);
}

/* @untold: of @cq. */
static void add(struct medge_qp *qp, struct medge_cq *cq,
		struct medge_untold *untold, const struct medge_cqe *cqe,
		bool solicited)
{
	if (!qp->gathered.on) {
		medge_cq_add(cq, cqe, solicited);
		return;
	}
	medge_cq_put(cq, cqe);
	untold->any = true;
	untold->solicited |= solicited;
}

/* ---- receives ---- */

/* XRC: it goes where the SRQ says, if that is there still. */
void medge_recv_cqe(struct medge_qp *qp, const struct medge_recv_snap *snap,
		    const struct medge_cqe *cqe, bool solicited)
{
	struct medge_srq *srq;

	if (!medge_qp_is_xrc_tgt(qp)) {
		add(qp, medge_qp_recv_cq(qp), &qp->gathered.recv, cqe,
		    solicited);
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
	medge_ring_done(&qp->rq, snap->index + 1);
	medge_recv_cqe(qp, snap, cqe, solicited);
	medge_snaps_received(qp);
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
	if (op_consumes(op) && qp->rq_snaps.size)
		snap = medge_snap_taken(qp, qp->rq.done);
	if (snap) {
		if (snap->status)
			status = snap->status;
		if (status)
			recv_complete(qp, snap, op, status);
	}
	qp->refused = true;
	medge_qp_fail(qp, nak_event(nak));
}

/* ---- upcalls: our own requests ---- */

void medge_send_complete(struct medge_qp *qp, u64 wr_id, u8 opcode,
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

	add(qp, medge_qp_send_cq(qp), &qp->gathered.send, &cqe,
	    status != IB_WC_SUCCESS);
}

void medge_send_done(struct medge_qp *qp, const struct medge_send_snap *snap,
		     enum medge_status status)
{
	bool told = status || snap->wqe.flags & MEDGE_WQE_SIGNALED;

	qp->sq.done++;
	/* Another QP's user may let the CQE be seen at once. */
	if (told || !qp->gathered.on)
		medge_ring_show_done(&qp->sq);
	else
		qp->gathered.done = true;
	if (told)
		medge_send_complete(qp, snap->wqe.wr_id, snap->wqe.opcode,
				    snap->len, wc_status[status]);
	medge_snaps_sent(qp);
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
	medge_lender_sent(&medge_qp_send_cq(qp)->lender, snap->len);
	medge_send_done(qp, snap, status);
	if (status)
		medge_qp_fail(qp, -1);
}

const struct medge_conn_ops medge_conn_upcalls = {
	.target = medge_op_target,
	.performed = op_performed,
	.atomic = op_atomic,
	.present = medge_build_present,
	.invalidate = op_invalidate,
	.completed = op_completed,
	.refused = op_refused,
};
