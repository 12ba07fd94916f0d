// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Batches of frames are given to the rails, those that go along with each other in one piece. */
#include "batch.h"
#include "bundle.h"

/* What goes again goes by itself: who spoils bundles is not to have all of it. */
static bool goes_along(const struct sk_buff *skb, const struct medge_tx_cb *cb,
		       struct sk_buff *other)
{
	const struct medge_tx_cb *o = medge_tx_cb(other);

	return medge_bundle_fits(skb, other) && !cb->again && !o->again &&
	       cb->l2.vlan == o->l2.vlan &&
	       ether_addr_equal(cb->l2.dmac, o->l2.dmac);
}

/* Take those that go along with @skb from @skbs; none overtakes another of its rail. */
static void bundle(struct medge_device *dev, struct sk_buff_head *skbs,
		   struct sk_buff *skb, const struct medge_tx_cb *cb)
{
	struct sk_buff *other, *next, *last = NULL;

	if (!medge_is_plain(skb))
		return;
	skb_queue_walk_safe(skbs, other, next) {
		if (medge_tx_cb(other)->rail != cb->rail)
			continue;
		if (!goes_along(skb, cb, other) ||
		    !(last || medge_rail_bundles(dev, cb->rail, &cb->l2)))
			return;
		__skb_unlink(other, skbs);
		medge_bundle_add(skb, &last, other);
	}
}

bool medge_batch_xmit(struct medge_device *dev, struct sk_buff_head *skbs)
{
	struct sk_buff *skb;
	bool near = false;

	while ((skb = __skb_dequeue(skbs))) {
		struct medge_tx_cb cb = *medge_tx_cb(skb);

		bundle(dev, skbs, skb, &cb);
		near |= medge_rail_xmit(dev, cb.rail, &cb.l2, skb, cb.again);
	}
	return near;
}
