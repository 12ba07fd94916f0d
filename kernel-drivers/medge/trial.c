// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* A stream on trial: it settles, is counted, and is kept for a while if that pays. */
#include <linux/ktime.h>
#include <linux/math64.h>

#include "device.h"
#include "qp.h"
#include "rate.h"
#include "stats.h"
#include "stream.h"
#include "trial.h"

void medge_trial_begin(struct medge_trial *trial, struct medge_qp *qp, u32 rate)
{
	*trial = (struct medge_trial) {
		.rate = rate,
		.bytes = medge_stats_tx_bytes(qp->dev),
		.since = ktime_get_ns(),
		.at = jiffies + msecs_to_jiffies(MEDGE_STREAM_WATCH_MS),
	};
	WRITE_ONCE(trial->qp, qp);
}

/* Return: so much more is sent, in percent; less than 0: less. */
static int gain(struct medge_device *dev, const struct medge_trial *trial)
{
	u64 rate = medge_rate(medge_stats_tx_bytes(dev) - trial->bytes,
			      ktime_get_ns() - trial->since);

	return min_t(u64, div_u64(rate * 100, trial->rate), INT_MAX) - 100;
}

bool medge_trial_next(struct medge_device *dev, struct medge_trial *trial)
{
	u32 ms = 0;

	switch (trial->stage) {
	case MEDGE_TRIAL_SETTLES:
		/*
		 * Who lends has begun by now, or nobody does. But what is sent until both
		 * find their way is less than before, be it more in the end.
		 */
		if (dev->poller.borrow.is &&
		    gain(dev, trial) < -MEDGE_STREAM_TRY_LOSS)
			return medge_stream_tried(trial->qp, 0) > 0;
		trial->bytes = medge_stats_tx_bytes(dev);
		trial->since = ktime_get_ns();
		ms = MEDGE_STREAM_WATCH_MS;
		break;
	case MEDGE_TRIAL_COUNTS:
		ms = medge_stream_tried(trial->qp,
					max(gain(dev, trial), 0));
		break;
	case MEDGE_TRIAL_KEEPS:
		break;
	}
	trial->stage++;
	WRITE_ONCE(trial->at, jiffies + msecs_to_jiffies(ms));
	return ms;
}
