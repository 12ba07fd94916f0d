/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Which rail: each carries its share of the bytes, whatever their ops' sizes. */
#include <stdlib.h>

#include "direct.h"

enum { TOLERANCE = 5 };		/* per cent */

/* Streams @count ops of @len; the rails' bytes must be as their weights. */
static void check_shares(u32 nrails, const u32 *weights, u32 count, u32 len)
{
	struct medge_request req = req_write(REGION_RELAXED, 0, len,
					     MEDGE_OP_STRICT);
	u64 total = 0, weight = 0;
	struct pair_params params;
	struct pair p;
	u32 side, i;

	pair_params_default(&params, nrails);
	for (side = 0; side < 2; side++)
		for (i = 0; i < nrails; i++) {
			params.weight[side][i] = weights[i];
			params.link[side][i].rate = weights[i] * 1000000ULL;
		}
	pair_init(&p, &params);
	medge_conn_schedule(p.host[0].conn, MEDGE_SCHED_WEIGHTED);
	for (i = 0; i < count; i++)
		host_post(&p.host[0], &req);
	pair_poll(&p, 0);
	pair_finish(&p, 100 * SEC);
	for (i = 0; i < nrails; i++) {
		total += p.net.links[0][i].bytes;
		weight += weights[i];
	}
	for (i = 0; i < nrails; i++) {
		u64 is = p.net.links[0][i].bytes;
		u64 want = total * weights[i] / weight;

		/* a run is never split */
		CHECK((is + MEDGE_RUN_MAX) * 100 > want * (100 - TOLERANCE) &&
		      is * 100 < want * (100 + TOLERANCE) + MEDGE_RUN_MAX * 100,
		      "rail %u of weight %u: %llu bytes, its share is %llu", i,
		      weights[i], is, want);
	}
	CHECK_EQ(medge_conn_stats(p.host[0].conn)->retransmits, 0);
	pair_free(&p);
}

static void shares__two_equal_rails(void)
{
	check_shares(2, (u32[]){ 10000, 10000 }, 100, 200000);
}

static void shares__1_to_10(void)
{
	check_shares(2, (u32[]){ 1000, 10000 }, 200, 200000);
}

static void shares__3_5_7(void)
{
	check_shares(3, (u32[]){ 3000, 5000, 7000 }, 200, 200000);
}

static void shares__eight_rails(void)
{
	check_shares(8, (u32[]){ 1000, 1000, 10000, 10000, 25000, 25000, 100000,
				 100000 }, 600, 200000);
}

static void shares__small_messages(void)
{
	check_shares(2, (u32[]){ 10000, 10000 }, 3000, 700);
}

static void shares__mixed_weights_small_messages(void)
{
	check_shares(2, (u32[]){ 1000, 3000 }, 3000, 1000);
}

/* Large and small in turn must not put all the large on one rail. */
static void shares__large_and_small_in_turn(void)
{
	struct pair_params params;
	struct pair p;
	u64 a, b;
	u32 i;

	pair_params_default(&params, 2);
	pair_init(&p, &params);
	for (i = 0; i < 400; i++) {
		struct medge_request req = req_write(REGION_RELAXED, 0,
						     i % 2 ? 60000 : 1500,
						     MEDGE_OP_STRICT);

		host_post(&p.host[0], &req);
	}
	pair_poll(&p, 0);
	pair_finish(&p, 10 * SEC);
	a = p.net.links[0][0].bytes;
	b = p.net.links[0][1].bytes;
	CHECK(a * 100 > b * 90 && b * 100 > a * 90, "%llu and %llu", a, b);
	pair_free(&p);
}

static void weight_changed__share_follows(void)
{
	struct medge_request req = req_write(REGION_RELAXED, 0, 200000,
					     MEDGE_OP_STRICT);
	struct pair_params params;
	struct pair p;
	u64 before[2], got[2];
	u32 i;

	pair_params_default(&params, 2);
	pair_init(&p, &params);
	medge_conn_schedule(p.host[0].conn, MEDGE_SCHED_WEIGHTED);
	for (i = 0; i < 100; i++)
		host_post(&p.host[0], &req);
	pair_poll(&p, 0);
	pair_run(&p, 2 * MSEC);
	pair_rail(&p, 0, 1, 1000);
	for (i = 0; i < 2; i++)
		before[i] = p.net.links[0][i].bytes;
	pair_finish(&p, 10 * SEC);
	for (i = 0; i < 2; i++)
		got[i] = p.net.links[0][i].bytes - before[i];
	CHECK(got[0] > 8 * got[1] && got[0] < 12 * got[1], "%llu and %llu",
	      got[0], got[1]);
	pair_free(&p);
}

/* A message of few frames uses more than one rail if it is long enough. */
static void one_large_message__uses_all_rails(void)
{
	struct medge_request req = req_write(REGION_RELAXED, 0, 256000,
					     MEDGE_OP_STRICT);
	struct pair_params params;
	struct pair p;
	u32 i;

	pair_params_default(&params, 4);
	pair_init(&p, &params);
	pair_post(&p, 0, &req);
	pair_finish(&p, SEC);
	for (i = 0; i < 4; i++)
		CHECK(p.net.links[0][i].bytes > 30000, "rail %u: %llu bytes", i,
		      p.net.links[0][i].bytes);
	pair_free(&p);
}

/* Small writes, one at a time, on rails of which the first is much longer. */
static void small_op__goes_where_it_arrives_first(void)
{
	struct medge_request req = req_write(REGION_RELAXED, 0, 64, 0);
	struct pair_params params;
	struct pair p;
	u64 before;
	u32 i;

	pair_params_default(&params, 3);
	params.link[0][0].delay_ns = params.link[1][0].delay_ns = MSEC;
	params.link[0][2].rate = params.link[1][2].rate = 10000000;
	pair_init(&p, &params);
	req.submit = MEDGE_SUBMIT_SIGNALED;
	/* something large, so that each path is known */
	for (i = 0; i < 4; i++) {
		struct medge_request large = req_write(REGION_RELAXED, 0, 256000, 0);

		pair_post(&p, 0, &large);
	}
	pair_finish(&p, 10 * SEC);
	before = p.net.links[0][1].frames;
	for (i = 0; i < 100; i++) {
		u64 from = pair_now(&p);

		pair_post(&p, 0, &req);
		while (p.host[0].completed < 5 + i)
			pair_run(&p, pair_now(&p) + 10 * USEC);
		/* a path that nobody has used yet is tried once */
		CHECK(i < 3 || pair_now(&p) - from < 100 * USEC);
	}
	pair_finish(&p, SEC);
	CHECK(p.net.links[0][1].frames - before >= 97);
	pair_free(&p);
}

/* And where no rail is better, all are used: one that is not is not known. */
static void small_ops__share_equal_rails(void)
{
	struct medge_request req = req_write(REGION_RELAXED, 0, 64, 0);
	struct pair_params params;
	struct pair p;
	u32 i;

	pair_params_default(&params, 4);
	for (i = 0; i < 4; i++)
		params.link[0][i].jitter_ns = 2 * USEC;
	pair_init(&p, &params);
	req.submit = MEDGE_SUBMIT_SIGNALED;
	for (i = 0; i < 400; i++) {
		pair_post(&p, 0, &req);
		pair_finish(&p, SEC);
	}
	for (i = 0; i < 4; i++)
		CHECK(p.net.links[0][i].frames >= 80, "rail %u: %llu", i,
		      p.net.links[0][i].frames);
	pair_free(&p);
}

/* Static rules use all rails alike, whatever they are like. */
static void round_robin__takes_turns(void)
{
	struct medge_request req = req_write(REGION_RELAXED, 0, 700, 0);
	struct pair_params params;
	struct pair p;
	u32 i;

	pair_params_default(&params, 3);
	params.link[0][2].rate = SEC;
	pair_init(&p, &params);
	medge_conn_schedule(p.host[0].conn, MEDGE_SCHED_ROUND_ROBIN);
	for (i = 0; i < 300; i++)
		host_post(&p.host[0], &req);
	pair_poll(&p, 0);
	pair_finish(&p, SEC);
	for (i = 0; i < 3; i++)
		/* and some probes */
		CHECK(p.net.links[0][i].frames >= 100 &&
		      p.net.links[0][i].frames < 120);
	pair_free(&p);
}

static void weighted_dynamic__slow_rail_carries_less(void)
{
	struct medge_request req = req_write(REGION_RELAXED, 0, 200000, 0);
	struct pair_params params;
	struct pair p;
	u64 fast, slow;
	u32 i;

	pair_params_default(&params, 2);
	params.link[0][1].rate = SEC;
	pair_init(&p, &params);
	medge_conn_schedule(p.host[0].conn, MEDGE_SCHED_WEIGHTED_DYNAMIC);
	for (i = 0; i < 100; i++)
		host_post(&p.host[0], &req);
	pair_poll(&p, 0);
	pair_finish(&p, SEC);
	fast = p.net.links[0][0].bytes;
	slow = p.net.links[0][1].bytes;
	CHECK(fast > 7 * slow && fast < 13 * slow, "%llu and %llu", fast, slow);
	pair_free(&p);
}

int main(int argc, char **argv)
{
	direct_begin(argc, argv);
	RUN(shares__two_equal_rails);
	RUN(shares__1_to_10);
	RUN(shares__3_5_7);
	RUN(shares__eight_rails);
	RUN(shares__small_messages);
	RUN(shares__mixed_weights_small_messages);
	RUN(shares__large_and_small_in_turn);
	RUN(weight_changed__share_follows);
	RUN(one_large_message__uses_all_rails);
	RUN(small_op__goes_where_it_arrives_first);
	RUN(small_ops__share_equal_rails);
	RUN(round_robin__takes_turns);
	RUN(weighted_dynamic__slow_rail_carries_less);
	return direct_end("test_sched");
}
