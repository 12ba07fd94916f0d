// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Whether who posts sends beside the poller. */
#include <linux/math64.h>
#include <linux/time64.h>

#include "qp.h"
#include "rate.h"
#include "second.h"

static void begin_trial(struct medge_qp *qp)
{
	struct medge_second *s = &qp->second;

	s->since = qp->now;
	s->from_ops = s->ops;
	s->from_bytes = s->bytes;
}

void medge_second_begin(struct medge_qp *qp)
{
	struct medge_second *s = &qp->second;

	/* Others want the poller's CPU time and again; to begin anew would come to no end. */
	if (qp->now - s->since < MEDGE_SECOND_TRIAL_MAX_MS * NSEC_PER_MSEC)
		return;
	s->posts = 0;
	s->since = 0;
}

void medge_second_look(struct medge_qp *qp)
{
	struct medge_second *s = &qp->second;
	u64 took = qp->now - s->since;
	u32 ops = s->ops - s->from_ops;
	u64 bytes = s->bytes - s->from_bytes;
	bool both;

	if (!s->since) {
		begin_trial(qp);
		return;
	}
	if (took < MEDGE_SECOND_TRIAL_MS * NSEC_PER_MSEC ||
	    ops < MEDGE_SECOND_TRIAL_OPS)
		return;
	s->long_ops = bytes >= (u64)ops * MEDGE_SECOND_OP;
	both = medge_choose(&s->choice, s->posts, medge_rate(bytes, took));
	s->posts = 0;
	if (s->long_ops && both)
		s->posts = max_t(u64, div64_u64((u64)ops * MEDGE_SECOND_WORK,
						bytes), 1);
	begin_trial(qp);
}
