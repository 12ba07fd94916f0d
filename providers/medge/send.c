/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Send work requests: from the application to the send ring. */
#include <errno.h>
#include <string.h>

#include "medge.h"
#include "medgedv.h"
#include "wqe.h"

enum medge_operand {
	MEDGE_HAS_TARGET = 1 << 0,	/* remote address and key */
	MEDGE_HAS_IMM = 1 << 1,
	MEDGE_HAS_PAYLOAD = 1 << 2,	/* it sends its SGEs: may be inline */
	MEDGE_IS_ATOMIC = 1 << 3,
	MEDGE_HAS_INV = 1 << 4,		/* a key to invalidate */
	MEDGE_IS_BIND = 1 << 5,
	MEDGE_HAS_NO_SGE = 1 << 6,
};

struct medge_opcode_info {
	bool supported;
	uint8_t wqe;			/* enum medge_wqe_opcode */
	uint8_t operands;
};

/* What is not here, medge has not (yet). */
static const struct medge_opcode_info medge_opcodes[] = {
	[IBV_WR_RDMA_WRITE] = {
		true, MEDGE_WQE_WRITE, MEDGE_HAS_TARGET | MEDGE_HAS_PAYLOAD,
	},
	[IBV_WR_RDMA_WRITE_WITH_IMM] = {
		true, MEDGE_WQE_WRITE_IMM,
		MEDGE_HAS_TARGET | MEDGE_HAS_IMM | MEDGE_HAS_PAYLOAD,
	},
	[IBV_WR_SEND] = {
		true, MEDGE_WQE_SEND, MEDGE_HAS_PAYLOAD,
	},
	[IBV_WR_SEND_WITH_IMM] = {
		true, MEDGE_WQE_SEND_IMM, MEDGE_HAS_IMM | MEDGE_HAS_PAYLOAD,
	},
	[IBV_WR_RDMA_READ] = {
		true, MEDGE_WQE_READ, MEDGE_HAS_TARGET,
	},
	[IBV_WR_ATOMIC_CMP_AND_SWP] = {
		true, MEDGE_WQE_CMP_SWAP, MEDGE_IS_ATOMIC,
	},
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = {
		true, MEDGE_WQE_FETCH_ADD, MEDGE_IS_ATOMIC,
	},
	[IBV_WR_SEND_WITH_INV] = {
		true, MEDGE_WQE_SEND_INV, MEDGE_HAS_INV | MEDGE_HAS_PAYLOAD,
	},
	[IBV_WR_LOCAL_INV] = {
		true, MEDGE_WQE_LOCAL_INV, MEDGE_HAS_INV | MEDGE_HAS_NO_SGE,
	},
	[IBV_WR_BIND_MW] = {
		true, MEDGE_WQE_BIND_MW, MEDGE_IS_BIND | MEDGE_HAS_NO_SGE,
	},
	[IBV_WR_ATOMIC_WRITE] = {
		true, MEDGE_WQE_ATOMIC_WRITE,
		MEDGE_HAS_TARGET | MEDGE_HAS_PAYLOAD,
	},
};

static const struct medge_opcode_info *medge_find_opcode(unsigned int opcode,
							  int *err)
{
	const unsigned int known =
		sizeof(medge_opcodes) / sizeof(medge_opcodes[0]);

	if (opcode < known && medge_opcodes[opcode].supported)
		return &medge_opcodes[opcode];
	*err = opcode < known ? EOPNOTSUPP : EINVAL;
	return NULL;
}

/* Everything about @wr that needs no kernel to be refused. */
static int medge_check_send(const struct medge_qp *qp,
			    const struct medge_opcode_info *info,
			    const struct ibv_send_wr *wr, uint64_t *total)
{
	int i;

	if (qp->vqp.qp.qp_type == IBV_QPT_UD &&
	    info->operands & (MEDGE_HAS_TARGET | MEDGE_IS_ATOMIC))
		return EINVAL;
	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->sq.max_sge ||
	    (wr->num_sge && info->operands & MEDGE_HAS_NO_SGE))
		return EINVAL;
	*total = 0;
	for (i = 0; i < wr->num_sge; i++)
		*total += wr->sg_list[i].length;
	if (*total > qp->max_msg)
		return EINVAL;
	if (wr->send_flags & IBV_SEND_INLINE &&
	    (!(info->operands & MEDGE_HAS_PAYLOAD) || *total > qp->max_inline))
		return EINVAL;
	return 0;
}

static void medge_put_inline(void *dst, const struct ibv_send_wr *wr)
{
	uint8_t *to = dst;
	int i;

	for (i = 0; i < wr->num_sge; i++) {
		memcpy(to, (void *)(uintptr_t)wr->sg_list[i].addr,
		       wr->sg_list[i].length);
		to += wr->sg_list[i].length;
	}
}

static void medge_put_sges(struct medge_sge *sge, const struct ibv_send_wr *wr)
{
	int i;

	for (i = 0; i < wr->num_sge; i++) {
		sge[i].addr = wr->sg_list[i].addr;
		sge[i].length = wr->sg_list[i].length;
		sge[i].lkey = wr->sg_list[i].lkey;
	}
}

uint16_t medge_wqe_flags_of(const struct medge_qp *qp, unsigned int send_flags)
{
	uint16_t flags = 0;

	if (send_flags & IBV_SEND_SIGNALED || qp->sig_all)
		flags |= MEDGE_WQE_SIGNALED;
	if (send_flags & IBV_SEND_SOLICITED)
		flags |= MEDGE_WQE_SOLICITED;
	if (send_flags & IBV_SEND_INLINE)
		flags |= MEDGE_WQE_INLINE;
	if (send_flags & IBV_SEND_FENCE)
		flags |= MEDGE_WQE_FENCE;
	if (send_flags & MEDGE_SEND_FENCE_BACKWARD)
		flags |= MEDGE_WQE_FENCE_BACKWARD;
	if (send_flags & MEDGE_SEND_FENCE_FORWARD)
		flags |= MEDGE_WQE_FENCE_FORWARD;
	return flags;
}

static int medge_push_send(struct medge_qp *qp, const struct ibv_send_wr *wr)
{
	const struct medge_opcode_info *info;
	struct medge_send_wqe *wqe;
	uint64_t total;
	int ret = 0;

	info = medge_find_opcode(wr->opcode, &ret);
	if (!info)
		return ret;
	if (qp->vqp.qp.qp_type == IBV_QPT_XRC_SEND &&
	    info->wqe == MEDGE_WQE_WRITE_IMM)
		return EOPNOTSUPP;
	ret = medge_check_send(qp, info, wr, &total);
	if (ret)
		return ret;
	wqe = medge_ring_reserve(&qp->sq.ring);
	if (!wqe)
		return ENOMEM;

	memset(wqe, 0, sizeof(*wqe));
	wqe->wr_id = wr->wr_id;
	wqe->opcode = info->wqe;
	wqe->flags = medge_wqe_flags_of(qp, wr->send_flags);
	if (info->operands & MEDGE_HAS_IMM)
		wqe->imm = wr->imm_data;
	if (info->operands & MEDGE_HAS_TARGET) {
		wqe->remote_addr = wr->wr.rdma.remote_addr;
		wqe->rkey = wr->wr.rdma.rkey;
	}
	if (qp->vqp.qp.qp_type == IBV_QPT_UD) {
		wqe->ud_ah = to_medge_ah(wr->wr.ud.ah)->number;
		wqe->ud_qpn = wr->wr.ud.remote_qpn;
		wqe->ud_qkey = wr->wr.ud.remote_qkey;
	}
	if (info->operands & MEDGE_IS_ATOMIC) {
		wqe->remote_addr = wr->wr.atomic.remote_addr;
		wqe->rkey = wr->wr.atomic.rkey;
		wqe->compare_add = wr->wr.atomic.compare_add;
		wqe->swap = wr->wr.atomic.swap;
	}
	if (info->operands & MEDGE_HAS_INV)
		wqe->rkey = wr->invalidate_rkey;
	if (qp->vqp.qp.qp_type == IBV_QPT_XRC_SEND)
		wqe->srqn = wr->qp_type.xrc.remote_srqn;
	if (info->operands & MEDGE_IS_BIND)
		medge_put_bind(wqe, wr->bind_mw.rkey, &wr->bind_mw.bind_info);
	if (wr->send_flags & IBV_SEND_INLINE) {
		wqe->inline_len = total;
		medge_put_inline(wqe + 1, wr);
	} else {
		wqe->num_sge = wr->num_sge;
		medge_put_sges((struct medge_sge *)(wqe + 1), wr);
	}
	qp->sq.ring.prod++;
	return 0;
}

bool medge_may_send(const struct medge_qp *qp)
{
	enum ibv_qp_state state = qp->vqp.qp.state;

	return state != IBV_QPS_RESET && state != IBV_QPS_INIT &&
	       state != IBV_QPS_RTR;
}

int medge_send_publish(struct medge_qp *qp)
{
	struct ibv_qp *ibqp = &qp->vqp.qp;
	uint32_t need;

	medge_ring_publish(&qp->sq.ring);
	need = medge_ring_need_doorbell(&qp->sq.ring);
	if (need == MEDGE_DOORBELL_NONE) {
		medge_spin_silent(to_medge_cq(ibqp->send_cq), qp);
		return 0;
	}
	if (need >= MEDGE_DOORBELL_LATE && medge_late_defer(qp, need))
		return 0;
	return medge_send_ring(ibqp->context, medge_qp_id(qp));
}

/*
 * All of the list, or all before the first that cannot be posted, then one
 * doorbell. A doorbell fails only when the device has gone; its WQEs will not
 * be looked at any more, so none of them counts as posted.
 */
int medge_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr,
		    struct ibv_send_wr **bad_wr)
{
	struct medge_qp *qp = to_medge_qp(ibqp);
	struct ibv_send_wr *first = wr;
	int ret = 0, err;

	medge_lock(&qp->sq.lock);
	if (!medge_may_send(qp))
		ret = EINVAL;
	for (; wr && !ret; wr = wr->next) {
		ret = medge_push_send(qp, wr);
		if (ret)
			break;
	}
	if (ret)
		*bad_wr = wr;

	if (wr != first) {
		err = medge_send_publish(qp);
		if (err && !ret) {
			ret = err;
			*bad_wr = first;
		}
	} else if (ret == ENOMEM) {
		/* He may try again, and do nothing else. */
		medge_late_now(qp);
	}
	medge_unlock(&qp->sq.lock);
	return ret;
}
