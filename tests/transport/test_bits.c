/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Many bits of the ring at once are the same as one after the other. */
#include "bits.h"
#include "direct.h"
#include "rng.h"

enum { ROUNDS = 20000 };

struct maps {
	u64 many[MEDGE_BITMAP_WORDS], single[MEDGE_BITMAP_WORDS];
};

static void single(u64 *map, u32 psn, u32 n, bool set)
{
	for (; n; n--, psn++) {
		u64 bit = 1ULL << psn % 64;

		map[psn % MEDGE_WINDOW / 64] &= ~bit;
		if (set)
			map[psn % MEDGE_WINDOW / 64] |= bit;
	}
}

static u32 alike(const u64 *map, u32 psn, u32 n)
{
	u32 i = 0;

	while (i < n && medge_bit(map, psn + i) == medge_bit(map, psn))
		i++;
	return i;
}

/* Numbers that wrap, and stretches from one to all there is, around words' ends and within. */
static void test_many_are_as_single(void)
{
	struct maps m = { };
	struct rng rng;
	u32 i;

	rng_seed(&rng, 1);
	for (i = 0; i < ROUNDS; i++) {
		u32 psn = (u32)-MEDGE_WINDOW + rng_below(&rng, 3 * MEDGE_WINDOW);
		u32 most = i % 2 ? MEDGE_WINDOW : 130;
		u32 n = rng_range(&rng, 1, most), got, want;

		if (rng_below(&rng, 2)) {
			medge_bits_set(m.many, psn, n);
			single(m.single, psn, n, true);
		} else {
			medge_bits_clear(m.many, psn, n);
			single(m.single, psn, n, false);
		}
		CHECK(!memcmp(m.many, m.single, sizeof(m.many)),
		      "round %u: %u bits at %u", i, n, psn);
		psn += rng_below(&rng, 200);
		n = rng_range(&rng, 1, MEDGE_WINDOW);
		got = medge_bits_alike(m.many, psn, n);
		want = alike(m.many, psn, n);
		CHECK(got == want, "round %u: %u of %u at %u, not %u", i, got, n,
		      psn, want);
	}
}

int main(int argc, char **argv)
{
	direct_begin(argc, argv);
	RUN(test_many_are_as_single);
	return direct_end("test_bits");
}
