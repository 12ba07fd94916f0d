// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Questions and answers between nodes: does this path work, and which rails
 * have you? A node believes nothing but the answers to its own questions, which
 * nobody can give who has not seen them.
 */
#include "peer_state.h"

/* splitmix64 (Steele, Lea, Flood 2014) */
static u64 next_random(struct medge_peer *p)
{
	u64 z = p->random += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

static void fill_probe(struct medge_peer *p, const struct medge_path *path,
		       u64 nonce, struct medge_probe *q)
{
	q->type = MEDGE_FRAME_PROBE;
	if (path->doubt)
		q->flags |= MEDGE_PROBE_DOUBT;
	q->rail = path->rail;
	q->peer_rail = path->peer_rail;
	q->first = p->coming_at;
	q->nonce = nonce;
	memcpy(q->node, p->me.node, MEDGE_MAC_LEN);
	memcpy(q->to, p->node, MEDGE_MAC_LEN);
	q->generation = p->me.generation;
	q->known = p->known;
}

bool medge_peer_poll_tx(struct medge_peer *p, u64 now, struct medge_peer_tx *tx)
{
	u32 i, slot;

	for (i = 0; i < p->npaths && !p->paths[i].probe_now; i++)
		;
	if (i == p->npaths)
		return false;
	slot = p->nonces++ % MEDGE_PROBES_OUT;
	p->asked[slot] = (struct medge_asked) {
		.nonce = (next_random(p) & ~(u64)(MEDGE_PROBES_OUT - 1)) | slot,
		.time = now,
		.path = i,
	};
	memset(tx, 0, sizeof(*tx));
	tx->rail = p->paths[i].rail;
	memcpy(tx->mac, p->paths[i].mac, MEDGE_MAC_LEN);
	fill_probe(p, &p->paths[i], p->asked[slot].nonce, &tx->probe);
	medge_path_asked(p, &p->paths[i], now);
	return true;
}

void medge_probe_answer(const struct medge_local *me,
			const struct medge_probe *q, u32 rail,
			struct medge_probe *reply)
{
	u32 i;

	memset(reply, 0, sizeof(*reply));
	reply->type = MEDGE_FRAME_REPLY;
	reply->rail = rail;
	reply->peer_rail = rail;
	reply->probe_rail = q->rail;
	reply->first = q->first;
	reply->nonce = q->nonce;
	memcpy(reply->node, me->node, MEDGE_MAC_LEN);
	memcpy(reply->to, q->node, MEDGE_MAC_LEN);
	reply->generation = me->generation;
	for (i = q->first; i < MEDGE_MAX_RAILS; i++) {
		if (!medge_rail_exists(&me->rails[i]))
			continue;
		if (reply->count == MEDGE_PROBE_RAILS)
			return;
		reply->index[reply->count] = i;
		reply->rails[reply->count++] = me->rails[i];
	}
	reply->flags |= MEDGE_PROBE_LAST;
}

static bool is_up(const struct medge_path *path)
{
	return path->state == MEDGE_PATH_UP;
}

/* Some path is up that leaves on @rail; on another, if not @here. */
static bool any_up(const struct medge_peer *p, u32 rail, bool here)
{
	bool is_here;
	u32 i;

	for (i = 0; i < p->npaths; i++) {
		is_here = p->paths[i].rail == rail;
		if (is_up(&p->paths[i]) && is_here == here)
			return true;
	}
	return false;
}

bool medge_peer_detour(const struct medge_peer *p, const struct medge_probe *q,
		       u32 rail, u32 *next, u8 *other, u8 *mac)
{
	bool up = any_up(p, rail, false);

	if (any_up(p, rail, true) && !(q->flags & MEDGE_PROBE_DOUBT && up))
		return false;
	while (*next < p->npaths) {
		const struct medge_path *path = &p->paths[(*next)++];

		if (path->rail == rail || !path->weight || (up && !is_up(path)))
			continue;
		*other = path->rail;
		memcpy(mac, path->mac, MEDGE_MAC_LEN);
		/* One that works is enough. */
		if (up)
			*next = p->npaths;
		return true;
	}
	return false;
}

/* ---- the peer's rails ---- */

/* Ask for the rest of the list, on a path that just worked. */
static void ask_more(struct medge_path *path)
{
	path->probe_now = true;
}

static void take_list(struct medge_peer *p)
{
	u32 i;

	for (i = 0; i < MEDGE_MAX_RAILS; i++) {
		if (!(p->came >> i & 1))
			memset(&p->came_rails[i], 0, sizeof(p->came_rails[i]));
		p->rails[i] = p->came_rails[i];
	}
	p->known = p->coming;
	p->wanted = p->coming;
	p->coming_at = 0;
	p->came = 0;
}

/* Return: the list is new, and complete. */
static bool learn_rails(struct medge_peer *p, struct medge_path *path,
			const struct medge_probe *r, u64 asked, u64 now)
{
	u32 i;

	/* What was asked before the list came may be answered with an older. */
	if (r->generation == p->known || asked < p->listed_at)
		return false;
	if (r->generation != p->coming) {
		p->coming = r->generation;
		p->wanted = r->generation;
		p->came = 0;
		p->coming_at = 0;
		medge_peer_compare(p, now + MEDGE_LIST_WAIT);
	}
	/* Another path's answer may have brought this part already. */
	if (r->first != p->coming_at)
		return false;
	for (i = 0; i < r->count; i++) {
		p->came_rails[r->index[i]] = r->rails[i];
		p->came |= 1ULL << r->index[i];
		p->coming_at = r->index[i] + 1;
	}
	/* The rest; or, if this was it, the peer should know that we have it. */
	ask_more(path);
	if (!(r->flags & MEDGE_PROBE_LAST) && p->coming_at < MEDGE_MAX_RAILS)
		return false;
	take_list(p);
	p->listed_at = now;
	return true;
}

/*
 * A probe's round trip is not that of data, which waits in queues of its own
 * making: a connection must not expect its acks that soon.
 */
static void measure(struct medge_path *path, u64 rtt)
{
	rtt = max_t(u64, rtt, 1);
	path->probe_rtt = path->probe_rtt ?
			  path->probe_rtt - path->probe_rtt / 8 + rtt / 8 : rtt;
	if (!path->min_rtt || rtt < path->min_rtt)
		path->min_rtt = rtt;
}

u32 medge_peer_known(const struct medge_peer *p)
{
	return p->known;
}

/* Nobody has anything to ask or to tell, maybe. */
static void note_known(struct medge_peer *p, u32 known)
{
	if (known)
		p->told = known;
	if (p->known == p->wanted && p->told == p->me.generation)
		p->list_at = MEDGE_NEVER;
}

bool medge_peer_replied(struct medge_peer *p, u64 now,
			const struct medge_probe *r)
{
	struct medge_asked *asked = &p->asked[r->nonce % MEDGE_PROBES_OUT];
	struct medge_path *path = &p->paths[asked->path];
	bool first;

	if (!asked->nonce || asked->nonce != r->nonce ||
	    memcmp(r->node, p->node, MEDGE_MAC_LEN) ||
	    path->state == MEDGE_PATH_NONE || r->probe_rail != path->rail)
		return false;
	path->info.replies++;
	path->peer_rail = r->peer_rail;
	first = !path->probe_rtt;
	measure(path, now - asked->time);
	if (first)
		medge_path_hasten(p, now);
	if (learn_rails(p, path, r, asked->time, now))
		medge_peer_follow(p, now);
	note_known(p, r->known);
	medge_path_answered(p, path, asked->time, now);
	return true;
}

void medge_peer_probed(struct medge_peer *p, u64 now, u32 rail,
		       const struct medge_probe *q)
{
	u32 i;

	note_known(p, q->known);
	/* Its rails have changed, somebody says: ask, and believe the answer. */
	if (q->generation != p->known && q->generation != p->wanted) {
		p->wanted = q->generation;
		medge_peer_compare(p, now);
	}
	for (i = 0; i < p->npaths && q->flags & MEDGE_PROBE_DOUBT; i++)
		if (p->paths[i].rail == rail)
			medge_path_check(&p->paths[i], false);
}
