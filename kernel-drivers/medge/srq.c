// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Shared receive queues: taken from by many QPs, told when they run low. */
#include <linux/log2.h>
#include <linux/random.h>

#include "device.h"
#include "kpost.h"
#include "qp.h"
#include "srq.h"
#include "verbs.h"

static void raise_limit(struct work_struct *work)
{
	struct medge_srq *srq = container_of(work, struct medge_srq, limit_work);
	struct ib_event event = {
		.device = srq->ibsrq.device,
		.event = IB_EVENT_SRQ_LIMIT_REACHED,
		.element.srq = &srq->ibsrq,
	};

	if (srq->ibsrq.event_handler)
		srq->ibsrq.event_handler(&event, srq->ibsrq.srq_context);
}

/* ---- taking ---- */

/* Under srq->lock. */
static void check_limit(struct medge_srq *srq)
{
	if (!srq->limit || medge_ring_posted(&srq->ring) >= srq->limit)
		return;
	srq->limit = 0;
	schedule_work(&srq->limit_work);
}

/* Under srq->lock: there is one, or the user will ring when there is. */
static bool await(struct medge_srq *srq)
{
	if (medge_ring_posted(&srq->ring))
		return true;
	WRITE_ONCE(srq->ring.hdr->need_doorbell, MEDGE_DOORBELL_NOW);
	/* Pairs with the barrier between the user's prod and his look at this. */
	smp_mb();
	return medge_ring_posted(&srq->ring);
}

bool medge_srq_take(struct medge_srq *srq, struct medge_qp *qp,
		    struct medge_recv_snap *snap, u32 index)
{
	struct medge_ring *ring = &srq->ring;
	bool there;

	spin_lock(&srq->lock);
	there = await(srq);
	if (there) {
		medge_recv_snapshot(qp, snap,
				    medge_ring_entry(ring, ring->cons),
				    ring->shift, index, srq->ibsrq.pd);
		ring->cons++;
		ring->done = ring->cons;
		/* The user writes the entry again only after we have read it. */
		smp_store_release(&ring->hdr->cons, ring->cons);
		check_limit(srq);
	} else if (qp->srq && list_empty(&qp->srq_waits)) {
		list_add_tail(&qp->srq_waits, &srq->waiting);
	}
	spin_unlock(&srq->lock);
	return there;
}

void medge_srq_forget(struct medge_qp *qp)
{
	if (!qp->srq)
		return;
	spin_lock_bh(&qp->srq->lock);
	list_del_init(&qp->srq_waits);
	spin_unlock_bh(&qp->srq->lock);
}

/* The QP that has waited longest, held; NULL: none waits, or none is left. */
static struct medge_qp *next_waiting(struct medge_srq *srq)
{
	struct medge_qp *qp;

	spin_lock_bh(&srq->lock);
	while ((qp = list_first_entry_or_null(&srq->waiting, struct medge_qp,
					      srq_waits))) {
		list_del_init(&qp->srq_waits);
		/* One that is being destroyed is gone only after it was forgotten. */
		if (medge_qp_hold(qp))
			break;
	}
	spin_unlock_bh(&srq->lock);
	return qp;
}

static void doorbell(struct medge_srq *srq)
{
	u32 n = MEDGE_MAX_QP;
	struct medge_qp *qp;
	bool waits;

	spin_lock_bh(&srq->lock);
	WRITE_ONCE(srq->ring.hdr->need_doorbell, MEDGE_DOORBELL_NONE);
	spin_unlock_bh(&srq->lock);
	/* Who still sees it rings again; the others' prod we see. */
	smp_mb();
	while (n-- && (qp = next_waiting(srq))) {
		medge_recv_doorbell(qp);
		waits = !list_empty_careful(&qp->srq_waits);
		medge_qp_put(qp);
		if (waits)
			break;
	}
}

static void ring_bell(struct tasklet_struct *bell)
{
	doorbell(container_of(bell, struct medge_srq, bell));
}

/* A kernel consumer's: he may hold locks under which nothing can be received. */
static int post_recvs(struct medge_srq *srq, const struct ib_recv_wr *wr,
		      const struct ib_recv_wr **bad)
{
	const struct ib_recv_wr *first = wr;
	unsigned long irq;
	bool ring;
	int err;

	spin_lock_irqsave(&srq->post_lock, irq);
	err = medge_kpost_recvs(&srq->ring, srq->max_sge, &wr);
	/* Pairs with the barrier between need_doorbell and the look at prod. */
	smp_mb();
	ring = READ_ONCE(srq->ring.hdr->need_doorbell);
	spin_unlock_irqrestore(&srq->post_lock, irq);
	if (err)
		*bad = wr;
	if (wr == first || !ring)
		return err;
	if (irqs_disabled())
		tasklet_schedule(&srq->bell);
	else
		doorbell(srq);
	return err;
}

int medge_post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr,
			const struct ib_recv_wr **bad)
{
	struct medge_srq *srq = to_medge_srq(ibsrq);

	if (srq->kernel)
		return post_recvs(srq, wr, bad);
	if (wr) {
		*bad = wr;
		return -EOPNOTSUPP;
	}
	doorbell(srq);
	return 0;
}

/* ---- XRC: found by number ---- */

static int publish(struct medge_srq *srq)
{
	struct medge_device *dev = to_medge_device(srq->ibsrq.device);
	u32 srqn;
	int err;

	refcount_set(&srq->users, 1);
	init_completion(&srq->unused);
	do {
		srqn = 1 + get_random_u32_below(BIT(24) - 1);
		err = xa_insert(&dev->srqs, srqn, srq, GFP_KERNEL);
	} while (err == -EBUSY);
	if (!err)
		srq->ibsrq.ext.xrc.srq_num = srqn;
	return err;
}

static void withdraw(struct medge_srq *srq)
{
	xa_erase(&to_medge_device(srq->ibsrq.device)->srqs,
		 srq->ibsrq.ext.xrc.srq_num);
	medge_srq_put(srq);
	wait_for_completion(&srq->unused);
	/* ib_core frees it at once, and some may have found it just before. */
	synchronize_rcu();
}

struct medge_srq *medge_srq_get(const struct medge_qp *qp, u32 srqn)
{
	struct medge_srq *srq;

	rcu_read_lock();
	srq = xa_load(&qp->dev->srqs, srqn);
	if (srq && (srq->ibsrq.ext.xrc.xrcd != qp->ibqp.xrcd ||
		    !refcount_inc_not_zero(&srq->users)))
		srq = NULL;
	rcu_read_unlock();
	return srq;
}

void medge_srq_put(struct medge_srq *srq)
{
	if (refcount_dec_and_test(&srq->users))
		complete(&srq->unused);
}

/* ---- the object ---- */

static int check_init(const struct ib_srq_init_attr *init,
		      const struct ib_udata *udata)
{
	if (init->srq_type != IB_SRQT_BASIC &&
	    (!udata || init->srq_type != IB_SRQT_XRC))
		return -EOPNOTSUPP;
	if (!init->attr.max_wr || init->attr.max_wr > MEDGE_MAX_QP_WR ||
	    init->attr.max_sge > MEDGE_MAX_SGE ||
	    init->attr.srq_limit > init->attr.max_wr)
		return -EINVAL;
	if (udata && udata->outlen < sizeof(struct medge_create_srq_resp))
		return -EINVAL;
	return 0;
}

static u32 entry_shift(u32 max_sge)
{
	return ilog2(roundup_pow_of_two(sizeof(struct medge_recv_wqe) +
					max_sge * sizeof(struct medge_sge)));
}

int medge_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *init,
		     struct ib_udata *udata)
{
	struct medge_srq *srq = to_medge_srq(ibsrq);
	struct medge_create_srq_resp resp = {};
	int err;

	err = check_init(init, udata);
	if (err)
		return err;
	spin_lock_init(&srq->lock);
	INIT_WORK(&srq->limit_work, raise_limit);
	INIT_LIST_HEAD(&srq->waiting);
	srq->kernel = !udata;
	spin_lock_init(&srq->post_lock);
	tasklet_setup(&srq->bell, ring_bell);
	srq->max_sge = max(init->attr.max_sge, 1u);
	err = medge_ring_create(&srq->ring, medge_udata_context(udata),
				init->attr.max_wr, entry_shift(srq->max_sge),
				&resp.rq);
	if (err)
		return err;
	init->attr.max_wr = resp.rq.nentries;
	init->attr.max_sge = srq->max_sge;
	srq->limit = init->attr.srq_limit;
	if (udata)
		err = ib_copy_to_udata(udata, &resp, sizeof(resp));
	if (!err && init->srq_type == IB_SRQT_XRC)
		err = publish(srq);
	if (err)
		medge_ring_destroy(&srq->ring);
	return err;
}

/* ---- resize ---- */

/* The producer is at rest; what nobody has taken keeps its index. Under both locks. */
static int move_ring(struct medge_srq *srq, struct medge_ring *to)
{
	struct medge_ring *from = &srq->ring;
	u32 n = medge_ring_posted(from), i;

	if (!to->hdr || n > to->mask + 1)
		return -EINVAL;
	for (i = from->cons; i != from->cons + n; i++)
		memcpy(medge_ring_entry(to, i), medge_ring_entry(from, i),
		       BIT(to->shift));
	to->cons = from->cons;
	to->done = from->done;
	WRITE_ONCE(to->hdr->cons, to->cons);
	WRITE_ONCE(to->hdr->prod, to->cons + n);
	WRITE_ONCE(to->hdr->need_doorbell,
		   READ_ONCE(from->hdr->need_doorbell));
	medge_ring_exchange(from, to);
	return 0;
}

/* The command has no answer, so who resizes says where it shall be. */
static int tell_ring(const struct medge_modify_srq_req *req,
		     const struct medge_create_srq_resp *resp)
{
	return copy_to_user(u64_to_user_ptr(req->resp), resp, sizeof(*resp)) ?
	       -EFAULT : 0;
}

static int read_resize(struct medge_modify_srq_req *req,
		       const struct ib_srq_attr *attr,
		       enum ib_srq_attr_mask mask, struct ib_udata *udata)
{
	int err;

	if (!attr->max_wr || attr->max_wr > MEDGE_MAX_QP_WR ||
	    (mask & IB_SRQ_LIMIT && attr->srq_limit > attr->max_wr))
		return -EINVAL;
	if (!udata)
		return 0;
	/* A provider that could not follow. */
	if (udata->inlen < sizeof(req->resp))
		return -EOPNOTSUPP;
	err = medge_udata_read(udata, req, sizeof(*req));
	if (err)
		return err;
	return req->reserved || req->step > MEDGE_RESIZE_DECLINE ?
	       -EOPNOTSUPP : 0;
}

static int offer_ring(struct medge_srq *srq, u32 max_wr,
		      struct ib_udata *udata,
		      const struct medge_modify_srq_req *req)
{
	struct medge_create_srq_resp resp = {};
	struct medge_ring ring = {};
	int err;

	err = medge_ring_create(&ring, medge_udata_context(udata), max_wr,
				srq->ring.shift, &resp.rq);
	if (err)
		return err;
	if (udata)
		err = tell_ring(req, &resp);
	if (!err)
		medge_ring_offer(&srq->offered, &ring, &srq->lock);
	medge_ring_destroy(&ring);
	return err;
}

static int take_ring(struct medge_srq *srq)
{
	struct medge_ring ring = {};
	unsigned long irq;
	int err;

	medge_ring_offer(&srq->offered, &ring, &srq->lock);
	spin_lock_bh(&srq->lock);
	spin_lock_irqsave(&srq->post_lock, irq);
	err = move_ring(srq, &ring);
	spin_unlock_irqrestore(&srq->post_lock, irq);
	spin_unlock_bh(&srq->lock);
	/* The new one if it went wrong, else the old one. */
	medge_ring_destroy(&ring);
	return err;
}

static int resize(struct medge_srq *srq, u32 max_wr, struct ib_udata *udata,
		  const struct medge_modify_srq_req *req)
{
	struct medge_ring ring = {};
	int err = 0;

	if (req->step == MEDGE_RESIZE_DECLINE) {
		medge_ring_offer(&srq->offered, &ring, &srq->lock);
		medge_ring_destroy(&ring);
		return 0;
	}
	if (req->step != MEDGE_RESIZE_TAKE)
		err = offer_ring(srq, max_wr, udata, req);
	if (!err && req->step != MEDGE_RESIZE_OFFER)
		err = take_ring(srq);
	return err;
}

int medge_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr,
		     enum ib_srq_attr_mask mask, struct ib_udata *udata)
{
	struct medge_srq *srq = to_medge_srq(ibsrq);
	struct medge_modify_srq_req req = {};
	int err;

	if (mask & ~(u32)(IB_SRQ_LIMIT | IB_SRQ_MAX_WR))
		return -EOPNOTSUPP;
	if (mask & IB_SRQ_MAX_WR) {
		err = read_resize(&req, attr, mask, udata);
		if (!err)
			err = resize(srq, attr->max_wr, udata, &req);
		if (err || req.step == MEDGE_RESIZE_OFFER ||
		    req.step == MEDGE_RESIZE_DECLINE)
			return err;
	}
	if (!(mask & IB_SRQ_LIMIT))
		return 0;
	if (attr->srq_limit > srq->ring.mask + 1)
		return -EINVAL;
	spin_lock_bh(&srq->lock);
	srq->limit = attr->srq_limit;
	check_limit(srq);
	spin_unlock_bh(&srq->lock);
	return 0;
}

int medge_query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr)
{
	struct medge_srq *srq = to_medge_srq(ibsrq);

	attr->max_wr = srq->ring.mask + 1;
	attr->max_sge = srq->max_sge;
	attr->srq_limit = READ_ONCE(srq->limit);
	return 0;
}

int medge_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata)
{
	struct medge_srq *srq = to_medge_srq(ibsrq);

	if (ibsrq->srq_type == IB_SRQT_XRC)
		withdraw(srq);
	cancel_work_sync(&srq->limit_work);
	tasklet_kill(&srq->bell);
	medge_ring_destroy(&srq->offered);
	medge_ring_destroy(&srq->ring);
	return 0;
}
