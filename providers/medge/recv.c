/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Receive work requests: from the application to the receive ring. */
#include <errno.h>

#include "medge.h"

int medge_push_recv(struct medge_queue *rq, const struct ibv_recv_wr *wr)
{
	struct medge_recv_wqe *wqe;
	struct medge_sge *sge;
	int i;

	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > rq->max_sge)
		return EINVAL;
	wqe = medge_ring_reserve(&rq->ring);
	if (!wqe)
		return ENOMEM;

	wqe->wr_id = wr->wr_id;
	wqe->num_sge = wr->num_sge;
	wqe->reserved = 0;
	sge = (struct medge_sge *)(wqe + 1);
	for (i = 0; i < wr->num_sge; i++) {
		sge[i].addr = wr->sg_list[i].addr;
		sge[i].length = wr->sg_list[i].length;
		sge[i].lkey = wr->sg_list[i].lkey;
	}
	rq->ring.prod++;
	return 0;
}

static int medge_recv_publish(struct medge_qp *qp)
{
	struct ibv_qp *ibqp = &qp->vqp.qp;
	uint32_t need;

	medge_ring_publish(&qp->rq.ring);
	need = medge_ring_need_doorbell(&qp->rq.ring);
	if (need == MEDGE_DOORBELL_NONE)
		return 0;
	if (need >= MEDGE_DOORBELL_LATE && medge_late_defer_recv(qp, need))
		return 0;
	return medge_recv_ring(ibqp->context, ibqp->handle);
}

int medge_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr,
		    struct ibv_recv_wr **bad_wr)
{
	struct medge_qp *qp = to_medge_qp(ibqp);
	struct medge_queue *rq = &qp->rq;
	struct ibv_recv_wr *first = wr;
	int ret = 0, err;

	medge_lock(&rq->lock);
	if (ibqp->state == IBV_QPS_RESET)
		ret = EINVAL;
	for (; wr && !ret; wr = wr->next) {
		ret = medge_push_recv(rq, wr);
		if (ret)
			break;
	}
	if (ret)
		*bad_wr = wr;

	if (wr != first) {
		err = medge_recv_publish(qp);
		if (err && !ret) {
			ret = err;
			*bad_wr = first;
		}
	}
	medge_unlock(&rq->lock);
	return ret;
}
