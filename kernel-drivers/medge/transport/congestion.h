/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Congestion of one path, as one connection meets it: how many bytes it may
 * have in flight there. Sans-IO, and knows nothing of connections.
 *
 * Delay decides, as in Swift (SIGCOMM 2020): the window grows by a constant
 * while the path's standing queue is shorter than a target, and shrinks in
 * proportion to the excess, once a round trip. The standing queue is the least
 * delay of two round trips, not its mean: what a busy CPU adds to some frames is
 * none. Where the peer sends as well, what is measured is the queues of both ways,
 * so that more is wanted: each would give way to the other's. Marks (ECN, where a
 * path has it) and losses shrink the window by their share of a round trip's
 * bytes, so that a rail that loses at random is not mistaken for a full one.
 */
#ifndef MEDGE_TRANSPORT_CONGESTION_H
#define MEDGE_TRANSPORT_CONGESTION_H

#include "env.h"

/**
 * struct medge_cong - one path
 * @window: bytes that may be in flight
 * @before: what it was before the timeout; 0: none lately
 * @threshold: up to here the window doubles each round trip
 * @inflight: bytes sent and neither acknowledged nor given up
 * @unasked: bytes sent since an ack was asked for
 * @burst: bytes sent at @last, in one go
 * @frame: bytes of a full frame, the least window that needs no pacing
 * @run: bytes of a full run, the unit of all steps
 * @base: least round trip of this period and of the last, ns; 0: none
 * @base_since: when this period began
 * @base_own: the base is of what came back by the path itself
 * @base_anew: it is of no round trip yet for which the queue was let run empty
 * @rtt: round trip without what only some frames meet, smoothed, ns
 * @noise: by how much round trips differ within a round, at worst of late, ns
 * @rate: bytes a second that the path has delivered
 * @last: when something was sent
 * @paced_at: below a frame's window: when the next frame may go
 * @round: when the frame was sent whose ack ends the round
 * @round_min, @round_max: least and longest round trip of the round
 * @last_min: least round trip of the one before
 * @acked, @marked, @lost: bytes of the round
 * @back: bytes of the peer's own that came back by the path in the round
 * @kept: what the window is again when the queue has been empty; 0: it need not be
 * @was_full: the path was, once, so @rate is what it carries
 * @clean: rounds without a reason to shrink
 * @asked: something was sent in the round whose echo ends it
 * @limited: the window was full in the round
 */
struct medge_cong {
	u32 window;
	u32 before;
	u32 threshold;
	u32 inflight;
	u32 unasked;
	u32 frame;
	u32 run;
	u32 burst;
	u64 base[2];
	u64 base_since;
	u64 rtt;
	u64 noise;
	u64 rate;
	u64 last;
	u64 paced_at;
	u64 round;
	u64 round_min;
	u64 round_max;
	u64 last_min;
	u32 acked;
	u32 marked;
	u32 lost;
	u32 back;
	u32 kept;
	u8 base_own:1;
	u8 base_anew:1;
	u8 asked:1;
	u8 limited:1;
	u8 was_full:1;
	u8 clean;
};

/* A path of which nothing is known. */
void medge_cong_init(struct medge_cong *g, u32 frame, u32 run);

/* May anything be sent now? If not, it may be after an ack or a loss, or at: */
bool medge_cong_may_send(const struct medge_cong *g, u64 now);
/* when pacing lets the next frame go; ~0: it does not hold it back. */
u64 medge_cong_paced_until(const struct medge_cong *g);
/* Bytes that go out in one piece at most, so that acks are news. */
u32 medge_cong_run(const struct medge_cong *g);

enum medge_cong_how {
	MEDGE_CONG_MORE = BIT(0),	/* more waits to be sent */
	MEDGE_CONG_ASKED = BIT(1),	/* the last is asked for its ack */
};

/*
 * @bytes are sent, @how: enum medge_cong_how. Return: the last of them must be echoed,
 * to be measured; rather one that is asked for its ack, as that will do for both.
 */
bool medge_cong_sent(struct medge_cong *g, u64 now, u32 bytes, u8 how);
/* @bytes are no longer in flight, for whatever reason: */
static inline void medge_cong_forgot(struct medge_cong *g, u32 bytes)
{
	g->inflight -= min(bytes, g->inflight);
}

/* they have arrived, */
static inline void medge_cong_acked(struct medge_cong *g, u32 bytes)
{
	g->acked += bytes;
}

/* or were lost. */
void medge_cong_lost(struct medge_cong *g, u32 bytes);
/* The peer has sent @bytes of its own: acks wait behind them. */
void medge_cong_returned(struct medge_cong *g, u32 bytes);
/* Frames sent since the last time met congestion, as the path says. */
void medge_cong_marked(struct medge_cong *g);
/* What was sent at @sent took @rtt, there and back; @own_way: by the path, not by another. */
void medge_cong_measured(struct medge_cong *g, u64 now, u64 sent, u64 rtt,
			 bool own_way);
/* Nothing at all came back. */
void medge_cong_timeout(struct medge_cong *g);
/* But it had arrived. */
void medge_cong_undo(struct medge_cong *g);

/* The least round trip, ns; 0: not measured. */
u64 medge_cong_base(const struct medge_cong *g);
/* The standing queue that is wanted, ns. */
u64 medge_cong_target(const struct medge_cong *g);

#endif /* MEDGE_TRANSPORT_CONGESTION_H */
