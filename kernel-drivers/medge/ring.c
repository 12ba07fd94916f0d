// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Rings: memory shared with a user process, and its mapping there. */
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "compat.h"
#include "pin.h"
#include "ring.h"

/*
 * The memory belongs to the mmap entry: a mapping that is just being made may
 * outlive the ring.
 */
struct medge_ring_mmap {
	struct rdma_user_mmap_entry entry;
	struct medge_pin pin;
	void *mem;
};

static void free_mmap(struct medge_ring_mmap *m)
{
	vfree(m->mem);
	medge_pin_release(&m->pin);
	kfree(m);
}

static size_t ring_bytes(u32 nentries, u32 shift)
{
	return PAGE_ALIGN(MEDGE_RING_ENTRIES + ((size_t)nentries << shift));
}

/* Memory that the user may map. */
static int alloc_user(struct medge_ring *ring, struct ib_ucontext *uctx,
		      size_t bytes, struct medge_ring_map *map)
{
	struct medge_ring_mmap *m;
	int err;

	m = kzalloc(sizeof(*m), GFP_KERNEL_ACCOUNT);
	if (!m)
		return -ENOMEM;
	err = medge_pin_charge(&m->pin, bytes);
	if (err)
		goto free;
	err = -ENOMEM;
	/* vmalloc_user() would not put it on the account of its control group. */
	m->mem = __vmalloc(bytes, GFP_KERNEL_ACCOUNT | __GFP_ZERO);
	if (!m->mem)
		goto free;
	err = rdma_user_mmap_entry_insert(uctx, &m->entry, bytes);
	if (err)
		goto free;
	ring->hdr = m->mem;
	ring->mmap = m;
	map->offset = rdma_user_mmap_get_offset(&m->entry);
	return 0;

free:
	free_mmap(m);
	return err;
}

static int alloc_kernel(struct medge_ring *ring, size_t bytes)
{
	ring->hdr = vzalloc(bytes);
	ring->mmap = NULL;
	return ring->hdr ? 0 : -ENOMEM;
}

int medge_ring_create(struct medge_ring *ring, struct ib_ucontext *uctx,
		      u32 nentries, u32 shift, struct medge_ring_map *map)
{
	size_t bytes;
	int err;

	nentries = roundup_pow_of_two(nentries);
	bytes = ring_bytes(nentries, shift);
	err = uctx ? alloc_user(ring, uctx, bytes, map) :
		     alloc_kernel(ring, bytes);
	if (err)
		return err;

	ring->mask = nentries - 1;
	ring->shift = shift;
	medge_ring_reset(ring);
	ring->hdr->life = MEDGE_RING_IN_USE;
	map->length = bytes;
	map->nentries = nentries;
	map->shift = shift;
	return 0;
}

void medge_ring_reset(struct medge_ring *ring)
{
	ring->prod = 0;
	ring->cons = 0;
	ring->done = 0;
	if (!ring->hdr)
		return;
	WRITE_ONCE(ring->hdr->prod, 0);
	WRITE_ONCE(ring->hdr->cons, 0);
	WRITE_ONCE(ring->hdr->taken, 0);
}

void medge_ring_exchange(struct medge_ring *ring, struct medge_ring *other)
{
	WRITE_ONCE(ring->hdr->life, MEDGE_RING_LEFT);
	swap(*ring, *other);
}

void medge_ring_offer(struct medge_ring *offered, struct medge_ring *ring,
		      spinlock_t *lock)
{
	spin_lock_bh(lock);
	swap(*offered, *ring);
	spin_unlock_bh(lock);
}

void medge_ring_destroy(struct medge_ring *ring)
{
	if (!ring->hdr)
		return;
	if (ring->mmap)
		rdma_user_mmap_entry_remove(&ring->mmap->entry);
	else
		vfree(ring->hdr);
	ring->hdr = NULL;
}

void medge_ring_mmap_free(struct rdma_user_mmap_entry *entry)
{
	free_mmap(container_of(entry, struct medge_ring_mmap, entry));
}

static int map_pages(struct vm_area_struct *vma, const void *mem)
{
	unsigned long at;
	int err = 0;

	for (at = vma->vm_start; at < vma->vm_end && !err; at += PAGE_SIZE)
		err = vm_insert_page(vma, at, vmalloc_to_page(mem + at -
							      vma->vm_start));
	return err;
}

int medge_ring_mmap(struct ib_ucontext *uctx, struct vm_area_struct *vma)
{
	struct rdma_user_mmap_entry *entry;
	int err;

	if (vma->vm_flags & VM_EXEC)
		return -EPERM;
	vm_flags_clear(vma, VM_MAYEXEC);

	/* Shared mappings of exactly the ring, or none. */
	entry = rdma_user_mmap_entry_get(uctx, vma);
	if (!entry)
		return -EINVAL;
	vm_flags_set(vma, VM_DONTEXPAND | VM_DONTDUMP);
	err = map_pages(vma, container_of(entry, struct medge_ring_mmap,
					  entry)->mem);
	rdma_user_mmap_entry_put(entry);
	return err;
}
