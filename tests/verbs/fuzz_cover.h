/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Where a process goes in the kernel, of those parts that are built for KCOV: the
 * lab's debug kernel with the module as the lab builds it. Places are what KCOV
 * calls PCs; a way is one place, and which one came before it in the same call.
 */
#ifndef FUZZ_COVER_H
#define FUZZ_COVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	COVER_ENTRIES = 1 << 18,	/* of a life */
	COVER_WAYS = 1 << 16,
	COVER_WORDS = COVER_WAYS / 64,
};

/* Some of all ways, by their numbers. */
struct cover_ways {
	uint64_t bits[COVER_WORDS];
};

struct cover_seen {
	unsigned int num_places;
	unsigned int num_ways;
};

/* NULL, or why there is no KCOV. */
const char *cover_open(void);
/* Of this process, from here on until it ends; only of one at a time. */
void cover_begin(void);
/* How many entries there are by now; there are none of the time before. */
uint64_t cover_count(void);
void cover_forget(void);

/*
 * Of the entries before each of @ends, which are @num: sets @went to where they
 * went, and returns the number, from 1, of the last end before which somebody went
 * where nobody had gone, which is known from then on; 0: there is none.
 */
unsigned int cover_learn(const uint64_t *ends, unsigned int num,
			 struct cover_ways *went);
struct cover_seen cover_seen(void);

/* How many of @ways are not in @known. */
unsigned int ways_beyond(const struct cover_ways *ways,
			 const struct cover_ways *known);
void ways_add(struct cover_ways *ways, const struct cover_ways *some);
void ways_remove(struct cover_ways *ways, const struct cover_ways *some);

#endif /* FUZZ_COVER_H */
