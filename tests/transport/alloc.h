/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The transport's memory in tests: it may run out. */
#ifndef TEST_ALLOC_H
#define TEST_ALLOC_H

#include "env.h"

/* From now on one allocation of @n fails, at random by @seed; 1: all do; 0: none. */
void alloc_fail(u64 seed, u32 n);
/* Some may. */
bool alloc_fails(void);

#endif /* TEST_ALLOC_H */
