// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* From the send ring to the connection: take each WQE once, check it, submit it. */
#include "frwr.h"
#include "mw.h"
#include "place.h"
#include "post.h"
#include "snap.h"
#include "stream.h"
#include "trace.h"

enum {
	WQE_FLAGS = MEDGE_WQE_SIGNALED | MEDGE_WQE_SOLICITED |
		    MEDGE_WQE_INLINE | MEDGE_WQE_FENCE |
		    MEDGE_WQE_FENCE_BACKWARD | MEDGE_WQE_FENCE_FORWARD,
};

/*
 * What each kind of work request becomes, what it needs of its SGEs, and of
 * the peer's memory (@remote: it names some).
 */
static const struct wqe_kind {
	u8 opcode;
	bool remote;
	bool may_inline;
	int access;
} wqe_kinds[MEDGE_WQE_OPCODES] = {
	[MEDGE_WQE_WRITE] = { MEDGE_OP_WRITE, true, true, 0 },
	[MEDGE_WQE_WRITE_IMM] = { MEDGE_OP_WRITE_IMM, true, true, 0 },
	[MEDGE_WQE_SEND] = { MEDGE_OP_SEND, false, true, 0 },
	[MEDGE_WQE_SEND_IMM] = { MEDGE_OP_SEND_IMM, false, true, 0 },
	[MEDGE_WQE_READ] = {
		MEDGE_OP_READ, true, false, IB_ACCESS_LOCAL_WRITE
	},
	[MEDGE_WQE_CMP_SWAP] = {
		MEDGE_OP_CMP_SWAP, true, false, IB_ACCESS_LOCAL_WRITE
	},
	[MEDGE_WQE_FETCH_ADD] = {
		MEDGE_OP_FETCH_ADD, true, false, IB_ACCESS_LOCAL_WRITE
	},
	[MEDGE_WQE_SEND_INV] = { MEDGE_OP_SEND_INV, false, true, 0 },
	[MEDGE_WQE_ATOMIC_WRITE] = { MEDGE_OP_ATOMIC_WRITE, true, true, 0 },
	[MEDGE_WQE_FLUSH] = { MEDGE_OP_FLUSH, true, false, 0 },
	[MEDGE_WQE_LOCAL_INV] = { MEDGE_OP_NOP, false, false, 0 },
	[MEDGE_WQE_BIND_MW] = { MEDGE_OP_NOP, false, false, 0 },
	[MEDGE_WQE_REG_MR] = { MEDGE_OP_NOP, false, false, 0 },
};

static bool sges_usable(struct medge_qp *qp, const struct medge_sge *sge,
			u32 num_sge, int access)
{
	for (; num_sge; num_sge--, sge++) {
		u32 what;

		if (!sge->length)
			continue;
		what = medge_mr_check_locked(qp, qp->ibqp.pd, sge->lkey, sge->addr,
					     sge->length, access);
		if (!what)
			return false;
		if (what & MEDGE_MR_ODP && qp->conn)
			medge_conn_may_wait(qp->conn);
	}
	return true;
}

/* Take the rest of a WQE whose head is in @snap, and check it. */
static enum medge_status take_inline(struct medge_qp *qp,
				     struct medge_send_snap *snap,
				     const void *entry)
{
	u32 len = snap->wqe.inline_len, max = qp->max_inline;

	if (!wqe_kinds[snap->wqe.opcode].may_inline)
		return MEDGE_LOCAL_OPERATION;
	/* Eight bytes always have room, in the place of an SGE. */
	if (snap->wqe.opcode == MEDGE_WQE_ATOMIC_WRITE)
		max = MEDGE_ATOMIC_WRITE_LEN;
	if (len > max ||
	    len > BIT(qp->sq.shift) - sizeof(snap->wqe))
		return MEDGE_LOCAL_LENGTH;
	memcpy(snap->data, entry + sizeof(snap->wqe), len);
	snap->wqe.num_sge = 0;
	snap->len = len;
	return MEDGE_OK;
}

static enum medge_status take_sges(struct medge_qp *qp,
				   struct medge_send_snap *snap,
				   const void *entry)
{
	const struct medge_sge *sge = medge_snap_sges(snap);
	u32 i, num_sge = snap->wqe.num_sge;
	u64 len = 0;

	snap->wqe.inline_len = 0;
	if (num_sge > qp->max_sge ||
	    num_sge * sizeof(*sge) > BIT(qp->sq.shift) - sizeof(snap->wqe)) {
		snap->wqe.num_sge = 0;
		return MEDGE_LOCAL_OPERATION;
	}
	memcpy(snap->data, entry + sizeof(snap->wqe), num_sge * sizeof(*sge));
	for (i = 0; i < num_sge; i++)
		len += sge[i].length;
	if (len > MEDGE_MSG_MAX)
		return MEDGE_LOCAL_LENGTH;
	if (medge_snap_is_atomic(snap) && len != sizeof(u64))
		return MEDGE_LOCAL_LENGTH;
	snap->len = len;
	if (!sges_usable(qp, sge, num_sge, wqe_kinds[snap->wqe.opcode].access))
		return MEDGE_LOCAL_PROTECTION;
	return MEDGE_OK;
}

/*
 * Take WQE @index from the send ring, once, and check what needs no connection.
 * Return: what is wrong with it.
 */
static enum medge_status snapshot(struct medge_qp *qp,
				  struct medge_send_snap *snap, u32 index)
{
	const void *entry = medge_ring_entry(&qp->sq, index);

	memcpy(&snap->wqe, entry, sizeof(snap->wqe));
	/* From here on, nothing that has been read is read again. */
	barrier();
	snap->len = 0;
	if (qp->sq_sig_all)
		snap->wqe.flags |= MEDGE_WQE_SIGNALED;
	if (snap->wqe.opcode >= MEDGE_WQE_OPCODES ||
	    snap->wqe.flags & ~WQE_FLAGS) {
		snap->wqe.opcode = MEDGE_WQE_WRITE;
		snap->wqe.num_sge = 0;
		return MEDGE_LOCAL_OPERATION;
	}
	if (snap->wqe.flags & MEDGE_WQE_INLINE)
		return take_inline(qp, snap, entry);
	return take_sges(qp, snap, entry);
}

struct medge_send_snap *medge_post_next(struct medge_qp *qp,
					enum medge_status *status)
{
	u32 index = qp->sq.cons;
	struct medge_send_snap *snap;

	if (!medge_snaps_enter(&qp->sq_snaps, index))
		return NULL;
	qp->sq.cons++;
	snap = medge_snap_send(qp, index);
	*status = snapshot(qp, snap, index);
	return snap;
}

/* What it asks of its own side is done when it is taken (see fenced_local()). */
static enum medge_status take_local(struct medge_qp *qp,
				    const struct medge_send_snap *snap)
{
	const struct medge_send_wqe *wqe = &snap->wqe;

	if (medge_qp_is_xrc_ini(qp) && (wqe->opcode == MEDGE_WQE_WRITE_IMM ||
					wqe->opcode == MEDGE_WQE_FLUSH))
		return MEDGE_LOCAL_OPERATION;
	switch (wqe->opcode) {
	case MEDGE_WQE_LOCAL_INV:
		return medge_key_invalidate(qp, wqe->rkey) ?
		       MEDGE_OK : MEDGE_LOCAL_OPERATION;
	case MEDGE_WQE_REG_MR:
		return qp->kpost.kernel && medge_frwr_register(qp, wqe) ?
		       MEDGE_OK : MEDGE_LOCAL_OPERATION;
	case MEDGE_WQE_BIND_MW:
		return medge_mw_bind(qp, wqe) ? MEDGE_OK : MEDGE_LOCAL_BIND;
	case MEDGE_WQE_FLUSH:
		if (!wqe->flush_type || wqe->flush_level > MEDGE_FLUSH_MR ||
		    wqe->flush_type & ~(MEDGE_FLUSH_GLOBAL |
					MEDGE_FLUSH_PERSISTENT))
			return MEDGE_LOCAL_OPERATION;
		return wqe->flush_length > MEDGE_MSG_MAX ?
		       MEDGE_LOCAL_LENGTH : MEDGE_OK;
	case MEDGE_WQE_ATOMIC_WRITE:
		return snap->len == MEDGE_ATOMIC_WRITE_LEN ?
		       MEDGE_OK : MEDGE_LOCAL_LENGTH;
	default:
		return MEDGE_OK;
	}
}

static void describe_flush(const struct medge_send_wqe *wqe,
			   struct medge_request *req)
{
	u32 what = 0;

	if (wqe->flush_type & MEDGE_FLUSH_GLOBAL)
		what |= MEDGE_FLUSH_VISIBLE;
	if (wqe->flush_type & MEDGE_FLUSH_PERSISTENT)
		what |= MEDGE_FLUSH_DURABLE;
	if (wqe->flush_level == MEDGE_FLUSH_MR)
		what |= MEDGE_FLUSH_WHOLE_MR;
	req->imm = cpu_to_be32(what);
	req->len = what & MEDGE_FLUSH_WHOLE_MR ? 0 : wqe->flush_length;
}

/* Whose receives, and whose memory: the SRQ says so (see medge_op_pd()). */
static void describe_xrc(const struct medge_send_wqe *wqe, bool remote,
			 struct medge_request *req)
{
	if (remote)
		req->imm = cpu_to_be32(wqe->srqn);
	else
		req->addr = (u64)wqe->srqn << 32;
}

static void describe(const struct medge_qp *qp,
		     const struct medge_send_snap *snap,
		     struct medge_request *req)
{
	const struct wqe_kind *kind = &wqe_kinds[snap->wqe.opcode];
	u16 flags = snap->wqe.flags;

	*req = (struct medge_request) {
		.opcode = kind->opcode,
		.flags = qp->relaxed ? 0 : MEDGE_OP_STRICT,
		.len = medge_snap_is_atomic(snap) ? MEDGE_ATOMIC_LEN :
						    snap->len,
		.imm = snap->wqe.imm,
	};
	if (kind->remote) {
		req->addr = snap->wqe.remote_addr;
		req->rkey = snap->wqe.rkey;
	}
	if (medge_qp_is_xrc_ini(qp))
		describe_xrc(&snap->wqe, kind->remote, req);
	if (kind->opcode == MEDGE_OP_SEND_INV)
		req->rkey = snap->wqe.rkey;
	if (kind->opcode == MEDGE_OP_FLUSH)
		describe_flush(&snap->wqe, req);
	/* Its bytes are not to be seen before those of what came before it. */
	if (kind->opcode == MEDGE_OP_ATOMIC_WRITE)
		req->flags |= MEDGE_OP_FENCE_BACKWARD;
	if (flags & MEDGE_WQE_FENCE_BACKWARD)
		req->flags |= MEDGE_OP_FENCE_BACKWARD;
	if (flags & MEDGE_WQE_FENCE_FORWARD)
		req->flags |= MEDGE_OP_FENCE_FORWARD;
	if (flags & MEDGE_WQE_SOLICITED)
		req->flags |= MEDGE_OP_SOLICITED;
	if (flags & MEDGE_WQE_FENCE)
		req->submit |= MEDGE_SUBMIT_FENCE;
	if (flags & MEDGE_WQE_SIGNALED)
		req->submit |= MEDGE_SUBMIT_SIGNALED;
}

/* A WQE that will fail anyway must at least be one that can be submitted. */
static void forget_operands(struct medge_send_snap *snap)
{
	if (snap->wqe.opcode == MEDGE_WQE_FLUSH) {
		snap->wqe.flush_length = 0;
	} else if (snap->wqe.opcode == MEDGE_WQE_ATOMIC_WRITE) {
		snap->wqe.flags &= ~MEDGE_WQE_INLINE;
		snap->wqe.num_sge = 0;
		snap->len = 0;
	}
}

/*
 * A WQE that invalidates or binds here does so when it is taken, if need be
 * while those before it are on their way. With a fence it is not taken before
 * they have completed.
 */
static bool fenced_local(const struct medge_qp *qp, u32 index)
{
	const struct medge_send_wqe *wqe = medge_ring_entry(&qp->sq, index);
	u8 opcode = READ_ONCE(wqe->opcode);

	return (opcode == MEDGE_WQE_LOCAL_INV || opcode == MEDGE_WQE_BIND_MW) &&
	       READ_ONCE(wqe->flags) & MEDGE_WQE_FENCE &&
	       medge_conn_oldest_op(qp->conn) != medge_conn_next_op(qp->conn);
}

static void submit(struct medge_qp *qp, u32 op_no, u32 index)
{
	struct medge_send_snap *snap = medge_snap_send(qp, op_no);
	enum medge_status status = snapshot(qp, snap, index);
	struct medge_request req;

	if (!status)
		status = take_local(qp, snap);
	if (status)
		forget_operands(snap);
	describe(qp, snap, &req);
	qp->unsent = true;
	trace_medge_submit(qp, op_no, &req);
	medge_conn_submit(qp->conn, &req);
	/* What is wrong with it shows when all before it have completed. */
	if (status)
		medge_conn_fail_op(qp->conn, op_no, status);
}

/*
 * Who posts to a QP that is never idle need not ring for as long; but unless he does,
 * nobody sees what his posts are like, and whether a poller would make more of them.
 */
static u32 doorbell(const struct medge_qp *qp)
{
	const struct medge_stream *stream = &medge_qp_send_cq(qp)->stream;

	if (unlikely(qp->now - READ_ONCE(stream->since) >=
		     MEDGE_STREAM_WATCH_MS * NSEC_PER_MSEC) &&
	    medge_stream_may_be(qp))
		return MEDGE_DOORBELL_NOW;
	return medge_poller_doorbell(qp);
}

void medge_post_take(struct medge_qp *qp)
{
	struct medge_ring_hdr *hdr = qp->sq.hdr;
	u32 n, need, op_no;

	if (qp->state != IB_QPS_RTS || !hdr)
		return;
	need = doorbell(qp);
	if (READ_ONCE(hdr->need_doorbell) != need) {
		WRITE_ONCE(hdr->need_doorbell, need);
		/* Who does not see it has stored a prod that we see, or will. */
		smp_mb();
	}
	n = medge_ring_posted(&qp->sq);
	if (n)
		n = medge_conn_send_room(qp->conn, n);
	op_no = qp->op_base + qp->sq.cons;
	/* A WQE that fails at once takes the QP out of RTS, and flushes. */
	while (n-- && qp->state == IB_QPS_RTS &&
	       !fenced_local(qp, qp->sq.cons) &&
	       medge_snaps_enter(&qp->sq_snaps, op_no))
		submit(qp, op_no++, qp->sq.cons++);
	medge_ring_show_taken(&qp->sq);
}

bool medge_post_idle(struct medge_qp *qp)
{
	struct medge_ring_hdr *hdr = qp->sq.hdr;
	bool posted;

	if (qp->state != IB_QPS_RTS || !hdr)
		return true;
	posted = medge_ring_posted(&qp->sq);
	/* He rings already. */
	if (READ_ONCE(hdr->need_doorbell) && !posted)
		return true;
	if (qp->unsent || !medge_conn_send_room(qp->conn, 1))
		return true;
	if (posted) {
		/* No memory; but what is under way leaves some. */
		if (!medge_snaps_enter(&qp->sq_snaps, qp->op_base + qp->sq.cons))
			return qp->sq.done != qp->sq.cons;
		/* What is taken before it has to complete, which an ack will tell. */
		if (fenced_local(qp, qp->sq.cons))
			return true;
	}
	/* The poller looks again when there is more. */
	if (qp->polled.watched)
		return true;
	WRITE_ONCE(hdr->need_doorbell, medge_late_doorbell(qp));
	/* Pairs with the barrier between the user's prod and his look at this. */
	smp_mb();
	return !medge_ring_posted(&qp->sq);
}
