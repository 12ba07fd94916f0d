// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * On-demand paging. A region is a range of its owner's address space; the pages
 * that are there are found through HMM when somebody needs them, kept in a table
 * that softirqs can read, and forgotten when the kernel says that they go.
 */
#include <linux/hmm.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "compat.h"
#include "device.h"
#include "mr.h"
#include "odp.h"
#include "stats.h"

enum {
	/* Pages looked up in one go. */
	CHUNK = 64,
	/* Brought in for one access at most: what is ahead of it is likely next. */
	AHEAD = SZ_1M,
	/* Forgotten in one go. */
	GONE = 64,
	/* In a table entry: may be written, and has been, as far as we know. */
	WRITABLE = 1,
};

static struct medge_odp *to_odp(struct mmu_interval_notifier *notifier)
{
	return container_of(notifier, struct medge_odp, notifier);
}

/* ---- pages that go ---- */

/* Pages that have been forgotten and must be marked. */
struct gone {
	struct page *dirty[GONE];
	u32 ndirty;
};

static void lock_to_forget(struct medge_odp *odp) __acquires(&odp->lock)
{
	WRITE_ONCE(odp->leaving, true);
	write_lock_bh(&odp->lock);
	WRITE_ONCE(odp->leaving, false);
}

/* Forget some pages, from *first to @last. Under @lock. Return: there are more. */
static bool forget(struct medge_odp *odp, unsigned long *first,
		   unsigned long last, struct gone *gone)
{
	XA_STATE(xas, &odp->pages, *first);
	u32 left = GONE;
	void *entry;

	gone->ndirty = 0;
	xas_lock(&xas);
	xas_for_each(&xas, entry, last) {
		if (!left--)
			break;
		if (xa_pointer_tag(entry) == WRITABLE)
			gone->dirty[gone->ndirty++] = xa_untag_pointer(entry);
		xas_store(&xas, NULL);
	}
	*first = xas.xa_index;
	xas_unlock(&xas);
	return entry;
}

/*
 * The owner's page table need not say that a page was written here. To mark it,
 * file systems take locks that must not nest in one that softirqs take; and
 * nobody else may tell the kernel to go on with a page before that is done.
 */
static void forget_all(struct medge_odp *odp, unsigned long first,
		       unsigned long last)
{
	struct gone gone;
	bool more;

	do {
		lock_to_forget(odp);
		more = forget(odp, &first, last, &gone);
		write_unlock_bh(&odp->lock);
		while (gone.ndirty)
			set_page_dirty(gone.dirty[--gone.ndirty]);
	} while (more);
}

/* Sleeps nowhere, so that it is of no matter whether it may. */
static bool invalidate(struct mmu_interval_notifier *notifier,
		       const struct mmu_notifier_range *range,
		       unsigned long seq)
{
	struct medge_odp *odp = to_odp(notifier);

	spin_lock(&odp->going);
	lock_to_forget(odp);
	mmu_interval_set_seq(notifier, seq);
	write_unlock_bh(&odp->lock);
	forget_all(odp, range->start >> PAGE_SHIFT,
		   (range->end - 1) >> PAGE_SHIFT);
	spin_unlock(&odp->going);
	return true;
}

static const struct mmu_interval_notifier_ops notifier_ops = {
	.invalidate = invalidate,
};

/* ---- pages that come ---- */

struct page *medge_odp_page(struct medge_odp *odp, u64 va, bool write)
{
	void *entry;

	if (READ_ONCE(odp->leaving))
		return NULL;
	entry = xa_load(&odp->pages, va >> PAGE_SHIFT);
	if (!entry || (write && xa_pointer_tag(entry) != WRITABLE))
		return NULL;
	return xa_untag_pointer(entry);
}

/* Room for entries, so that none is needed under a lock. */
static int reserve(struct medge_odp *odp, unsigned long first, u32 n)
{
	u32 i;
	int err;

	for (i = 0; i < n; i++) {
		err = xa_reserve_bh(&odp->pages, first + i, GFP_KERNEL);
		if (err)
			return err;
	}
	return 0;
}

/* Of a page that was written before, this is remembered. Under @lock. */
static int keep(struct medge_odp *odp, unsigned long first, u32 n,
		const unsigned long *pfns, bool write)
{
	u32 i;

	for (i = 0; i < n; i++) {
		void *entry, *old = xa_load(&odp->pages, first + i);
		struct page *page;

		if (!(pfns[i] & HMM_PFN_VALID))
			continue;
		page = hmm_pfn_to_page(pfns[i]);
		if (old && xa_untag_pointer(old) == page && !write)
			continue;
		entry = xa_tag_pointer(page, write ? WRITABLE : 0);
		entry = xa_store(&odp->pages, first + i, entry, 0);
		if (xa_is_err(entry))
			return xa_err(entry);
	}
	return 0;
}

/* Look up @n pages, once. -EBUSY: the kernel took some away meanwhile. */
static int look(struct medge_odp *odp, unsigned long first, u32 n,
		unsigned long wanted)
{
	unsigned long pfns[CHUNK] = {};
	struct hmm_range range = {
		.notifier = &odp->notifier,
		.start = first << PAGE_SHIFT,
		.end = (first + n) << PAGE_SHIFT,
		.hmm_pfns = pfns,
		.default_flags = wanted,
	};
	int err;

	range.notifier_seq = mmu_interval_read_begin(&odp->notifier);
	err = reserve(odp, first, n);
	if (err)
		return err;
	mmap_read_lock(odp->notifier.mm);
	err = hmm_range_fault(&range);
	mmap_read_unlock(odp->notifier.mm);
	if (err)
		return err;

	write_lock_bh(&odp->lock);
	if (mmu_interval_read_retry(&odp->notifier, range.notifier_seq))
		err = -EBUSY;
	else
		err = keep(odp, first, n, pfns, wanted & HMM_PFN_REQ_WRITE);
	write_unlock_bh(&odp->lock);
	return err;
}

/*
 * Look up to *@n pages, and say how many it were: who takes pages away all the time
 * may leave none in which many could be brought.
 */
static int look_again(struct medge_odp *odp, unsigned long first, u32 *n,
		      unsigned long wanted)
{
	int err;

	while ((err = look(odp, first, *n, wanted)) == -EBUSY) {
		if (fatal_signal_pending(current))
			return -EINTR;
		*n = DIV_ROUND_UP(*n, 2);
		cond_resched();
	}
	return err;
}

/* This part of a region that is held; *came: how many pages of it are there. */
static int bring(struct medge_mr *mr, u64 addr, u64 len, unsigned long wanted,
		 unsigned long *came)
{
	u64 va = addr - mr->iova + mr->start;
	unsigned long first = va >> PAGE_SHIFT;
	unsigned long n = ((va + len - 1) >> PAGE_SHIFT) - first + 1;
	struct mm_struct *mm = mr->odp->notifier.mm;
	int err = 0;

	*came = 0;
	if (!mmget_not_zero(mm))
		return -EFAULT;
	while (*came < n) {
		u32 chunk = min_t(unsigned long, n - *came, CHUNK);

		err = look_again(mr->odp, first + *came, &chunk, wanted);
		if (err)
			break;
		*came += chunk;
		cond_resched();
	}
	mmput(mm);
	return err;
}

int medge_odp_fault(const struct medge_absent *absent)
{
	struct medge_mr *mr = absent->mr;
	unsigned long wanted = HMM_PFN_REQ_FAULT, came;
	u64 len = min_t(u64, absent->len, AHEAD);
	int err;

	if (absent->write)
		wanted |= HMM_PFN_REQ_WRITE;
	len = min(len, mr->length - (absent->addr - mr->iova));
	err = bring(mr, absent->addr, len, wanted, &came);
	/* What was wanted for certain is the first page. */
	if (err && !came)
		err = bring(mr, absent->addr, 1, wanted, &came);
	return came ? 0 : err;
}

/* ---- advice ---- */

static int advise(struct ib_pd *pd, const struct ib_sge *sge,
		  unsigned long wanted)
{
	int access = wanted & HMM_PFN_REQ_WRITE ? IB_ACCESS_LOCAL_WRITE : 0;
	unsigned long came;
	struct medge_mr *mr;
	int err = 0;

	if (!sge->length)
		return 0;
	mr = medge_mr_get_local(pd, sge->lkey, sge->addr, sge->length, access);
	if (IS_ERR(mr))
		return PTR_ERR(mr);
	if (!mr->odp)
		err = -EINVAL;
	else
		err = bring(mr, sge->addr, sge->length, wanted, &came);
	medge_mr_put(mr);
	return err;
}

/* Whether it may be done later (no IBV_ADVISE_MR_FLAG_FLUSH) or not: it is done. */
int medge_advise_mr(struct ib_pd *pd, enum ib_uverbs_advise_mr_advice advice,
		    u32 flags, struct ib_sge *sges, u32 num_sge,
		    struct uverbs_attr_bundle *attrs)
{
	unsigned long wanted = HMM_PFN_REQ_FAULT;
	u32 i;
	int err = 0;

	switch (advice) {
	case IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH:
		break;
	case IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_WRITE:
		wanted |= HMM_PFN_REQ_WRITE;
		break;
	case IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT:
		wanted = 0;
		break;
	default:
		return -EOPNOTSUPP;
	}
	for (i = 0; i < num_sge && !err; i++)
		err = advise(pd, &sges[i], wanted);
	return err;
}

/* ---- regions ---- */

/* The pages of it: all of them, or those that it has a part of. */
static int insert(struct medge_odp *odp, const struct medge_mr *mr)
{
	unsigned long first = mr->start & PAGE_MASK, last;

	/* Implicit: the whole address space. */
	if (!mr->start && mr->length == U64_MAX)
		return mmu_interval_notifier_insert(&odp->notifier, current->mm,
						    0, ULONG_MAX, &notifier_ops);
	if (check_add_overflow((unsigned long)mr->start,
			       (unsigned long)mr->length, &last) ||
	    last > PAGE_ALIGN_DOWN(ULONG_MAX))
		return -EINVAL;
	last = max(PAGE_ALIGN(last), first + PAGE_SIZE);
	return mmu_interval_notifier_insert(&odp->notifier, current->mm, first,
					    last - first, &notifier_ops);
}

int medge_odp_create(struct medge_mr *mr)
{
	struct medge_odp *odp;
	int err;

	odp = kzalloc(sizeof(*odp), GFP_KERNEL);
	if (!odp)
		return -ENOMEM;
	spin_lock_init(&odp->going);
	rwlock_init(&odp->lock);
	xa_init_flags(&odp->pages, XA_FLAGS_LOCK_BH | XA_FLAGS_ACCOUNT);
	err = insert(odp, mr);
	if (err) {
		kfree(odp);
		return err;
	}
	mr->odp = odp;
	return 0;
}

/* Nobody uses the region any more. */
void medge_odp_destroy(struct medge_mr *mr)
{
	struct medge_odp *odp = mr->odp;

	if (!odp)
		return;
	spin_lock(&odp->going);
	forget_all(odp, 0, ULONG_MAX);
	spin_unlock(&odp->going);
	mmu_interval_notifier_remove(&odp->notifier);
	xa_destroy(&odp->pages);
	kfree(odp);
	mr->odp = NULL;
}

void medge_odp_caps(struct ib_device_attr *attr)
{
	attr->kernel_cap_flags |= IBK_ON_DEMAND_PAGING;
	attr->odp_caps.general_caps = IB_ODP_SUPPORT | IB_ODP_SUPPORT_IMPLICIT;
	attr->odp_caps.per_transport_caps.rc_odp_caps =
		IB_ODP_SUPPORT_SEND | IB_ODP_SUPPORT_RECV |
		IB_ODP_SUPPORT_WRITE | IB_ODP_SUPPORT_READ |
		IB_ODP_SUPPORT_ATOMIC | IB_ODP_SUPPORT_SRQ_RECV |
		IB_ODP_SUPPORT_FLUSH | IB_ODP_SUPPORT_ATOMIC_WRITE;
	attr->odp_caps.per_transport_caps.uc_odp_caps = IB_ODP_SUPPORT_SEND;
	attr->odp_caps.per_transport_caps.ud_odp_caps = IB_ODP_SUPPORT_SEND;
	attr->odp_caps.per_transport_caps.xrc_odp_caps =
		attr->odp_caps.per_transport_caps.rc_odp_caps;
}
