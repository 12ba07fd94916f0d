/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Control path: verbs that are a command to the kernel. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compat.h"
#include "medge.h"

enum {
	MEDGE_QP_COMP_MASK = IBV_QP_INIT_ATTR_PD |
			     IBV_QP_INIT_ATTR_XRCD |
			     IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
};

static int medge_query_device_ex(struct ibv_context *context,
				 const struct ibv_query_device_ex_input *input,
				 struct ibv_device_attr_ex *attr,
				 size_t attr_size)
{
	struct ib_uverbs_ex_query_device_resp resp;
	size_t resp_size = sizeof(resp);
	uint64_t fw_ver;
	int ret;

	ret = ibv_cmd_query_device_any(context, input, attr, attr_size, &resp,
				       &resp_size);
	if (ret)
		return ret;

	fw_ver = resp.base.fw_ver;
	snprintf(attr->orig_attr.fw_ver, sizeof(attr->orig_attr.fw_ver),
		 "%u.%u.%u", (unsigned int)(fw_ver >> 32 & 0xffff),
		 (unsigned int)(fw_ver >> 16 & 0xffff),
		 (unsigned int)(fw_ver & 0xffff));
	return 0;
}

static int medge_query_port(struct ibv_context *context, uint8_t port,
			    struct ibv_port_attr *attr)
{
	struct ibv_query_port cmd = {};

	return ibv_cmd_query_port(context, port, attr, &cmd, sizeof(cmd));
}

/* What a command has made of @vmr; if it failed, nothing. */
static struct ibv_mr *mr_made(struct verbs_mr *vmr, int ret)
{
	if (!ret)
		return &vmr->ibv_mr;
	free(vmr);
	errno = ret;
	return NULL;
}

static struct ibv_mr *medge_reg_mr(struct ibv_pd *pd, void *addr, size_t length,
				   uint64_t hca_va, int access)
{
	struct ib_uverbs_reg_mr_resp resp = {};
	struct ibv_reg_mr cmd = {};
	struct verbs_mr *vmr;
	int ret;

	vmr = calloc(1, sizeof(*vmr));
	if (!vmr)
		return NULL;

	ret = ibv_cmd_reg_mr(pd, addr, length, hca_va, access, vmr, &cmd,
			     sizeof(cmd), &resp, sizeof(resp));
	return mr_made(vmr, ret);
}

static struct ibv_mr *medge_alloc_null_mr(struct ibv_pd *pd)
{
	struct {
		struct ibv_reg_mr ibv_cmd;
		struct medge_reg_mr_req drv;
	} cmd = { .drv.flags = MEDGE_REG_MR_NULL };
	struct ib_uverbs_reg_mr_resp resp = {};
	struct verbs_mr *vmr;
	int ret;

	vmr = calloc(1, sizeof(*vmr));
	if (!vmr)
		return NULL;

	ret = ibv_cmd_reg_mr(pd, NULL, SIZE_MAX, 0, IBV_ACCESS_LOCAL_WRITE, vmr,
			     &cmd.ibv_cmd, sizeof(cmd), &resp, sizeof(resp));
	vmr->mr_type = IBV_MR_TYPE_NULL_MR;
	vmr->ibv_mr.pd = pd;
	vmr->ibv_mr.length = SIZE_MAX;
	return mr_made(vmr, ret);
}

static struct ibv_mr *medge_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset,
					  size_t length, uint64_t iova, int fd,
					  int access)
{
	struct verbs_mr *vmr = calloc(1, sizeof(*vmr));

	if (!vmr)
		return NULL;
	return mr_made(vmr, ibv_cmd_reg_dmabuf_mr(pd, offset, length, iova, fd,
						  access, vmr, NULL));
}

static int medge_rereg_mr(struct verbs_mr *vmr, int flags, struct ibv_pd *pd,
			  void *addr, size_t length, int access)
{
	struct ib_uverbs_rereg_mr_resp resp = {};
	struct ibv_rereg_mr cmd = {};

	return ibv_cmd_rereg_mr(vmr, flags, addr, length, (uintptr_t)addr,
				access, pd, &cmd, sizeof(cmd), &resp,
				sizeof(resp));
}

static struct ibv_mr *medge_import_mr(struct ibv_pd *pd, uint32_t handle)
{
	struct verbs_mr *vmr = calloc(1, sizeof(*vmr));

	if (!vmr)
		return NULL;
	return mr_made(vmr, ibv_cmd_query_mr(pd, vmr, handle));
}

static void medge_unimport_mr(struct ibv_mr *mr)
{
	free(verbs_get_mr(mr));
}

static int medge_dereg_mr(struct verbs_mr *vmr)
{
	int ret;

	ret = ibv_cmd_dereg_mr(vmr);
	if (ret)
		return ret;
	free(vmr);
	return 0;
}

/*
 * ib_core gives the neighbour table a second to learn a peer's address, which
 * is as long as the table waits before it asks again: one ARP or solicitation
 * that is lost, and the call ends with ETIMEDOUT. So ask as often as the table
 * does before it gives up (mcast_solicit).
 */
#define MEDGE_RESOLVE_TRIES 3

static bool resolve_again(int ret, unsigned int *tries)
{
	return ret == ETIMEDOUT && ++*tries < MEDGE_RESOLVE_TRIES;
}

static struct ibv_ah *medge_create_ah(struct ibv_pd *pd,
				      struct ibv_ah_attr *attr)
{
	struct {
		struct ib_uverbs_create_ah_resp ibv_resp;
		struct medge_create_ah_resp drv;
	} resp = {};
	unsigned int tries = 0;
	struct medge_ah *ah;
	int ret;

	static_assert(offsetof(typeof(resp), drv) == sizeof(resp.ibv_resp),
		      "the driver's part follows without padding");

	ah = calloc(1, sizeof(*ah));
	if (!ah)
		return NULL;
	do {
		ret = ibv_cmd_create_ah(pd, &ah->ah, attr, &resp.ibv_resp,
					sizeof(resp));
	} while (resolve_again(ret, &tries));
	if (ret) {
		free(ah);
		errno = ret;
		return NULL;
	}
	ah->number = resp.drv.ah;
	return &ah->ah;
}

static int medge_destroy_ah(struct ibv_ah *ibah)
{
	int ret;

	medge_late_datagrams(to_medge_context(ibah->context));
	ret = ibv_cmd_destroy_ah(ibah);
	if (ret)
		return ret;
	free(to_medge_ah(ibah));
	return 0;
}

int medge_queue_map(struct medge_queue *q, int cmd_fd,
		    const struct medge_ring_map *map, uint32_t max_sge,
		    size_t wqe_size)
{
	int ret;

	ret = medge_ring_map(&q->ring, cmd_fd, map);
	if (ret)
		return ret;
	if (q->ring.hdr && wqe_size > (size_t)1 << q->ring.shift)
		return EPROTO;
	q->max_sge = max_sge;
	return 0;
}

static int medge_qp_map(struct medge_qp *qp, int cmd_fd,
			const struct ibv_qp_cap *cap,
			const struct medge_create_qp_resp *resp)
{
	size_t send_data = cap->max_send_sge * sizeof(struct medge_sge);
	int ret;

	if (send_data < cap->max_inline_data)
		send_data = cap->max_inline_data;
	qp->max_inline = cap->max_inline_data;

	ret = medge_queue_map(&qp->sq, cmd_fd, &resp->sq, cap->max_send_sge,
			      sizeof(struct medge_send_wqe) + send_data);
	if (ret)
		return ret;
	return medge_queue_map(&qp->rq, cmd_fd, &resp->rq, cap->max_recv_sge,
			       sizeof(struct medge_recv_wqe) +
				       cap->max_recv_sge *
					       sizeof(struct medge_sge));
}

void medge_qp_free(struct medge_qp *qp)
{
	medge_ring_unmap(&qp->sq.ring);
	medge_ring_unmap(&qp->rq.ring);
	medge_lock_destroy(&qp->sq.lock);
	medge_lock_destroy(&qp->rq.lock);
	free(qp);
}

struct ibv_qp *medge_create_qp_flags(struct ibv_context *context,
				     struct ibv_qp_init_attr_ex *attr,
				     uint32_t flags)
{
	struct {
		struct ib_uverbs_create_qp_resp ibv_resp;
		struct medge_create_qp_resp drv;
	} resp = {};
	struct {
		struct ibv_create_qp ibv_cmd;
		struct medge_create_qp_req drv;
	} cmd = { .drv.flags = flags };
	struct medge_qp *qp;
	bool single, ex;
	int ret;

	static_assert(offsetof(typeof(cmd), drv) == sizeof(cmd.ibv_cmd) &&
			      offsetof(typeof(resp), drv) ==
				      sizeof(resp.ibv_resp),
		      "the driver's parts follow without padding");

	ex = attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	if (attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS &&
	    attr->create_flags) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	/* What is no flag needs not be passed on. */
	attr->comp_mask &= ~(uint32_t)IBV_QP_INIT_ATTR_CREATE_FLAGS;
	if (attr->comp_mask & ~MEDGE_QP_COMP_MASK ||
	    (ex && !medge_wr_has(attr->qp_type, attr->send_ops_flags))) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return NULL;
	single = attr->comp_mask & IBV_QP_INIT_ATTR_PD &&
		 to_medge_pd(attr->pd)->td;
	medge_lock_init(&qp->sq.lock, single);
	medge_lock_init(&qp->rq.lock, single);
	medge_late_init(qp);

	if (ex)
		medge_qp_ex_prepare(&qp->vqp);
	ret = ibv_cmd_create_qp_ex(context, &qp->vqp, attr, &cmd.ibv_cmd,
				   sizeof(cmd), &resp.ibv_resp, sizeof(resp));
	if (ret)
		goto err_free;

	ret = medge_qp_map(qp, context->cmd_fd, &attr->cap, &resp.drv);
	if (ret) {
		verbs_err(verbs_get_ctx(context),
			  "cannot map the rings of QP %u: %s\n",
			  qp->vqp.qp.qp_num, strerror(ret));
		goto err_destroy;
	}

	if (ex)
		medge_wr_init(qp);
	qp->sig_all = attr->sq_sig_all;
	qp->max_msg = to_medge_context(context)->max_msg;
	medge_late_add(qp);
	return &qp->vqp.qp;

err_destroy:
	ibv_cmd_destroy_qp(&qp->vqp.qp);
err_free:
	medge_qp_free(qp);
	errno = ret;
	return NULL;
}

static struct ibv_qp *medge_create_qp_ex(struct ibv_context *context,
					 struct ibv_qp_init_attr_ex *attr)
{
	return medge_create_qp_flags(context, attr, 0);
}

static struct ibv_qp *medge_create_qp(struct ibv_pd *pd,
				      struct ibv_qp_init_attr *plain)
{
	struct ibv_qp_init_attr_ex attr = {};
	struct ibv_qp *qp;

	memcpy(&attr, plain, sizeof(*plain));
	attr.comp_mask = IBV_QP_INIT_ATTR_PD;
	attr.pd = pd;
	qp = medge_create_qp_ex(pd->context, &attr);
	if (qp)
		plain->cap = attr.cap;
	return qp;
}

/* RESET empties the rings; no post may see them half way. */
static int medge_reset_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr,
			  int attr_mask)
{
	struct medge_qp *qp = to_medge_qp(ibqp);
	struct ibv_modify_qp cmd = {};
	int ret;

	medge_lock(&qp->sq.lock);
	medge_lock(&qp->rq.lock);
	ret = ibv_cmd_modify_qp(ibqp, attr, attr_mask, &cmd, sizeof(cmd));
	if (!ret) {
		ibqp->state = IBV_QPS_RESET;
		medge_ring_resync(&qp->sq.ring);
		medge_ring_resync(&qp->rq.ring);
	}
	medge_unlock(&qp->rq.lock);
	medge_unlock(&qp->sq.lock);
	if (!ret) {
		medge_cq_clean(ibqp->send_cq, ibqp->qp_num);
		if (ibqp->recv_cq != ibqp->send_cq)
			medge_cq_clean(ibqp->recv_cq, ibqp->qp_num);
	}
	return ret;
}

static int medge_modify_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr,
			   int attr_mask)
{
	struct ibv_modify_qp cmd = {};
	unsigned int tries = 0;
	int ret;

	/* What was posted before this counts as posted. */
	medge_late_now(to_medge_qp(ibqp));
	if (attr_mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_RESET)
		return medge_reset_qp(ibqp, attr, attr_mask);
	do {
		ret = ibv_cmd_modify_qp(ibqp, attr, attr_mask, &cmd,
					sizeof(cmd));
	} while (resolve_again(ret, &tries));
	return ret;
}

static int medge_query_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr,
			  int attr_mask, struct ibv_qp_init_attr *init_attr)
{
	struct ibv_query_qp cmd = {};

	return ibv_cmd_query_qp(ibqp, attr, attr_mask, init_attr, &cmd,
				sizeof(cmd));
}

static int medge_destroy_qp(struct ibv_qp *ibqp)
{
	int ret;

	medge_late_now(to_medge_qp(ibqp));
	ret = ibv_cmd_destroy_qp(ibqp);
	if (ret)
		return ret;
	if (ibqp->send_cq)
		medge_spin_forget(to_medge_cq(ibqp->send_cq), to_medge_qp(ibqp));
	medge_late_forget(to_medge_qp(ibqp));
	medge_qp_free(to_medge_qp(ibqp));
	return 0;
}

static void medge_free_context(struct ibv_context *context)
{
	medge_drop_context(to_medge_context(context));
}

/*
 * query_qp_data_in_order is left to libibverbs, which answers no. Frames of a
 * strict op are placed in order, but the kernel copies each with instructions
 * (x86's fast strings) whose stores may become visible in any order.
 */
const struct verbs_context_ops medge_context_ops = {
	.advise_mr = ibv_cmd_advise_mr,
	.alloc_dm = medge_alloc_dm,
	.alloc_mw = medge_alloc_mw,
	.alloc_null_mr = medge_alloc_null_mr,
	.alloc_parent_domain = medge_alloc_parent_domain,
	.alloc_pd = medge_alloc_pd,
	.alloc_td = medge_alloc_td,
	.attach_mcast = ibv_cmd_attach_mcast,
	.bind_mw = medge_bind_mw,
	.close_xrcd = medge_close_xrcd,
	.create_ah = medge_create_ah,
	.create_cq = medge_create_cq,
	.create_cq_ex = medge_create_cq_ex,
	.create_qp = medge_create_qp,
	.create_qp_ex = medge_create_qp_ex,
	.create_srq = medge_create_srq,
	.create_srq_ex = medge_create_srq_ex,
	.dealloc_mw = medge_dealloc_mw,
	.dealloc_pd = medge_dealloc_pd,
	.dealloc_td = medge_dealloc_td,
	.dereg_mr = medge_dereg_mr,
	.destroy_ah = medge_destroy_ah,
	.destroy_cq = medge_destroy_cq,
	.destroy_qp = medge_destroy_qp,
	.destroy_srq = medge_destroy_srq,
	.detach_mcast = ibv_cmd_detach_mcast,
	.free_context = medge_free_context,
	.free_dm = medge_free_dm,
	.get_srq_num = medge_get_srq_num,
	.import_dm = medge_import_dm,
	.import_mr = medge_import_mr,
	.import_pd = medge_import_pd,
	.modify_cq = medge_modify_cq,
	.modify_qp = medge_modify_qp,
	.modify_srq = medge_modify_srq,
	.open_qp = medge_open_qp,
	.open_xrcd = medge_open_xrcd,
	.poll_cq = medge_poll_cq,
	.post_recv = medge_post_recv,
	.post_send = medge_post_send,
	.post_srq_recv = medge_post_srq_recv,
	.query_device_ex = medge_query_device_ex,
	.query_port = medge_query_port,
	MEDGE_QUERY_PORT_SPEED
	.query_qp = medge_query_qp,
	.query_srq = medge_query_srq,
	.query_rt_values = medge_query_rt_values,
	.reg_dm_mr = medge_reg_dm_mr,
	.reg_dmabuf_mr = medge_reg_dmabuf_mr,
	.reg_mr = medge_reg_mr,
	.req_notify_cq = medge_req_notify_cq,
	.rereg_mr = medge_rereg_mr,
	.resize_cq = medge_resize_cq,
	.unimport_dm = medge_unimport_dm,
	.unimport_mr = medge_unimport_mr,
	.unimport_pd = medge_unimport_pd,
};
