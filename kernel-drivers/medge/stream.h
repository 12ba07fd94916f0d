/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Streams: who posts more than he waits for spends his time in doorbells. While
 * another CPU has nothing to do, the poller takes that over without being asked.
 */
#ifndef MEDGE_STREAM_H
#define MEDGE_STREAM_H

#include <linux/types.h>

struct medge_qp;

enum {
	/*
	 * A stream, when watched for so long: doorbells this near to each
	 * other, or that took this part of the poster's time (softirqs go on
	 * with what they began), and the poster ahead of what has completed.
	 * Who posts one op and waits for it is none, and neither is who has
	 * better to do. It takes some ticks to see how much time another CPU
	 * spends idle.
	 */
	MEDGE_STREAM_WATCH_MS = 20,
	MEDGE_STREAM_GAP_US = 500,
	MEDGE_STREAM_PART = 3,
	MEDGE_STREAM_HELD = 8,		/* one of so many left its paths full: no CPU is wanted */
	MEDGE_STREAM_AHEAD = 4,		/* ops; and posts for each completion */
	MEDGE_STREAM_POSTS = 16,	/* at least */
	/*
	 * What is not seen to be one, but sends so much (bytes per us), is tried: it is
	 * taken for two such times, the first to settle, and goes back if no more is sent
	 * by that percentage; either way to be tried again after a time, which becomes
	 * longer with each trial that ends the same, and is as many times as long as the
	 * gain is that percentage.
	 */
	MEDGE_STREAM_TRY_RATE = 32,
	MEDGE_STREAM_TRY_GAIN = 10,
	MEDGE_STREAM_TRY_LOSS = 50,	/* percent: it need not settle, nobody has it */
	MEDGE_STREAM_TRY_MS = 500,
	MEDGE_STREAM_TRY_MS_MAX = 8000,
};

/**
 * struct medge_stream - of a CQ: do the posts that complete into it make a stream?
 * @posts: those that doorbells told of, about
 * @rings: doorbells since @since, about, and
 * @held: those that left their QP's paths full (medge_conn_is_full())
 * @in_rings: what they took, in ns, about
 * @since: ns; this and what follows under cq->lock
 * @posts_then: @posts at @since: those that follow tell a stream
 * @bytes_then: what the device had sent then
 * @rate_then: and before that, in bytes per us; 0: there was a pause
 * @all_rings: poller->rings then
 * @reaped: how many CQEs its user had read then; wraps
 * @cpu: one that may be idle, and poll
 * @cpu_idle_us: how long it had been idle then, in all
 * @try_at: jiffies, when it may be tried
 * @try_rest_ms: how long it rests if that is in vain
 * @try_keep_ms: how long it is kept if it is not
 *
 * A user of many QPs may post to them one after the other, to each for a moment: by
 * what one QP does alone, it would take as many rounds to see it.
 */
struct medge_stream {
	u32 posts;
	u32 rings;
	u32 held;
	u64 in_rings;
	u64 since;
	u32 posts_then;
	u64 bytes_then;
	u32 rate_then;
	u32 reaped;
	unsigned long all_rings;
	int cpu;
	u64 cpu_idle_us;
	unsigned long try_at;
	u32 try_rest_ms;
	u32 try_keep_ms;
};

/* Before any has rung. */
void medge_stream_init(struct medge_stream *stream);

/* Its doorbells are watched: the poller would take it, and has not yet. */
bool medge_stream_may_be(const struct medge_qp *qp);

/*
 * After a doorbell that a program has rung, at @began (ns), for a QP that is held: if
 * it is one of a stream, and another CPU has nothing to do, the poller takes it over.
 * May sleep.
 */
void medge_stream_rang(struct medge_qp *qp, u64 began);

/*
 * It was tried, and @gain percent more was sent. Return: how long it is kept, in ms, to
 * be tried anew then; or 0.
 */
u32 medge_stream_tried(struct medge_qp *qp, u32 gain);

#endif /* MEDGE_STREAM_H */
