/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Whether more of a stream is sent when the poller has it than without. */
#ifndef MEDGE_TRIAL_H
#define MEDGE_TRIAL_H

#include <linux/compiler.h>
#include <linux/jiffies.h>
#include <linux/types.h>

struct medge_device;
struct medge_qp;

/**
 * struct medge_trial - a stream that a poller has taken, to see whether more is sent so
 * @qp: whose; NULL: there is none. Under poller->lock
 * @rate: what was sent without it, in bytes per us
 * @stage: what it is at until @at (jiffies)
 * @since: what is sent with it is counted from then on (ns), and
 * @bytes: from there on
 */
struct medge_trial {
	struct medge_qp *qp;
	u32 rate;
	enum {
		MEDGE_TRIAL_SETTLES,
		MEDGE_TRIAL_COUNTS,
		MEDGE_TRIAL_KEEPS,	/* more was sent so */
	} stage;
	unsigned long at;
	u64 since;
	u64 bytes;
};

/*
 * The poller has just taken a stream of @qp's, whose device sends @rate without it, in
 * bytes per us. Under poller->lock, as is what follows, but where it says otherwise.
 */
void medge_trial_begin(struct medge_trial *trial, struct medge_qp *qp, u32 rate);

/* Its stage is over. Return: it goes on. */
bool medge_trial_next(struct medge_device *dev, struct medge_trial *trial);

static inline void medge_trial_end(struct medge_trial *trial)
{
	WRITE_ONCE(trial->qp, NULL);
}

/* It is not known yet whether more is sent so. No lock. */
static inline bool medge_trial_is_on(const struct medge_trial *trial)
{
	return READ_ONCE(trial->qp) &&
	       READ_ONCE(trial->stage) < MEDGE_TRIAL_KEEPS;
}

/* There is one whose stage is over. No lock. */
static inline bool medge_trial_is_due(const struct medge_trial *trial)
{
	return unlikely(READ_ONCE(trial->qp)) &&
	       !time_before(jiffies, READ_ONCE(trial->at));
}

#endif /* MEDGE_TRIAL_H */
