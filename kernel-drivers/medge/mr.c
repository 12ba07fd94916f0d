// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Memory regions: registered, and deregistered. How they are found: mr_find.c. */
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "compat.h"
#include "device.h"
#include "dmabuf.h"
#include "frwr.h"
#include "mr.h"
#include "mw.h"
#include "verbs.h"

enum {
	MR_ACCESS = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE |
		    IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_ATOMIC |
		    IB_ACCESS_MW_BIND | IB_ACCESS_FLUSH_GLOBAL |
		    IB_ACCESS_HUGETLB | IB_ACCESS_OPTIONAL,
	MR_ACCESS_ODP = IS_ENABLED(CONFIG_INFINIBAND_ON_DEMAND_PAGING) ?
			IB_ACCESS_ON_DEMAND : 0,
};

static int fill_pages(struct medge_mr *mr)
{
	struct sg_page_iter iter;
	u32 n = 0;

	mr->npages = ib_umem_num_pages(mr->umem);
	mr->pages = kvmalloc_array(mr->npages, sizeof(*mr->pages), GFP_KERNEL_ACCOUNT);
	if (!mr->pages)
		return -ENOMEM;
	for_each_sgtable_page(medge_umem_sgt(mr->umem), &iter, 0) {
		if (WARN_ON_ONCE(n == mr->npages))
			return -EINVAL;
		mr->pages[n++] = sg_page_iter_page(&iter);
	}
	return n == mr->npages ? 0 : -EINVAL;
}

/* Until its key is complete, it is 0, which matches nobody's. */
static int publish(struct medge_device *dev, struct medge_mr *mr)
{
	struct ib_uobject *owner = mr->ibmr.pd->uobject;
	int err;

	err = medge_quota_take(owner ? owner->context : NULL, MEDGE_QUOTA_MR,
			       &mr->process);
	if (err)
		return err;
	err = medge_key_publish(dev, &mr->key);
	if (err) {
		medge_quota_give(&mr->process, MEDGE_QUOTA_MR);
		return err;
	}
	mr->ibmr.rkey = medge_key_make(&mr->key);
	mr->ibmr.lkey = mr->ibmr.rkey;
	return 0;
}

/* Of no memory yet; NULL: no memory. */
static struct medge_mr *new_mr(struct ib_pd *pd, u64 length, int access,
			       gfp_t gfp)
{
	struct medge_mr *mr = kzalloc(sizeof(*mr), gfp);

	if (!mr)
		return NULL;
	mr->length = length;
	mr->access = access;
	/* ib_core sets it only after the key can be found */
	mr->ibmr.pd = pd;
	refcount_set(&mr->ref, 1);
	init_completion(&mr->gone);
	return mr;
}

static int pin(struct medge_mr *mr)
{
	int err;

	mr->umem = medge_umem_get(mr->ibmr.pd->device, mr->start, mr->length,
				  mr->access);
	if (IS_ERR(mr->umem))
		return PTR_ERR(mr->umem);
	mr->page_off = ib_umem_offset(mr->umem);
	err = fill_pages(mr);
	if (!err)
		return 0;
	kvfree(mr->pages);
	ib_umem_release(mr->umem);
	return err;
}

/* What @mr, all else of which is set, is for: @buf's memory, or the caller's. */
static int find_memory(struct medge_mr *mr, struct dma_buf *buf)
{
	if (buf)
		return medge_dmabuf_map(mr, buf);
	if (!(mr->access & MR_ACCESS_ODP))
		return pin(mr);
	/* What a page is looked up by has its place in the page. */
	mr->page_off = mr->start & ~PAGE_MASK;
	return medge_odp_create(mr);
}

/* A region that nobody can find yet. */
static struct medge_mr *make_user_mr(struct ib_pd *pd, struct dma_buf *buf,
				     u64 start, u64 length, u64 iova,
				     int access)
{
	struct medge_mr *mr;
	int err;

	if (access & ~(MR_ACCESS | (buf ? 0 : MR_ACCESS_ODP)))
		return ERR_PTR(-EOPNOTSUPP);
	if (iova + length < iova)
		return ERR_PTR(-EINVAL);
	mr = new_mr(pd, length, access, GFP_KERNEL_ACCOUNT);
	if (!mr)
		return ERR_PTR(-ENOMEM);

	mr->start = start;
	mr->iova = iova;

	err = find_memory(mr, buf);
	if (!err)
		return mr;
	kfree(mr);
	return ERR_PTR(err);
}

static void free_user_mr(struct medge_mr *mr)
{
	medge_odp_destroy(mr);
	kvfree(mr->fast ?: (void *)mr->pages);
	ib_umem_release(mr->umem);
	medge_dmabuf_unmap(mr);
	if (mr->sink)
		__free_page(mr->sink);
	medge_quota_give(&mr->process, MEDGE_QUOTA_MR);
	kfree_rcu(mr, rcu);
}

struct ib_mr *medge_mr_of_user(struct ib_pd *pd, struct dma_buf *buf, u64 start,
			       u64 length, u64 iova, int access)
{
	struct medge_mr *mr;
	int err;

	mr = make_user_mr(pd, buf, start, length, iova, access);
	if (IS_ERR(mr))
		return ERR_CAST(mr);
	err = publish(to_medge_device(pd->device), mr);
	if (!err)
		return &mr->ibmr;
	free_user_mr(mr);
	return ERR_PTR(err);
}

/* Of no memory, at all addresses; no other node can have it. */
static struct ib_mr *null_mr(struct ib_pd *pd)
{
	struct medge_mr *mr;
	int err = -ENOMEM;

	mr = new_mr(pd, U64_MAX, IB_ACCESS_LOCAL_WRITE, GFP_KERNEL_ACCOUNT);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->sink = alloc_page(GFP_KERNEL_ACCOUNT);
	if (mr->sink)
		err = publish(to_medge_device(pd->device), mr);
	if (!err)
		return &mr->ibmr;
	free_user_mr(mr);
	return ERR_PTR(err);
}

struct ib_mr *medge_reg_user_mr(struct ib_pd *pd, u64 start, u64 length,
				u64 iova, int access, struct ib_dmah *dmah,
				struct ib_udata *udata)
{
	struct medge_reg_mr_req req = {};
	int err = 0;

	/* The kernel's own consumers have none, as RDS for what its callers map. */
	if (udata)
		err = medge_udata_read(udata, &req, sizeof(req));
	if (err)
		return ERR_PTR(err);
	if (dmah || req.flags & ~MEDGE_REG_MR_NULL || req.reserved)
		return ERR_PTR(-EOPNOTSUPP);
	if (req.flags & MEDGE_REG_MR_NULL)
		return null_mr(pd);
	return medge_mr_of_user(pd, NULL, start, length, iova, access);
}

/*
 * All memory of the kernel, for a consumer's PD. The device is one of virtual
 * DMA: what ib_dma_map_*() say is the address the kernel itself uses. Each PD
 * has a key of its own, since QPs of other PDs may not use it.
 */
struct ib_mr *medge_get_dma_mr(struct ib_pd *pd, int access)
{
	struct medge_mr *mr;
	int err;

	mr = new_mr(pd, U64_MAX, access, GFP_KERNEL);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	err = publish(to_medge_device(pd->device), mr);
	if (!err)
		return &mr->ibmr;
	kfree(mr);
	return ERR_PTR(err);
}

struct ib_mr *medge_mr_to_fill(struct ib_pd *pd, u32 max_pages)
{
	struct medge_mr *mr;
	int err = -ENOMEM;

	mr = new_mr(pd, 0, 0, GFP_KERNEL);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->invalid = true;
	mr->max_pages = max_pages;
	mr->fast = kvcalloc(max_pages, sizeof(*mr->fast), GFP_KERNEL);
	if (mr->fast)
		err = publish(to_medge_device(pd->device), mr);
	if (!err)
		return &mr->ibmr;
	kvfree(mr->fast);
	kfree(mr);
	return ERR_PTR(err);
}

bool medge_key_invalidate(const struct medge_qp *qp, u32 key)
{
	return medge_mw_invalidate(qp, key) || medge_frwr_invalidate(qp, key);
}

struct page *medge_mr_kernel_page(u64 addr)
{
	const void *va = (const void *)(uintptr_t)addr;

	if (is_vmalloc_or_module_addr(va))
		return vmalloc_to_page(va);
	return virt_addr_valid(va) ? virt_to_page(va) : NULL;
}

struct page *medge_mr_find_page(const struct medge_mr *mr, u64 addr, int access)
{
	if (mr->odp)
		return medge_odp_page(mr->odp, addr - mr->iova + mr->start,
				      access & MEDGE_WRITE_RIGHTS);
	if (mr->sink)
		return access & MEDGE_WRITE_RIGHTS ? mr->sink : ZERO_PAGE(0);
	return medge_mr_kernel_page(mr->fast ? medge_frwr_address(mr, addr) : addr);
}

/* Such may be mapped that has no page. */
static struct page *mapped_page(const void *va)
{
	struct page *page = medge_mr_kernel_page((uintptr_t)va);

	return page && pfn_valid(page_to_pfn(page)) ? page : NULL;
}

int medge_mr_fill_mapped(struct medge_mr *mr, void *mem)
{
	void *first = PTR_ALIGN_DOWN(mem, PAGE_SIZE);
	u32 i;

	mr->page_off = mem - first;
	mr->npages = PFN_UP(mr->page_off + mr->length);
	mr->pages = kvmalloc_array(mr->npages, sizeof(*mr->pages), GFP_KERNEL_ACCOUNT);
	if (!mr->pages)
		return -ENOMEM;
	for (i = 0; i < mr->npages; i++) {
		mr->pages[i] = mapped_page(first + (size_t)i * PAGE_SIZE);
		if (!mr->pages[i])
			return -EOPNOTSUPP;
	}
	return 0;
}

struct ib_mr *medge_mr_of_pages(struct ib_pd *pd, void *mem, u64 length,
				int access)
{
	struct medge_mr *mr;
	int err;

	if (access & ~MR_ACCESS)
		return ERR_PTR(-EOPNOTSUPP);
	mr = new_mr(pd, length, access, GFP_KERNEL_ACCOUNT);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	err = medge_mr_fill_mapped(mr, mem);
	if (!err)
		err = publish(to_medge_device(pd->device), mr);
	if (!err)
		return &mr->ibmr;
	kvfree(mr->pages);
	kfree(mr);
	return ERR_PTR(err);
}

/* @mr is what the key of @old stands for from now on. */
static int take_over(struct medge_device *dev, struct medge_mr *mr,
		     struct medge_mr *old)
{
	int err;

	mr->key = old->key;
	mr->ibmr.lkey = old->ibmr.lkey;
	mr->ibmr.rkey = old->ibmr.rkey;
	err = medge_key_replace(dev, &old->key, &mr->key);
	if (err)
		return err;
	WRITE_ONCE(old->replaced, true);
	swap(mr->process, old->process);
	return 0;
}

/*
 * A new region in the place of the old one, which ib_core deregisters when this
 * has worked: nothing is half way at any time, and if it fails, nothing changed.
 * The key stays, as programs expect that have told it to their peers.
 */
struct ib_mr *medge_rereg_user_mr(struct ib_mr *ibmr, int flags, u64 start,
				  u64 length, u64 iova, int access,
				  struct ib_pd *pd, struct ib_udata *udata)
{
	struct medge_mr *mr, *old = to_medge_mr(ibmr);
	struct dma_buf *buf = NULL;
	int err;

	if (flags & ~IB_MR_REREG_SUPPORTED ||
	    !(old->umem || old->odp || old->dmabuf))
		return ERR_PTR(-EOPNOTSUPP);
	if (atomic_read(&old->windows))
		return ERR_PTR(-EBUSY);
	if (!(flags & IB_MR_REREG_TRANS)) {
		buf = old->dmabuf;
		start = old->start;
		length = old->length;
		iova = old->iova;
	}
	if (!(flags & IB_MR_REREG_ACCESS))
		access = old->access;
	mr = make_user_mr(pd, buf, start, length, iova, access);
	if (IS_ERR(mr))
		return ERR_CAST(mr);
	err = take_over(to_medge_device(pd->device), mr, old);
	if (!err)
		return &mr->ibmr;
	free_user_mr(mr);
	return ERR_PTR(err);
}

int medge_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata)
{
	struct medge_device *dev = to_medge_device(ibmr->device);
	struct medge_mr *mr = to_medge_mr(ibmr);

	if (atomic_cmpxchg(&mr->windows, 0, INT_MIN))
		return -EBUSY;
	if (!mr->replaced)
		medge_key_remove(dev, &mr->key);
	medge_mr_put(mr);
	wait_for_completion(&mr->gone);
	free_user_mr(mr);
	return 0;
}
