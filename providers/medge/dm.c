// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Device memory: mapped, so that copies need no system call. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/cmd_ioctl.h>

#include "medge.h"

static bool medge_dm_bad(const struct medge_dm *dm, uint64_t offset,
			 size_t length)
{
	/* Four bytes at a time, as devices have it that are of hardware. */
	return offset > dm->length || length > dm->length - offset ||
	       (offset | length) & 3;
}

static int medge_memcpy_to_dm(struct ibv_dm *ibdm, uint64_t offset,
			      const void *host_addr, size_t length)
{
	struct medge_dm *dm = to_medge_dm(ibdm);

	if (medge_dm_bad(dm, offset, length))
		return EFAULT;
	memcpy(dm->mem.entries + offset, host_addr, length);
	return 0;
}

static int medge_memcpy_from_dm(void *host_addr, struct ibv_dm *ibdm,
				uint64_t offset, size_t length)
{
	struct medge_dm *dm = to_medge_dm(ibdm);

	if (medge_dm_bad(dm, offset, length))
		return EFAULT;
	memcpy(host_addr, dm->mem.entries + offset, length);
	return 0;
}

static int medge_dm_map(struct medge_dm *dm, struct ibv_context *context,
			const struct medge_ring_map *map, uint64_t length)
{
	int ret;

	ret = medge_ring_map(&dm->mem, context->cmd_fd, map);
	if (ret)
		return ret;
	if (dm->mem.length < MEDGE_RING_ENTRIES + length) {
		medge_ring_unmap(&dm->mem);
		return EPROTO;
	}
	dm->length = length;
	dm->vdm.dm.memcpy_to_dm = medge_memcpy_to_dm;
	dm->vdm.dm.memcpy_from_dm = medge_memcpy_from_dm;
	return 0;
}

struct ibv_dm *medge_alloc_dm(struct ibv_context *context,
			      struct ibv_alloc_dm_attr *attr)
{
	DECLARE_COMMAND_BUFFER(cmd, UVERBS_OBJECT_DM, UVERBS_METHOD_DM_ALLOC, 1);
	struct medge_ring_map map = {};
	struct medge_dm *dm;
	int ret;

	if (attr->comp_mask) {
		errno = EINVAL;
		return NULL;
	}
	dm = calloc(1, sizeof(*dm));
	if (!dm)
		return NULL;
	fill_attr_out_ptr(cmd, MEDGE_ATTR_DM_ALLOC_MAP, &map);
	ret = ibv_cmd_alloc_dm(context, attr, &dm->vdm, cmd);
	if (ret)
		goto err_free;
	ret = medge_dm_map(dm, context, &map, attr->length);
	if (!ret)
		return &dm->vdm.dm;

	ibv_cmd_free_dm(&dm->vdm);
err_free:
	free(dm);
	errno = ret;
	return NULL;
}

int medge_free_dm(struct ibv_dm *ibdm)
{
	struct medge_dm *dm = to_medge_dm(ibdm);
	int ret;

	ret = ibv_cmd_free_dm(&dm->vdm);
	if (ret)
		return ret;
	medge_unimport_dm(ibdm);
	return 0;
}

struct ibv_dm *medge_import_dm(struct ibv_context *context, uint32_t handle)
{
	DECLARE_COMMAND_BUFFER(cmd, UVERBS_OBJECT_DM, MEDGE_METHOD_DM_QUERY, 3);
	struct medge_ring_map map = {};
	struct medge_dm *dm;
	uint64_t length = 0;
	int ret;

	dm = calloc(1, sizeof(*dm));
	if (!dm)
		return NULL;
	fill_attr_in_obj(cmd, MEDGE_ATTR_DM_QUERY_HANDLE, handle);
	fill_attr_out_ptr(cmd, MEDGE_ATTR_DM_QUERY_MAP, &map);
	fill_attr_out_ptr(cmd, MEDGE_ATTR_DM_QUERY_LENGTH, &length);
	ret = execute_ioctl(context, cmd);
	if (!ret)
		ret = medge_dm_map(dm, context, &map, length);
	if (ret) {
		free(dm);
		errno = ret;
		return NULL;
	}
	dm->vdm.handle = handle;
	dm->vdm.dm.handle = handle;
	dm->vdm.dm.comp_mask = IBV_DM_MASK_HANDLE;
	dm->vdm.dm.context = context;
	return &dm->vdm.dm;
}

void medge_unimport_dm(struct ibv_dm *ibdm)
{
	struct medge_dm *dm = to_medge_dm(ibdm);

	medge_ring_unmap(&dm->mem);
	free(dm);
}

struct ibv_mr *medge_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *ibdm,
			       uint64_t offset, size_t length,
			       unsigned int access)
{
	struct verbs_mr *vmr;
	int ret;

	vmr = calloc(1, sizeof(*vmr));
	if (!vmr)
		return NULL;
	ret = ibv_cmd_reg_dm_mr(pd, &to_medge_dm(ibdm)->vdm, offset, length,
				access, vmr, NULL);
	if (ret) {
		free(vmr);
		errno = ret;
		return NULL;
	}
	return &vmr->ibv_mr;
}
