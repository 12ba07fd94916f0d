/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A second CPU for one QP: the poller has taken a stream, and who posts it has no
 * more to do than to wait. If it is of long ops, he may send as well, by ringing as
 * he would without a poller: then both send, by turns, and each has the frames that
 * it sent received where they are near. Whether that is more than one of them does
 * alone depends on how far their CPUs are from each other, on the rails, and on what
 * else he has to do; so it is tried every now and then, and measured.
 */
#ifndef MEDGE_SECOND_H
#define MEDGE_SECOND_H

#include <linux/types.h>

#include "choice.h"

struct medge_qp;

enum {
	/* Ops as long as this, on average, in bytes. */
	MEDGE_SECOND_OP = 32 << 10,
	/* So much is worth a doorbell. */
	MEDGE_SECOND_WORK = 4 << 20,
	/* A trial takes so long, and so many ops at least; interrupted, not longer than that. */
	MEDGE_SECOND_TRIAL_MS = 8,
	MEDGE_SECOND_TRIAL_MAX_MS = 32,
	MEDGE_SECOND_TRIAL_OPS = 32,
};

/**
 * struct medge_second - of a QP; under qp->lock
 * @ops: that have completed, and
 * @bytes: what they were of; both wrap
 * @since: when this trial began (ns), or 0; then @from_ops and @from_bytes were
 * @posts: who posts rings for so many, as enum medge_doorbell; 0: the poller is alone
 * @long_ops: they were, in the last trial
 * @choice: between the poller alone, and both
 */
struct medge_second {
	u32 ops;
	u64 bytes;
	u64 since;
	u32 from_ops;
	u64 from_bytes;
	u32 posts;
	bool long_ops;
	struct medge_choice choice;
};

/* The poller begins to watch, at qp->now: what was measured stays known. Under qp->lock. */
void medge_second_begin(struct medge_qp *qp);
/* Somebody looks at the ring, at qp->now. Under qp->lock. */
void medge_second_look(struct medge_qp *qp);

#endif /* MEDGE_SECOND_H */
