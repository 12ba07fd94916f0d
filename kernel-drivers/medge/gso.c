// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Superframes and bundles: cut into frames where a device cannot take them whole. */
#include <linux/etherdevice.h>
#include <linux/netdevice.h>
#include <linux/skbuff.h>

#include "build.h"
#include "bundle.h"
#include "rail.h"
#include "seal.h"

/* ---- superframes as we build them: headers, and pages of payload ---- */

/* Which of a superframe's payload is the next frame's. */
struct part {
	const skb_frag_t *frag;
	u32 off;
};

/* Others may have done something to it on the way: then it is for skb_segment(). */
static bool is_of_pages(struct sk_buff *skb, netdev_features_t features)
{
	return features & NETIF_F_SG && skb_is_gso(skb) && !skb_headlen(skb) &&
	       !skb_has_frag_list(skb) && !skb_zcopy(skb) &&
	       !skb->destructor && !skb->pp_recycle && !irqs_disabled();
}

/* All that is in front of the payload. */
static struct sk_buff *cut_headers(const struct sk_buff *run)
{
	u32 room = skb_mac_header(run) - run->head;
	u32 len = run->data - skb_mac_header(run);
	struct sk_buff *skb = medge_skb_alloc(room + len);

	if (!skb)
		return NULL;
	skb_reserve(skb, room);
	__skb_put_data(skb, skb_mac_header(run), len);
	skb_copy_header(skb, run);
	skb_reset_mac_len(skb);
	skb_gso_reset(skb);
	return skb;
}

/* The pages are everybody's. */
static void cut_payload(struct sk_buff *skb, const struct sk_buff *run,
			struct part *part, u32 len)
{
	struct skb_shared_info *si = skb_shinfo(skb);

	si->flags |= skb_shinfo(run)->flags & SKBFL_SHARED_FRAG;
	skb->len += len;
	skb->data_len += len;
	skb->truesize += len;
	while (len) {
		u32 n = min_t(u32, len, skb_frag_size(part->frag) - part->off);
		skb_frag_t *frag = &si->frags[si->nr_frags++];

		*frag = *part->frag;
		skb_frag_off_add(frag, part->off);
		skb_frag_size_set(frag, n);
		get_page(skb_frag_page(frag));
		part->off += n;
		if (part->off == skb_frag_size(part->frag)) {
			part->frag++;
			part->off = 0;
		}
		len -= n;
	}
}

/*
 * What skb_segment() does, which has to be ready for anything, and takes twice as
 * long. skb->data is at the payload.
 */
static struct sk_buff *cut_pages(const struct sk_buff *skb)
{
	struct part part = { .frag = skb_shinfo(skb)->frags };
	struct sk_buff *segs = NULL, *last = NULL, *seg;
	u32 left, len;

	local_bh_disable();
	for (left = skb->len; left; left -= len) {
		len = min_t(u32, left, skb_shinfo(skb)->gso_size);
		seg = cut_headers(skb);
		if (!seg)
			break;
		cut_payload(seg, skb, &part, len);
		if (last)
			last->next = seg;
		else
			segs = seg;
		last = seg;
	}
	local_bh_enable();
	if (left) {
		kfree_skb_list(segs);
		return ERR_PTR(-ENOMEM);
	}
	/* So it is told where they end. */
	if (segs)
		segs->prev = last;
	return segs;
}

/* ---- cutting ---- */

/* skb->data is at the payload. */
static struct sk_buff *segment(struct sk_buff *skb, netdev_features_t features)
{
	if (is_of_pages(skb, features))
		return cut_pages(skb);
	/*
	 * Nothing is to be checksummed. Without the flag skb_segment() would
	 * sum up all segments; partial GSO would leave them uncut.
	 */
	features |= NETIF_F_HW_CSUM;
	features &= ~NETIF_F_GSO_PARTIAL;
	return skb_segment(skb, features);
}

/* skb->data is at the medge header, or its seal; the Ethernet header is in front of it. */
static struct sk_buff *cut_superframe(struct sk_buff *skb,
				      netdev_features_t features)
{
	u32 hdr_off = skb->data - skb_mac_header(skb);
	struct sk_buff *segs, *seg;
	u32 count = 0, i = 0, sealed;
	int seal_len = medge_seal_len(skb);

	if (seal_len < 0 || !pskb_may_pull(skb, seal_len + MEDGE_HDR_LEN))
		return ERR_PTR(-EINVAL);
	sealed = seal_len ? medge_seal_frames(skb->data) : 0;
	__skb_pull(skb, seal_len + MEDGE_HDR_LEN);

	segs = segment(skb, features);
	if (IS_ERR_OR_NULL(segs))
		return segs;

	for (seg = segs; seg; seg = seg->next)
		count++;
	/* Others may give their own to the network, whatever these say. */
	if (sealed && sealed != count) {
		kfree_skb_list(segs);
		return ERR_PTR(-EINVAL);
	}
	for (seg = segs; seg; seg = seg->next, i++) {
		medge_wire_cut(seg->data + hdr_off + seal_len, i, count);
		if (sealed)
			medge_seal_cut(seg, hdr_off, i);
	}
	return segs;
}

/* skb->data as above. Those in a bundle have a header each, but the Ethernet's. */
static struct sk_buff *cut(struct sk_buff *skb, netdev_features_t features)
{
	if (medge_is_bundle(skb))
		return skb_segment_list(skb, features,
					skb->data - skb_mac_header(skb));
	return cut_superframe(skb, features);
}

static struct packet_offload offload = {
	.type = cpu_to_be16(MEDGE_ETHERTYPE),
	.priority = 15,
	.callbacks = {
		.gso_segment = cut,
	},
};

int medge_gso_register(void)
{
	dev_add_offload(&offload);
	return 0;
}

void medge_gso_unregister(void)
{
	dev_remove_offload(&offload);
}
