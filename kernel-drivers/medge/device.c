// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Devices: from `rdma link add` to the last trace of them. */
#include <linux/etherdevice.h>
#include <linux/if_vlan.h>
#include <linux/rtnetlink.h>
#include <net/addrconf.h>
#include <rdma/medge-abi.h>

#include "ah.h"
#include "compat.h"
#include "cq.h"
#include "device.h"
#include "dm.h"
#include "dmabuf.h"
#include "frwr.h"
#include "mr.h"
#include "mw.h"
#include "pma.h"
#include "qp.h"
#include "query.h"
#include "restrack.h"
#include "ring.h"
#include "srq.h"
#include "transport/conn.h"
#include "verbs.h"

/*
 * All devices, each with a hold on its memory. A device that ib_core has taken
 * down stays here, as an empty shell, until the next one is made or the module
 * goes: so module exit can wait for each teardown that is still under way.
 * Guarded by RTNL.
 */
static LIST_HEAD(devices);

static void dealloc_driver(struct ib_device *ibdev)
{
	struct medge_device *dev = to_medge_device(ibdev);

	medge_poller_destroy(dev);
	medge_offload_destroy(&dev->offload);
	medge_rails_destroy(dev);
	medge_keys_destroy(dev);
	medge_nodes_destroy(dev);
	medge_qps_destroy(&dev->qps);
	WARN_ON(!xa_empty(&dev->srqs));
	xa_destroy(&dev->srqs);
	medge_mr_table_destroy(dev);
	medge_mcast_destroy(&dev->mcast);
	medge_held_destroy(&dev->held);
	medge_quotas_destroy(&dev->quotas);
	WARN_ON(!xa_empty(&dev->ahs));
	xa_destroy(&dev->ahs);
	medge_stats_destroy(dev);
	netdev_put(dev->netdev, &dev->netdev_tracker);

	rtnl_lock();
	dev->dead = true;
	rtnl_unlock();
}

/* It is registered, and has its name. */
static int enable_driver(struct ib_device *ibdev)
{
	return medge_poller_set(to_medge_device(ibdev), MEDGE_POLL_AUTO);
}

static const struct ib_device_ops device_ops = {
	.owner = THIS_MODULE,
	.driver_id = RDMA_DRIVER_UNKNOWN,
	.uverbs_abi_ver = MEDGE_ABI_VERSION,

	.advise_mr = medge_advise_mr,
	.alloc_hw_port_stats = medge_alloc_hw_port_stats,
	.alloc_mr = medge_alloc_mr,
	.alloc_dm = medge_alloc_dm,
	.alloc_mw = medge_alloc_mw,
	.alloc_pd = medge_alloc_pd,
	.alloc_ucontext = medge_alloc_ucontext,
	.alloc_xrcd = medge_alloc_xrcd,
	.attach_mcast = medge_attach_mcast,
	.create_ah = medge_create_ah,
	.create_cq = MEDGE_CREATE_CQ,
	.create_qp = medge_create_qp,
	.create_srq = medge_create_srq,
	.create_user_ah = medge_create_ah,
	.dealloc_dm = medge_dealloc_dm,
	.dealloc_driver = dealloc_driver,
	.enable_driver = enable_driver,
	.dealloc_mw = medge_dealloc_mw,
	.dealloc_pd = medge_dealloc_pd,
	.dealloc_ucontext = medge_dealloc_ucontext,
	.dealloc_xrcd = medge_dealloc_xrcd,
	.dereg_mr = medge_dereg_mr,
	.destroy_ah = medge_destroy_ah,
	.destroy_cq = medge_destroy_cq,
	.destroy_qp = medge_destroy_qp,
	.destroy_srq = medge_destroy_srq,
	.detach_mcast = medge_detach_mcast,
	.device_group = &medge_sysfs,
	.disassociate_ucontext = medge_disassociate_ucontext,
	.fill_res_cq_entry = medge_fill_res_cq,
	.fill_res_mr_entry = medge_fill_res_mr,
	.fill_res_qp_entry = medge_fill_res_qp,
	.get_dma_mr = medge_get_dma_mr,
	.get_hw_stats = medge_get_hw_stats,
	.get_link_layer = medge_get_link_layer,
	.get_port_immutable = medge_get_port_immutable,
	.map_mr_sg = medge_map_mr_sg,
	.mmap = medge_ring_mmap,
	.mmap_free = medge_ring_mmap_free,
	.modify_cq = medge_modify_cq,
	.modify_qp = medge_modify_qp,
	.modify_srq = medge_modify_srq,
	.poll_cq = medge_poll_cq,
	.post_recv = medge_post_recv,
	.post_send = medge_post_send,
	.process_mad = medge_process_mad,
	.query_ah = medge_query_ah,
	.query_device = medge_query_device,
	.query_pkey = medge_query_pkey,
	.query_port = medge_query_port,
	MEDGE_QUERY_PORT_SPEED
	.post_srq_recv = medge_post_srq_recv,
	.query_qp = medge_query_qp,
	.query_srq = medge_query_srq,
	.query_ucontext = medge_query_ucontext,
	.reg_dm_mr = medge_reg_dm_mr,
	.reg_user_mr = MEDGE_REG_USER_MR,
	.reg_user_mr_dmabuf = MEDGE_REG_DMABUF_MR,
	.req_notify_cq = medge_req_notify_cq,
	.rereg_user_mr = medge_rereg_user_mr,
	MEDGE_RESIZE_CQ

	INIT_RDMA_OBJ_SIZE(ib_ah, medge_ah, ibah),
	INIT_RDMA_OBJ_SIZE(ib_cq, medge_cq, ibcq),
	INIT_RDMA_OBJ_SIZE(ib_mw, medge_mw, ibmw),
	INIT_RDMA_OBJ_SIZE(ib_pd, medge_pd, ibpd),
	INIT_RDMA_OBJ_SIZE(ib_qp, medge_qp, ibqp),
	INIT_RDMA_OBJ_SIZE(ib_srq, medge_srq, ibsrq),
	INIT_RDMA_OBJ_SIZE(ib_ucontext, medge_ucontext, ibuc),
	INIT_RDMA_OBJ_SIZE(ib_xrcd, medge_xrcd, ibxrcd),
};

/* ---- the list ---- */

static void forget_dead_devices(void)
{
	struct medge_device *dev, *next;

	ASSERT_RTNL();
	list_for_each_entry_safe(dev, next, &devices, entry) {
		if (!dev->dead)
			continue;
		list_del(&dev->entry);
		put_device(&dev->ibdev.dev);
	}
}

struct medge_device *medge_device_by_netdev(const struct net_device *netdev)
{
	struct medge_device *dev;

	ASSERT_RTNL();
	list_for_each_entry(dev, &devices, entry)
		if (!dev->dead && dev->netdev == netdev)
			return dev;
	return NULL;
}

struct medge_device *medge_device_by_rail(const struct net_device *netdev)
{
	struct medge_device *dev;

	ASSERT_RTNL();
	list_for_each_entry(dev, &devices, entry)
		if (!dev->dead && medge_rails_have(dev, netdev))
			return dev;
	return NULL;
}

static struct medge_device *first_device(void)
{
	struct medge_device *dev;

	rtnl_lock();
	forget_dead_devices();
	dev = list_first_entry_or_null(&devices, struct medge_device, entry);
	if (dev)
		get_device(&dev->ibdev.dev);
	rtnl_unlock();
	return dev;
}

/* ---- netdev events ---- */

static void device_event(struct medge_device *dev, struct net_device *netdev,
			 unsigned long event, void *info)
{
	struct ib_device *ibdev = &dev->ibdev;

	if (netdev != dev->netdev || !ib_device_try_get(ibdev))
		return;
	if (event == NETDEV_UNREGISTER)
		ib_unregister_device_queued(ibdev);
	else
		ib_dispatch_port_state_event(ibdev, netdev);
	ib_device_put(ibdev);
}

void medge_devices_netdev_event(struct net_device *netdev, unsigned long event,
				void *info)
{
	struct medge_device *dev;

	ASSERT_RTNL();
	list_for_each_entry(dev, &devices, entry) {
		if (dev->dead)
			continue;
		if (netdev == dev->netdev && event == NETDEV_UNREGISTER)
			dev->netdev_gone = true;
		medge_rails_netdev_event(dev, netdev, event, info);
		device_event(dev, netdev, event, info);
	}
}

/* ---- a new one ---- */

static int check_netdev(const struct net_device *netdev)
{
	if (netdev->reg_state != NETREG_REGISTERED)
		return -ENODEV;
	if (netdev->type != ARPHRD_ETHER || netdev->addr_len != ETH_ALEN ||
	    netdev->flags & IFF_LOOPBACK || is_vlan_dev(netdev))
		return -EOPNOTSUPP;
	if (medge_device_by_netdev(netdev))
		return -EEXIST;
	/* A slave is a rail of its bond's device, or will be. */
	if (netif_is_lag_port(netdev) || medge_device_by_rail(netdev))
		return -EBUSY;
	return 0;
}

static void name_device(struct ib_device *ibdev, const struct net_device *netdev)
{
	BUILD_BUG_ON(sizeof(MEDGE_NODE_DESC) > IB_DEVICE_NODE_DESC_MAX);
	strscpy(ibdev->node_desc, MEDGE_NODE_DESC, sizeof(ibdev->node_desc));
	ibdev->node_type = RDMA_NODE_IB_CA;
	ibdev->phys_port_cnt = 1;
	ibdev->driver_def = medge_query_methods;
	ibdev->num_comp_vectors = num_possible_cpus();
	ibdev->uverbs_cmd_mask |= BIT_ULL(IB_USER_VERBS_CMD_POST_SEND) |
				  BIT_ULL(IB_USER_VERBS_CMD_POST_RECV) |
				  BIT_ULL(IB_USER_VERBS_CMD_POST_SRQ_RECV) |
				  BIT_ULL(IB_USER_VERBS_CMD_REQ_NOTIFY_CQ) |
				  BIT_ULL(MEDGE_CMD_RING_QP);
	addrconf_addr_eui48((u8 *)&ibdev->node_guid, netdev->dev_addr);
}

static int init_device(struct medge_device *dev, struct net_device *netdev)
{
	int err;

	name_device(&dev->ibdev, netdev);
	medge_ah_table_init(dev);
	xa_init(&dev->srqs);
	medge_rails_init(dev);
	medge_nodes_init(dev);
	medge_keys_init(dev);
	medge_offload_init(&dev->offload);
	medge_quotas_init(&dev->quotas);
	err = medge_qps_init(&dev->qps, MEDGE_MAX_QP);
	if (err)
		return err;
	err = medge_poller_init(dev);
	if (err)
		goto no_poller;
	err = medge_stats_init(dev);
	if (err)
		goto no_stats;
	err = medge_mr_table_init(dev);
	if (err)
		goto no_stats;
	err = medge_mcast_init(&dev->mcast);
	if (err)
		goto no_groups;
	err = medge_held_init(&dev->held);
	if (err)
		goto no_held;
	dev->scheduler = MEDGE_SCHED_EARLIEST;
	dev->netdev = netdev;
	netdev_hold(netdev, &dev->netdev_tracker, GFP_KERNEL);
	return 0;

no_held:
	medge_mcast_destroy(&dev->mcast);
no_groups:
	medge_mr_table_destroy(dev);
no_stats:
	medge_stats_destroy(dev);
	medge_poller_destroy(dev);
no_poller:
	medge_qps_destroy(&dev->qps);
	return err;
}

/*
 * RTNL is held from the check on until the device is in the list and has its
 * rails, so that no event is missed.
 */
static struct medge_device *make_device(struct net_device *netdev)
{
	struct medge_device *dev;
	int err;

	err = check_netdev(netdev);
	if (err)
		return ERR_PTR(err);
	dev = ib_alloc_device_with_net(medge_device, ibdev, dev_net(netdev));
	if (!dev)
		return ERR_PTR(-ENOMEM);
	err = init_device(dev, netdev);
	if (err) {
		ib_dealloc_device(&dev->ibdev);
		return ERR_PTR(err);
	}
	/* From here on ib_dealloc_device() calls dealloc_driver(). */
	ib_set_device_ops(&dev->ibdev, &device_ops);
	get_device(&dev->ibdev.dev);
	list_add_tail(&dev->entry, &devices);
	return dev;
}

static int register_device(struct medge_device *dev, const char *name)
{
	int err;

	err = ib_device_set_netdev(&dev->ibdev, dev->netdev, 1);
	if (!err) {
		ib_mark_name_assigned_by_user(&dev->ibdev);
		err = ib_register_device(&dev->ibdev, name, NULL);
	}
	if (err) {
		ib_dealloc_device(&dev->ibdev);
		/* ib_core says that of a name which is taken. */
		return err == -ENFILE ? -EEXIST : err;
	}

	/* Its netdev may have gone before there was a device to unregister. */
	rtnl_lock();
	if (dev->netdev_gone)
		err = -ENODEV;
	rtnl_unlock();
	if (err)
		ib_unregister_device(&dev->ibdev);
	return err;
}

int medge_device_newlink(const char *name, struct net_device *netdev)
{
	struct medge_device *dev;
	int err;

	rtnl_lock();
	forget_dead_devices();
	dev = make_device(netdev);
	if (IS_ERR(dev)) {
		rtnl_unlock();
		return PTR_ERR(dev);
	}
	get_device(&dev->ibdev.dev);
	err = medge_rails_attach(dev);
	rtnl_unlock();

	if (err) {
		ib_dealloc_device(&dev->ibdev);
	} else {
		/* Most hosts have none, and it goes without. */
		medge_offload_take(&dev->offload, NULL, 0);
		err = register_device(dev, name);
	}
	put_device(&dev->ibdev.dev);
	return err;
}

void medge_devices_destroy(void)
{
	struct medge_device *dev;

	while ((dev = first_device())) {
		/* If another has begun with it, this waits until he is done. */
		ib_unregister_device(&dev->ibdev);
		put_device(&dev->ibdev.dev);
	}
}
