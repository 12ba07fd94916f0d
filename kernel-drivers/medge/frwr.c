// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Fast registration: kernel consumers' regions, made and unmade by work requests. */
#include <linux/mm.h>

#include "device.h"
#include "frwr.h"
#include "qp.h"

struct ib_mr *medge_alloc_mr(struct ib_pd *pd, enum ib_mr_type type,
			     u32 max_num_sg)
{
	if (type != IB_MR_TYPE_MEM_REG)
		return ERR_PTR(-EOPNOTSUPP);
	if (!max_num_sg || max_num_sg > MEDGE_MAX_FAST_PAGES)
		return ERR_PTR(-EINVAL);
	return medge_mr_to_fill(pd, max_num_sg);
}

static int add_page(struct ib_mr *ibmr, u64 addr)
{
	struct medge_mr *mr = to_medge_mr(ibmr);
	struct page *page;

	if (mr->npages == mr->max_pages)
		return -ENOMEM;
	page = medge_mr_kernel_page(addr);
	if (!page)
		return -EINVAL;
	mr->pages[mr->npages++] = page;
	return 0;
}

/* The region may begin or end within it, so that not all of it need be memory. */
static int add_large_page(struct ib_mr *ibmr, u64 addr)
{
	struct medge_mr *mr = to_medge_mr(ibmr);

	if (mr->npages == mr->max_pages)
		return -ENOMEM;
	mr->fast[mr->npages++] = addr;
	return 0;
}

/*
 * Pages of the kernel's size are found as those of all regions are. Larger ones,
 * in which servers register memory that they cut into chunks, take a longer way.
 */
int medge_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sg, int nents,
		    unsigned int *offset)
{
	struct medge_mr *mr = to_medge_mr(ibmr);
	bool large = ibmr->page_size > PAGE_SIZE;

	if (ibmr->page_size < PAGE_SIZE || !is_power_of_2(ibmr->page_size))
		return -EINVAL;
	mr->npages = 0;
	mr->pages = large ? NULL : (struct page **)mr->fast;
	return ib_sg_to_pages(ibmr, sg, nents, offset,
			      large ? add_large_page : add_page);
}

unsigned long medge_frwr_address(const struct medge_mr *mr, u64 addr)
{
	u64 pos = addr - mr->iova + mr->page_off;

	return mr->fast[pos >> ilog2(mr->ibmr.page_size)] +
	       (pos & (mr->ibmr.page_size - 1));
}

/* RCU read side. The tag is the consumer's, and he has set it before he posts. */
static struct medge_mr *find_mr(const struct medge_qp *qp, u32 key)
{
	struct medge_key *found = medge_key_find(qp->dev, key);
	struct medge_mr *mr;

	if (!found || found->is_mw)
		return NULL;
	mr = container_of(found, struct medge_mr, key);
	if (!mr->max_pages || mr->ibmr.rkey != key ||
	    mr->ibmr.pd != qp->ibqp.pd)
		return NULL;
	return mr;
}

bool medge_frwr_register(const struct medge_qp *qp,
			 const struct medge_send_wqe *wqe)
{
	struct medge_mr *mr;
	bool ok;

	rcu_read_lock();
	mr = find_mr(qp, wqe->rkey);
	ok = mr && mr->invalid;
	if (ok) {
		mr->access = wqe->bind_access;
		mr->iova = mr->ibmr.iova;
		mr->length = mr->ibmr.length;
		mr->page_off = mr->ibmr.iova & (mr->ibmr.page_size - 1);
		/* Who sees it valid sees the rest. */
		smp_store_release(&mr->invalid, false);
	}
	rcu_read_unlock();
	return ok;
}

bool medge_frwr_invalidate(const struct medge_qp *qp, u32 key)
{
	struct medge_mr *mr;
	bool ok;

	rcu_read_lock();
	mr = find_mr(qp, key);
	ok = mr && !xchg(&mr->invalid, true);
	/*
	 * Who has got hold of it before copies at most a frame, and does not
	 * sleep over it (it is not paged), nor wait for a lock of ours.
	 */
	while (ok && refcount_read(&mr->ref) > 1)
		cpu_relax();
	rcu_read_unlock();
	return ok;
}
