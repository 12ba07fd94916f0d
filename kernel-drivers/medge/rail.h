/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Rails: the netdevs that carry a device's frames. */
#ifndef MEDGE_RAIL_H
#define MEDGE_RAIL_H

#include <linux/etherdevice.h>
#include <linux/jhash.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <linux/skbuff.h>
#include <linux/workqueue.h>

#include "transport/wire.h"

struct medge_device;
struct medge_join;
struct medge_rail_info;

/**
 * struct medge_rail - one Ethernet port of a device
 * @dev: device it belongs to
 * @netdev: a slave of the bond, or the device's own netdev; held
 * @index: position in medge_rails.rail, stable while the rail exists
 * @id: of this one alone, while @index is used again
 * @speed: link speed in Mbit/s; 0: unknown
 * @up: it was, when looked at last, see medge_rails_look()
 * @drained: the administrator wants it free; under RTNL
 * @join: what of its frames waits to be joined by others, on each CPU
 * @mac: device's address, which @netdev was asked to receive; zeros: it need
 *       not be asked
 * All changes are made under RTNL, but @up; @speed is read without.
 */
struct medge_rail {
	struct medge_device *dev;
	struct net_device *netdev;
	netdevice_tracker tracker;
	u32 index;
	u32 id;
	u32 speed;
	bool up;
	bool drained;
	struct medge_join __percpu *join;
	u8 mac[ETH_ALEN];
	struct packet_type pt;
	struct rcu_head rcu;
};

/* Why a rail is up, or is not. */
enum medge_rail_why {
	MEDGE_RAIL_COMES_UP,
	MEDGE_RAIL_IS_DOWN,
	MEDGE_RAIL_NO_CARRIER,
	MEDGE_RAIL_SMALL_MTU,
	MEDGE_RAIL_LEAVES,
};

/**
 * struct medge_rails - a device's rails
 * @rail: RCU, changed under RTNL; NULL: no rail of that index
 * @end: there has never been one of this index, or a higher one
 * @mtu: smallest MTU of the rails that are not down, see medge_rails_mtu()
 * @last_id: the latest rail's; under RTNL
 * @look_lock: BHs off; rails' @up is what nodes were told last
 * @looked_at: ns, when medge_rails_look() did
 * @speed_work: asks the rails for their speed
 * @attached: changes are followed; under RTNL
 */
struct medge_rails {
	struct medge_rail __rcu *rail[MEDGE_MAX_RAILS];
	u32 end;
	u32 mtu;
	u32 last_id;
	spinlock_t look_lock;
	u64 looked_at;
	struct work_struct speed_work;
	bool attached;
};

/* The first whose index is @next or higher; @next goes behind it. NULL: none. */
static inline struct medge_rail *
medge_rails_next(const struct medge_rails *rails, u32 *next)
{
	struct medge_rail *rail = NULL;

	while (!rail && *next < READ_ONCE(rails->end))
		rail = rcu_dereference_rtnl(rails->rail[(*next)++]);
	return rail;
}

/* RCU read side, or under RTNL; then a rail may be removed on the way. */
#define medge_for_each_rail(rails, rail) \
	for (u32 next_ = 0; ((rail) = medge_rails_next(rails, &next_)); )

/* A netdev with a smaller MTU is no rail: headers and atomics must fit. */
enum { MEDGE_RAIL_MIN_MTU = 256 };

void medge_rails_init(struct medge_device *dev);
/* Detach them, and wait for what is still at work. RTNL not held. */
void medge_rails_destroy(struct medge_device *dev);

/*
 * Attach the device's rails (the bond's slaves, or the netdev itself), and
 * follow them live. RTNL held.
 */
int medge_rails_attach(struct medge_device *dev);

/* RTNL held: follow an event of @netdev, which may concern @dev. */
void medge_rails_netdev_event(struct medge_device *dev,
			      struct net_device *netdev, unsigned long event,
			      void *info);
/* Is @netdev one of the device's rails? RTNL held. */
bool medge_rails_have(struct medge_device *dev, const struct net_device *netdev);

/* What all rails can carry behind the Ethernet header. Any context. */
u32 medge_rails_mtu(const struct medge_device *dev);
/*
 * And of that, behind a header of ours. A seal has its place kept, since it may
 * be asked for while operations are under way; the larger one, of what is encrypted,
 * where there is a secret. Any context.
 */
u32 medge_rails_room(const struct medge_device *dev, u32 header);
/* Mbit/s of all rails that are up together; 0: unknown. Any context. */
u64 medge_rails_speed(struct medge_device *dev);
/* The share of the bytes that a rail is worth by its speed; 0: down, or none. Any context. */
u32 medge_rail_weight(struct medge_device *dev, u32 rail);
/* Between looks at the carriers. */
enum { MEDGE_RAILS_LOOK_NS = 200000 };

void medge_rails_look_again(struct medge_rails *rails, u64 now);
/*
 * Notifiers may tell of a lost carrier a second late: look whether all have
 * theirs, unless somebody just did. BHs off.
 */
static inline void medge_rails_look(struct medge_rails *rails, u64 now)
{
	if (now - READ_ONCE(rails->looked_at) >= MEDGE_RAILS_LOOK_NS)
		medge_rails_look_again(rails, now);
}

/* Use the rail of that name as the last resort only, or not any more. RTNL held. */
int medge_rails_drain(struct medge_device *dev, const char *name, bool drain);
/* Their names, into a page. */
ssize_t medge_rails_drained(struct medge_device *dev, char *buf);

/* Describe up to @max rails. Return: how many there are. */
u32 medge_rails_describe(struct medge_device *dev, struct medge_rail_info *info,
			 u32 max);

/* VLANs, as of a GID: frames of none carry no tag. */
enum {
	MEDGE_VLAN_NONE = 0xffff,
	/*
	 * Of a frame that came: it was tagged, but the tag is not there any
	 * more. So it is on a slave that its bond does not use.
	 */
	MEDGE_VLAN_UNKNOWN = 0xfffe,
};

/* Where frames go: what the Ethernet header says. */
struct medge_l2 {
	u8 dmac[ETH_ALEN];
	u16 vlan;
};

/* Where a frame came from. */
struct medge_rx_l2 {
	u8 smac[ETH_ALEN];
	u16 vlan;
	bool multicast;
};

/* May what belongs to VLAN @own have come over @vlan? */
static inline bool medge_vlan_matches(u16 own, u16 vlan)
{
	return own == vlan ||
	       (vlan == MEDGE_VLAN_UNKNOWN && own != MEDGE_VLAN_NONE);
}

/* Is it from where @l2 leads that a frame of @mac's came over @vlan? */
static inline bool medge_l2_matches(const struct medge_l2 *l2, const u8 *mac,
				    u16 vlan)
{
	return ether_addr_equal(l2->dmac, mac) &&
	       medge_vlan_matches(l2->vlan, vlan);
}

/* Of tables in which nodes are found by address. */
static inline u32 medge_mac_hash(const u8 *mac)
{
	return jhash(mac, ETH_ALEN, 0);
}

/*
 * A rail that is up, each in its turn; where the bond uses but one at a time,
 * groups hear no other. Any context.
 */
u32 medge_rail_for_turn(struct medge_device *dev, u32 turn);
u32 medge_rail_for_multicast(struct medge_device *dev, u32 turn);

/* A rail's packet_type.func: a frame has come. In softirq, RCU read side. */
int medge_rail_receive(struct sk_buff *skb, struct net_device *netdev,
		       struct packet_type *pt, struct net_device *orig);

/* Have all rails listen to a multicast address. RTNL held. */
int medge_rails_listen(struct medge_device *dev, const u8 *mac);
void medge_rails_unlisten(struct medge_device *dev, const u8 *mac);

/*
 * Send frames whose skbs have the medge header at skb->data (headroom for the
 * Ethernet header is there, room of LL_RESERVED_SPACE). Consumes the skb;
 * errors are losses, and counted. Softirq or process context, not under a QP lock.
 * @again: its frames were sent before, for the counters.
 * What a device of this host has the address of does not leave it, see loop.c.
 * Return: that was so, and its receiver has had it.
 */
bool medge_rail_xmit(struct medge_device *dev, u32 rail,
		     const struct medge_l2 *to, struct sk_buff *skb, bool again);
/* Can that be given bundles, for that device? */
bool medge_rail_bundles(struct medge_device *dev, u32 rail,
			const struct medge_l2 *to);

/* The same, but never sealed: what nodes tell each other of keys. */
void medge_rail_xmit_clear(struct medge_device *dev, u32 rail,
			   const struct medge_l2 *to, struct sk_buff *skb);

/* How many frames it is. */
static inline u32 medge_skb_frames(const struct sk_buff *skb)
{
	return skb_is_gso(skb) ? skb_shinfo(skb)->gso_segs : 1;
}

/*
 * What it brought has been used. Where BHs are off, the skb is what the next frame is
 * sent in, which may be a while, and on another CPU: so not if it has the sender's pages.
 */
static inline void medge_skb_used(struct sk_buff *skb)
{
	napi_consume_skb(skb, in_softirq() && !skb_is_nonlinear(skb));
}

static inline void medge_skbs_used(struct sk_buff_head *skbs)
{
	struct sk_buff *skb;

	while ((skb = __skb_dequeue(skbs)))
		medge_skb_used(skb);
}

/* GSO of superframes: the packet_offload for the EtherType. gso.c */
int medge_gso_register(void);
void medge_gso_unregister(void);

#endif /* MEDGE_RAIL_H */
