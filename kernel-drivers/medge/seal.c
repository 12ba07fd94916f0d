// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Seals: each frame's CRC32C, made by the host that sends it and checked by the
 * one that places it. A superframe has its frames' in front, so that cutting it
 * needs no look at the payload. So has an encrypted one its tags, see session.c.
 */
#include <linux/crc32c.h>
#include <linux/skbuff.h>

#include "compat.h"
#include "seal.h"

static const char * const integrity_names[MEDGE_INTEGRITIES] = {
	[MEDGE_INTEGRITY_FCS] = "fcs",
	[MEDGE_INTEGRITY_CRC32C] = "crc32c",
	[MEDGE_INTEGRITY_AEAD] = "aead",
};

const char *medge_integrity_name(u32 integrity)
{
	return integrity_names[integrity];
}

static u32 seal_len(const void *seal, u32 frames)
{
	return medge_seal_head(seal) + frames * medge_seal_each(seal);
}

/* Where the checksum of a frame of the seal at @seal is. */
static void *check_at(void *seal, u32 index)
{
	return seal + medge_seal_head(seal) + index * medge_seal_each(seal);
}

void medge_seal_alone(void *head, u32 index)
{
	struct medge_secret_hdr *sh = head;

	/* Where it is in either. */
	put_unaligned_be16(1, &sh->frames);
	if (medge_is_secret(head))
		put_unaligned_be64(get_unaligned_be64(&sh->number) + index,
				   &sh->number);
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
	u32 i, len = MEDGE_SEAL_LEN + (frames - 1) * MEDGE_SEAL_MORE;
	void *seal;

	/* Sealed was switched on after the frame was made of its user's pages. */
	if (skb_has_shared_frag(skb) || skb_cow_head(skb, headroom + len))
		return false;
	seal = skb->data - len;
	put_seal_head(seal, frames);
	for (i = 0; i < frames; i++)
		put_unaligned_be32(frame_crc(skb, i, frames), check_at(seal, i));
	skb_push(skb, len);
	return true;
}

/* What is left clear, of encrypted frames, is what cutting them looks at. */
static bool is_clear(const struct medge_seal_hdr *sh, u32 frames)
{
	if (!medge_is_secret(sh))
		return !sh->reserved;
	return sh->reserved == MEDGE_HDR_LEN || (!sh->reserved && frames == 1);
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
	if (!frames || frames > MEDGE_WINDOW || !is_clear(&sh, frames))
		return -EINVAL;
	len = seal_len(&sh, frames);
	return pskb_may_pull(skb, len) ? len : -EINVAL;
}

bool medge_seal_divides(struct sk_buff *skb, u32 frames)
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
	if (frames > 1 && !medge_seal_divides(skb, frames))
		return false;
	for (i = 0; i < frames; i++)
		if (frame_crc(skb, i, frames) !=
		    get_unaligned_be32(check_at(skb->data - len, i)))
			return false;
	return true;
}

void medge_seal_cut(struct sk_buff *seg, u32 before, u32 index)
{
	void *seal = seg->data + before;
	u32 len = seal_len(seal, 1);
	u32 more = seal_len(seal, medge_seal_frames(seal)) - len;

	memmove(check_at(seal, 0), check_at(seal, index), medge_seal_each(seal));
	medge_seal_alone(seal, index);
	memmove(seg->data + more, seg->data, before + len);
	__skb_pull(seg, more);
	skb_reset_mac_header(seg);
	skb_set_network_header(seg, before);
	skb_set_transport_header(seg, before + len + MEDGE_HDR_LEN);
}
