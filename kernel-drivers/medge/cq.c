// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Completion queues: rings that the kernel fills and the user empties. */
#include <linux/log2.h>

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

int medge_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		    struct uverbs_attr_bundle *attrs)
{
	struct ib_udata *udata = attrs ? &attrs->driver_udata : NULL;
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
	INIT_WORK(&cq->error_work, raise_cq_error);
	medge_kcq_init(cq, !udata);
	err = medge_ring_create(&cq->ring, medge_udata_context(udata),
				attr->cqe, MEDGE_CQE_SHIFT, &resp.cq);
	if (err)
		return err;
	ibcq->cqe = resp.cq.nentries;
	if (!udata)
		return 0;

	err = ib_copy_to_udata(udata, &resp, sizeof(resp));
	if (err)
		medge_ring_destroy(&cq->ring);
	return err;
}

int medge_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata)
{
	struct medge_cq *cq = to_medge_cq(ibcq);

	cancel_work_sync(&cq->error_work);
	tasklet_kill(&cq->handler);
	medge_ring_destroy(&cq->ring);
	return 0;
}

int medge_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags)
{
	enum ib_cq_notify_flags want = flags & IB_CQ_SOLICITED_MASK;
	struct medge_cq *cq = to_medge_cq(ibcq);
	unsigned long irq;
	bool missed;

	spin_lock_irqsave(&cq->lock, irq);
	/* Armed for any completion, it stays so when solicited ones are asked for. */
	if (cq->armed != IB_CQ_NEXT_COMP)
		cq->armed = want;
	missed = READ_ONCE(cq->ring.hdr->cons) != cq->ring.prod;
	spin_unlock_irqrestore(&cq->lock, irq);

	return flags & IB_CQ_REPORT_MISSED_EVENTS && missed;
}

/* Under cq->lock. Return: false if the ring is full, which a lying user can make it. */
static bool put_cqe(struct medge_cq *cq, const struct medge_cqe *cqe)
{
	struct medge_ring *ring = &cq->ring;

	/* The user has read an entry before it is written anew. */
	if (ring->prod - smp_load_acquire(&ring->hdr->cons) > ring->mask)
		return false;
	memcpy(medge_ring_entry(ring, ring->prod), cqe, sizeof(*cqe));
	ring->prod++;
	/* The entry is there before the user can know of it. */
	smp_store_release(&ring->hdr->prod, ring->prod);
	return true;
}

/* Under cq->lock. Return: whether the handler is to be called. */
static bool disarm(struct medge_cq *cq, bool solicited)
{
	if (cq->armed != IB_CQ_NEXT_COMP &&
	    !(cq->armed == IB_CQ_SOLICITED && solicited))
		return false;
	cq->armed = 0;
	return true;
}

void medge_cq_add(struct medge_cq *cq, const struct medge_cqe *cqe,
		  bool solicited)
{
	bool notify = false;

	spin_lock(&cq->lock);
	if (cq->error) {
		spin_unlock(&cq->lock);
		return;
	}
	if (put_cqe(cq, cqe)) {
		notify = disarm(cq, solicited);
	} else {
		cq->error = true;
		schedule_work(&cq->error_work);
	}
	spin_unlock(&cq->lock);

	if (!notify)
		return;
	if (cq->handler_apart)
		tasklet_schedule(&cq->handler);
	else
		cq->ibcq.comp_handler(&cq->ibcq, cq->ibcq.cq_context);
}
