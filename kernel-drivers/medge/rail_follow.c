// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Attach a device's rails, and follow live what becomes of them. */
#include <linux/ethtool.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>

#include "device.h"
#include "join.h"
#include "loop.h"
#include "mcast.h"
#include "rail.h"
#include "trace.h"

static struct medge_rail *find_rail(struct medge_device *dev,
				    const struct net_device *netdev)
{
	struct medge_rail *rail;

	medge_for_each_rail(&dev->rails, rail)
		if (rail->netdev == netdev)
			return rail;
	return NULL;
}

bool medge_rails_have(struct medge_device *dev, const struct net_device *netdev)
{
	return find_rail(dev, netdev);
}

void medge_rails_unlisten(struct medge_device *dev, const u8 *mac)
{
	struct medge_rail *rail;

	medge_for_each_rail(&dev->rails, rail)
		dev_mc_del(rail->netdev, mac);
}

int medge_rails_listen(struct medge_device *dev, const u8 *mac)
{
	struct medge_rail *rail, *refuses;
	int err = 0;

	medge_for_each_rail(&dev->rails, refuses) {
		err = dev_mc_add(refuses->netdev, mac);
		if (err)
			break;
	}
	if (!err)
		return 0;
	medge_for_each_rail(&dev->rails, rail) {
		if (rail == refuses)
			break;
		dev_mc_del(rail->netdev, mac);
	}
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
	const struct medge_rail *rail;
	u32 mtu = U32_MAX;

	medge_for_each_rail(&dev->rails, rail)
		if (rail->netdev->mtu >= MEDGE_RAIL_MIN_MTU)
			mtu = min(mtu, rail->netdev->mtu);
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
	struct medge_rail *rail;

	update_mtu(dev);
	medge_nodes_address(dev, dev->netdev->dev_addr);
	medge_for_each_rail(&dev->rails, rail)
		tell_rail(rail);
}

int medge_rails_drain(struct medge_device *dev, const char *name, bool drain)
{
	struct medge_rail *rail;

	medge_for_each_rail(&dev->rails, rail) {
		if (strcmp(netdev_name(rail->netdev), name))
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

	rcu_read_lock();
	medge_for_each_rail(&dev->rails, rail)
		if (READ_ONCE(rail->drained))
			at += sysfs_emit_at(buf, at, "%s\n",
					    netdev_name(rail->netdev));
	rcu_read_unlock();
	return at;
}

void medge_rails_look_again(struct medge_rails *rails, u64 now)
{
	struct medge_rail *rail;

	WRITE_ONCE(rails->looked_at, now);
	rcu_read_lock();
	medge_for_each_rail(rails, rail)
		if (READ_ONCE(rail->up) != rail_is_up(rail))
			tell_rail(rail);
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
	struct medge_rail *rail;

	rtnl_lock();
	medge_for_each_rail(&dev->rails, rail)
		update_speed(rail);
	update_rails(dev);
	rtnl_unlock();
}

void medge_rails_init(struct medge_device *dev)
{
	INIT_WORK(&dev->rails.speed_work, update_speeds);
	spin_lock_init(&dev->rails.look_lock);
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
	struct medge_rail *rail;

	medge_for_each_rail(&dev->rails, rail) {
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
		if (!rtnl_dereference(dev->rails.rail[i]))
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
	rail->pt.func = medge_rail_receive;
	medge_mcast_rail_added(dev, netdev);
	rcu_assign_pointer(dev->rails.rail[index], rail);
	WRITE_ONCE(dev->rails.end, max_t(u32, dev->rails.end, index + 1));
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

/* Detach all; no frame is received after it has returned. RTNL held. */
static void detach_rails(struct medge_device *dev)
{
	struct medge_rail *rail;

	ASSERT_RTNL();
	if (!dev->rails.attached)
		return;
	dev->rails.attached = false;
	medge_loop_remove(dev);
	medge_for_each_rail(&dev->rails, rail)
		remove_rail(rail);
}

void medge_rails_destroy(struct medge_device *dev)
{
	rtnl_lock();
	detach_rails(dev);
	rtnl_unlock();
	cancel_work_sync(&dev->rails.speed_work);
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
