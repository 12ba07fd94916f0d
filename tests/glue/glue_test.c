// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What the programs here share. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "glue_test.h"

void die(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

void expect(const char *file, int line, const char *what, long long is,
	    long long want)
{
	if (is != want)
		die("%s:%d: %s is %lld (%s), should be %lld (%s)", file, line,
		    what, is, strerror(llabs(is)), want, strerror(llabs(want)));
}

uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

uint64_t now_ms(void)
{
	return now_us() / 1000;
}

uint64_t rng_next(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 0x2545f4914f6cdd1dull;
}

uint64_t rng_below(uint64_t *state, uint64_t bound)
{
	return (rng_next(state) >> 11) % bound;
}

void rng_fill(uint64_t seed, void *buf, size_t len)
{
	uint64_t state = seed * 2 + 1, word;
	char *to = buf;
	size_t n;

	for (; len; len -= n, to += n) {
		word = rng_next(&state);
		n = len < 8 ? len : 8;
		memcpy(to, &word, n);
	}
}

bool rng_same(uint64_t seed, const void *buf, size_t len)
{
	uint64_t state = seed * 2 + 1, word;
	const char *at = buf;
	size_t n;

	for (; len; len -= n, at += n) {
		word = rng_next(&state);
		n = len < 8 ? len : 8;
		if (memcmp(at, &word, n))
			return false;
	}
	return true;
}

struct glue *must_open(const char *address, const struct glue_options *options)
{
	struct glue *g = glue_open(address, options);

	if (!g)
		die("glue_open %s: %m", address);
	return g;
}

struct glue_connection *must_wait(struct glue *g)
{
	struct glue_connection *c = glue_connection_wait(g, PATIENCE_MS);

	if (!c)
		die("glue_connection_wait: %m");
	return c;
}

struct glue_connection *must_connect(struct glue *g, const char *address,
				     uint16_t port)
{
	uint64_t end = now_ms() + PATIENCE_MS;
	struct glue_connection *c;

	do {
		c = glue_request_connection(g, address, port, PATIENCE_MS);
		if (!c)
			usleep(50000);
	} while (!c && errno == ECONNREFUSED && now_ms() < end);
	if (!c)
		die("glue_request_connection %s %u: %m", address, port);
	return c;
}

struct glue_event next_event(struct glue *g, int timeout_ms)
{
	struct glue_event event;

	do {
		if (glue_query_event(g, &event, timeout_ms) != 1)
			return (struct glue_event){};
	} while (event.type == GLUE_EVENT_RAIL_UP ||
		 event.type == GLUE_EVENT_RAIL_DOWN);
	return event;
}

struct glue_event must_event(struct glue *g, enum glue_event_type type)
{
	struct glue_event event = next_event(g, PATIENCE_MS);

	if (event.type != type)
		die("%s should come, but %s did, error %d (%s), tag %u",
		    glue_event_name(type),
		    event.type ? glue_event_name(event.type) : "nothing",
		    event.error, strerror(event.error), event.tag);
	return event;
}

void no_event(struct glue *g)
{
	struct glue_event event = next_event(g, 0);

	if (event.type)
		die("no event should come, but %s did, error %d (%s), tag %u",
		    glue_event_name(event.type), event.error,
		    strerror(event.error), event.tag);
}

void wait_done(struct glue *g, struct glue_connection *c, uint64_t handle)
{
	uint64_t end = now_ms() + PATIENCE_MS;
	int done;

	while (!(done = glue_query_operation(c, handle)) || done == -ENOTCONN) {
		no_event(g);
		if (now_ms() > end)
			die("operation %llu is never completed",
			    (unsigned long long)handle);
	}
	EXPECT(done, 1);
}
