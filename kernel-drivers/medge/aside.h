/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A poller that takes streams does so because its CPU had nothing to do. When others
 * want that CPU it steps aside, and what they have had of it tells whether there are to
 * be streams.
 */
#ifndef MEDGE_ASIDE_H
#define MEDGE_ASIDE_H

#include <linux/types.h>
#include <linux/workqueue.h>

struct medge_poller;

enum {
	/* It was away for less, and will be, it is thought; posts wait no longer than that. */
	MEDGE_ASIDE_AWAY_US = 500,
	MEDGE_ASIDE_ABSENT_MS = 2,
	/* Others have had so much of its CPU; then there are no streams for so long. */
	MEDGE_ASIDE_LENT_MS = 20,
	MEDGE_ASIDE_REST_MS = 100,
};

/**
 * struct medge_aside - of a poller; its own, but for @rested
 * @rested: jiffies: from then on it may take streams; read without a lock
 * @lent: ns that others had of its CPU since @lent_since (jiffies)
 * @away: ns that it was, when others wanted its CPU last
 * @absent: it is, for longer than was to be expected
 */
struct medge_aside {
	unsigned long rested;
	unsigned long lent_since;
	u64 lent;
	u64 away;
	struct delayed_work absent;
};

void medge_aside_init(struct medge_aside *aside);
/* The thread is no more. May sleep. */
void medge_aside_end(struct medge_aside *aside);

/* ---- by the thread, which has the seat and sleeps, if need be ---- */

/* Somebody else wants its CPU. */
void medge_aside_step(struct medge_poller *poller);
/* It has nothing to do. */
void medge_aside_yield(struct medge_poller *poller);

/* May it take streams, by what others have had of its CPU? Any context. */
bool medge_aside_has_rested(const struct medge_aside *aside);

#endif /* MEDGE_ASIDE_H */
