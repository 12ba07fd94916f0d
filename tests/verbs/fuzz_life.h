/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A fuzzer's life: calls, each of a kind, and of a seed for all that is random in
 * it. Some of a call's draws may be other than its seed has them, so that a life can
 * be changed a little and remain what it is in all else.
 *
 * As text, "qp:1f2e3d4c/3=7 mr:9a": a call of kind qp, whose draw 3 is 7, and one of
 * kind mr.
 */
#ifndef FUZZ_LIFE_H
#define FUZZ_LIFE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum {
	LIFE_CALLS = 120,
	CALL_CHANGES = 4,
};

struct fuzz_call {
	uint32_t seed;
	uint16_t kind;			/* of fuzz_kinds */
	uint16_t num_changes;
	struct {
		uint64_t at;
		uint64_t value;
	} changes[CALL_CHANGES];
};

struct fuzz_life {
	unsigned int num_calls;
	struct fuzz_call calls[LIFE_CALLS];
};

/* What the fuzzer has to say. */
struct fuzz_kind {
	const char *name;
	unsigned int weight;		/* how often, beside the others */
	void (*call)(void);
};

extern const struct fuzz_kind fuzz_kinds[];
extern const size_t fuzz_num_kinds;

/* @call's draws from here on, in order; and one of them, of all values. */
void draw_from(const struct fuzz_call *call);
uint64_t draw(void);
/* 0 to @bound - 1. */
uint64_t draw_below(uint64_t bound);

/* At most @num calls more, from nothing. */
void life_append(struct fuzz_life *life, unsigned int num, uint64_t *rng);
/* A little other than it was; with a part of @other, perhaps. */
void life_change(struct fuzz_life *life, const struct fuzz_life *other,
		 uint64_t *rng);
/* Without @num calls from @at on. */
void life_cut(struct fuzz_life *life, unsigned int at, unsigned int num);

void life_print(FILE *file, const struct fuzz_life *life);
/* False: it is no life, in which case nothing is said of @life. */
bool life_parse(struct fuzz_life *life, char *line);

#endif /* FUZZ_LIFE_H */
