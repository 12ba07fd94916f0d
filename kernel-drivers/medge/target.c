// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What the peer's requests may touch: checked before anything is placed. */
#include "compat.h"
#include "qp.h"
#include "snap.h"
#include "target.h"
#include "trace.h"

/* Right that a request needs, on the QP and on the memory it names. */
static const int op_access[MEDGE_OPCODES] = {
	[MEDGE_OP_WRITE] = IB_ACCESS_REMOTE_WRITE,
	[MEDGE_OP_WRITE_IMM] = IB_ACCESS_REMOTE_WRITE,
	[MEDGE_OP_READ] = IB_ACCESS_REMOTE_READ,
	[MEDGE_OP_CMP_SWAP] = IB_ACCESS_REMOTE_ATOMIC,
	[MEDGE_OP_FETCH_ADD] = IB_ACCESS_REMOTE_ATOMIC,
	[MEDGE_OP_ATOMIC_WRITE] = IB_ACCESS_REMOTE_WRITE,
};

static bool op_is_atomic(const struct medge_op *op)
{
	return op->opcode == MEDGE_OP_CMP_SWAP ||
	       op->opcode == MEDGE_OP_FETCH_ADD;
}

static bool op_needs_alignment(const struct medge_op *op)
{
	return op_is_atomic(op) || op->opcode == MEDGE_OP_ATOMIC_WRITE;
}

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
	/* One op's: it is another's when this one is over, be it copied still or not. */
	if (snap->named && snap->op_no != op->op_no) {
		t->nak = MEDGE_NAK_INVALID_REQUEST;
		return;
	}
	snap->named = true;
	snap->op_no = op->op_no;
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
	u32 what;

	if (!(qp->attr.qp_access_flags & access) ||
	    (op_needs_alignment(op) && !IS_ALIGNED(op->addr, sizeof(u64)))) {
		t->nak = MEDGE_NAK_INVALID_REQUEST;
		return;
	}
	/* No bytes, no key: IBTA 9.7.4.1.3 asks for no check then. */
	if (!len)
		return;
	what = medge_mr_check_locked(qp, medge_op_pd(qp, op), op->rkey, op->addr,
				     len, access);
	if (!what) {
		t->nak = MEDGE_NAK_ACCESS;
		return;
	}
	if (what & MEDGE_MR_ODP)
		medge_conn_may_wait(qp->conn);
	t->relaxed = what & MEDGE_MR_RELAXED;
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

void medge_op_target(struct medge_conn *c, const struct medge_op *op,
		     struct medge_target *t)
{
	struct medge_qp *qp = medge_conn_user(c);

	t->nak = MEDGE_NAK_NONE;
	t->relaxed = false;
	if (!may_ask(qp, op))
		t->nak = MEDGE_NAK_INVALID_REQUEST;
	else if (medge_op_is_send(op))
		target_send(qp, op, t);
	else if (op->opcode < MEDGE_OPCODES && op_access[op->opcode])
		target_memory(qp, op, t);
	else if (op->opcode == MEDGE_OP_FLUSH)
		target_flush(qp, op, t);
	else if (op->opcode != MEDGE_OP_NOP)
		t->nak = MEDGE_NAK_INVALID_REQUEST;
}
