/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Work requests of kernel consumers, on their way to the rings. */
#ifndef MEDGE_KPOST_H
#define MEDGE_KPOST_H

#include <linux/interrupt.h>
#include <linux/spinlock.h>
#include <rdma/ib_verbs.h>

/**
 * struct medge_kpost - the producer's side of a kernel consumer's rings
 * @kernel: it is one; a user writes his rings himself
 * @sq_lock, @rq_lock: the rings' prod and the entries behind it. Consumers post
 *                     from any context
 * @bell: rings where who posts may not
 */
struct medge_kpost {
	bool kernel;
	spinlock_t sq_lock;
	spinlock_t rq_lock;
	struct tasklet_struct bell;
};

void medge_kpost_init(struct medge_kpost *kpost, bool kernel);
/* No bell rings when it returns, and no later one gets hold of the QP. */
void medge_kpost_stop(struct medge_kpost *kpost);

struct medge_ring;

/*
 * Put receives into a ring, all of the list at *@next, or all before the first
 * that cannot be posted, which *@next is then. Under the producer's lock.
 */
int medge_kpost_recvs(struct medge_ring *ring, u32 max_sge,
		      const struct ib_recv_wr **next);

/*
 * ib_device_ops. Of no work requests they are a user's doorbell; his work
 * requests come through his rings alone.
 */
int medge_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		    const struct ib_send_wr **bad);
int medge_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		    const struct ib_recv_wr **bad);

#endif /* MEDGE_KPOST_H */
