/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Snapshots: WQEs as they were taken from the rings, once and for all. */
#ifndef MEDGE_SNAP_H
#define MEDGE_SNAP_H

#include "qp.h"
#include "srq.h"

static inline struct medge_send_snap *medge_snap_send(const struct medge_qp *qp,
						      u32 op_no)
{
	return qp->sq_snaps +
	       (size_t)(op_no & qp->sq_snap_mask) * qp->sq_snap_size;
}

static inline struct medge_recv_snap *medge_snap_recv(const struct medge_qp *qp,
						      u32 index)
{
	return qp->rq_snaps + (size_t)(index & qp->rq.mask) * qp->rq_snap_size;
}

/* What @snap holds is receive @index, and not an older one in its place. */
static inline bool medge_snap_is_taken(const struct medge_recv_snap *snap,
				       u32 index)
{
	return snap->valid && snap->index == index;
}

/* The send snapshot's SGEs; it has wqe.num_sge, and none if it is inline. */
static inline const struct medge_sge *
medge_snap_sges(const struct medge_send_snap *snap)
{
	return (const struct medge_sge *)snap->data;
}

static inline bool medge_snap_is_atomic(const struct medge_send_snap *snap)
{
	return snap->wqe.opcode == MEDGE_WQE_CMP_SWAP ||
	       snap->wqe.opcode == MEDGE_WQE_FETCH_ADD;
}

/*
 * The PD of the memory that a request of the peer's names, only to compare
 * with; NULL: none. XRC: its SRQ says so, whose number is where others have imm.
 */
static inline const struct ib_pd *medge_op_pd(const struct medge_qp *qp,
					      const struct medge_op *op)
{
	const struct ib_pd *pd;
	struct medge_srq *srq;

	if (!medge_qp_is_xrc_tgt(qp))
		return qp->ibqp.pd;
	srq = medge_srq_get(qp, be32_to_cpu(op->imm));
	if (!srq)
		return NULL;
	pd = srq->ibsrq.pd;
	medge_srq_put(srq);
	return pd;
}

#endif /* MEDGE_SNAP_H */
