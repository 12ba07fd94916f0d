// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What only medge devices can do: perform operations in any order, but for
 * fences that the receiver resolves. Found at run time, so that the library
 * needs no medge where there is none.
 */
#include <dlfcn.h>
#include <errno.h>

#include <medgedv.h>

#include "glue.h"

static struct {
	__typeof__(medgedv_is_supported) *is_supported;
	__typeof__(medgedv_create_qp) *create_qp;
} medge;

static void find_medge(void)
{
	void *lib = dlopen("libmedge.so.1", RTLD_NOW | RTLD_LOCAL);

	if (!lib)
		return;
	medge.create_qp = dlsym(lib, "medgedv_create_qp");
	medge.is_supported = dlsym(lib, "medgedv_is_supported");
}

bool medge_can_relax(struct ibv_context *verbs)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, find_medge);
	return medge.create_qp && medge.is_supported &&
	       medge.is_supported(verbs->device);
}

uint32_t medge_fences(uint32_t flags)
{
	uint32_t fences = 0;

	if (flags & GLUE_FENCE_BACKWARD)
		fences |= MEDGE_SEND_FENCE_BACKWARD;
	if (flags & GLUE_FENCE_FORWARD)
		fences |= MEDGE_SEND_FENCE_FORWARD;
	return fences;
}

/* As rdma_create_qp() does, which has no way to ask for it. */
int medge_create_relaxed_qp(struct rdma_cm_id *id, struct ibv_pd *pd,
			    struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex ex = {
		.send_cq = attr->send_cq,
		.recv_cq = attr->recv_cq,
		.cap = attr->cap,
		.qp_type = attr->qp_type,
		.sq_sig_all = attr->sq_sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = pd,
	};
	struct medgedv_qp_init_attr own = {
		.create_flags = MEDGEDV_QP_CREATE_RELAXED,
	};
	struct ibv_qp_attr state = { .qp_state = IBV_QPS_INIT };
	struct ibv_qp *qp;
	int mask, error;

	qp = medge.create_qp(id->verbs, &ex, &own, sizeof(own));
	if (!qp)
		return errno;
	error = rdma_init_qp_attr(id, &state, &mask) ? errno :
		ibv_modify_qp(qp, &state, mask);
	if (error) {
		ibv_destroy_qp(qp);
		return error;
	}
	attr->cap = ex.cap;
	id->pd = pd;
	id->qp = qp;
	return 0;
}
