// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Rails: the Ethernet ports that carry a device's frames, followed live. */
#include <linux/etherdevice.h>
#include <linux/ethtool.h>
#include <linux/if_vlan.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>
#include <net/bonding.h>

#include <rdma/medge-abi.h>

#include "device.h"
#include "join.h"
#include "keys.h"
#include "loop.h"
#include "mcast.h"
#include "qp.h"
#include "rail.h"
#include "seal.h"
#include "trace.h"

/* Between looks at the carriers. */
enum { LOOK_AGAIN_NS = 200000 };

static u32 frames_of(const struct sk_buff *skb)
{
	return skb_is_gso(skb) ? skb_shinfo(skb)->gso_segs : 1;
}

/* Bytes on the wire from the Ethernet header on; @skb starts at ours. */
static u32 wire_bytes(const struct sk_buff *skb, u32 frames)
{
	u32 more = ETH_HLEN + MEDGE_HDR_LEN;

	if (medge_is_sealed(skb->data))
		more += medge_seal_head(skb->data);
	return skb->len + ETH_HLEN + (frames - 1) * more;
}

/* ---- receive ---- */

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

/*
 * Sits on the rail itself: on a bond's inactive slave the bond keeps everything
 * from itself, but not from us. In softirq, RCU read side.
 */
static int receive_frame(struct sk_buff *skb, struct net_device *netdev,
			 struct packet_type *pt, struct net_device *orig)
{
	struct medge_rail *rail = container_of(pt, struct medge_rail, pt);
	struct medge_device *dev = rail->dev;
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
	if (!pskb_may_pull(skb, sizeof(struct medge_frame_hdr))) {
		medge_count_drop(dev, MEDGE_DROP_RUNT);
		goto drop;
	}
	frames = frames_of(skb);
	medge_count(dev, rx_skbs);
	if (medge_poller_is_at_it(&dev->poller))
		medge_count(dev, rx_polled);
	medge_rail_count_add(dev, rail->index, rx_frames, frames);
	medge_rail_count_add(dev, rail->index, rx_bytes, wire_bytes(skb, frames));
	ether_addr_copy(l2.smac, eth_hdr(skb)->h_source);
	l2.vlan = frame_vlan(rail, skb, netdev);
	if (unlikely(medge_seals(dev) || medge_is_wrapped(skb->data)) &&
	    !take_seal(rail, skb, &l2))
		goto drop;
	medge_join_receive(rail, skb, &l2);
	return NET_RX_SUCCESS;

drop:
	kfree_skb(skb);
	return NET_RX_DROP;
}

/* ---- transmit ---- */

static void push_eth_header(struct sk_buff *skb, const u8 *dmac, const u8 *smac)
{
	struct ethhdr *eth;
	u32 seal_len = 0;

	if (medge_is_sealed(skb->data))
		seal_len = medge_seal_head(skb->data) +
			   medge_seal_each(skb->data);

	/* Who cuts superframes, and who counts their bytes, looks for these. */
	skb_reset_network_header(skb);
	skb_set_transport_header(skb, seal_len + MEDGE_HDR_LEN);
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

bool medge_rail_xmit(struct medge_device *dev, u32 rail_index,
		     const struct medge_l2 *to, struct sk_buff *skb, bool more,
		     bool again)
{
	u32 frames = frames_of(skb), bytes = 0;
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
		bytes = wire_bytes(skb, frames);
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

/* ---- which rail ---- */

/* Of no rail that is up, the first: its frames are lost, as they would be anyway. */
u32 medge_rail_for_turn(struct medge_device *dev, u32 turn)
{
	u32 up[MEDGE_MAX_RAILS];
	u32 i, n = 0;

	rcu_read_lock();
	for (i = 0; i < MEDGE_MAX_RAILS; i++) {
		const struct medge_rail *rail =
			rcu_dereference(dev->rails.rail[i]);

		if (rail && READ_ONCE(rail->up))
			up[n++] = i;
	}
	rcu_read_unlock();
	return n ? up[turn % n] : 0;
}

/* The only slave that the bond uses; NULL: it uses all. RCU read side. */
static const struct net_device *only_slave(const struct net_device *netdev)
{
	if (!netif_is_bond_master(netdev))
		return NULL;
	return bond_option_active_slave_get_rcu(netdev_priv(netdev));
}

u32 medge_rail_for_multicast(struct medge_device *dev, u32 turn)
{
	const struct net_device *only;
	u32 i, found = MEDGE_MAX_RAILS;

	rcu_read_lock();
	only = only_slave(dev->netdev);
	for (i = 0; only && i < MEDGE_MAX_RAILS; i++) {
		struct medge_rail *rail = rcu_dereference(dev->rails.rail[i]);

		if (rail && rail->netdev == only)
			found = i;
	}
	rcu_read_unlock();
	return found < MEDGE_MAX_RAILS ? found : medge_rail_for_turn(dev, turn);
}

/* ---- what the rails are like ---- */

u32 medge_rails_mtu(const struct medge_device *dev)
{
	return READ_ONCE(dev->rails.mtu);
}

u32 medge_rails_room(const struct medge_device *dev, u32 header)
{
	u32 seal = medge_keys_set(&dev->keys) ? MEDGE_SECRET_LEN : MEDGE_SEAL_LEN;

	return medge_rails_mtu(dev) - seal - header;
}

u64 medge_rails_speed(struct medge_device *dev)
{
	struct medge_rail *rail;
	u64 sum = 0;
	u32 i;

	rcu_read_lock();
	for (i = 0; i < MEDGE_MAX_RAILS; i++) {
		rail = rcu_dereference(dev->rails.rail[i]);
		if (rail && READ_ONCE(rail->up))
			sum += READ_ONCE(rail->speed);
	}
	rcu_read_unlock();
	return sum;
}

static u32 rail_weight(const struct medge_rail *rail)
{
	return READ_ONCE(rail->up) ? max(READ_ONCE(rail->speed), 1U) : 0;
}

u32 medge_rail_weight(struct medge_device *dev, u32 index)
{
	const struct medge_rail *rail;
	u32 weight;

	rcu_read_lock();
	rail = rcu_dereference(dev->rails.rail[index]);
	weight = rail ? rail_weight(rail) : 0;
	rcu_read_unlock();
	return weight;
}

static void describe_rail(const struct medge_rail *rail,
			  struct medge_rail_info *info)
{
	const struct net_device *netdev = rail->netdev;
	struct medge_rail_stats sum;

	medge_rail_stats_read(rail->dev, rail->index, &sum);
	*info = (struct medge_rail_info) {
		.index = rail->index,
		.ifindex = netdev->ifindex,
		.mtu = READ_ONCE(netdev->mtu),
		.speed_mbps = READ_ONCE(rail->speed),
		.weight = rail_weight(rail),
		.tx_frames = sum.tx_frames,
		.tx_bytes = sum.tx_bytes,
		.tx_retransmits = sum.tx_retransmits,
		.tx_errors = sum.tx_errors,
		.rx_frames = sum.rx_frames,
		.rx_bytes = sum.rx_bytes,
	};
	if (info->weight)
		info->flags |= MEDGE_RAIL_UP;
	BUILD_BUG_ON(sizeof(info->name) != IFNAMSIZ);
	strscpy((char *)info->name, netdev->name, sizeof(info->name));
}

u32 medge_rails_describe(struct medge_device *dev, struct medge_rail_info *info,
			 u32 max)
{
	struct medge_rail *rail;
	u32 i, n = 0;

	rcu_read_lock();
	for (i = 0; i < MEDGE_MAX_RAILS; i++) {
		rail = rcu_dereference(dev->rails.rail[i]);
		if (!rail)
			continue;
		if (n < max)
			describe_rail(rail, &info[n]);
		n++;
	}
	rcu_read_unlock();
	return n;
}

static struct medge_rail *rail_at(struct medge_device *dev, u32 i)
{
	return rtnl_dereference(dev->rails.rail[i]);
}

static struct medge_rail *find_rail(struct medge_device *dev,
				    const struct net_device *netdev)
{
	u32 i;

	for (i = 0; i < MEDGE_MAX_RAILS; i++) {
		struct medge_rail *rail = rail_at(dev, i);

		if (rail && rail->netdev == netdev)
			return rail;
	}
	return NULL;
}

bool medge_rails_have(struct medge_device *dev, const struct net_device *netdev)
{
	return find_rail(dev, netdev);
}

void medge_rails_unlisten(struct medge_device *dev, const u8 *mac)
{
	u32 i;

	for (i = 0; i < MEDGE_MAX_RAILS; i++)
		if (rail_at(dev, i))
			dev_mc_del(rail_at(dev, i)->netdev, mac);
}

int medge_rails_listen(struct medge_device *dev, const u8 *mac)
{
	int err = 0;
	u32 i, n;

	for (i = 0; i < MEDGE_MAX_RAILS && !err; i++)
		if (rail_at(dev, i))
			err = dev_mc_add(rail_at(dev, i)->netdev, mac);
	if (!err)
		return 0;
	for (n = 0; n < i - 1; n++)
		if (rail_at(dev, n))
			dev_mc_del(rail_at(dev, n)->netdev, mac);
	return err;
}

static bool rail_is_up(const struct medge_rail *rail)
{
	return netif_running(rail->netdev) && netif_carrier_ok(rail->netdev) &&
	       rail->netdev->mtu >= MEDGE_RAIL_MIN_MTU;
}

/* Why it is up, or is not. */
static enum medge_rail_why rail_why(const struct medge_rail *rail)
{
	if (!netif_running(rail->netdev))
		return MEDGE_RAIL_IS_DOWN;
	if (!netif_carrier_ok(rail->netdev))
		return MEDGE_RAIL_NO_CARRIER;
	if (rail->netdev->mtu < MEDGE_RAIL_MIN_MTU)
		return MEDGE_RAIL_SMALL_MTU;
	return MEDGE_RAIL_COMES_UP;
}

static void update_mtu(struct medge_device *dev)
{
	u32 mtu = U32_MAX;
	u32 i;

	for (i = 0; i < MEDGE_MAX_RAILS; i++) {
		struct medge_rail *rail = rail_at(dev, i);

		if (rail && rail->netdev->mtu >= MEDGE_RAIL_MIN_MTU)
			mtu = min(mtu, rail->netdev->mtu);
	}
	if (mtu == U32_MAX)
		mtu = max_t(u32, dev->netdev->mtu, MEDGE_RAIL_MIN_MTU);
	WRITE_ONCE(dev->rails.mtu, mtu);
}

/* Tell others what it is like. Any context but interrupts. */
static void tell_rail(struct medge_rail *rail)
{
	struct medge_rail_attr attr = {
		.speed = READ_ONCE(rail->speed),
		.id = rail->id,
	};

	spin_lock_bh(&rail->dev->rails.look_lock);
	if (rail->up != rail_is_up(rail))
		trace_medge_rail(rail, !rail->up, rail_why(rail));
	WRITE_ONCE(rail->up, rail_is_up(rail));
	attr.flags = rail->up ? MEDGE_PORT_UP : 0;
	if (READ_ONCE(rail->drained))
		attr.flags |= MEDGE_PORT_DRAINING;
	ether_addr_copy(attr.mac, rail->netdev->dev_addr);
	medge_nodes_rail(rail->dev, rail->index, &attr);
	spin_unlock_bh(&rail->dev->rails.look_lock);
}

/* Find out anew what the rails are like. */
static void update_rails(struct medge_device *dev)
{
	u32 i;

	update_mtu(dev);
	medge_nodes_address(dev, dev->netdev->dev_addr);
	for (i = 0; i < MEDGE_MAX_RAILS; i++) {
		struct medge_rail *rail = rail_at(dev, i);

		if (rail)
			tell_rail(rail);
	}
}

int medge_rails_drain(struct medge_device *dev, const char *name, bool drain)
{
	u32 i;

	for (i = 0; i < MEDGE_MAX_RAILS; i++) {
		struct medge_rail *rail = rail_at(dev, i);

		if (!rail || strcmp(netdev_name(rail->netdev), name))
			continue;
		WRITE_ONCE(rail->drained, drain);
		tell_rail(rail);
		return 0;
	}
	return -ENODEV;
}

ssize_t medge_rails_drained(struct medge_device *dev, char *buf)
{
	struct medge_rail *rail;
	int at = 0;
	u32 i;

	rcu_read_lock();
	for (i = 0; i < MEDGE_MAX_RAILS; i++) {
		rail = rcu_dereference(dev->rails.rail[i]);
		if (rail && READ_ONCE(rail->drained))
			at += sysfs_emit_at(buf, at, "%s\n",
					    netdev_name(rail->netdev));
	}
	rcu_read_unlock();
	return at;
}

void medge_rails_look(struct medge_device *dev, u64 now)
{
	struct medge_rail *rail;
	u32 i;

	if (now - READ_ONCE(dev->rails.looked_at) < LOOK_AGAIN_NS)
		return;
	WRITE_ONCE(dev->rails.looked_at, now);
	rcu_read_lock();
	for (i = 0; i < MEDGE_MAX_RAILS; i++) {
		rail = rcu_dereference(dev->rails.rail[i]);
		if (rail && READ_ONCE(rail->up) != rail_is_up(rail))
			tell_rail(rail);
	}
	rcu_read_unlock();
}

static void update_speed(struct medge_rail *rail)
{
	struct ethtool_link_ksettings ks = {};
	u32 speed = 0;

	if (!__ethtool_get_link_ksettings(rail->netdev, &ks) &&
	    ks.base.speed != (u32)SPEED_UNKNOWN)
		speed = ks.base.speed;
	WRITE_ONCE(rail->speed, speed);
}

/*
 * Notifiers run with or without the netdev's instance lock, which asking for
 * its speed takes: it is asked from here.
 */
static void update_speeds(struct work_struct *work)
{
	struct medge_device *dev =
		container_of(work, struct medge_device, rails.speed_work);
	u32 i;

	rtnl_lock();
	for (i = 0; i < MEDGE_MAX_RAILS; i++) {
		struct medge_rail *rail = rail_at(dev, i);

		if (rail)
			update_speed(rail);
	}
	update_rails(dev);
	rtnl_unlock();
}

void medge_rails_init(struct medge_device *dev)
{
	INIT_WORK(&dev->rails.speed_work, update_speeds);
	spin_lock_init(&dev->rails.look_lock);
}

void medge_rails_destroy(struct medge_device *dev)
{
	rtnl_lock();
	medge_rails_detach(dev);
	rtnl_unlock();
	cancel_work_sync(&dev->rails.speed_work);
}

/* Have the rail receive what is sent to the device's address, if it does not. */
static void update_address(struct medge_rail *rail, const u8 *mac)
{
	if (ether_addr_equal(mac, rail->mac))
		return;
	if (!is_zero_ether_addr(rail->mac))
		dev_uc_del(rail->netdev, rail->mac);
	eth_zero_addr(rail->mac);
	if (!is_zero_ether_addr(mac) && !dev_uc_add(rail->netdev, mac))
		ether_addr_copy(rail->mac, mac);
}

static void update_addresses(struct medge_device *dev)
{
	static const u8 none[ETH_ALEN];
	const u8 *mac = dev->netdev->dev_addr;
	u32 i;

	for (i = 0; i < MEDGE_MAX_RAILS; i++) {
		struct medge_rail *rail = rail_at(dev, i);

		if (!rail)
			continue;
		if (ether_addr_equal(rail->netdev->dev_addr, mac))
			update_address(rail, none);
		else
			update_address(rail, mac);
	}
}

/* ---- attach and detach ---- */

static int free_index(struct medge_device *dev)
{
	u32 i;

	for (i = 0; i < MEDGE_MAX_RAILS; i++)
		if (!rail_at(dev, i))
			return i;
	return -ENOSPC;
}

static int add_rail(struct medge_device *dev, struct net_device *netdev)
{
	int index = free_index(dev);
	struct medge_rail *rail;

	if (find_rail(dev, netdev))
		return 0;
	/* Two devices on one rail would take each other's frames. */
	if (medge_device_by_rail(netdev))
		return -EBUSY;
	if (netdev->type != ARPHRD_ETHER || netdev->addr_len != ETH_ALEN)
		return -EOPNOTSUPP;
	if (index < 0)
		return index;
	rail = kzalloc(sizeof(*rail), GFP_KERNEL);
	if (!rail || medge_join_init(rail)) {
		kfree(rail);
		return -ENOMEM;
	}

	rail->dev = dev;
	rail->netdev = netdev;
	rail->index = index;
	rail->id = ++dev->rails.last_id;
	netdev_hold(netdev, &rail->tracker, GFP_KERNEL);
	rail->pt.type = htons(MEDGE_ETHERTYPE);
	rail->pt.dev = netdev;
	rail->pt.func = receive_frame;
	medge_mcast_rail_added(dev, netdev);
	rcu_assign_pointer(dev->rails.rail[index], rail);
	dev_add_pack(&rail->pt);
	schedule_work(&dev->rails.speed_work);
	return 0;
}

static void remove_rail(struct medge_rail *rail)
{
	static const u8 none[ETH_ALEN];
	struct medge_device *dev = rail->dev;

	trace_medge_rail(rail, false, MEDGE_RAIL_LEAVES);
	RCU_INIT_POINTER(dev->rails.rail[rail->index], NULL);
	medge_nodes_rail(dev, rail->index, NULL);
	/* Waits for those who are transmitting on it, too: they are in RCU. */
	dev_remove_pack(&rail->pt);
	medge_join_destroy(rail);
	/* Somebody may just have looked at it. */
	medge_nodes_rail(dev, rail->index, NULL);
	update_address(rail, none);
	medge_mcast_rail_removed(dev, rail->netdev);
	netdev_put(rail->netdev, &rail->tracker);
	kfree(rail);
}

static void add_slave(struct medge_device *dev, struct net_device *slave)
{
	int err = add_rail(dev, slave);

	if (err)
		netdev_warn(slave, "%s cannot use it as a rail: %pe\n",
			    netdev_name(dev->netdev), ERR_PTR(err));
}

int medge_rails_attach(struct medge_device *dev)
{
	struct net_device *slave;
	struct list_head *iter;
	int err = 0;

	ASSERT_RTNL();
	dev->rails.attached = true;
	medge_loop_add(dev);
	if (netif_is_lag_master(dev->netdev)) {
		netdev_for_each_lower_dev(dev->netdev, slave, iter)
			add_slave(dev, slave);
	} else {
		err = add_rail(dev, dev->netdev);
	}
	update_addresses(dev);
	update_rails(dev);
	return err;
}

void medge_rails_detach(struct medge_device *dev)
{
	u32 i;

	ASSERT_RTNL();
	if (!dev->rails.attached)
		return;
	dev->rails.attached = false;
	medge_loop_remove(dev);
	for (i = 0; i < MEDGE_MAX_RAILS; i++) {
		struct medge_rail *rail = rail_at(dev, i);

		if (rail)
			remove_rail(rail);
	}
}

/* ---- netdev events ---- */

static void upper_changed(struct medge_device *dev, struct net_device *slave,
			  const struct netdev_notifier_changeupper_info *info)
{
	struct medge_rail *rail;

	if (info->upper_dev != dev->netdev ||
	    !netif_is_lag_master(dev->netdev))
		return;
	rail = find_rail(dev, slave);
	if (info->linking)
		add_slave(dev, slave);
	else if (rail)
		remove_rail(rail);
}

void medge_rails_netdev_event(struct medge_device *dev,
			      struct net_device *netdev, unsigned long event,
			      void *info)
{
	struct medge_rail *rail;

	if (!dev->rails.attached)
		return;
	if (event == NETDEV_CHANGEUPPER)
		upper_changed(dev, netdev, info);

	rail = find_rail(dev, netdev);
	if (rail && event == NETDEV_UNREGISTER) {
		remove_rail(rail);
		rail = NULL;
	}
	if (rail && (event == NETDEV_UP || event == NETDEV_CHANGE))
		schedule_work(&dev->rails.speed_work);
	update_addresses(dev);
	update_rails(dev);
}
