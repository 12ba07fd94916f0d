/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The lives that a fuzzer keeps.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz_kept.h"
#include "verbs_test.h"

struct kept {
	struct fuzz_life life;
	struct cover_ways ways;
};

static struct kept **kept;
static unsigned int num;

void kept_add(const struct fuzz_life *life, const struct cover_ways *ways)
{
	kept = realloc(kept, (num + 1) * sizeof(*kept));
	if (!kept || !(kept[num] = malloc(sizeof(**kept))))
		die("no memory");
	kept[num]->life = *life;
	kept[num++]->ways = *ways;
}

unsigned int kept_num(void)
{
	return num;
}

/* The later ones are those that were hard to find. */
const struct fuzz_life *kept_any(uint64_t *rng)
{
	unsigned int i = rng_below(rng, num), j = rng_below(rng, num);

	return &kept[i > j ? i : j]->life;
}

/* That goes most ways that are not in @known; NULL: nobody does. */
static struct kept *goes_farthest(const struct cover_ways *known)
{
	unsigned int most = 0;
	struct kept *best = NULL;

	for (unsigned int i = 0; i < num; i++) {
		unsigned int beyond = ways_beyond(&kept[i]->ways, known);

		if (beyond > most) {
			most = beyond;
			best = kept[i];
		}
	}
	return best;
}

void kept_write(const char *path,
		void (*trim)(struct fuzz_life *life, const struct cover_ways *need))
{
	struct cover_ways known = {}, need;
	struct kept *best;
	FILE *file = fopen(path, "w");

	if (!file)
		die("%s: %s", path, strerror(errno));
	while ((best = goes_farthest(&known))) {
		need = best->ways;
		ways_remove(&need, &known);
		ways_add(&known, &best->ways);
		trim(&best->life, &need);
		life_print(file, &best->life);
	}
	if (fclose(file))
		die("%s: %s", path, strerror(errno));
}
