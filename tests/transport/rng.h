/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Seeded random numbers (splitmix64): one seed, one run, on any machine. */
#ifndef MEDGE_TEST_RNG_H
#define MEDGE_TEST_RNG_H

#include "env.h"

struct rng {
	u64 state;
};

static inline u64 rng_next(struct rng *r)
{
	u64 z = r->state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

static inline void rng_seed(struct rng *r, u64 seed)
{
	r->state = seed;
	/* neighbouring seeds must not give neighbouring streams */
	r->state = rng_next(r) ^ seed;
}

/* 0 .. n - 1; 0 for n = 0 */
static inline u64 rng_below(struct rng *r, u64 n)
{
	return (u64)(((unsigned __int128)rng_next(r) * n) >> 64);
}

/* lo .. hi, both included */
static inline u64 rng_range(struct rng *r, u64 lo, u64 hi)
{
	return lo + rng_below(r, hi - lo + 1);
}

/* As often as @ppm times in a million. */
static inline bool rng_ppm(struct rng *r, u32 ppm)
{
	return ppm && rng_below(r, 1000000) < ppm;
}

/* Any power of two up to @hi about as often as the next. */
static inline u64 rng_log(struct rng *r, u64 hi)
{
	u32 bits = rng_below(r, fls64(hi)) + 1;
	u64 v = rng_next(r) >> (64 - bits);

	return v > hi ? rng_below(r, hi + 1) : v;
}

#endif /* MEDGE_TEST_RNG_H */
