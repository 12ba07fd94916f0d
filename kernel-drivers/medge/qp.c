// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Queue pairs: made and unmade. */
#include <linux/log2.h>
#include <linux/slab.h>

#include "compat.h"
#include "device.h"
#include "qp.h"
#include "snap.h"
#include "srq.h"
#include "verbs.h"

static int check_init(const struct ib_qp_init_attr *init,
		      const struct ib_udata *udata)
{
	const struct ib_qp_cap *cap = &init->cap;

	bool sends = init->qp_type != IB_QPT_XRC_TGT;
	bool receives = sends && init->qp_type != IB_QPT_XRC_INI;

	switch (init->qp_type) {
	case IB_QPT_RC:
	case IB_QPT_UC:
	case IB_QPT_UD:
	case IB_QPT_XRC_INI:
	case IB_QPT_XRC_TGT:
		break;
	case IB_QPT_GSI:
		if (!udata)
			break;
		fallthrough;
	default:
		return -EOPNOTSUPP;
	}
	if (init->create_flags ||
	    init->rwq_ind_tbl)
		return -EOPNOTSUPP;
	if ((sends && !init->send_cq) || (receives && !init->recv_cq))
		return -EINVAL;
	if (cap->max_send_wr > MEDGE_MAX_QP_WR ||
	    cap->max_recv_wr > MEDGE_MAX_QP_WR ||
	    cap->max_send_sge > MEDGE_MAX_SGE ||
	    cap->max_recv_sge > MEDGE_MAX_SGE ||
	    cap->max_inline_data > MEDGE_MAX_INLINE)
		return -EINVAL;
	return 0;
}

/*
 * It has no acks to come that would have it look again for memory; but all it needs
 * is one slot.
 */
static bool sends_one_at_a_time(const struct medge_qp *qp)
{
	return medge_qp_is_uc(qp) || medge_qp_is_ud(qp);
}

static int create_sq(struct medge_qp *qp, struct ib_qp_cap *cap,
		     struct ib_ucontext *uctx, struct medge_ring_map *map)
{
	u32 data, shift;
	int err;

	if (!cap->max_send_wr)
		return 0;
	data = max_t(u32, cap->max_inline_data,
		     cap->max_send_sge * sizeof(struct medge_sge));
	shift = ilog2(roundup_pow_of_two(sizeof(struct medge_send_wqe) + data));
	err = medge_ring_create(&qp->sq, uctx, cap->max_send_wr, shift, map);
	if (err)
		return err;

	cap->max_send_wr = map->nentries;
	/* All that an entry has room for, as hardware has it: programs count on it. */
	cap->max_inline_data = min_t(u32, MEDGE_MAX_INLINE,
				     BIT(shift) - sizeof(struct medge_send_wqe));
	qp->max_inline = cap->max_inline_data;
	return medge_snaps_init(&qp->sq_snaps, BIT(shift),
				min_t(u32, map->nentries, MEDGE_OP_WINDOW),
				sends_one_at_a_time(qp));
}

/* @sges: of a receive. */
static int create_rq_snaps(struct medge_qp *qp, u32 sges)
{
	return medge_snaps_init(&qp->rq_snaps,
				sizeof(struct medge_recv_snap) +
				sges * sizeof(struct medge_sge),
				min_t(u32, qp->rq.mask + 1, MEDGE_OP_WINDOW), true);
}

static int create_rq(struct medge_qp *qp, struct ib_qp_cap *cap,
		     struct ib_ucontext *uctx, struct medge_ring_map *map)
{
	u32 shift;
	int err;

	if (!cap->max_recv_wr)
		return 0;
	shift = ilog2(roundup_pow_of_two(sizeof(struct medge_recv_wqe) +
					 cap->max_recv_sge *
					 sizeof(struct medge_sge)));
	err = medge_ring_create(&qp->rq, uctx, cap->max_recv_wr, shift, map);
	if (err)
		return err;

	cap->max_recv_wr = map->nentries;
	return create_rq_snaps(qp, cap->max_recv_sge);
}

/* The receives are another's: only those taken from it are kept here. */
static int use_srq(struct medge_qp *qp, struct ib_srq *ibsrq,
		   struct ib_qp_cap *cap)
{
	struct medge_srq *srq = to_medge_srq(ibsrq);

	cap->max_recv_wr = 0;
	cap->max_recv_sge = 0;
	qp->srq = srq;
	qp->max_recv_sge = srq->max_sge;
	qp->rq.mask = MEDGE_OP_WINDOW - 1;
	qp->rq.shift = srq->ring.shift;
	return create_rq_snaps(qp, srq->max_sge);
}

/* An XRC target sends nothing, and takes receives from SRQs of any size. */
static int use_srqs(struct medge_qp *qp, struct ib_qp_cap *cap)
{
	*cap = (struct ib_qp_cap) {};
	qp->max_recv_sge = MEDGE_MAX_SGE;
	qp->rq.mask = MEDGE_OP_WINDOW - 1;
	return create_rq_snaps(qp, MEDGE_MAX_SGE);
}

static int create_queues(struct medge_qp *qp, struct ib_qp_init_attr *init,
			 struct ib_ucontext *uctx,
			 struct medge_create_qp_resp *resp)
{
	int err;

	if (init->qp_type == IB_QPT_XRC_TGT)
		return use_srqs(qp, &init->cap);
	err = create_sq(qp, &init->cap, uctx, &resp->sq);
	if (err || init->qp_type == IB_QPT_XRC_INI)
		return err;
	if (!init->srq)
		return create_rq(qp, &init->cap, uctx, &resp->rq);
	return use_srq(qp, init->srq, &init->cap);
}

static void destroy_queues(struct medge_qp *qp)
{
	medge_pin_release(&qp->pin);
	medge_ring_destroy(&qp->sq);
	medge_ring_destroy(&qp->rq);
	medge_snaps_fini(&qp->sq_snaps);
	medge_snaps_fini(&qp->rq_snaps);
	medge_quota_give(&qp->process, MEDGE_QUOTA_QP);
}

/* What the user asked of us; a provider may know fewer flags than we, or more. */
static int read_request(struct ib_udata *udata, struct medge_create_qp_req *req)
{
	int err;

	*req = (struct medge_create_qp_req) {};
	if (!udata)
		return 0;
	if (udata->outlen < sizeof(struct medge_create_qp_resp))
		return -EINVAL;
	err = medge_udata_read(udata, req, sizeof(*req));
	if (err)
		return err;
	if (req->flags & ~(MEDGE_CREATE_QP_RELAXED | MEDGE_CREATE_QP_POLLED) ||
	    req->reserved)
		return -EOPNOTSUPP;
	return 0;
}

static void init_qp(struct medge_qp *qp, const struct ib_qp_init_attr *init,
		    const struct medge_create_qp_req *req)
{
	qp->dev = to_medge_device(qp->ibqp.device);
	mutex_init(&qp->modify_lock);
	spin_lock_init(&qp->lock);
	INIT_WORK(&qp->event_work, medge_qp_events);
	medge_faults_init(qp);
	hrtimer_setup(&qp->timer, medge_timer_fire, CLOCK_MONOTONIC,
		      HRTIMER_MODE_ABS_SOFT);
	qp->timer_at = MEDGE_NEVER;
	qp->state = IB_QPS_RESET;
	medge_kpost_init(&qp->kpost, !qp->ibqp.uobject);
	qp->relaxed = req->flags & MEDGE_CREATE_QP_RELAXED;
	medge_late_init(qp);
	qp->polled.asked = req->flags & MEDGE_CREATE_QP_POLLED;
	INIT_LIST_HEAD(&qp->polled.entry);
	INIT_LIST_HEAD(&qp->polled.turn);
	qp->sq_sig_all = init->sq_sig_type == IB_SIGNAL_ALL_WR;
	qp->max_sge = init->cap.max_send_sge;
	qp->max_recv_sge = init->cap.max_recv_sge;
	INIT_LIST_HEAD(&qp->srq_waits);
}

/*
 * What its process does not see of it, at most; of the connection even before there
 * is one.
 */
static size_t hidden_bytes(const struct medge_qp *qp)
{
	size_t bytes = medge_snaps_most(&qp->sq_snaps) + medge_snaps_most(&qp->rq_snaps);

	if (!medge_qp_is_uc(qp) && !medge_qp_is_ud(qp))
		bytes += medge_conn_size();
	return bytes;
}

/*
 * On whose account it is. That of XRC which receives is a user's, too, but ib_core
 * makes it without a word for whom: for the process that runs.
 */
static int charge(struct medge_qp *qp, struct ib_ucontext *uctx)
{
	if (medge_qp_is_xrc_tgt(qp))
		return medge_quota_take_own(&qp->dev->quotas, MEDGE_QUOTA_QP, &qp->process);
	return medge_quota_take(uctx, MEDGE_QUOTA_QP, &qp->process);
}

static int build_qp(struct medge_qp *qp, struct ib_qp_init_attr *init,
		    struct ib_udata *udata)
{
	struct ib_ucontext *uctx = medge_udata_context(udata);
	struct medge_create_qp_resp resp = {};
	int err;

	err = charge(qp, uctx);
	if (!err)
		err = create_queues(qp, init, uctx, &resp);
	if (!err && qp->process)
		err = medge_pin_charge(&qp->pin, hidden_bytes(qp));
	if (err)
		return err;
	medge_qp_reset_rings(qp);
	qp->init = *init;
	if (udata && ib_copy_to_udata(udata, &resp, sizeof(resp)))
		return -EFAULT;
	return medge_qp_publish(qp);
}

int medge_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *init,
		    struct ib_udata *udata)
{
	struct medge_create_qp_req req;
	struct medge_qp *qp = to_medge_qp(ibqp);
	int err;

	err = check_init(init, udata);
	if (!err)
		err = read_request(udata, &req);
	if (err)
		return err;

	init_qp(qp, init, &req);
	err = build_qp(qp, init, udata);
	if (err) {
		destroy_queues(qp);
		return err;
	}
	medge_poller_add(qp);
	return 0;
}

int medge_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata)
{
	struct medge_qp *qp = to_medge_qp(ibqp);

	medge_poller_remove(qp);
	medge_qp_stop(qp);
	medge_srq_forget(qp);
	medge_qp_withdraw(qp);
	destroy_queues(qp);
	return 0;
}

void medge_qp_sync(struct medge_qp *qp)
{
	spin_lock_bh(&qp->lock);
	qp->now = ktime_get_ns();
	medge_send_unlock(qp);
}

static void schedule_one(struct medge_qp *qp, void *scheduler)
{
	spin_lock_bh(&qp->lock);
	qp->now = ktime_get_ns();
	if (qp->conn)
		medge_conn_schedule(qp->conn, *(u32 *)scheduler);
	medge_send_unlock(qp);
}

void medge_qps_schedule(struct medge_device *dev, u32 scheduler)
{
	/* Before the QPs are told: one that is just connecting reads it. */
	WRITE_ONCE(dev->scheduler, scheduler);
	medge_qps_each(dev, schedule_one, &scheduler);
}
