/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Long writes in a stream, for which poster and poller send by turns when that does
 * more: each completion in order, and each byte where it belongs.
 *
 *	long_stream SHARED MS SEED [LENT]
 *		until so many doorbells have sent beside the poller, and for so long at
 *		least; none: for so long, and none may; any: for so long. LENT: while
 *		another thread spins for what never comes, but for a nap now and then, and
 *		until it has stood in for the poller so often; or none: it may not
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verbs_test.h"

enum {
	SLOTS = 64,
	SLOT = 1 << 20,
	PAGE = 4096,
	PAGES = SLOT / PAGE,
	FEWEST = (32 << 10) / PAGE,	/* of an op: MEDGE_SECOND_OP */
	MOST = (128 << 10) / PAGE,	/* but of one of LONGER, that are sent in parts */
	LONGER = 8,
	WORDS = PAGE / sizeof(uint64_t),
	LOOK_MS = 2000,		/* a look at the counter ends a stream */
	LIMIT_MS = 60000,	/* until so many doorbells */
	SPIN_MS = 400,		/* up to, between naps */
	NAP_US = 4000,		/* up to: not so long that its CPU is said to idle */
	POLLS = 1000,		/* between looks at the time */
};

/* A page tells which op wrote it, at both ends; between them it is of its slot. */
typedef uint64_t page[WORDS];

static struct side a, b;
static page (*source)[PAGES], (*target)[PAGES];
static uint64_t holds[SLOTS][PAGES];	/* the op that the target's page is of */
static uint32_t wrote[SLOTS];		/* pages, the latest one */
static uint64_t posted, completed;

static uint64_t word(uint32_t slot, uint32_t at, uint32_t w)
{
	return ((uint64_t)slot << 48 | (uint64_t)at << 32 | w) *
	       0x9e3779b97f4a7c15ULL;
}

static void post(struct ibv_qp *qp, const struct ibv_mr *smr,
		 const struct ibv_mr *tmr, uint64_t *seed)
{
	uint32_t most = rng_below(seed, LONGER) ? MOST : PAGES;
	uint32_t pages = FEWEST + rng_below(seed, most - FEWEST + 1);
	uint32_t slot = posted % SLOTS, at;

	for (at = 0; at < pages; at++) {
		source[slot][at][0] = posted + 1;
		source[slot][at][WORDS - 1] = posted + 1;
		holds[slot][at] = posted + 1;
	}
	if (post_write(qp, smr, tmr, (uint64_t)slot * SLOT, pages * PAGE,
		       IBV_SEND_SIGNALED))
		die("ibv_post_send");
	wrote[slot] = pages;
	posted++;
}

static void check_stamps(uint32_t slot, uint32_t pages)
{
	uint32_t at;

	for (at = 0; at < pages; at++) {
		const uint64_t *p = target[slot][at];

		if (p[0] != holds[slot][at] || p[WORDS - 1] != holds[slot][at])
			die("slot %u, page %u: of ops %llu and %llu, not %llu",
			    slot, at, (unsigned long long)p[0],
			    (unsigned long long)p[WORDS - 1],
			    (unsigned long long)holds[slot][at]);
	}
}

/* All between the stamps. */
static void check_page(uint32_t slot, uint32_t at)
{
	uint32_t w;

	for (w = 1; w < WORDS - 1; w++)
		if (target[slot][at][w] != word(slot, at, w))
			die("slot %u, page %u, word %u is wrong", slot, at, w);
}

/* Of all that has been written. */
static void check_all(void)
{
	uint32_t slot, at;

	for (slot = 0; slot < SLOTS; slot++) {
		check_stamps(slot, PAGES);
		for (at = 0; at < PAGES; at++)
			if (holds[slot][at])
				check_page(slot, at);
	}
}

/* ---- who spins ---- */

static atomic_bool spins;

/* To one CPU of those that this may run on, or all others: two who spin need one each. */
static void bind(pthread_t thread, bool first)
{
	cpu_set_t all, own;
	int cpu = 0;

	if (sched_getaffinity(0, sizeof(all), &all))
		die("sched_getaffinity");
	while (!CPU_ISSET(cpu, &all))
		cpu++;
	CPU_ZERO(&own);
	CPU_SET(cpu, &own);
	if (!first)
		CPU_XOR(&own, &own, &all);
	if (CPU_COUNT(&own) &&
	    pthread_setaffinity_np(thread, sizeof(own), &own))
		die("pthread_setaffinity_np");
}

static void *spin(void *arg)
{
	struct ibv_cq *cq = arg;
	uint64_t seed = 1;

	while (atomic_load(&spins)) {
		uint64_t until = now_ms() + rng_below(&seed, SPIN_MS) + 1;
		struct ibv_wc wc;
		int i;

		while (now_ms() < until)
			for (i = 0; i < POLLS; i++)
				if (ibv_poll_cq(cq, 1, &wc))
					die("a completion of nothing");
		usleep(rng_below(&seed, NAP_US));
	}
	return NULL;
}

/* How long one took, at most. */
static uint64_t latest;

static void complete(struct ibv_cq *cq)
{
	uint64_t began = now_ms(), took;
	uint32_t slot = completed % SLOTS;
	struct ibv_wc wc;

	while (!ibv_poll_cq(cq, 1, &wc))
		if (now_ms() - began > PATIENCE_MS)
			die("op %llu does not complete",
			    (unsigned long long)completed + 1);
	if (wc.status != IBV_WC_SUCCESS)
		die("op %llu: %s", (unsigned long long)completed + 1,
		    ibv_wc_status_str(wc.status));
	took = now_ms() - began;
	if (took > latest)
		latest = took;
	check_stamps(slot, wrote[slot]);
	completed++;
}

static void fill(void)
{
	uint32_t slot, at, w;

	for (slot = 0; slot < SLOTS; slot++)
		for (at = 0; at < PAGES; at++)
			for (w = 0; w < WORDS; w++)
				source[slot][at][w] = word(slot, at, w);
}

int main(int argc, char **argv)
{
	struct pair_options opt = { .send_wr = SLOTS };
	uint64_t shared, lent, want, want_lent, seed, began, ms, took;
	bool none, none_lent;
	pthread_t spinner;
	struct ibv_mr *smr, *tmr;
	struct pair pair;

	if (argc != 4 && argc != 5) {
		fputs("usage: long_stream SHARED MS SEED [LENT]\n", stderr);
		return 2;
	}
	none = !strcmp(argv[1], "none");
	want = strtoull(argv[1], NULL, 0);
	none_lent = !argv[4] || !strcmp(argv[4], "none");
	want_lent = argv[4] ? strtoull(argv[4], NULL, 0) : 0;
	ms = strtoull(argv[2], NULL, 0);
	seed = rng_seed(argv[3]);
	side_open_both(&a, &b);
	source = alloc_pages(sizeof(*source) * SLOTS);
	target = alloc_pages(sizeof(*target) * SLOTS);
	smr = must_reg(&a, source, sizeof(*source) * SLOTS, FULL_ACCESS);
	tmr = must_reg(&b, target, sizeof(*target) * SLOTS, FULL_ACCESS);
	fill();
	pair_create(&pair, &a, &b, &opt);

	shared = side_counter(&a, "poller_shared");
	lent = side_counter(&a, "poller_lent");
	atomic_store(&spins, argv[4]);
	if (argv[4]) {
		if (pthread_create(&spinner, NULL, spin, pair.b.rcq))
			die("pthread_create");
		bind(spinner, false);
		bind(pthread_self(), true);
	}
	began = now_ms();
	do {
		uint64_t until = now_ms() + LOOK_MS;

		while (now_ms() < until) {
			if (posted - completed == SLOTS)
				complete(pair.a.scq);
			post(pair.a.qp, smr, tmr, &seed);
		}
		while (completed < posted)
			complete(pair.a.scq);
		check_all();
		took = now_ms() - began;
	} while (took < ms ||
		 (took < LIMIT_MS &&
		  (side_counter(&a, "poller_shared") - shared < want ||
		   side_counter(&a, "poller_lent") - lent < want_lent)));

	if (atomic_exchange(&spins, false))
		pthread_join(spinner, NULL);
	shared = side_counter(&a, "poller_shared") - shared;
	lent = side_counter(&a, "poller_lent") - lent;
	printf("%llu writes of 32 KiB to 1 MiB, every byte right, none later than %llu ms; %llu doorbells beside the poller, a CPU lent %llu times\n",
	       (unsigned long long)posted, (unsigned long long)latest,
	       (unsigned long long)shared, (unsigned long long)lent);
	if (shared < want || (none && shared) || lent < want_lent ||
	    (none_lent && lent))
		die("not as many as wanted");
	pair_destroy(&pair);
	ibv_dereg_mr(smr);
	ibv_dereg_mr(tmr);
	side_close(&a);
	side_close(&b);
	return 0;
}
