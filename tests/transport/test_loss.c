/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Loss: what counts as one, how soon it is mended, what a dead rail costs. */
#include "direct.h"

enum { SEG = 1024 };

struct losses {
	u32 drop[8];		/* psn offsets of side 0, dropped at first */
	u32 ndrop;
	u32 times;		/* each; 0: once */
	u32 dropped;
	u64 rail_frames[MEDGE_MAX_RAILS];	/* data of side 0 */
};

static const struct medge_conn_stats *stats(struct pair *p, u32 side)
{
	return medge_conn_stats(p->host[side].conn);
}

static enum net_verdict lose(struct pair *p, const struct seen *seen,
			     u64 *delay, void *user)
{
	struct losses *l = user;
	u32 i;

	if (seen->side || seen->f.type != MEDGE_FRAME_DATA)
		return NET_PASS;
	l->rail_frames[seen->rail]++;
	for (i = 0; i < l->ndrop; i++) {
		if (seen->f.psn - p->params.cfg[0].psn != l->drop[i])
			continue;
		if (!seen->first && l->dropped >= l->times)
			continue;
		l->dropped++;
		return NET_DROP;
	}
	return NET_PASS;
}

static void start(struct pair *p, struct watch *w, struct losses *l,
		  struct pair_params *params)
{
	pair_init(p, params);
	watch_frames(w, p, lose, l);
}

static void write_some(struct pair *p, u32 side, u32 bytes)
{
	struct medge_request req = req_write(REGION_RELAXED, 0, bytes,
					     MEDGE_OP_STRICT);

	host_post(&p->host[side], &req);
}

/* Writes that together are longer than any region. */
static void stream(struct pair *p, u32 side, u32 count)
{
	while (count--)
		write_some(p, side, 200 * SEG);
	pair_poll(p, side);
}

static void reordering_across_rails__is_no_loss(void)
{
	static const u64 delays[] = { 20 * USEC, 700 * USEC, 100 * USEC, 400 * USEC };
	struct pair_params params;
	struct losses l = { };
	struct watch w;
	struct pair p;
	u32 side, i;

	pair_params_default(&params, 4);
	for (side = 0; side < 2; side++)
		for (i = 0; i < 4; i++)
			params.link[side][i].delay_ns = delays[i];
	start(&p, &w, &l, &params);
	stream(&p, 0, 40);
	stream(&p, 1, 40);
	pair_finish(&p, 10 * SEC);
	for (side = 0; side < 2; side++) {
		CHECK_EQ(stats(&p, side)->retransmits, 0);
		CHECK_EQ(stats(&p, side)->dups, 0);
	}
	for (i = 0; i < 4; i++)
		CHECK(l.rail_frames[i] > 100, "rail %u: %llu", i, l.rail_frames[i]);
	pair_free(&p);
}

static void one_lost_frame__is_sent_once_more(void)
{
	static const u64 delays[] = { 20 * USEC, 500 * USEC, 200 * USEC };
	struct pair_params params;
	struct losses l = { .drop = { 50 }, .ndrop = 1 };
	struct watch w;
	struct pair p;
	u32 side, i;

	pair_params_default(&params, 3);
	for (side = 0; side < 2; side++)
		for (i = 0; i < 3; i++)
			params.link[side][i].delay_ns = delays[i];
	start(&p, &w, &l, &params);
	stream(&p, 0, 2);
	pair_finish(&p, 10 * SEC);
	CHECK_EQ(l.dropped, 1);
	CHECK_EQ(stats(&p, 0)->retransmits, 1);
	CHECK_EQ(stats(&p, 1)->dups, 0);
	CHECK_EQ(stats(&p, 0)->lost_rto, 0);
	pair_free(&p);
}

static void lost_again__is_sent_again(void)
{
	struct pair_params params;
	struct losses l = { .drop = { 5, 6 }, .ndrop = 2, .times = 8 };
	struct watch w;
	struct pair p;

	pair_params_default(&params, 2);
	start(&p, &w, &l, &params);
	stream(&p, 0, 1);
	pair_finish(&p, 10 * SEC);
	CHECK(l.dropped >= 8);
	CHECK(stats(&p, 0)->retransmits <= 20, "%llu",
	      stats(&p, 0)->retransmits);
	pair_free(&p);
}

static void lost_tail__is_probed_before_the_timeout(void)
{
	struct pair_params params;
	struct losses l = { .drop = { 199 }, .ndrop = 1 };
	struct watch w;
	struct pair p;

	pair_params_default(&params, 2);
	start(&p, &w, &l, &params);
	stream(&p, 0, 1);
	CHECK(pair_run(&p, SEC));
	pair_check_done(&p, 0);
	CHECK_EQ(l.dropped, 1);
	CHECK(stats(&p, 0)->probes >= 1);
	CHECK_EQ(stats(&p, 0)->lost_rto, 0);
	CHECK(pair_now(&p) < 10 * MSEC, "took %llu ns", pair_now(&p));
	pair_free(&p);
}

static void lost_only_frame__is_probed_before_the_timeout(void)
{
	struct pair_params params;
	struct losses l = { .drop = { 0 }, .ndrop = 1 };
	struct watch w;
	struct pair p;

	pair_params_default(&params, 1);
	start(&p, &w, &l, &params);
	write_some(&p, 0, 10);
	pair_poll(&p, 0);
	CHECK(pair_run(&p, SEC));
	pair_check_done(&p, 0);
	CHECK_EQ(stats(&p, 0)->lost_rto, 0);
	CHECK(pair_now(&p) < 10 * MSEC, "took %llu ns", pair_now(&p));
	pair_free(&p);
}

/* One little write, and nothing else. Return: how long it takes. */
static u64 write_alone(struct pair *p)
{
	u64 began = pair_now(p);

	write_some(p, 0, 10);
	pair_poll(p, 0);
	pair_finish(p, began + SEC);
	return pair_now(p) - began;
}

/* The same, and its frame is lost. */
static u64 write_lost(struct pair *p, struct losses *l, u32 psn)
{
	u64 took;

	l->drop[0] = psn;
	l->ndrop = 1;
	l->times = l->dropped;
	took = write_alone(p);
	CHECK_EQ(l->dropped, l->times + 1);
	return took;
}

/* While nothing is lost its timer need not fire so often. */
static void lost_only_frame__is_missed_sooner_after_another(void)
{
	struct pair_params params;
	struct losses l = { };
	struct watch w;
	struct pair p;
	u64 took;
	u32 psn;

	pair_params_default(&params, 1);
	start(&p, &w, &l, &params);
	for (psn = 0; pair_now(&p) < 50 * MSEC; psn++)
		write_alone(&p);
	took = write_lost(&p, &l, psn);
	CHECK(took > 4 * MSEC && took < 5 * MSEC, "%llu ns", took);
	took = write_lost(&p, &l, psn + 1);
	CHECK(took > MSEC && took < 2 * MSEC, "%llu ns", took);
	CHECK_EQ(stats(&p, 0)->lost_rto, 0);
	pair_free(&p);
}

static void lost_ack__costs_one_probe(void)
{
	struct pair_params params;
	struct losses l = { };
	struct watch w;
	struct pair p;

	pair_params_default(&params, 1);
	start(&p, &w, &l, &params);
	write_some(&p, 0, 10);
	pair_poll(&p, 0);
	pair_dark(&p, 1, 0, true);
	CHECK(!pair_run(&p, 100 * USEC));
	CHECK_EQ(p.host[0].completed, 0);
	pair_dark(&p, 1, 0, false);
	pair_finish(&p, SEC);
	CHECK_EQ(stats(&p, 0)->probes, 1);
	CHECK_EQ(stats(&p, 0)->retransmits, 0);
	CHECK_EQ(stats(&p, 1)->dups, 0);
	pair_free(&p);
}

/* How long one waited for an ack that was lost is not how far the peer is. */
static void lost_acks__say_nothing_of_the_distance(void)
{
	struct pair_params params;
	struct losses l = { };
	struct watch w;
	struct pair p;
	u32 i;

	pair_params_default(&params, 1);
	for (i = 0; i < 2; i++)
		params.link[i][0].loss_ppm = 200000;
	start(&p, &w, &l, &params);
	for (i = 0; i < 100; i++) {
		write_some(&p, 0, 4 * SEG);
		pair_poll(&p, 0);
		CHECK(pair_run(&p, 10 * SEC));
	}
	CHECK(pair_now(&p) < 2 * SEC, "100 writes take %llu ms",
	      pair_now(&p) / 1000000);
	pair_free(&p);
}

/* A little loss on each rail: nothing much is sent without need. */
static void two_percent_loss__little_is_sent_in_vain(void)
{
	struct pair_params params;
	struct losses l = { };
	struct watch w;
	struct pair p;
	u64 lost = 0;
	u32 side, i;

	pair_params_default(&params, 2);
	for (side = 0; side < 2; side++)
		for (i = 0; i < 2; i++)
			params.link[side][i].loss_ppm = 20000;
	start(&p, &w, &l, &params);
	stream(&p, 0, 40);
	pair_finish(&p, 10 * SEC);
	for (i = 0; i < 2; i++)
		lost += p.net.links[0][i].dropped;
	CHECK(lost > 50);
	CHECK(stats(&p, 0)->retransmits <= lost + lost / 4 + 10,
	      "%llu lost, %llu sent again", lost, stats(&p, 0)->retransmits);
	CHECK_EQ(stats(&p, 0)->lost_rto, 0);
	pair_free(&p);
}

/* As tc netem does to a rail, and more of it than a rail would. */
static void lost_doubled_reordered__little_is_sent_in_vain(void)
{
	struct pair_params params;
	struct losses l = { };
	struct watch w;
	struct pair p;
	u64 lost = 0;
	u32 side, i;

	pair_params_default(&params, 2);
	for (side = 0; side < 2; side++)
		for (i = 0; i < 2; i++) {
			struct net_link_cfg *link = &params.link[side][i];

			params.cfg[side].seg_len = 8936;
			link->delay_ns = 50 * USEC;
			link->loss_ppm = 20000;
			link->dup_ppm = 10000;
			link->reorder_ppm = 250000;
			link->reorder_ns = 50 * USEC;
		}
	start(&p, &w, &l, &params);
	stream(&p, 0, 100);
	pair_finish(&p, SEC);
	for (i = 0; i < 2; i++)
		lost += p.net.links[0][i].dropped;
	CHECK(stats(&p, 0)->retransmits <= 5 * lost / 2 + 20,
	      "%llu lost, %llu sent again", lost, stats(&p, 0)->retransmits);
	pair_free(&p);
}

static void carrier_lost__frames_move_at_once(void)
{
	struct pair_params params;
	struct losses l = { };
	struct watch w;
	struct pair p;
	u64 before;

	pair_params_default(&params, 2);
	start(&p, &w, &l, &params);
	stream(&p, 0, 20);
	pair_run(&p, 200 * USEC);
	before = stats(&p, 0)->retransmits;
	CHECK_EQ(before, 0);
	pair_dark(&p, 0, 1, true);
	pair_dark(&p, 1, 1, true);
	pair_rail(&p, 0, 1, 0);
	pair_rail(&p, 1, 1, 0);
	/* no time has passed */
	CHECK(stats(&p, 0)->lost_down > 0);
	CHECK(stats(&p, 0)->retransmits > 0);
	pair_finish(&p, SEC);
	CHECK_EQ(stats(&p, 0)->lost_rto, 0);
	/* 4 MB at 10 Gbit/s are 3.3 ms */
	CHECK(pair_now(&p) < 8 * MSEC, "took %llu ns", pair_now(&p));
	pair_free(&p);
}

static void carrier_back__rail_is_used_again(void)
{
	struct pair_params params;
	struct losses l = { };
	struct watch w;
	struct pair p;
	u64 before;

	pair_params_default(&params, 2);
	start(&p, &w, &l, &params);
	pair_rail(&p, 0, 1, 0);
	stream(&p, 0, 5);
	pair_run(&p, 500 * USEC);
	before = l.rail_frames[0];
	CHECK_EQ(l.rail_frames[1], 0);
	pair_rail(&p, 0, 1, 10000);
	stream(&p, 0, 20);
	pair_finish(&p, SEC);
	/* half of what came since: it does not have to catch up */
	before = l.rail_frames[0] - before;
	CHECK(l.rail_frames[1] > before * 7 / 10 &&
	      l.rail_frames[1] < before * 13 / 10, "%llu and %llu", before,
	      l.rail_frames[1]);
	pair_free(&p);
}

static void all_carriers_lost__goes_on_when_one_is_back(void)
{
	struct pair_params params;
	struct losses l = { };
	struct watch w;
	struct pair p;

	pair_params_default(&params, 2);
	start(&p, &w, &l, &params);
	stream(&p, 0, 5);
	pair_run(&p, 100 * USEC);
	pair_rail(&p, 0, 0, 0);
	pair_rail(&p, 0, 1, 0);
	CHECK(!pair_run(&p, 300 * MSEC));
	CHECK(p.host[0].completed < 5);
	pair_rail(&p, 0, 1, 10000);
	pair_finish(&p, 100 * MSEC);
	pair_free(&p);
}

/* @sides: bit 0, 1: whose frames vanish */
static void black_hole(u32 sides)
{
	struct pair_params params;
	struct losses l = { };
	struct watch w;
	struct pair p;
	u64 at_dark, in_hole;
	u32 side;

	pair_params_default(&params, 2);
	start(&p, &w, &l, &params);
	stream(&p, 0, 200);
	stream(&p, 1, 20);
	pair_run(&p, 500 * USEC);
	at_dark = l.rail_frames[1];
	for (side = 0; side < 2; side++)
		if (sides & 1 << side)
			pair_dark(&p, side, 1, true);
	/* 40 MB at 10 Gbit/s are 33 ms */
	pair_finish(&p, 150 * MSEC);
	in_hole = l.rail_frames[1] - at_dark;
	if (sides & 1)
		CHECK(in_hole < 4 * MEDGE_WINDOW, "%llu frames into the hole",
		      in_hole);
	pair_free(&p);
}

static void black_hole__two_ways(void)
{
	black_hole(3);
}

static void black_hole__way_out(void)
{
	black_hole(1);
}

static void black_hole__way_back(void)
{
	black_hole(2);
}

/* One message, whose only ack would take the dead rail: it must not for ever. */
static void black_hole__of_acks(void)
{
	struct pair_params params;
	struct losses l = { };
	struct watch w;
	struct pair p;
	u32 rail;

	for (rail = 0; rail < 2; rail++) {
		pair_params_default(&params, 2);
		start(&p, &w, &l, &params);
		pair_dark(&p, 1, rail, true);
		write_some(&p, 0, 10);
		write_some(&p, 0, 10000);
		pair_poll(&p, 0);
		pair_finish(&p, 100 * MSEC);
		pair_free(&p);
	}
}

/* Bytes in one direction while the other's rails all but one are dark. */
static void black_hole__of_all_rails_but_one(void)
{
	struct pair_params params;
	struct losses l = { };
	struct watch w;
	struct pair p;
	u32 rail;

	pair_params_default(&params, 8);
	start(&p, &w, &l, &params);
	for (rail = 0; rail < 7; rail++) {
		pair_dark(&p, 0, rail, true);
		pair_dark(&p, 1, (rail + 3) % 8, true);
	}
	stream(&p, 0, 10);
	stream(&p, 1, 10);
	pair_finish(&p, 2 * SEC);
	pair_free(&p);
}

static void black_hole_ends__rail_is_tried_and_used(void)
{
	struct pair_params params;
	struct losses l = { };
	struct watch w;
	struct pair p;
	u64 before, other;

	pair_params_default(&params, 2);
	start(&p, &w, &l, &params);
	pair_dark(&p, 0, 1, true);
	stream(&p, 0, 100);
	pair_run(&p, 15 * MSEC);
	pair_dark(&p, 0, 1, false);
	stream(&p, 0, 4000);
	/* time for a trial */
	pair_run(&p, 300 * MSEC);
	CHECK(p.host[0].completed < p.host[0].nops);
	before = l.rail_frames[1];
	other = l.rail_frames[0];
	pair_run(&p, 310 * MSEC);
	before = l.rail_frames[1] - before;
	other = l.rail_frames[0] - other;
	CHECK(before > other * 8 / 10, "%llu frames, %llu on the other", before,
	      other);
	pair_finish(&p, 10 * SEC);
	pair_free(&p);
}

/* What retry_cnt and timeout promise, within what timers and backoff add. */
static void nobody_there__ends_after_the_retries(void)
{
	struct pair_params params;
	struct losses l = { };
	struct watch w;
	struct pair p;
	struct host *h = &p.host[0];
	u64 limit = 8 * 67 * MSEC;

	pair_params_default(&params, 2);
	params.cfg[0].timeout_ns = 67 * MSEC;
	params.cfg[0].retry_cnt = 7;
	start(&p, &w, &l, &params);
	pair_dark(&p, 0, 0, true);
	pair_dark(&p, 0, 1, true);
	write_some(&p, 0, 5000);
	write_some(&p, 0, 10);
	pair_poll(&p, 0);
	CHECK(!pair_run(&p, limit - MSEC));
	CHECK(!h->failed, "gave up at once");
	pair_run(&p, 4 * limit);
	CHECK(h->failed);
	CHECK_EQ(h->completed, 1);
	CHECK_EQ(h->ops[0].status, MEDGE_RETRY_EXCEEDED);
	pair_free(&p);
}

static void no_carrier__ends_after_the_retries(void)
{
	struct pair_params params;
	struct losses l = { };
	struct watch w;
	struct pair p;

	pair_params_default(&params, 1);
	params.cfg[0].timeout_ns = 10 * MSEC;
	params.cfg[0].retry_cnt = 1;
	start(&p, &w, &l, &params);
	pair_rail(&p, 0, 0, 0);
	write_some(&p, 0, 10);
	pair_poll(&p, 0);
	pair_run(&p, SEC);
	CHECK(p.host[0].failed);
	CHECK_EQ(p.host[0].ops[0].status, MEDGE_RETRY_EXCEEDED);
	pair_free(&p);
}

static void no_answer__to_a_read_ends_after_the_retries(void)
{
	struct medge_request req = req_read(REGION_STRICT, 0, 100);
	struct pair_params params;
	struct losses l = { };
	struct watch w;
	struct pair p;

	pair_params_default(&params, 1);
	params.cfg[0].timeout_ns = 10 * MSEC;
	start(&p, &w, &l, &params);
	host_post(&p.host[0], &req);
	pair_poll(&p, 0);
	pair_run(&p, 10 * USEC);
	/* The request will arrive, but nothing comes back. */
	pair_dark(&p, 1, 0, true);
	pair_run(&p, SEC);
	CHECK(p.host[0].failed);
	CHECK_EQ(p.host[0].ops[0].status, MEDGE_RETRY_EXCEEDED);
	pair_free(&p);
}

/* Where one sends for many: of what has yet to be sent, the peer is not asked. */
static void sent_late__is_not_the_peers_silence(void)
{
	struct pair_params params;
	struct losses l = { };
	struct watch w;
	struct pair p;
	u32 i;

	pair_params_default(&params, 2);
	params.cfg[0].timeout_ns = 10 * MSEC;
	params.cfg[0].retry_cnt = 1;
	start(&p, &w, &l, &params);
	stream(&p, 0, 1);
	pair_finish(&p, SEC);
	write_some(&p, 0, 5000);
	host_submit(&p.host[0]);
	for (i = 0; i < 10; i++) {
		p.events.now += 50 * MSEC;
		medge_conn_timeout(p.host[0].conn, pair_now(&p));
	}
	CHECK(!p.host[0].failed);
	pair_poll(&p, 0);
	pair_finish(&p, SEC);
	CHECK_EQ(p.host[0].count.acks_sent, 0);
	CHECK_EQ(stats(&p, 0)->probes, 0);
	pair_free(&p);
}

/* Timeout 0: it may take for ever, and then goes on. */
static void infinite_timeout__outlives_a_minute(void)
{
	struct pair_params params;
	struct losses l = { };
	struct watch w;
	struct pair p;

	pair_params_default(&params, 1);
	params.cfg[0].retry_cnt = 0;
	start(&p, &w, &l, &params);
	pair_dark(&p, 0, 0, true);
	write_some(&p, 0, 5000);
	pair_poll(&p, 0);
	CHECK(!pair_run(&p, 60 * SEC));
	CHECK(p.host[0].count.frames_sent < 1000, "%llu frames for nobody",
	      p.host[0].count.frames_sent);
	pair_dark(&p, 0, 0, false);
	pair_finish(&p, 3 * SEC);
	pair_free(&p);
}

int main(int argc, char **argv)
{
	direct_begin(argc, argv);
	RUN(reordering_across_rails__is_no_loss);
	RUN(one_lost_frame__is_sent_once_more);
	RUN(lost_again__is_sent_again);
	RUN(lost_tail__is_probed_before_the_timeout);
	RUN(lost_only_frame__is_probed_before_the_timeout);
	RUN(lost_only_frame__is_missed_sooner_after_another);
	RUN(lost_ack__costs_one_probe);
	RUN(lost_acks__say_nothing_of_the_distance);
	RUN(two_percent_loss__little_is_sent_in_vain);
	RUN(lost_doubled_reordered__little_is_sent_in_vain);
	RUN(carrier_lost__frames_move_at_once);
	RUN(carrier_back__rail_is_used_again);
	RUN(all_carriers_lost__goes_on_when_one_is_back);
	RUN(black_hole__two_ways);
	RUN(black_hole__way_out);
	RUN(black_hole__way_back);
	RUN(black_hole__of_acks);
	RUN(black_hole__of_all_rails_but_one);
	RUN(black_hole_ends__rail_is_tried_and_used);
	RUN(nobody_there__ends_after_the_retries);
	RUN(no_carrier__ends_after_the_retries);
	RUN(no_answer__to_a_read_ends_after_the_retries);
	RUN(sent_late__is_not_the_peers_silence);
	RUN(infinite_timeout__outlives_a_minute);
	return direct_end("test_loss");
}
