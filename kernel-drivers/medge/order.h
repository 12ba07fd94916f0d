/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Frames of unreliable connections are taken as they were sent, one after the
 * other. On their way some overtake others: who sends moves to another CPU, and
 * what it sends to another queue. They wait for those before them, but not for long.
 */
#ifndef MEDGE_ORDER_H
#define MEDGE_ORDER_H

#include <linux/skbuff.h>

#include "transport/wire.h"

struct medge_qp;

/* A frame that came before others that were sent before it. */
struct medge_early {
	struct medge_early *next;
	struct sk_buff *skb;
	struct medge_frame frame;
};

/**
 * struct medge_order - which frame of a UC QP is next; all 0 before the first is known
 * @psn: its number
 * @heard: one has come
 * @early: those that came before it, by number
 * @nearly: how many
 * @until: ns, when it is taken for lost; 0: none is early
 */
struct medge_order {
	u32 psn;
	bool heard;
	u32 nearly;
	struct medge_early *early;
	u64 until;
};

/* The functions are called under qp->lock, for qp->uc.order. */

/*
 * A frame has come. Return: it is next, and taken. Else it is early, and *@skb is kept
 * and NULL, or of no use. Whatever it is, some that were early may be next now.
 */
bool medge_order_come(struct medge_qp *qp, const struct medge_frame *frame,
		      struct sk_buff **skb);
/* Return: an early one that is next, and taken, to be freed; NULL: none is. */
struct medge_early *medge_order_next(struct medge_qp *qp);
/* Order.until has come: what is next is lost. */
void medge_order_skip(struct medge_qp *qp);
/* Nobody wants the early ones any more. */
void medge_order_drop(struct medge_qp *qp);

#endif /* MEDGE_ORDER_H */
