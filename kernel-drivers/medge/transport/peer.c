// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* A peer's life: made, told of rails, told the time; what its paths weigh. */
#include "peer_state.h"

static const char *const state_names[MEDGE_PATH_STATES] = {
	[MEDGE_PATH_NONE] = "none",
	[MEDGE_PATH_PROBING] = "probing",
	[MEDGE_PATH_UP] = "up",
	[MEDGE_PATH_SUSPECT] = "suspect",
	[MEDGE_PATH_DOWN] = "down",
	[MEDGE_PATH_DRAINING] = "draining",
};

static const char *const why_names[MEDGE_WHYS] = {
	[MEDGE_WHY_NEW] = "new",
	[MEDGE_WHY_ANSWERED] = "answered",
	[MEDGE_WHY_SILENT] = "silent",
	[MEDGE_WHY_DOUBTED] = "doubted",
	[MEDGE_WHY_NO_ANSWER] = "no answer",
	[MEDGE_WHY_LOSSY] = "lossy",
	[MEDGE_WHY_CARRIER] = "carrier",
	[MEDGE_WHY_ADMIN] = "admin",
	[MEDGE_WHY_GONE] = "gone",
};

const char *medge_path_state_name(u8 state)
{
	return state < MEDGE_PATH_STATES ? state_names[state] : "?";
}

const char *medge_path_why_name(u8 why)
{
	return why < MEDGE_WHYS ? why_names[why] : "?";
}

/* ---- the own node ---- */

bool medge_local_set(struct medge_local *me, u32 rail,
		     const struct medge_rail_attr *attr)
{
	static const struct medge_rail_attr none;
	struct medge_rail_attr *own;

	if (rail >= MEDGE_MAX_RAILS)
		return false;
	if (!attr)
		attr = &none;
	own = &me->rails[rail];
	if (own->flags == attr->flags && own->speed == attr->speed &&
	    own->id == attr->id &&
	    !memcmp(own->mac, attr->mac, MEDGE_MAC_LEN))
		return false;
	*own = *attr;
	if (!++me->generation)
		me->generation = 1;
	return true;
}

/* ---- weights ---- */

/* Speeds that are not all known cannot be compared: then none counts. */
static bool comparable(const struct medge_rail_attr *rails)
{
	u32 i;

	for (i = 0; i < MEDGE_MAX_RAILS; i++)
		if (rails[i].flags & MEDGE_PORT_UP && !rails[i].speed)
			return false;
	return true;
}

static bool carries(const struct medge_path *path)
{
	return path->state == MEDGE_PATH_UP ||
	       path->state == MEDGE_PATH_SUSPECT ||
	       path->state == MEDGE_PATH_PROBING;
}

/* What several paths share, each has a part of. */
static u32 share(const struct medge_rail_attr *rail, u32 users)
{
	return rail->speed / max_t(u32, users, 1);
}

static void weigh(struct medge_peer *p, struct medge_path *path, bool here,
		  bool there)
{
	u32 own_users = 0, peer_users = 0, weight = 0, i;

	for (i = 0; i < p->npaths; i++) {
		const struct medge_path *other = &p->paths[i];

		if (!carries(other) && other != path)
			continue;
		own_users += other->rail == path->rail;
		peer_users += other->peer_rail == path->peer_rail;
	}
	if (here)
		weight = share(&p->me.rails[path->rail], own_users);
	if (there && path->peer_rail != MEDGE_RAIL_ANY) {
		u32 w = share(&p->rails[path->peer_rail], peer_users);

		weight = weight ? min(weight, w) : w;
	}
	path->base = weight ? weight : MEDGE_SPEED_GUESS;
}

static u32 weight(const struct medge_peer *p, const struct medge_path *path)
{
	u64 w = path->base;
	u32 cost;

	if (!medge_path_has_carrier(p, path))
		return 0;
	if (path->state == MEDGE_PATH_UP) {
		cost = min_t(u32, path->loss_ppm * MEDGE_LOSS_COST, 1000000);
		w = w * (1000000 - cost) / 1000000;
		w = max_t(u64, w, path->base / 16) >> path->ramp;
	}
	return max_t(u64, w, 1);
}

void medge_peer_changed(struct medge_peer *p)
{
	bool here = comparable(p->me.rails);
	bool there = p->known && comparable(p->rails);
	u32 i;

	for (i = 0; i < p->npaths; i++) {
		struct medge_path *path = &p->paths[i];

		weigh(p, path, here, there);
		path->weight = weight(p, path);
	}
	WRITE_ONCE(p->generation, p->generation + 1);
}

u32 medge_peer_generation(const struct medge_peer *p)
{
	return READ_ONCE(p->generation);
}

u32 medge_peer_changes(const struct medge_peer *p)
{
	return p->changes;
}

/* ---- life ---- */

size_t medge_peer_size(void)
{
	return sizeof(struct medge_peer);
}

static bool draining(const struct medge_peer *p, const struct medge_path *path)
{
	if (p->me.rails[path->rail].flags & MEDGE_PORT_DRAINING)
		return true;
	return p->known && path->peer_rail != MEDGE_RAIL_ANY &&
	       p->rails[path->peer_rail].flags & MEDGE_PORT_DRAINING;
}

/* The peer's word counts, too, as long as nothing shows that it is wrong. */
static bool connected(const struct medge_peer *p, const struct medge_path *path)
{
	const struct medge_rail_attr *there;

	if (!medge_path_has_carrier(p, path))
		return false;
	if (!p->known || path->peer_rail == MEDGE_RAIL_ANY)
		return true;
	there = &p->rails[path->peer_rail];
	/* A rail that is newer than the list: that comes in parts, and later. */
	if (!medge_rail_exists(there) && path->heard > p->listed_at)
		return true;
	return medge_rail_exists(there) && there->flags & MEDGE_PORT_UP;
}

/* What the rails at its ends say is all there is to say of some paths. */
static void follow_rails(struct medge_peer *p, struct medge_path *path, u64 now)
{
	bool no_carrier = path->state == MEDGE_PATH_DOWN &&
			  path->why == MEDGE_WHY_CARRIER;

	if (!connected(p, path)) {
		if (!no_carrier)
			medge_path_down(p, path, MEDGE_WHY_CARRIER, now);
	} else if (draining(p, path)) {
		if (path->state != MEDGE_PATH_DRAINING)
			medge_path_drain(p, path, now);
	} else if (no_carrier || path->state == MEDGE_PATH_DRAINING) {
		medge_path_begin(p, path, no_carrier ? MEDGE_WHY_CARRIER :
				 MEDGE_WHY_ADMIN, now);
	}
}

static void remove_path(struct medge_peer *p, struct medge_path *path, u64 now)
{
	medge_path_down(p, path, MEDGE_WHY_GONE, now);
	path->state = MEDGE_PATH_NONE;
	path->probe_at = MEDGE_NEVER;
}

static void add_path(struct medge_peer *p, u32 i, u32 rail, u64 now)
{
	struct medge_path *path = &p->paths[i];
	u32 moves = path->moves;

	memset(path, 0, sizeof(*path));
	path->moves = moves;
	path->rail = rail;
	path->peer_rail = MEDGE_RAIL_ANY;
	memcpy(path->mac, p->node, MEDGE_MAC_LEN);
	p->npaths = max(p->npaths, i + 1);
	medge_path_begin(p, path, MEDGE_WHY_NEW, now);
	follow_rails(p, path, now);
}

void medge_peer_follow(struct medge_peer *p, u64 now)
{
	u32 i;

	for (i = 0; i < p->npaths; i++)
		if (p->paths[i].state != MEDGE_PATH_NONE)
			follow_rails(p, &p->paths[i], now);
	medge_peer_changed(p);
}

void medge_peer_compare(struct medge_peer *p, u64 at)
{
	p->list_tries = 0;
	p->list_at = at;
}

/* Any path will do, but those that work are better; another each time. */
static void compare_lists(struct medge_peer *p, u64 now)
{
	struct medge_path *best = NULL;
	u32 i;

	p->list_at = MEDGE_NEVER;
	if ((p->known == p->wanted && p->told == p->me.generation) ||
	    p->list_tries == MEDGE_LIST_TRIES)
		return;
	for (i = 0; i < p->npaths; i++) {
		struct medge_path *path = &p->paths[i];

		if (!medge_path_has_carrier(p, path))
			continue;
		if (path->state == MEDGE_PATH_UP)
			path->probe_now = true;
		if (!best || path->asked_at < best->asked_at)
			best = path;
	}
	if (!best)
		return;
	best->probe_now = true;
	p->list_at = now + ((u64)MEDGE_LIST_WAIT << p->list_tries++);
}

void medge_peer_local(struct medge_peer *p, const struct medge_local *me,
		      u64 now)
{
	u32 i;

	for (i = 0; i < MEDGE_MAX_RAILS; i++) {
		const struct medge_rail_attr *rail = &me->rails[i];
		struct medge_path *path = &p->paths[i];
		bool same = rail->id == p->me.rails[i].id;

		p->me.rails[i] = *rail;
		if (path->state != MEDGE_PATH_NONE &&
		    (!medge_rail_exists(rail) || !same))
			remove_path(p, path, now);
		if (path->state == MEDGE_PATH_NONE && medge_rail_exists(rail))
			add_path(p, i, i, now);
		else if (path->state != MEDGE_PATH_NONE)
			follow_rails(p, path, now);
	}
	memcpy(p->me.node, me->node, MEDGE_MAC_LEN);
	p->me.generation = me->generation;
	medge_peer_changed(p);
	medge_peer_compare(p, now);
}

void medge_peer_init(struct medge_peer *p, const u8 *node,
		     const struct medge_local *me, u64 seed, u64 now)
{
	memcpy(p->node, node, MEDGE_MAC_LEN);
	p->random = seed;
	p->active_at = now;
	medge_peer_local(p, me, now);
	/* Each path is asked; that does. */
	p->list_at = MEDGE_NEVER;
}

bool medge_peer_path(const struct medge_peer *p, u32 i,
		     struct medge_path_info *info)
{
	const struct medge_path *path = &p->paths[i];

	if (i >= p->npaths || path->state == MEDGE_PATH_NONE)
		return false;
	*info = path->info;
	info->rail = path->rail;
	info->peer_rail = path->peer_rail;
	info->state = path->state;
	info->why = path->why;
	memcpy(info->mac, path->mac, MEDGE_MAC_LEN);
	info->weight = path->weight;
	info->loss_ppm = path->loss_ppm;
	info->srtt = path->srtt;
	info->rttvar = path->rttvar;
	info->min_rtt = path->min_rtt;
	info->changed_at = path->changed_at;
	return true;
}

/* ---- time ---- */

u64 medge_peer_deadline(const struct medge_peer *p)
{
	u64 at = p->list_at;
	u32 i;

	for (i = 0; i < p->npaths; i++) {
		if (p->paths[i].state == MEDGE_PATH_NONE)
			continue;
		if (p->paths[i].probe_now)
			return 0;
		at = min3(at, p->paths[i].probe_at, p->paths[i].ramp_at);
	}
	return at;
}

static void ramp_up(struct medge_peer *p, struct medge_path *path, u64 now)
{
	path->ramp--;
	path->ramp_at = !path->ramp ? MEDGE_NEVER :
			now + max_t(u64, path->srtt, MEDGE_RAMP_MIN);
	medge_peer_changed(p);
}

void medge_peer_timeout(struct medge_peer *p, u64 now)
{
	u32 i;

	if (now >= p->list_at)
		compare_lists(p, now);
	for (i = 0; i < p->npaths; i++) {
		struct medge_path *path = &p->paths[i];

		if (path->state == MEDGE_PATH_NONE)
			continue;
		if (now >= path->ramp_at)
			ramp_up(p, path, now);
		if (now < path->probe_at)
			continue;
		if (now - p->active_at < MEDGE_RECENT) {
			medge_path_expired(p, path, now);
		} else {
			path->probe_at = MEDGE_NEVER;
			p->asleep = true;
		}
	}
}
