// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Completion queues: rings that the kernel fills and the user empties. */
#include <linux/log2.h>

#include "compat.h"
#include "cq.h"
#include "device.h"
#include "verbs.h"

static void raise_cq_error(struct work_struct *work)
{
	struct medge_cq *cq = container_of(work, struct medge_cq, error_work);
	struct ib_event event = {
		.device = cq->ibcq.device,
		.event = IB_EVENT_CQ_ERR,
		.element.cq = &cq->ibcq,
	};

	if (cq->ibcq.event_handler)
		cq->ibcq.event_handler(&event, cq->ibcq.cq_context);
}

static void call_handler(struct medge_cq *cq)
{
	if (cq->handler_apart)
		tasklet_schedule(&cq->handler);
	else
		cq->ibcq.comp_handler(&cq->ibcq, cq->ibcq.cq_context);
}

/* ---- notification ---- */

/* Enum medge_cq_armed: what was asked for by a call, or in the ring. Under cq->lock. */
static u32 armed(const struct medge_cq *cq)
{
	return cq->armed | READ_ONCE(cq->ring.hdr->armed);
}

/* Who arms it anew meanwhile has the event that follows. Under cq->lock. */
static void clear_armed(struct medge_cq *cq)
{
	cq->armed = 0;
	WRITE_ONCE(cq->ring.hdr->armed, 0);
}

u32 medge_cq_armed(struct medge_cq *cq)
{
	u32 is;

	spin_lock_bh(&cq->lock);
	is = cq->ring.hdr ? armed(cq) : 0;
	spin_unlock_bh(&cq->lock);
	return is;
}

/* ---- moderation ---- */

/* Time is up: those that wait for others wait no more. In softirq. */
static enum hrtimer_restart moderated(struct hrtimer *timer)
{
	struct medge_cq *cq = container_of(timer, struct medge_cq, mod_timer);
	bool notify;

	spin_lock(&cq->lock);
	notify = cq->mod_pending && armed(cq);
	cq->mod_pending = 0;
	if (notify)
		clear_armed(cq);
	spin_unlock(&cq->lock);
	if (notify)
		call_handler(cq);
	return HRTIMER_NORESTART;
}

/*
 * Under cq->lock; the CQ is armed for the @n completions that were added. Return: they
 * wait for more. Errors and solicited ones do not.
 */
static bool moderate(struct medge_cq *cq, u32 n, bool solicited)
{
	u32 pending = cq->mod_pending + n;

	if (solicited || cq->mod_count <= 1 || !cq->mod_us ||
	    pending >= cq->mod_count) {
		cq->mod_pending = 0;
		return false;
	}
	cq->mod_pending = pending;
	if (pending == n)
		hrtimer_start(&cq->mod_timer, us_to_ktime(cq->mod_us),
			      HRTIMER_MODE_REL_SOFT);
	return true;
}

int medge_modify_cq(struct ib_cq *ibcq, u16 count, u16 period)
{
	struct medge_cq *cq = to_medge_cq(ibcq);

	spin_lock_bh(&cq->lock);
	cq->mod_count = count;
	cq->mod_us = period;
	spin_unlock_bh(&cq->lock);
	return 0;
}

/* ---- making ---- */

int medge_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		    struct uverbs_attr_bundle *attrs)
{
	struct ib_udata *udata = attrs ? &attrs->driver_udata : NULL;
	struct ib_ucontext *uctx = medge_udata_context(udata);
	struct medge_create_cq_resp resp = {};
	struct medge_cq *cq = to_medge_cq(ibcq);
	int err;

	if (attr->flags & ~IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION)
		return -EOPNOTSUPP;
	if (!attr->cqe || attr->cqe > MEDGE_MAX_CQE)
		return -EINVAL;
	if (udata && udata->outlen < sizeof(resp))
		return -EINVAL;

	spin_lock_init(&cq->lock);
	medge_stream_init(&cq->stream);
	INIT_LIST_HEAD(&cq->lender.entry);
	INIT_WORK(&cq->error_work, raise_cq_error);
	hrtimer_setup(&cq->mod_timer, moderated, CLOCK_MONOTONIC,
		      HRTIMER_MODE_REL_SOFT);
	medge_kcq_init(cq, !udata);
	err = medge_quota_take(uctx, MEDGE_QUOTA_CQ, &cq->process);
	if (err)
		return err;
	err = medge_ring_create(&cq->ring, uctx, attr->cqe, MEDGE_CQE_SHIFT,
				&resp.cq);
	if (err)
		goto no_ring;
	ibcq->cqe = resp.cq.nentries;
	if (!udata)
		return 0;

	cq->ring.hdr->has_armed = 1;
	cq->ring.hdr->lend = MEDGE_LEND_UNKNOWN;
	err = ib_copy_to_udata(udata, &resp, sizeof(resp));
	if (!err)
		return 0;
	medge_ring_destroy(&cq->ring);
no_ring:
	medge_quota_give(&cq->process, MEDGE_QUOTA_CQ);
	return err;
}

/* ---- resize ---- */

/* The user polls nothing meanwhile; what he has not polled keeps its index. Under cq->lock. */
static int move_ring(struct medge_cq *cq, struct medge_ring *to)
{
	struct medge_ring *from = &cq->ring;
	u32 cons, n, i;

	if (!to->hdr)
		return -EINVAL;
	cons = READ_ONCE(from->hdr->cons);
	n = from->prod - cons;
	if (n > from->mask + 1 || n > to->mask + 1)
		return -EINVAL;
	for (i = cons; i != from->prod; i++)
		memcpy(medge_ring_entry(to, i), medge_ring_entry(from, i),
		       BIT(to->shift));
	to->prod = from->prod;
	to->cons = cons;
	to->done = from->done;
	to->hdr->has_armed = 1;
	to->hdr->lend = READ_ONCE(from->hdr->lend);
	to->hdr->armed = READ_ONCE(from->hdr->armed);
	WRITE_ONCE(to->hdr->cons, cons);
	WRITE_ONCE(to->hdr->prod, to->prod);
	medge_ring_exchange(from, to);
	cq->ibcq.cqe = from->mask + 1;
	return 0;
}

static int offer_ring(struct medge_cq *cq, u32 cqe, struct ib_udata *udata)
{
	struct medge_create_cq_resp resp = {};
	struct medge_ring ring = {};
	int err;

	if (!cqe || cqe > MEDGE_MAX_CQE || udata->outlen < sizeof(resp))
		return -EINVAL;
	err = medge_ring_create(&ring, medge_udata_context(udata), cqe,
				MEDGE_CQE_SHIFT, &resp.cq);
	if (err)
		return err;
	err = ib_copy_to_udata(udata, &resp, sizeof(resp));
	if (!err)
		medge_ring_offer(&cq->offered, &ring, &cq->lock);
	medge_ring_destroy(&ring);
	return err;
}

static int take_ring(struct medge_cq *cq)
{
	struct medge_ring ring = {};
	int err;

	medge_ring_offer(&cq->offered, &ring, &cq->lock);
	spin_lock_bh(&cq->lock);
	err = move_ring(cq, &ring);
	spin_unlock_bh(&cq->lock);
	/* The new one if it went wrong, else the old one. */
	medge_ring_destroy(&ring);
	return err;
}

static int read_resize(struct medge_resize_cq_req *req, struct ib_udata *udata)
{
	int err = medge_udata_read(udata, req, sizeof(*req));

	if (err)
		return err;
	return req->reserved || req->step > MEDGE_RESIZE_DECLINE ?
	       -EOPNOTSUPP : 0;
}

int medge_resize_cq(struct ib_cq *ibcq, unsigned int cqe,
		    struct ib_udata *udata)
{
	struct medge_cq *cq = to_medge_cq(ibcq);
	struct medge_resize_cq_req req = {};
	struct medge_ring ring = {};
	int err;

	if (!udata)
		return -EOPNOTSUPP;
	err = read_resize(&req, udata);
	if (err)
		return err;
	if (req.step == MEDGE_RESIZE_DECLINE) {
		medge_ring_offer(&cq->offered, &ring, &cq->lock);
		medge_ring_destroy(&ring);
		return 0;
	}
	if (req.step != MEDGE_RESIZE_TAKE)
		err = offer_ring(cq, cqe, udata);
	if (!err && req.step != MEDGE_RESIZE_OFFER)
		err = take_ring(cq);
	return err;
}

int medge_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata)
{
	struct medge_cq *cq = to_medge_cq(ibcq);
	struct medge_ring ring;

	medge_borrow_forget(cq);
	medge_ring_destroy(&cq->offered);
	cancel_work_sync(&cq->error_work);
	hrtimer_cancel(&cq->mod_timer);
	tasklet_kill(&cq->handler);
	spin_lock_bh(&cq->lock);
	ring = cq->ring;
	cq->ring.hdr = NULL;
	spin_unlock_bh(&cq->lock);
	medge_ring_destroy(&ring);
	medge_quota_give(&cq->process, MEDGE_QUOTA_CQ);
	return 0;
}

int medge_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags)
{
	struct medge_cq *cq = to_medge_cq(ibcq);
	unsigned long irq;
	bool missed;

	spin_lock_irqsave(&cq->lock, irq);
	/* Armed for any completion, it stays so when solicited ones are asked for. */
	cq->armed |= (flags & IB_CQ_SOLICITED_MASK) == IB_CQ_SOLICITED ?
		     MEDGE_CQ_ARMED_SOLICITED : MEDGE_CQ_ARMED_NEXT;
	missed = READ_ONCE(cq->ring.hdr->cons) != cq->ring.prod;
	spin_unlock_irqrestore(&cq->lock, irq);

	return flags & IB_CQ_REPORT_MISSED_EVENTS && missed;
}

u32 medge_cq_unread(struct medge_cq *cq, u32 *cons)
{
	*cons = READ_ONCE(cq->ring.hdr->cons);
	return cq->ring.prod - *cons;
}

/* Under cq->lock. Return: false if the ring is full, which a lying user can make it. */
static bool put_cqe(struct medge_cq *cq, const struct medge_cqe *cqe)
{
	struct medge_ring *ring = &cq->ring;

	if (ring->prod - ring->cons > ring->mask) {
		/* The user has read an entry before it is written anew. */
		ring->cons = smp_load_acquire(&ring->hdr->cons);
		if (ring->prod - ring->cons > ring->mask)
			return false;
	}
	memcpy(medge_ring_entry(ring, ring->prod), cqe, sizeof(*cqe));
	ring->prod++;
	return true;
}

/* Of @n that were added. Under cq->lock. Return: whether the handler is to be called. */
static bool disarm(struct medge_cq *cq, u32 n, bool solicited)
{
	u32 what = MEDGE_CQ_ARMED_NEXT;

	if (solicited)
		what |= MEDGE_CQ_ARMED_SOLICITED;
	/* Pairs with the barrier between the user's arming and his last look. */
	smp_mb();
	if (!(armed(cq) & what) || moderate(cq, n, solicited))
		return false;
	clear_armed(cq);
	return true;
}

/* Under cq->lock. */
static void put(struct medge_cq *cq, const struct medge_cqe *cqe)
{
	if (cq->error || put_cqe(cq, cqe))
		return;
	cq->error = true;
	schedule_work(&cq->error_work);
}

/* Under cq->lock. Return: whether the handler is to be called. */
static bool tell(struct medge_cq *cq, bool solicited)
{
	struct medge_ring *ring = &cq->ring;
	u32 n = ring->prod - ring->done;

	if (!n && (!solicited || cq->error))
		return false;
	ring->done = ring->prod;
	/* The entries are there before the user can know of them. */
	smp_store_release(&ring->hdr->prod, ring->prod);
	return disarm(cq, n, solicited);
}

void medge_cq_put(struct medge_cq *cq, const struct medge_cqe *cqe)
{
	spin_lock(&cq->lock);
	put(cq, cqe);
	spin_unlock(&cq->lock);
}

void medge_cq_tell(struct medge_cq *cq, bool solicited)
{
	bool notify;

	spin_lock(&cq->lock);
	notify = tell(cq, solicited);
	spin_unlock(&cq->lock);
	if (notify)
		call_handler(cq);
}

void medge_cq_add(struct medge_cq *cq, const struct medge_cqe *cqe,
		  bool solicited)
{
	bool notify;

	spin_lock(&cq->lock);
	put(cq, cqe);
	notify = tell(cq, solicited);
	spin_unlock(&cq->lock);
	if (notify)
		call_handler(cq);
}
