// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Frames come in on a rail: the seals are taken off those that are ours. */
#include <linux/etherdevice.h>
#include <linux/if_vlan.h>

#include "bundle.h"
#include "device.h"
#include "join.h"
#include "keys.h"
#include "rail.h"
#include "receive.h"
#include "seal.h"

/* On balance-alb each slave has its own address; peers know only the bond's. */
static bool is_ours(const struct medge_rail *rail, const u8 *mac)
{
	return ether_addr_equal(mac, rail->dev->netdev->dev_addr) ||
	       ether_addr_equal(mac, rail->netdev->dev_addr);
}

/*
 * The core takes the tag off before we see the frame, and says which it was by
 * the VLAN device, or only that there was one: to another host, it then says.
 */
static u16 frame_vlan(const struct medge_rail *rail, const struct sk_buff *skb,
		      const struct net_device *netdev)
{
	if (skb_vlan_tag_present(skb))
		return skb_vlan_tag_get_id(skb) ?: MEDGE_VLAN_NONE;
	if (is_vlan_dev(netdev))
		return vlan_dev_vlan_id(netdev);
	if (skb->pkt_type == PACKET_OTHERHOST &&
	    ether_addr_equal(eth_hdr(skb)->h_dest, rail->netdev->dev_addr))
		return MEDGE_VLAN_UNKNOWN;
	return MEDGE_VLAN_NONE;
}

/*
 * A group's frames may come on each of a bond's slaves; the bond takes them from
 * those it uses, and so do we.
 */
static bool is_for_group(const struct medge_rail *rail, const struct sk_buff *skb,
			 const struct net_device *netdev)
{
	return is_multicast_ether_addr(eth_hdr(skb)->h_dest) &&
	       skb->pkt_type != PACKET_OTHERHOST &&
	       (netdev != rail->netdev || netdev == rail->dev->netdev);
}

/* What a device takes of what the network brings: seals are off, and were right. */
static bool take_seal(struct medge_rail *rail, struct sk_buff *skb,
		      const struct medge_rx_l2 *l2)
{
	struct medge_device *dev = rail->dev;

	if (medge_is_secret(skb->data))
		return medge_keys_open(rail, skb, l2);
	if (medge_is_about_keys(skb->data)) {
		medge_keys_receive(rail, skb, l2);
		return false;
	}
	if (!medge_is_sealed(skb->data) ||
	    READ_ONCE(dev->integrity) == MEDGE_INTEGRITY_AEAD) {
		medge_count(dev, rx_unsealed);
		return false;
	}
	if (!medge_unseal(skb)) {
		medge_count(dev, rx_bad_seal);
		return false;
	}
	return true;
}

static bool is_runt(struct medge_device *dev, struct sk_buff *skb)
{
	if (pskb_may_pull(skb, sizeof(struct medge_frame_hdr)))
		return false;
	medge_count_drop(dev, MEDGE_DROP_RUNT);
	return true;
}

/* Of a bundle, those behind the first. */
static void receive_others(struct medge_arrivals *in, struct sk_buff *others,
			   const struct medge_rx_l2 *l2)
{
	struct sk_buff *skb, *next;

	skb_list_walk_safe(others, skb, next) {
		skb_mark_not_on_list(skb);
		if (is_runt(in->rail->dev, skb))
			kfree_skb(skb);
		else
			medge_join_receive(in, skb, l2);
	}
}

/*
 * Sits on the rail itself: on a bond's inactive slave the bond keeps everything
 * from itself, but not from us. In softirq, RCU read side.
 */
int medge_rail_receive(struct sk_buff *skb, struct net_device *netdev,
		       struct packet_type *pt, struct net_device *orig)
{
	struct medge_rail *rail = container_of(pt, struct medge_rail, pt);
	struct medge_device *dev = rail->dev;
	struct medge_arrivals in __uninitialized;
	struct sk_buff *others = NULL;
	struct medge_rx_l2 l2;
	u32 frames;

	skb = skb_share_check(skb, GFP_ATOMIC);
	if (!skb) {
		medge_count(dev, rx_no_memory);
		return NET_RX_DROP;
	}
	l2.multicast = is_for_group(rail, skb, netdev);
	if (!l2.multicast && !is_ours(rail, eth_hdr(skb)->h_dest)) {
		medge_count(dev, rx_not_ours);
		goto drop;
	}
	if (is_runt(dev, skb))
		goto drop;
	frames = medge_skb_frames(skb);
	medge_count(dev, rx_skbs);
	if (medge_poller_is_at_it(&dev->poller))
		medge_count(dev, rx_polled);
	medge_rail_count_add(dev, rail->index, rx_frames, frames);
	medge_rail_count_add(dev, rail->index, rx_bytes,
			     medge_skb_wire_bytes(skb, frames));
	ether_addr_copy(l2.smac, eth_hdr(skb)->h_source);
	l2.vlan = frame_vlan(rail, skb, netdev);
	if (unlikely(medge_seals(dev) || medge_is_wrapped(skb->data)) &&
	    !take_seal(rail, skb, &l2))
		goto drop;
	if (medge_is_bundle(skb) && medge_bundle_split(skb, &others)) {
		medge_count(dev, rx_no_memory);
		goto drop;
	}
	medge_arrivals_init(&in, rail);
	medge_join_receive(&in, skb, &l2);
	receive_others(&in, others, &l2);
	medge_arrivals_end(&in);
	return NET_RX_SUCCESS;

drop:
	kfree_skb(skb);
	return NET_RX_DROP;
}
