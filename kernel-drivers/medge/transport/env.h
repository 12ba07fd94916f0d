/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The transport's whole environment in the kernel. A user-space build puts its
 * own transport/env.h (tests/transport/env.h) in place of this file, and that
 * is the only difference between the two builds.
 *
 * What it must provide: u8..u64, s32, bool, size_t, __be16..__be64 with
 * cpu_to_be/be_to_cpu, BIT, min, max, min_t, max_t, clamp, DIV_ROUND_UP, round_up, swap,
 * div_u64, div64_u64, likely, unlikely, static_assert, memcpy, memset, snprintf, WARN_ON_ONCE,
 * __ffs64/fls64, get_unaligned_be*, put_unaligned_be*, __uninitialized, medge_env_alloc,
 * medge_env_free.
 */
#ifndef MEDGE_TRANSPORT_ENV_H
#define MEDGE_TRANSPORT_ENV_H

#include <linux/bitops.h>
#include <linux/build_bug.h>
#include <linux/bug.h>
#include <linux/kernel.h>
#include <linux/math.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/types.h>
#include <asm/byteorder.h>

#include "../compat.h"

/* Zeros, or NULL; under locks, so from what there is at hand. A poster's is on his account. */
static inline void *medge_env_alloc(size_t bytes)
{
	return kzalloc(bytes, GFP_ATOMIC | __GFP_NOWARN | __GFP_ACCOUNT);
}

static inline void medge_env_free(void *mem)
{
	kfree(mem);
}

#endif /* MEDGE_TRANSPORT_ENV_H */
