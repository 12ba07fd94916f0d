// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Multicast groups: which QPs are in them, and which addresses rails listen to. */
#include <linux/etherdevice.h>
#include <linux/ip.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>
#include <net/if_inet6.h>
#include <net/ip.h>
#include <net/ipv6.h>

#include "device.h"
#include "mcast.h"
#include "qp.h"

/* A QP in a group. */
struct member {
	struct rhlist_head node;
	struct list_head entry;
	union ib_gid gid;
	u8 mac[ETH_ALEN];
	struct medge_qp_ref *ref;	/* lives a grace period longer than its QP */
	struct rcu_head rcu;
};

static const struct rhashtable_params group_params = {
	.key_len = sizeof_field(struct member, gid),
	.key_offset = offsetof(struct member, gid),
	.head_offset = offsetof(struct member, node),
	.automatic_shrinking = true,
};

int medge_mcast_init(struct medge_mcast *mcast)
{
	INIT_LIST_HEAD(&mcast->members);
	return rhltable_init(&mcast->groups, &group_params);
}

void medge_mcast_destroy(struct medge_mcast *mcast)
{
	WARN_ON(!list_empty(&mcast->members));
	rhltable_destroy(&mcast->groups);
}

/* ---- what the rails listen to ---- */

static void group_mac(const union ib_gid *gid, u8 *mac)
{
	const struct in6_addr *addr = (const struct in6_addr *)gid;

	if (ipv6_addr_v4mapped(addr))
		ip_eth_mc_map(addr->s6_addr32[3], mac);
	else
		ipv6_eth_mc_map(addr, mac);
}

void medge_mcast_rail_added(struct medge_device *dev, struct net_device *rail)
{
	struct member *m;

	ASSERT_RTNL();
	list_for_each_entry(m, &dev->mcast.members, entry)
		if (dev_mc_add(rail, m->mac))
			netdev_warn(rail, "no memory to listen to %pM\n",
				    m->mac);
}

void medge_mcast_rail_removed(struct medge_device *dev, struct net_device *rail)
{
	struct member *m;

	ASSERT_RTNL();
	list_for_each_entry(m, &dev->mcast.members, entry)
		dev_mc_del(rail, m->mac);
}

/* ---- attach and detach ---- */

static struct member *find_member(struct medge_mcast *mcast,
				  const union ib_gid *gid,
				  const struct medge_qp_ref *ref, u32 *count)
{
	struct rhlist_head *list, *pos;
	struct member *m, *found = NULL;

	*count = 0;
	rcu_read_lock();
	list = rhltable_lookup(&mcast->groups, gid, group_params);
	rhl_for_each_entry_rcu(m, pos, list, node) {
		++*count;
		if (m->ref == ref)
			found = m;
	}
	rcu_read_unlock();
	return found;
}

static int attach(struct medge_device *dev, struct member *m)
{
	struct medge_mcast *mcast = &dev->mcast;
	u32 count;
	int err;

	if (find_member(mcast, &m->gid, m->ref, &count))
		return -EEXIST;
	if (count == MEDGE_MAX_MEMBERS ||
	    mcast->count == MEDGE_MAX_GROUPS * MEDGE_MAX_MEMBERS)
		return -ENOMEM;
	err = medge_rails_listen(dev, m->mac);
	if (err)
		return err;
	err = rhltable_insert(&mcast->groups, &m->node, group_params);
	if (err) {
		medge_rails_unlisten(dev, m->mac);
		return err;
	}
	list_add(&m->entry, &mcast->members);
	mcast->count++;
	return 0;
}

int medge_attach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid)
{
	struct medge_qp *qp = to_medge_qp(ibqp);
	struct member *m;
	int err;

	m = kzalloc(sizeof(*m), GFP_KERNEL);
	if (!m)
		return -ENOMEM;
	m->gid = *gid;
	m->ref = qp->ref;
	group_mac(gid, m->mac);

	rtnl_lock();
	err = attach(qp->dev, m);
	rtnl_unlock();
	if (err)
		kfree(m);
	return err;
}

int medge_detach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid)
{
	struct medge_qp *qp = to_medge_qp(ibqp);
	struct medge_mcast *mcast = &qp->dev->mcast;
	struct member *m;
	u32 count;

	rtnl_lock();
	m = find_member(mcast, gid, qp->ref, &count);
	if (m) {
		rhltable_remove(&mcast->groups, &m->node, group_params);
		list_del(&m->entry);
		mcast->count--;
		medge_rails_unlisten(qp->dev, m->mac);
	}
	rtnl_unlock();
	if (!m)
		return -EINVAL;
	kfree_rcu(m, rcu);
	return 0;
}

/* ---- receive ---- */

void medge_mcast_deliver(struct medge_device *dev,
			 const struct medge_ud_arrival *arrival,
			 const struct medge_qp *sender)
{
	struct rhlist_head *list, *pos;
	struct member *m;

	rcu_read_lock();
	list = rhltable_lookup(&dev->mcast.groups, arrival->head.dgid,
			       group_params);
	rhl_for_each_entry_rcu(m, pos, list, node) {
		struct medge_qp *qp = medge_qp_ref_get(m->ref);

		if (!qp)
			continue;
		if (qp != sender)
			medge_ud_deliver(qp, arrival);
		medge_qp_put(qp);
	}
	rcu_read_unlock();
}
