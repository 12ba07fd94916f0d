// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What becomes of a path. It is judged beside others: where nothing is heard
 * on any, the peer is silent, or we are, and no path is to blame.
 */
#include "peer_state.h"

static void enter(struct medge_peer *p, struct medge_path *path, u8 state,
		  enum medge_path_why why, u64 now)
{
	path->state = state;
	path->why = why;
	path->changed_at = now;
	path->info.changes++;
	p->changes++;
	path->unanswered = 0;
	path->answered = 0;
	path->doubt = false;
	path->probe_now = false;
	path->probe_at = MEDGE_NEVER;
	path->ramp_at = MEDGE_NEVER;
	path->ramp = 0;
	medge_peer_changed(p);
}

/* How long a path that went down @flaps times must show that it works. */
static u64 hold(const struct medge_path *path)
{
	return path->flaps > 1 ?
	       (u64)MEDGE_HOLD_MIN << (path->flaps - 2) : 0;
}

/* When an answer is overdue. */
static u64 answer_wait(const struct medge_peer *p, const struct medge_path *path)
{
	u64 rtt = max(path->srtt + 2 * path->rttvar, path->probe_rtt), best = 0;
	u32 i;

	if (rtt)
		return max_t(u64, 2 * rtt, MEDGE_PROBE_WAIT_MIN);
	for (i = 0; i < p->npaths; i++) {
		rtt = p->paths[i].probe_rtt;
		if (rtt && (!best || rtt < best))
			best = rtt;
	}
	return best ? max_t(u64, 4 * best, MEDGE_PROBE_WAIT_MIN) :
		      MEDGE_RTT_LONG;
}

bool medge_path_has_carrier(const struct medge_peer *p,
			    const struct medge_path *path)
{
	return path->state != MEDGE_PATH_NONE &&
	       p->me.rails[path->rail].flags & MEDGE_PORT_UP;
}

static bool others_heard(const struct medge_peer *p,
			 const struct medge_path *path, u64 since)
{
	u32 i;

	for (i = 0; i < p->npaths; i++) {
		const struct medge_path *other = &p->paths[i];

		if (other != path && other->state != MEDGE_PATH_NONE &&
		    other->heard > since)
			return true;
	}
	return false;
}

static void ask(struct medge_path *path)
{
	path->probe_now = true;
	path->probe_at = MEDGE_NEVER;
}

void medge_path_begin(struct medge_peer *p, struct medge_path *path,
		      enum medge_path_why why, u64 now)
{
	enter(p, path, MEDGE_PATH_PROBING, why, now);
	path->hold_until = now + hold(path);
	ask(path);
}

void medge_path_drain(struct medge_peer *p, struct medge_path *path, u64 now)
{
	enter(p, path, MEDGE_PATH_DRAINING, MEDGE_WHY_ADMIN, now);
}

void medge_path_down(struct medge_peer *p, struct medge_path *path,
		     enum medge_path_why why, u64 now)
{
	bool was_up = path->state == MEDGE_PATH_UP ||
		      path->state == MEDGE_PATH_SUSPECT;

	if (was_up || path->ever_up) {
		if (was_up && now - path->up_since > MEDGE_STABLE + 10 * hold(path))
			path->flaps = 0;
		if (path->flaps < MEDGE_FLAPS_MAX)
			path->flaps++;
	}
	/* What a lossy path still carries may well arrive. */
	if (why != MEDGE_WHY_LOSSY)
		path->moves++;
	enter(p, path, MEDGE_PATH_DOWN, why, now);
	if (why != MEDGE_WHY_CARRIER)
		path->probe_at = now + MEDGE_DOWN_WAIT;
}

static void go_up(struct medge_peer *p, struct medge_path *path, u64 now)
{
	bool back = path->state == MEDGE_PATH_PROBING && path->ever_up;

	if (path->state == MEDGE_PATH_PROBING)
		path->up_since = now;
	enter(p, path, MEDGE_PATH_UP, MEDGE_WHY_ANSWERED, now);
	path->ever_up = true;
	if (!back)
		return;
	path->loss_ppm = 0;
	path->acked = 0;
	path->lost = 0;
	path->ramp = MEDGE_RAMP_STEPS;
	path->ramp_at = now + max_t(u64, path->srtt, MEDGE_RAMP_MIN);
	medge_peer_changed(p);
}

static void proven(struct medge_peer *p, struct medge_path *path, u64 now)
{
	u32 needed = path->ever_up ? MEDGE_PROBE_PROOFS : 1;

	path->answered = min_t(u32, path->answered + 1, 255);
	if (path->answered < needed)
		ask(path);
	else if (now < path->hold_until)
		path->probe_at = now + max_t(u64, hold(path) / 4,
					     answer_wait(p, path));
	else
		go_up(p, path, now);
}

void medge_path_answered(struct medge_peer *p, struct medge_path *path,
			 u64 sent, u64 now)
{
	path->heard = now;
	path->heard_sent = max(path->heard_sent, sent);
	/* It worked then; what has come to light since is not answered. */
	if (sent < path->changed_at)
		return;
	path->unanswered = 0;
	path->doubt = false;
	path->probe_at = MEDGE_NEVER;
	switch (path->state) {
	case MEDGE_PATH_SUSPECT:
		go_up(p, path, now);
		break;
	case MEDGE_PATH_DOWN:
		if (!medge_path_has_carrier(p, path))
			break;
		medge_path_begin(p, path, MEDGE_WHY_ANSWERED, now);
		fallthrough;
	case MEDGE_PATH_PROBING:
		proven(p, path, now);
		break;
	}
}

void medge_path_check(struct medge_path *path, bool doubt)
{
	if (path->state != MEDGE_PATH_UP || path->probe_now ||
	    path->probe_at != MEDGE_NEVER)
		return;
	path->doubt = doubt;
	ask(path);
}

/* A path is judged beside others: if they say nothing, ask them, too. */
static void check_others(struct medge_peer *p, const struct medge_path *path)
{
	u32 i;

	for (i = 0; i < p->npaths; i++)
		if (&p->paths[i] != path)
			medge_path_check(&p->paths[i], false);
}

static void suspect(struct medge_peer *p, struct medge_path *path,
		    enum medge_path_why why, u64 now)
{
	enter(p, path, MEDGE_PATH_SUSPECT, why, now);
	path->doubt = true;
	ask(path);
	check_others(p, path);
}

/* Is there a path that is clearly better than one that loses @ppm? */
static bool better_exists(const struct medge_peer *p,
			  const struct medge_path *path, u32 ppm)
{
	u32 i;

	for (i = 0; i < p->npaths; i++) {
		const struct medge_path *other = &p->paths[i];

		if (other != path && other->state == MEDGE_PATH_UP &&
		    other->loss_ppm < ppm / 2)
			return true;
	}
	return false;
}

static void judge_losses(struct medge_peer *p, struct medge_path *path, u64 now)
{
	u32 total = path->acked + path->lost, ppm, before = path->loss_ppm;

	if (total < MEDGE_LOSS_FRAMES || now < path->judge_at)
		return;
	ppm = (u64)path->lost * 1000000 / total;
	path->acked = 0;
	path->lost = 0;
	path->judge_at = now + max_t(u64, 2 * path->srtt, MEDGE_LOSS_TIME);
	path->loss_ppm = (before + ppm) / 2;
	/* Below one in a hundred, it is not worth anybody's attention. */
	if (path->loss_ppm < 10000)
		path->loss_ppm = 0;
	if (before > MEDGE_LOSS_MAX_PPM && ppm > MEDGE_LOSS_MAX_PPM &&
	    path->state == MEDGE_PATH_UP && better_exists(p, path, ppm))
		medge_path_down(p, path, MEDGE_WHY_LOSSY, now);
	else if (path->loss_ppm != before)
		medge_peer_changed(p);
}

static void count(struct medge_path *path, const struct medge_path_report *r)
{
	path->info.frames += r->frames;
	path->info.bytes += r->bytes;
	path->info.retransmits += r->retransmits;
	path->info.lost += r->lost;
	path->acked += r->acked;
	path->lost += r->missed;
	if (!r->measured)
		return;
	path->srtt = r->srtt;
	path->rttvar = r->rttvar;
	if (!path->min_rtt || r->min_rtt < path->min_rtt)
		path->min_rtt = r->min_rtt;
}

/* What was sent at @sent has been acknowledged. */
static void acked(struct medge_peer *p, struct medge_path *path, u64 sent,
		  u64 now)
{
	path->heard = now;
	path->heard_sent = max(path->heard_sent, sent);
	if (sent <= path->changed_at)
		return;
	switch (path->state) {
	case MEDGE_PATH_UP:
		if (sent <= path->asked_at)
			break;
		path->unanswered = 0;
		path->probe_at = MEDGE_NEVER;
		break;
	case MEDGE_PATH_SUSPECT:
		go_up(p, path, now);
		break;
	case MEDGE_PATH_DOWN:
		/* It was tried for want of anything better. */
		if (path->why != MEDGE_WHY_LOSSY)
			medge_path_begin(p, path, MEDGE_WHY_ANSWERED, now);
		break;
	}
}

void medge_path_reported(struct medge_peer *p, struct medge_path *path,
			 const struct medge_path_report *r, u64 now)
{
	count(path, r);
	if (r->acked_sent)
		acked(p, path, r->acked_sent, now);
	/* One connection's silence is old news if the path was heard since. */
	if (r->silent_sent > path->heard_sent && path->state == MEDGE_PATH_UP)
		suspect(p, path, MEDGE_WHY_SILENT, now);
	if (r->doubt)
		medge_path_check(path, true);
	judge_losses(p, path, now);
}

void medge_path_hasten(struct medge_peer *p, u64 now)
{
	u32 i;

	for (i = 0; i < p->npaths; i++) {
		struct medge_path *path = &p->paths[i];

		if (path->state == MEDGE_PATH_PROBING &&
		    path->probe_at != MEDGE_NEVER)
			path->probe_at = min(path->probe_at,
					     now + answer_wait(p, path));
	}
}

void medge_path_asked(struct medge_peer *p, struct medge_path *path, u64 now)
{
	u64 wait = answer_wait(p, path);

	path->probe_now = false;
	path->asked_at = now;
	path->info.probes++;
	if (path->unanswered < 255)
		path->unanswered++;
	if (path->state == MEDGE_PATH_DOWN)
		wait = max_t(u64, wait, MEDGE_DOWN_WAIT << min_t(u32, path->unanswered, 7));
	else if (path->unanswered > MEDGE_PROBE_TRIES)
		wait <<= min_t(u32, path->unanswered - MEDGE_PROBE_TRIES, 10);
	path->probe_at = now + min_t(u64, wait, MEDGE_PROBE_WAIT_MAX);
}

/* A path that must show for a while that it works has failed to. */
static void start_again(struct medge_path *path, u64 now)
{
	path->answered = 0;
	path->hold_until = now + hold(path);
}

/* Silence everywhere: then nothing is known against those that are down. */
static bool none_is_better(const struct medge_peer *p)
{
	bool down = false;
	u32 i;

	for (i = 0; i < p->npaths; i++) {
		const struct medge_path *other = &p->paths[i];

		if (other->state == MEDGE_PATH_UP)
			return false;
		down |= other->state == MEDGE_PATH_DOWN && other->weight;
	}
	return down;
}

void medge_path_expired(struct medge_peer *p, struct medge_path *path, u64 now)
{
	bool alone = !others_heard(p, path, path->changed_at) &&
		     !none_is_better(p);

	path->probe_at = MEDGE_NEVER;
	switch (path->state) {
	case MEDGE_PATH_UP:
		if (path->unanswered >= MEDGE_PROBE_DOUBTS)
			suspect(p, path, MEDGE_WHY_DOUBTED, now);
		break;
	case MEDGE_PATH_SUSPECT:
	case MEDGE_PATH_PROBING:
		if (path->unanswered >= MEDGE_PROBE_TRIES && !alone) {
			medge_path_down(p, path, path->state == MEDGE_PATH_SUSPECT ?
					path->why : MEDGE_WHY_NO_ANSWER, now);
			return;
		}
		if (path->unanswered)
			start_again(path, now);
		if (alone)
			check_others(p, path);
		break;
	case MEDGE_PATH_DOWN:
		break;
	default:
		return;
	}
	ask(path);
}
