/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The lives that a fuzzer keeps, since each of them went where none had gone before:
 * others are made of them.
 */
#ifndef FUZZ_KEPT_H
#define FUZZ_KEPT_H

#include <stdint.h>

#include "fuzz_cover.h"
#include "fuzz_life.h"

void kept_add(const struct fuzz_life *life, const struct cover_ways *ways);
unsigned int kept_num(void);
const struct fuzz_life *kept_any(uint64_t *rng);

/*
 * Writes some that go together wherever any of them goes to @path, each without what
 * @trim finds is not needed for the ways that no other goes.
 */
void kept_write(const char *path,
		void (*trim)(struct fuzz_life *life, const struct cover_ways *need));

#endif /* FUZZ_KEPT_H */
