// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Work requests built in the send ring, call by call (ibv_wr_*). */
#include <errno.h>
#include <string.h>

#include "compat.h"
#include "medge.h"
#include "wqe.h"

static struct medge_qp *medge_from_qp_ex(struct ibv_qp_ex *qp_ex)
{
	return container_of(qp_ex, struct medge_qp, vqp.qp_ex);
}

static void medge_wr_fail(struct medge_qp *qp, int error)
{
	if (!qp->wrs.error)
		qp->wrs.error = error;
	qp->wrs.wqe = NULL;
}

/* The next WQE, of @opcode; NULL: no room, or one before it was wrong. */
static struct medge_send_wqe *medge_wr_next(struct medge_qp *qp, uint8_t opcode)
{
	struct medge_send_wqe *wqe;

	if (qp->wrs.error)
		return NULL;
	wqe = medge_ring_reserve(&qp->sq.ring);
	qp->wrs.wqe = wqe;
	if (!wqe) {
		medge_wr_fail(qp, ENOMEM);
		return NULL;
	}
	memset(wqe, 0, sizeof(*wqe));
	wqe->wr_id = qp->vqp.qp_ex.wr_id;
	wqe->opcode = opcode;
	/* Inline is what the data setter makes of it. */
	wqe->flags = medge_wqe_flags_of(qp, qp->vqp.qp_ex.wr_flags &
						    ~(unsigned int)IBV_SEND_INLINE);
	qp->sq.ring.prod++;
	return wqe;
}

/* ---- start and end of a list ---- */

static void medge_wr_start(struct ibv_qp_ex *qp_ex)
{
	struct medge_qp *qp = medge_from_qp_ex(qp_ex);

	medge_lock(&qp->sq.lock);
	qp->wrs.wqe = NULL;
	qp->wrs.first = qp->sq.ring.prod;
	qp->wrs.error = medge_may_send(qp) ? 0 : EINVAL;
}

static int medge_wr_complete(struct ibv_qp_ex *qp_ex)
{
	struct medge_qp *qp = medge_from_qp_ex(qp_ex);
	int ret = qp->wrs.error;

	if (ret) {
		qp->sq.ring.prod = qp->wrs.first;
		/* He may try again, and do nothing else. */
		if (ret == ENOMEM)
			medge_late_now(qp);
	} else if (qp->sq.ring.prod != qp->wrs.first) {
		ret = medge_send_publish(qp);
	}
	medge_unlock(&qp->sq.lock);
	return ret;
}

static void medge_wr_abort(struct ibv_qp_ex *qp_ex)
{
	struct medge_qp *qp = medge_from_qp_ex(qp_ex);

	qp->sq.ring.prod = qp->wrs.first;
	medge_unlock(&qp->sq.lock);
}

/* ---- operations ---- */

static void medge_wr_to(struct ibv_qp_ex *qp_ex, uint8_t opcode, uint32_t rkey,
			uint64_t remote_addr, __be32 imm)
{
	struct medge_send_wqe *wqe;

	wqe = medge_wr_next(medge_from_qp_ex(qp_ex), opcode);
	if (!wqe)
		return;
	wqe->rkey = rkey;
	wqe->remote_addr = remote_addr;
	wqe->imm = imm;
}

static void medge_wr_rdma_write(struct ibv_qp_ex *qp, uint32_t rkey,
				uint64_t remote_addr)
{
	medge_wr_to(qp, MEDGE_WQE_WRITE, rkey, remote_addr, 0);
}

static void medge_wr_rdma_write_imm(struct ibv_qp_ex *qp, uint32_t rkey,
				    uint64_t remote_addr, __be32 imm)
{
	medge_wr_to(qp, MEDGE_WQE_WRITE_IMM, rkey, remote_addr, imm);
}

static void medge_wr_rdma_read(struct ibv_qp_ex *qp, uint32_t rkey,
			       uint64_t remote_addr)
{
	medge_wr_to(qp, MEDGE_WQE_READ, rkey, remote_addr, 0);
}

static void medge_wr_send(struct ibv_qp_ex *qp)
{
	medge_wr_to(qp, MEDGE_WQE_SEND, 0, 0, 0);
}

static void medge_wr_send_imm(struct ibv_qp_ex *qp, __be32 imm)
{
	medge_wr_to(qp, MEDGE_WQE_SEND_IMM, 0, 0, imm);
}

static void medge_wr_send_inv(struct ibv_qp_ex *qp, uint32_t rkey)
{
	medge_wr_to(qp, MEDGE_WQE_SEND_INV, rkey, 0, 0);
}

static void medge_wr_local_inv(struct ibv_qp_ex *qp, uint32_t rkey)
{
	medge_wr_to(qp, MEDGE_WQE_LOCAL_INV, rkey, 0, 0);
}

static void medge_wr_atomic(struct ibv_qp_ex *qp_ex, uint8_t opcode,
			    uint32_t rkey, uint64_t remote_addr,
			    uint64_t compare_add, uint64_t swap)
{
	struct medge_send_wqe *wqe;

	wqe = medge_wr_next(medge_from_qp_ex(qp_ex), opcode);
	if (!wqe)
		return;
	wqe->rkey = rkey;
	wqe->remote_addr = remote_addr;
	wqe->compare_add = compare_add;
	wqe->swap = swap;
}

static void medge_wr_cmp_swp(struct ibv_qp_ex *qp, uint32_t rkey,
			     uint64_t remote_addr, uint64_t compare,
			     uint64_t swap)
{
	medge_wr_atomic(qp, MEDGE_WQE_CMP_SWAP, rkey, remote_addr, compare,
			swap);
}

static void medge_wr_fetch_add(struct ibv_qp_ex *qp, uint32_t rkey,
			       uint64_t remote_addr, uint64_t add)
{
	medge_wr_atomic(qp, MEDGE_WQE_FETCH_ADD, rkey, remote_addr, add, 0);
}

static void medge_wr_bind_mw(struct ibv_qp_ex *qp_ex, struct ibv_mw *mw,
			     uint32_t rkey, const struct ibv_mw_bind_info *info)
{
	struct medge_send_wqe *wqe;

	(void)mw;
	wqe = medge_wr_next(medge_from_qp_ex(qp_ex), MEDGE_WQE_BIND_MW);
	if (wqe)
		medge_put_bind(wqe, rkey, info);
}

static void medge_wr_set_ud_addr(struct ibv_qp_ex *qp_ex, struct ibv_ah *ah,
				 uint32_t remote_qpn, uint32_t remote_qkey)
{
	struct medge_send_wqe *wqe = medge_from_qp_ex(qp_ex)->wrs.wqe;

	if (!wqe)
		return;
	wqe->ud_ah = to_medge_ah(ah)->number;
	wqe->ud_qpn = remote_qpn;
	wqe->ud_qkey = remote_qkey;
}

static void medge_wr_set_xrc_srqn(struct ibv_qp_ex *qp_ex, uint32_t srqn)
{
	struct medge_send_wqe *wqe = medge_from_qp_ex(qp_ex)->wrs.wqe;

	if (wqe)
		wqe->srqn = srqn;
}

/* ---- their data ---- */

static void *medge_inline_start(struct medge_qp *qp, size_t len)
{
	struct medge_send_wqe *wqe = qp->wrs.wqe;

	if (!wqe)
		return NULL;
	if (len > qp->max_inline) {
		medge_wr_fail(qp, EINVAL);
		return NULL;
	}
	wqe->flags |= MEDGE_WQE_INLINE;
	wqe->inline_len = len;
	return wqe + 1;
}

static void medge_wr_set_inline_data(struct ibv_qp_ex *qp_ex, void *addr,
				     size_t length)
{
	void *to = medge_inline_start(medge_from_qp_ex(qp_ex), length);

	if (to && length)
		memcpy(to, addr, length);
}

static void medge_wr_set_inline_data_list(struct ibv_qp_ex *qp_ex,
					  size_t num_buf,
					  const struct ibv_data_buf *buf_list)
{
	size_t i, len = 0;
	uint8_t *to;

	for (i = 0; i < num_buf; i++) {
		if (__builtin_add_overflow(len, buf_list[i].length, &len))
			len = SIZE_MAX;
		if (len == SIZE_MAX)
			break;
	}
	to = medge_inline_start(medge_from_qp_ex(qp_ex), len);
	for (i = 0; to && i < num_buf; i++) {
		memcpy(to, buf_list[i].addr, buf_list[i].length);
		to += buf_list[i].length;
	}
}

static void medge_wr_set_sge_list(struct ibv_qp_ex *qp_ex, size_t num_sge,
				  const struct ibv_sge *sg_list)
{
	struct medge_qp *qp = medge_from_qp_ex(qp_ex);
	struct medge_send_wqe *wqe = qp->wrs.wqe;
	struct medge_sge *to;
	uint64_t total = 0;
	size_t i;

	if (!wqe)
		return;
	if (num_sge > qp->sq.max_sge) {
		medge_wr_fail(qp, EINVAL);
		return;
	}
	to = (struct medge_sge *)(wqe + 1);
	for (i = 0; i < num_sge; i++) {
		to[i].addr = sg_list[i].addr;
		to[i].length = sg_list[i].length;
		to[i].lkey = sg_list[i].lkey;
		total += sg_list[i].length;
	}
	if (total > qp->max_msg) {
		medge_wr_fail(qp, EINVAL);
		return;
	}
	wqe->num_sge = num_sge;
}

static void medge_wr_set_sge(struct ibv_qp_ex *qp, uint32_t lkey, uint64_t addr,
			     uint32_t length)
{
	struct ibv_sge sge = { .addr = addr, .length = length, .lkey = lkey };

	medge_wr_set_sge_list(qp, 1, &sge);
}

/* The eight bytes are taken now. */
static void medge_wr_atomic_write(struct ibv_qp_ex *qp_ex, uint32_t rkey,
				  uint64_t remote_addr, const void *data)
{
	struct medge_qp *qp = medge_from_qp_ex(qp_ex);
	struct medge_send_wqe *wqe;

	medge_wr_to(qp_ex, MEDGE_WQE_ATOMIC_WRITE, rkey, remote_addr, 0);
	wqe = qp->wrs.wqe;
	if (!wqe)
		return;
	/* In the place of an SGE, however much inline data the QP has room for. */
	if ((size_t)1 << qp->sq.ring.shift < sizeof(*wqe) + 8) {
		medge_wr_fail(qp, EINVAL);
		return;
	}
	wqe->flags |= MEDGE_WQE_INLINE;
	wqe->inline_len = 8;
	memcpy(wqe + 1, data, 8);
}

static void medge_wr_flush(struct ibv_qp_ex *qp_ex, uint32_t rkey,
			   uint64_t remote_addr, size_t len, uint8_t type,
			   uint8_t level)
{
	struct medge_qp *qp = medge_from_qp_ex(qp_ex);
	struct medge_send_wqe *wqe = medge_wr_next(qp, MEDGE_WQE_FLUSH);

	if (!wqe)
		return;
	wqe->rkey = rkey;
	wqe->remote_addr = remote_addr;
	wqe->flush_length = len;
	wqe->flush_type = type;
	wqe->flush_level = level;
}

/* ---- set up ---- */

static const uint64_t medge_send_ops =
	IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
	IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
	IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
	IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_LOCAL_INV |
	IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_SEND_WITH_INV |
	IBV_QP_EX_WITH_FLUSH | IBV_QP_EX_WITH_ATOMIC_WRITE;

static const uint64_t medge_datagram_ops =
	IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;

bool medge_wr_has(enum ibv_qp_type type, uint64_t send_ops)
{
	uint64_t known = medge_send_ops;

	if (type == IBV_QPT_UD)
		known = medge_datagram_ops;
	else if (type == IBV_QPT_UC)
		known = medge_datagram_ops | IBV_QP_EX_WITH_RDMA_WRITE |
			IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM;
	else if (type == IBV_QPT_XRC_SEND)
		known &= ~(uint64_t)(IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
				     IBV_QP_EX_WITH_FLUSH);
	return !(send_ops & ~known);
}

void medge_wr_init(struct medge_qp *qp)
{
	struct ibv_qp_ex *ex = &qp->vqp.qp_ex;

	ex->wr_start = medge_wr_start;
	ex->wr_complete = medge_wr_complete;
	ex->wr_abort = medge_wr_abort;
	ex->wr_rdma_write = medge_wr_rdma_write;
	ex->wr_rdma_write_imm = medge_wr_rdma_write_imm;
	ex->wr_rdma_read = medge_wr_rdma_read;
	ex->wr_send = medge_wr_send;
	ex->wr_send_imm = medge_wr_send_imm;
	ex->wr_send_inv = medge_wr_send_inv;
	ex->wr_local_inv = medge_wr_local_inv;
	ex->wr_atomic_cmp_swp = medge_wr_cmp_swp;
	ex->wr_atomic_fetch_add = medge_wr_fetch_add;
	ex->wr_bind_mw = medge_wr_bind_mw;
	ex->wr_atomic_write = medge_wr_atomic_write;
	ex->wr_set_ud_addr = medge_wr_set_ud_addr;
	ex->wr_set_xrc_srqn = medge_wr_set_xrc_srqn;
	ex->wr_set_inline_data = medge_wr_set_inline_data;
	ex->wr_set_inline_data_list = medge_wr_set_inline_data_list;
	ex->wr_set_sge = medge_wr_set_sge;
	ex->wr_set_sge_list = medge_wr_set_sge_list;
	if (medge_qp_ex_is_old(&qp->vqp)) {
		medge_qp_ex_set_mask(&qp->vqp);
	} else {
		ex->wr_flush = medge_wr_flush;
		qp->vqp.comp_mask |= VERBS_QP_EX;
	}
}
