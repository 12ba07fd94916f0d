/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The device: what ib_core knows as one RDMA device over one netdev. */
#ifndef MEDGE_DEVICE_H
#define MEDGE_DEVICE_H

#include <linux/atomic.h>
#include <linux/list.h>
#include <linux/rhashtable.h>
#include <linux/spinlock.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>

#include "held.h"
#include "keys.h"
#include "mcast.h"
#include "node.h"
#include "offload.h"
#include "poller.h"
#include "qpref.h"
#include "quota.h"
#include "rail.h"
#include "stats.h"

/* Limits, as query_device tells them. */
enum {
	MEDGE_MAX_QP = 65536,
	MEDGE_MAX_QP_WR = 16384,
	MEDGE_MAX_SGE = 32,
	MEDGE_MAX_INLINE = 1024,
	MEDGE_MAX_CQ = 65536,
	MEDGE_MAX_CQE = 1 << 22,
	MEDGE_MAX_MR = 1 << 20,
	MEDGE_MAX_PD = 1 << 20,
	MEDGE_MAX_AH = 1 << 20,
	MEDGE_MAX_SRQ = 65536,
	MEDGE_MAX_DM = 1 << 24,
	MEDGE_GID_TABLE = 128,
};

/**
 * struct medge_device - one RDMA device
 * @entry: in the module's list of devices, see device.c
 * @netdev_gone: @netdev is being unregistered; under RTNL
 * @dead: ib_core has taken the device down; under RTNL
 * @held: frames that wait, of all QPs
 * @quotas: what processes may have
 * @retired: what the QPs that are gone counted; under @retired_lock
 */
struct medge_device {
	struct ib_device ibdev;		/* first: ib_alloc_device() */
	struct net_device *netdev;	/* the bond, or the only rail */
	netdevice_tracker netdev_tracker;
	struct medge_rails rails;
	struct medge_nodes nodes;
	struct medge_keys keys;
	struct medge_poller poller;
	struct medge_offload offload;
	struct medge_qps qps;
	struct xarray srqs;		/* XRC SRQs by number; RCU read */
	atomic64_t dm_used;		/* bytes of device memory */
	struct rhashtable mrs;		/* by key; RCU read */
	struct xarray ahs;		/* by number; under its own lock */
	u32 next_ah;			/* the same */
	struct medge_mcast mcast;
	struct medge_held held;
	struct medge_quotas quotas;
	struct medge_device_stats __percpu *stats;
	struct medge_rail_stats __percpu *rail_stats;	/* MEDGE_MAX_RAILS */
	struct medge_conn_stats *retired;
	spinlock_t retired_lock;	/* inside nothing; BHs off */
	struct list_head entry;
	struct list_head loop_entry;	/* loop.c */
	u32 scheduler;			/* enum medge_scheduler; sysfs.c */
	u32 loopback;			/* enum medge_loopback; the same */
	u32 integrity;			/* enum medge_integrity; the same */
	bool netdev_gone;
	bool dead;
};

static inline struct medge_device *to_medge_device(struct ib_device *ibdev)
{
	return container_of(ibdev, struct medge_device, ibdev);
}

/* rdma_link_ops.newlink */
int medge_device_newlink(const char *name, struct net_device *netdev);
/* Module exit: no device is left when it returns. No newlink() can come. */
void medge_devices_destroy(void);

/* RTNL held: an event of @netdev; each device that is concerned follows it. */
void medge_devices_netdev_event(struct net_device *netdev, unsigned long event,
				void *info);
/* RTNL held: the device that has @netdev as its own, or as a rail; NULL: none. */
struct medge_device *medge_device_by_netdev(const struct net_device *netdev);
struct medge_device *medge_device_by_rail(const struct net_device *netdev);

#endif /* MEDGE_DEVICE_H */
