// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Rails: the Ethernet ports that carry a device's frames, as they are now. */
#include <net/bonding.h>

#include <rdma/medge-abi.h>

#include "device.h"
#include "keys.h"
#include "rail.h"

/* ---- which rail ---- */

/* Of no rail that is up, the first: its frames are lost, as they would be anyway. */
u32 medge_rail_for_turn(struct medge_device *dev, u32 turn)
{
	const struct medge_rail *rail;
	u32 up[MEDGE_MAX_RAILS];
	u32 n = 0;

	rcu_read_lock();
	medge_for_each_rail(&dev->rails, rail)
		if (READ_ONCE(rail->up))
			up[n++] = rail->index;
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
	const struct medge_rail *rail;
	u32 found = MEDGE_MAX_RAILS;

	rcu_read_lock();
	only = only_slave(dev->netdev);
	medge_for_each_rail(&dev->rails, rail)
		if (rail->netdev == only)
			found = rail->index;
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

	rcu_read_lock();
	medge_for_each_rail(&dev->rails, rail)
		if (READ_ONCE(rail->up))
			sum += READ_ONCE(rail->speed);
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
	u32 n = 0;

	rcu_read_lock();
	medge_for_each_rail(&dev->rails, rail) {
		if (n < max)
			describe_rail(rail, &info[n]);
		n++;
	}
	rcu_read_unlock();
	return n;
}
