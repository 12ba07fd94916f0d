// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What was lost, and when to find out. Frames are sprayed, so a gap in psn says
 * nothing: a frame is lost when a later transmission on the *same* rail was
 * acknowledged and the rail's reordering window has passed (RACK, RFC 8985 6,
 * per rail). A rail that went silent has no later acks: its frames are given
 * up when other rails have acknowledged what was sent well after them. The
 * tail is probed before the timeout (TLP, RFC 8985 7).
 */
#include "state.h"

static u64 conn_srtt(const struct medge_conn *c)
{
	u64 srtt = 0;
	u32 i;

	for (i = 0; i < c->nrails; i++)
		if (c->rails[i].weight)
			srtt = max(srtt, c->rails[i].srtt + 4 * c->rails[i].rttvar);
	return srtt;
}

static void rtt_sample(struct medge_conn_rail *r, u64 rtt)
{
	u64 err;

	if (!r->srtt) {
		r->srtt = max_t(u64, rtt, 1);
		r->rttvar = rtt / 2;
		return;
	}
	err = rtt > r->srtt ? rtt - r->srtt : r->srtt - rtt;
	r->rttvar += err / 4;
	r->rttvar -= r->rttvar / 4;
	r->srtt = r->srtt - r->srtt / 8 + rtt / 8;
}

void medge_loss_forget(struct medge_conn *c, struct medge_sent *s)
{
	if (s->flags & MEDGE_SENT_ACKED)
		return;
	if (s->flags & MEDGE_SENT_LOST)
		c->nlost--;
	c->nunacked--;
	s->flags = (s->flags | MEDGE_SENT_ACKED) & ~MEDGE_SENT_LOST;
}

void medge_loss_acked(struct medge_conn *c, struct medge_sent *s, u64 now)
{
	struct medge_conn_rail *r = &c->rails[s->rail];

	medge_loss_forget(c, s);
	if (s->flags & MEDGE_SENT_RESPONSE)
		medge_response_acked(c, s->op_no);
	if (s->rail_seq != r->expect_seq)
		c->gap = true;
	r->expect_seq = s->rail_seq + 1;
	/* Which of the copies arrived, and on which rail, is not known. */
	if (s->flags & MEDGE_SENT_AGAIN)
		return;
	r->newest = max(r->newest, s->time);
	r->strikes = 0;
	r->trials = 0;
}

void medge_loss_accounted(struct medge_conn *c, const struct medge_sent *s,
			  u64 now)
{
	struct medge_conn_rail *r = &c->rails[s->rail];

	/*
	 * Sent twice and acknowledged sooner than the rail's round trip: the
	 * first one is what arrived, and says nothing of this rail.
	 */
	if (s->flags & MEDGE_SENT_AGAIN &&
	    (!r->srtt || now - s->time < r->srtt - r->srtt / 4))
		return;
	if (!r->any_acked || medge_seq_before(r->acked_seq, s->rail_seq))
		r->acked_seq = s->rail_seq;
	r->any_acked = true;
	c->acked_time = max(c->acked_time, s->time);
}

void medge_loss_mark(struct medge_conn *c, u32 psn)
{
	struct medge_sent *s = medge_sent(c, psn);

	if (s->flags & (MEDGE_SENT_ACKED | MEDGE_SENT_LOST))
		return;
	s->flags |= MEDGE_SENT_LOST;
	c->nlost++;
	if (medge_seq_before(psn, c->lost_hint))
		c->lost_hint = psn;
}

static void strike(struct medge_conn *c, u64 now, struct medge_conn_rail *r)
{
	if (r->strikes < 255)
		r->strikes++;
	if (r->strikes == MEDGE_RAIL_STRIKES)
		r->avoid_until = now + MEDGE_RAIL_TRIAL_MIN;
}

/* How long after others a rail may stay without acks before it counts as dead. */
static u64 silent(const struct medge_conn *c)
{
	return 2 * conn_srtt(c) + MEDGE_MSEC + c->patience;
}

/* When a frame that had to arrive by itself is overdue. */
static u64 overdue(const struct medge_conn *c, const struct medge_sent *s,
		   u64 wait)
{
	/* A rail that has not been measured may be a slow one. */
	return s->time + (c->rails[s->rail].srtt ? wait :
			  max_t(u64, wait, MEDGE_RTT_LONG));
}

/* When @s is to be given up if it is not acknowledged; MEDGE_NEVER: not yet known. */
static u64 due(const struct medge_conn *c, const struct medge_sent *s, u64 wait)
{
	const struct medge_conn_rail *r = &c->rails[s->rail];

	if (r->any_acked && medge_seq_before(s->rail_seq, r->acked_seq))
		return s->time + r->srtt + max(r->srtt / 4, r->reorder);
	if (c->acked_time > s->time)
		return overdue(c, s, wait);
	return MEDGE_NEVER;
}

/* Give up frame @psn; a rail is struck once a time, see @struck. */
static void lose(struct medge_conn *c, u64 now, u32 psn, u64 *struck)
{
	u32 rail = medge_sent(c, psn)->rail;

	medge_loss_mark(c, psn);
	if (!(*struck & 1ULL << rail))
		strike(c, now, &c->rails[rail]);
	*struck |= 1ULL << rail;
}

static bool undecided(const struct medge_sent *s)
{
	return !(s->flags & (MEDGE_SENT_ACKED | MEDGE_SENT_LOST));
}

void medge_loss_detect(struct medge_conn *c, u64 now)
{
	u64 wait = silent(c), struck = 0;
	u32 psn;

	c->loss_at = MEDGE_NEVER;
	for (psn = c->snd_una; psn != c->snd_nxt; psn++) {
		struct medge_sent *s = medge_sent(c, psn);
		u64 at;

		if (!undecided(s))
			continue;
		at = due(c, s, wait);
		if (at > now) {
			c->loss_at = min(c->loss_at, at);
			continue;
		}
		lose(c, now, psn, &struck);
		c->stats.lost_rail++;
	}
}

void medge_loss_answered(struct medge_conn *c, u64 now)
{
	u64 wait = silent(c), struck = 0;
	u32 psn;

	for (psn = c->snd_una; c->nunacked && psn != c->snd_nxt; psn++) {
		struct medge_sent *s = medge_sent(c, psn);

		if (!undecided(s) || now < overdue(c, s, wait))
			continue;
		lose(c, now, psn, &struck);
		c->stats.lost_rail++;
	}
}

/*
 * Where every rail was acknowledged in its order nothing is late, and only the
 * oldest frame needs a look, lest its rail has gone silent.
 */
void medge_loss_news(struct medge_conn *c, u64 now)
{
	const struct medge_sent *oldest = medge_sent(c, c->snd_una);
	u32 i;

	for (i = 0; i < c->nrails; i++) {
		struct medge_conn_rail *r = &c->rails[i];

		if (r->newest)
			rtt_sample(r, now - r->newest);
		r->newest = 0;
	}
	if (c->snd_una == c->snd_nxt) {
		c->gap = false;
		c->loss_at = MEDGE_NEVER;
		return;
	}
	if (!c->gap) {
		c->loss_at = c->acked_time > oldest->time ?
			     oldest->time + silent(c) : MEDGE_NEVER;
		if (now < c->loss_at)
			return;
	}
	medge_loss_detect(c, now);
	c->gap = c->loss_at != MEDGE_NEVER;
}

void medge_loss_rail_down(struct medge_conn *c, u32 rail)
{
	u32 psn;

	for (psn = c->snd_una; psn != c->snd_nxt; psn++) {
		struct medge_sent *s = medge_sent(c, psn);

		if (s->rail != rail || !undecided(s))
			continue;
		medge_loss_mark(c, psn);
		c->stats.lost_down++;
	}
}

/*
 * Frames came twice: what we took for lost was late. Wait longer (RFC 8985 6.2),
 * and, lest a rail that has become slower is never measured again because all
 * its frames are sent twice, be patient with silence, too.
 */
void medge_loss_spurious(struct medge_conn *c, u64 now, u32 dups)
{
	u32 i;

	if (!dups) {
		if (c->patience && now >= c->impatient_at) {
			c->patience /= 2;
			c->impatient_at = now + MEDGE_PATIENCE_MAX;
		}
		return;
	}
	c->patience = min_t(u64, max_t(u64, 2 * c->patience, MEDGE_MSEC),
			    MEDGE_PATIENCE_MAX);
	c->impatient_at = now + MEDGE_PATIENCE_MAX;
	for (i = 0; i < c->nrails; i++) {
		struct medge_conn_rail *r = &c->rails[i];

		if (r->srtt)
			r->reorder = min(max(2 * r->reorder, r->srtt / 4),
					 2 * r->srtt + MEDGE_MSEC);
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

	return min3(base << min_t(u8, c->backoff, 10), max(base, most),
		    (u64)MEDGE_RTO_MAX);
}

static u64 pto(const struct medge_conn *c)
{
	u64 srtt = conn_srtt(c);

	srtt = srtt ? 2 * srtt : 4 * MEDGE_RTT_GUESS;
	if (!c->last_ack_req)
		srtt += c->cfg.ack_delay_ns;
	return max_t(u64, srtt, MEDGE_PTO_MIN);
}

u64 medge_loss_deadline(struct medge_conn *c)
{
	u64 at = MEDGE_NEVER, from = max(c->last_tx, c->progress);

	if (in_flight(c)) {
		at = c->loss_at;
		if (!c->probed && !c->nlost)
			at = min(at, c->last_tx + pto(c));
		at = min(at, from + medge_loss_rto(c));
	} else if (waiting(c) || medge_sendq_wants(c)) {
		at = from + medge_loss_rto(c);
	}
	return at;
}

bool medge_loss_hopeless(const struct medge_conn *c, u64 now)
{
	u64 limit = c->cfg.timeout_ns * (c->cfg.retry_cnt + 1);

	/* Where we stood still ourselves, time has passed, but nothing was tried. */
	return limit && c->backoff > c->cfg.retry_cnt &&
	       now - c->progress >= limit;
}

/* Probe the tail: send the oldest frame once more, asking for an ack. */
static void probe(struct medge_conn *c)
{
	u32 psn;

	c->probed = true;
	c->stats.probes++;
	for (psn = c->snd_una; psn != c->snd_nxt; psn++) {
		struct medge_sent *s = medge_sent(c, psn);

		if (s->flags & MEDGE_SENT_ACKED)
			continue;
		s->flags |= MEDGE_SENT_ACK_REQ;
		medge_loss_mark(c, psn);
		return;
	}
}

static void expire(struct medge_conn *c, u64 now)
{
	u64 struck = 0;
	u32 psn;

	if (c->backoff < 255)
		c->backoff++;
	c->last_tx = now;
	/* If all is acknowledged or there is no rail: ask how the peer is. */
	c->poke_now = true;
	c->poke_rails = medge_sched_rails(c);
	c->ack_doubt = true;
	/*
	 * Only the oldest goes again: the answer tells of the others. Where
	 * nobody answers, or all is merely late, a window of frames would be
	 * of no use, and in the way of others.
	 */
	for (psn = c->snd_una; psn != c->snd_nxt; psn++) {
		if (!undecided(medge_sent(c, psn)))
			continue;
		lose(c, now, psn, &struck);
		c->stats.lost_rto++;
		return;
	}
}

void medge_loss_timeout(struct medge_conn *c, u64 now)
{
	u64 from = max(c->last_tx, c->progress);

	if (now >= c->loss_at)
		medge_loss_detect(c, now);
	if (!in_flight(c) && !waiting(c) && !medge_sendq_wants(c))
		return;
	if (now >= from + medge_loss_rto(c))
		expire(c, now);
	else if (in_flight(c) && !c->probed && !c->nlost &&
		 now >= c->last_tx + pto(c))
		probe(c);
}
