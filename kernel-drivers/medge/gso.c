// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Superframes: cut into frames where a device cannot take them whole. */
#include <linux/etherdevice.h>
#include <linux/netdevice.h>
#include <linux/skbuff.h>

#include "rail.h"

/* skb->data is at the medge header; the Ethernet header is in front of it. */
static struct sk_buff *cut_superframe(struct sk_buff *skb,
				      netdev_features_t features)
{
	u32 hdr_off = skb->data - skb_mac_header(skb);
	struct sk_buff *segs, *seg;
	u32 count = 0, i = 0;

	if (!pskb_may_pull(skb, MEDGE_HDR_LEN))
		return ERR_PTR(-EINVAL);
	__skb_pull(skb, MEDGE_HDR_LEN);

	/*
	 * Nothing is to be checksummed. Without the flag skb_segment() would
	 * sum up all segments; partial GSO would leave them uncut.
	 */
	features |= NETIF_F_HW_CSUM;
	features &= ~NETIF_F_GSO_PARTIAL;
	segs = skb_segment(skb, features);
	if (IS_ERR_OR_NULL(segs))
		return segs;

	for (seg = segs; seg; seg = seg->next)
		count++;
	for (seg = segs; seg; seg = seg->next)
		medge_wire_cut(seg->data + hdr_off, i++, count);
	return segs;
}

static struct packet_offload offload = {
	.type = cpu_to_be16(MEDGE_ETHERTYPE),
	.priority = 15,
	.callbacks = {
		.gso_segment = cut_superframe,
	},
};

int medge_gso_register(void)
{
	dev_add_offload(&offload);
	return 0;
}

void medge_gso_unregister(void)
{
	dev_remove_offload(&offload);
}
