/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Rings in memory shared with user space (layout: medge-abi.h). The kernel's
 * own indices are here, out of the user's reach; the shared copies are read
 * once, masked and never trusted. A kernel consumer's rings are the same, but
 * for their memory, which nobody maps.
 */
#ifndef MEDGE_RING_H
#define MEDGE_RING_H

#include <linux/minmax.h>
#include <linux/spinlock.h>
#include <rdma/ib_verbs.h>
#include <rdma/medge-abi.h>

struct medge_ring {
	struct medge_ring_hdr *hdr;	/* of whole pages; NULL: no ring */
	u32 mask;			/* entries - 1 */
	u32 shift;
	u32 prod;			/* CQ: ours. SQ, RQ: last value read, bounded */
	u32 cons;			/* SQ, RQ: next to snapshot. CQ: last value read */
	u32 done;			/* SQ, RQ: completed, published as hdr->cons. CQ: told of */
	struct medge_ring_mmap *mmap;	/* its rdma_user_mmap_entry; NULL: a kernel consumer's */
};

/*
 * Allocate, and describe in @map for the user (@uctx NULL: for the kernel);
 * nentries is rounded up to a power of two.
 */
int medge_ring_create(struct medge_ring *ring, struct ib_ucontext *uctx,
		      u32 nentries, u32 shift, struct medge_ring_map *map);
/* @ring is the other from here on, which its user can see in the one he has. */
void medge_ring_exchange(struct medge_ring *ring, struct medge_ring *other);
/*
 * @ring is what is offered from here on to who resizes, and becomes what was until
 * now (see enum medge_resize_step). @lock guards @offered.
 */
void medge_ring_offer(struct medge_ring *offered, struct medge_ring *ring,
		      spinlock_t *lock);
void medge_ring_destroy(struct medge_ring *ring);
/* Empty it, on both sides; nobody uses it meanwhile. Indices start at 0 again. */
void medge_ring_reset(struct medge_ring *ring);
int medge_ring_mmap(struct ib_ucontext *uctx, struct vm_area_struct *vma);
void medge_ring_mmap_free(struct rdma_user_mmap_entry *entry);

static inline void *medge_ring_entry(const struct medge_ring *ring, u32 index)
{
	return (u8 *)ring->hdr + MEDGE_RING_ENTRIES +
	       ((size_t)(index & ring->mask) << ring->shift);
}

/*
 * SQ, RQ: entries the user has posted and we have not taken, from cons on. A
 * producer index that is more than a ring ahead is a lie and counts as a full ring.
 */
static inline u32 medge_ring_posted(struct medge_ring *ring)
{
	/* Pairs with the user's release of prod: the entries are there. */
	u32 n = smp_load_acquire(&ring->hdr->prod) - ring->cons;
	u32 room = ring->mask + 1 - (ring->cons - ring->done);

	return min(n, room);
}

/* SQ, RQ: give back to the user what is done. */
static inline void medge_ring_show_done(struct medge_ring *ring)
{
	if (!ring->hdr)
		return;
	/* The user writes an entry again only after we have read it. */
	smp_store_release(&ring->hdr->cons, ring->done);
}

/*
 * SQ, RQ: all WQEs before @index are given back to the user, before the CQE tells
 * him that.
 */
static inline void medge_ring_done(struct medge_ring *ring, u32 index)
{
	ring->done = index;
	medge_ring_show_done(ring);
}

/* SQ: tell the user how far we are. */
static inline void medge_ring_show_taken(struct medge_ring *ring)
{
	WRITE_ONCE(ring->hdr->taken, ring->cons);
}

#endif /* MEDGE_RING_H */
