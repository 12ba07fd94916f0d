/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Device memory: the kernel's, which programs reach by copies and by keys. */
#ifndef MEDGE_DM_H
#define MEDGE_DM_H

#include <rdma/ib_verbs.h>
#include <rdma/uverbs_ioctl.h>

#include "ring.h"

/* @mem: a ring of bytes, of which only the mapping is used. */
struct medge_dm {
	struct ib_dm ibdm;
	struct medge_ring mem;
	struct medge_ring_map map;
};

static inline struct medge_dm *to_medge_dm(struct ib_dm *ibdm)
{
	return container_of(ibdm, struct medge_dm, ibdm);
}

/* What uverbs commands of device memory carry beside the common part. */
extern const struct uapi_definition medge_dm_defs[];

/* ib_device_ops */
struct ib_dm *medge_alloc_dm(struct ib_device *ibdev, struct ib_ucontext *uctx,
			     struct ib_dm_alloc_attr *attr,
			     struct uverbs_attr_bundle *attrs);
int medge_dealloc_dm(struct ib_dm *ibdm, struct uverbs_attr_bundle *attrs);
struct ib_mr *medge_reg_dm_mr(struct ib_pd *pd, struct ib_dm *ibdm,
			      struct ib_dm_mr_attr *attr,
			      struct uverbs_attr_bundle *attrs);

#endif /* MEDGE_DM_H */
