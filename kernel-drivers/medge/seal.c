// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Seals: each frame's CRC32C, made by the host that sends it and checked by the
 * one that places it. A superframe has its frames' in front, so that cutting it
 * needs no look at the payload.
 */
#include <linux/crc32c.h>
#include <linux/skbuff.h>

#include "compat.h"
#include "seal.h"

static const char * const integrity_names[MEDGE_INTEGRITIES] = {
	[MEDGE_INTEGRITY_FCS] = "fcs",
	[MEDGE_INTEGRITY_CRC32C] = "crc32c",
};

const char *medge_integrity_name(u32 integrity)
{
	return integrity_names[integrity];
}

static u32 seal_len(u32 frames)
{
	return MEDGE_SEAL_LEN + (frames - 1) * MEDGE_SEAL_MORE;
}

/* Where the CRC of a frame of the seal at @seal is. */
static void *crc_at(void *seal, u32 index)
{
	return seal + offsetof(struct medge_seal_hdr, crc) +
	       index * MEDGE_SEAL_MORE;
}

static void put_seal_head(void *seal, u32 frames)
{
	struct medge_seal_hdr sh = {
		.ver_type = MEDGE_WIRE_VERSION << 4 | MEDGE_FRAME_SEALED,
		.frames = cpu_to_be16(frames),
	};

	memcpy(seal, &sh, offsetof(struct medge_seal_hdr, crc));
}

/* @len bytes from @from on are there. */
static u32 crc_bytes(struct sk_buff *skb, u32 from, u32 len, u32 crc)
{
	struct skb_seq_state state;
	const u8 *data;
	u32 at = 0, n;

	skb_prepare_seq_read(skb, from, from + len, &state);
	while (at < len) {
		n = skb_seq_read(at, &data, &state);
		if (!n)
			break;
		/* It gives all that lies in one piece. */
		n = min(n, len - at);
		crc = crc32c(crc, data, n);
		at += n;
	}
	skb_abort_seq_read(&state);
	return crc;
}

/* Of a frame alone, or of one of a superframe's, with the header it would get. */
static u32 frame_crc(struct sk_buff *skb, u32 index, u32 frames)
{
	u8 hdr[MEDGE_HDR_LEN];
	u32 seg_len, from, crc;

	if (frames == 1)
		return ~crc_bytes(skb, 0, skb->len, ~0);
	memcpy(hdr, skb->data, sizeof(hdr));
	seg_len = medge_wire_seg_len(hdr);
	medge_wire_cut(hdr, index, frames);
	crc = crc32c(~0, hdr, sizeof(hdr));
	from = sizeof(hdr) + index * seg_len;
	return ~crc_bytes(skb, from, min(seg_len, skb->len - from), crc);
}

bool medge_seal(struct sk_buff *skb, u32 frames, u32 headroom)
{
	u32 i, len = seal_len(frames);
	void *seal;

	/* Sealed was switched on after the frame was made of its user's pages. */
	if (skb_has_shared_frag(skb) || skb_cow_head(skb, headroom + len))
		return false;
	seal = skb->data - len;
	put_seal_head(seal, frames);
	for (i = 0; i < frames; i++)
		put_unaligned_be32(frame_crc(skb, i, frames), crc_at(seal, i));
	skb_push(skb, len);
	return true;
}

int medge_seal_len(struct sk_buff *skb)
{
	struct medge_seal_hdr sh;
	u32 frames, len;

	if (!pskb_may_pull(skb, sizeof(sh)))
		return -EINVAL;
	if (!medge_is_sealed(skb->data))
		return 0;
	memcpy(&sh, skb->data, sizeof(sh));
	frames = be16_to_cpu(sh.frames);
	if (!frames || frames > MEDGE_WINDOW || sh.reserved)
		return -EINVAL;
	len = seal_len(frames);
	return pskb_may_pull(skb, len) ? len : -EINVAL;
}

/* Does what follows the seal divide into so many frames? */
static bool is_run_of(struct sk_buff *skb, u32 frames)
{
	u32 seg_len;

	if (!pskb_may_pull(skb, MEDGE_HDR_LEN))
		return false;
	seg_len = medge_wire_seg_len(skb->data);
	return seg_len &&
	       DIV_ROUND_UP(skb->len - MEDGE_HDR_LEN, seg_len) == frames;
}

bool medge_unseal(struct sk_buff *skb)
{
	int len = medge_seal_len(skb);
	u32 i, frames;

	if (len <= 0)
		return false;
	frames = medge_seal_frames(skb->data);
	__skb_pull(skb, len);
	if (frames > 1 && !is_run_of(skb, frames))
		return false;
	for (i = 0; i < frames; i++)
		if (frame_crc(skb, i, frames) !=
		    get_unaligned_be32(crc_at(skb->data - len, i)))
			return false;
	return true;
}

void medge_seal_cut(struct sk_buff *seg, u32 before, u32 index)
{
	void *seal = seg->data + before;
	u32 more = seal_len(medge_seal_frames(seal)) - MEDGE_SEAL_LEN;

	memmove(crc_at(seal + more, 0), crc_at(seal, index), sizeof(__be32));
	put_seal_head(seal + more, 1);
	memmove(seg->data + more, seg->data, before);
	__skb_pull(seg, more);
	skb_reset_mac_header(seg);
	skb_set_network_header(seg, before);
	skb_set_transport_header(seg, before + MEDGE_SEAL_LEN + MEDGE_HDR_LEN);
}
