/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* One path's window, as delay, marks, losses and silence move it. */
#include "congestion.h"
#include "direct.h"

enum { FRAME = 9000, RUN_LEN = 7 * FRAME };

struct path {
	struct medge_cong cong;
	u64 now;
	u32 back;		/* bytes that the peer sends meanwhile */
	bool other_way;		/* by which answers come */
};

static void path_init(struct path *p)
{
	medge_cong_init(&p->cong, FRAME, RUN_LEN);
	p->now = SEC;
	p->back = 0;
	p->other_way = false;
}

/*
 * A window is sent, and arrives after @rtt; meanwhile it is marked, or so many
 * frames of it are lost.
 */
static void round_with(struct path *p, u64 rtt, u32 marks, u32 lost)
{
	u64 sent = p->now;
	u32 bytes = 0;

	while (medge_cong_may_send(&p->cong, p->now)) {
		medge_cong_sent(&p->cong, p->now, FRAME, MEDGE_CONG_MORE);
		bytes += FRAME;
	}
	p->now += rtt;
	medge_cong_returned(&p->cong, p->back);
	while (marks--)
		medge_cong_marked(&p->cong);
	medge_cong_forgot(&p->cong, bytes);
	medge_cong_acked(&p->cong, bytes - lost * FRAME);
	medge_cong_lost(&p->cong, lost * FRAME);
	medge_cong_measured(&p->cong, p->now, sent, rtt, !p->other_way);
}

static void round_trip(struct path *p, u64 rtt)
{
	round_with(p, rtt, 0, 0);
}

static void rounds(struct path *p, u32 n, u64 rtt)
{
	while (n--)
		round_trip(p, rtt);
}

/* A round of which one frame is in time, and one comes after @late. */
static void round_with_one(struct path *p, u64 late)
{
	medge_cong_sent(&p->cong, p->now, FRAME, MEDGE_CONG_MORE);
	medge_cong_measured(&p->cong, p->now, p->now - 1, 50 * USEC, true);
	p->now += late;
	medge_cong_measured(&p->cong, p->now, p->now, late, true);
	medge_cong_forgot(&p->cong, FRAME);
}

static void short_queue__window_doubles(void)
{
	struct path p;

	path_init(&p);
	rounds(&p, 5, 50 * USEC);
	CHECK_EQ(p.cong.window, 32 * RUN_LEN);
}

static void window_not_filled__stays(void)
{
	struct path p;
	u32 i;

	path_init(&p);
	for (i = 0; i < 10; i++) {
		medge_cong_sent(&p.cong, p.now, FRAME, MEDGE_CONG_MORE);
		p.now += 50 * USEC;
		medge_cong_acked(&p.cong, FRAME);
		medge_cong_forgot(&p.cong, FRAME);
		medge_cong_measured(&p.cong, p.now, p.now - 50 * USEC,
				    50 * USEC, true);
	}
	CHECK_EQ(p.cong.window, RUN_LEN);
}

static void long_queue__at_most_halves_in_a_round(void)
{
	struct path p;
	u32 before;

	path_init(&p);
	rounds(&p, 5, 50 * USEC);
	before = p.cong.window;
	round_trip(&p, 100 * MSEC);
	CHECK_EQ(p.cong.window, before / 2);
	/* and then grows again, but slowly */
	before = p.cong.window;
	round_trip(&p, 50 * USEC);
	CHECK(p.cong.window > before && p.cong.window <= before + FRAME);
}

/* What is late for one round is a host that stood still; a queue is there in the next, too. */
static void one_late_round__is_no_queue(void)
{
	struct path p;
	u32 before, i;

	path_init(&p);
	rounds(&p, 5, 50 * USEC);
	round_trip(&p, 3 * MSEC);
	/* It grows by steps now. */
	for (i = 0; i < 5; i++) {
		rounds(&p, 4, 50 * USEC);
		before = p.cong.window;
		round_trip(&p, 3 * MSEC);
		CHECK(p.cong.window > before);
	}
	rounds(&p, 4, 50 * USEC);
	before = p.cong.window;
	rounds(&p, 2, 3 * MSEC);
	CHECK(p.cong.window < before);
}

/* Hosts that stand still now and then are expected to do so again, tens of rounds later. */
static void noise__is_remembered(void)
{
	struct path p;
	u64 quiet;

	path_init(&p);
	rounds(&p, 5, 50 * USEC);
	round_trip(&p, 3 * MSEC);
	rounds(&p, 4, 50 * USEC);
	quiet = medge_cong_target(&p.cong);
	round_with_one(&p, 2 * MSEC);
	rounds(&p, 30, 50 * USEC);
	CHECK(medge_cong_target(&p.cong) > quiet + MSEC);
	rounds(&p, 300, 50 * USEC);
	CHECK(medge_cong_target(&p.cong) < quiet + 100 * USEC);
}

/* The round trip then is that of two queues, of which one is the peer's. */
static void as_much_comes_back__longer_queue(void)
{
	struct path p;
	u32 before, back;

	for (back = 0; back < 2; back++) {
		path_init(&p);
		rounds(&p, 6, 50 * USEC);
		before = p.cong.window;
		p.back = back ? before : 0;
		round_trip(&p, 50 * USEC + 2 * medge_cong_target(&p.cong));
		CHECK_EQ(p.cong.window >= before, back);
	}
}

static void some_late_frames__are_no_queue(void)
{
	struct path p;
	u32 before;

	path_init(&p);
	rounds(&p, 3, 50 * USEC);
	before = p.cong.window;
	round_with_one(&p, 5 * MSEC);
	CHECK(p.cong.window >= before);
}

static void marks__shrink_it(void)
{
	struct path p;
	u32 before;

	path_init(&p);
	rounds(&p, 4, 50 * USEC);
	before = p.cong.window;
	round_with(&p, 50 * USEC, 1, 0);
	CHECK(p.cong.window < before && p.cong.window > before * 3 / 4);
	before = p.cong.window;
	round_with(&p, 50 * USEC, 4, 0);
	CHECK(p.cong.window <= before * 6 / 10 && p.cong.window >= before / 2);
}

static void few_losses__cost_little(void)
{
	struct path p;
	u32 before;

	path_init(&p);
	rounds(&p, 5, 50 * USEC);
	before = p.cong.window;
	round_with(&p, 50 * USEC, 0, 1);
	CHECK(p.cong.window < before && p.cong.window >= before - before / 50,
	      "%u of %u", p.cong.window, before);
}

static void many_losses__are_a_full_queue(void)
{
	struct path p;
	u32 before;

	path_init(&p);
	rounds(&p, 5, 50 * USEC);
	before = p.cong.window;
	round_with(&p, 50 * USEC, 0, 20);
	CHECK(p.cong.window < before * 7 / 10 && p.cong.window >= before / 2);
}

static void timeout__begins_anew_unless_it_was_wrong(void)
{
	struct path p;
	u32 before;

	path_init(&p);
	rounds(&p, 5, 50 * USEC);
	before = p.cong.window;
	medge_cong_timeout(&p.cong);
	CHECK_EQ(p.cong.window, FRAME);
	medge_cong_undo(&p.cong);
	CHECK_EQ(p.cong.window, before);
	medge_cong_timeout(&p.cong);
	/* up to half of what it was quickly */
	rounds(&p, 8, 50 * USEC);
	CHECK(p.cong.window >= before / 2 && p.cong.window < before);
}

static void below_a_frame__frames_are_paced(void)
{
	struct path p;
	u64 at;
	u32 i;

	path_init(&p);
	rounds(&p, 2, 50 * USEC);
	for (i = 0; i < 10; i++) {
		p.now = max(p.now, medge_cong_paced_until(&p.cong) == ~0ULL ?
				   0 : medge_cong_paced_until(&p.cong));
		round_trip(&p, 20 * MSEC);
	}
	CHECK(p.cong.window < FRAME && p.cong.window > 0);
	medge_cong_sent(&p.cong, p.now, FRAME, MEDGE_CONG_MORE);
	medge_cong_acked(&p.cong, FRAME);
	medge_cong_forgot(&p.cong, FRAME);
	CHECK(!medge_cong_may_send(&p.cong, p.now));
	at = medge_cong_paced_until(&p.cong);
	CHECK(at > p.now && at < p.now + SEC);
	CHECK(medge_cong_may_send(&p.cong, at));
}

/*
 * Two runs a go, nothing behind them, and each go acknowledged before the next:
 * an echo for each window. Of what is unacknowledged some was asked for, or there
 * is room for what will ask.
 */
static void one_go_after_the_other__asks_once_a_window(void)
{
	u32 i, asked = 0;
	struct path p;

	path_init(&p);
	p.cong.window = 5 * RUN_LEN;
	for (i = 0; i < 20; i++) {
		bool echo = medge_cong_sent(&p.cong, p.now, RUN_LEN, MEDGE_CONG_MORE);

		echo |= medge_cong_sent(&p.cong, p.now, FRAME, 0);
		CHECK(echo || medge_cong_may_send(&p.cong, p.now));
		asked += echo;
		p.now += 50 * USEC;
		medge_cong_forgot(&p.cong, RUN_LEN + FRAME);
		medge_cong_acked(&p.cong, RUN_LEN + FRAME);
	}
	CHECK_EQ(asked, 20 / 5);
}

/* As soon as something waits, or is sent while the first go is on its way, acks are asked for. */
static void what_waits__asks_early(void)
{
	struct path p;

	path_init(&p);
	p.cong.window = 5 * RUN_LEN;
	CHECK(!medge_cong_sent(&p.cong, p.now, RUN_LEN, MEDGE_CONG_MORE));
	CHECK(medge_cong_sent(&p.cong, p.now, RUN_LEN, MEDGE_CONG_MORE));
	path_init(&p);
	p.cong.window = 5 * RUN_LEN;
	CHECK(!medge_cong_sent(&p.cong, p.now, RUN_LEN, MEDGE_CONG_MORE));
	CHECK(!medge_cong_sent(&p.cong, p.now, RUN_LEN, 0));
	CHECK(medge_cong_sent(&p.cong, p.now + 1, RUN_LEN, 0));
}

/* An ack that is due anyway is taken for the measure, if the next one is not far. */
static void asked_for_its_ack__is_measured_with_it(void)
{
	struct path p;

	path_init(&p);
	p.cong.window = 16 * RUN_LEN;
	CHECK(!medge_cong_sent(&p.cong, p.now, RUN_LEN, MEDGE_CONG_MORE | MEDGE_CONG_ASKED));
	CHECK(medge_cong_sent(&p.cong, p.now, RUN_LEN, MEDGE_CONG_MORE | MEDGE_CONG_ASKED));
	/* and the count begins anew */
	CHECK(!medge_cong_sent(&p.cong, p.now, RUN_LEN, MEDGE_CONG_MORE | MEDGE_CONG_ASKED));
	CHECK(!medge_cong_sent(&p.cong, p.now, RUN_LEN, MEDGE_CONG_MORE));
	CHECK(!medge_cong_sent(&p.cong, p.now, RUN_LEN, MEDGE_CONG_MORE));
	CHECK(medge_cong_sent(&p.cong, p.now, RUN_LEN, MEDGE_CONG_MORE));
}

/*
 * Frames of several ops are shorter than a full one, and may be shorter than a window
 * that is less than that, too: the window of who waits for each one's ack is filled.
 */
static void short_frames_of_a_paced_flow__fill_its_window(void)
{
	u32 bytes = FRAME - 800, i;
	struct path p;

	path_init(&p);
	p.cong.window = FRAME - 400;
	p.cong.threshold = p.cong.window;
	for (i = 0; i < 20 && p.cong.window < FRAME; i++) {
		u64 until = medge_cong_paced_until(&p.cong);

		if (until != ~0ULL)
			p.now = max(p.now, until);
		CHECK(medge_cong_may_send(&p.cong, p.now));
		CHECK(medge_cong_sent(&p.cong, p.now, bytes, MEDGE_CONG_MORE));
		CHECK(!medge_cong_may_send(&p.cong, p.now));
		p.now += 50 * USEC;
		medge_cong_forgot(&p.cong, bytes);
		medge_cong_acked(&p.cong, bytes);
		medge_cong_measured(&p.cong, p.now, p.now - 50 * USEC,
				    50 * USEC, true);
	}
	CHECK(p.cong.window >= FRAME);
}

/* A path that has become longer is not taken for a full one for ever. */
static void longer_route__is_believed_in_the_end(void)
{
	struct path p;
	u64 end;

	path_init(&p);
	rounds(&p, 5, 50 * USEC);
	end = p.now + 40 * SEC;
	while (p.now < end) {
		u64 at = medge_cong_paced_until(&p.cong);

		if (at != ~0ULL)
			p.now = max(p.now, at);
		round_trip(&p, 20 * MSEC);
	}
	CHECK_EQ(medge_cong_base(&p.cong), 20 * MSEC);
	CHECK(p.cong.window > 2 * RUN_LEN);
}

/*
 * Who fills a path of 1 Gbit/s for minutes never sees it empty by chance: the queue that
 * is wanted must not become what is expected of it, and that and another one soon.
 */
static void endless_flow__does_not_take_its_queue_for_the_path(void)
{
	const u64 base = 100 * USEC, ns_per_byte = 8;
	struct path p;

	path_init(&p);
	while (p.now < 200 * SEC)
		round_trip(&p, max(base, p.cong.window * ns_per_byte));
	CHECK(p.cong.window * ns_per_byte < base + 2 * MSEC, "window %u",
	      p.cong.window);
}

/*
 * Of two rails one is 10 ms longer: what it carries is acknowledged by the other, before
 * the echo by which it is measured has come. It must not stay with a frame's window.
 */
static void acknowledged_by_a_shorter_path__window_grows(void)
{
	const u64 way = 10 * MSEC;
	struct path p;
	u32 i;

	path_init(&p);
	rounds(&p, 10, 2 * way);
	medge_cong_timeout(&p.cong);
	CHECK_EQ(p.cong.window, FRAME);
	for (i = 0; i < 100; i++) {
		u32 bytes = p.cong.window;

		medge_cong_sent(&p.cong, p.now, bytes, MEDGE_CONG_MORE);
		p.now += way;
		medge_cong_acked(&p.cong, bytes);
		medge_cong_forgot(&p.cong, bytes);
		/* The one before it; this one's is under way. */
		if (i)
			medge_cong_measured(&p.cong, p.now, p.now - 2 * way, 2 * way, true);
	}
	CHECK(p.cong.window >= p.cong.threshold, "window %u of %u", p.cong.window,
	      p.cong.threshold);
}

/* An answer that comes sooner by another way is no base, unless none comes by its own. */
static void other_way__is_a_base_for_want_of_a_better(void)
{
	struct path p;
	u64 end;

	path_init(&p);
	p.other_way = true;
	rounds(&p, 5, 3 * MSEC);
	round_trip(&p, MSEC);
	CHECK_EQ(medge_cong_base(&p.cong), MSEC);
	p.other_way = false;
	round_trip(&p, 5 * MSEC);
	CHECK_EQ(medge_cong_base(&p.cong), 5 * MSEC);
	p.other_way = true;
	rounds(&p, 5, MSEC);
	CHECK_EQ(medge_cong_base(&p.cong), 5 * MSEC);
	/* But a round trip is what it is: nothing is known to be in the way. */
	CHECK(p.cong.rtt < 3 * MSEC, "%llu", p.cong.rtt);
	for (end = p.now + 40 * SEC; p.now < end; p.now += SEC)
		round_trip(&p, MSEC);
	CHECK_EQ(medge_cong_base(&p.cong), MSEC);
}

/* ---- what a peer may say ---- */

/* The frame that asked for it arrived, it says, and met congestion; and nothing else is said. */
static enum net_verdict echo_only(void *user, u32 side, u32 rail,
				  struct packet *p, u64 *delay)
{
	enum { HDR = sizeof(struct medge_frame_hdr) };
	u8 *flags = p->data + offsetof(struct medge_frame_hdr, flags);
	const u32 *first_psn = user;

	if (side != 1 || p->data[0] % 16 != MEDGE_FRAME_ACK ||
	    !(*flags & MEDGE_FRAME_ECHO))
		return NET_PASS;
	*flags |= MEDGE_FRAME_MARKED;
	put_unaligned_be32(*first_psn, p->data +
			   offsetof(struct medge_frame_hdr, ack_psn));
	put_unaligned_be64(0, p->data + offsetof(struct medge_frame_hdr, sack));
	memset(p->data + medge_wire_ack_len(0), 0,
	       p->len - medge_wire_ack_len(0));
	return NET_PASS;
}

/* A path that was full, of which nothing is known to have arrived, has some rate. */
static void echo__of_what_is_not_acked(void)
{
	struct medge_request req = req_write(REGION_RELAXED, 0, 5000, 0);
	struct pair_params params;
	u32 first_psn, i;
	struct pair p;

	pair_params_default(&params, 2);
	pair_init(&p, &params);
	pair_run(&p, MSEC);
	first_psn = p.host[0].snd_nxt;
	p.net.ops.filter = echo_only;
	p.net.ops.filter_user = &first_psn;
	for (i = 0; i < 50; i++) {
		pair_post(&p, 0, &req);
		pair_run(&p, pair_now(&p) + 50 * USEC);
	}
	p.net.ops.filter = NULL;
	pair_finish(&p, SEC);
	pair_free(&p);
}

/* More than the window of one holds, and less than those of two. */
static void windows_of_all_paths__full(void)
{
	struct medge_request req = req_write(REGION_RELAXED, 0, 100000, 0);
	struct medge_conn *c;
	struct pair_params params;
	struct pair p;

	pair_params_default(&params, 2);
	params.nfirst = 1;
	pair_init(&p, &params);
	c = p.host[0].conn;
	CHECK(!medge_conn_is_full(c, pair_now(&p)));
	pair_post(&p, 0, &req);
	CHECK(medge_conn_is_full(c, pair_now(&p)));
	pair_rail(&p, 0, 1, 10000);
	CHECK(!medge_conn_is_full(c, pair_now(&p)));
	pair_finish(&p, SEC);
	CHECK(!medge_conn_is_full(c, pair_now(&p)));
	pair_free(&p);
}

/* Who sends a 64th of a frame has sent that window, and waits for it, not for a frame's time. */
static void short_frames__are_paced_by_their_length(void)
{
	const u64 base = 20 * USEC;
	struct path p;

	path_init(&p);
	rounds(&p, 1, base);
	p.cong.window = FRAME / 64;
	p.cong.inflight = 0;
	medge_cong_sent(&p.cong, p.now, FRAME / 64, 0);
	CHECK_EQ(medge_cong_paced_until(&p.cong), MEDGE_NEVER);
	p.cong.inflight = 0;
	CHECK_EQ(medge_cong_paced_until(&p.cong), p.now + base);
}

int main(int argc, char **argv)
{
	direct_begin(argc, argv);
	RUN(short_queue__window_doubles);
	RUN(window_not_filled__stays);
	RUN(long_queue__at_most_halves_in_a_round);
	RUN(one_late_round__is_no_queue);
	RUN(noise__is_remembered);
	RUN(as_much_comes_back__longer_queue);
	RUN(some_late_frames__are_no_queue);
	RUN(marks__shrink_it);
	RUN(few_losses__cost_little);
	RUN(many_losses__are_a_full_queue);
	RUN(timeout__begins_anew_unless_it_was_wrong);
	RUN(below_a_frame__frames_are_paced);
	RUN(short_frames_of_a_paced_flow__fill_its_window);
	RUN(short_frames__are_paced_by_their_length);
	RUN(longer_route__is_believed_in_the_end);
	RUN(endless_flow__does_not_take_its_queue_for_the_path);
	RUN(acknowledged_by_a_shorter_path__window_grows);
	RUN(other_way__is_a_base_for_want_of_a_better);
	RUN(one_go_after_the_other__asks_once_a_window);
	RUN(what_waits__asks_early);
	RUN(asked_for_its_ack__is_measured_with_it);
	RUN(echo__of_what_is_not_acked);
	RUN(windows_of_all_paths__full);
	return direct_end("test_congestion");
}
