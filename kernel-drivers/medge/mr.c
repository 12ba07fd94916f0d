// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Memory regions: pinned, found by random key, checked on each use. */
#include <linux/mm.h>
#include <linux/random.h>
#include <linux/slab.h>

#include "compat.h"
#include "device.h"
#include "mr.h"

static const struct rhashtable_params mr_params = {
	.key_len = sizeof_field(struct medge_mr, key),
	.key_offset = offsetof(struct medge_mr, key),
	.head_offset = offsetof(struct medge_mr, node),
	.automatic_shrinking = true,
};

enum {
	MR_ACCESS = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE |
		    IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_ATOMIC |
		    IB_ACCESS_HUGETLB | IB_ACCESS_OPTIONAL,
};

int medge_mr_table_init(struct medge_device *dev)
{
	return rhashtable_init(&dev->mrs, &mr_params);
}

void medge_mr_table_destroy(struct medge_device *dev)
{
	rhashtable_destroy(&dev->mrs);
}

static int fill_pages(struct medge_mr *mr)
{
	struct sg_page_iter iter;
	u32 n = 0;

	mr->npages = ib_umem_num_pages(mr->umem);
	mr->pages = kvmalloc_array(mr->npages, sizeof(*mr->pages), GFP_KERNEL);
	if (!mr->pages)
		return -ENOMEM;
	for_each_sgtable_page(medge_umem_sgt(mr->umem), &iter, 0) {
		if (WARN_ON_ONCE(n == mr->npages))
			return -EINVAL;
		mr->pages[n++] = sg_page_iter_page(&iter);
	}
	return n == mr->npages ? 0 : -EINVAL;
}

/* Random keys: who does not know one cannot find one by counting. */
static int publish(struct medge_device *dev, struct medge_mr *mr)
{
	int err;

	do {
		do {
			mr->key = get_random_u32();
		} while (!mr->key);
		mr->ibmr.lkey = mr->key;
		mr->ibmr.rkey = mr->key;
		err = rhashtable_lookup_insert_fast(&dev->mrs, &mr->node,
						    mr_params);
	} while (err == -EEXIST);
	return err;
}

struct ib_mr *medge_reg_user_mr(struct ib_pd *pd, u64 start, u64 length,
				u64 iova, int access, struct ib_dmah *dmah,
				struct ib_udata *udata)
{
	struct medge_mr *mr;
	int err;

	if (dmah || access & ~MR_ACCESS)
		return ERR_PTR(-EOPNOTSUPP);
	if (iova + length < iova)
		return ERR_PTR(-EINVAL);
	mr = kzalloc(sizeof(*mr), GFP_KERNEL);
	if (!mr)
		return ERR_PTR(-ENOMEM);

	mr->umem = medge_umem_get(pd->device, start, length, access);
	if (IS_ERR(mr->umem)) {
		err = PTR_ERR(mr->umem);
		goto free;
	}
	mr->access = access;
	mr->iova = iova;
	mr->length = length;
	mr->page_off = ib_umem_offset(mr->umem);
	/* ib_core sets it only after the key can be found */
	mr->ibmr.pd = pd;
	refcount_set(&mr->ref, 1);
	init_completion(&mr->gone);

	err = fill_pages(mr);
	if (!err)
		err = publish(to_medge_device(pd->device), mr);
	if (!err)
		return &mr->ibmr;

	kvfree(mr->pages);
	ib_umem_release(mr->umem);
free:
	kfree(mr);
	return ERR_PTR(err);
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

	mr = kzalloc(sizeof(*mr), GFP_KERNEL);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->access = access;
	mr->length = U64_MAX;
	mr->ibmr.pd = pd;
	refcount_set(&mr->ref, 1);
	init_completion(&mr->gone);
	err = publish(to_medge_device(pd->device), mr);
	if (!err)
		return &mr->ibmr;
	kfree(mr);
	return ERR_PTR(err);
}

struct page *medge_mr_kernel_page(u64 addr)
{
	const void *va = (const void *)(uintptr_t)addr;

	if (is_vmalloc_or_module_addr(va))
		return vmalloc_to_page(va);
	return virt_addr_valid(va) ? virt_to_page(va) : NULL;
}

int medge_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata)
{
	struct medge_device *dev = to_medge_device(ibmr->device);
	struct medge_mr *mr = to_medge_mr(ibmr);

	rhashtable_remove_fast(&dev->mrs, &mr->node, mr_params);
	medge_mr_put(mr);
	wait_for_completion(&mr->gone);
	kvfree(mr->pages);
	ib_umem_release(mr->umem);
	kfree_rcu(mr, rcu);
	return 0;
}

static bool mr_allows(const struct medge_mr *mr, const struct ib_pd *pd,
		      u64 addr, u64 len, int access)
{
	if (mr->ibmr.pd != pd || (mr->access & access) != access)
		return false;
	if (!len)
		return true;
	return addr >= mr->iova && len <= mr->length &&
	       addr - mr->iova <= mr->length - len;
}

struct medge_mr *medge_mr_get(struct ib_pd *pd, u32 key, u64 addr, u64 len,
			      int access)
{
	struct medge_device *dev = to_medge_device(pd->device);
	struct medge_mr *mr;

	rcu_read_lock();
	mr = rhashtable_lookup(&dev->mrs, &key, mr_params);
	if (mr && (!mr_allows(mr, pd, addr, len, access) ||
		   !refcount_inc_not_zero(&mr->ref)))
		mr = NULL;
	rcu_read_unlock();
	return mr;
}

void medge_mr_put(struct medge_mr *mr)
{
	if (refcount_dec_and_test(&mr->ref))
		complete(&mr->gone);
}
