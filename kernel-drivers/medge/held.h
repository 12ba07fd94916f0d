/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Memory of frames that are held, for want of those before them: bounded for
 * a device, so that no peer can have as much of it as it likes.
 */
#ifndef MEDGE_HELD_H
#define MEDGE_HELD_H

#include <linux/mm.h>
#include <linux/percpu_counter.h>
#include <linux/skbuff.h>

enum {
	/* What a QP may hold, whatever others do. */
	MEDGE_HELD_OWN = 256 << 10,
	/* The part of all memory that a device may hold beyond that: 1/8. */
	MEDGE_HELD_SHIFT = 3,
};

/**
 * struct medge_held - what all QPs of a device hold
 * @bytes: of skbs, as their truesize says
 * @max_kib: no more is held than that; settable
 */
struct medge_held {
	struct percpu_counter bytes;
	u32 max_kib;
};

static inline int medge_held_init(struct medge_held *held)
{
	held->max_kib = min_t(u64, U32_MAX, (u64)totalram_pages() <<
			      (PAGE_SHIFT - 10) >> MEDGE_HELD_SHIFT);
	return percpu_counter_init(&held->bytes, 0, GFP_KERNEL);
}

static inline void medge_held_destroy(struct medge_held *held)
{
	WARN_ON(percpu_counter_sum(&held->bytes));
	percpu_counter_destroy(&held->bytes);
}

/* May a QP that holds @own bytes hold @skb, too? */
static inline bool medge_held_room(struct medge_held *held, size_t own,
				   const struct sk_buff *skb)
{
	return own + skb->truesize <= MEDGE_HELD_OWN ||
	       percpu_counter_read_positive(&held->bytes) >> 10 <
		       READ_ONCE(held->max_kib);
}

/* @skb is held from now on, or no more, by the QP that holds @own bytes. */
static inline void medge_held_add(struct medge_held *held, size_t *own,
				  const struct sk_buff *skb)
{
	*own += skb->truesize;
	percpu_counter_add(&held->bytes, skb->truesize);
}

static inline void medge_held_sub(struct medge_held *held, size_t *own,
				  const struct sk_buff *skb)
{
	*own -= skb->truesize;
	percpu_counter_sub(&held->bytes, skb->truesize);
}

#endif /* MEDGE_HELD_H */
