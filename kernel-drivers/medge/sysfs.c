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
 *   integrity  what finds out that a frame was changed on its way: each link's
 *           own check (fcs), or the receiving host (crc32c), which then takes
 *           sealed frames only. What comes sealed is checked in any case. aead:
 *           frames are encrypted and authenticated, and no others are taken
 *   secret  written only: what nodes that use aead have in common, 16 to 1024
 *           bytes; nothing: there is none any more
 *   loopback how QPs of this host are reached: what is sent is copied to where it
 *           belongs (copy), or goes through the network's queues (frames)
 *   offload which DMA engine copies what is received, and from how many bytes of a
 *           frame on; write off, auto (any that is no slower than the CPU), or the
 *           name of a channel, and a length if that is not to be measured
 *   polling whose QPs the device's poller looks at, in the same way: nobody's
 *           (off), theirs who asked for it, these and streams while a CPU
 *           idles (auto), or all
 *   polling_idle_us
 *           how long the poller stays awake without traffic
 *   process_max_cq, process_max_mr, process_max_qp
 *           how many CQs, memory regions and QPs one process may have: a number,
 *           or max, for no limit
 */
#include <linux/rtnetlink.h>
#include <linux/sysfs.h>

#include "device.h"
#include "keys.h"
#include "loop.h"
#include "qp.h"
#include "seal.h"
#include "transport/conn.h"
#include "verbs.h"

/* Bytes of a secret. */
enum { SECRET_MIN = 16, SECRET_MAX = 1024 };

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

/* ---- one of several names ---- */

static int choice_show(char *buf, u32 chosen, u32 n, const char *(*name)(u32 i))
{
	int len = 0;
	u32 i;

	for (i = 0; i < n; i++)
		len += sysfs_emit_at(buf, len, i == chosen ? "%s[%s]" : "%s%s",
				     i ? " " : "", name(i));
	return len + sysfs_emit_at(buf, len, "\n");
}

static int choice_find(const char *buf, u32 n, const char *(*name)(u32 i))
{
	u32 i;

	for (i = 0; i < n; i++)
		if (sysfs_streq(buf, name(i)))
			return i;
	return -EINVAL;
}

/* For what takes effect by being there. */
static ssize_t choice_store(const char *buf, size_t count, u32 n,
			    const char *(*name)(u32 i), u32 *to)
{
	int i = choice_find(buf, n, name);

	if (i < 0)
		return i;
	WRITE_ONCE(*to, i);
	return count;
}

static ssize_t scheduler_show(struct device *device,
			      struct device_attribute *attr, char *buf)
{
	return choice_show(buf, READ_ONCE(device_of(device)->scheduler),
			   MEDGE_SCHEDULERS, medge_scheduler_name);
}

static ssize_t scheduler_store(struct device *device,
			       struct device_attribute *attr, const char *buf,
			       size_t count)
{
	int i = choice_find(buf, MEDGE_SCHEDULERS, medge_scheduler_name);

	if (i < 0)
		return i;
	medge_qps_schedule(device_of(device), i);
	return count;
}
static DEVICE_ATTR_RW(scheduler);

static ssize_t integrity_show(struct device *device,
			      struct device_attribute *attr, char *buf)
{
	return choice_show(buf, READ_ONCE(device_of(device)->integrity),
			   MEDGE_INTEGRITIES, medge_integrity_name);
}

static ssize_t integrity_store(struct device *device,
			       struct device_attribute *attr, const char *buf,
			       size_t count)
{
	struct medge_device *dev = device_of(device);

	if (sysfs_streq(buf, medge_integrity_name(MEDGE_INTEGRITY_AEAD)) &&
	    !medge_keys_set(&dev->keys))
		return medge_session_possible() ? -ENOKEY : -EOPNOTSUPP;
	return choice_store(buf, count, MEDGE_INTEGRITIES, medge_integrity_name,
			    &dev->integrity);
}
static DEVICE_ATTR_RW(integrity);

static ssize_t secret_store(struct device *device,
			    struct device_attribute *attr, const char *buf,
			    size_t count)
{
	struct medge_device *dev = device_of(device);
	size_t len = count;
	int err;

	/* As echo has it. */
	if (len && buf[len - 1] == '\n')
		len--;
	if (len && (len < SECRET_MIN || len > SECRET_MAX))
		return -EINVAL;
	if (!len && READ_ONCE(dev->integrity) == MEDGE_INTEGRITY_AEAD)
		return -EBUSY;
	err = medge_keys_secret(dev, buf, len);
	return err ? err : count;
}
static DEVICE_ATTR_WO(secret);

static ssize_t loopback_show(struct device *device,
			     struct device_attribute *attr, char *buf)
{
	return choice_show(buf, READ_ONCE(device_of(device)->loopback),
			   MEDGE_LOOPBACKS, medge_loopback_name);
}

static ssize_t loopback_store(struct device *device,
			      struct device_attribute *attr, const char *buf,
			      size_t count)
{
	return choice_store(buf, count, MEDGE_LOOPBACKS, medge_loopback_name,
			    &device_of(device)->loopback);
}
static DEVICE_ATTR_RW(loopback);

static ssize_t offload_show(struct device *device,
			    struct device_attribute *attr, char *buf)
{
	return medge_offload_show(&device_of(device)->offload, buf);
}

static ssize_t offload_store(struct device *device,
			     struct device_attribute *attr,
			     const char *buf, size_t count)
{
	struct medge_offload *offload = &device_of(device)->offload;
	char words[64], *least_word, *name;
	u32 least = 0;
	int err = 0;

	if (strscpy(words, buf, sizeof(words)) < 0)
		return -EINVAL;
	least_word = strim(words);
	name = strsep(&least_word, " ");
	if (!*name)
		return -EINVAL;
	if (least_word && (kstrtou32(least_word, 0, &least) || !least ||
			   least > MEDGE_OFFLOAD_NEVER))
		return -EINVAL;
	if (!strcmp(name, "off")) {
		if (least)
			return -EINVAL;
		medge_offload_drop(offload);
	} else {
		err = medge_offload_take(offload, strcmp(name, "auto") ? name : NULL, least);
	}
	return err ? err : count;
}
static DEVICE_ATTR_RW(offload);

static ssize_t polling_show(struct device *device,
			    struct device_attribute *attr, char *buf)
{
	return choice_show(buf, READ_ONCE(device_of(device)->poller.mode),
			   MEDGE_POLLINGS, medge_polling_name);
}

static ssize_t polling_store(struct device *device,
			     struct device_attribute *attr, const char *buf,
			     size_t count)
{
	int i = choice_find(buf, MEDGE_POLLINGS, medge_polling_name), err;

	if (i < 0)
		return i;
	err = medge_poller_set(device_of(device), i);
	return err ? err : count;
}
static DEVICE_ATTR_RW(polling);

/* ---- a number ---- */

static ssize_t number_store(const char *buf, size_t count, u32 most, u32 *to)
{
	u32 number;
	int err;

	err = kstrtou32(buf, 0, &number);
	if (err)
		return err;
	if (number > most)
		return -ERANGE;
	WRITE_ONCE(*to, number);
	return count;
}

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
	return number_store(buf, count, MEDGE_POLL_IDLE_US_MAX,
			    &device_of(device)->poller.idle_us);
}
static DEVICE_ATTR_RW(polling_idle_us);

static ssize_t held_max_kib_show(struct device *device,
				 struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%u\n",
			  READ_ONCE(device_of(device)->held.max_kib));
}

static ssize_t held_max_kib_store(struct device *device,
				  struct device_attribute *attr,
				  const char *buf, size_t count)
{
	return number_store(buf, count, U32_MAX,
			    &device_of(device)->held.max_kib);
}
static DEVICE_ATTR_RW(held_max_kib);

/* ---- what a process may have ---- */

static u32 *process_max(struct device *device, struct device_attribute *attr)
{
	struct dev_ext_attribute *of =
		container_of(attr, struct dev_ext_attribute, attr);

	return &device_of(device)->quotas.max[(uintptr_t)of->var];
}

static ssize_t process_max_show(struct device *device,
				struct device_attribute *attr, char *buf)
{
	u32 max = READ_ONCE(*process_max(device, attr));

	if (max == MEDGE_QUOTA_NONE)
		return sysfs_emit(buf, "max\n");
	return sysfs_emit(buf, "%u\n", max);
}

static ssize_t process_max_store(struct device *device,
				 struct device_attribute *attr,
				 const char *buf, size_t count)
{
	u32 *max = process_max(device, attr);

	if (!sysfs_streq(buf, "max"))
		return number_store(buf, count, MEDGE_QUOTA_MAX, max);
	WRITE_ONCE(*max, MEDGE_QUOTA_NONE);
	return count;
}

#define PROCESS_MAX(name, what)						\
	static struct dev_ext_attribute dev_attr_process_max_##name = {	\
		__ATTR(process_max_##name, 0644, process_max_show,	\
		       process_max_store),				\
		(void *)(uintptr_t)(what),				\
	}

PROCESS_MAX(cq, MEDGE_QUOTA_CQ);
PROCESS_MAX(mr, MEDGE_QUOTA_MR);
PROCESS_MAX(qp, MEDGE_QUOTA_QP);

static struct attribute *attrs[] = {
	&dev_attr_drain.attr,
	&dev_attr_held_max_kib.attr,
	&dev_attr_integrity.attr,
	&dev_attr_loopback.attr,
	&dev_attr_offload.attr,
	&dev_attr_paths.attr,
	&dev_attr_polling.attr,
	&dev_attr_polling_idle_us.attr,
	&dev_attr_process_max_cq.attr.attr,
	&dev_attr_process_max_mr.attr.attr,
	&dev_attr_process_max_qp.attr.attr,
	&dev_attr_scheduler.attr,
	&dev_attr_secret.attr,
	NULL,
};

const struct attribute_group medge_sysfs = {
	.attrs = attrs,
};
