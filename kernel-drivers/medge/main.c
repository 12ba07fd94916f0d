// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The module: what comes with it and goes with it. */
#include <linux/module.h>
#include <linux/netdevice.h>
#include <rdma/rdma_netlink.h>

#include "build.h"
#include "device.h"
#include "faults.h"
#include "qp.h"
#include "rail.h"

static int netdev_event(struct notifier_block *nb, unsigned long event,
			void *info)
{
	struct net_device *netdev = netdev_notifier_info_to_dev(info);

	switch (event) {
	case NETDEV_UP:
	case NETDEV_DOWN:
	case NETDEV_CHANGE:
	case NETDEV_CHANGEMTU:
	case NETDEV_CHANGEADDR:
	case NETDEV_CHANGEUPPER:
	case NETDEV_UNREGISTER:
		medge_devices_netdev_event(netdev, event, info);
		break;
	}
	return NOTIFY_DONE;
}

static struct notifier_block netdev_notifier = {
	.notifier_call = netdev_event,
};

static struct rdma_link_ops link_ops = {
	.type = "medge",
	.newlink = medge_device_newlink,
};

static int __init medge_init(void)
{
	int err;

	err = medge_qps_start();
	if (err)
		return err;
	err = medge_faults_start();
	if (err)
		goto no_faults;
	err = medge_gso_register();
	if (err)
		goto no_gso;
	err = register_netdevice_notifier(&netdev_notifier);
	if (err)
		goto no_notifier;
	rdma_link_register(&link_ops);
	return 0;

no_notifier:
	medge_gso_unregister();
no_gso:
	medge_faults_stop();
no_faults:
	medge_qps_stop();
	return err;
}

static void __exit medge_exit(void)
{
	rdma_link_unregister(&link_ops);
	medge_devices_destroy();
	unregister_netdevice_notifier(&netdev_notifier);
	medge_gso_unregister();
	medge_faults_stop();
	medge_build_stop();
	medge_qps_stop();
	/* QPs and MRs are freed by RCU callbacks of ours or of kfree_rcu's. */
	rcu_barrier();
}

module_init(medge_init);
module_exit(medge_exit);

MODULE_DESCRIPTION("RDMA over bonded Ethernet ports");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_ALIAS_RDMA_LINK("medge");
