// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What was lost, and when to find out. Frames are sprayed, so a gap in psn says
 * nothing: a frame is lost when a later transmission on the *same* path was
 * acknowledged and the path's reordering window has passed (RACK, RFC 8985 6,
 * per path). A path that went silent has no later acks: its frames are given
 * up when other paths have acknowledged what was sent after them, and the path
 * has been behind for longer than it usually is. The tail is probed before
 * the timeout (TLP, RFC 8985 7).
 *
 * A host that stands still makes all paths late and none of them dead. So a path
 * is compared with others, not with its round trip, and by a clock that hardly
 * moves while nothing is heard on any.
 */
#include "state.h"

static u64 conn_srtt(const struct medge_conn *c)
{
	u64 srtt = 0;
	u32 i;

	for (i = 0; i < c->npaths; i++) {
		const struct medge_conn_path *path = &c->paths[i];

		if (path->weight && path->state != MEDGE_PATH_DOWN)
			srtt = max(srtt, path->srtt + 4 * path->rttvar);
	}
	return srtt;
}

/* 0: not known. The least of a round: hosts that stand still are not in it. */
static u64 path_rtt(const struct medge_conn_path *path)
{
	return path->cong.rtt ?: path->srtt;
}

/* ---- the clock ---- */

static void tick(struct medge_conn *c, u64 now)
{
	c->clock += min_t(u64, now - c->clock_at, MEDGE_CLOCK_STEP);
	c->clock_at = now;
}

/* For how much longer than its round trip has it owed an ack? */
static u64 silence(const struct medge_conn *c, const struct medge_conn_path *path)
{
	u64 is = c->clock - path->since;

	return is - min(is, 2 * path_rtt(path));
}

/* ---- frames ---- */

/* What is said of @first, @n before @s, goes for that one as well. */
static bool is_alike(const struct medge_sent *first, const struct medge_sent *s,
		     u32 n)
{
	const u8 state = MEDGE_SENT_ACKED | MEDGE_SENT_LOST | MEDGE_SENT_AGAIN |
			 MEDGE_SENT_RESPONSE;

	return s->time == first->time && s->path == first->path &&
	       s->path_seq == first->path_seq + n &&
	       !((s->flags ^ first->flags) & state) &&
	       (s->op_no == first->op_no ||
		!(first->flags & MEDGE_SENT_RESPONSE));
}

u32 medge_loss_alike(const struct medge_conn *c, u32 psn, u32 most)
{
	struct medge_sent *first = medge_sent(c, psn), *s = first;
	u32 n;

	for (n = 1; n < most; n++) {
		s = medge_sent_next(c, s, psn + n);
		if (!is_alike(first, s, n))
			break;
	}
	return n;
}

/* Frames that are alike. Return: how many bytes they were in flight. */
static u32 forget(struct medge_conn *c, u32 psn, u32 n)
{
	struct medge_sent *s = medge_sent(c, psn);
	struct medge_cong *cong = &c->paths[s->path].cong;
	u8 flags = s->flags;
	u32 i, bytes = 0;

	if (flags & MEDGE_SENT_ACKED)
		return 0;
	for (i = 0; i < n; i++) {
		if (i)
			s = medge_sent_next(c, s, psn + i);
		s->flags = (s->flags | MEDGE_SENT_ACKED) & ~MEDGE_SENT_LOST;
		bytes += s->len;
	}
	c->nunacked -= n;
	if (flags & MEDGE_SENT_LOST) {
		c->nlost -= n;
		return 0;
	}
	medge_cong_forgot(cong, bytes);
	return bytes;
}

void medge_loss_forget(struct medge_conn *c, u32 psn)
{
	forget(c, psn, 1);
}

void medge_loss_forget_requests(struct medge_conn *c)
{
	u32 psn;

	for (psn = c->snd_una; psn != c->snd_nxt; psn++)
		if (!(medge_sent(c, psn)->flags & MEDGE_SENT_RESPONSE))
			medge_loss_forget(c, psn);
}

void medge_loss_acked(struct medge_conn *c, u32 psn, u32 n)
{
	const struct medge_sent *s = medge_sent(c, psn);
	struct medge_conn_path *path = &c->paths[s->path];

	medge_cong_acked(&path->cong, forget(c, psn, n));
	if (s->flags & MEDGE_SENT_RESPONSE)
		medge_response_acked(c, s->op_no, n);
	if (s->path_seq != path->expect_seq)
		c->gap = true;
	path->expect_seq = s->path_seq + n;
	/* Which of the copies arrived, and on which path, is not known. */
	if (s->flags & MEDGE_SENT_AGAIN)
		return;
	if (s->time < c->acked_time)
		path->behind = max(path->behind, silence(c, path));
	path->since = c->clock;
	path->newest = max(path->newest, s->time);
	path->report.acked += n;
	path->report.acked_sent = path->newest;
	c->report_some = true;
}

void medge_loss_accounted(struct medge_conn *c, u32 psn, u64 now)
{
	const struct medge_sent *s = medge_sent(c, psn);
	struct medge_conn_path *path = &c->paths[s->path];
	u64 rtt = path_rtt(path);

	/*
	 * Sent twice and acknowledged sooner than the path's round trip: the
	 * first one is what arrived, and says nothing of this path.
	 */
	if (s->flags & MEDGE_SENT_AGAIN &&
	    (!rtt || now - s->time < rtt - rtt / 4))
		return;
	if (!path->any_acked || medge_seq_before(path->acked_seq, s->path_seq))
		path->acked_seq = s->path_seq;
	path->any_acked = true;
	c->acked_time = max(c->acked_time, s->time);
}

void medge_loss_mark(struct medge_conn *c, u32 psn)
{
	struct medge_sent *s = medge_sent(c, psn);

	if (s->flags & (MEDGE_SENT_ACKED | MEDGE_SENT_LOST))
		return;
	s->flags |= MEDGE_SENT_LOST;
	medge_cong_forgot(&c->paths[s->path].cong, s->len);
	c->nlost++;
	if (medge_seq_before(psn, c->lost_hint))
		c->lost_hint = psn;
}

/* A later transmission on the same path was acknowledged. */
static bool passed(const struct medge_conn *c, const struct medge_sent *s)
{
	const struct medge_conn_path *path = &c->paths[s->path];

	return path->any_acked && medge_seq_before(s->path_seq, path->acked_seq);
}

/* When a frame that had to arrive by itself is overdue. */
static u64 overdue(const struct medge_conn *c, const struct medge_sent *s)
{
	const struct medge_conn_path *path = &c->paths[s->path];

	/* A path that has not been measured may be a slow one. */
	return s->time + (path->srtt ?: MEDGE_RTT_LONG);
}

/* When @s, which others have passed, is to be given up; @now if it is time. */
static u64 silent(const struct medge_conn *c, const struct medge_sent *s,
		  u64 now)
{
	const struct medge_conn_path *path = &c->paths[s->path];
	u64 may = MEDGE_BEHIND_MIN + path->behind + c->patience;
	u64 is = silence(c, path);

	/* The clock waits for those who are heard; who asks it makes it go. */
	if (is < may)
		now += min_t(u64, may - is, MEDGE_CLOCK_STEP);
	return max(now, overdue(c, s));
}

/* When @s is to be given up if it is not acknowledged; MEDGE_NEVER: not yet known. */
static u64 due(const struct medge_conn *c, const struct medge_sent *s, u64 now)
{
	const struct medge_conn_path *path = &c->paths[s->path];

	if (passed(c, s))
		return s->time + path->srtt + max(path->srtt / 4, path->reorder);
	return c->acked_time > s->time ? silent(c, s, now) : MEDGE_NEVER;
}

static void give_up(struct medge_conn *c, u32 psn, u64 now)
{
	const struct medge_sent *s = medge_sent(c, psn);
	struct medge_conn_path *path = &c->paths[s->path];

	medge_loss_mark(c, psn);
	medge_cong_lost(&path->cong, s->len);
	path->report.lost++;
	c->lost_at = now;
}

/* Where others have passed, the path of frame @psn lives, but loses. */
static void lose(struct medge_conn *c, u32 psn, u64 now)
{
	const struct medge_sent *s = medge_sent(c, psn);

	give_up(c, psn, now);
	if (passed(c, s))
		c->paths[s->path].report.missed++;
	else
		medge_share_silent(c, s->path, s->time);
}

static bool undecided(const struct medge_sent *s)
{
	return !(s->flags & (MEDGE_SENT_ACKED | MEDGE_SENT_LOST));
}

void medge_loss_detect(struct medge_conn *c, u64 now)
{
	u32 psn;

	tick(c, now);
	c->loss_at = MEDGE_NEVER;
	for (psn = c->snd_una; psn != c->snd_nxt; psn++) {
		struct medge_sent *s = medge_sent(c, psn);
		u64 at;

		if (!undecided(s))
			continue;
		at = due(c, s, now);
		if (at > now) {
			c->loss_at = min(c->loss_at, at);
			continue;
		}
		lose(c, psn, now);
		c->stats.lost_rail++;
	}
}

/*
 * We have asked after it, and a round trip has passed. Or we have no clock any more
 * that would let us ask: who has refused something only answers.
 */
static bool answer_is_due(const struct medge_conn *c, const struct medge_sent *s,
			  u64 now)
{
	u64 since = now - s->time;

	return since >= medge_loss_rto(c) ||
	       (c->poked >= s->time + MEDGE_PTO_MIN &&
		since >= c->paths[s->path].srtt);
}

/* The oldest frame that is undecided, in *psn. The peer may have some before it. */
static bool oldest_undecided(const struct medge_conn *c, u32 *psn)
{
	for (*psn = c->snd_una; *psn != c->snd_nxt; (*psn)++)
		if (undecided(medge_sent(c, *psn)))
			return true;
	return false;
}

/*
 * An answer without news is as good as an ack of something sent when we asked:
 * what was sent before that is late. The oldest goes again at once.
 */
void medge_loss_answered(struct medge_conn *c, u64 now)
{
	u32 psn;

	if (!c->nunacked)
		return;
	tick(c, now);
	c->acked_time = max(c->acked_time, c->poked);
	if (oldest_undecided(c, &psn) &&
	    answer_is_due(c, medge_sent(c, psn), now))
		give_up(c, psn, now);
	medge_loss_detect(c, now);
}

/*
 * Of the frame that the ack at hand is the first to acknowledge. If we have
 * asked since, and that could have been answered by now, it may be the answer:
 * then an earlier ack was lost, and the time since the frame says how long we
 * waited, not how far the peer is (Karn).
 */
static u64 round_trip(const struct medge_conn *c,
		      const struct medge_conn_path *path, u64 now)
{
	u64 answer = now - c->poked;

	if (path->newest < c->poked && answer >= medge_cong_base(&path->cong))
		return answer;
	return now - path->newest;
}

/*
 * Where every path was acknowledged in its order nothing is late, and only the
 * oldest frame needs a look, lest its path has gone silent.
 */
void medge_loss_news(struct medge_conn *c, u64 now)
{
	const struct medge_sent *oldest = medge_sent(c, c->snd_una);
	u32 i;

	tick(c, now);
	for (i = 0; i < c->npaths; i++) {
		struct medge_conn_path *path = &c->paths[i];

		if (!path->newest)
			continue;
		medge_share_rtt(c, path, round_trip(c, path, now));
		path->newest = 0;
		path->behind -= path->behind / 32;
	}
	if (c->snd_una == c->snd_nxt) {
		c->gap = false;
		c->loss_at = MEDGE_NEVER;
		return;
	}
	if (!c->gap) {
		c->loss_at = due(c, oldest, now);
		if (now < c->loss_at)
			return;
	}
	medge_loss_detect(c, now);
	c->gap = c->loss_at != MEDGE_NEVER;
}

void medge_loss_path_down(struct medge_conn *c, u32 path)
{
	u32 psn;

	for (psn = c->snd_una; psn != c->snd_nxt; psn++) {
		struct medge_sent *s = medge_sent(c, psn);

		if (s->path != path || !undecided(s))
			continue;
		medge_loss_mark(c, psn);
		c->stats.lost_down++;
	}
}

/*
 * Frames came twice: what we took for lost was late. Wait longer (RFC 8985 6.2),
 * and, lest a path that has become slower is never measured again because all
 * its frames are sent twice, be patient with silence, too.
 */
void medge_loss_spurious(struct medge_conn *c, u64 now, u32 dups)
{
	u32 i;

	if (!dups) {
		if (c->patience && now >= c->impatient_at) {
			c->patience /= 2;
			c->impatient_at = now + MEDGE_IMPATIENT;
		}
		return;
	}
	c->late = min_t(u32, c->late + min_t(u32, dups, MEDGE_WINDOW), MEDGE_WINDOW);
	c->impatient_at = now + MEDGE_IMPATIENT;
	/* What was given up before it grew last says nothing of how it is now. */
	if (now >= c->patient_at) {
		c->patience = min_t(u64, max_t(u64, 2 * c->patience, MEDGE_MSEC),
				    MEDGE_PATIENCE_MAX);
		c->patient_at = now + c->patience + conn_srtt(c);
	}
	for (i = 0; i < c->npaths; i++) {
		struct medge_conn_path *path = &c->paths[i];

		medge_cong_undo(&path->cong);
		if (path->srtt)
			path->reorder = min(max(2 * path->reorder, path->srtt / 4),
					    2 * path->srtt + MEDGE_MSEC);
	}
}

static bool in_flight(const struct medge_conn *c)
{
	return c->nunacked;
}

/* Requests the peer has received but not answered: is it still there? */
static bool waiting(const struct medge_conn *c)
{
	return !c->dead && c->op_oldest != c->op_send && !c->rnr_wait;
}

/*
 * Patience grows from timeout to timeout, but so that all the tries that the
 * application grants fit in the time that it grants, if round trips do.
 */
u64 medge_loss_rto(const struct medge_conn *c)
{
	u64 base = max_t(u64, conn_srtt(c) + c->cfg.ack_delay_ns, MEDGE_RTO_MIN);
	u64 most = c->cfg.timeout_ns ?: MEDGE_RTO_MAX;
	u32 i;

	for (i = 0; i < c->npaths; i++)
		if (c->paths[i].cong.inflight && !c->paths[i].srtt)
			base = max_t(u64, base, MEDGE_RTT_LONG);
	return min3(base << min_t(u8, c->backoff, 10), max(base, most),
		    (u64)MEDGE_RTO_MAX);
}

/*
 * While acks come, what the timer is set for moves on, and each time that it fires
 * it finds nothing to do. Where nothing is lost it need not come often: what is lost
 * first waits a little longer to be missed, and no more than in TCP.
 */
u64 medge_loss_pto_least(const struct medge_conn *c)
{
	u64 calm = c->progress - min(c->lost_at, c->progress);

	return clamp_t(u64, calm / MEDGE_PTO_CALM_PART, MEDGE_PTO_MIN,
		       MEDGE_PTO_CALM);
}

/* When to ask: nothing was heard for longer than an answer takes. */
static u64 pto(const struct medge_conn *c)
{
	const struct medge_sent *oldest = medge_sent(c, c->snd_una);
	u64 wait = 0, sent;
	u32 i;

	for (i = 0; i < c->npaths; i++) {
		const struct medge_conn_path *path = &c->paths[i];

		if (path->cong.inflight)
			wait = max(wait, 2 * (path_rtt(path) ?:
					      2ull * MEDGE_RTT_GUESS));
	}
	/* The peer has a timer for that, which may be late, too. */
	if (!c->last_ack_req)
		wait += c->cfg.ack_delay_ns + MEDGE_PTO_MIN;
	/* If the peer has that one, we wait for a later one, at most the last that went. */
	sent = oldest->flags & MEDGE_SENT_ACKED ? c->last_tx : oldest->time;
	return max(c->progress, sent) + max(wait, medge_loss_pto_least(c));
}

u64 medge_loss_deadline(struct medge_conn *c)
{
	u64 at = MEDGE_NEVER, from = max(c->last_tx, c->progress);

	if (in_flight(c)) {
		at = c->loss_at;
		if (!c->probed && !c->nlost)
			at = min(at, pto(c));
		at = min(at, from + medge_loss_rto(c) + c->grace);
	} else if (waiting(c) || medge_sendq_wants(c)) {
		at = from + medge_loss_rto(c) + c->grace;
	}
	return at;
}

u64 medge_loss_earliest(const struct medge_conn *c)
{
	u64 from = in_flight(c) ? medge_sent(c, c->snd_una)->time : c->last_tx;

	return min(c->loss_at, max(c->progress, from) + medge_loss_pto_least(c));
}

bool medge_loss_hopeless(const struct medge_conn *c, u64 now)
{
	u64 limit = c->cfg.timeout_ns * (c->cfg.retry_cnt + 1);

	/* Where we stood still ourselves, time has passed, but nothing was tried. */
	return limit && c->backoff > c->cfg.retry_cnt &&
	       now - c->progress >= limit;
}

/* How is the peer? On each path: one of them may live. */
static void ask(struct medge_conn *c, u64 now)
{
	c->poke_now = true;
	c->poke_paths = medge_sched_paths(c);
	c->poked = now;
	c->ack_doubt = true;
}

/* Nothing has been heard for longer than an answer takes: ask for one. */
static void probe(struct medge_conn *c, u64 now)
{
	c->probed = true;
	c->stats.probes++;
	medge_share_doubt(c, medge_sent(c, c->snd_una)->path);
	ask(c, now);
}

static void expire(struct medge_conn *c, u64 now)
{
	u32 psn;

	if (c->backoff < 255)
		c->backoff++;
	c->last_tx = now;
	ask(c, now);
	/*
	 * Only the oldest goes again: the answer tells of the others. Where
	 * nobody answers, or all is merely late, a window of frames would be
	 * of no use, and in the way of others.
	 */
	if (!oldest_undecided(c, &psn))
		return;
	lose(c, psn, now);
	c->stats.lost_rto++;
	medge_cong_timeout(&c->paths[medge_sent(c, psn)->path].cong);
}

/*
 * The timer is late: who could not run it could not receive acks either, and
 * they may be waiting at the door. Once, they are let in first.
 */
static bool overslept(struct medge_conn *c, u64 now, u64 at)
{
	if (c->grace || now - at < MEDGE_TIMER_LATE)
		return false;
	c->grace = now - at + MEDGE_PTO_MIN;
	return true;
}

/*
 * What is there could be sent, and nothing else is under way: who sends for many has
 * yet to come to this one. The peer has not been silent, since it was told nothing. (Of
 * frames that it says it has, but not that those before them are placed, it owes an ack.)
 */
static bool is_our_turn(struct medge_conn *c, u64 now)
{
	return c->snd_una == c->snd_nxt && !waiting(c) && !medge_conn_is_full(c, now);
}

void medge_loss_timeout(struct medge_conn *c, u64 now)
{
	u64 from = max(c->last_tx, c->progress);

	if (now >= c->loss_at)
		medge_loss_detect(c, now);
	if (!in_flight(c) && !waiting(c) && !medge_sendq_wants(c))
		return;
	if (now >= from + medge_loss_rto(c) + c->grace) {
		if (is_our_turn(c, now))
			c->last_tx = now;
		else if (!overslept(c, now, from + medge_loss_rto(c)))
			expire(c, now);
	} else if (in_flight(c) && !c->probed && !c->nlost &&
		 now >= pto(c)) {
		probe(c, now);
	}
}
