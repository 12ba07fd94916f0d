/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Peers: what becomes of their paths, how soon, and what it costs who is idle. */
#include <stdlib.h>

#include "direct.h"

enum { SEG = 1024 };

/* Probes and replies sent by each side on each rail. */
struct counts {
	u64 probes[2][MEDGE_MAX_RAILS];
	u64 data[2][MEDGE_MAX_RAILS];
	u64 all;
};

static enum net_verdict count_frames(void *user, u32 side, u32 rail,
				     struct packet *p, u64 *delay)
{
	struct counts *n = user;
	u8 type = p->data[0] & 15;

	n->probes[side][rail] += type == MEDGE_FRAME_PROBE;
	n->data[side][rail] += type == MEDGE_FRAME_DATA;
	n->all++;
	return NET_PASS;
}

static void start(struct pair *p, struct counts *n, struct pair_params *params)
{
	memset(n, 0, sizeof(*n));
	pair_init(p, params);
	p->net.ops.filter = count_frames;
	p->net.ops.filter_user = n;
}

static struct medge_path_info path(struct pair *p, u32 side, u32 i)
{
	struct medge_path_info info;

	CHECK(medge_peer_path(p->host[side].remote, i, &info),
	      "side %u has no path %u", side, i);
	return info;
}

#define CHECK_PATH(p, side, i, s, w) do {				\
	struct medge_path_info is = path(p, side, i);			\
	CHECK(is.state == MEDGE_PATH_##s && is.why == MEDGE_WHY_##w,	\
	      "at %llu side %u path %u is %s: %s", pair_now(p), side, i,	\
	      medge_path_state_name(is.state),				\
	      medge_path_why_name(is.why));				\
} while (0)

/* Writes, small ones or large, that keep @side busy. */
static void stream(struct pair *p, u32 side, u32 count, u32 len)
{
	struct medge_request req = req_write(REGION_RELAXED, 0, len,
					     MEDGE_OP_STRICT);

	while (count--)
		host_post(&p->host[side], &req);
	pair_poll(p, side);
}

/* How long until path @i of @side is in @state; at most @limit ns. */
static u64 time_until(struct pair *p, u32 side, u32 i, u8 state, u64 limit)
{
	u64 from = pair_now(p);

	while (path(p, side, i).state != state) {
		CHECK(pair_now(p) - from < limit,
		      "path %u of side %u is %s after %llu ns", i, side,
		      medge_path_state_name(path(p, side, i).state), limit);
		pair_run(p, pair_now(p) + 10 * USEC);
	}
	return pair_now(p) - from;
}

/* ---- how it begins ---- */

static void new__up_after_a_round_trip(void)
{
	struct pair_params params;
	struct counts n;
	struct pair p;
	u32 side, i;

	pair_params_default(&params, 4);
	start(&p, &n, &params);
	for (side = 0; side < 2; side++)
		for (i = 0; i < 4; i++)
			CHECK_PATH(&p, side, i, PROBING, NEW);
	CHECK(pair_run(&p, SEC));
	CHECK(pair_now(&p) < MSEC, "%llu", pair_now(&p));
	for (side = 0; side < 2; side++)
		for (i = 0; i < 4; i++) {
			CHECK_PATH(&p, side, i, UP, ANSWERED);
			CHECK_EQ(path(&p, side, i).peer_rail, i);
		}
	pair_free(&p);
}

static void new__data_does_not_wait(void)
{
	struct pair_params params;
	struct counts n;
	struct pair p;

	pair_params_default(&params, 2);
	start(&p, &n, &params);
	stream(&p, 0, 2, 10 * SEG);
	/* nothing has been answered yet */
	CHECK_EQ(pair_now(&p), 0);
	CHECK_EQ(n.data[0][0] + n.data[0][1], 20);
	pair_finish(&p, SEC);
	CHECK_EQ(medge_conn_stats(p.host[0].conn)->retransmits, 0);
	pair_free(&p);
}

static void new__rails_crossed_are_found(void)
{
	struct pair_params params;
	struct counts n;
	struct pair p;
	u32 i;

	pair_params_default(&params, 3);
	for (i = 0; i < 3; i++) {
		params.link[0][i].to = (i + 1) % 3;
		params.link[1][(i + 1) % 3].to = i;
	}
	start(&p, &n, &params);
	CHECK(pair_run(&p, SEC));
	for (i = 0; i < 3; i++) {
		u32 j = i < 2 ? i + 1 : 0;

		CHECK_EQ(path(&p, 0, i).peer_rail, j);
		CHECK_EQ(path(&p, 1, j).peer_rail, i);
	}
	pair_free(&p);
}

/* More rails than one reply describes. */
static void list__comes_in_parts(void)
{
	struct pair_params params;
	struct counts n;
	struct pair p;

	pair_params_default(&params, MEDGE_MAX_RAILS);
	start(&p, &n, &params);
	CHECK(pair_run(&p, SEC));
	/* Side 1 knows of each rail of side 0, or this would not be told. */
	pair_rail(&p, 0, 63, 0);
	pair_rail(&p, 0, 16, 0);
	CHECK(pair_run(&p, 10 * SEC));
	CHECK_PATH(&p, 1, 63, DOWN, CARRIER);
	CHECK_PATH(&p, 1, 16, DOWN, CARRIER);
	CHECK_PATH(&p, 1, 17, UP, ANSWERED);
	pair_free(&p);
}

/* Cabled nowhere: found out, while data has begun to go everywhere. */
static void nowhere__is_found_out(void)
{
	struct pair_params params;
	struct counts n;
	struct pair p;
	u64 sent;
	u32 i;

	pair_params_default(&params, 4);
	/* side 1 has but two rails, of another speed */
	for (i = 2; i < 4; i++)
		params.weight[1][i] = 0;
	start(&p, &n, &params);
	for (i = 2; i < 4; i++)
		pair_dark(&p, 0, i, true);
	stream(&p, 0, 2000, 50 * SEG);
	time_until(&p, 0, 2, MEDGE_PATH_DOWN, 10 * MSEC);
	time_until(&p, 0, 3, MEDGE_PATH_DOWN, 10 * MSEC);
	CHECK_PATH(&p, 0, 2, DOWN, NO_ANSWER);
	CHECK_PATH(&p, 0, 0, UP, ANSWERED);
	sent = n.data[0][2] + n.data[0][3];
	CHECK(sent <= MEDGE_WINDOW, "%llu frames to nowhere", sent);
	stream(&p, 0, 2000, 50 * SEG);
	pair_finish(&p, SEC);
	CHECK_EQ(n.data[0][2] + n.data[0][3], sent);
	pair_free(&p);
}

/* ---- carrier ---- */

static void carrier_lost__both_sides_know(void)
{
	struct pair_params params;
	struct counts n;
	struct pair p;
	u64 before;

	pair_params_default(&params, 2);
	start(&p, &n, &params);
	stream(&p, 0, 100, 50 * SEG);
	stream(&p, 1, 100, 50 * SEG);
	pair_run(&p, 200 * USEC);
	pair_rail(&p, 0, 1, 0);
	CHECK_PATH(&p, 0, 1, DOWN, CARRIER);
	before = n.data[0][1];
	/* The other end of a switched network keeps its carrier. */
	time_until(&p, 1, 1, MEDGE_PATH_DOWN, MSEC);
	CHECK_PATH(&p, 1, 1, DOWN, CARRIER);
	pair_finish(&p, SEC);
	CHECK_EQ(n.data[0][1], before);
	pair_free(&p);
}

static void carrier_back__asked_then_used_more_and_more(void)
{
	struct pair_params params;
	struct counts n;
	struct pair p;
	u32 weights[8], i = 0;

	pair_params_default(&params, 2);
	start(&p, &n, &params);
	stream(&p, 0, 4000, 50 * SEG);
	pair_run(&p, MSEC);
	pair_rail(&p, 0, 1, 0);
	pair_run(&p, 2 * MSEC);
	memset(&n, 0, sizeof(n));
	pair_rail(&p, 0, 1, 10000);
	CHECK_PATH(&p, 0, 1, PROBING, CARRIER);
	time_until(&p, 0, 1, MEDGE_PATH_UP, 5 * MSEC);
	CHECK(n.probes[0][1] >= 3, "%llu probes", n.probes[0][1]);
	/* it begins with what any new path may have in flight */
	CHECK(n.data[0][1] <= 2 * (MEDGE_RUN_MAX / SEG), "%llu frames", n.data[0][1]);
	do {
		weights[i] = path(&p, 0, 1).weight;
		CHECK(!i || weights[i] > weights[i - 1]);
		while (path(&p, 0, 1).weight == weights[i] && weights[i] < 10000)
			pair_run(&p, pair_now(&p) + 10 * USEC);
	} while (weights[i++] < 10000);
	CHECK(i >= 4, "%u steps", i);
	CHECK(pair_now(&p) < 60 * MSEC);
	pair_finish(&p, SEC);
	pair_free(&p);
}

static void all_carriers_lost__back_to_work_with_the_first(void)
{
	struct pair_params params;
	struct counts n;
	struct pair p;

	pair_params_default(&params, 2);
	start(&p, &n, &params);
	stream(&p, 0, 50, 50 * SEG);
	pair_run(&p, 100 * USEC);
	pair_rail(&p, 0, 0, 0);
	pair_rail(&p, 0, 1, 0);
	pair_run(&p, 5 * SEC);
	pair_rail(&p, 0, 1, 10000);
	pair_finish(&p, 50 * MSEC);
	pair_free(&p);
}

/* Another port in the place of one that has gone. */
static void rail_replaced__its_path_is_new(void)
{
	struct medge_rail_attr attr;
	struct pair_params params;
	struct counts n;
	struct host *h;
	struct pair p;

	pair_params_default(&params, 2);
	start(&p, &n, &params);
	h = &p.host[0];
	stream(&p, 0, 100, 50 * SEG);
	pair_run(&p, MSEC);
	attr = h->me.rails[1];
	attr.id++;
	attr.speed = 2000;
	medge_local_set(&h->me, 1, &attr);
	medge_peer_local(h->remote, &h->me, pair_now(&p));
	CHECK_PATH(&p, 0, 1, PROBING, NEW);
	CHECK_EQ(path(&p, 0, 1).frames, 0);
	pair_poll(&p, 0);
	CHECK(medge_conn_stats(h->conn)->lost_down > 0);
	time_until(&p, 0, 1, MEDGE_PATH_UP, MSEC);
	CHECK_EQ(path(&p, 0, 1).weight, 2000);
	pair_finish(&p, SEC);
	pair_free(&p);
}

static void rails_added__one_after_another(void)
{
	enum { FIRST = 2, ALL = 24 };
	struct pair_params params;
	struct counts n;
	struct pair p;
	u32 i, side;

	pair_params_default(&params, ALL);
	params.nfirst = FIRST;
	start(&p, &n, &params);
	for (i = FIRST; i < ALL; i++) {
		stream(&p, 0, 10, 50 * SEG);
		stream(&p, 1, 10, 50 * SEG);
		pair_run(&p, pair_now(&p) + 100 * USEC);
		for (side = 0; side < 2; side++)
			pair_rail(&p, side, i, params.weight[side][i]);
	}
	pair_finish(&p, SEC);
	for (side = 0; side < 2; side++)
		stream(&p, side, 200, 50 * SEG);
	pair_finish(&p, SEC);
	for (side = 0; side < 2; side++) {
		CHECK_EQ(medge_conn_stats(p.host[side].conn)->retransmits, 0);
		for (i = 0; i < ALL; i++)
			CHECK(n.data[side][i], "side %u rail %u", side, i);
	}
	pair_free(&p);
}

/* What the busiest of @side's first @nrails rails has had since @before, and the one with least. */
static void frames_since(const struct pair *p, u32 side, u32 nrails,
			 const u64 *before, u64 *most, u64 *least)
{
	u64 frames;
	u32 i;

	for (i = *most = 0, *least = ~0ULL; i < nrails; i++) {
		frames = p->net.links[side][i].frames - before[i];
		*most = max(*most, frames);
		*least = min(*least, frames);
	}
}

/*
 * One rail here and several there, all on one switch: all are used, though every
 * answer comes on the one that the other side's only path leads to.
 */
static void unequal__one_switch(void)
{
	u64 before[MEDGE_MAX_RAILS], most, least;
	struct pair_params params;
	struct net_link *links;
	struct counts n;
	struct pair p;
	u32 few, i;

	for (few = 0; few < 2; few++) {
		pair_params_default(&params, 3);
		params.switched = true;
		start(&p, &n, &params);
		links = p.net.links[!few];
		pair_rail_gone(&p, few, 0);
		pair_rail_gone(&p, few, 2);
		stream(&p, 0, 10, 50 * SEG);
		stream(&p, 1, 10, 50 * SEG);
		pair_finish(&p, SEC);
		for (i = 0; i < 3; i++) {
			CHECK_PATH(&p, !few, i, UP, ANSWERED);
			CHECK_EQ(path(&p, !few, i).peer_rail, 1);
			before[i] = links[i].frames;
		}
		stream(&p, !few, 200, 50 * SEG);
		stream(&p, few, 200, 50 * SEG);
		pair_finish(&p, SEC);
		frames_since(&p, !few, 3, before, &most, &least);
		CHECK(least > most * 3 / 4, "%llu frames and %llu", least, most);
		/* The one that answers came on goes. */
		pair_rail(&p, !few, path(&p, few, 1).peer_rail, 0);
		stream(&p, !few, 50, 50 * SEG);
		stream(&p, few, 50, 50 * SEG);
		pair_finish(&p, SEC);
		for (i = 0; i < 2; i++)
			CHECK_EQ(medge_conn_stats(p.host[i].conn)->retransmits, 0);
		pair_free(&p);
	}
}

/*
 * All rails of a bond have its address, and a switch leads to where that was seen
 * last. So answers come by another way than theirs, and not always by the same.
 */
static void bonded__one_switch(void)
{
	enum { SEEDS = 2, FIRST_SEED = 15, WARM_UP = 20, ROUNDS = 60 };
	u32 seed, side, round, i, nrails[2] = { 3, 2 };
	u64 before[2][MEDGE_MAX_RAILS], most, least;
	struct pair_params params;
	struct counts n;
	struct pair p;

	for (seed = FIRST_SEED; seed < FIRST_SEED + SEEDS; seed++) {
		pair_params_default(&params, 3);
		params.seed = seed;
		params.switched = true;
		params.bonded = true;
		for (side = 0; side < 2; side++)
			for (i = 0; i < 3; i++)
				params.link[side][i].jitter_ns = 50 * USEC;
		start(&p, &n, &params);
		pair_rail_gone(&p, 1, 2);
		for (round = 0; round < WARM_UP + ROUNDS; round++) {
			for (side = 0; side < 2 && round == WARM_UP; side++)
				for (i = 0; i < nrails[side]; i++)
					before[side][i] = p.net.links[side][i].frames;
			for (side = 0; side < 2; side++)
				stream(&p, side, 1 + rng_next(&p.rng) % 2,
				       1 + rng_next(&p.rng) % (200 * SEG));
			pair_finish(&p, SEC);
		}
		for (side = 0; side < 2; side++) {
			frames_since(&p, side, nrails[side], before[side],
				     &most, &least);
			CHECK(10 * least >= most,
			      "seed %u: side %u: %llu frames and %llu",
			      seed, side, least, most);
		}
		pair_free(&p);
	}
}

/* ---- silence ---- */

/* @sides: bit 0, 1: whose frames vanish */
static void black_hole(u32 sides)
{
	struct pair_params params;
	struct counts n;
	struct pair p;
	u32 side;

	pair_params_default(&params, 3);
	start(&p, &n, &params);
	stream(&p, 0, 2000, 50 * SEG);
	stream(&p, 1, 2000, 50 * SEG);
	pair_run(&p, 2 * MSEC);
	for (side = 0; side < 2; side++)
		if (sides & 1 << side)
			pair_dark(&p, side, 1, true);
	for (side = 0; side < 2; side++)
		if (sides & 1 << side)
			time_until(&p, side, 1, MEDGE_PATH_DOWN, 20 * MSEC);
	memset(&n, 0, sizeof(n));
	pair_run(&p, pair_now(&p) + 20 * MSEC);
	for (side = 0; side < 2; side++) {
		CHECK(p.host[side].completed < p.host[side].nops);
		if (sides & 1 << side)
			CHECK_EQ(n.data[side][1], 0);
		else
			CHECK_PATH(&p, side, 1, UP, ANSWERED);
	}
	for (side = 0; side < 2; side++)
		pair_dark(&p, side, 1, false);
	for (side = 0; side < 2; side++)
		time_until(&p, side, 1, MEDGE_PATH_UP, 200 * MSEC);
	pair_finish(&p, SEC);
	pair_free(&p);
}

static void black_hole__two_ways(void)
{
	black_hole(3);
}

/* The other direction goes on to be used. */
static void black_hole__one_way(void)
{
	black_hole(1);
	black_hole(2);
}

/* The receiver only acknowledges: it must find out all the same. */
static void black_hole__of_acks(void)
{
	struct pair_params params;
	struct counts n;
	struct pair p;
	u32 i;

	pair_params_default(&params, 2);
	start(&p, &n, &params);
	pair_run(&p, MSEC);
	pair_dark(&p, 1, 1, true);
	for (i = 0; i < 20; i++) {
		stream(&p, 0, 1, 100);
		pair_run(&p, pair_now(&p) + 2 * MSEC);
	}
	CHECK(path(&p, 1, 1).state == MEDGE_PATH_DOWN, "%s",
	      medge_path_state_name(path(&p, 1, 1).state));
	pair_finish(&p, SEC);
	CHECK_EQ(p.host[0].completed, 20);
	pair_free(&p);
}

/* Who only acknowledges uses its paths, too: they are asked as long as it does. */
static void black_hole__of_acks_ends(void)
{
	struct pair_params params;
	struct counts n;
	struct pair p;
	u32 i;

	pair_params_default(&params, 2);
	start(&p, &n, &params);
	pair_run(&p, MSEC);
	pair_dark(&p, 1, 1, true);
	for (i = 0; i < 1500; i++) {
		stream(&p, 0, 1, 100);
		pair_run(&p, pair_now(&p) + 2 * MSEC);
	}
	CHECK(path(&p, 1, 1).state == MEDGE_PATH_DOWN, "%s",
	      medge_path_state_name(path(&p, 1, 1).state));
	pair_dark(&p, 1, 1, false);
	for (i = 0; i < 1000; i++) {
		stream(&p, 0, 1, 100);
		pair_run(&p, pair_now(&p) + 2 * MSEC);
	}
	CHECK_PATH(&p, 1, 1, UP, ANSWERED);
	pair_finish(&p, SEC);
	pair_free(&p);
}

/* It is not the paths: they are suspected, and none is worse than the other. */
static void peer_stands_still__no_path_is_down(void)
{
	struct pair_params params;
	struct counts n;
	struct pair p;
	u32 i;

	pair_params_default(&params, 2);
	start(&p, &n, &params);
	stream(&p, 0, 400, 50 * SEG);
	pair_run(&p, MSEC);
	for (i = 0; i < 4; i++)
		pair_dark(&p, i / 2, i % 2, true);
	pair_run(&p, pair_now(&p) + 300 * MSEC);
	for (i = 0; i < 2; i++)
		CHECK(path(&p, 0, i).state == MEDGE_PATH_SUSPECT, "%s",
		      medge_path_state_name(path(&p, 0, i).state));
	for (i = 0; i < 4; i++)
		pair_dark(&p, i / 2, i % 2, false);
	for (i = 0; i < 2; i++)
		time_until(&p, 0, i, MEDGE_PATH_UP, SEC);
	CHECK_EQ(path(&p, 0, 0).weight, 10000);
	pair_finish(&p, SEC);
	pair_free(&p);
}

/* ---- loss, flapping ---- */

static void lossy__used_less_then_not_at_all(void)
{
	struct pair_params params;
	struct counts n;
	struct pair p;
	u64 data;

	pair_params_default(&params, 2);
	params.link[0][1].loss_ppm = 50000;
	start(&p, &n, &params);
	stream(&p, 0, 6000, 50 * SEG);
	pair_run(&p, 40 * MSEC);
	CHECK_PATH(&p, 0, 1, UP, ANSWERED);
	CHECK(path(&p, 0, 1).weight < 9500 && path(&p, 0, 1).weight > 5000,
	      "weight %u, loss %u ppm", path(&p, 0, 1).weight,
	      path(&p, 0, 1).loss_ppm);
	CHECK(path(&p, 0, 0).weight > 9800, "%u", path(&p, 0, 0).weight);
	p.net.links[0][1].cfg.loss_ppm = 500000;
	time_until(&p, 0, 1, MEDGE_PATH_DOWN, 80 * MSEC);
	/* as little as is in flight on it, all of that may be lost in a row */
	CHECK(path(&p, 0, 1).why == MEDGE_WHY_LOSSY ||
	      path(&p, 0, 1).why == MEDGE_WHY_SILENT, "%s",
	      medge_path_why_name(path(&p, 0, 1).why));
	data = n.data[0][1];
	pair_run(&p, pair_now(&p) + 5 * MSEC);
	CHECK_EQ(n.data[0][1], data);
	p.net.links[0][1].cfg.loss_ppm = 0;
	pair_finish(&p, SEC);
	pair_free(&p);
}

/* All lose: then there is no better way, and all are used. */
static void lossy__all_are_used(void)
{
	struct pair_params params;
	struct counts n;
	struct pair p;
	u32 i;

	pair_params_default(&params, 2);
	for (i = 0; i < 2; i++)
		params.link[0][i].loss_ppm = 300000;
	start(&p, &n, &params);
	stream(&p, 0, 400, 50 * SEG);
	pair_run(&p, 30 * MSEC);
	for (i = 0; i < 2; i++)
		CHECK(path(&p, 0, i).state != MEDGE_PATH_DOWN);
	pair_finish(&p, 10 * SEC);
	pair_free(&p);
}

static void flapping__is_trusted_ever_later(void)
{
	struct pair_params params;
	struct counts n;
	struct pair p;
	u64 took[5];
	u32 i;

	pair_params_default(&params, 2);
	/* Slow, so that they are busy for long with little. */
	for (i = 0; i < 4; i++)
		params.link[i / 2][i % 2].rate = SEC;
	start(&p, &n, &params);
	stream(&p, 0, 2000, 50 * SEG);
	pair_run(&p, 5 * MSEC);
	for (i = 0; i < 5; i++) {
		pair_rail(&p, 0, 1, 0);
		pair_run(&p, pair_now(&p) + 3 * MSEC);
		pair_rail(&p, 0, 1, 10000);
		took[i] = time_until(&p, 0, 1, MEDGE_PATH_UP, SEC);
		pair_run(&p, pair_now(&p) + 10 * MSEC);
		CHECK(p.host[0].completed < p.host[0].nops);
	}
	CHECK(took[0] < 5 * MSEC, "%llu", took[0]);
	for (i = 2; i < 5; i++)
		CHECK(took[i] > took[i - 1] * 3 / 2, "%llu after %llu", took[i],
		      took[i - 1]);
	pair_finish(&p, 10 * SEC);
	/* After a quiet time all is forgotten. */
	p.events.now += 20 * SEC;
	pair_rail(&p, 0, 1, 0);
	pair_rail(&p, 0, 1, 10000);
	stream(&p, 0, 1, 10);
	time_until(&p, 0, 1, MEDGE_PATH_UP, 5 * MSEC);
	pair_finish(&p, 10 * SEC);
	pair_free(&p);
}

/* ---- the administrator ---- */

static void drained__by_either_side(void)
{
	struct pair_params params;
	struct counts n;
	struct pair p;
	u32 side;

	for (side = 0; side < 2; side++) {
		pair_params_default(&params, 2);
		start(&p, &n, &params);
		stream(&p, 0, 1000, 50 * SEG);
		stream(&p, 1, 1000, 50 * SEG);
		pair_run(&p, MSEC);
		pair_drain(&p, side, 1, true);
		CHECK_PATH(&p, side, 1, DRAINING, ADMIN);
		time_until(&p, !side, 1, MEDGE_PATH_DRAINING, MSEC);
		/* what is on its way arrives */
		pair_run(&p, pair_now(&p) + 2 * MSEC);
		memset(&n, 0, sizeof(n));
		pair_run(&p, pair_now(&p) + 5 * MSEC);
		CHECK_EQ(n.data[0][1] + n.data[1][1], 0);
		CHECK_EQ(medge_conn_stats(p.host[0].conn)->lost_down, 0);
		pair_drain(&p, side, 1, false);
		time_until(&p, 0, 1, MEDGE_PATH_UP, 5 * MSEC);
		time_until(&p, 1, 1, MEDGE_PATH_UP, 5 * MSEC);
		pair_finish(&p, SEC);
		pair_free(&p);
	}
}

/* Better than not at all. */
static void drained__the_last_one_still_carries(void)
{
	struct pair_params params;
	struct counts n;
	struct pair p;

	pair_params_default(&params, 1);
	start(&p, &n, &params);
	pair_drain(&p, 0, 0, true);
	stream(&p, 0, 10, 50 * SEG);
	pair_finish(&p, SEC);
	pair_free(&p);
}

/* ---- what it costs ---- */

static void idle__costs_nothing(void)
{
	struct pair_params params;
	struct counts n;
	struct pair p;
	u64 before;

	pair_params_default(&params, 4);
	start(&p, &n, &params);
	stream(&p, 0, 10, 50 * SEG);
	pair_finish(&p, SEC);
	before = n.all;
	CHECK(medge_peer_deadline(p.host[0].remote) == MEDGE_NEVER);
	CHECK(pair_run(&p, 1000 * SEC));
	CHECK_EQ(n.all, before);
	pair_free(&p);
}

/* Nobody is there who would use it. */
static void idle__a_dead_path_is_not_asked_for_long(void)
{
	struct pair_params params;
	struct counts n;
	struct pair p;
	u64 probes;

	pair_params_default(&params, 2);
	start(&p, &n, &params);
	stream(&p, 0, 2000, 50 * SEG);
	pair_run(&p, MSEC);
	pair_dark(&p, 0, 1, true);
	pair_finish(&p, SEC);
	CHECK(path(&p, 0, 1).state == MEDGE_PATH_DOWN);
	probes = n.probes[0][1];
	CHECK(probes < 30, "%llu", probes);
	pair_run(&p, pair_now(&p) + 100 * SEC);
	CHECK_EQ(n.probes[0][1], probes);
	/* With the next traffic it is asked at once, and comes back. */
	pair_dark(&p, 0, 1, false);
	stream(&p, 0, 2000, 50 * SEG);
	time_until(&p, 0, 1, MEDGE_PATH_UP, 5 * MSEC);
	pair_finish(&p, SEC);
	pair_free(&p);
}

/* ---- lies ---- */

static void forged__is_not_believed(void)
{
	struct pair_params params;
	struct medge_probe r;
	struct counts n;
	struct pair p;
	u32 i;

	pair_params_default(&params, 2);
	start(&p, &n, &params);
	CHECK(pair_run(&p, SEC));
	for (i = 0; i < 1000; i++) {
		struct medge_probe q = {
			.type = MEDGE_FRAME_PROBE,
			.rail = i % 2,
			.nonce = rng_next(&p.rng),
			.generation = rng_next(&p.rng) | 1,
		};

		memcpy(q.node, p.host[1].me.node, MEDGE_MAC_LEN);
		memcpy(q.to, p.host[0].me.node, MEDGE_MAC_LEN);
		/* a list without rails */
		r = q;
		r.type = MEDGE_FRAME_REPLY;
		r.flags = MEDGE_PROBE_LAST;
		CHECK(!medge_peer_replied(p.host[0].remote, pair_now(&p), &r));
		/* It makes us ask, that is all; and not for ever. */
		medge_peer_probed(p.host[0].remote, pair_now(&p), 0, &q);
	}
	CHECK(pair_run(&p, pair_now(&p) + 100 * SEC));
	for (i = 0; i < 2; i++)
		CHECK_PATH(&p, 0, i, UP, ANSWERED);
	CHECK(n.all < 100, "%llu frames", n.all);
	pair_free(&p);
}

/* ---- the own node ---- */

static void local__rails_that_change(void)
{
	struct medge_rail_attr rail = { .flags = MEDGE_PORT_UP, .mac = { 2 },
					.speed = 1000, .id = 1 };
	static const u8 none[MEDGE_MAC_LEN];
	struct medge_local me = { .generation = ~0u };

	CHECK(!medge_local_set(&me, MEDGE_MAX_RAILS, &rail));
	CHECK(medge_local_set(&me, 3, &rail));
	/* 0 stands for none */
	CHECK_EQ(me.generation, 1);
	CHECK(!medge_local_set(&me, 3, &rail));
	CHECK(medge_local_set(&me, 3, NULL));
	CHECK_EQ(me.generation, 2);
	CHECK(!memcmp(me.rails[3].mac, none, MEDGE_MAC_LEN));
}

/* A rail whose speed nobody knows: none of them counts. */
static void weight__of_unknown_speeds(void)
{
	static const u8 node[MEDGE_MAC_LEN] = { 2, 1 };
	struct medge_rail_attr rail = { .flags = MEDGE_PORT_UP, .mac = { 2 },
					.speed = 1000, .id = 1 };
	struct medge_peer *peer = calloc(1, medge_peer_size());
	struct medge_path_info info[2];
	struct medge_local me = { };
	u32 i;

	medge_local_set(&me, 0, &rail);
	rail.id = 2;
	rail.speed = 0;
	medge_local_set(&me, 1, &rail);
	medge_peer_init(peer, node, &me, 1, 0);
	for (i = 0; i < 2; i++)
		CHECK(medge_peer_path(peer, i, &info[i]));
	CHECK_EQ(info[0].weight, info[1].weight);
	CHECK(!medge_peer_path(peer, 2, &info[0]));
	/* each is to be asked, now */
	CHECK_EQ(medge_peer_deadline(peer), 0);
	i = medge_peer_changes(peer);
	medge_local_set(&me, 1, NULL);
	medge_peer_local(peer, &me, 1);
	CHECK(medge_peer_changes(peer) != i);
	CHECK(!medge_peer_path(peer, 1, &info[1]));
	free(peer);
}

/* The host's rails 0 and 2: there never was a path on its rail 1. */
static void local__a_gap_is_no_path(void)
{
	struct pair_params params;
	struct medge_peer *peer;
	struct pair p;
	u32 generation;

	pair_params_default(&params, 3);
	pair_init(&p, &params);
	pair_rail_gone(&p, 0, 1);
	peer = calloc(1, medge_peer_size());
	medge_peer_init(peer, p.host[1].me.node, &p.host[0].me, 1, 0);
	generation = medge_peer_generation(peer);
	medge_peer_timeout(peer, MSEC);
	CHECK_EQ(medge_peer_generation(peer), generation);
	free(peer);
	pair_free(&p);
}

int main(int argc, char **argv)
{
	direct_begin(argc, argv);
	RUN(new__up_after_a_round_trip);
	RUN(new__data_does_not_wait);
	RUN(new__rails_crossed_are_found);
	RUN(list__comes_in_parts);
	RUN(nowhere__is_found_out);
	RUN(carrier_lost__both_sides_know);
	RUN(carrier_back__asked_then_used_more_and_more);
	RUN(all_carriers_lost__back_to_work_with_the_first);
	RUN(rail_replaced__its_path_is_new);
	RUN(rails_added__one_after_another);
	RUN(unequal__one_switch);
	RUN(bonded__one_switch);
	RUN(black_hole__two_ways);
	RUN(black_hole__one_way);
	RUN(black_hole__of_acks);
	RUN(black_hole__of_acks_ends);
	RUN(peer_stands_still__no_path_is_down);
	RUN(lossy__used_less_then_not_at_all);
	RUN(lossy__all_are_used);
	RUN(flapping__is_trusted_ever_later);
	RUN(drained__by_either_side);
	RUN(drained__the_last_one_still_carries);
	RUN(idle__costs_nothing);
	RUN(idle__a_dead_path_is_not_asked_for_long);
	RUN(forged__is_not_believed);
	RUN(local__rails_that_change);
	RUN(local__a_gap_is_no_path);
	RUN(weight__of_unknown_speeds);
	return direct_end("test_peer");
}
