/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Windows of frames and ops, and numbers that wrap around in them. */
#include "alloc.h"
#include "direct.h"

/* So small that the windows of frames are less than the rails carry at first. */
enum { SEG = 64, TWO_WINDOWS = 2 * MEDGE_WINDOW_FIRST };

static void wrap_params(struct pair_params *params, u32 nrails)
{
	u32 side;

	pair_params_default(params, nrails);
	for (side = 0; side < 2; side++) {
		params->cfg[side].psn = 0u - 200 - side;
		params->op_base[side] = 0u - 300 - side;
		params->recv_base[side] = 0u - 50 - side;
	}
	params->cfg[0].peer_psn = params->cfg[1].psn;
	params->cfg[1].peer_psn = params->cfg[0].psn;
}

/* Two rails, and as much is on its way as they may have, since nothing comes back. */
static void fill_two_windows(struct pair *p, const struct medge_request *req)
{
	struct pair_params params;

	pair_params_default(&params, 2);
	params.cfg[0].seg_len = params.cfg[1].seg_len = SEG;
	pair_init(p, &params);
	pair_dark(p, 1, 0, true);
	pair_dark(p, 1, 1, true);
	pair_post(p, 0, req);
	CHECK_EQ(p->host[0].count.frames_new, TWO_WINDOWS);
}

static void frames__no_more_than_the_rails_windows_unacknowledged(void)
{
	struct medge_request req = req_write(REGION_RELAXED, 0, 1400 * SEG,
					     MEDGE_OP_STRICT);
	struct pair p;

	fill_two_windows(&p, &req);
	pair_run(&p, MSEC);
	CHECK_EQ(p.host[0].count.frames_new, TWO_WINDOWS);
	pair_dark(&p, 1, 0, false);
	pair_dark(&p, 1, 1, false);
	pair_finish(&p, SEC);
	CHECK_EQ(p.host[0].count.frames_new, 1400);
	pair_free(&p);
}

static void frames__held_are_at_most_the_windows(void)
{
	struct medge_request req = req_write(REGION_STRICT, 0, 1400 * SEG,
					     MEDGE_OP_STRICT);
	struct pair_params params;
	struct pair p;

	pair_params_default(&params, 2);
	params.cfg[0].seg_len = params.cfg[1].seg_len = SEG;
	/* the first frame takes the slow rail */
	params.link[0][0].delay_ns = 900 * USEC;
	pair_init(&p, &params);
	pair_post(&p, 0, &req);
	pair_finish(&p, SEC);
	CHECK(p.host[1].count.held_high > 100);
	CHECK(p.host[1].count.held_high <= TWO_WINDOWS);
	pair_free(&p);
}

/* One that is left has its own window, not that of those that are gone. */
static void frames__window_shrinks_with_the_rails(void)
{
	struct medge_request req = req_write(REGION_RELAXED, 0, 1400 * SEG,
					     MEDGE_OP_STRICT);
	struct pair p;

	fill_two_windows(&p, &req);
	/* Twice as much is on its way now as may be. */
	pair_rail(&p, 0, 1, 0);
	pair_run(&p, MSEC);
	CHECK_EQ(p.host[0].count.frames_new, TWO_WINDOWS);
	pair_dark(&p, 1, 0, false);
	pair_finish(&p, SEC);
	CHECK_EQ(p.host[0].count.frames_new, 1400);
	pair_dark(&p, 1, 0, true);
	pair_post(&p, 0, &req);
	CHECK_EQ(p.host[0].count.frames_new, 1400 + MEDGE_WINDOW_FIRST);
	pair_dark(&p, 1, 0, false);
	pair_finish(&p, SEC);
	pair_free(&p);
}

/* Of small frames it takes more to make the same bytes. */
static void frames__small_ones_have_a_wide_window(void)
{
	struct medge_request req = req_write(REGION_RELAXED, 0, 1400 * SEG,
					     MEDGE_OP_STRICT);
	struct pair_params params;
	struct pair p;

	CHECK_EQ(medge_window_first(9000 - MEDGE_HDR_LEN), MEDGE_WINDOW_FIRST);
	CHECK_EQ(medge_window_first(4096), MEDGE_WINDOW_BYTES / 4096);
	CHECK_EQ(medge_window_first(1500 - MEDGE_HDR_LEN), MEDGE_WINDOW);
	pair_params_default(&params, 1);
	params.cfg[0].seg_len = params.cfg[1].seg_len = SEG;
	params.cfg[0].window = 1000;
	pair_init(&p, &params);
	pair_dark(&p, 1, 0, true);
	pair_post(&p, 0, &req);
	CHECK_EQ(p.host[0].count.frames_new, 1000);
	pair_dark(&p, 1, 0, false);
	pair_finish(&p, SEC);
	CHECK_EQ(p.host[0].count.frames_new, 1400);
	pair_free(&p);
}

/* The first ack of all of the window is lost. */
static enum net_verdict lose_whole_window(struct pair *p, const struct seen *seen,
					  u64 *delay, void *user)
{
	bool *lost = user;

	if (*lost || !seen->side ||
	    seen->f.ack_psn != p->params.cfg[0].psn + MEDGE_WINDOW_FIRST)
		return NET_PASS;
	*lost = true;
	return NET_DROP;
}

/* All of the window is there, as the peer said, but that it may go on was lost. */
static void frames__of_a_full_window_are_asked_after(void)
{
	struct medge_request req = req_write(REGION_RELAXED, 0, 700 * SEG,
					     MEDGE_OP_STRICT);
	struct pair_params params;
	bool lost = false;
	struct watch w;
	struct pair p;

	pair_params_default(&params, 1);
	params.cfg[0].seg_len = params.cfg[1].seg_len = SEG;
	params.place_ppm = 1000000;
	params.place_ns = 100 * MSEC;
	pair_init(&p, &params);
	watch_frames(&w, &p, lose_whole_window, &lost);
	pair_post(&p, 0, &req);
	/* Of the first alone the placing takes time. */
	while (!p.host[1].count.placing)
		pair_run(&p, pair_now(&p) + 50);
	p.params.place_ppm = 0;
	pair_finish(&p, SEC);
	CHECK(lost);
	pair_free(&p);
}

static void ops__no_more_than_the_window_at_once(void)
{
	struct medge_request req = req_write(REGION_STRICT, 0, 8,
					     MEDGE_OP_STRICT);
	struct pair_params params;
	struct pair p;
	u32 i;

	pair_params_default(&params, 1);
	pair_init(&p, &params);
	CHECK_EQ(medge_conn_send_room(p.host[0].conn, MEDGE_OP_WINDOW), MEDGE_OP_WINDOW);
	pair_dark(&p, 1, 0, true);
	for (i = 0; i < 2000; i++)
		host_post(&p.host[0], &req);
	pair_poll(&p, 0);
	CHECK_EQ(p.host[0].submitted, MEDGE_OP_WINDOW);
	CHECK_EQ(medge_conn_send_room(p.host[0].conn, MEDGE_OP_WINDOW), 0);
	pair_dark(&p, 1, 0, false);
	pair_finish(&p, SEC);
	CHECK_EQ(medge_conn_send_room(p.host[0].conn, MEDGE_OP_WINDOW), MEDGE_OP_WINDOW);
	pair_free(&p);
}

/* A connection that gets no memory to grow has what it began with. */
static void memory__none__goes_on_with_what_it_has(void)
{
	struct medge_request small = req_write(REGION_STRICT, 0, 8,
					       MEDGE_OP_STRICT);
	struct medge_request large = req_write(REGION_RELAXED, 0, 200000, 0);
	struct medge_request read = req_read(REGION_STRICT, 0, 20000);
	struct pair_params params;
	struct pair p;
	u32 i;

	pair_params_default(&params, 1);
	pair_init(&p, &params);
	alloc_fail(1, 1);
	for (i = 0; i < 60; i++) {
		host_post(&p.host[0], &small);
		host_post(&p.host[0], i % 4 ? &large : &read);
	}
	pair_poll(&p, 0);
	CHECK(p.host[0].submitted < 60);
	pair_finish(&p, 10 * SEC);
	alloc_fail(0, 0);
	pair_free(&p);
}

/* Who has grown sends more than fits where there is no memory: it comes again. */
static void memory__none_for_a_while__frames_come_again(void)
{
	struct medge_request req = req_write(REGION_STRICT, 0, 8,
					     MEDGE_OP_STRICT);
	struct pair_params params;
	struct pair p;
	u32 i;

	pair_params_default(&params, 1);
	pair_init(&p, &params);
	for (i = 0; i < 500; i++)
		host_post(&p.host[0], &req);
	pair_poll(&p, 0);
	CHECK_EQ(p.host[0].submitted, 500);
	alloc_fail(1, 1);
	pair_run(&p, MSEC);
	CHECK(medge_conn_stats(p.host[1].conn)->drops[MEDGE_DROP_WINDOW]);
	CHECK_EQ(p.host[0].completed, 0);
	alloc_fail(0, 0);
	pair_finish(&p, SEC);
	pair_free(&p);
}

/* Small ops that are posted together share frames. */
static void ops__small_ones_share_frames(void)
{
	struct medge_request req = req_write(REGION_STRICT, 0, 8,
					     MEDGE_OP_STRICT);
	struct pair_params params;
	struct pair p;
	u32 i;

	pair_params_default(&params, 1);
	pair_init(&p, &params);
	for (i = 0; i < 500; i++)
		host_post(&p.host[0], &req);
	pair_poll(&p, 0);
	pair_finish(&p, SEC);
	/* 40 bytes each: some 27 go in a frame of 1088 */
	CHECK(p.host[0].count.frames_new < 500 / 20, "%llu frames",
	      p.host[0].count.frames_new);
	pair_free(&p);
}

static void reads__no_more_than_ord(void)
{
	struct medge_request req = req_read(REGION_STRICT, 0, 5000);
	struct pair_params params;
	struct pair p;
	u32 ord, i;

	for (ord = 1; ord <= 128; ord = ord * 5 + 1) {
		pair_params_default(&params, 2);
		params.cfg[0].ord = ord;
		pair_init(&p, &params);
		for (i = 0; i < 400; i++)
			host_post(&p.host[0], &req);
		pair_poll(&p, 0);
		CHECK_EQ(p.host[0].reads_out, ord);
		pair_finish(&p, SEC);
		pair_free(&p);
	}
}

/* As many answers outstanding as the protocol has room for, both ways, lossy. */
static void reads__as_many_as_there_may_be(void)
{
	struct medge_request req = req_read(REGION_STRICT, 0, 3000);
	struct pair_params params;
	struct pair p;
	u32 side, i;

	pair_params_default(&params, 2);
	for (side = 0; side < 2; side++) {
		params.cfg[side].ord = MEDGE_MAX_RD_ATOMIC;
		params.link[side][1].loss_ppm = 50000;
	}
	pair_init(&p, &params);
	for (side = 0; side < 2; side++) {
		for (i = 0; i < 1000; i++)
			host_post(&p.host[side], &req);
		pair_poll(&p, side);
	}
	pair_finish(&p, 10 * SEC);
	pair_free(&p);
}

/* Everything at once, over the edge of every number. */
static void numbers__wrap_around(void)
{
	struct pair_params params;
	struct pair p;
	u32 side, i;

	wrap_params(&params, 3);
	for (i = 0; i < 3; i++)
		params.link[0][i].loss_ppm = params.link[1][i].loss_ppm = 30000;
	pair_init(&p, &params);
	for (side = 0; side < 2; side++) {
		for (i = 0; i < 900; i++) {
			struct medge_request reqs[] = {
				req_write(REGION_RELAXED, i * 64, 50 + i,
					  i % 7 ? 0 : MEDGE_OP_FENCE_FORWARD),
				req_send(i, MEDGE_OP_STRICT),
				req_fetch_add(i % 8),
				req_write(REGION_STRICT, i * 32, 3 * i,
					  MEDGE_OP_STRICT),
				req_write_imm(REGION_STRICT, i * 32, i,
					      MEDGE_OP_STRICT),
				req_read(REGION_STRICT, i, i),
			};

			if (op_consumes(reqs[i % 6].opcode))
				host_post_recv(&p.host[!side], i, i % 2);
			host_post(&p.host[side], &reqs[i % 6]);
		}
		pair_poll(&p, side);
	}
	pair_finish(&p, 10 * SEC);
	for (side = 0; side < 2; side++) {
		CHECK(p.host[side].snd_nxt < 1 << 16, "psn did not wrap");
		CHECK(medge_conn_next_op(p.host[side].conn) < 1 << 16);
	}
	pair_free(&p);
}

static void numbers__long_after_the_last_fence(void)
{
	struct medge_request req = req_write(REGION_RELAXED, 0, 8,
					     MEDGE_OP_FENCE_FORWARD);
	struct pair_params params;
	struct pair p;
	u32 i;

	pair_params_default(&params, 1);
	pair_init(&p, &params);
	for (i = 0; i < 3000; i++) {
		host_post(&p.host[0], &req);
		req.flags = 0;
	}
	pair_poll(&p, 0);
	pair_finish(&p, SEC);
	pair_free(&p);
}

/* The numbers of @seen's frame and of what it acknowledges, moved by @d. */
static void tell_moved(struct pair *p, const struct seen *seen, u32 dpsn,
		       u32 dack, u32 dop)
{
	struct packet *lie = packet_new(seen->packet->len);
	struct medge_frame f = seen->f;

	memcpy(lie->data, seen->packet->data, lie->len);
	lie->nframes = seen->packet->nframes;
	f.psn += dpsn;
	f.ack_psn += dack;
	f.ack_op += dop;
	medge_wire_encode_frame(lie->data, &f);
	p->hostile = true;
	host_receive(&p->host[!seen->side], seen->rail, lie);
	p->hostile = false;
	packet_put(lie);
	conn_check(p->host[!seen->side].conn);
}

static enum net_verdict tell_far(struct pair *p, const struct seen *seen,
				 u64 *delay, void *user)
{
	u32 *told = user, half = 1U << 31, i;

	/* Others by each frame: all of them take minutes. */
	for (i = *told % 7; i < 300; i += 7) {
		if (seen->f.type == MEDGE_FRAME_DATA)
			tell_moved(p, seen, half - i, 0, 0);
		tell_moved(p, seen, 0, half - i, 0);
		tell_moved(p, seen, 0, 0, half - i);
		*told += 1;
	}
	return NET_PASS;
}

/*
 * Where serial numbers turn from far ahead to long ago, a run may begin on one
 * side and end on the other: it is neither, nor is what an ack says there.
 */
static void numbers__half_their_range_away__are_dropped(void)
{
	struct medge_request req = req_write(REGION_STRICT, 0, 200 * SEG,
					     MEDGE_OP_STRICT);
	struct pair_params params;
	struct watch w;
	struct pair p;
	u32 told = 0;

	pair_params_default(&params, 2);
	params.cfg[0].seg_len = params.cfg[1].seg_len = SEG;
	pair_init(&p, &params);
	watch_frames(&w, &p, tell_far, &told);
	host_post(&p.host[0], &req);
	pair_post(&p, 0, &req);
	pair_finish(&p, SEC);
	CHECK(told > 300);
	CHECK_EQ(medge_conn_stats(p.host[1].conn)->rx_frames, 400);
	pair_free(&p);
}

/* Whoever has no room to hold frames asks which one makes room. */
static void expects__the_next_and_those_before(void)
{
	struct medge_request req = req_write(REGION_STRICT, 0, 5000,
					     MEDGE_OP_STRICT);
	struct medge_frame f = { .type = MEDGE_FRAME_DATA };
	struct pair_params params;
	struct pair p;

	pair_params_default(&params, 1);
	pair_init(&p, &params);
	pair_post(&p, 0, &req);
	pair_finish(&p, SEC);
	f.psn = p.host[0].snd_nxt;
	CHECK(medge_conn_expects(p.host[1].conn, &f));
	f.psn--;
	CHECK(medge_conn_expects(p.host[1].conn, &f));
	f.psn += 2;
	CHECK(!medge_conn_expects(p.host[1].conn, &f));
	pair_free(&p);
}

int main(int argc, char **argv)
{
	direct_begin(argc, argv);
	RUN(frames__no_more_than_the_rails_windows_unacknowledged);
	RUN(frames__held_are_at_most_the_windows);
	RUN(frames__window_shrinks_with_the_rails);
	RUN(frames__small_ones_have_a_wide_window);
	RUN(frames__of_a_full_window_are_asked_after);
	RUN(ops__no_more_than_the_window_at_once);
	RUN(memory__none__goes_on_with_what_it_has);
	RUN(memory__none_for_a_while__frames_come_again);
	RUN(ops__small_ones_share_frames);
	RUN(reads__no_more_than_ord);
	RUN(reads__as_many_as_there_may_be);
	RUN(numbers__wrap_around);
	RUN(numbers__long_after_the_last_fence);
	RUN(numbers__half_their_range_away__are_dropped);
	RUN(expects__the_next_and_those_before);
	return direct_end("test_window");
}
