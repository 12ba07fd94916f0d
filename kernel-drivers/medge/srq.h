/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Shared receive queues. */
#ifndef MEDGE_SRQ_H
#define MEDGE_SRQ_H

#include <linux/completion.h>
#include <linux/interrupt.h>
#include <linux/list.h>
#include <linux/refcount.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>

#include "ring.h"

struct medge_qp;
struct medge_recv_snap;

/**
 * struct medge_srq - receives that several QPs take
 * @kernel: a kernel consumer's, who posts them by calls; else a user's
 * @post_lock: the consumer's side of the ring; he posts from any context
 * @bell: rings where who posts may not
 * @lock: BHs off, inside QP locks; guards all below it
 * @ring: each entry is given back once it is copied, so done == cons
 * @offered: when it is resized, the ring that is not yet taken
 * @waiting: QPs whose peers wait for a receive
 * @limit: IB_EVENT_SRQ_LIMIT_REACHED when fewer are left; 0: not armed
 */
struct medge_srq {
	struct ib_srq ibsrq;
	bool kernel;
	spinlock_t post_lock;
	struct tasklet_struct bell;
	u32 max_sge;
	refcount_t users;		/* XRC: who found it by its number */
	struct completion unused;
	struct work_struct limit_work;
	spinlock_t lock;
	struct medge_ring ring;
	struct medge_ring offered;
	struct list_head waiting;
	u32 limit;
};

static inline struct medge_srq *to_medge_srq(struct ib_srq *ibsrq)
{
	return container_of(ibsrq, struct medge_srq, ibsrq);
}

/*
 * The SRQ of this number that an XRC target QP may use; NULL: none. Only
 * for the time of a call: put it with medge_srq_put().
 */
struct medge_srq *medge_srq_get(const struct medge_qp *qp, u32 srqn);
void medge_srq_put(struct medge_srq *srq);

/*
 * Take the oldest receive for @qp, as its index @index. False: there is none;
 * the QP goes on when one is posted (of XRC, when its peer asks again). Under
 * qp->lock.
 */
bool medge_srq_take(struct medge_srq *srq, struct medge_qp *qp,
		    struct medge_recv_snap *snap, u32 index);
/* The QP waits no more: nobody else uses it. */
void medge_srq_forget(struct medge_qp *qp);

/* ib_device_ops */
int medge_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *init,
		     struct ib_udata *udata);
int medge_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr,
		     enum ib_srq_attr_mask mask, struct ib_udata *udata);
int medge_query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr);
int medge_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata);
/* A doorbell, of no WRs. */
int medge_post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr,
			const struct ib_recv_wr **bad);

#endif /* MEDGE_SRQ_H */
