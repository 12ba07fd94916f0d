// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Do doorbells make a stream? */
#include <linux/ktime.h>
#include <linux/tick.h>

#include "borrow.h"
#include "cq.h"
#include "device.h"
#include "poller.h"
#include "qp.h"
#include "rate.h"
#include "stats.h"
#include "stream.h"

/*
 * Does its user post more than he waits for? Then there are ops that are not
 * complete, or completions that he has not read, or he asks for few of them: as
 * seen by all QPs that complete into one CQ, for he may have many with little
 * to do for each. Under qp->lock and the CQ's.
 */
static bool is_ahead(const struct medge_qp *qp, struct medge_cq *cq)
{
	const struct medge_stream *stream = &cq->stream;
	u32 cons, ahead = medge_cq_unread(cq, &cons);
	u32 posts = READ_ONCE(stream->posts) - stream->posts_then;

	if (qp->conn)
		ahead += medge_conn_next_op(qp->conn) -
			 medge_conn_oldest_op(qp->conn);
	if (ahead >= MEDGE_STREAM_AHEAD)
		return true;
	return posts >= MEDGE_STREAM_POSTS &&
	       cons - stream->reaped <= posts / MEDGE_STREAM_AHEAD;
}

/*
 * It sends as fast as its paths carry; another CPU would not make that more. Any doorbell
 * may find that there is room for a moment, but where CPUs are what holds it back, all do.
 */
static bool is_held_back(const struct medge_stream *stream)
{
	return READ_ONCE(stream->held) * MEDGE_STREAM_HELD >=
	       READ_ONCE(stream->rings);
}

/* Another one each time, so that it need not look at all of them at once. */
static int other_cpu(int last)
{
	int self = raw_smp_processor_id(), cpu = last;

	do {
		cpu = cpumask_next(cpu, cpu_online_mask);
		if (cpu >= nr_cpu_ids)
			cpu = cpumask_first(cpu_online_mask);
	} while (cpu == self && num_online_cpus() > 1);
	return cpu;
}

/* What its device has sent while it was watched, in bytes per us; or 0. Under cq->lock. */
static u32 sent(struct medge_device *dev, const struct medge_stream *stream, u64 now)
{
	u64 ns = now - stream->since;

	/* After a pause it is not known what it could send. */
	if (ns > 2 * MEDGE_STREAM_WATCH_MS * NSEC_PER_MSEC)
		return 0;
	return medge_rate(medge_stats_tx_bytes(dev) - stream->bytes_then, ns);
}

/* Under cq->lock. */
static void watch_for_stream(struct medge_device *dev, struct medge_cq *cq, u64 now,
			     u32 rate)
{
	struct medge_stream *stream = &cq->stream;

	stream->rate_then = rate;
	WRITE_ONCE(stream->rings, 0);
	WRITE_ONCE(stream->held, 0);
	WRITE_ONCE(stream->in_rings, 0);
	WRITE_ONCE(stream->since, now);
	stream->all_rings = READ_ONCE(dev->poller.rings);
	stream->bytes_then = medge_stats_tx_bytes(dev);
	stream->posts_then = READ_ONCE(stream->posts);
	medge_cq_unread(cq, &stream->reaped);
	stream->cpu = other_cpu(stream->cpu);
	stream->cpu_idle_us = get_cpu_idle_time_us(stream->cpu, NULL);
}

/* Is there a CPU for it? Under cq->lock. */
static bool has_cpu(const struct medge_poller *poller,
		    const struct medge_stream *stream, u64 now)
{
	/* Without tickless idle nobody counts it, and it does not change. */
	u64 idle_us = get_cpu_idle_time_us(stream->cpu, NULL) -
		      stream->cpu_idle_us;

	/* Half of the time; some kernels count it by ticks, of which one may be missing. */
	return 2 * idle_us * NSEC_PER_USEC + TICK_NSEC >= now - stream->since &&
	       medge_aside_has_rested(&poller->aside);
}

/* Under cq->lock. */
static bool is_stream(const struct medge_poller *poller,
		      const struct medge_stream *stream, u64 now)
{
	u64 ns = now - stream->since;
	u64 rings = READ_ONCE(poller->rings) - stream->all_rings;

	return ns <= rings * MEDGE_STREAM_GAP_US * NSEC_PER_USEC ||
	       READ_ONCE(stream->in_rings) >= ns / MEDGE_STREAM_PART;
}

/*
 * Its doorbells do not tell: there are few, and what holds it back may be its paths, or
 * the softirqs of its CPU; or there is no CPU that idles, but one of somebody who spins.
 * @rate: what its device sends now, in bytes per us. Return: what it sends without the
 * poller, if it is to be tried; or 0. Under cq->lock.
 */
static u32 worth_trying(const struct medge_stream *stream, u32 rate)
{
	/* Of a time in which it began, that would say little. */
	if (min(rate, stream->rate_then) < MEDGE_STREAM_TRY_RATE ||
	    time_before(jiffies, stream->try_at))
		return 0;
	return max(rate, stream->rate_then);
}

/* How many posts the kernel has been told of since the last doorbell. */
static u32 told(struct medge_qp *qp)
{
	u32 taken = READ_ONCE(qp->sq.cons);
	u32 posts = taken - READ_ONCE(qp->polled.told);

	WRITE_ONCE(qp->polled.told, taken);
	/* A reset begins at 0 again. */
	return min(posts, qp->sq.mask + 1);
}

bool medge_stream_may_be(const struct medge_qp *qp)
{
	const struct medge_polled *polled = &qp->polled;

	return READ_ONCE(qp->dev->poller.mode) == MEDGE_POLL_AUTO &&
	       !READ_ONCE(polled->wanted) && !list_empty(&polled->entry);
}

void medge_stream_rang(struct medge_qp *qp, u64 began)
{
	struct medge_poller *poller = &qp->dev->poller;
	struct medge_cq *cq = medge_qp_send_cq(qp);
	struct medge_stream *stream = &cq->stream;
	bool watched, is, cpu = true;
	u32 rate = 0, rate_now = 0;
	u64 now;

	if (!medge_stream_may_be(qp))
		return;
	/* Where threads ring at once, a count may be lost. */
	now = ktime_get_ns();
	WRITE_ONCE(stream->rings, READ_ONCE(stream->rings) + 1);
	if (READ_ONCE(qp->full))
		WRITE_ONCE(stream->held, READ_ONCE(stream->held) + 1);
	WRITE_ONCE(stream->in_rings, READ_ONCE(stream->in_rings) + now - began);
	WRITE_ONCE(stream->posts, READ_ONCE(stream->posts) + told(qp));
	WRITE_ONCE(poller->rings, READ_ONCE(poller->rings) + 1);
	watched = now - READ_ONCE(stream->since) >=
		  MEDGE_STREAM_WATCH_MS * NSEC_PER_MSEC;
	/* While it is awake for one, others cost nothing. */
	if (!watched && !READ_ONCE(poller->streaming))
		return;

	spin_lock_bh(&qp->lock);
	spin_lock(&cq->lock);
	if (watched)
		rate_now = sent(qp->dev, stream, now);
	if (!READ_ONCE(poller->streaming))
		cpu = has_cpu(poller, stream, now);
	is = (READ_ONCE(poller->streaming) ||
	      (cpu && is_stream(poller, stream, now))) &&
	     !is_held_back(stream);
	if (!is && watched && !READ_ONCE(poller->streaming) &&
	    (cpu || medge_borrow_may(cq)))
		rate = worth_trying(stream, rate_now);
	is = (is || rate) && is_ahead(qp, cq);
	if (is && rate) {
		/* Unless what comes of it is known before. */
		stream->try_at = jiffies + msecs_to_jiffies(stream->try_rest_ms);
		if (cpu)
			medge_count(qp->dev, poller_tried);
	}
	if (watched)
		watch_for_stream(qp->dev, cq, now, rate_now);
	spin_unlock(&cq->lock);
	spin_unlock_bh(&qp->lock);
	if (is && cpu)
		medge_poller_take(qp, READ_ONCE(stream->cpu), rate);
	else if (is)
		medge_borrow_ask(qp, cq, rate);
}

void medge_stream_init(struct medge_stream *stream)
{
	stream->try_at = jiffies;
	stream->try_rest_ms = MEDGE_STREAM_TRY_MS;
	stream->try_keep_ms = MEDGE_STREAM_TRY_MS;
}

static u32 times(u32 n, u32 ms)
{
	return min_t(u64, (u64)n * ms, MEDGE_STREAM_TRY_MS_MAX);
}

u32 medge_stream_tried(struct medge_qp *qp, u32 gain)
{
	struct medge_cq *cq = medge_qp_send_cq(qp);
	struct medge_stream *stream = &cq->stream;
	u32 keep_ms = 0;

	spin_lock_bh(&cq->lock);
	stream->try_at = jiffies;
	if (gain >= MEDGE_STREAM_TRY_GAIN) {
		keep_ms = times(gain / MEDGE_STREAM_TRY_GAIN,
				stream->try_keep_ms);
		stream->try_keep_ms = times(2, stream->try_keep_ms);
		stream->try_rest_ms = MEDGE_STREAM_TRY_MS;
	} else {
		stream->try_at += msecs_to_jiffies(stream->try_rest_ms);
		stream->try_rest_ms = times(2, stream->try_rest_ms);
		stream->try_keep_ms = MEDGE_STREAM_TRY_MS;
	}
	spin_unlock_bh(&cq->lock);
	return keep_ms;
}
