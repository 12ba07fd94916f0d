/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Direct verbs: what medgedv.h promises. */
#include <errno.h>
#include <string.h>

#include <infiniband/cmd_ioctl.h>

#include "medge.h"
#include "medgedv.h"

/* No device of today has more rails. */
enum { MEDGE_RAILS_ASKED = 64 };

/* Does a caller who knows @inlen bytes of @type know all up to @field? */
#define medge_knows(type, field, inlen)                                        \
	((inlen) >= offsetof(type, field) + sizeof(((type *)0)->field))

/* Is all that the caller knows of a struct beyond our @len bytes zeros? */
static bool medge_is_cleared(const void *p, size_t len, size_t inlen)
{
	const uint8_t *byte = p;

	for (; len < inlen; len++)
		if (byte[len])
			return false;
	return true;
}

/* What we know of @from, as far as the caller knows it; zeros beyond that. */
static void medge_copy_out(void *to, size_t inlen, const void *from, size_t len)
{
	memset(to, 0, inlen);
	memcpy(to, from, inlen < len ? inlen : len);
}

bool medgedv_is_supported(struct ibv_device *device)
{
	return verbs_get_device(device)->ops == &medge_dev_ops;
}

struct ibv_qp *medgedv_create_qp(struct ibv_context *context,
				 struct ibv_qp_init_attr_ex *attr,
				 struct medgedv_qp_init_attr *medge_attr,
				 uint32_t inlen)
{
	uint32_t flags = 0;

	if (!medgedv_is_supported(context->device)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	if (!medge_attr ||
	    !medge_knows(struct medgedv_qp_init_attr, reserved, inlen) ||
	    medge_attr->comp_mask || medge_attr->reserved ||
	    medge_attr->create_flags & ~(MEDGEDV_QP_CREATE_RELAXED |
					 MEDGEDV_QP_CREATE_POLLED) ||
	    !medge_is_cleared(medge_attr, sizeof(*medge_attr), inlen)) {
		errno = EINVAL;
		return NULL;
	}
	if (medge_attr->create_flags & MEDGEDV_QP_CREATE_RELAXED)
		flags |= MEDGE_CREATE_QP_RELAXED;
	if (medge_attr->create_flags & MEDGEDV_QP_CREATE_POLLED)
		flags |= MEDGE_CREATE_QP_POLLED;
	return medge_create_qp_flags(context, attr, flags);
}

int medgedv_query_device(struct ibv_context *context,
			 struct medgedv_device_attr *attr, uint32_t inlen)
{
	DECLARE_COMMAND_BUFFER(cmd, UVERBS_OBJECT_DEVICE,
			       MEDGE_METHOD_QUERY_DEVICE, 1);
	struct medge_device_info info = {};
	int ret;

	if (!medgedv_is_supported(context->device))
		return EOPNOTSUPP;
	if (!medge_knows(struct medgedv_device_attr, reserved, inlen))
		return EINVAL;
	fill_attr_out_ptr(cmd, MEDGE_ATTR_QUERY_DEVICE_INFO, &info);
	ret = execute_ioctl(context, cmd);
	if (ret)
		return ret;

	medge_copy_out(attr, inlen, &(struct medgedv_device_attr) {
		.caps = info.caps,
		.wire_version = info.wire_version,
		.ethertype = info.ethertype,
		.max_rails = info.max_rails,
		.num_rails = info.num_rails,
		.window = info.window,
		.op_window = info.op_window,
		.frame_payload = info.frame_payload,
		.superframe_payload = info.superframe_payload,
		.ack_frames = info.ack_frames,
		.ack_delay_us = info.ack_delay_us,
	}, sizeof(*attr));
	return 0;
}

int medgedv_query_qp(struct ibv_qp *qp, struct medgedv_qp_attr *attr,
		     uint32_t inlen)
{
	DECLARE_COMMAND_BUFFER(cmd, UVERBS_OBJECT_QP, MEDGE_METHOD_QUERY_QP, 2);
	struct medge_qp_info info = {};
	int ret;

	if (!medgedv_is_supported(qp->context->device))
		return EOPNOTSUPP;
	if (!medge_knows(struct medgedv_qp_attr, held, inlen))
		return EINVAL;
	fill_attr_in_obj(cmd, MEDGE_ATTR_QUERY_QP_HANDLE, qp->handle);
	fill_attr_out_ptr(cmd, MEDGE_ATTR_QUERY_QP_INFO, &info);
	ret = execute_ioctl(qp->context, cmd);
	if (ret)
		return ret;

	medge_copy_out(attr, inlen, &(struct medgedv_qp_attr) {
		.flags = info.flags,
		.frame_payload = info.frame_payload,
		.ops_waiting = info.ops_waiting,
		.ops_outstanding = info.ops_outstanding,
		.frames_outstanding = info.frames_outstanding,
		.frames_held = info.frames_held,
		.tx_frames = info.tx_frames,
		.tx_bytes = info.tx_bytes,
		.rx_frames = info.rx_frames,
		.rx_bytes = info.rx_bytes,
		.retransmits = info.retransmits,
		.dups = info.dups,
		.held = info.held,
	}, sizeof(*attr));
	return 0;
}

static void medge_copy_rail(const struct medge_rail_info *info,
			    struct medgedv_rail_attr *rail, size_t entry_size)
{
	struct medgedv_rail_attr attr = {
		.index = info->index,
		.flags = info->flags,
		.ifindex = info->ifindex,
		.mtu = info->mtu,
		.speed_mbps = info->speed_mbps,
		.weight = info->weight,
		.tx_frames = info->tx_frames,
		.tx_bytes = info->tx_bytes,
		.tx_retransmits = info->tx_retransmits,
		.tx_errors = info->tx_errors,
		.rx_frames = info->rx_frames,
		.rx_bytes = info->rx_bytes,
	};

	static_assert(sizeof(attr.name) == sizeof(info->name),
		      "the name is told in full");
	memcpy(attr.name, info->name, sizeof(attr.name));
	medge_copy_out(rail, entry_size, &attr, sizeof(attr));
}

ssize_t medgedv_query_rails(struct ibv_context *context,
			    struct medgedv_rail_attr *rails, size_t max_rails,
			    uint32_t entry_size)
{
	DECLARE_COMMAND_BUFFER(cmd, UVERBS_OBJECT_DEVICE,
			       MEDGE_METHOD_QUERY_RAILS, 3);
	struct medge_rail_info info[MEDGE_RAILS_ASKED] = {};
	uint32_t num = 0, i;
	int ret;

	if (!medgedv_is_supported(context->device))
		return -EOPNOTSUPP;
	if (!medge_knows(struct medgedv_rail_attr, rx_bytes, entry_size))
		return -EINVAL;
	fill_attr_const_in(cmd, MEDGE_ATTR_QUERY_RAILS_ENTRY_SIZE,
			   sizeof(info[0]));
	fill_attr_out_ptr_array(cmd, MEDGE_ATTR_QUERY_RAILS_ENTRIES, info,
				MEDGE_RAILS_ASKED);
	fill_attr_out_ptr(cmd, MEDGE_ATTR_QUERY_RAILS_NUM, &num);
	ret = execute_ioctl(context, cmd);
	if (ret)
		return -ret;

	for (i = 0; i < num && i < max_rails && i < MEDGE_RAILS_ASKED; i++)
		medge_copy_rail(&info[i],
				(struct medgedv_rail_attr *)
				((uint8_t *)rails + (size_t)i * entry_size),
				entry_size);
	return num;
}
