/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * All that drifts between kernels, in one place. The code around it is written
 * for the newest; each shim names the release that retires it.
 */
#ifndef MEDGE_COMPAT_H
#define MEDGE_COMPAT_H

#include <linux/ethtool.h>
#include <linux/hrtimer.h>
#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>

/* Pin user memory. The name and arguments change every few years. */
static inline struct ib_umem *medge_umem_get(struct ib_device *ibdev, u64 start,
					     u64 length, int access)
{
	return ib_umem_get_va(ibdev, start, length, access);
}

static inline struct sg_table *medge_umem_sgt(struct ib_umem *umem)
{
	return &umem->sgt_append.sgt;
}

/* Until 6.13 in two steps. */
static inline void
medge_hrtimer_setup(struct hrtimer *timer,
		    enum hrtimer_restart (*fn)(struct hrtimer *timer),
		    clockid_t clock, enum hrtimer_mode mode)
{
	hrtimer_setup(timer, fn, clock, mode);
}

/* In shared mode ib_core puts the device into init_net all the same. */
#define medge_alloc_device(net) \
	ib_alloc_device_with_net(medge_device, ibdev, net)

#endif /* MEDGE_COMPAT_H */
