// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What a connection learns of paths, it tells its peer, and has the paths from it. */
#include "state.h"

void medge_share_doubt(struct medge_conn *c, u32 path)
{
	c->paths[path].report.doubt = true;
	c->report_now = true;
}

void medge_share_silent(struct medge_conn *c, u32 path, u64 sent)
{
	struct medge_conn_path *p = &c->paths[path];

	p->report.silent_sent = max(p->report.silent_sent, sent);
	c->report_now = true;
	/* The peer may know better, but has yet to be asked. */
	if (p->state == MEDGE_PATH_UP)
		p->state = MEDGE_PATH_SUSPECT;
}

void medge_share_rtt(struct medge_conn *c, struct medge_conn_path *path, u64 rtt)
{
	struct medge_path_report *r = &path->report;
	u64 err;

	rtt = max_t(u64, rtt, 1);
	if (!path->srtt) {
		path->srtt = rtt;
		path->rttvar = rtt / 2;
		c->report_now = true;
	} else {
		err = rtt > path->srtt ? rtt - path->srtt : path->srtt - rtt;
		path->rttvar += err / 4;
		path->rttvar -= path->rttvar / 4;
		path->srtt = path->srtt - path->srtt / 8 + rtt / 8;
	}
	r->min_rtt = r->measured ? min(r->min_rtt, rtt) : rtt;
	r->srtt = path->srtt;
	r->rttvar = path->rttvar;
	r->measured = true;
}

bool medge_conn_sync_due(const struct medge_conn *c, u32 gen, u64 now)
{
	return c->report_now || gen != c->peer_gen ||
	       (c->report_some && now >= c->sync_at);
}

/* Without traffic nothing was asked; now there is some. */
static void wake(struct medge_peer *p)
{
	u32 i;

	p->asleep = false;
	for (i = 0; i < p->npaths; i++) {
		struct medge_path *path = &p->paths[i];

		if (path->state == MEDGE_PATH_PROBING ||
		    path->state == MEDGE_PATH_SUSPECT ||
		    (path->state == MEDGE_PATH_DOWN &&
		     path->why != MEDGE_WHY_CARRIER))
			path->probe_now = true;
	}
}

/*
 * Frames that came twice were not missed the first time. On which path they
 * were late is not known: each has its share.
 */
static void discount(struct medge_conn *c)
{
	u32 missed = 0, i;

	for (i = 0; i < c->npaths; i++)
		missed += c->paths[i].report.missed;
	for (i = 0; i < c->npaths && missed; i++) {
		struct medge_path_report *r = &c->paths[i].report;

		r->missed -= min_t(u64, (u64)c->late * r->missed / missed,
				   r->missed);
	}
	c->late -= min(c->late, missed);
}

static void tell(struct medge_conn *c, struct medge_peer *p, u64 now)
{
	u32 i;

	if (!c->report_now && !c->report_some)
		return;
	c->report_now = false;
	c->report_some = false;
	c->sync_at = now + MEDGE_SYNC_MIN;
	p->active_at = now;
	if (p->asleep)
		wake(p);
	discount(c);
	for (i = 0; i < c->npaths; i++) {
		struct medge_conn_path *cp = &c->paths[i];

		if (p->paths[i].state != MEDGE_PATH_NONE &&
		    p->paths[i].moves == cp->moves)
			medge_path_reported(p, &p->paths[i], &cp->report, now);
		memset(&cp->report, 0, sizeof(cp->report));
	}
}

static void copy_path(struct medge_conn *c, u32 i, const struct medge_path *path)
{
	struct medge_conn_path *cp = &c->paths[i];
	bool was_up = cp->state == MEDGE_PATH_UP;

	cp->state = path->state;
	cp->rail = path->rail;
	memcpy(cp->mac, path->mac, MEDGE_MAC_LEN);
	cp->weight = path->weight;
	/* Somebody has measured it; who has himself has told it just now. */
	if (path->srtt) {
		cp->srtt = path->srtt;
		cp->rttvar = path->rttvar;
	}
	if (path->state == MEDGE_PATH_UP && !was_up)
		medge_sched_up(c, i);
	if (cp->moves != path->moves)
		medge_loss_path_down(c, i);
	if (cp->moves != path->moves || !cp->cong.frame)
		medge_sched_new(c, i);
	cp->moves = path->moves;
}

/* Where an answer goes to what came on a rail. */
static void map_rails(struct medge_conn *c)
{
	u32 i;

	for (i = 0; i < MEDGE_MAX_RAILS; i++)
		c->rail_path[i] = MEDGE_PATH_UNKNOWN;
	for (i = 0; i < c->npaths; i++) {
		const struct medge_conn_path *cp = &c->paths[i];
		u8 *best = &c->rail_path[cp->rail];

		if (cp->weight && (*best == MEDGE_PATH_UNKNOWN ||
				   medge_sched_rank(cp) <
				   medge_sched_rank(&c->paths[*best])))
			*best = i;
	}
}

/*
 * Each path that can be used has MultiEdge's window (2.1.2), as its one edge had; but
 * those that end at one rail of the peer's have one together.
 */
static void begin_window(struct medge_conn *c, const struct medge_peer *p)
{
	u64 ends = 0;
	u32 i, n;

	for (i = 0; i < c->npaths; i++) {
		u8 end = p->paths[i].peer_rail;

		if (c->paths[i].weight)
			ends |= BIT_ULL(end == MEDGE_RAIL_ANY ? p->paths[i].rail : end);
	}
	n = hweight64(ends);
	if (!n || n == c->nends || c->refused)
		return;
	c->nends = n;
	c->window = min_t(u32, n * c->cfg.window, MEDGE_WINDOW);
}

void medge_conn_sync(struct medge_conn *c, struct medge_peer *p, u64 now)
{
	u32 i;

	tell(c, p, now);
	/* Without memory for all, the first must do until the next time. */
	if (medge_conn_reserve_paths(c, p->npaths))
		c->peer_gen = p->generation;
	c->npaths = min(p->npaths, c->paths_max);
	for (i = 0; i < c->npaths; i++)
		copy_path(c, i, &p->paths[i]);
	map_rails(c);
	begin_window(c, p);
}
