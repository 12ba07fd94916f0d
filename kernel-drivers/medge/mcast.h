/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Multicast groups: which QPs are in them, and which addresses rails listen to. */
#ifndef MEDGE_MCAST_H
#define MEDGE_MCAST_H

#include <linux/list.h>
#include <linux/netdevice.h>
#include <linux/rhashtable.h>
#include <rdma/ib_verbs.h>

#include "ud.h"

struct medge_device;

/* Members of a group: each costs a copy of each datagram, in softirq. */
enum {
	MEDGE_MAX_MEMBERS = 64,
	MEDGE_MAX_GROUPS = 8192,
};

/**
 * struct medge_mcast - a device's groups
 * @groups: memberships by group; RCU read
 * @members: the same, all of them; under RTNL
 */
struct medge_mcast {
	struct rhltable groups;
	struct list_head members;
	u32 count;
};

int medge_mcast_init(struct medge_mcast *mcast);
void medge_mcast_destroy(struct medge_mcast *mcast);

/* A rail is new, or goes: it listens to all groups, or to none. RTNL held. */
void medge_mcast_rail_added(struct medge_device *dev, struct net_device *rail);
void medge_mcast_rail_removed(struct medge_device *dev, struct net_device *rail);

/* Give @arrival to each member of its group but @sender. BHs are off. */
void medge_mcast_deliver(struct medge_device *dev,
			 const struct medge_ud_arrival *arrival,
			 const struct medge_qp *sender);

/* ib_device_ops */
int medge_attach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid);
int medge_detach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid);

#endif /* MEDGE_MCAST_H */
