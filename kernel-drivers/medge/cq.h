/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Completion queues. */
#ifndef MEDGE_CQ_H
#define MEDGE_CQ_H

#include <linux/interrupt.h>
#include <linux/hrtimer.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>

#include "borrow.h"
#include "ring.h"
#include "stream.h"

struct medge_cq {
	struct ib_cq ibcq;
	/* ring.prod, offered, armed, error; BHs are off, inside QP locks */
	spinlock_t lock;
	struct medge_process *process;	/* that has it */
	struct medge_ring ring;
	struct medge_ring offered;	/* when it is resized, until it is taken */
	u32 armed;			/* by a call: enum medge_cq_armed */
	bool error;			/* overran */
	struct medge_stream stream;
	struct medge_lender lender;
	/*
	 * Moderation: a completion waits for @mod_count of them, or for
	 * @mod_us since the first, before the handler is called.
	 */
	u16 mod_count, mod_us;
	u16 mod_pending;
	struct hrtimer mod_timer;
	struct work_struct error_work;	/* IB_EVENT_CQ_ERR */
	/* A kernel consumer's handler may poll and post: not under our locks. */
	bool handler_apart;
	struct tasklet_struct handler;
};

static inline struct medge_cq *to_medge_cq(struct ib_cq *ibcq)
{
	return container_of(ibcq, struct medge_cq, ibcq);
}

/*
 * Add a completion, and call the completion handler if the CQ was armed for
 * it (@solicited: or is an error). BHs are off. A full CQ becomes an error CQ: the
 * CQE is lost, IB_EVENT_CQ_ERR is raised from a work item.
 */
void medge_cq_add(struct medge_cq *cq, const struct medge_cqe *cqe,
		  bool solicited);
/*
 * The same in two steps: several are added, then their user is told of all there are,
 * if others that add to this CQ have not done so by then. @solicited: one of them.
 */
void medge_cq_put(struct medge_cq *cq, const struct medge_cqe *cqe);
void medge_cq_tell(struct medge_cq *cq, bool solicited);

/* Enum medge_cq_armed. */
u32 medge_cq_armed(struct medge_cq *cq);

/* How many CQEs its user has not read, and has (@cons; wraps), as he tells. Under cq->lock. */
u32 medge_cq_unread(struct medge_cq *cq, u32 *cons);

int medge_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		    struct uverbs_attr_bundle *attrs);
int medge_modify_cq(struct ib_cq *ibcq, u16 count, u16 period);
int medge_resize_cq(struct ib_cq *ibcq, unsigned int cqe,
		    struct ib_udata *udata);
int medge_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata);
int medge_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags);

/* kcq.c: the side of a kernel consumer. */
void medge_kcq_init(struct medge_cq *cq, bool kernel);
int medge_poll_cq(struct ib_cq *ibcq, int num, struct ib_wc *wc);

#endif /* MEDGE_CQ_H */
