/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Where a process goes in the kernel, by KCOV.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/kcov.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz_cover.h"
#include "verbs_test.h"

#define KCOV_FILE "/sys/kernel/debug/kcov"

enum {
	SLOTS = 4 * COVER_WAYS,
};

struct slot {
	uint64_t key;		/* 0: free */
	unsigned int number;	/* from 1 */
};

static int kcov;
static uint64_t *area;		/* how many, then so many places */
static struct slot place_slots[SLOTS], way_slots[SLOTS];
static struct cover_seen seen;

const char *cover_open(void)
{
	kcov = open(KCOV_FILE, O_RDWR | O_CLOEXEC);
	if (kcov < 0)
		return strerror(errno);
	if (ioctl(kcov, KCOV_INIT_TRACE, (unsigned long)COVER_ENTRIES))
		return strerror(errno);
	area = mmap(NULL, COVER_ENTRIES * sizeof(*area), PROT_READ | PROT_WRITE,
		    MAP_SHARED, kcov, 0);
	return area == MAP_FAILED ? strerror(errno) : NULL;
}

void cover_begin(void)
{
	if (ioctl(kcov, KCOV_ENABLE, (unsigned long)KCOV_TRACE_PC))
		die("KCOV_ENABLE: %s", strerror(errno));
}

uint64_t cover_count(void)
{
	return __atomic_load_n(&area[0], __ATOMIC_RELAXED);
}

void cover_forget(void)
{
	__atomic_store_n(&area[0], 0, __ATOMIC_RELAXED);
}

/* The number of @key, which is one more than there were if it is new. */
static unsigned int number_of(struct slot *slots, unsigned int *num, uint64_t key)
{
	uint64_t at = key * 0x9e3779b97f4a7c15 >> 40;

	for (;; at++) {
		struct slot *slot = &slots[at % SLOTS];

		if (slot->key == key)
			return slot->number;
		if (slot->key)
			continue;
		/* More than there can be of the module. */
		if (*num == COVER_WAYS - 1)
			die("there are more than %u ways", *num);
		slot->key = key;
		slot->number = ++*num;
		return slot->number;
	}
}

/* Places differ in their low halves. */
static uint64_t way_key(uint64_t from, uint64_t to)
{
	return from << 32 ^ to;
}

unsigned int cover_learn(const uint64_t *ends, unsigned int num,
			 struct cover_ways *went)
{
	struct cover_seen was = seen;
	unsigned int last = 0;
	uint64_t at = 1;

	memset(went, 0, sizeof(*went));
	for (unsigned int i = 0; i < num; i++) {
		uint64_t from = 0;

		for (; at <= ends[i] && at < COVER_ENTRIES; at++) {
			unsigned int way;

			number_of(place_slots, &seen.num_places, area[at]);
			way = number_of(way_slots, &seen.num_ways, way_key(from, area[at]));
			went->bits[way / 64] |= 1ull << way % 64;
			from = area[at];
		}
		if (seen.num_ways != was.num_ways ||
		    seen.num_places != was.num_places)
			last = i + 1;
		was = seen;
	}
	return last;
}

struct cover_seen cover_seen(void)
{
	return seen;
}

unsigned int ways_beyond(const struct cover_ways *ways,
			 const struct cover_ways *known)
{
	unsigned int num = 0;

	for (int i = 0; i < COVER_WORDS; i++)
		num += __builtin_popcountll(ways->bits[i] & ~known->bits[i]);
	return num;
}

void ways_add(struct cover_ways *ways, const struct cover_ways *some)
{
	for (int i = 0; i < COVER_WORDS; i++)
		ways->bits[i] |= some->bits[i];
}

void ways_remove(struct cover_ways *ways, const struct cover_ways *some)
{
	for (int i = 0; i < COVER_WORDS; i++)
		ways->bits[i] &= ~some->bits[i];
}
