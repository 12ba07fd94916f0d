// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Superframes and bundles: cut into frames where a device cannot take them whole. */
#include <linux/etherdevice.h>
#include <linux/netdevice.h>
#include <linux/skbuff.h>

#include "bundle.h"
#include "rail.h"
#include "seal.h"

/* skb->data is at the medge header, or its seal; the Ethernet header is in front of it. */
static struct sk_buff *cut_superframe(struct sk_buff *skb,
				      netdev_features_t features)
{
	u32 hdr_off = skb->data - skb_mac_header(skb);
	struct sk_buff *segs, *seg;
	u32 count = 0, i = 0, sealed;
	int seal_len = medge_seal_len(skb);

	if (seal_len < 0 || !pskb_may_pull(skb, seal_len + MEDGE_HDR_LEN))
		return ERR_PTR(-EINVAL);
	sealed = seal_len ? medge_seal_frames(skb->data) : 0;
	__skb_pull(skb, seal_len + MEDGE_HDR_LEN);

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
	/* Others may give their own to the network, whatever these say. */
	if (sealed && sealed != count) {
		kfree_skb_list(segs);
		return ERR_PTR(-EINVAL);
	}
	for (seg = segs; seg; seg = seg->next, i++) {
		medge_wire_cut(seg->data + hdr_off + seal_len, i, count);
		if (sealed)
			medge_seal_cut(seg, hdr_off, i);
	}
	return segs;
}

/* skb->data as above. Those in a bundle have a header each, but the Ethernet's. */
static struct sk_buff *cut(struct sk_buff *skb, netdev_features_t features)
{
	if (medge_is_bundle(skb))
		return skb_segment_list(skb, features,
					skb->data - skb_mac_header(skb));
	return cut_superframe(skb, features);
}

static struct packet_offload offload = {
	.type = cpu_to_be16(MEDGE_ETHERTYPE),
	.priority = 15,
	.callbacks = {
		.gso_segment = cut,
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
