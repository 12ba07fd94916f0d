// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The device's files in /sys/class/infiniband/DEVICE/:
 *
 *   drain   names of rails the administrator wants free; write RAIL to drain
 *           one, -RAIL to use it again. What is on its way still arrives. A
 *           rail that leaves the bond and comes back is used again.
 *   paths   for people: each path to each peer, its state, and why
 */
#include <linux/rtnetlink.h>
#include <linux/sysfs.h>

#include "device.h"
#include "verbs.h"

static struct medge_device *device_of(struct device *device)
{
	return rdma_device_to_drv_device(device, struct medge_device, ibdev);
}

static ssize_t drain_show(struct device *device, struct device_attribute *attr,
			  char *buf)
{
	return medge_rails_drained(device_of(device), buf);
}

static ssize_t drain_store(struct device *device, struct device_attribute *attr,
			   const char *buf, size_t len)
{
	bool drain = *buf != '-';
	char name[IFNAMSIZ];
	int err;

	if (strscpy(name, buf + !drain, sizeof(name)) < 0)
		return -EINVAL;
	/* Whoever removes the device may hold it, and wait for us. */
	if (!rtnl_trylock())
		return restart_syscall();
	err = medge_rails_drain(device_of(device), strim(name), drain);
	rtnl_unlock();
	return err ? err : len;
}
static DEVICE_ATTR_RW(drain);

static ssize_t paths_show(struct device *device, struct device_attribute *attr,
			  char *buf)
{
	return medge_nodes_show(device_of(device), buf);
}
static DEVICE_ATTR_RO(paths);

static struct attribute *attrs[] = {
	&dev_attr_drain.attr,
	&dev_attr_paths.attr,
	NULL,
};

const struct attribute_group medge_sysfs = {
	.attrs = attrs,
};
