/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Late doorbells: who posts one op after the other, and reads no completion between
 * them, may tell of many by one doorbell, when he has posted so many or begins to
 * poll. A stream costs its poster few system calls then, also where no poller takes
 * it; and small ops share frames. Should he do something else first, a timer finds
 * what he posted.
 */
#ifndef MEDGE_LATE_H
#define MEDGE_LATE_H

#include <linux/types.h>

struct medge_qp;

enum {
	/* Doorbells, and no completion read between them. */
	MEDGE_LATE_RINGS = 4,
	/* So many posts are worth a doorbell, or those that take so long, whatever he does next. */
	MEDGE_LATE_POSTS = 32,
	MEDGE_LATE_WORK_US = 2000,
	/* What is posted waits no longer than that. */
	MEDGE_LATE_US = 100,
	/* Receives, for which messages wait anyhow. */
	MEDGE_LATE_RECV_US = 400,
	/* Who posts and does not poll then has to ring at once for so long: first, at most. */
	MEDGE_LATE_REST_MS = 100,
	MEDGE_LATE_REST_MS_MAX = MEDGE_LATE_REST_MS << 7,
};

/**
 * struct medge_late - of a QP; under qp->lock
 * @may: he who posts may be late
 * @began: when the kernel was last told of posts (ns), and
 * @from: how far in the ring it had taken them: what they take is known by that
 * @at: when the kernel looks (ns), or 0
 * @reaped: how many CQEs he had read when he rang last; wraps
 * @rings: how often he has rung since he read one
 * @rested: jiffies: from then on he may be late
 * @rest_ms: for so long he may not, the next time that he does not poll
 */
struct medge_late {
	bool may;
	u64 began;
	u32 from;
	u64 at;
	u32 reaped;
	u32 rings;
	unsigned long rested;
	u32 rest_ms;
};

/**
 * struct medge_late_recv - the same of receives that messages wait for; under qp->lock
 * @posts: that are worth a doorbell
 * @since: since when a message has waited for one (ns), or 0
 * @at: when the kernel looks (ns), or 0
 * @rested: jiffies: from then on who posts them may be late
 *
 * Who is slower than his peer, and rang for each receive, would be slower by that.
 */
struct medge_late_recv {
	u32 posts;
	u64 since;
	u64 at;
	unsigned long rested;
};

/* A QP of which nothing is known, and whose timer does not run. */
void medge_late_init(struct medge_qp *qp);
/* A doorbell, at qp->now. Under qp->lock. */
void medge_late_rang(struct medge_qp *qp);
/* The kernel goes idle: enum medge_doorbell. Under qp->lock. */
u32 medge_late_doorbell(struct medge_qp *qp);
/* qp->late.at has come; what is posted has to be taken after that. Under qp->lock. */
void medge_late_due(struct medge_qp *qp);

/* A message waits for a receive: enum medge_doorbell. Under qp->lock. */
u32 medge_late_recv_doorbell(struct medge_qp *qp);
/* He has rung for those that he has posted. Under qp->lock. */
void medge_late_recv_rang(struct medge_qp *qp);
/* qp->late_recv.at has come. Return: there are some to be looked at. Under qp->lock. */
bool medge_late_recv_due(struct medge_qp *qp);

#endif /* MEDGE_LATE_H */
