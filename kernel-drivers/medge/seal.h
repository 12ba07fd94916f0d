/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Seals: a checksum, or a tag, from host to host, for who does not trust what is between. */
#ifndef MEDGE_SEAL_H
#define MEDGE_SEAL_H

#include <linux/skbuff.h>

#include "bundle.h"
#include "device.h"
#include "transport/wire.h"

/* What tells a frame from one that was changed on its way. */
enum medge_integrity {
	MEDGE_INTEGRITY_FCS,	/* each link's own check */
	MEDGE_INTEGRITY_CRC32C,	/* a seal; nothing without one is taken */
	MEDGE_INTEGRITY_AEAD,	/* frames are encrypted; nothing else is taken */
	MEDGE_INTEGRITIES,
};

const char *medge_integrity_name(u32 integrity);

/* Are frames to be sealed that leave now? */
static inline bool medge_seals(const struct medge_device *dev)
{
	return READ_ONCE(dev->integrity) != MEDGE_INTEGRITY_FCS;
}

/* One of the first @n types that are no frame as it was made, all at once. */
static inline bool medge_is_wrapped_by(const void *hdr, u8 n)
{
	const struct medge_seal_hdr *sh = hdr;

	BUILD_BUG_ON(MEDGE_FRAME_SECRET - MEDGE_FRAME_SEALED != 1);
	BUILD_BUG_ON(MEDGE_FRAME_KEYS - MEDGE_FRAME_SEALED != 2);
	return (u8)(sh->ver_type -
		    (MEDGE_WIRE_VERSION << 4 | MEDGE_FRAME_SEALED)) < n;
}

/* Is it a seal that begins here? */
static inline bool medge_is_sealed(const void *hdr)
{
	return medge_is_wrapped_by(hdr, 2);
}

/* Or a message about keys? */
static inline bool medge_is_wrapped(const void *hdr)
{
	return medge_is_wrapped_by(hdr, 3);
}

/* Is it encrypted, too? */
static inline bool medge_is_secret(const void *hdr)
{
	const struct medge_seal_hdr *sh = hdr;

	return sh->ver_type == (MEDGE_WIRE_VERSION << 4 | MEDGE_FRAME_SECRET);
}

/* Is it about keys, and of no connection's? */
static inline bool medge_is_about_keys(const void *hdr)
{
	const struct medge_seal_hdr *sh = hdr;

	return sh->ver_type == (MEDGE_WIRE_VERSION << 4 | MEDGE_FRAME_KEYS);
}

/* Of a seal: bytes in front of the checksums, and of each of these. */
static inline u32 medge_seal_head(const void *seal)
{
	return medge_is_secret(seal) ? offsetof(struct medge_secret_hdr, tag) :
				       offsetof(struct medge_seal_hdr, crc);
}

static inline u32 medge_seal_each(const void *seal)
{
	return medge_is_secret(seal) ? MEDGE_TAG_LEN : MEDGE_SEAL_MORE;
}

/* Bytes on the wire from the Ethernet header on; @skb starts at ours. */
static inline u32 medge_skb_wire_bytes(const struct sk_buff *skb, u32 frames)
{
	u32 more = ETH_HLEN + MEDGE_HDR_LEN;

	if (medge_is_bundle(skb))
		more = ETH_HLEN;
	else if (medge_is_sealed(skb->data))
		more += medge_seal_head(skb->data);
	return skb->len + ETH_HLEN + (frames - 1) * more;
}

/* Make a seal's first bytes what they are in front of frame @index alone. */
void medge_seal_alone(void *head, u32 index);

/*
 * Put a seal in front of a frame, or superframe, that skb->data is at, and have
 * @headroom left in front of that. Return: there was memory for it, and what is
 * sealed cannot change any more.
 */
bool medge_seal(struct sk_buff *skb, u32 frames, u32 headroom);
/* Check the checksums in the seal that skb->data is at, and take it off. */
bool medge_unseal(struct sk_buff *skb);

/* Does what skb->data is at, behind a seal, divide into so many frames? */
bool medge_seal_divides(struct sk_buff *skb, u32 frames);

/* Bytes of the seal at skb->data; 0: there is none; negative: it is cut short. */
int medge_seal_len(struct sk_buff *skb);
/* Of how many frames it is, once its length is known. */
static inline u32 medge_seal_frames(const void *seal)
{
	const struct medge_seal_hdr *sh = seal;

	return be16_to_cpu(sh->frames);
}

/*
 * Of a superframe that was cut: leave @seg, whose @before bytes in front of
 * the seal are at skb->data, its own checksum, or tag, of all those in the seal.
 */
void medge_seal_cut(struct sk_buff *seg, u32 before, u32 index);

#endif /* MEDGE_SEAL_H */
