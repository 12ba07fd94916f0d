/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The user's side of the rings that medge-abi.h describes. */
#ifndef MEDGE_RING_H
#define MEDGE_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rdma/medge-abi.h>

struct ibv_context;

/*
 * Our own index lives here and is published in the shared header; the kernel's
 * is cached here, so that its cache line is touched only when the ring looks
 * full (or empty). The caller's lock guards all of it.
 */
struct medge_ring {
	struct medge_ring_hdr *hdr;	/* the mapping; NULL: no ring */
	uint8_t *entries;
	size_t length;			/* of the mapping */
	uint32_t nentries;
	uint32_t shift;
	uint32_t prod;
	uint32_t cons;
};

static_assert(sizeof(struct medge_ring_hdr) == MEDGE_RING_ENTRIES,
	      "entries follow the header");
static_assert(offsetof(struct medge_ring_hdr, cons) == 64,
	      "prod and cons have a cache line each");

static inline uint32_t medge_ring_load(const uint32_t *index)
{
	return atomic_load_explicit((const _Atomic(uint32_t) *)index,
				    memory_order_acquire);
}

static inline void medge_ring_store(uint32_t *index, uint32_t value)
{
	atomic_store_explicit((_Atomic(uint32_t) *)index, value,
			      memory_order_release);
}

static inline void *medge_ring_entry(const struct medge_ring *ring,
				     uint32_t index)
{
	uint32_t slot = index & (ring->nentries - 1);

	return ring->entries + ((size_t)slot << ring->shift);
}

/* Producer: the next free entry, or NULL if there is none. */
static inline void *medge_ring_reserve(struct medge_ring *ring)
{
	if (ring->prod - ring->cons >= ring->nentries) {
		if (!ring->hdr)
			return NULL;
		ring->cons = medge_ring_load(&ring->hdr->cons);
		if (ring->prod - ring->cons >= ring->nentries)
			return NULL;
	}
	return medge_ring_entry(ring, ring->prod);
}

/* Producer: hand all entries before ring->prod to the kernel. */
static inline void medge_ring_publish(struct medge_ring *ring)
{
	medge_ring_store(&ring->hdr->prod, ring->prod);
}

/*
 * Producer, after publishing: must the kernel be told, and when? As enum
 * medge_doorbell has it. The fence pairs with the kernel's between setting
 * need_doorbell and its last look at prod: either it sees our prod, or we see its
 * need_doorbell.
 */
static inline uint32_t medge_ring_need_doorbell(struct medge_ring *ring)
{
	_Atomic(uint32_t) *need =
		(_Atomic(uint32_t) *)&ring->hdr->need_doorbell;

	atomic_thread_fence(memory_order_seq_cst);
	return atomic_load_explicit(need, memory_order_relaxed);
}

/* Producer, without its lock: is there something that the kernel has not taken yet? */
static inline bool medge_ring_is_untaken(const struct medge_ring *ring,
					 uint32_t *taken)
{
	*taken = medge_ring_load(&ring->hdr->taken);
	return *taken != medge_ring_load(&ring->hdr->prod);
}

/* Consumer: the oldest entry, or NULL if there is none. */
static inline const void *medge_ring_peek(struct medge_ring *ring)
{
	if (ring->cons == ring->prod) {
		ring->prod = medge_ring_load(&ring->hdr->prod);
		if (ring->cons == ring->prod)
			return NULL;
	}
	return medge_ring_entry(ring, ring->cons);
}

/* Consumer: give all entries before ring->cons back to the kernel. */
static inline void medge_ring_release(struct medge_ring *ring)
{
	medge_ring_store(&ring->hdr->cons, ring->cons);
}

/*
 * Consumer: have the kernel tell of the next entry, as enum medge_cq_armed
 * says. The fence pairs with the kernel's between storing prod and its look at
 * this: either it sees that it is to tell, or our next look at prod sees the
 * entry. Returns false if this kernel wants to be called for that.
 */
static inline bool medge_ring_arm(struct medge_ring *ring, uint32_t armed)
{
	if (!ring->hdr->has_armed)
		return false;
	atomic_fetch_or_explicit((_Atomic(uint32_t) *)&ring->hdr->armed, armed,
				 memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
	return true;
}

/* Neither side uses the ring now, and the kernel has emptied it: follow it. */
static inline void medge_ring_resync(struct medge_ring *ring)
{
	if (!ring->hdr)
		return;
	ring->cons = medge_ring_load(&ring->hdr->cons);
	ring->prod = medge_ring_load(&ring->hdr->prod);
}

/* Does the kernel resize in steps? */
static inline bool medge_ring_has_steps(const struct medge_ring *ring)
{
	return ring->hdr->life != MEDGE_RING_PLAIN;
}

/* The kernel has gone on to the ring that it offered last. */
static inline bool medge_ring_is_left(const struct medge_ring *ring)
{
	return medge_ring_load(&ring->hdr->life) == MEDGE_RING_LEFT;
}

int medge_ring_map(struct medge_ring *ring, int cmd_fd,
		   const struct medge_ring_map *map);
void medge_ring_unmap(struct medge_ring *ring);

#endif /* MEDGE_RING_H */
