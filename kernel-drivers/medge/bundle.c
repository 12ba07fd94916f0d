// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Several frames in one skb. */
#include "bundle.h"

void medge_bundle_add(struct sk_buff *head, struct sk_buff **last,
		      struct sk_buff *skb)
{
	struct skb_shared_info *si = skb_shinfo(head);

	if (*last) {
		(*last)->next = skb;
	} else {
		si->gso_type = SKB_GSO_FRAGLIST;
		si->gso_size = head->len;
		si->gso_segs = 1;
		si->frag_list = skb;
	}
	*last = skb;
	/* Where skb_segment_list() is to put its Ethernet header in front. */
	skb_reset_network_header(skb);
	skb_reset_transport_header(skb);
	si->gso_segs++;
	head->len += skb->len;
	head->data_len += skb->len;
	head->truesize += skb->truesize;
}

/* Each of @list as our own: who has a clone of the bundle has the same frames. */
static void own(struct sk_buff *list, struct net_device *dev,
		struct sk_buff **others)
{
	struct sk_buff *skb, *next;

	*others = NULL;
	skb_list_walk_safe(list, skb, next) {
		skb = skb_share_check(skb, GFP_ATOMIC);
		if (!skb)
			continue;
		/* Only now: others go along the list yet. */
		skb_mark_not_on_list(skb);
		skb->dev = dev;
		*others = skb;
		others = &skb->next;
	}
}

int medge_bundle_split(struct sk_buff *head, struct sk_buff **others)
{
	struct skb_shared_info *si;
	struct sk_buff *list, *skb;
	int err;

	/* A clone has the same list. */
	err = skb_unclone(head, GFP_ATOMIC);
	if (err)
		return err;
	si = skb_shinfo(head);
	list = si->frag_list;
	si->frag_list = NULL;
	skb_gso_reset(head);
	for (skb = list; skb; skb = skb->next) {
		head->len -= skb->len;
		head->data_len -= skb->len;
		head->truesize -= skb->truesize;
	}
	own(list, head->dev, others);
	return 0;
}
