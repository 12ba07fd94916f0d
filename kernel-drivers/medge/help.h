/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A second CPU for many QPs: the poller has taken several, of short ops, and what
 * holds them back is its CPU, while who posts polls his CQs in vain. Then he may ring
 * for a QP that waits for the poller, and sends for it alone while the poller is at
 * the others. One CPU for each is more than two by turns, as one QP of long ops has
 * them (second.h): nothing that belongs to a QP is wanted by both. Whether it is more
 * than the poller alone does is tried every now and then, and measured.
 */
#ifndef MEDGE_HELP_H
#define MEDGE_HELP_H

#include <linux/compiler.h>
#include <linux/limits.h>
#include <linux/types.h>

#include "choice.h"

struct medge_device;

enum {
	/* A trial takes so long; interrupted, not longer than that. */
	MEDGE_HELP_TRIAL_MS = 20,
	MEDGE_HELP_TRIAL_MAX_MS = 60,
	/* A late doorbell, of more posts than there can be: he rings when he has none. */
	MEDGE_HELP_POSTS = S32_MAX,
};

/**
 * struct medge_help - of a poller; of who polls
 * @is: who posts may help; read by others, too
 * @at: jiffies, when this trial ends
 * @since: when it began (ns), or 0: there is none
 * @bytes: what the device had sent then
 * @choice: between the poller alone, and with help
 */
struct medge_help {
	bool is;
	unsigned long at;
	u64 since;
	u64 bytes;
	struct medge_choice choice;
};

static inline bool medge_help_is(const struct medge_help *help)
{
	return READ_ONCE(help->is);
}

/* A round is over, of one QP or of @several. */
void medge_help_look(struct medge_device *dev, bool several);
/* There are no streams any more. */
void medge_help_end(struct medge_help *help);

#endif /* MEDGE_HELP_H */
