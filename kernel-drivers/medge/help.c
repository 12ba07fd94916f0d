// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Whether who posts to many QPs helps the poller. */
#include <linux/jiffies.h>
#include <linux/ktime.h>

#include "device.h"
#include "help.h"
#include "rate.h"
#include "stats.h"

static void begin_trial(struct medge_device *dev, u64 now)
{
	struct medge_help *help = &dev->poller.help;

	help->since = now;
	help->bytes = medge_stats_tx_bytes(dev);
	help->at = jiffies + msecs_to_jiffies(MEDGE_HELP_TRIAL_MS);
}

void medge_help_end(struct medge_help *help)
{
	WRITE_ONCE(help->is, false);
	help->since = 0;
}

void medge_help_look(struct medge_device *dev, bool several)
{
	struct medge_help *help = &dev->poller.help;
	u64 now, took;

	if (!several) {
		if (help->since)
			medge_help_end(help);
		return;
	}
	if (help->since && time_before(jiffies, help->at))
		return;
	now = ktime_get_ns();
	took = now - help->since;
	if (help->since && took <= MEDGE_HELP_TRIAL_MAX_MS * NSEC_PER_MSEC) {
		u64 bytes = medge_stats_tx_bytes(dev) - help->bytes;

		WRITE_ONCE(help->is, medge_choose(&help->choice, help->is,
						  medge_rate(bytes, took)));
	}
	begin_trial(dev, now);
}
