/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the programs here share. Each has two roles, on two nodes, or more. */
#ifndef GLUE_TEST_H
#define GLUE_TEST_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <rdmacm-glue.h>

/* No test waits longer for something that should happen. */
enum { PATIENCE_MS = 30000 };

void die(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* Says where, what it should be and what it is, and ends the program. */
#define EXPECT(what, want) expect(__FILE__, __LINE__, #what, (what), (want))
void expect(const char *file, int line, const char *what, long long is,
	    long long want);
/* The same for what returns a pointer and sets errno. */
#define EXPECT_NULL(what, error)                                              \
	do {                                                                  \
		errno = 0;                                                    \
		EXPECT((what) != NULL, 0);                                    \
		EXPECT(errno, error);                                         \
	} while (0)

uint64_t now_us(void);
uint64_t now_ms(void);
/* xorshift64*; never 0. */
uint64_t rng_next(uint64_t *state);
uint64_t rng_below(uint64_t *state, uint64_t bound);
void rng_fill(uint64_t seed, void *buf, size_t len);
/* Is it what rng_fill() left? */
bool rng_same(uint64_t seed, const void *buf, size_t len);

struct glue *must_open(const char *address, const struct glue_options *options);
struct glue_connection *must_wait(struct glue *g);
/* The peer may not listen yet. */
struct glue_connection *must_connect(struct glue *g, const char *address,
				     uint16_t port);
/* The next event, which must be of that type. */
struct glue_event must_event(struct glue *g, enum glue_event_type type);
/* Rails go up and down, and are not meant. */
struct glue_event next_event(struct glue *g, int timeout_ms);
/* While the queue is full, wait for room; there must be no event but rails'. */
#define UNTIL_ROOM(g, call)                                                   \
	({                                                                    \
		int result_;                                                  \
		while ((result_ = (call)) == -EAGAIN)                         \
			no_event(g);                                          \
		result_;                                                      \
	})
void no_event(struct glue *g);
void wait_done(struct glue *g, struct glue_connection *c, uint64_t handle);

#endif /* GLUE_TEST_H */
