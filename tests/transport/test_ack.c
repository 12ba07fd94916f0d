/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Acknowledgements: when they come, what they say. */
#include "direct.h"

enum { SEG = 1024, RTT_US = 40 };

struct acks {
	u32 explicit_acks[2];
	u32 data_frames[2];
	u64 last_ack_at[2];
	u32 ack_reqs;
	u32 drop[8];		/* psn offsets of side 0, dropped once */
	u32 ndrop;
	bool arrived[4096];	/* at side 1, by psn offset */
	u32 checked;
};

static void start_as(struct pair *p, struct watch *w, watch_fn fn,
		     struct acks *acks, const struct pair_params *params)
{
	pair_init(p, params);
	memset(acks, 0, sizeof(*acks));
	watch_frames(w, p, fn, acks);
}

static void start(struct pair *p, struct watch *w, watch_fn fn,
		  struct acks *acks, u32 nrails)
{
	struct pair_params params;

	pair_params_default(&params, nrails);
	start_as(p, w, fn, acks, &params);
}

static enum net_verdict count(struct pair *p, const struct seen *seen,
			      u64 *delay, void *user)
{
	struct acks *a = user;

	if (seen->f.type == MEDGE_FRAME_ACK) {
		a->explicit_acks[seen->side]++;
		a->last_ack_at[seen->side] = pair_now(p);
		return NET_PASS;
	}
	a->data_frames[seen->side]++;
	a->ack_reqs += !!(seen->f.flags & MEDGE_FRAME_ACK_REQ);
	return NET_PASS;
}

/* The same, and side 0 writes a little. */
static void start_write(struct pair *p, struct watch *w, watch_fn fn,
			struct acks *acks, u32 nrails)
{
	struct medge_request req = req_write(REGION_STRICT, 0, 100,
					     MEDGE_OP_STRICT);

	start(p, w, fn, acks, nrails);
	pair_post(p, 0, &req);
}

static void ack__at_least_every_48_frames(void)
{
	struct medge_request req = req_write(REGION_STRICT, 0, 240 * SEG,
					     MEDGE_OP_STRICT);
	struct watch w;
	struct acks a;
	struct pair p;

	start(&p, &w, count, &a, 1);
	pair_post(&p, 0, &req);
	pair_finish(&p, SEC);
	CHECK_EQ(a.data_frames[0], 240);
	CHECK(a.explicit_acks[1] >= 240 / MEDGE_ACK_FRAMES &&
	      /* and some that only tell the path's round trip */
	      a.explicit_acks[1] <= 240 / 16, "%u acks",
	      a.explicit_acks[1]);
	CHECK_EQ(a.explicit_acks[0], 0);
	pair_free(&p);
}

static void ack__of_runs(bool joins, u32 least, u32 most)
{
	struct medge_request req = req_write(REGION_STRICT, 0, 240 * SEG,
					     MEDGE_OP_STRICT);
	struct pair_params params;
	struct watch w;
	struct acks a;
	struct pair p;
	u32 i;

	pair_params_default(&params, 1);
	params.cfg[0].run_max = 8 * SEG;
	params.link[0][0].cut_ppm = 0;
	params.joins = joins;
	start_as(&p, &w, count, &a, &params);
	for (i = 0; i < 10; i++)
		pair_post(&p, 0, &req);
	pair_finish(&p, SEC);
	CHECK(a.data_frames[0] >= 300 && a.data_frames[0] < 600, "%u runs",
	      a.data_frames[0]);
	CHECK(a.explicit_acks[1] >= least && a.explicit_acks[1] <= most,
	      "%u acks", a.explicit_acks[1]);
	pair_free(&p);
}

/* A run that comes as it was sent is one frame; the window moves by what is asked for. */
static void ack__of_uncut_runs__not_by_their_frames(void)
{
	ack__of_runs(false, 300 / MEDGE_ACK_FRAMES, 2400 / MEDGE_ACK_FRAMES - 1);
}

/* Joined only where they came: each had its way to go, as if it had come alone. */
static void ack__of_joined_frames__by_each(void)
{
	ack__of_runs(true, 2400 / MEDGE_ACK_FRAMES, 2400 / 16);
}

static void ack__at_once_when_asked(void)
{
	struct watch w;
	struct acks a;
	struct pair p;

	start_write(&p, &w, count, &a, 1);
	CHECK(pair_run(&p, SEC));
	pair_check_done(&p, 0);
	CHECK_EQ(a.ack_reqs, 1);
	CHECK_EQ(a.explicit_acks[1], 1);
	CHECK(pair_now(&p) < 2 * RTT_US * USEC, "took %llu ns", pair_now(&p));
	pair_free(&p);
}

/* A response asks for no ack: its own comes with what is sent, or in 5 ms. */
static void ack__delayed_by_5_ms(void)
{
	struct medge_request req = req_read(REGION_STRICT, 0, 100);
	struct watch w;
	struct acks a;
	struct pair p;

	start(&p, &w, count, &a, 1);
	pair_post(&p, 0, &req);
	CHECK(!pair_run(&p, MSEC));
	CHECK_EQ(p.host[0].completed, 1);
	CHECK_EQ(a.explicit_acks[0], 0);
	pair_finish(&p, SEC);
	CHECK_EQ(a.explicit_acks[0], 1);
	CHECK(a.last_ack_at[0] >= MEDGE_ACK_DELAY_NS &&
	      a.last_ack_at[0] < MEDGE_ACK_DELAY_NS + 100 * USEC, "at %llu",
	      a.last_ack_at[0]);
	CHECK_EQ(medge_conn_stats(p.host[1].conn)->retransmits, 0);
	pair_free(&p);
}

/* READ after READ: the next request carries the ack of the last response. */
static void next_read(struct host *h, u32 op_no, enum medge_status status)
{
	struct medge_request req = req_read(REGION_STRICT, 0, 100);

	if (h->nops < 50)
		host_post(h, &req);
}

static void ack__rides_on_data(void)
{
	struct medge_request req = req_read(REGION_STRICT, 0, 100);
	struct watch w;
	struct acks a;
	struct pair p;

	start(&p, &w, count, &a, 1);
	p.on_completed = next_read;
	pair_post(&p, 0, &req);
	pair_finish(&p, SEC);
	CHECK_EQ(p.host[0].completed, 50);
	CHECK_EQ(a.explicit_acks[0], 1);
	CHECK_EQ(a.explicit_acks[1], 0);
	pair_free(&p);
}

static void ack__both_ways_busy_need_few(void)
{
	struct medge_request req = req_write(REGION_RELAXED, 0, 240 * SEG,
					     MEDGE_OP_STRICT);
	struct watch w;
	struct acks a;
	struct pair p;

	start(&p, &w, count, &a, 2);
	pair_post(&p, 0, &req);
	pair_post(&p, 1, &req);
	pair_finish(&p, SEC);
	/* all but those that tell a path's round trip ride on data */
	CHECK(a.explicit_acks[0] + a.explicit_acks[1] <= 2 * (240 / 16), "%u and %u acks",
	      a.explicit_acks[0], a.explicit_acks[1]);
	pair_free(&p);
}

static bool to_drop(const struct acks *a, u32 offset)
{
	u32 i;

	for (i = 0; i < a->ndrop; i++)
		if (a->drop[i] == offset)
			return true;
	return false;
}

/* What side 1 says it has is what it has, no less and no more. */
static void check_bitmap(struct acks *a, const struct seen *seen, u32 base)
{
	u32 from = seen->f.ack_psn - base, i;

	for (i = 0; i < from; i++)
		CHECK(a->arrived[i], "frame %u acknowledged, never arrived", i);
	for (i = 0; i < 64; i++) {
		u32 at = from + seen->f.sack_base + i;

		CHECK(!(seen->f.sack >> i & 1) || a->arrived[at], "sack %u", at);
	}
	if (seen->f.type != MEDGE_FRAME_ACK)
		return;
	for (i = 0; i < MEDGE_WINDOW; i++)
		CHECK((seen->ack.bitmap[i / 64] >> i % 64 & 1) ==
		      a->arrived[from + i], "bitmap: frame %u is %sthere",
		      from + i, a->arrived[from + i] ? "" : "not ");
	a->checked++;
}

static enum net_verdict lose_some(struct pair *p, const struct seen *seen,
				  u64 *delay, void *user)
{
	struct acks *a = user;

	if (seen->side == 1)
		check_bitmap(a, seen, p->params.cfg[0].psn);
	else if (seen->first && seen->f.type == MEDGE_FRAME_DATA &&
		 to_drop(a, seen->f.psn - p->params.cfg[0].psn))
		return NET_DROP;
	return count(p, seen, delay, user);
}

static struct acks *arrivals;

static void note_arrival(void *user, u32 side, u32 rail, struct packet *packet)
{
	struct pair *p = user;
	struct medge_frame f;

	medge_wire_decode(packet->data, packet->len, packet->len, &f);
	if (side == 1 && f.type == MEDGE_FRAME_DATA)
		arrivals->arrived[f.psn - p->params.cfg[0].psn] = true;
	host_receive(&p->host[side], rail, packet);
}

static void lossy(u32 nrails, u8 flags, enum host_region region, u32 frames)
{
	struct medge_request req = req_write(region, 0, frames * SEG, flags);
	struct watch w;
	struct acks a;
	struct pair p;

	start(&p, &w, lose_some, &a, nrails);
	arrivals = &a;
	p.net.ops.deliver = note_arrival;
	memcpy(a.drop, (u32[]){ 0, 3, 7, 8, 63, 64, 100, 199 }, sizeof(a.drop));
	a.ndrop = 8;
	pair_post(&p, 0, &req);
	pair_finish(&p, SEC);
	CHECK(a.checked >= 3, "%u acks seen", a.checked);
	CHECK_EQ(medge_conn_stats(p.host[1].conn)->rx_frames, frames);
	pair_free(&p);
}

static void bitmap__relaxed(void)
{
	lossy(2, MEDGE_OP_STRICT, REGION_RELAXED, 240);
}

/* Held frames have been received, too. */
static void bitmap__strict_held(void)
{
	lossy(2, MEDGE_OP_STRICT, REGION_STRICT, 240);
}

static void bitmap__across_psn_wrap(void)
{
	struct medge_request req = req_write(REGION_STRICT, 0, 240 * SEG,
					     MEDGE_OP_STRICT);
	struct pair_params params;
	struct watch w;
	struct acks a = { .drop = { 0, 90, 99, 100, 101, 150 }, .ndrop = 6 };
	struct pair p;

	pair_params_default(&params, 2);
	params.cfg[0].psn = params.cfg[1].peer_psn = 0u - 100;
	pair_init(&p, &params);
	watch_frames(&w, &p, lose_some, &a);
	arrivals = &a;
	p.net.ops.deliver = note_arrival;
	pair_post(&p, 0, &req);
	pair_finish(&p, SEC);
	CHECK(a.checked >= 3);
	pair_free(&p);
}

/* A hole that all rails have passed is told at once, not after a timeout. */
static void nack__hole_is_told_at_once(void)
{
	struct medge_request req = req_write(REGION_STRICT, 0, 40 * SEG,
					     MEDGE_OP_STRICT);
	const struct medge_conn_stats *stats;
	struct watch w;
	struct acks a;
	struct pair p;

	start(&p, &w, lose_some, &a, 1);
	arrivals = &a;
	p.net.ops.deliver = note_arrival;
	a.drop[0] = 10;
	a.ndrop = 1;
	pair_post(&p, 0, &req);
	CHECK(pair_run(&p, SEC));
	pair_check_done(&p, 0);
	stats = medge_conn_stats(p.host[0].conn);
	CHECK(stats->rx_nacks >= 1);
	CHECK_EQ(stats->retransmits, 1);
	CHECK_EQ(stats->probes, 0);
	CHECK(pair_now(&p) < 500 * USEC, "took %llu ns", pair_now(&p));
	pair_free(&p);
}

/* In a dialogue every message carries the ack of the one before. */
static void next_send(struct host *h, const struct medge_op *op,
		      struct medge_target *t)
{
	struct medge_request req = req_send(64, MEDGE_OP_STRICT);

	req.submit = 0;
	if (h->nops < 50)
		host_post(h, &req);
}

static void ack__ping_pong_frames_bounded(void)
{
	struct medge_request req = req_send(64, MEDGE_OP_STRICT);
	struct watch w;
	struct acks a;
	struct pair p;
	u32 side, i;

	start(&p, &w, count, &a, 1);
	for (side = 0; side < 2; side++)
		for (i = 0; i < 60; i++)
			host_post_recv(&p.host[side], 64, false);
	p.on_target = next_send;
	pair_post(&p, 0, &req);
	pair_finish(&p, SEC);
	CHECK(a.data_frames[0] + a.data_frames[1] <= 102);
	CHECK(a.explicit_acks[0] + a.explicit_acks[1] <= 102);
	pair_free(&p);
}

/* ---- acks that wait for replies ---- */

/*
 * Side 0 sends @left messages, one after the other. Side 1 replies to those that are no
 * less than @mute from the last, @delay after they came; to them, the next is sent when
 * the reply is there, to the others when they are complete.
 *
 * @late: messages that took longer to complete than two round trips
 * @done_at: when the last was complete, see said_both()
 */
struct dialogue {
	struct acks acks;
	struct pair *p;
	u32 left;
	u32 mute;
	u64 delay;
	u64 sent_at;
	u32 late;
	u64 done_at;
};

static void say(struct pair *p, u32 side)
{
	struct medge_request req = req_send(64, MEDGE_OP_STRICT);

	host_post_recv(&p->host[!side], 64, false);
	pair_post(p, side, &req);
}

static void say_next(void *arg, bool run)
{
	struct dialogue *d = arg;

	if (!run || !d->left)
		return;
	d->left--;
	d->sent_at = pair_now(d->p);
	say(d->p, 0);
}

static void reply(void *arg, bool run)
{
	struct dialogue *d = arg;

	if (run)
		say(d->p, 1);
}

static struct dialogue *dialogue_of(struct host *h)
{
	return h->pair->user;
}

static void heard(struct host *h, const struct medge_op *op)
{
	struct dialogue *d = dialogue_of(h);
	u64 now = pair_now(h->pair);

	if (h == &h->pair->host[0])
		events_add(&h->pair->events, now + USEC, say_next, d);
	else if (d->left >= d->mute)
		events_add(&h->pair->events, now + d->delay, reply, d);
}

static void said(struct host *h, u32 op_no, enum medge_status status)
{
	struct dialogue *d = dialogue_of(h);
	u64 now = pair_now(h->pair);

	CHECK_EQ((u32)status, MEDGE_OK);
	if (h != &h->pair->host[0])
		return;
	d->late += now - d->sent_at > 2 * RTT_US * USEC;
	if (d->left < d->mute)
		events_add(&h->pair->events, now + USEC, say_next, d);
}

static void converse(struct dialogue *d, u32 left, u32 mute)
{
	d->left = left;
	d->mute = mute;
	say_next(d, true);
	pair_finish(d->p, SEC);
	CHECK_EQ(d->left, 0);
	CHECK_EQ(medge_conn_stats(d->p->host[0].conn)->retransmits, 0);
	CHECK_EQ(medge_conn_stats(d->p->host[1].conn)->retransmits, 0);
}

static void start_dialogue(struct dialogue *d, struct pair *p, struct watch *w,
			   u64 delay)
{
	*d = (struct dialogue) { .p = p, .delay = delay };
	start(p, w, count, &d->acks, 1);
	p->user = d;
	p->on_performed = heard;
	p->on_completed = said;
}

static void reply__carries_the_ack(void)
{
	struct dialogue d;
	struct watch w;
	struct pair p;
	u32 first;

	start_dialogue(&d, &p, &w, 10 * USEC);
	converse(&d, 20, 0);
	first = d.acks.explicit_acks[0] + d.acks.explicit_acks[1];
	CHECK(first >= 2 * 8, "%u acks", first);
	converse(&d, 1000, 0);
	/* The last, for which it waits in vain; and some that only tell the round trip. */
	CHECK(d.acks.explicit_acks[0] + d.acks.explicit_acks[1] < first + 2 * 1000 / 16,
	      "%u and %u acks", d.acks.explicit_acks[0], d.acks.explicit_acks[1]);
	CHECK_EQ(d.late, 0);
	pair_free(&p);
}

/* It is waited for, once; the next dialogue has to last longer. */
static void reply__that_does_not_come(void)
{
	struct dialogue d;
	struct watch w;
	struct pair p;

	start_dialogue(&d, &p, &w, 10 * USEC);
	converse(&d, 12 + 50, 50);
	CHECK_EQ(d.late, 1);
	converse(&d, 12 + 50, 50);
	CHECK_EQ(d.late, 1);
	converse(&d, 100 + 50, 50);
	CHECK_EQ(d.late, 2);
	pair_free(&p);
}

static void reply__that_is_slow__is_not_waited_for(void)
{
	struct dialogue d;
	struct watch w;
	struct pair p;

	start_dialogue(&d, &p, &w, 200 * USEC);
	converse(&d, 100, 0);
	CHECK_EQ(d.late, 0);
	CHECK(d.acks.explicit_acks[1] >= 100, "%u acks", d.acks.explicit_acks[1]);
	pair_free(&p);
}

/* Each sends when what he sent is complete: that each has the other's data is no reply. */
static void said_both(struct host *h, u32 op_no, enum medge_status status)
{
	CHECK_EQ((u32)status, MEDGE_OK);
	dialogue_of(h)->done_at = pair_now(h->pair);
	if (h->nops < 200)
		say(h->pair, h != &h->pair->host[0]);
}

static void reply__is_not_what_both_send_at_once(void)
{
	struct dialogue d;
	struct watch w;
	struct pair p;

	start_dialogue(&d, &p, &w, 0);
	p.on_performed = NULL;
	p.on_completed = said_both;
	say(&p, 0);
	say(&p, 1);
	pair_finish(&p, SEC);
	CHECK_EQ(p.host[0].completed, 200);
	/* but for the last acks */
	CHECK(d.done_at < 220 * RTT_US * USEC, "took %llu ns", d.done_at);
	pair_free(&p);
}

/* ---- the last ack ---- */

static enum net_verdict lose_all_but_one(struct pair *p, const struct seen *seen,
					 u64 *delay, void *user)
{
	struct acks *a = user;

	count(p, seen, delay, user);
	if (seen->f.type != MEDGE_FRAME_ACK)
		return NET_PASS;
	return a->explicit_acks[1] <= MEDGE_FAREWELLS ? NET_DROP : NET_PASS;
}

/* Who leaves has said it, and it was lost; so are the first of what is said again. */
static void last_ack__is_repeated(void)
{
	struct watch w;
	struct acks a;
	struct pair p;

	start_write(&p, &w, lose_all_but_one, &a, 2);
	CHECK(!pair_run(&p, 2 * RTT_US * USEC));
	CHECK_EQ(a.explicit_acks[1], 1);
	CHECK_EQ(p.host[0].completed, 0);
	CHECK_EQ(host_leave(&p.host[1]), MEDGE_FAREWELLS);
	CHECK(pair_run(&p, SEC));
	CHECK_EQ(p.host[0].completed, 1);
	pair_check_done(&p, 0);
	pair_free(&p);
}

static u64 rails_of_acks;

static enum net_verdict note_rail(struct pair *p, const struct seen *seen,
				  u64 *delay, void *user)
{
	if (seen->side == 1 && seen->f.type == MEDGE_FRAME_ACK)
		rails_of_acks |= 1ULL << seen->rail;
	return count(p, seen, delay, user);
}

static void last_ack__goes_by_all_paths(void)
{
	struct watch w;
	struct acks a;
	struct pair p;

	start_write(&p, &w, note_rail, &a, MEDGE_FAREWELLS);
	pair_finish(&p, MSEC);
	rails_of_acks = 0;
	host_leave(&p.host[1]);
	CHECK_EQ(rails_of_acks, (1ULL << MEDGE_FAREWELLS) - 1);
	pair_free(&p);
}

static void last_ack__is_not_repeated_later(void)
{
	struct watch w;
	struct acks a;
	struct pair p;

	start_write(&p, &w, count, &a, 2);
	pair_finish(&p, SEC);
	pair_run(&p, SEC);
	p.events.now += SEC;
	CHECK_EQ(host_leave(&p.host[1]), 0);
	/* It has received nothing but acks. */
	CHECK_EQ(host_leave(&p.host[0]), 0);
	pair_free(&p);
}

/* Two acks that say the same but for a duplicate come by rails that differ. */
static void dups__of_an_overtaken_ack(void)
{
	struct acks a;
	struct watch w;
	struct pair p;

	start_write(&p, &w, count, &a, 2);
	conn_forget_dup(p.host[0].conn);
	pair_finish(&p, SEC);
	CHECK_EQ(conn_late(p.host[0].conn), 0);
	pair_free(&p);
}

int main(int argc, char **argv)
{
	direct_begin(argc, argv);
	RUN(ack__at_least_every_48_frames);
	RUN(ack__of_uncut_runs__not_by_their_frames);
	RUN(ack__of_joined_frames__by_each);
	RUN(ack__at_once_when_asked);
	RUN(ack__delayed_by_5_ms);
	RUN(ack__rides_on_data);
	RUN(ack__both_ways_busy_need_few);
	RUN(ack__ping_pong_frames_bounded);
	RUN(reply__carries_the_ack);
	RUN(reply__that_does_not_come);
	RUN(reply__that_is_slow__is_not_waited_for);
	RUN(reply__is_not_what_both_send_at_once);
	RUN(last_ack__is_repeated);
	RUN(last_ack__goes_by_all_paths);
	RUN(last_ack__is_not_repeated_later);
	RUN(bitmap__relaxed);
	RUN(bitmap__strict_held);
	RUN(bitmap__across_psn_wrap);
	RUN(nack__hole_is_told_at_once);
	RUN(dups__of_an_overtaken_ack);
	return direct_end("test_ack");
}
