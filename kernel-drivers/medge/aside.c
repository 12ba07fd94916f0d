// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What a poller leaves of its CPU to others. */
#include <linux/kernel_stat.h>
#include <linux/ktime.h>
#include <linux/sched/stat.h>

#include "aside.h"
#include "compat.h"
#include "poller.h"
#include "seat.h"

/* What tasks have had of a CPU, in ns; softirqs are not among them. */
static u64 tasks_had(int cpu)
{
	const u64 *stat = kcpustat_cpu(cpu).cpustat;

	return stat[CPUTIME_USER] + stat[CPUTIME_NICE] + stat[CPUTIME_SYSTEM];
}

/*
 * Tasks had @ns of this CPU. If of late they have had so much that it can no longer be
 * said to idle, there are no streams for a while. One tick may well find a worker that
 * is soon gone.
 */
static void note_shared(struct medge_poller *poller, u64 ns)
{
	struct medge_aside *aside = &poller->aside;

	if (time_after(jiffies, aside->lent_since +
			       msecs_to_jiffies(MEDGE_ASIDE_REST_MS))) {
		aside->lent_since = jiffies;
		aside->lent = 0;
	}
	aside->lent += ns;
	if (aside->lent < MEDGE_ASIDE_LENT_MS * NSEC_PER_MSEC)
		return;
	WRITE_ONCE(aside->rested,
		   jiffies + msecs_to_jiffies(MEDGE_ASIDE_REST_MS));
	medge_poller_end_streams(poller);
}

/* On another CPU: the thread has not come back. */
static void unwatch_absent(struct work_struct *work)
{
	medge_poller_unwatch_all(container_of(to_delayed_work(work),
					      struct medge_poller, aside.absent));
}

/*
 * Somebody else wants this CPU, and nobody asked for this thread. Streams were taken
 * because the CPU had nothing to do; tasks that have it at ticks end that. ksoftirqd
 * does not: it may well be there for our frames. Who posts rings while this thread is
 * away; but if that was not for long the last time, not before it is so now: to have
 * each of many QPs ring once costs more.
 */
void medge_aside_step(struct medge_poller *poller)
{
	struct medge_aside *aside = &poller->aside;
	int cpu = raw_smp_processor_id();
	u64 had, left;

	medge_seat_leave(poller, true);
	if (aside->away >= MEDGE_ASIDE_AWAY_US * NSEC_PER_USEC)
		medge_poller_unwatch_all(poller);
	else
		queue_delayed_work(system_dfl_wq, &aside->absent,
				   msecs_to_jiffies(MEDGE_ASIDE_ABSENT_MS));
	had = tasks_had(cpu);
	left = ktime_get_ns();
	cond_resched();
	aside->away = ktime_get_ns() - left;
	medge_seat_return(poller);
	cancel_delayed_work(&aside->absent);
	/* Whom a tick finds is said to have had all of it. */
	note_shared(poller, min(tasks_had(cpu) - had, aside->away));
}

/*
 * There is nothing to do: who shares the CPU may be who posts, or polls his CQ. If he keeps
 * it, he waits for what he has posted, and nobody looks at it meanwhile.
 */
void medge_aside_yield(struct medge_poller *poller)
{
	u64 left, away;

	/*
	 * Nobody shares it. To be away for a moment would let softirqs of other CPUs send, by
	 * chance, where it was tried who is to (second.h).
	 */
	if (READ_ONCE(poller->streaming) && single_task_running()) {
		cpu_relax();
		return;
	}
	medge_seat_leave(poller, false);
	left = ktime_get_ns();
	yield();
	away = ktime_get_ns() - left;
	medge_seat_return(poller);
	if (away >= MEDGE_ASIDE_AWAY_US * NSEC_PER_USEC &&
	    READ_ONCE(poller->mode) == MEDGE_POLL_AUTO)
		note_shared(poller, away);
}

bool medge_aside_has_rested(const struct medge_aside *aside)
{
	return time_after_eq(jiffies, READ_ONCE(aside->rested));
}

void medge_aside_init(struct medge_aside *aside)
{
	aside->rested = jiffies;
	INIT_DELAYED_WORK(&aside->absent, unwatch_absent);
}

void medge_aside_end(struct medge_aside *aside)
{
	cancel_delayed_work_sync(&aside->absent);
}
