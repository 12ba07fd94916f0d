/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Lives of a fuzzer: made, changed, written and read.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz_life.h"
#include "verbs_test.h"

enum {
	DRAWS_CHANGED = 40,	/* most calls draw no more often */
};

static const struct fuzz_call *drawn_from;
static uint64_t drawn, draw_state;

void draw_from(const struct fuzz_call *call)
{
	drawn_from = call;
	drawn = 0;
	/* Neighbours must not resemble each other, and the state is never 0. */
	draw_state = (call->seed + 1ull) * 0x9e3779b97f4a7c15;
}

uint64_t draw(void)
{
	uint64_t value = rng_next(&draw_state);

	/* The generator's low bits are its worst. */
	value = value >> 11 | value << 53;
	for (int i = 0; i < drawn_from->num_changes; i++)
		if (drawn_from->changes[i].at == drawn)
			value = drawn_from->changes[i].value;
	drawn++;
	return value;
}

uint64_t draw_below(uint64_t bound)
{
	return bound ? draw() % bound : 0;
}

/* ---- making and changing ---- */

static struct fuzz_call random_call(uint64_t *rng)
{
	unsigned int sum = 0, kind = 0, at;

	for (size_t i = 0; i < fuzz_num_kinds; i++)
		sum += fuzz_kinds[i].weight;
	at = rng_below(rng, sum);
	while (at >= fuzz_kinds[kind].weight)
		at -= fuzz_kinds[kind++].weight;
	return (struct fuzz_call){ .kind = kind, .seed = rng_next(rng) >> 32 };
}

static void insert(struct fuzz_life *life, unsigned int at,
		   const struct fuzz_call *calls, unsigned int num)
{
	if (num > LIFE_CALLS - life->num_calls)
		num = LIFE_CALLS - life->num_calls;
	memmove(&life->calls[at + num], &life->calls[at],
		(life->num_calls - at) * sizeof(*calls));
	memcpy(&life->calls[at], calls, num * sizeof(*calls));
	life->num_calls += num;
}

void life_cut(struct fuzz_life *life, unsigned int at, unsigned int num)
{
	memmove(&life->calls[at], &life->calls[at + num],
		(life->num_calls - at - num) * sizeof(life->calls[0]));
	life->num_calls -= num;
}

void life_append(struct fuzz_life *life, unsigned int num, uint64_t *rng)
{
	while (num-- && life->num_calls < LIFE_CALLS)
		life->calls[life->num_calls++] = random_call(rng);
}

static void change_draw(struct fuzz_call *call, uint64_t *rng)
{
	unsigned int i = call->num_changes;

	if (i == CALL_CHANGES)
		i = rng_below(rng, CALL_CHANGES);
	else
		call->num_changes++;
	call->changes[i].at = rng_below(rng, DRAWS_CHANGED);
	/* Most draws choose one of a few. */
	call->changes[i].value = rng_below(rng, 4) ? rng_below(rng, 24) :
				 rng_next(rng) >> rng_below(rng, 64);
}

static void change_once(struct fuzz_life *life, const struct fuzz_life *other,
			uint64_t *rng)
{
	unsigned int at = rng_below(rng, life->num_calls), from;
	struct fuzz_call *call = &life->calls[at], copy;

	switch (rng_below(rng, 8)) {
	case 0:		/* the same with other numbers */
		call->seed = rng_next(rng) >> 32;
		call->num_changes = 0;
		break;
	case 1:
		copy = random_call(rng);
		insert(life, at, &copy, 1);
		break;
	case 2:		/* once more, later */
		copy = *call;
		insert(life, at + rng_below(rng, life->num_calls - at) + 1, &copy, 1);
		break;
	case 3:
		if (life->num_calls > 1)
			life_cut(life, at, 1);
		break;
	case 4:		/* of another life, its end */
		from = rng_below(rng, other->num_calls);
		insert(life, life->num_calls, &other->calls[from],
		       other->num_calls - from);
		break;
	default:
		change_draw(call, rng);
	}
}

void life_change(struct fuzz_life *life, const struct fuzz_life *other,
		 uint64_t *rng)
{
	for (int n = 1 + rng_below(rng, 4); n; n--)
		change_once(life, other, rng);
}

/* ---- as text ---- */

void life_print(FILE *file, const struct fuzz_life *life)
{
	for (unsigned int i = 0; i < life->num_calls; i++) {
		const struct fuzz_call *call = &life->calls[i];

		fprintf(file, "%s%s:%" PRIx32, i ? " " : "",
			fuzz_kinds[call->kind].name, call->seed);
		for (int j = 0; j < call->num_changes; j++)
			fprintf(file, "/%" PRIx64 "=%" PRIx64,
				call->changes[j].at, call->changes[j].value);
	}
	fputc('\n', file);
}

static bool call_parse(struct fuzz_call *call, const char *word)
{
	const char *colon = strchr(word, ':');
	char *end;

	memset(call, 0, sizeof(*call));
	if (!colon)
		return false;
	while (strncmp(fuzz_kinds[call->kind].name, word, colon - word) ||
	       fuzz_kinds[call->kind].name[colon - word])
		if (++call->kind == fuzz_num_kinds)
			return false;
	call->seed = strtoul(colon + 1, &end, 16);
	while (*end == '/') {
		if (call->num_changes == CALL_CHANGES)
			return false;
		call->changes[call->num_changes].at = strtoull(end + 1, &end, 16);
		if (*end != '=')
			return false;
		call->changes[call->num_changes++].value =
			strtoull(end + 1, &end, 16);
	}
	return !*end;
}

bool life_parse(struct fuzz_life *life, char *line)
{
	char *rest;

	life->num_calls = 0;
	for (char *word = strtok_r(line, " \n", &rest); word;
	     word = strtok_r(NULL, " \n", &rest))
		if (life->num_calls == LIFE_CALLS ||
		    !call_parse(&life->calls[life->num_calls++], word))
			return false;
	return life->num_calls > 0;
}
