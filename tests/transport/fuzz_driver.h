/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Fuzzers run under libFuzzer (make fuzz), or under a driver of our own that
 * makes inputs from seeds, so that every run of the tests runs them, too.
 */
#ifndef MEDGE_TEST_FUZZ_DRIVER_H
#define MEDGE_TEST_FUZZ_DRIVER_H

#include "env.h"
#include "rng.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t len);

/* A fuzzer says how its inputs look: bytes written to @buf, @max at most. */
size_t fuzz_input(struct rng *rng, u8 *buf, size_t max);

extern const char *const fuzz_name;
extern const u32 fuzz_count;	/* inputs of an ordinary run */

#endif /* MEDGE_TEST_FUZZ_DRIVER_H */
