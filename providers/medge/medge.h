/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The provider's objects. */
#ifndef MEDGE_H
#define MEDGE_H

#include <stdatomic.h>
#include <stdint.h>

#include <infiniband/driver.h>
#include <rdma/medge-abi.h>

#include "lock.h"
#include "ring.h"

struct medge_device {
	struct verbs_device vdev;
};

struct medge_context {
	struct verbs_context vctx;
	uint32_t max_msg;		/* longest message, bytes */
	uint32_t features;		/* enum medge_features */
	pthread_mutex_t ud_mutex;	/* guards the list of UD QPs */
	struct medge_qp *uds;
};

struct medge_ah {
	struct ibv_ah ah;
	uint32_t number;		/* how WQEs name it */
};

struct medge_td {
	struct ibv_td ibtd;
	atomic_uint users;		/* parent domains */
};

struct medge_pd {
	struct ibv_pd ibpd;
	struct medge_pd *parent;	/* a parent domain: what it is built upon */
	struct medge_td *td;		/* of a parent domain; or NULL */
	atomic_uint users;		/* parent domains built upon this */
};

/*
 * Who polls in vain, in turn after turn. @silent is written by who posts, too.
 *
 * @silent: the QP that was last posted to without ringing for it; or NULL
 * @polls: in vain, since the last look at its ring
 * @patience: so many are well
 * @looked_at: whose ring it was, only to compare with
 * @taken: how far the kernel was at that look
 * @vain: polls in a row, of late, and
 * @spells: as many as tell of a CPU that could be lent, so often, until that is said
 * @patience_lent: so many in a row are well before it is lent
 */
struct medge_spin {
	_Atomic(struct medge_qp *) silent;
	uint32_t polls;
	uint32_t patience;
	const struct medge_qp *looked_at;
	uint32_t taken;
	uint32_t vain;
	uint32_t spells;
	uint32_t patience_lent;
};

/* How the kernel knows a QP, which may have gone here when it is told of it. */
struct medge_qp_id {
	uint32_t num;
	uint32_t handle;
};

/* What who has polled in vain is to do. */
enum medge_spin_act {
	MEDGE_SPIN_ON,
	MEDGE_SPIN_RING,
	MEDGE_SPIN_LEND,
};

/* Who polls which CQ of a QP in vain rings for what is posted and not told of. */
enum {
	MEDGE_LATE_SENDS,
	MEDGE_LATE_RECEIVES,		/* if that is another one */
	MEDGE_LATE_RQ,			/* so, but of receives */
	MEDGE_LATES,
};

/* Of a QP and one of its CQs; under that one's lock. */
struct medge_late {
	struct medge_late *next;	/* in the CQ's list */
	struct medge_qp *qp;
	bool noted;			/* it is in that list */
};

struct medge_cq {
	struct verbs_cq vcq;
	struct medge_lock lock;		/* guards all that follows */
	struct medge_ring ring;
	const struct medge_cqe *current;	/* between start_poll and end_poll */
	struct medge_spin spin;
	struct medge_late *late;	/* list of QPs that are to be rung for */
};

/* One direction's work queue of a QP. */
struct medge_queue {
	struct medge_lock lock;		/* guards ring */
	struct medge_ring ring;
	uint32_t max_sge;
};

struct medge_srq {
	struct verbs_srq vsrq;
	struct medge_queue rq;
};

struct medge_dm {
	struct verbs_dm vdm;
	struct medge_ring mem;		/* only its mapping is used */
	uint64_t length;
};

/* A list of work requests that ibv_wr_start() began; under the SQ's lock. */
struct medge_wr_list {
	struct medge_send_wqe *wqe;	/* being built; NULL: none */
	uint32_t first;			/* ring.prod as it was */
	int error;			/* what wr_complete will say */
};

struct medge_qp {
	struct verbs_qp vqp;
	struct medge_queue sq;
	struct medge_queue rq;
	uint32_t max_inline;
	uint32_t max_msg;
	bool sig_all;
	struct medge_wr_list wrs;
	struct medge_late late[MEDGE_LATES];
	struct medge_qp *next_ud;	/* in its context's list */
};

static inline struct medge_context *to_medge_context(struct ibv_context *ctx)
{
	return container_of(ctx, struct medge_context, vctx.context);
}

static inline struct medge_ah *to_medge_ah(struct ibv_ah *ah)
{
	return container_of(ah, struct medge_ah, ah);
}

static inline struct medge_td *to_medge_td(struct ibv_td *td)
{
	return container_of(td, struct medge_td, ibtd);
}

static inline struct medge_pd *to_medge_pd(struct ibv_pd *pd)
{
	return container_of(pd, struct medge_pd, ibpd);
}

static inline struct medge_cq *to_medge_cq(struct ibv_cq *cq)
{
	return container_of(cq, struct medge_cq, vcq.cq);
}

static inline struct medge_srq *to_medge_srq(struct ibv_srq *srq)
{
	return container_of(srq, struct medge_srq, vsrq.srq);
}

static inline struct medge_dm *to_medge_dm(struct ibv_dm *dm)
{
	return container_of(dm, struct medge_dm, vdm.dm);
}

static inline struct medge_qp *to_medge_qp(struct ibv_qp *qp)
{
	return container_of(qp, struct medge_qp, vqp.qp);
}

static inline struct medge_qp_id medge_qp_id(const struct medge_qp *qp)
{
	return (struct medge_qp_id){
		.num = qp->vqp.qp.qp_num,
		.handle = qp->vqp.qp.handle,
	};
}

extern const struct verbs_context_ops medge_context_ops;
extern const struct verbs_device_ops medge_dev_ops;

/* verbs.c: ibv_create_qp_ex() with flags of enum medge_create_qp_flags. */
struct ibv_qp *medge_create_qp_flags(struct ibv_context *context,
				     struct ibv_qp_init_attr_ex *attr,
				     uint32_t flags);

/* pd.c */
struct ibv_pd *medge_alloc_pd(struct ibv_context *context);
struct ibv_pd *medge_alloc_parent_domain(struct ibv_context *context,
					 struct ibv_parent_domain_init_attr *attr);
int medge_dealloc_pd(struct ibv_pd *pd);
struct ibv_pd *medge_import_pd(struct ibv_context *context, uint32_t handle);
void medge_unimport_pd(struct ibv_pd *pd);
struct ibv_td *medge_alloc_td(struct ibv_context *context,
			      struct ibv_td_init_attr *attr);
int medge_dealloc_td(struct ibv_td *td);

/* cq.c */
struct ibv_cq *medge_create_cq(struct ibv_context *context, int cqe,
			       struct ibv_comp_channel *channel,
			       int comp_vector);
struct ibv_cq_ex *medge_create_cq_ex(struct ibv_context *context,
				     struct ibv_cq_init_attr_ex *attr);
int medge_resize_cq(struct ibv_cq *cq, int cqe);
int medge_req_notify_cq(struct ibv_cq *cq, int solicited_only);
int medge_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr);
int medge_destroy_cq(struct ibv_cq *cq);
/* The QP starts anew: what has not been polled of it goes. @cq may be NULL. */
void medge_cq_clean(struct ibv_cq *cq, uint32_t qp_num);

/* cq_ex.c */
void medge_cq_ex_init(struct medge_cq *cq, uint64_t wc_flags);
int medge_query_rt_values(struct ibv_context *context,
			  struct ibv_values_ex *values);

/* medge.c: it is closed, or could not be opened. */
void medge_drop_context(struct medge_context *ctx);

/* doorbell.c */
/*
 * Have the kernel look at the send ring of a QP, at its receive ring, at an SRQ's. 0, or
 * an errno: it has gone, or the device. What is rung for is published before.
 */
int medge_send_ring(struct ibv_context *context, struct medge_qp_id id);
int medge_recv_ring(struct ibv_context *context, uint32_t qp_handle);
int medge_srq_ring(const struct ibv_srq *ibsrq);

/* send.c, recv.c, poll.c, spin.c */
/* Does a QP in this state take sends? */
bool medge_may_send(const struct medge_qp *qp);
uint16_t medge_wqe_flags_of(const struct medge_qp *qp, unsigned int send_flags);
/* Publish what is in the send ring, and ring for it if need be. Under its lock. */
int medge_send_publish(struct medge_qp *qp);
int medge_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr,
		    struct ibv_send_wr **bad_wr);
int medge_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr,
		    struct ibv_recv_wr **bad_wr);
int medge_poll_cq(struct ibv_cq *ibcq, int num_entries, struct ibv_wc *wc);
void medge_spin_init(struct medge_cq *cq);
/* Something was posted, and the kernel need not be told. */
void medge_spin_silent(struct medge_cq *cq, struct medge_qp *qp);
/* A poll has found something. Under the CQ's lock. */
static inline void medge_spin_found(struct medge_cq *cq)
{
	cq->spin.polls = 0;
	cq->spin.vain = 0;
}

/*
 * A poll has found nothing. Under the CQ's lock. Return: what is to be done without
 * it, for that QP.
 */
enum medge_spin_act medge_spin_empty(struct medge_cq *cq, struct medge_qp_id *id);
void medge_spin_help(struct medge_cq *cq, enum medge_spin_act act,
		     struct medge_qp_id id);
/* The QP goes. */
void medge_spin_forget(struct medge_cq *cq, const struct medge_qp *qp);

void medge_late_init(struct medge_qp *qp);
/* The kernel may be told when there are @posts. False: tell it now. */
bool medge_late_defer(struct medge_qp *qp, uint32_t posts);
/* The same of receives; under the RQ's lock. */
bool medge_late_defer_recv(struct medge_qp *qp, uint32_t posts);
/* The CQ is empty, and its user waits. Without its lock. */
void medge_late_ring(struct medge_cq *cq);
/* Whoever has the locks of its CQs. */
void medge_late_now(struct medge_qp *qp);
/* An address handle goes, which what is posted to UD QPs may name. */
void medge_late_datagrams(struct medge_context *ctx);
/* A QP is there. */
void medge_late_add(struct medge_qp *qp);
/* The QP goes. */
void medge_late_forget(struct medge_qp *qp);

/* Into the ring, yet to be published. Under the queue's lock. */
int medge_push_recv(struct medge_queue *rq, const struct ibv_recv_wr *wr);
/* verbs.c: a queue of work requests of at most @max_sge SGEs, @wqe_size bytes. */
int medge_queue_map(struct medge_queue *q, int cmd_fd,
		    const struct medge_ring_map *map, uint32_t max_sge,
		    size_t wqe_size);

/* srq.c */
struct ibv_srq *medge_create_srq(struct ibv_pd *pd,
				 struct ibv_srq_init_attr *attr);
int medge_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask);
int medge_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr);
int medge_destroy_srq(struct ibv_srq *srq);
int medge_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr,
			struct ibv_recv_wr **bad_wr);

struct ibv_srq *medge_create_srq_ex(struct ibv_context *context,
				    struct ibv_srq_init_attr_ex *attr);
int medge_get_srq_num(struct ibv_srq *srq, uint32_t *srq_num);

/* dm.c */
struct ibv_dm *medge_alloc_dm(struct ibv_context *context,
			      struct ibv_alloc_dm_attr *attr);
int medge_free_dm(struct ibv_dm *dm);
struct ibv_dm *medge_import_dm(struct ibv_context *context, uint32_t handle);
void medge_unimport_dm(struct ibv_dm *dm);
struct ibv_mr *medge_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm,
			       uint64_t offset, size_t length,
			       unsigned int access);

/* xrc.c */
struct ibv_xrcd *medge_open_xrcd(struct ibv_context *context,
				 struct ibv_xrcd_init_attr *attr);
int medge_close_xrcd(struct ibv_xrcd *xrcd);
struct ibv_qp *medge_open_qp(struct ibv_context *context,
			     struct ibv_qp_open_attr *attr);
/* verbs.c */
void medge_qp_free(struct medge_qp *qp);

/* wr.c: ibv_wr_*(). Has such a QP these operations (IBV_QP_EX_WITH_*)? */
bool medge_wr_has(enum ibv_qp_type type, uint64_t send_ops);
void medge_wr_init(struct medge_qp *qp);

/* mw.c */
struct ibv_mw *medge_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int medge_dealloc_mw(struct ibv_mw *mw);
int medge_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw,
		  struct ibv_mw_bind *bind);

#endif /* MEDGE_H */
