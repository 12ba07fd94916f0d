/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Batches of frames, on their way to the rails. */
#ifndef MEDGE_BATCH_H
#define MEDGE_BATCH_H

#include <linux/skbuff.h>

#include "rail.h"

/* What must be known of an skb to give it to its rail. @again: as medge_rail_xmit(). */
struct medge_tx_cb {
	struct medge_l2 l2;
	u8 rail;
	bool again;
};

static inline struct medge_tx_cb *medge_tx_cb(struct sk_buff *skb)
{
	BUILD_BUG_ON(sizeof(struct medge_tx_cb) > sizeof(skb->cb));
	return (struct medge_tx_cb *)skb->cb;
}

/*
 * Send all of @skbs, each rail's in their order; those that follow each other there to
 * the same peer as bundles. BHs off. Return: a peer is near, and has had some of it.
 */
bool medge_batch_xmit(struct medge_device *dev, struct sk_buff_head *skbs);

#endif /* MEDGE_BATCH_H */
