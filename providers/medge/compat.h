/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What differs between the private ABIs of libibverbs this provider is built
 * for. Each shim says when it can go.
 */
#ifndef MEDGE_COMPAT_H
#define MEDGE_COMPAT_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <infiniband/driver.h>

#if IBVERBS_PABI_VERSION >= 57
#define medge_cmd_get_context(vctx, cmd, cmd_size, resp, resp_size)            \
	ibv_cmd_get_context(vctx, cmd, cmd_size, NULL, resp, resp_size)
#else
/* No file descriptors to inherit: until rdma-core 56 is no longer served. */
#define medge_cmd_get_context ibv_cmd_get_context
#endif

#if IBVERBS_PABI_VERSION >= 60
#define medge_cmd_create_cq_ex(vctx, attr, vcq, cmd, cmd_size, resp, resp_size) \
	ibv_cmd_create_cq_ex(vctx, attr, NULL, vcq, cmd, cmd_size, resp,       \
			     resp_size, 0)
#else
/* No memory of the program's own for CQs: until rdma-core 56 is no longer served. */
#define medge_cmd_create_cq_ex(vctx, attr, vcq, cmd, cmd_size, resp, resp_size) \
	ibv_cmd_create_cq_ex(vctx, attr, vcq, cmd, cmd_size, resp, resp_size, 0)
#endif

#if IBVERBS_PABI_VERSION >= 64
#define MEDGE_QUERY_PORT_SPEED .query_port_speed = ibv_cmd_query_port_speed,
#else
/* Not asked for: until rdma-core 56 is no longer served. */
#define MEDGE_QUERY_PORT_SPEED
#endif

#if IBVERBS_PABI_VERSION == 34
/*
 * struct ibv_qp_ex has grown by wr_flush within private ABI 34, and what follows
 * it in struct verbs_qp has moved: where an older library has comp_mask, the
 * headers have wr_flush. Which of them runs shows when it makes a QP, and clears
 * its comp_mask. Until rdma-core 44 is no longer served.
 */
static inline void medge_qp_ex_prepare(struct verbs_qp *vqp)
{
	uint32_t untouched = UINT32_MAX;

	memcpy(&vqp->qp_ex.wr_flush, &untouched, sizeof(untouched));
}

static inline bool medge_qp_ex_is_old(const struct verbs_qp *vqp)
{
	uint32_t mask;

	memcpy(&mask, &vqp->qp_ex.wr_flush, sizeof(mask));
	return mask != UINT32_MAX;
}

static inline void medge_qp_ex_set_mask(struct verbs_qp *vqp)
{
	uint32_t mask;

	memcpy(&mask, &vqp->qp_ex.wr_flush, sizeof(mask));
	mask |= VERBS_QP_EX;
	memcpy(&vqp->qp_ex.wr_flush, &mask, sizeof(mask));
}
#else
static inline void medge_qp_ex_prepare(struct verbs_qp *vqp)
{
	(void)vqp;
}

static inline bool medge_qp_ex_is_old(const struct verbs_qp *vqp)
{
	(void)vqp;
	return false;
}

static inline void medge_qp_ex_set_mask(struct verbs_qp *vqp)
{
	(void)vqp;
}
#endif

#endif /* MEDGE_COMPAT_H */
