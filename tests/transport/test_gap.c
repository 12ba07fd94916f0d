/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* How long an application waits when a rail is cut, in each of three ways. */
#include <stdlib.h>

#include "direct.h"

enum { CUTS = 100, PERIOD_US = 20 };

struct gap {
	struct pair *pair;
	u64 last, longest;
};

static struct gap gap;

static void note_gap(struct host *h, u32 op_no, enum medge_status status)
{
	u64 now = pair_now(h->pair);

	if (h->side)
		return;
	gap.longest = max(gap.longest, now - gap.last);
	gap.last = now;
}

static void post_next(void *arg, bool run)
{
	struct gap *g = arg;
	struct medge_request req = req_write(REGION_RELAXED, 0, 3000,
					     MEDGE_OP_STRICT);

	if (!run || g->pair->host[0].nops > 2000)
		return;
	pair_post(g->pair, 0, &req);
	events_add(&g->pair->events, pair_now(g->pair) + PERIOD_US * USEC,
		   post_next, g);
}

/* One cut at an instant that the seed chooses; the longest wait around it. */
static u64 cut_once(u64 seed, bool carrier, u32 sides)
{
	struct pair_params params;
	struct pair p;
	u32 side;

	pair_params_default(&params, 2);
	params.seed = seed;
	params.slop_ns = 50 * USEC;
	pair_init(&p, &params);
	p.on_completed = note_gap;
	gap = (struct gap){ .pair = &p };
	post_next(&gap, true);
	pair_run(&p, 5 * MSEC + rng_below(&p.rng, 2 * MSEC));
	gap.longest = 0;
	for (side = 0; side < 2; side++) {
		if (sides & 1 << side)
			pair_dark(&p, side, 1, true);
		if (carrier)
			pair_rail(&p, side, 1, 0);
	}
	pair_run(&p, pair_now(&p) + 25 * MSEC);
	CHECK(p.host[0].completed < 2000);
	pair_finish(&p, SEC);
	pair_free(&p);
	return gap.longest;
}

static int by_size(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return (x > y) - (x < y);
}

static void check_gaps(const char *what, bool carrier, u32 sides, u64 limit)
{
	u64 gaps[CUTS];
	u32 i;

	for (i = 0; i < CUTS; i++)
		gaps[i] = cut_once(i + 1, carrier, sides);
	qsort(gaps, CUTS, sizeof(gaps[0]), by_size);
	printf("gap, %u cuts, %s: p50 %llu us, p99 %llu us, max %llu us\n", CUTS,
	       what, gaps[CUTS / 2] / USEC, gaps[CUTS * 99 / 100] / USEC,
	       gaps[CUTS - 1] / USEC);
	CHECK(gaps[CUTS - 1] < limit, "%s: %llu ns", what, gaps[CUTS - 1]);
}

static void gap__carrier(void)
{
	check_gaps("carrier", true, 3, MSEC);
}

static void gap__drop_both_ways(void)
{
	check_gaps("drop both ways", false, 3, 10 * MSEC);
}

static void gap__drop_one_way(void)
{
	check_gaps("drop one way, out", false, 1, 10 * MSEC);
	check_gaps("drop one way, back", false, 2, 10 * MSEC);
}

/* ---- where hosts stand still ---- */

/*
 * A few large writes at a time, as verbs_gap has them: they may all be on the one
 * path that is cut, so that no other's acks tell of it.
 */
enum { LOOP_OPS = 8, LOOP_LEN = 32768, LOOP_CUTS = 8 };

static bool looping;

static void loop_next(void *arg, bool run)
{
	struct medge_request req = req_write(REGION_RELAXED, 0, LOOP_LEN,
					     MEDGE_OP_STRICT);
	struct pair *p = arg;

	if (run)
		pair_post(p, 0, &req);
}

static void loop_completed(struct host *h, u32 op_no, enum medge_status status)
{
	note_gap(h, op_no, status);
	if (!h->side && looping)
		events_add(&h->pair->events, pair_now(h->pair) + 2 * USEC,
			   loop_next, h->pair);
}

static u64 cut_stalled(u64 seed, u64 stall_ns)
{
	u64 before[4], most = 0, least = ~0ULL;
	struct pair_params params;
	struct pair p;
	u32 side, i;

	pair_params_default(&params, 4);
	params.seed = seed;
	params.slop_ns = 50 * USEC;
	params.event_limit = 10000000;
	for (side = 0; side < 2; side++) {
		params.cfg[side].seg_len = 8928;
		params.cfg[side].run_max = 7 * 8928;
		params.stall[side] = (struct net_stall){
			.ns = stall_ns,
			.every_ns = 20 * MSEC,
		};
		for (i = 0; i < 4; i++)
			params.link[side][i].rate = 1000000000;
	}
	pair_init(&p, &params);
	p.on_completed = loop_completed;
	gap = (struct gap){ .pair = &p };
	looping = true;
	for (i = 0; i < LOOP_OPS; i++)
		loop_next(&p, true);
	pair_run(&p, 20 * MSEC);
	for (i = 0; i < 4; i++)
		before[i] = p.net.links[0][i].frames;
	pair_run(&p, 60 * MSEC + rng_below(&p.rng, 20 * MSEC));
	/* What is equal is used equally, however slow it once seemed. */
	for (i = 0; i < 4; i++) {
		most = max(most, p.net.links[0][i].frames - before[i]);
		least = min(least, p.net.links[0][i].frames - before[i]);
	}
	CHECK(2 * least > most, "seed %llu: %llu frames and %llu", seed, least, most);
	gap.longest = 0;
	pair_dark(&p, 0, 1, true);
	pair_run(&p, pair_now(&p) + 60 * MSEC);
	looping = false;
	pair_finish(&p, SEC);
	pair_free(&p);
	return gap.longest;
}

/* They make all paths late, and are no reason to wait longer for one of them. */
static void gap__stalled_hosts(void)
{
	u64 ms, is, worst;
	u32 i;

	for (ms = 0; ms <= 4; ms = ms ? 4 * ms : 1) {
		worst = 0;
		for (i = 0; i < LOOP_CUTS; i++) {
			is = cut_stalled(i + 1, ms * MSEC);
			worst = max(worst, is);
		}
		printf("gap, %u cuts, hosts that stand still for %llu ms in 20: max %llu us\n",
		       LOOP_CUTS, ms, worst / USEC);
		CHECK(worst < (10 + ms) * MSEC, "%llu ns", worst);
	}
}

int main(int argc, char **argv)
{
	direct_begin(argc, argv);
	RUN(gap__carrier);
	RUN(gap__drop_both_ways);
	RUN(gap__drop_one_way);
	RUN(gap__stalled_hosts);
	return direct_end("test_gap");
}
