/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Receiver not ready: who waits, for how long, and who does not. */
#include "direct.h"


static void start(struct pair *p, u8 rnr_retry, u8 rnr_timer)
{
	struct pair_params params;

	pair_params_default(&params, 2);
	params.cfg[0].rnr_retry = rnr_retry;
	params.cfg[1].rnr_timer = rnr_timer;
	pair_init(p, &params);
}

static void send(struct pair *p, u32 len)
{
	struct medge_request req = req_send(len, MEDGE_OP_STRICT);

	pair_post(p, 0, &req);
}

static const struct medge_conn_stats *stats(struct pair *p, u32 side)
{
	return medge_conn_stats(p->host[side].conn);
}

static void send__is_delivered_when_a_receive_comes(void)
{
	struct pair p;

	start(&p, 7, 14);	/* 1.28 ms */
	send(&p, 5000);
	CHECK(!pair_run(&p, 500 * USEC));
	CHECK(medge_conn_rnr(p.host[1].conn));
	CHECK_EQ(stats(&p, 0)->rnr_naks_received, 1);
	CHECK_EQ(p.host[0].completed, 0);
	host_post_recv(&p.host[1], 5000, false);
	pair_finish(&p, 2 * MSEC);
	CHECK(!medge_conn_rnr(p.host[1].conn));
	pair_free(&p);
}

/* Who waits for a receive is not looked at for each frame that is placed meanwhile. */
static void frames_held__cost_nothing(void)
{
	struct medge_request req = req_write(REGION_RELAXED, 0, 100 * 1024, 0);
	u32 sends = 50, i;
	struct pair p;

	start(&p, 7, 14);
	for (i = 0; i < sends; i++)
		send(&p, 100);
	pair_post(&p, 0, &req);
	pair_run(&p, 500 * USEC);
	CHECK(medge_conn_rnr(p.host[1].conn));
	CHECK_EQ(p.host[0].ops[sends].placed, req.len);
	CHECK(p.host[1].targets < 6 * sends, "%u", p.host[1].targets);
	for (i = 0; i < sends; i++)
		host_post_recv(&p.host[1], 100, false);
	pair_finish(&p, 20 * MSEC);
	pair_free(&p);
}

/* The doorbell of a receive that a frame has found already is of no use. */
static void receive__found_by_a_late_frame(void)
{
	struct pair p;

	start(&p, 7, 14);
	send(&p, 200000);
	while (!medge_conn_rnr(p.host[1].conn))
		pair_run(&p, pair_now(&p) + USEC);
	host_fill_recv(&p.host[1], 200000, false);
	while (medge_conn_rnr(p.host[1].conn))
		pair_run(&p, pair_now(&p) + USEC);
	CHECK_EQ(p.host[0].completed, 0);
	host_ring_recv(&p.host[1]);
	pair_finish(&p, 10 * MSEC);
	pair_free(&p);
}

static void frames_held__are_not_sent_again(void)
{
	struct pair p;

	start(&p, 7, 1);
	send(&p, 20000);
	pair_run(&p, 20 * MSEC);
	host_post_recv(&p.host[1], 20000, false);
	pair_finish(&p, 20 * MSEC);
	CHECK_EQ(stats(&p, 0)->retransmits, 0);
	pair_free(&p);
}

static void later_ops__wait_and_follow(void)
{
	struct medge_request req = req_write(REGION_STRICT, 0, 3000,
					     MEDGE_OP_STRICT);
	struct pair p;

	start(&p, 7, 1);
	send(&p, 100);
	pair_post(&p, 0, &req);
	send(&p, 200);
	pair_run(&p, 5 * MSEC);
	CHECK_EQ(p.host[0].completed, 0);
	host_post_recv(&p.host[1], 100, false);
	pair_run(&p, 10 * MSEC);
	CHECK_EQ(p.host[0].completed, 2);
	host_post_recv(&p.host[1], 200, true);
	pair_finish(&p, 10 * MSEC);
	pair_free(&p);
}

static void write_imm__needs_a_receive_too(void)
{
	struct medge_request req = req_write_imm(REGION_RELAXED, 0, 3000, 0);
	struct pair p;

	start(&p, 7, 1);
	pair_post(&p, 0, &req);
	pair_post(&p, 0, &req);
	pair_run(&p, 5 * MSEC);
	CHECK_EQ(p.host[0].completed, 0);
	CHECK_EQ(p.host[0].ops[0].placed, 3000);
	CHECK(medge_conn_rnr(p.host[1].conn));
	host_post_recv(&p.host[1], 0, false);
	pair_run(&p, 10 * MSEC);
	CHECK_EQ(p.host[0].completed, 1);
	host_post_recv(&p.host[1], 0, false);
	pair_finish(&p, 10 * MSEC);
	pair_free(&p);
}

static void exceeded__after_rnr_retry_naks(void)
{
	u32 retry;

	for (retry = 0; retry < 7; retry++) {
		struct pair p;

		start(&p, retry, 14);
		send(&p, 100);
		send(&p, 100);
		pair_run(&p, 100 * MSEC);
		CHECK(p.host[0].failed, "retry %u", retry);
		CHECK_EQ(p.host[0].completed, 1);
		CHECK_EQ(p.host[0].ops[0].status, MEDGE_RNR_RETRY_EXCEEDED);
		CHECK_EQ(stats(&p, 0)->rnr_naks_received, retry + 1);
		pair_free(&p);
	}
}

/* As patient as asked: each wait is at least the receiver's timer. */
static void exceeded__not_too_soon(void)
{
	struct pair p;

	start(&p, 6, 14);
	send(&p, 100);
	CHECK(!pair_run(&p, 6 * 1280 * USEC));
	CHECK(!p.host[0].failed);
	pair_run(&p, 8 * 1280 * USEC + 20 * MSEC);
	CHECK(p.host[0].failed);
	pair_free(&p);
}

static void count__starts_again_for_each_op(void)
{
	struct pair p;
	u32 i;

	start(&p, 3, 14);
	for (i = 0; i < 5; i++)
		send(&p, 100);
	for (i = 0; i < 5; i++) {
		pair_run(&p, pair_now(&p) + 3 * MSEC);
		CHECK(!p.host[0].failed, "op %u", i);
		host_post_recv(&p.host[1], 100, false);
	}
	pair_finish(&p, 10 * MSEC);
	pair_free(&p);
}

static void retry_7__is_for_ever(void)
{
	struct pair p;

	start(&p, 7, 1);
	send(&p, 100);
	pair_run(&p, 200 * MSEC);
	CHECK(!p.host[0].failed);
	CHECK(stats(&p, 0)->rnr_naks_received > 100);
	host_post_recv(&p.host[1], 100, false);
	pair_finish(&p, 100 * MSEC);
	pair_free(&p);
}

/* A lost NAK or poke costs time, not the op. */
static void naks_lost__op_survives(void)
{
	struct pair_params params;
	struct pair p;
	u32 i;

	pair_params_default(&params, 2);
	for (i = 0; i < 2; i++)
		params.link[0][i].loss_ppm = params.link[1][i].loss_ppm = 300000;
	params.cfg[0].rnr_retry = 6;
	params.cfg[1].rnr_timer = 20;	/* 10 ms */
	pair_init(&p, &params);
	send(&p, 3000);
	pair_run(&p, 30 * MSEC);
	host_post_recv(&p.host[1], 3000, false);
	pair_finish(&p, SEC);
	pair_free(&p);
}

/*
 * Side 0's SEND is stuck. Its acks of what side 1 writes, and its answers to
 * what side 1 reads, go the same way and must not be.
 */
static void acks__go_past_a_blocked_send(void)
{
	struct medge_request req = req_write(REGION_STRICT, 0, 100 * 1024,
					     MEDGE_OP_STRICT);
	struct pair p;
	u64 start_at;
	u32 i;

	start(&p, 7, 20);
	send(&p, 100000);
	pair_run(&p, 5 * MSEC);
	start_at = pair_now(&p);
	for (i = 0; i < 20; i++)
		pair_post(&p, 1, &req);
	/* 2 MB at 20 Gbit/s are 0.8 ms */
	pair_run(&p, start_at + 4 * MSEC);
	CHECK_EQ(p.host[1].completed, 20);
	CHECK_EQ(p.host[0].completed, 0);
	CHECK_EQ(stats(&p, 1)->lost_rto, 0);
	host_post_recv(&p.host[1], 100000, false);
	pair_finish(&p, 50 * MSEC);
	pair_free(&p);
}

/* Data says how far its sender is, but not that a receive has come: that is not to wait. */
static void receive__is_told_of_though_there_is_data(void)
{
	struct medge_request req = req_write(REGION_STRICT, 0, 100,
					     MEDGE_OP_STRICT);
	struct pair_params params;
	struct pair p;

	pair_params_default(&params, 1);
	params.cfg[0].rnr_retry = 7;
	params.cfg[1].rnr_timer = 20;	/* 10 ms */
	params.region_len = 1 << 20;
	pair_init(&p, &params);
	send(&p, 1 << 20);
	pair_run(&p, 2 * MSEC);
	CHECK(medge_conn_rnr(p.host[1].conn));
	host_post(&p.host[1], &req);
	host_post_recv(&p.host[1], 1 << 20, false);
	/* 1 MB at 10 Gbit/s are 0.9 ms; he would ask after 10 */
	pair_run(&p, 5 * MSEC);
	CHECK_EQ(p.host[0].completed, 1);
	pair_finish(&p, SEC);
	pair_free(&p);
}

static void responses__go_past_a_blocked_send(void)
{
	struct medge_request req = req_read(REGION_STRICT, 0, 100 * 1024);
	struct medge_request add = req_fetch_add(1);
	struct pair p;
	u64 start_at;
	u32 i;

	start(&p, 7, 20);
	for (i = 0; i < 100; i++)
		send(&p, 10000);
	pair_run(&p, 5 * MSEC);
	start_at = pair_now(&p);
	for (i = 0; i < 20; i++) {
		pair_post(&p, 1, &req);
		pair_post(&p, 1, &add);
	}
	pair_run(&p, start_at + 10 * MSEC);
	CHECK_EQ(p.host[1].completed, 40);
	CHECK_EQ(p.host[0].completed, 0);
	for (i = 0; i < 100; i++)
		host_post_recv(&p.host[1], 10000, i % 2);
	pair_finish(&p, 50 * MSEC);
	pair_free(&p);
}

/* A blocked SEND of more frames than the window: the window must not stay full. */
static void responses__go_past_a_send_larger_than_the_window(void)
{
	struct medge_request req = req_read(REGION_STRICT, 0, 50 * 1024);
	struct pair_params params;
	struct pair p;

	pair_params_default(&params, 2);
	params.cfg[0].seg_len = params.cfg[1].seg_len = 256;
	params.region_len = 600 * 1024;
	pair_init(&p, &params);
	send(&p, 600 * 256);
	pair_run(&p, 50 * MSEC);
	pair_post(&p, 1, &req);
	pair_run(&p, 100 * MSEC);
	CHECK_EQ(p.host[1].completed, 1);
	host_post_recv(&p.host[1], 600 * 256, false);
	pair_finish(&p, 50 * MSEC);
	pair_free(&p);
}

/* Relaxed ops behind a blocked SEND are in place early, delivered after it. */
static void relaxed_writes__are_delivered_after_it(void)
{
	struct medge_request req = req_write(REGION_RELAXED, 0, 3000, 0);
	struct pair p;

	start(&p, 7, 1);
	send(&p, 100);
	pair_post(&p, 0, &req);
	pair_run(&p, 5 * MSEC);
	CHECK_EQ(p.host[0].peer_performed, 0);
	host_post_recv(&p.host[1], 100, false);
	pair_finish(&p, 10 * MSEC);
	pair_free(&p);
}

static u64 probes(struct pair *p)
{
	struct medge_path_info info;
	u64 sum = 0;
	u32 side, i;

	for (side = 0; side < 2; side++)
		for (i = 0; i < MEDGE_MAX_PATHS; i++)
			if (medge_peer_path(p->host[side].remote, i, &info))
				sum += info.probes;
	return sum;
}

/* Who asks again since time is up has had the answer to what it asked before. */
static void wait__casts_no_doubt_on_paths(void)
{
	struct pair p;
	u64 before;

	start(&p, 7, 14);
	send(&p, 100);
	pair_run(&p, 20 * MSEC);
	before = probes(&p);
	pair_run(&p, pair_now(&p) + 200 * MSEC);
	CHECK(stats(&p, 0)->rnr_naks_received > 100);
	CHECK(probes(&p) <= before + 4, "%llu", probes(&p) - before);
	host_post_recv(&p.host[1], 100, false);
	pair_finish(&p, SEC);
	pair_free(&p);
}

int main(int argc, char **argv)
{
	direct_begin(argc, argv);
	RUN(send__is_delivered_when_a_receive_comes);
	RUN(receive__found_by_a_late_frame);
	RUN(frames_held__cost_nothing);
	RUN(frames_held__are_not_sent_again);
	RUN(later_ops__wait_and_follow);
	RUN(write_imm__needs_a_receive_too);
	RUN(exceeded__after_rnr_retry_naks);
	RUN(exceeded__not_too_soon);
	RUN(count__starts_again_for_each_op);
	RUN(retry_7__is_for_ever);
	RUN(wait__casts_no_doubt_on_paths);
	RUN(naks_lost__op_survives);
	RUN(acks__go_past_a_blocked_send);
	RUN(receive__is_told_of_though_there_is_data);
	RUN(responses__go_past_a_blocked_send);
	RUN(responses__go_past_a_send_larger_than_the_window);
	RUN(relaxed_writes__are_delivered_after_it);
	return direct_end("test_rnr");
}
