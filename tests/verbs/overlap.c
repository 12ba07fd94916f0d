/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * How much of a computation the transfer of data goes on beside: writes of one
 * size, before each of which the program computes for some part of the time that
 * one of them takes (Balaji et al., figure 14).
 *
 *   overlap BYTES [MS [PARTS]]    what all may take; 1: only without a computation
 *
 * Prints, for each part: the bandwidth in MB/s, and the share of the shorter of
 * computation and transfer that went on beside the longer.
 */
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "verbs_test.h"

enum {
	WINDOW = 8,
	ROUNDS = 3,		/* of all parts, at least */
	SLICE_NS = 4000000,	/* of each part in a round */
	CALIBRATION = 2000000,
};

static const double parts[] = { 0, 0.25, 0.5, 0.75, 1, 2, 4 };

static struct ibv_mr *from, *to;
static size_t len, count = ARRAY_LEN(parts);
uint64_t lcg;	/* not static: it has to be computed */

/* So much work, and not so much time: what the kernel takes of it is missed. */
static void compute(uint64_t steps)
{
	while (steps--)
		lcg = lcg * 6364136223846793005ULL + 1442695040888963407ULL;
}

static double ns_per_step(void)
{
	uint64_t best = UINT64_MAX, began, took;
	int i;

	for (i = 0; i < 5; i++) {
		began = now_ns();
		compute(CALIBRATION);
		took = now_ns() - began;
		if (took < best)
			best = took;
	}
	return (double)best / CALIBRATION;
}

static void post(struct end *end)
{
	if (post_write(end->qp, from, to, 0, len, IBV_SEND_SIGNALED))
		die("ibv_post_send");
}

static void reap(struct end *end)
{
	struct ibv_wc wc;
	int polls = 0;

	/* What carries the data may need this CPU. */
	while (!ibv_poll_cq(end->scq, 1, &wc))
		if (!(++polls % 64))
			sched_yield();
	if (wc.status)
		die("%s", ibv_wc_status_str(wc.status));
}

/* How long a write took, with the computation before it; @end NULL: that alone. */
static double ns_each(struct end *end, uint64_t steps)
{
	uint64_t began = now_ns(), n, done = 0;

	for (n = 0; n % WINDOW || !n || now_ns() < began + SLICE_NS; n++) {
		compute(steps);
		if (!end)
			continue;
		if (n - done == WINDOW) {
			reap(end);
			done++;
		}
		post(end);
	}
	for (; end && done < n; done++)
		reap(end);
	return (double)(now_ns() - began) / n;
}

static void least(double *of, double now)
{
	if (!*of || now < *of)
		*of = now;
}

static void report(const double took[], const double computed[])
{
	size_t i;

	for (i = 0; i < count; i++) {
		double less = computed[i] < took[0] ? computed[i] : took[0];

		printf("%g %.2f %.3f\n", parts[i], len * 1e3 / took[i],
		       less > 0 ? (took[0] + computed[i] - took[i]) / less : 0);
	}
}

int main(int argc, char **argv)
{
	double took[ARRAY_LEN(parts)] = {}, computed[ARRAY_LEN(parts)] = {};
	struct pair_options po = { .send_wr = WINDOW };
	uint64_t ms = 700, seed = 1, until;
	struct pair pair;
	struct side a, b;
	double step, one = 0;
	cpu_set_t first;
	size_t i;
	int round;

	len = argc > 1 ? strtoul(argv[1], NULL, 0) : 0;
	if (argc > 2)
		ms = strtoul(argv[2], NULL, 0);
	if (argc > 3)
		count = strtoul(argv[3], NULL, 0);
	if (!len || !ms || !count || count > ARRAY_LEN(parts)) {
		fputs("usage: overlap BYTES [MS [PARTS]]\n", stderr);
		return 2;
	}
	CPU_ZERO(&first);
	CPU_SET(0, &first);
	sched_setaffinity(0, sizeof(first), &first);
	side_open_both(&a, &b);
	pair_create(&pair, &a, &b, &po);
	from = must_reg(&a, alloc_pages(len), len, FULL_ACCESS);
	to = must_reg(&b, alloc_pages(len), len, FULL_ACCESS);
	rng_fill(&seed, from->addr, len);

	step = ns_per_step();
	for (i = 0; i < 5; i++)
		least(&one, ns_each(&pair.a, 0));
	/* Others are at work on this machine, and can only make it slower. */
	until = now_ns() + ms * 1000000;
	for (round = 0; round < ROUNDS || now_ns() < until; round++) {
		for (i = 0; i < count; i++) {
			uint64_t steps = parts[i] * one / step;

			least(&took[i], ns_each(&pair.a, steps));
			if (steps)
				least(&computed[i], ns_each(NULL, steps));
		}
	}
	if (memcmp(from->addr, to->addr, len))
		die("what was written is not what is there");
	report(took, computed);
	pair_destroy(&pair);
	ibv_dereg_mr(from);
	ibv_dereg_mr(to);
	side_close(&a);
	side_close(&b);
	return 0;
}
