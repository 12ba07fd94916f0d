/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The transport's memory in tests. */
#include <stdlib.h>

#include "alloc.h"
#include "rng.h"

static struct rng rng;
static u32 fail_one_in;

void alloc_fail(u64 seed, u32 n)
{
	rng_seed(&rng, seed);
	fail_one_in = n;
}

bool alloc_fails(void)
{
	return fail_one_in;
}

void *medge_env_alloc(size_t bytes)
{
	if (fail_one_in && !rng_below(&rng, fail_one_in))
		return NULL;
	return calloc(1, bytes);
}

void medge_env_free(void *mem)
{
	free(mem);
}
