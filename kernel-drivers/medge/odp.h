/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* On-demand paging: regions that pin nothing, and know the pages that are there now. */
#ifndef MEDGE_ODP_H
#define MEDGE_ODP_H

#include <linux/mmu_notifier.h>
#include <linux/spinlock.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>

struct medge_mr;

/**
 * struct medge_odp - the pages of such a region that are known
 * @notifier: tells when the kernel takes pages of this address range away
 * @lock: BH-safe. Who copies to or from a page of @pages holds it for reading;
 *        who takes one out holds it for writing. So a page that the kernel has
 *        been given back is not touched any more, and needs no reference
 * @pages: by number of virtual page; tagged if it may be written
 * @going: serializes those who take pages out of @pages, until the kernel may
 *         go on with these
 * @leaving: a writer waits for @lock; without that, readers on several CPUs
 *           could keep it waiting
 */
struct medge_odp {
	struct mmu_interval_notifier notifier;
	rwlock_t lock;
	struct xarray pages;
	spinlock_t going;
	bool leaving;
};

/* A part of a region that was wanted, and was not there. */
struct medge_absent {
	struct medge_mr *mr;		/* held; NULL: nothing is */
	u64 addr;			/* as keys and requests have it */
	u64 len;
	bool write;
};

#ifdef CONFIG_INFINIBAND_ON_DEMAND_PAGING

/* Make @mr, whose start and length are set, such a region of the caller's memory. */
int medge_odp_create(struct medge_mr *mr);
void medge_odp_destroy(struct medge_mr *mr);

static inline void medge_odp_enter(struct medge_odp *odp)
{
	read_lock_bh(&odp->lock);
	/* A walk holds it or not, as its region is paged or not: not for sparse. */
	__release(&odp->lock);
}

static inline void medge_odp_leave(struct medge_odp *odp)
{
	__acquire(&odp->lock);
	read_unlock_bh(&odp->lock);
}

/* Between these two. NULL: not there now, or not to be written. */
struct page *medge_odp_page(struct medge_odp *odp, u64 va, bool write);

/* Bring it in, or at least its beginning. Sleeps. Return: 0, or a negative errno. */
int medge_odp_fault(const struct medge_absent *absent);

/* ib_device_ops */
int medge_advise_mr(struct ib_pd *pd, enum ib_uverbs_advise_mr_advice advice,
		    u32 flags, struct ib_sge *sges, u32 num_sge,
		    struct uverbs_attr_bundle *attrs);

/* Tell that there is such a thing, and for which operations. */
void medge_odp_caps(struct ib_device_attr *attr);

#else	/* no such region can be made */

#define medge_advise_mr NULL

static inline void medge_odp_caps(struct ib_device_attr *attr) {}
static inline void medge_odp_enter(struct medge_odp *odp) {}
static inline void medge_odp_leave(struct medge_odp *odp) {}
static inline void medge_odp_destroy(struct medge_mr *mr) {}

static inline int medge_odp_create(struct medge_mr *mr)
{
	return -EOPNOTSUPP;
}

static inline struct page *medge_odp_page(struct medge_odp *odp, u64 va,
					  bool write)
{
	return NULL;
}

static inline int medge_odp_fault(const struct medge_absent *absent)
{
	return -EOPNOTSUPP;
}

#endif

#endif /* MEDGE_ODP_H */
