// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The rules by which runs are given to paths: MultiEdge's three (thesis 2.5.2),
 * and one that knows how fast and how far each path is.
 *
 * The static rules know nothing but the weights: if the path whose turn it is
 * has no room, all wait for it. The dynamic ones take another.
 */
#include "state.h"

/* Round trips differ by this part for no reason. */
enum { AS_GOOD = 4 };

/* A path of unknown speed is thought fast, so that it is tried. Bytes a second. */
#define RATE_GUESS	1250000000ULL
/* Of a megabit a second. */
#define RATE_MBIT	125000ULL

static bool has_room(struct medge_conn *c, u64 now, u32 path,
		     const struct medge_pick *p)
{
	const struct medge_cong *g = &c->paths[path].cong;

	if (p->urgent || medge_cong_may_send(g, now))
		return true;
	c->paced_at = min(c->paced_at, medge_cong_paced_until(g));
	return false;
}

static s32 round_robin(struct medge_conn *c, u64 now, u64 paths,
		       const struct medge_pick *p)
{
	u64 later = paths & (~0ULL << c->sched_last) & ~(1ULL << c->sched_last);
	u32 path = __ffs64(later ? later : paths);

	return has_room(c, now, path, p) ? (s32)path : -1;
}

static s32 weighted(struct medge_conn *c, u64 now, u64 paths,
		    const struct medge_pick *p)
{
	u32 path = __ffs64(paths);

	for (; paths; paths &= paths - 1) {
		u32 i = __ffs64(paths);

		if (c->paths[i].charged < c->paths[path].charged)
			path = i;
	}
	return has_room(c, now, path, p) ? (s32)path : -1;
}

static s32 weighted_dynamic(struct medge_conn *c, u64 now, u64 paths,
			    const struct medge_pick *p)
{
	s32 path = -1;

	for (; paths; paths &= paths - 1) {
		u32 i = __ffs64(paths);
		const struct medge_conn_path *a = &c->paths[i], *b;

		if (!has_room(c, now, i, p))
			continue;
		b = &c->paths[max(path, 0)];
		if (path < 0 || (u64)a->cong.inflight * b->weight <
				(u64)b->cong.inflight * a->weight)
			path = i;
	}
	return path;
}

/* ---- the earliest ---- */

static u64 rate(const struct medge_conn_path *r)
{
	u64 nominal = r->weight > 1 ? r->weight * RATE_MBIT : RATE_GUESS;

	/*
	 * What was never full has shown how much we sent, not what it carries;
	 * and what a peer says to be full, while it acknowledges nothing, nothing.
	 */
	if (r->cong.was_full && r->cong.rate)
		return r->cong.rate;
	return max(r->cong.rate, nominal);
}

/*
 * The queue that was met drains while nothing is sent. Else a path that was slow
 * once, and is not taken for it, would be thought slow for ever.
 */
static u64 round_trip(const struct medge_conn_path *r, u64 now)
{
	const struct medge_cong *g = &r->cong;

	if (!g->rtt)
		return r->srtt;
	if (g->inflight)
		return g->rtt;
	return max(g->rtt - min(now - g->last, g->rtt), medge_cong_base(g));
}

/* Time from now until @bytes that are sent now on @r are acknowledged. */
static u64 finish(const struct medge_conn_path *r, u64 now, u32 bytes)
{
	u64 ahead = div64_u64(r->cong.inflight * 1000000000ULL, rate(r));

	return max(ahead, round_trip(r, now)) +
	       div64_u64(bytes * 1000000000ULL, rate(r));
}

/* Acks make room on it, so that waiting for it makes sense. */
static bool moves(const struct medge_conn_path *r, u64 now)
{
	return now - r->cong.round < 2 * r->cong.rtt + MEDGE_MSEC;
}

/* Of @paths by which @bytes are there at @until, the one that has carried least. */
static s32 in_turn(const struct medge_conn *c, u64 now, u64 paths, u32 bytes,
		   u64 until)
{
	s32 path = -1;

	for (; paths; paths &= paths - 1) {
		u32 i = __ffs64(paths);
		const struct medge_conn_path *r = &c->paths[i];

		if (finish(r, now, bytes) > until)
			continue;
		if (path < 0 || r->charged < c->paths[path].charged)
			path = i;
	}
	return path;
}

/*
 * Where the next frame arrives first. A path that is the first but has no room
 * is waited for if all that is left would have arrived by it and its like
 * before the frame did on another (ECF, CoNEXT 2017).
 */
static s32 earliest(struct medge_conn *c, u64 now, u64 paths,
		    const struct medge_pick *p)
{
	u32 bytes = min_t(u32, p->bytes + MEDGE_HDR_LEN, c->cfg.seg_len);
	u64 first_at = MEDGE_NEVER, open_at = MEDGE_NEVER, sum = 0;
	u64 open = 0, run;

	do {
		u32 i = __ffs64(paths);
		const struct medge_conn_path *r = &c->paths[i];
		u64 at = finish(r, now, bytes);

		sum += rate(r);
		if (has_room(c, now, i, p)) {
			open_at = min(open_at, at);
			open |= 1ULL << i;
		} else if (moves(r, now)) {
			first_at = min(first_at, at);
		}
		paths &= paths - 1;
	} while (paths);
	if (open_at > first_at &&
	    open_at - first_at > div64_u64((c->unsent + bytes) * 1000000000ULL, sum))
		return -1;
	/* Nor is one worse that is behind by less than a run takes on all of them. */
	run = div64_u64(min_t(u64, p->bytes, c->cfg.run_max) * 1000000000ULL, sum);
	return in_turn(c, now, open, bytes, open_at + open_at / AS_GOOD + run);
}

/*
 * Bytes that @path may take of what is to be sent so that all paths end
 * together, with what they have in flight; 0: there is more than fits at once.
 */
u32 medge_sched_share(const struct medge_conn *c, u32 path)
{
	const struct medge_conn_path *own = &c->paths[path], *r;
	u64 bytes = c->unsent, sum = 0, share;

	if (c->unsent > (u64)c->npaths * c->cfg.run_max)
		return 0;
	for (r = c->paths; r < c->paths + c->npaths; r++) {
		if (!r->weight || medge_sched_rank(r) != medge_sched_rank(own))
			continue;
		bytes += r->cong.inflight;
		sum += rate(r);
	}
	share = mul_u64_u64_div_u64(bytes, rate(own), max_t(u64, sum, 1));
	if (share > own->cong.window)
		return 0;
	return share - min_t(u64, own->cong.inflight, share);
}

static const struct {
	const char *name;
	s32 (*choose)(struct medge_conn *c, u64 now, u64 paths,
		      const struct medge_pick *p);
} schedulers[MEDGE_SCHEDULERS] = {
	[MEDGE_SCHED_ROUND_ROBIN] = { "round-robin", round_robin },
	[MEDGE_SCHED_WEIGHTED] = { "weighted", weighted },
	[MEDGE_SCHED_WEIGHTED_DYNAMIC] = { "weighted-dynamic", weighted_dynamic },
	[MEDGE_SCHED_EARLIEST] = { "earliest", earliest },
};

const char *medge_scheduler_name(u32 scheduler)
{
	return scheduler < MEDGE_SCHEDULERS ? schedulers[scheduler].name : NULL;
}

s32 medge_scheduler_choose(struct medge_conn *c, u64 now, u64 paths,
			   const struct medge_pick *p)
{
	u32 only = __ffs64(paths);

	c->paced_at = MEDGE_NEVER;
	/* A lone path costs nothing. */
	if (!(paths & (paths - 1)))
		return has_room(c, now, only, p) ? (s32)only : -1;
	return schedulers[c->scheduler].choose(c, now, paths, p);
}
