// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Which paths may carry the next run; schedulers.c chooses among them. */
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

void medge_sched_charge(struct medge_conn *c, u32 path, u32 bytes)
{
	struct medge_conn_path *p = &c->paths[path];

	p->charged += ((u64)bytes << CHARGE_SHIFT) / max_t(u32, p->weight, 1);
	c->sched_last = path;
}

static u32 best_rank(const struct medge_conn *c)
{
	u32 i, best = MEDGE_PATH_STATES;

	for (i = 0; i < c->npaths; i++)
		if (c->paths[i].weight)
			best = min(best, medge_sched_rank(&c->paths[i]));
	return best;
}

bool medge_sched_pick(struct medge_conn *c, u64 now, struct medge_pick *p)
{
	u32 rank = best_rank(c), i;
	u64 paths = 0;
	s32 path;

	for (i = 0; i < c->npaths; i++)
		if (c->paths[i].weight && medge_sched_rank(&c->paths[i]) == rank)
			paths |= 1ULL << i;
	/* What was lost once is not risked again. */
	if (p->avoid < MEDGE_MAX_PATHS && paths & ~(1ULL << p->avoid))
		paths &= ~(1ULL << p->avoid);
	path = paths ? medge_scheduler_choose(c, now, paths, p) : -1;
	p->path = path;
	return path >= 0;
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

void medge_sched_new(struct medge_conn *c, u32 path)
{
	u32 frame = c->cfg.seg_len + MEDGE_HDR_LEN;

	medge_cong_init(&c->paths[path].cong, frame,
			frame * max_t(u32, c->cfg.run_max / c->cfg.seg_len, 1));
}
