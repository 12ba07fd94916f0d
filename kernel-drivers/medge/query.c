// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What user space may ask beyond verbs: the device, its rails, a QP. */
#include <rdma/ib_verbs.h>
#include <rdma/medge-abi.h>

#include "borrow.h"
#include "device.h"
#include "dm.h"
#include "doorbell.h"
#include "qp.h"
#include "query.h"

#define UVERBS_MODULE_NAME medge
#include <rdma/uverbs_named_ioctl.h>

static struct medge_device *attrs_device(struct uverbs_attr_bundle *attrs)
{
	struct ib_ucontext *uctx = ib_uverbs_get_ucontext(attrs);

	return IS_ERR(uctx) ? ERR_CAST(uctx) : to_medge_device(uctx->device);
}

/* ---- the device ---- */

static int UVERBS_HANDLER(MEDGE_METHOD_QUERY_DEVICE)(struct uverbs_attr_bundle *attrs)
{
	struct medge_device *dev = attrs_device(attrs);
	struct medge_device_info info;

	if (IS_ERR(dev))
		return PTR_ERR(dev);
	info = (struct medge_device_info) {
		.caps = MEDGE_CAP_FENCES | MEDGE_CAP_RELAXED_QP |
			MEDGE_CAP_POLLED_QP,
		.wire_version = MEDGE_WIRE_VERSION,
		.ethertype = MEDGE_ETHERTYPE,
		.max_rails = MEDGE_MAX_RAILS,
		.num_rails = medge_rails_describe(dev, NULL, 0),
		.window = MEDGE_WINDOW,
		.op_window = MEDGE_OP_WINDOW,
		.frame_payload = medge_rails_room(dev, MEDGE_HDR_LEN),
		.superframe_payload = MEDGE_RUN_MAX,
		.ack_frames = MEDGE_ACK_FRAMES,
		.ack_delay_us = MEDGE_ACK_DELAY_NS / NSEC_PER_USEC,
	};
	return uverbs_copy_to_struct_or_zero(attrs, MEDGE_ATTR_QUERY_DEVICE_INFO,
					     &info, sizeof(info));
}

/* ---- its rails ---- */

/* Entries as long as the caller knows them; what he knows more of is zeros. */
static int copy_rails(struct uverbs_attr_bundle *attrs,
		      const struct medge_rail_info *rails, u32 n, u64 size)
{
	u8 *entries;
	u32 i;

	if (size == sizeof(*rails))
		return uverbs_copy_to(attrs, MEDGE_ATTR_QUERY_RAILS_ENTRIES,
				      rails, n * sizeof(*rails));
	entries = uverbs_kcalloc(attrs, n, size);
	if (IS_ERR(entries))
		return PTR_ERR(entries);
	for (i = 0; i < n; i++)
		memcpy(entries + i * size, &rails[i],
		       min_t(u64, size, sizeof(*rails)));
	return uverbs_copy_to(attrs, MEDGE_ATTR_QUERY_RAILS_ENTRIES, entries,
			      n * size);
}

static int UVERBS_HANDLER(MEDGE_METHOD_QUERY_RAILS)(struct uverbs_attr_bundle *attrs)
{
	struct medge_device *dev = attrs_device(attrs);
	struct medge_rail_info *rails;
	u32 num, max;
	u64 size;
	int ret;

	if (IS_ERR(dev))
		return PTR_ERR(dev);
	ret = uverbs_get_const(&size, attrs, MEDGE_ATTR_QUERY_RAILS_ENTRY_SIZE);
	if (ret)
		return ret;
	if (!size || size > U16_MAX)
		return -EINVAL;
	ret = uverbs_attr_ptr_get_array_size(attrs,
					     MEDGE_ATTR_QUERY_RAILS_ENTRIES,
					     size);
	if (ret < 0)
		return ret;
	max = min_t(u32, ret, MEDGE_MAX_RAILS);
	rails = uverbs_kcalloc(attrs, MEDGE_MAX_RAILS, sizeof(*rails));
	if (IS_ERR(rails))
		return PTR_ERR(rails);

	num = medge_rails_describe(dev, rails, max);
	ret = copy_rails(attrs, rails, min(num, max), size);
	if (ret)
		return ret;
	return uverbs_copy_to(attrs, MEDGE_ATTR_QUERY_RAILS_NUM, &num,
			      sizeof(num));
}

/* ---- a QP ---- */

static void describe_connection(const struct medge_conn *conn,
				struct medge_qp_info *info)
{
	const struct medge_conn_stats *st = medge_conn_stats(conn);
	struct medge_conn_info ci;

	medge_conn_query(conn, &ci);
	info->flags |= MEDGE_QP_CONNECTED;
	if (ci.rnr)
		info->flags |= MEDGE_QP_RNR;
	if (ci.rnr_wait)
		info->flags |= MEDGE_QP_RNR_WAIT;
	info->frame_payload = ci.seg_len;
	info->ops_waiting = ci.ops_waiting;
	info->ops_outstanding = ci.ops_outstanding;
	info->frames_outstanding = ci.frames_unacked;
	info->frames_held = ci.frames_held;
	info->tx_frames = st->tx_frames;
	info->tx_bytes = st->tx_bytes;
	info->rx_frames = st->rx_frames;
	info->rx_bytes = st->rx_bytes;
	info->retransmits = st->retransmits;
	info->dups = st->dups;
	info->held = st->held;
}

static int UVERBS_HANDLER(MEDGE_METHOD_QUERY_QP)(struct uverbs_attr_bundle *attrs)
{
	struct ib_qp *ibqp = uverbs_attr_get_obj(attrs,
						 MEDGE_ATTR_QUERY_QP_HANDLE);
	struct medge_qp_info info = {};
	struct medge_qp *qp;

	if (IS_ERR(ibqp))
		return PTR_ERR(ibqp);
	/* The handle of an XRC target is not it, but one of several through which it is open. */
	qp = to_medge_qp(ibqp->real_qp);
	if (qp->relaxed)
		info.flags |= MEDGE_QP_RELAXED;
	if (READ_ONCE(qp->polled.wanted))
		info.flags |= MEDGE_QP_POLLED;
	/* Another thread may be resetting it, and freeing the connection. */
	if (medge_qp_hold(qp)) {
		spin_lock_bh(&qp->lock);
		if (qp->conn)
			describe_connection(qp->conn, &info);
		spin_unlock_bh(&qp->lock);
		medge_qp_put(qp);
	}
	return uverbs_copy_to_struct_or_zero(attrs, MEDGE_ATTR_QUERY_QP_INFO,
					     &info, sizeof(info));
}

/* ---- what they take ---- */

DECLARE_UVERBS_NAMED_METHOD(MEDGE_METHOD_QUERY_DEVICE,
			    UVERBS_ATTR_PTR_OUT(MEDGE_ATTR_QUERY_DEVICE_INFO,
						UVERBS_ATTR_STRUCT(struct medge_device_info,
								   reserved),
						UA_MANDATORY));

DECLARE_UVERBS_NAMED_METHOD(MEDGE_METHOD_QUERY_RAILS,
			    UVERBS_ATTR_CONST_IN(MEDGE_ATTR_QUERY_RAILS_ENTRY_SIZE,
						 u64, UA_MANDATORY),
			    UVERBS_ATTR_PTR_OUT(MEDGE_ATTR_QUERY_RAILS_ENTRIES,
						UVERBS_ATTR_MIN_SIZE(0),
						UA_MANDATORY),
			    UVERBS_ATTR_PTR_OUT(MEDGE_ATTR_QUERY_RAILS_NUM,
						UVERBS_ATTR_TYPE(u32),
						UA_MANDATORY));

DECLARE_UVERBS_NAMED_METHOD(MEDGE_METHOD_QUERY_QP,
			    UVERBS_ATTR_IDR(MEDGE_ATTR_QUERY_QP_HANDLE,
					    UVERBS_OBJECT_QP,
					    UVERBS_ACCESS_READ, UA_MANDATORY),
			    UVERBS_ATTR_PTR_OUT(MEDGE_ATTR_QUERY_QP_INFO,
						UVERBS_ATTR_STRUCT(struct medge_qp_info,
								   held),
						UA_MANDATORY));

ADD_UVERBS_METHODS(medge_device, UVERBS_OBJECT_DEVICE,
		   &UVERBS_METHOD(MEDGE_METHOD_QUERY_DEVICE),
		   &UVERBS_METHOD(MEDGE_METHOD_QUERY_RAILS));

ADD_UVERBS_METHODS(medge_qp, UVERBS_OBJECT_QP,
		   &UVERBS_METHOD(MEDGE_METHOD_QUERY_QP));

const struct uapi_definition medge_query_methods[] = {
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_DEVICE, &medge_device),
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_QP, &medge_qp),
	UAPI_DEF_CHAIN(medge_dm_defs),
	UAPI_DEF_CHAIN(medge_borrow_defs),
	UAPI_DEF_CHAIN(medge_doorbell_defs),
	{},
};
