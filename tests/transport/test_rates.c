/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What share of their rails a stream of large writes gets, in virtual time. */
#include <stdlib.h>

#include "direct.h"

enum {
	OP_LEN = 1 << 20,
	OPS_OUT = 64,
	BUSY_SEEDS = 4,
	MTU = 9000,
	GBIT = 1000000000,
};

/* A stream's rails, and what it reached. */
struct stream {
	struct pair_params params;
	struct pair pair;
	u32 scheduler;
	bool both;		/* ways */
	u32 depth;
};

static void stream_params(struct stream *s, u32 nrails)
{
	u32 side, i;

	memset(s, 0, sizeof(*s));
	pair_params_default(&s->params, nrails);
	s->params.region_len = OP_LEN;
	s->params.event_limit = ~0ULL;
	s->params.slop_ns = 100 * USEC;
	s->scheduler = MEDGE_SCHED_EARLIEST;
	s->depth = OPS_OUT;
	for (side = 0; side < 2; side++) {
		s->params.cfg[side].seg_len = MTU - MEDGE_HDR_LEN;
		s->params.cfg[side].window =
			medge_window_first(MTU - MEDGE_HDR_LEN);
		for (i = 0; i < nrails; i++)
			s->params.link[side][i].rate = GBIT;
	}
}

static void stream_post(struct stream *s, u32 side)
{
	struct medge_request req = req_write(REGION_RELAXED, 0, OP_LEN,
					     MEDGE_OP_STRICT);

	req.submit = MEDGE_SUBMIT_SIGNALED;
	host_post(&s->pair.host[side], &req);
}

static void completed(struct host *h, u32 op_no, enum medge_status status)
{
	struct stream *s = h->pair->user;

	stream_post(s, h->side);
}

/* Payload bits a second from @from to @to, in per mille of the rails' rates. */
static u32 stream_share(struct stream *s, u64 warm_up, u64 time)
{
	u64 sum = 0, bytes = 0;
	u32 side, i, done[2];

	pair_init(&s->pair, &s->params);
	s->pair.user = s;
	s->pair.on_completed = completed;
	for (side = 0; side < 1u + s->both; side++) {
		medge_conn_schedule(s->pair.host[side].conn, s->scheduler);
		for (i = 0; i < s->depth; i++)
			stream_post(s, side);
		pair_poll(&s->pair, side);
	}
	pair_run(&s->pair, warm_up);
	for (side = 0; side < 2; side++)
		done[side] = s->pair.host[side].completed;
	pair_run(&s->pair, warm_up + time);
	for (side = 0; side < 1u + s->both; side++) {
		bytes += (u64)(s->pair.host[side].completed - done[side]) * OP_LEN;
		for (i = 0; i < s->params.nrails; i++)
			sum += s->params.link[side][i].rate;
	}
	pair_free(&s->pair);
	return bytes * 8 * SEC / time * 1000 / sum;
}

static void check_share(struct stream *s, u32 least, const char *what)
{
	u32 is = stream_share(s, 300 * MSEC, SEC);

	TRACE("%s: %u per mille\n", what, is);
	CHECK(is >= least, "%s: %u per mille, not %u", what, is, least);
}

/* The limits are those the lab's rails are judged by. */
static void equal_rails__one_way(void)
{
	struct stream s;
	u32 rails;

	for (rails = 1; rails <= 8; rails *= 2) {
		stream_params(&s, rails);
		check_share(&s, rails < 8 ? 970 : 950, "one way");
	}
}

static void equal_rails__both_ways(void)
{
	struct stream s;

	stream_params(&s, 4);
	s.both = true;
	check_share(&s, 950, "both ways");
}

/* What comes back queues behind the peer's own data, and is no queue of ours. */
static void busy_hosts__both_ways(void)
{
	u32 rails, side, i, seed, sum;
	struct stream s;

	for (rails = 1; rails <= 4; rails *= 4) {
		sum = 0;
		/* One differs from the next by a tenth. */
		for (seed = 1; seed <= BUSY_SEEDS; seed++) {
			stream_params(&s, rails);
			s.both = true;
			s.params.seed = seed;
			for (side = 0; side < 2; side++)
				for (i = 0; i < rails; i++)
					s.params.link[side][i].jitter_ns = MSEC;
			sum += stream_share(&s, 300 * MSEC, SEC / 2);
		}
		TRACE("both ways, busy hosts: %u per mille\n", sum / BUSY_SEEDS);
		CHECK(sum / BUSY_SEEDS >= (rails > 1 ? 900 : 800),
		      "%u rails: %u per mille", rails, sum / BUSY_SEEDS);
	}
}

/*
 * Hosts whose CPU is taken away now and then, as a guest's is: what stands in the
 * receiver's ring meanwhile must be as long as that.
 */
static void stalled_hosts__one_way(void)
{
	struct stream s;
	u32 rails, side, ms;

	for (ms = 1; ms <= 4; ms *= 2) {
		for (rails = 1; rails <= 4; rails *= 2) {
			stream_params(&s, rails);
			for (side = 0; side < 2; side++)
				s.params.stall[side] = (struct net_stall){
					.ns = ms * MSEC,
					.every_ns = 20 * MSEC,
				};
			check_share(&s, ms < 4 ? 960 : 930,
				    "one way, stalled hosts");
		}
	}
}

static u32 a_slow_rail(struct stream *s, u32 scheduler, u32 depth)
{
	u32 side;

	stream_params(s, 4);
	for (side = 0; side < 2; side++)
		s->params.link[side][3].rate = GBIT / 10;
	s->scheduler = scheduler;
	s->depth = depth;
	return stream_share(s, 300 * MSEC, SEC);
}

static void long_rail(struct stream *s, u32 scheduler, u32 depth)
{
	u32 side;

	stream_params(s, 4);
	for (side = 0; side < 2; side++)
		s->params.link[side][3].delay_ns += 10 * MSEC;
	s->scheduler = scheduler;
	s->depth = depth;
}

static u32 a_long_rail(struct stream *s, u32 scheduler, u32 depth)
{
	long_rail(s, scheduler, depth);
	return stream_share(s, SEC, SEC);
}

static void rail_of_100_mbit__sum_is_reached(void)
{
	struct stream s;
	u32 is = a_slow_rail(&s, MEDGE_SCHED_EARLIEST, OPS_OUT);

	CHECK(is >= 950, "%u per mille", is);
}

static void rail_10_ms_longer__sum_is_reached(void)
{
	struct stream s;
	u32 is = a_long_rail(&s, MEDGE_SCHED_EARLIEST, OPS_OUT);

	CHECK(is >= 950, "%u per mille", is);
}

/* In the seconds in which each path runs empty once, to be known anew. */
static void rail_10_ms_longer__sum_stays(void)
{
	struct stream s;
	u32 is, side, i;

	long_rail(&s, MEDGE_SCHED_EARLIEST, OPS_OUT);
	for (side = 0; side < 2; side++)
		for (i = 0; i < s.params.nrails; i++)
			s.params.link[side][i].rate = GBIT / 5;
	is = stream_share(&s, 14 * SEC, 2 * SEC);
	CHECK(is >= 950, "%u per mille", is);
}

/* One write at a time: each should end on all rails at once. */
static void one_at_a_time__earliest_beats_weighted_dynamic(void)
{
	u32 (*const unequal[])(struct stream *, u32, u32) = {
		a_slow_rail, a_long_rail,
	};
	struct stream s;
	u32 i, k, is[MEDGE_SCHEDULERS];

	for (i = 0; i < ARRAY_SIZE(unequal); i++) {
		for (k = 0; k < MEDGE_SCHEDULERS; k++) {
			is[k] = unequal[i](&s, k, 1);
			TRACE("%s rail, one write at a time, %s: %u per mille\n",
			      i ? "long" : "slow", medge_scheduler_name(k), is[k]);
		}
		CHECK(is[MEDGE_SCHED_EARLIEST] * 100 >=
		      is[MEDGE_SCHED_WEIGHTED_DYNAMIC] * 110,
		      "%u and %u per mille", is[MEDGE_SCHED_EARLIEST],
		      is[MEDGE_SCHED_WEIGHTED_DYNAMIC]);
	}
}

int main(int argc, char **argv)
{
	direct_begin(argc, argv);
	RUN(equal_rails__one_way);
	RUN(equal_rails__both_ways);
	RUN(busy_hosts__both_ways);
	RUN(stalled_hosts__one_way);
	RUN(rail_of_100_mbit__sum_is_reached);
	RUN(rail_10_ms_longer__sum_is_reached);
	RUN(rail_10_ms_longer__sum_stays);
	RUN(one_at_a_time__earliest_beats_weighted_dynamic);
	return direct_end("test_rates");
}
