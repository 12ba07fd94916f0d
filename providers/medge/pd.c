// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Protection domains: the kernel's, those built upon them, thread domains. */
#include <errno.h>
#include <stdlib.h>

#include "medge.h"

static struct medge_pd *medge_new_pd(struct ibv_context *context)
{
	struct medge_pd *pd = calloc(1, sizeof(*pd));

	if (!pd)
		return NULL;
	pd->ibpd.context = context;
	atomic_init(&pd->users, 0);
	return pd;
}

struct ibv_pd *medge_alloc_pd(struct ibv_context *context)
{
	struct ib_uverbs_alloc_pd_resp resp = {};
	struct ibv_alloc_pd cmd = {};
	struct medge_pd *pd;
	int ret;

	pd = medge_new_pd(context);
	if (!pd)
		return NULL;
	ret = ibv_cmd_alloc_pd(context, &pd->ibpd, &cmd, sizeof(cmd), &resp,
			       sizeof(resp));
	if (ret) {
		free(pd);
		errno = ret;
		return NULL;
	}
	return &pd->ibpd;
}

/*
 * To the kernel a parent domain is the PD it is built upon. Its allocators are
 * for memory that the device reads and the process allocates: medge has none.
 */
struct ibv_pd *medge_alloc_parent_domain(struct ibv_context *context,
					 struct ibv_parent_domain_init_attr *attr)
{
	const uint32_t known = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
			       IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
	struct medge_pd *pd, *base;

	if (!attr->pd || attr->pd->context != context) {
		errno = EINVAL;
		return NULL;
	}
	if (attr->comp_mask & ~known) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS &&
	    (!attr->alloc || !attr->free)) {
		errno = EINVAL;
		return NULL;
	}
	base = to_medge_pd(attr->pd);
	if (base->parent) {
		errno = EINVAL;
		return NULL;
	}
	pd = medge_new_pd(context);
	if (!pd)
		return NULL;
	pd->ibpd.handle = base->ibpd.handle;
	pd->parent = base;
	pd->td = attr->td ? to_medge_td(attr->td) : NULL;
	atomic_fetch_add(&base->users, 1);
	if (pd->td)
		atomic_fetch_add(&pd->td->users, 1);
	return &pd->ibpd;
}

int medge_dealloc_pd(struct ibv_pd *ibpd)
{
	struct medge_pd *pd = to_medge_pd(ibpd);
	int ret;

	if (atomic_load(&pd->users))
		return EBUSY;
	if (pd->parent) {
		atomic_fetch_sub(&pd->parent->users, 1);
		if (pd->td)
			atomic_fetch_sub(&pd->td->users, 1);
	} else {
		ret = ibv_cmd_dealloc_pd(ibpd);
		if (ret)
			return ret;
	}
	free(pd);
	return 0;
}

struct ibv_pd *medge_import_pd(struct ibv_context *context, uint32_t handle)
{
	struct medge_pd *pd = medge_new_pd(context);

	if (!pd)
		return NULL;
	pd->ibpd.handle = handle;
	return &pd->ibpd;
}

void medge_unimport_pd(struct ibv_pd *pd)
{
	free(to_medge_pd(pd));
}

struct ibv_td *medge_alloc_td(struct ibv_context *context,
			      struct ibv_td_init_attr *attr)
{
	struct medge_td *td;

	if (attr->comp_mask) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	td = calloc(1, sizeof(*td));
	if (!td)
		return NULL;
	td->ibtd.context = context;
	atomic_init(&td->users, 0);
	return &td->ibtd;
}

int medge_dealloc_td(struct ibv_td *ibtd)
{
	struct medge_td *td = to_medge_td(ibtd);

	if (atomic_load(&td->users))
		return EBUSY;
	free(td);
	return 0;
}
