// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Which rail carries the next run: weighted shares, by bytes. */
#include "state.h"

/* Bytes a rail is charged with are scaled, so that fast rails count, too. */
enum { CHARGE_SHIFT = 10 };

u32 medge_sched_rails(const struct medge_conn *c)
{
	u32 i, n = 0;

	for (i = 0; i < c->nrails; i++)
		n += !!c->rails[i].weight;
	return n;
}

static bool suspect(const struct medge_conn_rail *r)
{
	return r->strikes >= MEDGE_RAIL_STRIKES;
}

static void next_trial(struct medge_conn_rail *r, u64 now)
{
	u64 wait = (u64)MEDGE_RAIL_TRIAL_MIN << r->trials;

	if (wait < MEDGE_RAIL_TRIAL_MAX)
		r->trials++;
	r->avoid_until = now + min_t(u64, wait, MEDGE_RAIL_TRIAL_MAX);
}

/* A rail under suspicion whose time to show itself has come. */
static s32 find_trial(struct medge_conn *c, u64 now)
{
	u32 i;

	for (i = 0; i < c->nrails; i++) {
		struct medge_conn_rail *r = &c->rails[i];

		if (r->weight && suspect(r) && now >= r->avoid_until) {
			next_trial(r, now);
			return i;
		}
	}
	return -1;
}

/* Is @a better than @b? Trust first, then another than the last, then shares. */
static bool better(const struct medge_conn *c, u32 a, u32 b, u32 avoid)
{
	const struct medge_conn_rail *ra = &c->rails[a], *rb = &c->rails[b];

	if (suspect(ra) != suspect(rb))
		return suspect(rb);
	if ((a == avoid) != (b == avoid))
		return b == avoid;
	if (suspect(ra) && ra->strikes != rb->strikes)
		return ra->strikes < rb->strikes;
	return ra->charged < rb->charged;
}

bool medge_sched_pick(struct medge_conn *c, u64 now, u32 avoid, u32 *rail,
		      bool *trial)
{
	s32 best = -1;
	u32 i;

	*trial = false;
	/* What was lost once is not risked again. */
	if (avoid == MEDGE_MAX_RAILS) {
		best = find_trial(c, now);
		*trial = best >= 0;
	}
	for (i = 0; i < c->nrails && !*trial; i++)
		if (c->rails[i].weight && (best < 0 || better(c, i, best, avoid)))
			best = i;
	if (best < 0)
		return false;
	*rail = best;
	return true;
}

void medge_sched_charge(struct medge_conn *c, u32 rail, u32 bytes)
{
	struct medge_conn_rail *r = &c->rails[rail];

	r->charged += ((u64)bytes << CHARGE_SHIFT) / max_t(u32, r->weight, 1);
}

u32 medge_sched_next(const struct medge_conn *c, u32 rail)
{
	u32 i, next;

	for (i = 1; i <= c->nrails; i++) {
		next = (rail + i) % c->nrails;
		if (c->rails[next].weight)
			return next;
	}
	return rail;
}

void medge_sched_up(struct medge_conn *c, u32 rail)
{
	struct medge_conn_rail *r = &c->rails[rail];
	u64 most = 0;
	u32 i;

	for (i = 0; i < c->nrails; i++)
		if (i != rail && c->rails[i].weight)
			most = max(most, c->rails[i].charged);
	r->charged = max(r->charged, most);
	r->strikes = 0;
	r->trials = 0;
}
