/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The provider's objects. */
#ifndef MEDGE_H
#define MEDGE_H

#include <pthread.h>
#include <stdint.h>

#include <infiniband/driver.h>
#include <rdma/medge-abi.h>

#include "ring.h"

struct medge_device {
	struct verbs_device vdev;
};

struct medge_context {
	struct verbs_context vctx;
	uint32_t max_msg;		/* longest message, bytes */
};

struct medge_ah {
	struct ibv_ah ah;
	uint32_t number;		/* how WQEs name it */
};

struct medge_cq {
	struct verbs_cq vcq;
	pthread_spinlock_t lock;	/* guards ring */
	struct medge_ring ring;
};

/* One direction's work queue of a QP. */
struct medge_queue {
	pthread_spinlock_t lock;	/* guards ring */
	struct medge_ring ring;
	uint32_t max_sge;
};

struct medge_qp {
	struct verbs_qp vqp;
	struct medge_queue sq;
	struct medge_queue rq;
	uint32_t max_inline;
	uint32_t max_msg;
	bool sig_all;
};

static inline struct medge_context *to_medge_context(struct ibv_context *ctx)
{
	return container_of(ctx, struct medge_context, vctx.context);
}

static inline struct medge_ah *to_medge_ah(struct ibv_ah *ah)
{
	return container_of(ah, struct medge_ah, ah);
}

static inline struct medge_cq *to_medge_cq(struct ibv_cq *cq)
{
	return container_of(cq, struct medge_cq, vcq.cq);
}

static inline struct medge_qp *to_medge_qp(struct ibv_qp *qp)
{
	return container_of(qp, struct medge_qp, vqp.qp);
}

extern const struct verbs_context_ops medge_context_ops;
extern const struct verbs_device_ops medge_dev_ops;

/* verbs.c: ibv_create_qp_ex() with flags of enum medge_create_qp_flags. */
struct ibv_qp *medge_create_qp_flags(struct ibv_context *context,
				     struct ibv_qp_init_attr_ex *attr,
				     uint32_t flags);

/* send.c, recv.c, poll.c */
int medge_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr,
		    struct ibv_send_wr **bad_wr);
int medge_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr,
		    struct ibv_recv_wr **bad_wr);
int medge_poll_cq(struct ibv_cq *ibcq, int num_entries, struct ibv_wc *wc);

#endif /* MEDGE_H */
