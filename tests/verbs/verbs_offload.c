/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Copies that go on while their QP or their memory is given up: when the verb has
 * returned, nobody writes there any more.
 *
 *   verbs_offload [--seed N] [--rounds N]
 *
 * For engines that take their time: see offload.sh.
 */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verbs_test.h"

enum {
	LEN = 1 << 20,
	WRITES = 4,
	/* What is still on its way then, would have come. */
	LOOK_US = 20000,
};

static uint64_t seed;

static void deregister(struct pair *pair, struct ibv_mr **mr)
{
	(void)pair;
	if (ibv_dereg_mr(*mr))
		die("ibv_dereg_mr");
	*mr = NULL;
}

static void reset(struct pair *pair, struct ibv_mr **mr)
{
	(void)mr;
	if (end_to_state(&pair->b, IBV_QPS_RESET))
		die("to RESET");
}

static void destroy(struct pair *pair, struct ibv_mr **mr)
{
	(void)mr;
	if (ibv_destroy_qp(pair->b.qp))
		die("ibv_destroy_qp");
	pair->b.qp = NULL;
}

static const struct ending {
	const char *name;
	void (*end)(struct pair *pair, struct ibv_mr **mr);
} endings[] = {
	{ "deregistered", deregister },
	{ "reset", reset },
	{ "destroyed", destroy },
};

/* Return: it was being written to when it was given up. */
static bool round_of(const struct ending *ending, struct side *a, struct side *b,
		     uint8_t *from, uint8_t *to, uint8_t *then)
{
	struct pair_options opt = { .timeout = 14, .retry_cnt = 7, .send_wr = WRITES };
	struct ibv_mr *from_mr = must_reg(a, from, LEN, FULL_ACCESS);
	struct ibv_mr *to_mr = must_reg(b, to, LEN, FULL_ACCESS);
	struct pair pair;
	bool changed;
	int i;

	pair_create(&pair, a, b, &opt);
	rng_fill(&seed, from, LEN);
	memset(to, 0, LEN);
	for (i = 0; i < WRITES; i++)
		if (post_write(pair.a.qp, from_mr, to_mr, 0, LEN, 0))
			die("ibv_post_send");
	usleep(rng_below(&seed, 3000));
	memcpy(then, to, LEN);
	ending->end(&pair, &to_mr);
	changed = memcmp(then, to, LEN);
	memcpy(then, to, LEN);
	usleep(LOOK_US);
	if (memcmp(then, to, LEN))
		die("written to after it was %s", ending->name);
	pair_destroy(&pair);
	if (to_mr)
		ibv_dereg_mr(to_mr);
	ibv_dereg_mr(from_mr);
	return changed;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "seed", required_argument, NULL, 's' },
		{ "rounds", required_argument, NULL, 'r' },
		{},
	};
	int rounds = 20, parts, opt, i;
	uint8_t *from, *to, *then;
	struct side a, b;
	size_t e;

	seed = rng_seed(NULL);
	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (opt == 's')
			seed = rng_seed(optarg);
		else if (opt == 'r')
			rounds = atoi(optarg);
		else
			return 2;
	}
	printf("seed %llu\n", (unsigned long long)seed);
	side_open_both(&a, &b);
	from = alloc_pages(LEN);
	to = alloc_pages(LEN);
	then = alloc_pages(LEN);
	for (e = 0; e < ARRAY_LEN(endings); e++) {
		parts = 0;
		for (i = 0; i < rounds; i++)
			parts += round_of(&endings[e], &a, &b, from, to, then);
		printf("%s: %d of %d in the midst of it\n", endings[e].name, parts, rounds);
		if (!parts)
			die("nothing was %s while it was written", endings[e].name);
	}
	side_close(&a);
	side_close(&b);
	return 0;
}
