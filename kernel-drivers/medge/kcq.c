// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Completion queues of kernel consumers: they are polled here, a user polls his own. */
#include "cq.h"
#include "device.h"
#include "qp.h"

static void call_handler(struct tasklet_struct *t)
{
	struct medge_cq *cq = container_of(t, struct medge_cq, handler);

	cq->ibcq.comp_handler(&cq->ibcq, cq->ibcq.cq_context);
}

/*
 * ib_core's own handlers only schedule something, and can be called wherever a
 * completion is added. ib_create_cq() leaves poll_ctx at IB_POLL_DIRECT: that
 * handler is the consumer's.
 */
void medge_kcq_init(struct medge_cq *cq, bool kernel)
{
	cq->handler_apart = kernel && cq->ibcq.poll_ctx == IB_POLL_DIRECT;
	tasklet_setup(&cq->handler, call_handler);
}

/* NULL: the QP is gone, whose consumer did not drain it. */
static struct ib_qp *find_qp(struct medge_device *dev, u32 qpn)
{
	struct medge_qp_ref *ref;
	struct ib_qp *ibqp = NULL;

	rcu_read_lock();
	ref = medge_qp_find(dev, qpn);
	if (ref)
		ibqp = ref->ibqp;
	rcu_read_unlock();
	return ibqp;
}

static void fill_wc(struct medge_device *dev, const struct medge_cqe *cqe,
		    struct ib_wc *wc)
{
	*wc = (struct ib_wc) {
		.wr_id = cqe->wr_id,
		.status = cqe->status,
		.opcode = cqe->opcode,
		.vendor_err = cqe->vendor_err,
		.byte_len = cqe->byte_len,
		.qp = find_qp(dev, cqe->qp_num),
		.ex.imm_data = cqe->imm,
		.src_qp = cqe->src_qp,
		.wc_flags = cqe->wc_flags,
	};
	if (cqe->wc_flags & MEDGE_WC_WITH_INV)
		wc->wc_flags ^= MEDGE_WC_WITH_INV | IB_WC_WITH_INVALIDATE;
	if (cqe->wc_flags & IB_WC_GRH && cqe->vlan != MEDGE_VLAN_NONE) {
		wc->vlan_id = cqe->vlan;
		wc->wc_flags |= IB_WC_WITH_VLAN;
	}
}

int medge_poll_cq(struct ib_cq *ibcq, int num, struct ib_wc *wc)
{
	struct medge_device *dev = to_medge_device(ibcq->device);
	struct medge_cq *cq = to_medge_cq(ibcq);
	struct medge_ring *ring = &cq->ring;
	unsigned long irq;
	u32 cons;
	int n;

	spin_lock_irqsave(&cq->lock, irq);
	cons = ring->hdr->cons;
	for (n = 0; n < num && cons != ring->prod; n++)
		fill_wc(dev, medge_ring_entry(ring, cons++), &wc[n]);
	ring->hdr->cons = cons;
	spin_unlock_irqrestore(&cq->lock, irq);
	return n;
}
