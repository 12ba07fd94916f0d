/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A ring of bits, one for each psn of the window: one of them, and many in a row. */
#ifndef MEDGE_TRANSPORT_BITS_H
#define MEDGE_TRANSPORT_BITS_H

#include "env.h"
#include "wire.h"

enum { MEDGE_BITMAP_WORDS = MEDGE_WINDOW / 64 };

static inline u32 medge_bit_word(u32 psn)
{
	return psn % MEDGE_WINDOW / 64;
}

static inline bool medge_bit(const u64 *map, u32 psn)
{
	return map[medge_bit_word(psn)] >> psn % 64 & 1;
}

/* Of @n bits from that of @psn on, those in the same word: how many, */
static inline u32 medge_bits_near(u32 psn, u32 n)
{
	return min(n, 64 - psn % 64);
}

/* and they themselves; @n is that, and not 0. */
static inline u64 medge_bits_mask(u32 psn, u32 n)
{
	return ~0ULL >> (64 - n) % 64 << psn % 64;
}

/* One at least. */
static inline void medge_bits_set(u64 *map, u32 psn, u32 n)
{
	u32 near;

	do {
		near = medge_bits_near(psn, n);
		map[medge_bit_word(psn)] |= medge_bits_mask(psn, near);
		psn += near;
		n -= near;
	} while (n);
}

static inline void medge_bits_clear(u64 *map, u32 psn, u32 n)
{
	u32 near;

	do {
		near = medge_bits_near(psn, n);
		map[medge_bit_word(psn)] &= ~medge_bits_mask(psn, near);
		psn += near;
		n -= near;
	} while (n);
}

/* How many of @n bits, at most all there are, are in a row from that of @psn on as that one is? */
static inline u32 medge_bits_alike(const u64 *map, u32 psn, u32 n)
{
	u64 same, others;
	u32 done, near;

	/* One alone is the most frequent. */
	if (n == 1)
		return n;
	same = medge_bit(map, psn) ? ~0ULL : 0;
	for (done = 0; done < n; done += near) {
		near = medge_bits_near(psn + done, n - done);
		others = (map[medge_bit_word(psn + done)] ^ same) &
			 medge_bits_mask(psn + done, near);
		if (others)
			return done + __ffs64(others) - (psn + done) % 64;
	}
	return n;
}

#endif /* MEDGE_TRANSPORT_BITS_H */
