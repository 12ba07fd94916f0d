// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What the device says of itself and of its port; contexts and PDs. */
#include <linux/math64.h>
#include <linux/netdevice.h>
#include <rdma/ib_mad.h>
#include <rdma/ib_verbs.h>
#include <rdma/medge-abi.h>

#include "compat.h"
#include "device.h"
#include "frwr.h"
#include "odp.h"
#include "verbs.h"

int medge_udata_read(struct ib_udata *udata, void *req, size_t size)
{
	size_t len = min(size, udata->inlen);

	if (ib_copy_from_udata(req, udata, len))
		return -EFAULT;
	memset(req + len, 0, size - len);
	if (udata->inlen > len &&
	    !ib_is_udata_cleared(udata, len, udata->inlen - len))
		return -EOPNOTSUPP;
	return 0;
}

int medge_query_device(struct ib_device *ibdev, struct ib_device_attr *attr,
		       struct ib_udata *udata)
{
	if (udata && udata->inlen &&
	    !ib_is_udata_cleared(udata, 0, udata->inlen))
		return -EOPNOTSUPP;

	*attr = (struct ib_device_attr) {
		.sys_image_guid = ibdev->node_guid,
		/* No hardware, so no vendor: the OUI of nobody, as rxe has it */
		.vendor_id = 0xffffff,
		.max_mr_size = U64_MAX,
		.page_size_cap = PAGE_MASK & U32_MAX,
		.max_qp = MEDGE_MAX_QP,
		.max_qp_wr = MEDGE_MAX_QP_WR,
		.device_cap_flags = IB_DEVICE_RC_RNR_NAK_GEN |
				    IB_DEVICE_SYS_IMAGE_GUID |
				    IB_DEVICE_MEM_WINDOW |
				    IB_DEVICE_MEM_MGT_EXTENSIONS |
				    IB_DEVICE_SRQ_RESIZE |
				    IB_DEVICE_XRC |
				    IB_DEVICE_MEM_WINDOW_TYPE_2B |
				    IB_DEVICE_FLUSH_GLOBAL |
				    IB_DEVICE_ATOMIC_WRITE |
				    IB_DEVICE_CURR_QP_STATE_MOD,
		.kernel_cap_flags = IBK_ALLOW_USER_UNREG,
		.max_send_sge = MEDGE_MAX_SGE,
		.max_recv_sge = MEDGE_MAX_SGE,
		.max_sge_rd = MEDGE_MAX_SGE,
		.max_cq = MEDGE_MAX_CQ,
		.max_cqe = MEDGE_MAX_CQE,
		.max_mr = MEDGE_MAX_MR,
		.max_fast_reg_page_list_len = MEDGE_MAX_FAST_PAGES,
		.max_mw = MEDGE_MAX_MR,
		.max_pd = MEDGE_MAX_PD,
		.max_dm_size = MEDGE_MAX_DM,
		.max_srq = MEDGE_MAX_SRQ,
		.max_srq_wr = MEDGE_MAX_QP_WR,
		.max_srq_sge = MEDGE_MAX_SGE,
		.max_qp_rd_atom = MEDGE_MAX_RD_ATOMIC,
		.max_qp_init_rd_atom = MEDGE_MAX_RD_ATOMIC,
		.max_res_rd_atom = MEDGE_MAX_QP * MEDGE_MAX_RD_ATOMIC,
		.atomic_cap = IB_ATOMIC_HCA,
		.max_ah = MEDGE_MAX_AH,
		.max_mcast_grp = MEDGE_MAX_GROUPS,
		.max_mcast_qp_attach = MEDGE_MAX_MEMBERS,
		.max_total_mcast_qp_attach = MEDGE_MAX_GROUPS * MEDGE_MAX_MEMBERS,
		.max_pkeys = 1,
		.local_ca_ack_delay = 15,
		/* CQEs are stamped in ns */
		.timestamp_mask = U64_MAX,
		.hca_core_clock = NSEC_PER_SEC / 1000,
		.cq_caps = {
			.max_cq_moderation_count = U16_MAX,
			.max_cq_moderation_period = U16_MAX,
		},
	};
	medge_odp_caps(attr);
	return 0;
}

/* Mbit/s of one lane, as ib_core shows them; sorted. */
static const struct {
	u32 mbps;
	u16 speed;
} lane_speeds[] = {
	{ 2500, IB_SPEED_SDR },
	{ 5000, IB_SPEED_DDR },
	{ 10000, IB_SPEED_QDR },
	{ 14000, IB_SPEED_FDR },
	{ 25000, IB_SPEED_EDR },
	{ 50000, IB_SPEED_HDR },
	{ 100000, IB_SPEED_NDR },
	{ 200000, IB_SPEED_XDR },
};

static const struct {
	u32 lanes;
	u8 width;
} lane_widths[] = {
	{ 1, IB_WIDTH_1X },
	{ 2, IB_WIDTH_2X },
	{ 4, IB_WIDTH_4X },
	{ 8, IB_WIDTH_8X },
	{ 12, IB_WIDTH_12X },
};

/* The most that speed and width can say without saying more than there is. */
static void set_port_speed(struct ib_port_attr *attr, u64 mbps)
{
	u64 best = 0;
	int s, w;

	attr->active_speed = IB_SPEED_SDR;
	attr->active_width = IB_WIDTH_1X;
	for (w = 0; w < ARRAY_SIZE(lane_widths); w++) {
		for (s = 0; s < ARRAY_SIZE(lane_speeds); s++) {
			u64 rate = (u64)lane_widths[w].lanes *
				   lane_speeds[s].mbps;

			if (rate > mbps || rate <= best)
				continue;
			best = rate;
			attr->active_speed = lane_speeds[s].speed;
			attr->active_width = lane_widths[w].width;
		}
	}
}

int medge_query_port(struct ib_device *ibdev, u32 port,
		     struct ib_port_attr *attr)
{
	struct medge_device *dev = to_medge_device(ibdev);
	struct net_device *netdev = dev->netdev;

	/* ib_core has zeroed @attr, set what it knows better, and checked @port. */
	attr->max_mtu = IB_MTU_4096;
	attr->active_mtu = ib_mtu_int_to_enum(medge_rails_room(dev,
							       MEDGE_HDR_LEN));
	attr->phys_mtu = medge_rails_mtu(dev);
	attr->gid_tbl_len = MEDGE_GID_TABLE;
	attr->ip_gids = true;
	attr->port_cap_flags = IB_PORT_CM_SUP;
	attr->max_msg_sz = MEDGE_MSG_MAX;
	attr->pkey_tbl_len = 1;
	attr->max_vl_num = 1;
	attr->subnet_timeout = 0;
	set_port_speed(attr, medge_rails_speed(dev));

	attr->state = IB_PORT_DOWN;
	if (!netif_running(netdev)) {
		attr->phys_state = IB_PORT_PHYS_STATE_DISABLED;
	} else if (!netif_carrier_ok(netdev)) {
		attr->phys_state = IB_PORT_PHYS_STATE_POLLING;
	} else {
		attr->state = IB_PORT_ACTIVE;
		attr->phys_state = IB_PORT_PHYS_STATE_LINK_UP;
	}
	return 0;
}

/* What all rails that are up carry together, in units of 100 Mbit/s. */
int medge_query_port_speed(struct ib_device *ibdev, u32 port, u64 *speed)
{
	*speed = div_u64(medge_rails_speed(to_medge_device(ibdev)), 100);
	return 0;
}

int medge_query_pkey(struct ib_device *ibdev, u32 port, u16 index, u16 *pkey)
{
	if (index)
		return -EINVAL;
	*pkey = 0xffff;		/* the default P_Key, full member */
	return 0;
}

/*
 * RoCE v2 in all that concerns addresses, so that programs find the GIDs they
 * know, and IB's connection manager over QP 1.
 */
int medge_get_port_immutable(struct ib_device *ibdev, u32 port,
			     struct ib_port_immutable *im)
{
	im->core_cap_flags = RDMA_CORE_PORT_IBA_ROCE_UDP_ENCAP;
	im->max_mad_size = IB_MGMT_MAD_SIZE;
	im->gid_tbl_len = MEDGE_GID_TABLE;
	im->pkey_tbl_len = 1;
	return 0;
}

enum rdma_link_layer medge_get_link_layer(struct ib_device *ibdev, u32 port)
{
	return IB_LINK_LAYER_ETHERNET;
}

int medge_alloc_ucontext(struct ib_ucontext *ibuc, struct ib_udata *udata)
{
	struct medge_alloc_ucontext_resp resp = {
		.max_inline = MEDGE_MAX_INLINE,
		.max_sge = MEDGE_MAX_SGE,
		.features = MEDGE_FEATURE_RING_QP,
	};
	struct medge_device *dev = to_medge_device(ibuc->device);
	struct medge_ucontext *uc =
		container_of(ibuc, struct medge_ucontext, ibuc);

	/*
	 * Nothing works less without it, so who cannot be told does without, and
	 * who cannot be counted has no objects:
	 * of a context that fails here, the core (up to Linux 7.2) leaks the
	 * reference to its task.
	 */
	uc->process = medge_process_get(&dev->quotas);
	(void)ib_copy_to_udata(udata, &resp, min(sizeof(resp), udata->outlen));
	return 0;
}

/* Of a context imported by its command fd. */
int medge_query_ucontext(struct ib_ucontext *ibuc,
			 struct uverbs_attr_bundle *attrs)
{
	return 0;
}

void medge_dealloc_ucontext(struct ib_ucontext *ibuc)
{
	medge_process_put(container_of(ibuc, struct medge_ucontext, ibuc)->process);
}

/*
 * Nothing to do: ib_core destroys the objects, and mappings of rings have their
 * own hold on the pages. That it exists lets the device go while it is open.
 */
void medge_disassociate_ucontext(struct ib_ucontext *ibuc)
{
}

int medge_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	return 0;
}

int medge_dealloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	return 0;
}

/* Who shares a domain is ib_core's to say; here it only has an identity. */
int medge_alloc_xrcd(struct ib_xrcd *ibxrcd, struct ib_udata *udata)
{
	return 0;
}

int medge_dealloc_xrcd(struct ib_xrcd *ibxrcd, struct ib_udata *udata)
{
	return 0;
}
