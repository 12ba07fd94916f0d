// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Frames leave on a rail, sealed if that is asked for. */
#include <linux/etherdevice.h>
#include <linux/if_vlan.h>

#include "device.h"
#include "keys.h"
#include "loop.h"
#include "rail.h"
#include "seal.h"

static void push_eth_header(struct sk_buff *skb, const u8 *dmac, const u8 *smac)
{
	struct ethhdr *eth;
	u32 each = MEDGE_HDR_LEN;

	if (medge_is_bundle(skb))
		each = 0;
	else if (medge_is_sealed(skb->data))
		each += medge_seal_head(skb->data) + medge_seal_each(skb->data);

	/* Who cuts, and who counts bytes, takes what is before the latter for each frame's. */
	skb_reset_network_header(skb);
	skb_set_transport_header(skb, each);
	eth = skb_push(skb, ETH_HLEN);
	ether_addr_copy(eth->h_dest, dmac);
	ether_addr_copy(eth->h_source, smac);
	eth->h_proto = htons(MEDGE_ETHERTYPE);
	skb_reset_mac_header(skb);
	skb_reset_mac_len(skb);
	skb->protocol = htons(MEDGE_ETHERTYPE);
}

/* As if it had come in there. */
static int loop_back(struct sk_buff *skb, struct net_device *netdev)
{
	skb_orphan(skb);
	skb->protocol = eth_type_trans(skb, netdev);
	return netif_rx(skb);
}

/* 0, or -errno. */
static int seal(struct medge_rail *rail, const struct medge_l2 *to,
		struct sk_buff *skb, u32 frames, u32 headroom)
{
	if (READ_ONCE(rail->dev->integrity) == MEDGE_INTEGRITY_AEAD)
		return medge_keys_seal(rail, to, skb, frames, headroom);
	return medge_seal(skb, frames, headroom) ? 0 : -ENOMEM;
}

/* Make it ready to leave. 0, or -errno. */
static int prepare(struct medge_rail *rail, const struct medge_l2 *to,
		   struct sk_buff *skb, u32 frames)
{
	u32 headroom = LL_RESERVED_SPACE(rail->netdev);
	int err = 0;

	if (unlikely(medge_seals(rail->dev)))
		err = seal(rail, to, skb, frames, headroom);
	return err ?: skb_cow_head(skb, headroom);
}

/* To @near, if that is a rail of this host. 0, or -errno. */
static int leave(struct medge_rail *rail, struct medge_rail *near,
		 const struct medge_l2 *to, struct sk_buff *skb)
{
	int err;

	skb->dev = rail->netdev;
	push_eth_header(skb, to->dmac, rail->dev->netdev->dev_addr);
	if (to->vlan != MEDGE_VLAN_NONE)
		__vlan_hwaccel_put_tag(skb, htons(ETH_P_8021Q), to->vlan);
	if (near)
		err = loop_back(skb, near->netdev);
	else
		err = dev_queue_xmit(skb);
	/* a macro that evaluates its argument twice */
	return net_xmit_eval(err);
}

void medge_rail_xmit_clear(struct medge_device *dev, u32 rail_index,
			   const struct medge_l2 *to, struct sk_buff *skb)
{
	struct medge_rail *rail;

	rcu_read_lock();
	rail = rcu_dereference(dev->rails.rail[rail_index]);
	if (!rail || skb_cow_head(skb, LL_RESERVED_SPACE(rail->netdev)))
		kfree_skb(skb);
	else
		leave(rail, medge_loop_find(rail, to), to, skb);
	rcu_read_unlock();
}

bool medge_rail_bundles(struct medge_device *dev, u32 rail_index,
			const struct medge_l2 *to)
{
	const netdev_features_t list = NETIF_F_FRAGLIST | NETIF_F_GSO_FRAGLIST;
	struct medge_rail *rail;
	bool may;

	if (medge_seals(dev))
		return false;
	rcu_read_lock();
	rail = rcu_dereference(dev->rails.rail[rail_index]);
	may = rail && !(list & ~rail->netdev->features) &&
	      !medge_loop_find(rail, to);
	rcu_read_unlock();
	return may;
}

bool medge_rail_xmit(struct medge_device *dev, u32 rail_index,
		     const struct medge_l2 *to, struct sk_buff *skb, bool again)
{
	u32 frames = medge_skb_frames(skb), bytes = 0;
	struct medge_rail *rail, *near = NULL;
	int err = -ENETDOWN;

	rcu_read_lock();
	rail = rcu_dereference(dev->rails.rail[rail_index]);
	if (rail)
		near = medge_loop_find(rail, to);
	if (near && medge_loop_receive(dev, near, to, skb)) {
		rcu_read_unlock();
		return true;
	}
	if (rail)
		err = prepare(rail, to, skb, frames);
	if (err) {
		kfree_skb(skb);
	} else {
		bytes = medge_skb_wire_bytes(skb, frames);
		err = leave(rail, near, to, skb);
	}
	rcu_read_unlock();

	/* That is counted; it will go when there is a key. */
	if (err == -ENOKEY)
		return false;
	if (err) {
		medge_count(dev, tx_errors);
		medge_rail_count(dev, rail_index, tx_errors);
		return false;
	}
	medge_count(dev, tx_skbs);
	medge_rail_count_add(dev, rail_index, tx_frames, frames);
	medge_rail_count_add(dev, rail_index, tx_bytes, bytes);
	if (again)
		medge_rail_count_add(dev, rail_index, tx_retransmits, frames);
	return false;
}
