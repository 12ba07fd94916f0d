// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Frames of unreliable connections in the order they were sent in, see order.h. */
#include "device.h"
#include "order.h"
#include "qp.h"
#include "stats.h"

enum {
	/* One that has not come after that many others does not come. */
	EARLY_MAX = 512,
	/*
	 * Nor after that time: a queue's CPU may have to finish something else, and a
	 * guest's may have to wait for one of its host's.
	 */
	EARLY_US = 20000,
	/* One behind by more is of a peer that began anew. */
	BEHIND_MAX = 1024,
};

/* From now on the next of those that are missing is waited for, if any are early. */
static void wait(struct medge_qp *qp)
{
	struct medge_order *order = &qp->uc.order;

	order->until = 0;
	if (!order->early)
		return;
	order->until = qp->now + EARLY_US * NSEC_PER_USEC;
	medge_timer_set(qp, order->until);
}

static struct medge_early *unlink_first(struct medge_qp *qp)
{
	struct medge_order *order = &qp->uc.order;
	struct medge_early *early = order->early;

	order->early = early->next;
	order->nearly--;
	if (!order->early)
		order->until = 0;
	medge_held_sub(&qp->dev->held, &qp->held_bytes, early->skb);
	return early;
}

static void drop_first(struct medge_qp *qp)
{
	struct medge_early *early = unlink_first(qp);

	kfree_skb(early->skb);
	kfree(early);
}

void medge_order_drop(struct medge_qp *qp)
{
	while (qp->uc.order.early)
		drop_first(qp);
}

void medge_order_skip(struct medge_qp *qp)
{
	struct medge_order *order = &qp->uc.order;

	if (order->early)
		order->psn = order->early->frame.psn;
}

/* Return: it is kept, in its place; not so one that is there already. */
static bool keep(struct medge_qp *qp, const struct medge_frame *frame,
		 struct sk_buff *skb)
{
	struct medge_order *order = &qp->uc.order;
	struct medge_early **at, *early;

	for (at = &order->early; *at; at = &(*at)->next) {
		s32 ahead = (*at)->frame.psn - frame->psn;

		if (!ahead)
			return false;
		if (ahead > 0)
			break;
	}
	if (!medge_held_room(&qp->dev->held, qp->held_bytes, skb))
		return false;
	early = kmalloc(sizeof(*early), GFP_ATOMIC);
	if (!early)
		return false;
	*early = (struct medge_early) {
		.next = *at, .skb = skb, .frame = *frame,
	};
	*at = early;
	medge_held_add(&qp->dev->held, &qp->held_bytes, skb);
	medge_count(qp->dev, rx_uc_early);
	if (++order->nearly > EARLY_MAX)
		medge_order_skip(qp);
	if (!order->until)
		wait(qp);
	return true;
}

bool medge_order_come(struct medge_qp *qp, const struct medge_frame *frame,
		      struct sk_buff **skb)
{
	struct medge_order *order = &qp->uc.order;
	s32 ahead = frame->psn - order->psn;

	if (unlikely(ahead < 0 && (ahead < -BEHIND_MAX || !order->heard))) {
		medge_order_drop(qp);
		order->psn = frame->psn;
		ahead = 0;
	}
	order->heard = true;
	if (likely(!ahead)) {
		order->psn += frame->nframes;
		return true;
	}
	if (ahead > 0 && keep(qp, frame, *skb))
		*skb = NULL;
	return false;
}

struct medge_early *medge_order_next(struct medge_qp *qp)
{
	struct medge_order *order = &qp->uc.order;

	while (unlikely(order->early)) {
		s32 ahead = order->early->frame.psn - order->psn;

		if (ahead > 0)
			break;
		if (!ahead) {
			struct medge_early *early = unlink_first(qp);

			order->psn += early->frame.nframes;
			wait(qp);
			return early;
		}
		drop_first(qp);
	}
	return NULL;
}
