// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Device memory: a device of software has that of its host. */
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#define UVERBS_MODULE_NAME medge
#include <rdma/uverbs_named_ioctl.h>

#include "device.h"
#include "dm.h"
#include "mr.h"

/* Of a device of hardware it would be all there is; here it is to bound a user. */
static bool take_room(struct medge_device *dev, u64 length)
{
	if (!length || length > MEDGE_MAX_DM)
		return false;
	if (atomic64_add_return(length, &dev->dm_used) <= MEDGE_MAX_DM)
		return true;
	atomic64_sub(length, &dev->dm_used);
	return false;
}

struct ib_dm *medge_alloc_dm(struct ib_device *ibdev, struct ib_ucontext *uctx,
			     struct ib_dm_alloc_attr *attr,
			     struct uverbs_attr_bundle *attrs)
{
	struct medge_device *dev = to_medge_device(ibdev);
	struct medge_dm *dm;
	int err;

	/* What it starts with is as aligned as a ring's entries. */
	if (attr->alignment > ilog2(MEDGE_RING_ENTRIES))
		return ERR_PTR(-EOPNOTSUPP);
	if (!take_room(dev, attr->length))
		return ERR_PTR(-ENOMEM);
	err = -ENOMEM;
	dm = kzalloc(sizeof(*dm), GFP_KERNEL_ACCOUNT);
	if (!dm)
		goto room;
	err = medge_ring_create(&dm->mem, uctx, attr->length, 0, &dm->map);
	if (err)
		goto free;
	err = uverbs_copy_to(attrs, MEDGE_ATTR_DM_ALLOC_MAP, &dm->map,
			     sizeof(dm->map));
	if (!err)
		return &dm->ibdm;

	medge_ring_destroy(&dm->mem);
free:
	kfree(dm);
room:
	atomic64_sub(attr->length, &dev->dm_used);
	return ERR_PTR(err);
}

int medge_dealloc_dm(struct ib_dm *ibdm, struct uverbs_attr_bundle *attrs)
{
	struct medge_dm *dm = to_medge_dm(ibdm);

	atomic64_sub(ibdm->length, &to_medge_device(ibdm->device)->dm_used);
	medge_ring_destroy(&dm->mem);
	kfree(dm);
	return 0;
}

/* ib_core has checked that it is within; addresses start at 0. */
struct ib_mr *medge_reg_dm_mr(struct ib_pd *pd, struct ib_dm *ibdm,
			      struct ib_dm_mr_attr *attr,
			      struct uverbs_attr_bundle *attrs)
{
	struct medge_dm *dm = to_medge_dm(ibdm);
	u64 from = MEDGE_RING_ENTRIES + attr->offset;

	return medge_mr_of_pages(pd, (void *)dm->mem.hdr + from, attr->length,
				 attr->access_flags & ~IB_ZERO_BASED);
}

/* Where it is mapped, for who imports it. */
static int UVERBS_HANDLER(MEDGE_METHOD_DM_QUERY)(struct uverbs_attr_bundle *attrs)
{
	struct ib_dm *ibdm =
		uverbs_attr_get_obj(attrs, MEDGE_ATTR_DM_QUERY_HANDLE);
	struct medge_dm *dm = to_medge_dm(ibdm);
	u64 length = ibdm->length;
	int err;

	err = uverbs_copy_to(attrs, MEDGE_ATTR_DM_QUERY_MAP, &dm->map,
			     sizeof(dm->map));
	return err ? err : uverbs_copy_to(attrs, MEDGE_ATTR_DM_QUERY_LENGTH,
					  &length, sizeof(length));
}

ADD_UVERBS_ATTRIBUTES_SIMPLE(
	medge_dm_alloc, UVERBS_OBJECT_DM, UVERBS_METHOD_DM_ALLOC,
	UVERBS_ATTR_PTR_OUT(MEDGE_ATTR_DM_ALLOC_MAP,
			    UVERBS_ATTR_TYPE(struct medge_ring_map),
			    UA_MANDATORY));

DECLARE_UVERBS_NAMED_METHOD(
	MEDGE_METHOD_DM_QUERY,
	UVERBS_ATTR_IDR(MEDGE_ATTR_DM_QUERY_HANDLE, UVERBS_OBJECT_DM,
			UVERBS_ACCESS_READ, UA_MANDATORY),
	UVERBS_ATTR_PTR_OUT(MEDGE_ATTR_DM_QUERY_MAP,
			    UVERBS_ATTR_TYPE(struct medge_ring_map),
			    UA_MANDATORY),
	UVERBS_ATTR_PTR_OUT(MEDGE_ATTR_DM_QUERY_LENGTH, UVERBS_ATTR_TYPE(u64),
			    UA_MANDATORY));

DECLARE_UVERBS_GLOBAL_METHODS(UVERBS_OBJECT_DM,
			      &UVERBS_METHOD(MEDGE_METHOD_DM_QUERY));

const struct uapi_definition medge_dm_defs[] = {
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_DM, &medge_dm_alloc),
	UAPI_DEF_CHAIN_OBJ_TREE_NAMED(UVERBS_OBJECT_DM),
	{},
};
