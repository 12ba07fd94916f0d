// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Acks that wait for a reply. Where each message is answered by one the other way, what
 * is sent anyway carries the acks, and those that are sent at once, as asked for, are
 * built and received while the reply waits for the same locks. TCP does without them,
 * too, once it has seen that (its "pingpong" mode).
 *
 * Who waits in vain keeps a peer waiting. So an ack waits for about as long, at most, as
 * those that were not sent before would have taken. And it does not wait while data of
 * ours is in flight: the peer may wait for that, and each for the other.
 */
#include "state.h"

static bool trusts(const struct medge_conn *c)
{
	return c->replies >= c->replies_trusted;
}

/* The peer would ask again soon after that. */
static u64 wait_ns(const struct medge_conn *c)
{
	return clamp_t(u64, c->replies * (u64)MEDGE_REPLY_WORTH, MEDGE_REPLY_WAIT_MIN,
		       medge_loss_pto_least(c) / 4 * 3);
}

void medge_reply_asked(struct medge_conn *c)
{
	u64 now = medge_rx_rail(c, c->ack_rail)->rx_time;

	if (c->nunacked) {
		c->ack_now = true;
		return;
	}
	/* One before this had no reply; or it is the same frame again. */
	if (c->asked_at && c->asked_at != now)
		c->replies = 0;
	c->asked_at = now;
	if (trusts(c))
		c->ack_at = min(c->ack_at, now + wait_ns(c));
	else
		c->ack_now = true;
}

void medge_reply_overdue(struct medge_conn *c)
{
	if (!c->asked_at || !trusts(c))
		return;
	c->replies = 0;
	c->replies_trusted = min(2 * c->replies_trusted, MEDGE_REPLIES_MAX);
}

void medge_reply_sent(struct medge_conn *c)
{
	bool late;

	if (!c->asked_at)
		return;
	late = c->last_tx - c->asked_at > MEDGE_REPLY_SOON;
	/* One may be late because its CPU was away, two in a row seldom. */
	if (late)
		c->replies -= DIV_ROUND_UP(c->replies, c->reply_was_late ? 2 : 16);
	else if (c->replies < 2 * MEDGE_REPLIES_MAX)
		c->replies++;
	c->reply_was_late = late;
	if (c->replies >= 2 * c->replies_trusted)
		c->replies_trusted = max(c->replies_trusted / 2, MEDGE_REPLIES_MIN);
	c->asked_at = 0;
}
