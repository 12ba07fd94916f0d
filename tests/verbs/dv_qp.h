/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* For pair_options.create_qp: a QP made with direct verbs. */
#ifndef DV_QP_H
#define DV_QP_H

#include <infiniband/medgedv.h>

#include "verbs_test.h"

/* @send_ops: for ibv_wr_*, or 0. As ibv_create_qp() otherwise. */
static inline struct ibv_qp *create_dv_qp(struct side *side,
					  struct ibv_qp_init_attr *init,
					  uint32_t create_flags,
					  uint64_t send_ops)
{
	struct medgedv_qp_init_attr dv = { .create_flags = create_flags };
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = init->send_cq,
		.recv_cq = init->recv_cq,
		.cap = init->cap,
		.qp_type = init->qp_type,
		.sq_sig_all = init->sq_sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = side->pd,
	};
	struct ibv_qp *qp;

	if (send_ops) {
		attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
		attr.send_ops_flags = send_ops;
	}
	qp = medgedv_create_qp(side->ctx, &attr, &dv, sizeof(dv));
	if (qp)
		init->cap = attr.cap;
	return qp;
}

#endif /* DV_QP_H */
