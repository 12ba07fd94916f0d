/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Copies that a DMA engine makes (I/OAT, DSA, whatever dmaengine has a channel of),
 * while the CPU takes the next frames. As in Open-MX (Goglin 2008, 3): started for
 * each frame as it comes, waited for by the message, and only where the engine is
 * no slower. From which length on that is so, is measured when a channel is taken,
 * as GRIM finds its threshold (Ulmer 2002, 5.2).
 */
#ifndef MEDGE_OFFLOAD_H
#define MEDGE_OFFLOAD_H

#include <linux/interrupt.h>
#include <linux/llist.h>
#include <linux/mutex.h>
#include <linux/wait.h>

#include "transport/wire.h"

struct dma_chan;
struct medge_absent;
struct medge_copies;
struct medge_device;
struct medge_mr;
struct medge_piece;
struct medge_qp;
struct page;
struct sk_buff;

/* Longer than any piece: the CPU copies all. */
enum { MEDGE_OFFLOAD_NEVER = 1 << 30 };

/**
 * struct medge_offload - a device's channel
 * @control: serializes changes of @chan, which is NULL if there is none
 * @chan: RCU read side
 * @least: bytes of a piece from which on it is copied by the engine
 * @under_way: frames whose copies are; and one while there is a channel
 * @idle: there are none, nor will be
 * @done: frames whose copies are made, for @finish
 */
struct medge_offload {
	struct mutex control;
	struct dma_chan __rcu *chan;
	u32 least;
	atomic_t under_way;
	wait_queue_head_t idle;
	struct llist_head done;
	struct tasklet_struct finish;
};

void medge_offload_init(struct medge_offload *offload);
/* No QP is left. */
void medge_offload_destroy(struct medge_offload *offload);

/**
 * medge_offload_take() - have a DMA engine copy what is received
 * @name: of the channel; NULL: any that is free, and no slower than the CPU
 * @least: bytes of a piece from which on; 0: to be measured
 *
 * The channel in use until now is given back first, whatever comes of it. Sleeps.
 * Return: 0; -ENODEV: no such channel is free, or none is fast enough; -EIO: it does
 * not do what it is for; -ENOMEM; -EINTR.
 */
int medge_offload_take(struct medge_offload *offload, const char *name, u32 least);
/* The CPU copies; what an engine has begun is over. Sleeps. */
void medge_offload_drop(struct medge_offload *offload);
/* Its channel and its least length, as sysfs shows them. */
int medge_offload_show(struct medge_offload *offload, char *buf);

/* Is a piece of @len bytes for the engine? */
static inline bool medge_offload_wants(const struct medge_offload *offload, u32 len)
{
	return len >= READ_ONCE(offload->least);
}

/**
 * medge_offload_piece() - place a piece by the engine, but for what it cannot
 *
 * As medge_place_piece(), without qp->lock; the piece counts in qp->placing.
 * Return: false: that is done, with @nak and @absent as there. True: its frame is
 * given to medge_receive_copied() when it is, be that before the return.
 */
bool medge_offload_piece(struct medge_qp *qp, struct sk_buff *skb,
			 const struct medge_piece *piece, enum medge_nak *nak,
			 struct medge_absent *absent);

/*
 * For who places with copies at hand: @len bytes from @from, in memory that has a
 * page, to @off in @page of @mr. Return: the engine will, or it was done here;
 * false: do it.
 */
bool medge_copies_add(struct medge_copies *copies, struct medge_mr *mr,
		      struct page *page, u32 off, const void *from, u32 len);

#endif /* MEDGE_OFFLOAD_H */
