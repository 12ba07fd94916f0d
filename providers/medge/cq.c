// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Completion queues: made, resized, moderated, unmade. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "compat.h"
#include "medge.h"

enum {
	MEDGE_CQ_WC_FLAGS = IBV_CREATE_CQ_SUP_WC_FLAGS &
			    ~(uint64_t)(IBV_WC_EX_WITH_CVLAN |
					IBV_WC_EX_WITH_FLOW_TAG |
					IBV_WC_EX_WITH_TM_INFO),
	MEDGE_CQ_COMP_MASK = IBV_CQ_INIT_ATTR_MASK_FLAGS |
			     IBV_CQ_INIT_ATTR_MASK_PD,
	MEDGE_CQ_FLAGS = IBV_CREATE_CQ_ATTR_SINGLE_THREADED,
};

static int medge_cq_map(struct medge_cq *cq, struct ibv_context *context,
			const struct medge_ring_map *map)
{
	struct medge_ring ring;
	int ret;

	ret = medge_ring_map(&ring, context->cmd_fd, map);
	if (!ret && (!ring.hdr || ring.shift != MEDGE_CQE_SHIFT)) {
		medge_ring_unmap(&ring);
		ret = EPROTO;
	}
	if (ret) {
		verbs_err(verbs_get_ctx(context),
			  "cannot map the completion ring: %s\n",
			  strerror(ret));
		return ret;
	}
	cq->ring = ring;
	return 0;
}

static bool medge_cq_is_single(const struct ibv_cq_init_attr_ex *attr)
{
	if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS &&
	    attr->flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED)
		return true;
	return attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD &&
	       attr->parent_domain && to_medge_pd(attr->parent_domain)->td;
}

static struct medge_cq *medge_new_cq(struct ibv_context *context,
				     struct ibv_cq_init_attr_ex *attr)
{
	struct {
		struct ib_uverbs_ex_create_cq_resp ibv_resp;
		struct medge_create_cq_resp drv;
	} resp = {};
	struct ibv_create_cq_ex cmd = {};
	struct ibv_cq_init_attr_ex plain = {
		.cqe = attr->cqe,
		.cq_context = attr->cq_context,
		.channel = attr->channel,
		.comp_vector = attr->comp_vector,
	};
	struct medge_cq *cq;
	int ret;

	static_assert(offsetof(typeof(resp), drv) == sizeof(resp.ibv_resp),
		      "the driver's part follows without padding");

	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return NULL;
	/* What the flags ask for is done here, and by every CQ of the kernel's. */
	ret = medge_cmd_create_cq_ex(context, &plain, &cq->vcq, &cmd,
				     sizeof(cmd), &resp.ibv_resp, sizeof(resp));
	if (ret)
		goto err_free;
	ret = medge_cq_map(cq, context, &resp.drv.cq);
	if (ret)
		goto err_destroy;
	medge_lock_init(&cq->lock, medge_cq_is_single(attr));
	medge_spin_init(cq);
	return cq;

err_destroy:
	ibv_cmd_destroy_cq(&cq->vcq.cq);
err_free:
	free(cq);
	errno = ret;
	return NULL;
}

struct ibv_cq *medge_create_cq(struct ibv_context *context, int cqe,
			       struct ibv_comp_channel *channel,
			       int comp_vector)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = cqe,
		.channel = channel,
		.comp_vector = comp_vector,
	};
	struct medge_cq *cq;

	if (cqe <= 0) {
		errno = EINVAL;
		return NULL;
	}
	cq = medge_new_cq(context, &attr);
	return cq ? &cq->vcq.cq : NULL;
}

struct ibv_cq_ex *medge_create_cq_ex(struct ibv_context *context,
				     struct ibv_cq_init_attr_ex *attr)
{
	struct medge_cq *cq;

	if (attr->wc_flags & ~(uint64_t)MEDGE_CQ_WC_FLAGS ||
	    attr->comp_mask & ~MEDGE_CQ_COMP_MASK ||
	    (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS &&
	     attr->flags & ~MEDGE_CQ_FLAGS)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	cq = medge_new_cq(context, attr);
	if (!cq)
		return NULL;
	medge_cq_ex_init(cq, attr->wc_flags);
	return &cq->vcq.cq_ex;
}

static int medge_resize_step(struct medge_cq *cq, int cqe,
			     enum medge_resize_step step,
			     struct medge_ring_map *map)
{
	struct {
		struct ib_uverbs_resize_cq_resp ibv_resp;
		struct medge_create_cq_resp drv;
	} resp = {};
	struct {
		struct ibv_resize_cq ibv_cmd;
		struct medge_resize_cq_req drv;
	} cmd = { .drv.step = step };
	int ret;

	static_assert(offsetof(typeof(resp), drv) == sizeof(resp.ibv_resp) &&
		      offsetof(typeof(cmd), drv) == sizeof(cmd.ibv_cmd),
		      "the driver's part follows without padding");

	ret = ibv_cmd_resize_cq(&cq->vcq.cq, cqe, &cmd.ibv_cmd, sizeof(cmd),
				&resp.ibv_resp, sizeof(resp));
	*map = resp.drv.cq;
	return ret;
}

/* The new ring is there and mapped. What became of a step without an answer is in the old one. */
static int medge_take_ring(struct medge_cq *cq, int cqe,
			   struct medge_ring *old)
{
	struct medge_ring_map none;
	int ret;

	ret = medge_resize_step(cq, cqe, MEDGE_RESIZE_TAKE, &none);
	if (!medge_ring_is_left(old)) {
		medge_ring_unmap(&cq->ring);
		cq->ring = *old;
		return ret;
	}
	medge_ring_resync(&cq->ring);
	cq->vcq.cq.cqe = cq->ring.nentries;
	return 0;
}

/* The kernel moves what is in the old ring to the new one, at the same indices. */
int medge_resize_cq(struct ibv_cq *ibcq, int cqe)
{
	struct medge_cq *cq = to_medge_cq(ibcq);
	struct medge_ring_map map;
	struct medge_ring old;
	bool steps;
	int ret;

	if (cqe <= 0)
		return EINVAL;
	medge_lock(&cq->lock);
	old = cq->ring;
	steps = medge_ring_has_steps(&old);
	ret = medge_resize_step(cq, cqe, steps ? MEDGE_RESIZE_OFFER :
				MEDGE_RESIZE_AT_ONCE, &map);
	if (!ret)
		ret = medge_cq_map(cq, ibcq->context, &map);
	if (!ret && steps)
		ret = medge_take_ring(cq, cqe, &old);
	if (!ret)
		medge_ring_unmap(&old);
	else if (steps)
		medge_resize_step(cq, cqe, MEDGE_RESIZE_DECLINE, &map);
	medge_unlock(&cq->lock);
	return ret;
}

int medge_req_notify_cq(struct ibv_cq *ibcq, int solicited_only)
{
	struct medge_cq *cq = to_medge_cq(ibcq);
	bool done, late;

	medge_lock(&cq->lock);
	late = cq->late;
	done = medge_ring_arm(&cq->ring, solicited_only ?
			      MEDGE_CQ_ARMED_SOLICITED : MEDGE_CQ_ARMED_NEXT);
	medge_unlock(&cq->lock);
	/* He is about to wait. */
	if (late)
		medge_late_ring(cq);
	return done ? 0 : ibv_cmd_req_notify_cq(ibcq, solicited_only);
}

int medge_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr)
{
	struct ibv_modify_cq cmd = {};

	return ibv_cmd_modify_cq(cq, attr, &cmd, sizeof(cmd));
}

int medge_destroy_cq(struct ibv_cq *ibcq)
{
	struct medge_cq *cq = to_medge_cq(ibcq);
	int ret;

	ret = ibv_cmd_destroy_cq(ibcq);
	if (ret)
		return ret;

	medge_ring_unmap(&cq->ring);
	medge_lock_destroy(&cq->lock);
	free(cq);
	return 0;
}

/* What is kept moves up to the kernel's end, where nothing is written meanwhile. */
void medge_cq_clean(struct ibv_cq *ibcq, uint32_t qp_num)
{
	struct medge_cq *cq;
	struct medge_ring *ring;
	uint32_t from, to;

	if (!ibcq)
		return;
	cq = to_medge_cq(ibcq);
	ring = &cq->ring;
	medge_lock(&cq->lock);
	ring->prod = medge_ring_load(&ring->hdr->prod);
	from = ring->prod;
	to = ring->prod;
	while (from != ring->cons) {
		struct medge_cqe *cqe = medge_ring_entry(ring, --from);

		if (cqe->qp_num == qp_num)
			continue;
		if (--to != from)
			memcpy(medge_ring_entry(ring, to), cqe, sizeof(*cqe));
	}
	ring->cons = to;
	medge_ring_release(ring);
	medge_unlock(&cq->lock);
}
