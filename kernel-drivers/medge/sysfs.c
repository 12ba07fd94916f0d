// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The device's files in /sys/class/infiniband/DEVICE/:
 *
 *   drain   names of rails the administrator wants free; write RAIL to drain
 *           one, -RAIL to use it again. What is on its way still arrives. A
 *           rail that leaves the bond and comes back is used again.
 *   paths   for people: each path to each peer, its state, and why
 *   scheduler  all there are, the chosen one in brackets, as block devices show
 *           theirs; write one to choose it
 *   polling whose QPs the device's poller looks at, in the same way: nobody's
 *           (off), theirs who asked for it, or all
 *   polling_idle_us
 *           how long the poller stays awake without traffic
 */
#include <linux/rtnetlink.h>
#include <linux/sysfs.h>

#include "device.h"
#include "qp.h"
#include "transport/conn.h"
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

static ssize_t scheduler_show(struct device *device,
			      struct device_attribute *attr, char *buf)
{
	struct medge_device *dev = device_of(device);
	u32 chosen = READ_ONCE(dev->scheduler), i;
	int len = 0;

	for (i = 0; i < MEDGE_SCHEDULERS; i++)
		len += sysfs_emit_at(buf, len, i == chosen ? "%s[%s]" : "%s%s",
				     i ? " " : "", medge_scheduler_name(i));
	return len + sysfs_emit_at(buf, len, "\n");
}

static ssize_t scheduler_store(struct device *device,
			       struct device_attribute *attr, const char *buf,
			       size_t count)
{
	struct medge_device *dev = device_of(device);
	u32 i;

	for (i = 0; i < MEDGE_SCHEDULERS; i++) {
		if (!sysfs_streq(buf, medge_scheduler_name(i)))
			continue;
		medge_qps_schedule(dev, i);
		return count;
	}
	return -EINVAL;
}
static DEVICE_ATTR_RW(scheduler);

static ssize_t polling_show(struct device *device,
			    struct device_attribute *attr, char *buf)
{
	u32 mode = READ_ONCE(device_of(device)->poller.mode), i;
	int len = 0;

	for (i = 0; i < MEDGE_POLLINGS; i++)
		len += sysfs_emit_at(buf, len, i == mode ? "%s[%s]" : "%s%s",
				     i ? " " : "", medge_polling_name(i));
	return len + sysfs_emit_at(buf, len, "\n");
}

static ssize_t polling_store(struct device *device,
			     struct device_attribute *attr, const char *buf,
			     size_t count)
{
	int err;
	u32 i;

	for (i = 0; i < MEDGE_POLLINGS; i++) {
		if (!sysfs_streq(buf, medge_polling_name(i)))
			continue;
		err = medge_poller_set(device_of(device), i);
		return err ? err : count;
	}
	return -EINVAL;
}
static DEVICE_ATTR_RW(polling);

static ssize_t polling_idle_us_show(struct device *device,
				    struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%u\n",
			  READ_ONCE(device_of(device)->poller.idle_us));
}

static ssize_t polling_idle_us_store(struct device *device,
				     struct device_attribute *attr,
				     const char *buf, size_t count)
{
	u32 us;
	int err;

	err = kstrtou32(buf, 0, &us);
	if (!err && us > MEDGE_POLL_IDLE_US_MAX)
		err = -ERANGE;
	if (err)
		return err;
	WRITE_ONCE(device_of(device)->poller.idle_us, us);
	return count;
}
static DEVICE_ATTR_RW(polling_idle_us);

static struct attribute *attrs[] = {
	&dev_attr_drain.attr,
	&dev_attr_paths.attr,
	&dev_attr_polling.attr,
	&dev_attr_polling_idle_us.attr,
	&dev_attr_scheduler.attr,
	NULL,
};

const struct attribute_group medge_sysfs = {
	.attrs = attrs,
};
