/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Snapshots: WQEs as they were taken from the rings, once and for all. */
#ifndef MEDGE_SNAP_H
#define MEDGE_SNAP_H

#include "qp.h"
#include "srq.h"

/*
 * @s: zeros. For @entries that may be under way at a time, a power of two, of @size
 * bytes each.
 * @reserve: there is memory for the oldest of them from now on.
 * Return: 0 or -ENOMEM; medge_snaps_fini() is to be called in any case.
 */
int medge_snaps_init(struct medge_snaps *s, size_t size, u32 entries, bool reserve);
/* @s may be zeros. */
void medge_snaps_fini(struct medge_snaps *s);
/* None is under way any more. */
void medge_snaps_empty(struct medge_snaps *s);
/* Bytes, if all are under way. */
size_t medge_snaps_most(const struct medge_snaps *s);
/* What the two below do, when there is something to do. */
bool medge_snaps_attach(struct medge_snaps *s, u32 n);
void medge_snaps_detach(struct medge_snaps *s, u32 next, u32 end);

/* Where the chunk of number @n is, if it is there. */
static inline void **medge_snaps_chunk(const struct medge_snaps *s, u32 n)
{
	return &s->chunks[(n & s->mask) >> s->shift];
}

static inline bool medge_snaps_has(const struct medge_snaps *s, u32 n)
{
	return *medge_snaps_chunk(s, n);
}

/* Number @n comes, too. False: there is no memory for it. */
static inline bool medge_snaps_enter(struct medge_snaps *s, u32 n)
{
	return likely(medge_snaps_has(s, n)) || medge_snaps_attach(s, n);
}

/*
 * The number before @next, the oldest, is over; what was in its slot may not be there
 * any more. None from @end on has entered.
 */
static inline void medge_snaps_leave(struct medge_snaps *s, u32 next, u32 end)
{
	if (!(next & s->inner))
		medge_snaps_detach(s, next, end);
}

/* As above, of WQE @qp->sq.done - 1, and of receive @qp->rq.done - 1. */
static inline void medge_snaps_sent(struct medge_qp *qp)
{
	medge_snaps_leave(&qp->sq_snaps, qp->op_base + qp->sq.done,
			  qp->op_base + qp->sq.cons);
}

static inline void medge_snaps_received(struct medge_qp *qp)
{
	medge_snaps_leave(&qp->rq_snaps, qp->rq.done, qp->rq_snaps.end);
}

/* That has entered. */
static inline void *medge_snaps_slot(const struct medge_snaps *s, u32 n)
{
	return *medge_snaps_chunk(s, n) + (size_t)(n & s->inner) * s->size;
}

static inline struct medge_send_snap *medge_snap_send(const struct medge_qp *qp,
						      u32 op_no)
{
	return medge_snaps_slot(&qp->sq_snaps, op_no);
}

static inline struct medge_recv_snap *medge_snap_recv(const struct medge_qp *qp,
						      u32 index)
{
	return medge_snaps_slot(&qp->rq_snaps, index);
}

/* Receive @index, if it has been taken; NULL: not, or it is over. */
static inline struct medge_recv_snap *medge_snap_taken(const struct medge_qp *qp,
						       u32 index)
{
	struct medge_recv_snap *snap;

	if (!medge_snaps_has(&qp->rq_snaps, index))
		return NULL;
	snap = medge_snap_recv(qp, index);
	/* And not an older one in its place. */
	return snap->valid && snap->index == index ? snap : NULL;
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
