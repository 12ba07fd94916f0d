// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Which path carries the next run: weighted shares, by bytes. */
#include "state.h"

/* Bytes a path is charged with are scaled, so that fast ones count, too. */
enum { CHARGE_SHIFT = 10 };

u32 medge_sched_rank(const struct medge_conn_path *path)
{
	static const u8 ranks[MEDGE_PATH_STATES] = {
		[MEDGE_PATH_UP] = 0,
		/* assumed at first, and nothing better to be had */
		[MEDGE_PATH_PROBING] = 1,
		[MEDGE_PATH_SUSPECT] = 1,
		[MEDGE_PATH_DRAINING] = 2,
		[MEDGE_PATH_DOWN] = 3,
		[MEDGE_PATH_NONE] = 4,
	};

	return ranks[path->state];
}

u32 medge_sched_paths(const struct medge_conn *c)
{
	u32 i, n = 0;

	for (i = 0; i < c->npaths; i++)
		n += !!c->paths[i].weight;
	return n;
}

/* Is @a better than @b? Trust first, then another than the last, then shares. */
static bool better(const struct medge_conn *c, u32 a, u32 b, u32 avoid)
{
	const struct medge_conn_path *pa = &c->paths[a], *pb = &c->paths[b];
	u32 rank_a = medge_sched_rank(pa), rank_b = medge_sched_rank(pb);

	if (rank_a != rank_b)
		return rank_a < rank_b;
	/* What was lost once is not risked again. */
	if ((a == avoid) != (b == avoid))
		return b == avoid;
	return pa->charged < pb->charged;
}

bool medge_sched_pick(struct medge_conn *c, u32 avoid, u32 *path)
{
	s32 best = -1;
	u32 i;

	for (i = 0; i < c->npaths; i++)
		if (c->paths[i].weight && (best < 0 || better(c, i, best, avoid)))
			best = i;
	if (best < 0)
		return false;
	*path = best;
	return true;
}

void medge_sched_charge(struct medge_conn *c, u32 path, u32 bytes)
{
	struct medge_conn_path *p = &c->paths[path];

	p->charged += ((u64)bytes << CHARGE_SHIFT) / max_t(u32, p->weight, 1);
}

static u32 best_rank(const struct medge_conn *c)
{
	u32 i, best = MEDGE_PATH_STATES;

	for (i = 0; i < c->npaths; i++)
		if (c->paths[i].weight)
			best = min(best, medge_sched_rank(&c->paths[i]));
	return best;
}

u32 medge_sched_next(const struct medge_conn *c, u32 path, bool all)
{
	u32 rank = best_rank(c), i, next;

	for (i = 1; i <= c->npaths; i++) {
		next = (path + i) % c->npaths;
		if (c->paths[next].weight &&
		    (all || medge_sched_rank(&c->paths[next]) == rank))
			return next;
	}
	return path;
}

void medge_sched_up(struct medge_conn *c, u32 path)
{
	struct medge_conn_path *p = &c->paths[path];
	u64 most = 0;
	u32 i;

	for (i = 0; i < c->npaths; i++)
		if (i != path && c->paths[i].state == MEDGE_PATH_UP)
			most = max(most, c->paths[i].charged);
	p->charged = max(p->charged, most);
}
