// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Shared receive queues. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "medge.h"

static void medge_srq_free(struct medge_srq *srq)
{
	medge_ring_unmap(&srq->rq.ring);
	medge_lock_destroy(&srq->rq.lock);
	free(srq);
}

static int medge_srq_map(struct medge_srq *srq, struct ibv_context *context,
			 uint32_t max_sge,
			 const struct medge_create_srq_resp *resp)
{
	int ret;

	ret = medge_queue_map(&srq->rq, context->cmd_fd, &resp->rq, max_sge,
			      sizeof(struct medge_recv_wqe) +
				      max_sge * sizeof(struct medge_sge));
	if (!ret && !srq->rq.ring.hdr)
		ret = EPROTO;
	if (ret)
		verbs_err(verbs_get_ctx(context),
			  "cannot map the ring of an SRQ: %s\n", strerror(ret));
	return ret;
}

struct ibv_srq *medge_create_srq_ex(struct ibv_context *context,
				    struct ibv_srq_init_attr_ex *attr)
{
	struct {
		struct ib_uverbs_create_srq_resp ibv_resp;
		struct medge_create_srq_resp drv;
	} resp = {};
	struct ibv_create_xsrq cmd = {};
	struct medge_srq *srq;
	int ret;

	static_assert(offsetof(typeof(resp), drv) == sizeof(resp.ibv_resp),
		      "the driver's part follows without padding");

	srq = calloc(1, sizeof(*srq));
	if (!srq)
		return NULL;
	medge_lock_init(&srq->rq.lock,
			attr->comp_mask & IBV_SRQ_INIT_ATTR_PD && attr->pd &&
				to_medge_pd(attr->pd)->td);
	ret = ibv_cmd_create_srq_ex(context, &srq->vsrq, attr, &cmd,
				    sizeof(cmd), &resp.ibv_resp, sizeof(resp));
	if (ret)
		goto err_free;
	ret = medge_srq_map(srq, context, attr->attr.max_sge, &resp.drv);
	if (!ret)
		return &srq->vsrq.srq;

	ibv_cmd_destroy_srq(&srq->vsrq.srq);
err_free:
	medge_srq_free(srq);
	errno = ret;
	return NULL;
}

struct ibv_srq *medge_create_srq(struct ibv_pd *pd,
				 struct ibv_srq_init_attr *plain)
{
	struct ibv_srq_init_attr_ex attr = {
		.srq_context = plain->srq_context,
		.attr = plain->attr,
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = IBV_SRQT_BASIC,
		.pd = pd,
	};
	struct ibv_srq *srq;

	srq = medge_create_srq_ex(pd->context, &attr);
	if (srq)
		plain->attr = attr.attr;
	return srq;
}

int medge_get_srq_num(struct ibv_srq *ibsrq, uint32_t *srq_num)
{
	struct medge_srq *srq = to_medge_srq(ibsrq);

	if (srq->vsrq.srq_type != IBV_SRQT_XRC)
		return EINVAL;
	*srq_num = srq->vsrq.srq_num;
	return 0;
}

static int medge_resize_step(struct ibv_srq *srq, struct ibv_srq_attr *attr,
			     int mask, enum medge_resize_step step,
			     struct medge_create_srq_resp *resp)
{
	struct {
		struct ibv_modify_srq ibv_cmd;
		struct medge_modify_srq_req drv;
	} cmd = { .drv = { .resp = (uintptr_t)resp, .step = step } };

	static_assert(offsetof(typeof(cmd), drv) == sizeof(cmd.ibv_cmd),
		      "the driver's part follows without padding");

	return ibv_cmd_modify_srq(srq, attr, mask, &cmd.ibv_cmd, sizeof(cmd));
}

/* The kernel moves what is in the old ring to the new one, at the same indices. */
static int medge_resize_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr,
			    int mask)
{
	struct medge_srq *srq = to_medge_srq(ibsrq);
	struct medge_create_srq_resp resp = {};
	struct medge_ring old;
	bool steps;
	int ret;

	medge_lock(&srq->rq.lock);
	old = srq->rq.ring;
	steps = medge_ring_has_steps(&old);
	ret = medge_resize_step(ibsrq, attr, mask, steps ? MEDGE_RESIZE_OFFER :
				MEDGE_RESIZE_AT_ONCE, &resp);
	if (!ret)
		ret = medge_srq_map(srq, ibsrq->context, srq->rq.max_sge, &resp);
	if (!ret && steps) {
		ret = medge_resize_step(ibsrq, attr, mask, MEDGE_RESIZE_TAKE,
					&resp);
		medge_ring_resync(&srq->rq.ring);
	}
	if (!ret) {
		medge_ring_unmap(&old);
	} else if (steps) {
		if (srq->rq.ring.hdr != old.hdr)
			medge_ring_unmap(&srq->rq.ring);
		srq->rq.ring = old;
		medge_resize_step(ibsrq, attr, mask, MEDGE_RESIZE_DECLINE,
				  &resp);
	}
	medge_unlock(&srq->rq.lock);
	return ret;
}

int medge_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask)
{
	struct ibv_modify_srq cmd = {};

	if (mask & IBV_SRQ_MAX_WR)
		return medge_resize_srq(srq, attr, mask);
	return ibv_cmd_modify_srq(srq, attr, mask, &cmd, sizeof(cmd));
}

int medge_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
	struct ibv_query_srq cmd = {};

	return ibv_cmd_query_srq(srq, attr, &cmd, sizeof(cmd));
}

int medge_destroy_srq(struct ibv_srq *ibsrq)
{
	int ret;

	ret = ibv_cmd_destroy_srq(ibsrq);
	if (ret)
		return ret;
	medge_srq_free(to_medge_srq(ibsrq));
	return 0;
}

int medge_post_srq_recv(struct ibv_srq *ibsrq, struct ibv_recv_wr *wr,
			struct ibv_recv_wr **bad_wr)
{
	struct medge_queue *rq = &to_medge_srq(ibsrq)->rq;
	struct ibv_recv_wr *first = wr;
	int ret = 0, err;

	medge_lock(&rq->lock);
	for (; wr; wr = wr->next) {
		ret = medge_push_recv(rq, wr);
		if (ret) {
			*bad_wr = wr;
			break;
		}
	}
	if (wr != first) {
		medge_ring_publish(&rq->ring);
		if (medge_ring_need_doorbell(&rq->ring)) {
			err = medge_srq_ring(ibsrq);
			if (err && !ret) {
				ret = err;
				*bad_wr = first;
			}
		}
	}
	medge_unlock(&rq->lock);
	return ret;
}
