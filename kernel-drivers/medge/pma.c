// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The standard port counters (IBTA 16.1.3): where sysfs, perfquery and what
 * collects from them look.
 */
#include <rdma/ib_pma.h>

#include "device.h"
#include "pma.h"
#include "stats.h"

enum {
	PMA_DATA = 40,			/* offset of an attribute in ib_mad.data */
	PORT_SELECT = PMA_DATA + 1,
};

/* Counters stop at their largest value, and data counts in four bytes. */
static __be16 sat16(u64 v)
{
	return cpu_to_be16(min_t(u64, v, U16_MAX));
}

static __be32 sat32(u64 v)
{
	return cpu_to_be32(min_t(u64, v, U32_MAX));
}

static void put_class_info(void *data)
{
	*(struct ib_class_port_info *)data = (struct ib_class_port_info) {
		.base_version = IB_MGMT_BASE_VERSION,
		.class_version = 1,
		.capability_mask = IB_PMA_CLASS_CAP_EXT_WIDTH,
	};
}

static void put_counters(void *data, u32 port,
			 const struct medge_port_stats *st)
{
	*(struct ib_pma_portcounters *)data = (struct ib_pma_portcounters) {
		.port_select = port,
		.port_rcv_errors = sat16(st->rx_errors),
		.port_xmit_discards = sat16(st->tx_errors),
		.port_xmit_data = sat32(st->tx_bytes / 4),
		.port_rcv_data = sat32(st->rx_bytes / 4),
		.port_xmit_packets = sat32(st->tx_frames),
		.port_rcv_packets = sat32(st->rx_frames),
	};
}

static void put_counters_ext(void *data, u32 port,
			     const struct medge_port_stats *st)
{
	*(struct ib_pma_portcounters_ext *)data =
		(struct ib_pma_portcounters_ext) {
			.port_select = port,
			.port_xmit_data = cpu_to_be64(st->tx_bytes / 4),
			.port_rcv_data = cpu_to_be64(st->rx_bytes / 4),
			.port_xmit_packets = cpu_to_be64(st->tx_frames),
			.port_rcv_packets = cpu_to_be64(st->rx_frames),
			.port_unicast_xmit_packets = cpu_to_be64(st->tx_frames),
			.port_unicast_rcv_packets = cpu_to_be64(st->rx_frames),
		};
}

/* Return: we have that attribute. */
static bool put_attribute(struct medge_device *dev, u32 port, __be16 attr,
			  void *data)
{
	struct medge_port_stats st;

	if (attr == IB_PMA_CLASS_PORT_INFO) {
		put_class_info(data);
		return true;
	}
	if (attr != IB_PMA_PORT_COUNTERS && attr != IB_PMA_PORT_COUNTERS_EXT)
		return false;
	medge_port_stats_read(dev, &st);
	if (attr == IB_PMA_PORT_COUNTERS)
		put_counters(data, port, &st);
	else
		put_counters_ext(data, port, &st);
	return true;
}

/* Counters are read and not reset: who asks for that is told it cannot be. */
int medge_process_mad(struct ib_device *ibdev, int flags, u32 port,
		      const struct ib_wc *in_wc, const struct ib_grh *in_grh,
		      const struct ib_mad *in, struct ib_mad *out,
		      size_t *out_size, u16 *out_pkey_index)
{
	struct medge_device *dev = to_medge_device(ibdev);
	const struct ib_mad_hdr *hdr = &in->mad_hdr;

	if (hdr->mgmt_class != IB_MGMT_CLASS_PERF_MGMT ||
	    (hdr->method != IB_MGMT_METHOD_GET &&
	     hdr->method != IB_MGMT_METHOD_SET))
		return IB_MAD_RESULT_SUCCESS;

	memset(out, 0, sizeof(*out));
	out->mad_hdr = *hdr;
	out->mad_hdr.method = IB_MGMT_METHOD_GET_RESP;
	BUILD_BUG_ON(PMA_DATA + sizeof(struct ib_pma_portcounters_ext) >
		     sizeof(out->data));
	if (hdr->class_version != 1)
		out->mad_hdr.status = cpu_to_be16(IB_MGMT_MAD_STATUS_BAD_VERSION);
	else if (hdr->method != IB_MGMT_METHOD_GET ||
		 !put_attribute(dev, in->data[PORT_SELECT], hdr->attr_id,
				out->data + PMA_DATA))
		out->mad_hdr.status =
			cpu_to_be16(IB_MGMT_MAD_STATUS_UNSUPPORTED_METHOD_ATTRIB);
	return IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_REPLY;
}
