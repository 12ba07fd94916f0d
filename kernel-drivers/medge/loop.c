// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * QPs of one host, be they of one device or of several in one network namespace.
 * What the one has to send names the pages where it lies, so the receiver is
 * called with it, and copies it from the sender's memory to where it belongs: once,
 * by the sender's CPU, without a netdev, a queue or an interrupt between them. (Of
 * UC and UD twice, as their sends are over before that.) All that is decided of it
 * (keys, fences, receives, acknowledgments) is decided as for any other peer.
 */
#include <linux/etherdevice.h>
#include <linux/rtnetlink.h>
#include <net/net_namespace.h>

#include "device.h"
#include "loop.h"
#include "receive.h"
#include "stats.h"

/*
 * Who receives may answer at once, who gets the answer goes on with what he had
 * begun. QPs whose users have not connected them in pairs could go on for ever.
 */
enum { MAX_DEPTH = 2 };

static DEFINE_PER_CPU(u32, depth);	/* changes while BHs are off */

static LIST_HEAD(devices);		/* RCU; changed under RTNL */

static const char * const loopback_names[MEDGE_LOOPBACKS] = {
	[MEDGE_LOOPBACK_COPY] = "copy",
	[MEDGE_LOOPBACK_FRAMES] = "frames",
};

const char *medge_loopback_name(u32 loopback)
{
	return loopback_names[loopback];
}

void medge_loop_add(struct medge_device *dev)
{
	ASSERT_RTNL();
	list_add_tail_rcu(&dev->loop_entry, &devices);
}

void medge_loop_remove(struct medge_device *dev)
{
	ASSERT_RTNL();
	list_del_rcu(&dev->loop_entry);
	synchronize_net();
}

static bool has_address(const struct medge_device *dev, const u8 *mac)
{
	return ether_addr_equal(dev->netdev->dev_addr, mac);
}

/* Another device of that address, in the same network namespace. RCU read side. */
static struct medge_device *find_other(const struct medge_device *dev,
				       const u8 *mac)
{
	struct medge_device *other;

	list_for_each_entry_rcu(other, &devices, loop_entry)
		if (other != dev && has_address(other, mac) &&
		    net_eq(dev_net(other->netdev), dev_net(dev->netdev)))
			return other;
	return NULL;
}

/* It need not have as many. */
static struct medge_rail *rail_beside(struct medge_device *dev, u32 index)
{
	struct medge_rail *rail = rcu_dereference(dev->rails.rail[index]);
	u32 first = 0;

	return rail ?: medge_rails_next(&dev->rails, &first);
}

struct medge_rail *medge_loop_find(struct medge_rail *rail,
				   const struct medge_l2 *to)
{
	struct medge_device *other;

	/* To ourselves: no wire and no switch would bring it back. */
	if (has_address(rail->dev, to->dmac))
		return rail;
	if (READ_ONCE(rail->dev->loopback) != MEDGE_LOOPBACK_COPY)
		return NULL;
	other = find_other(rail->dev, to->dmac);
	return other ? rail_beside(other, rail->index) : NULL;
}

bool medge_loop_receive(const struct medge_device *from, struct medge_rail *rail,
			const struct medge_l2 *to, struct sk_buff *skb)
{
	struct medge_rx_l2 l2 = { .vlan = to->vlan };

	if (READ_ONCE(from->loopback) != MEDGE_LOOPBACK_COPY ||
	    __this_cpu_read(depth) == MAX_DEPTH)
		return false;
	ether_addr_copy(l2.smac, from->netdev->dev_addr);
	medge_count(from, loop_skbs);
	medge_count_add(from, loop_bytes, skb->len);
	__this_cpu_inc(depth);
	medge_receive(rail, skb, &l2);
	__this_cpu_dec(depth);
	return true;
}

bool medge_loop_busy(void)
{
	/* On another CPU by now? Then BHs were on, and it was 0 on both. */
	return raw_cpu_read(depth);
}
