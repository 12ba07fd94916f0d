// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* How many bytes a path may have in flight: delay, marks and losses decide. */
#include "congestion.h"

enum {
	/* The standing queue that is wanted on a path with a large window ... */
	TARGET_NS = 200 * 1000,
	/*
	 * ... and how much more with a small one (Swift's flow scaling): a flow
	 * that has few runs in flight on a slow or shared path needs them, and
	 * the smaller of two flows grows first.
	 */
	TARGET_MORE_NS = 1200 * 1000,
	TARGET_MORE_RUNS = 2,
	TARGET_LEAST_RUNS = 16,
	/* Nor may the queue be shorter than the hosts' own noise, up to this. */
	NOISE_MAX_NS = 4000 * 1000,
	/*
	 * Noise is the worst of late, since a host that stood still once will do so
	 * again; a round forgets this part of it, so that some of it is left after the
	 * tens of milliseconds in which that may be. A mean has forgotten the last time
	 * when the next one comes, and then takes it for a queue of ours.
	 */
	NOISE_PART = 60,
	/* Where as much comes back: so many more, for that queue and its noise. */
	RETURN = 2,
	/* Of the excess so many per mille are taken off, but never more than half. */
	BETA = 800,
	/* A full queue, not a bad cable, loses more than one, and this part of a round. */
	LOSS_PART = 32,
	LOSS_OFF = 300,
	/* A round's growth is half a frame, and after so many rounds one more. */
	CLEAN_ROUNDS = 4,
	CLEAN_MAX = 255,
	/* Acks, and runs, to a window. */
	PARTS = 4,
	/* The least window is this part of a frame; the frames are paced. */
	LEAST = 64,
	WINDOW_MAX = 1 << 30,
	/* Who was idle for so long knows nothing of the path. */
	IDLE_NS = 500 * 1000 * 1000,
};

/* A longer route is told from a queue when the base is forgotten. */
#define BASE_PERIOD_NS	15000000000ULL
#define NEVER		(~0ULL)
#define SEC_NS		1000000000ULL

void medge_cong_init(struct medge_cong *g, u32 frame, u32 run)
{
	memset(g, 0, sizeof(*g));
	g->frame = frame;
	g->run = run;
	g->window = max(run, frame);
	g->threshold = WINDOW_MAX;
	g->round_min = NEVER;
}

u64 medge_cong_base(const struct medge_cong *g)
{
	if (!g->base[0] || !g->base[1])
		return max(g->base[0], g->base[1]);
	return min(g->base[0], g->base[1]);
}

u64 medge_cong_target(const struct medge_cong *g)
{
	u64 most = TARGET_MORE_RUNS * (u64)g->run;
	u64 least = TARGET_LEAST_RUNS * (u64)g->run;
	u64 window = clamp_t(u64, g->window, most, least);
	u64 noise = min_t(u64, g->noise, NOISE_MAX_NS);

	/* From all of it at @most to nothing at @least, as 1 / window. */
	return TARGET_NS + noise +
	       div64_u64(TARGET_MORE_NS * most * (least - window),
			 window * (least - most));
}

/* ---- what may be sent ---- */

static bool is_paced(const struct medge_cong *g)
{
	return g->window < g->frame;
}

bool medge_cong_may_send(const struct medge_cong *g, u64 now)
{
	if (is_paced(g))
		return !g->inflight && now >= g->paced_at;
	return g->inflight < g->window;
}

u64 medge_cong_paced_until(const struct medge_cong *g)
{
	return is_paced(g) && !g->inflight ? g->paced_at : NEVER;
}

u32 medge_cong_run(const struct medge_cong *g)
{
	return clamp(g->window / PARTS, g->frame, g->run);
}

static void begin_round(struct medge_cong *g, u64 now)
{
	g->round = now;
	g->round_min = NEVER;
	g->round_max = 0;
	g->acked = 0;
	g->marked = 0;
	g->lost = 0;
	g->back = 0;
	g->asked = false;
	g->limited = false;
}

static void wake(struct medge_cong *g, u64 now)
{
	/* A round that was lost as a whole has no end of its own. */
	if (g->lost && !g->acked) {
		g->before = max(g->before, g->window);
		g->window = max(g->window / 2, g->frame / LEAST);
		g->threshold = g->window;
		g->clean = 0;
	}
	if (g->last && now - g->last > IDLE_NS) {
		g->window = min(g->window, g->run);
		g->threshold = WINDOW_MAX;
	}
	/*
	 * One that was acknowledged by a shorter path has; but what ends it is on its way
	 * yet, and if each began another, a path of a frame's window would stay one.
	 */
	if (g->lost || !g->asked || now - g->last > 2 * g->rtt)
		begin_round(g, now);
}

/*
 * Acks keep a window moving; where nothing waits for them, neither behind what is
 * sent in one go, nor behind a first run, an ack for each window will do. A small
 * window moves by frames rather than by parts of them, and not by each, if it has more.
 */
static u32 unasked_max(const struct medge_cong *g, u32 bytes, bool more)
{
	u32 go = more ? bytes : g->burst;

	if (g->inflight <= go)
		return g->window;
	return max(g->window / PARTS, min(g->window / 2, 2 * g->frame));
}

bool medge_cong_sent(struct medge_cong *g, u64 now, u32 bytes, u8 how)
{
	bool more = how & MEDGE_CONG_MORE;
	u32 most;

	if (!g->inflight)
		wake(g, now);
	if (is_paced(g))
		g->paced_at = now + div64_u64(medge_cong_base(g) * bytes,
					      g->window);
	g->burst = g->last == now ? g->burst + bytes : bytes;
	g->last = now;
	g->inflight += bytes;
	g->unasked += bytes;
	/* Who is paced waits for each frame's ack, be it shorter than the window. */
	g->limited |= g->inflight >= g->window || (is_paced(g) && more);
	if (!is_paced(g)) {
		most = unasked_max(g, bytes, more);
		if (g->unasked < (how & MEDGE_CONG_ASKED ? most / 2 : most))
			return false;
	}
	g->unasked = 0;
	g->asked = true;
	return true;
}

/* ---- what came of it ---- */

void medge_cong_lost(struct medge_cong *g, u32 bytes)
{
	g->lost += bytes;
}

void medge_cong_returned(struct medge_cong *g, u32 bytes)
{
	g->back += bytes;
}

void medge_cong_marked(struct medge_cong *g)
{
	g->marked += g->window / PARTS;
}

/*
 * What comes back by another way may do so sooner than by its own, and then is no
 * base for what comes by that; but where nothing does, it is.
 */
static void note_base(struct medge_cong *g, u64 now, u64 rtt, bool own_way)
{
	u64 age = now - g->base_since;

	if (g->base_own && !own_way && age <= 2 * BASE_PERIOD_NS)
		return;
	if (!g->base_since || g->base_own != own_way || age > BASE_PERIOD_NS) {
		g->base_anew = g->base_since && g->base_own == own_way;
		g->base[1] = g->base_own == own_way ? g->base[0] : 0;
		g->base[0] = rtt;
		g->base_own = own_way;
		g->base_since = max_t(u64, now, 1);
	}
	g->base[0] = min(g->base[0], rtt);
}

/* What the path carries: only who has filled it learns that it is less. */
static void note_rate(struct medge_cong *g, u64 now)
{
	u64 took = max_t(u64, now - g->round, 1);
	u64 rate = div64_u64((u64)g->acked * SEC_NS, took);

	if (rate > g->rate)
		g->rate = rate;
	else if (g->limited)
		g->rate -= (g->rate - rate) / 8;
}

/* The queue that is wanted, and what may be that of the way back. */
static u64 both_targets(const struct medge_cong *g)
{
	u64 target = medge_cong_target(g);

	return target + div64_u64(RETURN * target * min(g->back, g->acked),
				  max_t(u32, g->acked, 1));
}

/*
 * A host that stands still delays all that is on its way, which may be a round as a
 * whole; a queue is still there in the next one. But while the window doubles, that
 * would be four times too much.
 */
static u64 standing(const struct medge_cong *g)
{
	if (g->window < g->threshold)
		return g->round_min;
	return min(g->round_min, g->last_min);
}

/* Per mille of the window to take off; 0: it may grow. */
static u32 excess(const struct medge_cong *g)
{
	u64 base = medge_cong_base(g), target = both_targets(g);
	u64 least = standing(g), queue = least - min(base, least);
	u32 bytes = max_t(u32, g->acked + g->lost, 1);
	u64 off = 0;

	if (queue > target)
		off = div64_u64(BETA * (queue - target), queue);
	off = max_t(u64, off, 500ULL * min(g->marked, bytes) / bytes);
	if (g->lost > max(bytes / LOSS_PART, g->frame))
		off = max_t(u64, off, LOSS_OFF);
	return min_t(u64, off + 1000ULL * g->lost / bytes, 500);
}

static void grow(struct medge_cong *g)
{
	/*
	 * The same for all flows that meet here, whatever their windows, so that
	 * they become equal; more where nothing was met for long.
	 */
	u32 step = g->frame / 2 + g->frame * (g->clean / CLEAN_ROUNDS);

	/* A window that was not filled has not been tried. */
	if (!g->limited)
		return;
	if (g->window < g->threshold) {
		g->window = min(2 * g->window, g->threshold);
	} else {
		g->window += clamp(step, 1u, min(g->window, g->run));
		g->clean += g->clean < CLEAN_MAX;
		g->before = 0;
	}
	g->window = min_t(u32, g->window, WINDOW_MAX);
}

/* While the window doubles, round trips differ by the queue that grows with it. */
static void note_noise(struct medge_cong *g)
{
	g->noise -= g->noise / NOISE_PART;
	if (g->window >= g->threshold)
		g->noise = max(g->noise, g->round_max - g->round_min);
}

/*
 * Who never pauses has a queue of his own always, and would take it for the path's
 * length when that is to be known anew, and the next one that is wanted on top of
 * it. So he lets it run empty for one round, as BBR does (ACM Queue 14(5), 2016).
 */
static void run_empty(struct medge_cong *g)
{
	if (g->base_anew && g->limited && g->window > g->frame) {
		g->kept = g->window;
		g->window = g->frame;
	}
	g->base_anew = false;
}

static void has_run_empty(struct medge_cong *g)
{
	if (g->kept)
		g->window = g->kept;
	g->kept = 0;
}

static void end_round(struct medge_cong *g, u64 now)
{
	u32 off;

	if (g->kept) {
		has_run_empty(g);
		g->last_min = g->round_min;
		begin_round(g, now);
		return;
	}
	off = excess(g);
	note_rate(g, now);
	note_noise(g);
	g->rtt = g->rtt ? g->rtt - g->rtt / 4 + g->round_min / 4 : g->round_min;
	if (off) {
		/* The first time may have been a stall, and the next ones tell. */
		g->was_full |= g->window >= g->threshold;
		g->window -= div_u64((u64)g->window * off, 1000);
		g->window = max(g->window, g->frame / LEAST);
		g->threshold = g->window;
		g->clean = 0;
	} else {
		grow(g);
	}
	run_empty(g);
	g->last_min = g->round_min;
	begin_round(g, now);
}

void medge_cong_measured(struct medge_cong *g, u64 now, u64 sent, u64 rtt,
			 bool own_way)
{
	note_base(g, now, rtt, own_way);
	g->round_min = min(g->round_min, rtt);
	g->round_max = max(g->round_max, rtt);
	if (sent >= g->round)
		end_round(g, now);
}

void medge_cong_timeout(struct medge_cong *g)
{
	has_run_empty(g);
	g->before = max(g->before, g->window);
	g->threshold = max(g->window / 2, g->frame);
	g->window = min(g->window, g->frame);
	g->round_min = NEVER;
	g->lost = 0;
}

void medge_cong_undo(struct medge_cong *g)
{
	g->window = max(g->window, g->before);
	g->before = 0;
}
