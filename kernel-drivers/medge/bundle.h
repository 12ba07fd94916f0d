/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Bundles: frames that leave one after the other on a rail go through the network
 * stack as one skb, the others in the list of its fragments. Each is as it would be
 * alone, but for the Ethernet header, which the first has for all. Where a device
 * cannot take the list, each gets it (gso.c); a rail on which a bundle comes as it is
 * takes it apart. What superframes are for large ops, this is for small ones.
 */
#ifndef MEDGE_BUNDLE_H
#define MEDGE_BUNDLE_H

#include <linux/skbuff.h>

/* Bytes: what any device that takes lists takes at once, with its header. */
enum { MEDGE_BUNDLE_MAX = 64000 };

/* One frame alone. */
static inline bool medge_is_plain(const struct sk_buff *skb)
{
	return !skb_is_gso(skb) && !skb_has_frag_list(skb);
}

/* Drivers make lists, too, of what came in pieces; but not of that type. */
static inline bool medge_is_bundle(const struct sk_buff *skb)
{
	return skb_has_frag_list(skb) &&
	       skb_shinfo(skb)->gso_type == SKB_GSO_FRAGLIST;
}

/* @head: plain, or a bundle. */
static inline bool medge_bundle_fits(const struct sk_buff *head,
				     const struct sk_buff *skb)
{
	return medge_is_plain(skb) && head->len + skb->len <= MEDGE_BUNDLE_MAX;
}

/*
 * @skb, which fits and is in no queue, follows @head; each skb->data is at the medge
 * header. @last of @head's bundle; NULL at first.
 */
void medge_bundle_add(struct sk_buff *head, struct sk_buff **last,
		      struct sk_buff *skb);

/*
 * Take a bundle apart that is ours alone, or of which others have clones: @head is its
 * first frame then, and @others the rest, linked by skb->next, without those for which
 * there was no memory. 0; or -ENOMEM: nothing has changed.
 */
int medge_bundle_split(struct sk_buff *head, struct sk_buff **others);

#endif /* MEDGE_BUNDLE_H */
