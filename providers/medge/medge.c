/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* medge devices: how libibverbs finds them and opens them. */
#include <stdlib.h>
#include <string.h>

#include "compat.h"
#include "medge.h"

/*
 * The kernel has no driver id for a driver outside its tree, and the device's
 * name is the administrator's to choose: the device is known by its own
 * description. A device whose driver has an id is not ours.
 */
static bool medge_match_device(struct verbs_sysfs_dev *sysfs_dev)
{
	char desc[64];

	if (sysfs_dev->driver_id != RDMA_DRIVER_UNKNOWN)
		return false;
	if (ibv_read_ibdev_sysfs_file(desc, sizeof(desc), sysfs_dev,
				      "node_desc") <= 0)
		return false;
	return strcmp(desc, MEDGE_NODE_DESC) == 0;
}

static struct verbs_device *medge_device_alloc(struct verbs_sysfs_dev *sysfs_dev)
{
	struct medge_device *dev;

	(void)sysfs_dev;
	dev = calloc(1, sizeof(*dev));
	return dev ? &dev->vdev : NULL;
}

static void medge_device_free(struct verbs_device *vdev)
{
	free(container_of(vdev, struct medge_device, vdev));
}

/* The longest message a QP can send is a property of the port. */
static int medge_read_limits(struct medge_context *ctx)
{
	struct ibv_query_port cmd = {};
	struct ibv_port_attr attr = {};
	int ret;

	ret = ibv_cmd_query_port(&ctx->vctx.context, 1, &attr, &cmd,
				 sizeof(cmd));
	if (ret)
		return ret;
	ctx->max_msg = attr.max_msg_sz;
	return 0;
}

static struct medge_context *medge_new_context(struct ibv_device *ibdev,
					       int cmd_fd)
{
	struct medge_context *ctx;

	ctx = verbs_init_and_alloc_context(ibdev, cmd_fd, ctx, vctx,
					   RDMA_DRIVER_UNKNOWN);
	if (ctx)
		pthread_mutex_init(&ctx->ud_mutex, NULL);
	return ctx;
}

void medge_drop_context(struct medge_context *ctx)
{
	verbs_uninit_context(&ctx->vctx);
	pthread_mutex_destroy(&ctx->ud_mutex);
	free(ctx);
}

static struct verbs_context *medge_start_context(struct medge_context *ctx)
{
	if (medge_read_limits(ctx)) {
		medge_drop_context(ctx);
		return NULL;
	}
	verbs_set_ops(&ctx->vctx, &medge_context_ops);
	return &ctx->vctx;
}

static struct verbs_context *medge_alloc_context(struct ibv_device *ibdev,
						 int cmd_fd, void *private_data)
{
	struct {
		struct ib_uverbs_get_context_resp ibv_resp;
		struct medge_alloc_ucontext_resp drv;
	} resp = {};
	struct ibv_get_context cmd = {};
	struct medge_context *ctx;

	(void)private_data;
	ctx = medge_new_context(ibdev, cmd_fd);
	if (!ctx)
		return NULL;
	if (medge_cmd_get_context(&ctx->vctx, &cmd, sizeof(cmd),
				  &resp.ibv_resp, sizeof(resp))) {
		medge_drop_context(ctx);
		return NULL;
	}
	ctx->features = resp.drv.features;
	return medge_start_context(ctx);
}

/* Of a context that another process, or part of this one, has opened. */
static struct verbs_context *medge_import_context(struct ibv_device *ibdev,
						  int cmd_fd)
{
	struct medge_context *ctx;

	ctx = medge_new_context(ibdev, cmd_fd);
	if (!ctx)
		return NULL;
	if (ibv_cmd_query_context(&ctx->vctx.context, NULL)) {
		medge_drop_context(ctx);
		return NULL;
	}
	return medge_start_context(ctx);
}

/*
 * Empty, but it must exist: libibverbs walks the table of every provider when
 * any device on the machine has a driver id.
 */
static const struct verbs_match_ent medge_match_table[] = {
	{ .kind = VERBS_MATCH_SENTINEL },
};

const struct verbs_device_ops medge_dev_ops = {
	.name = "medge",
	.match_min_abi_version = MEDGE_ABI_VERSION,
	.match_max_abi_version = MEDGE_ABI_VERSION,
	.match_table = medge_match_table,
	.match_device = medge_match_device,
	.alloc_device = medge_device_alloc,
	.uninit_device = medge_device_free,
	.alloc_context = medge_alloc_context,
	.import_context = medge_import_context,
};
PROVIDER_DRIVER(medge, medge_dev_ops);
