// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Look at rings and rails instead of being told. */
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <net/busy_poll.h>

#include "aside.h"
#include "borrow.h"
#include "cq.h"
#include "device.h"
#include "poller.h"
#include "qp.h"
#include "seat.h"
#include "stats.h"
#include "stream.h"

static const char * const names[MEDGE_POLLINGS] = {
	[MEDGE_POLL_OFF] = "off",
	[MEDGE_POLL_AUTO] = "auto",
	[MEDGE_POLL_ASKED] = "asked",
	[MEDGE_POLL_ALL] = "all",
};

const char *medge_polling_name(u32 mode)
{
	return names[mode];
}

/* ---- a QP ---- */

/* From here on who posts need not ring. Under poller->lock. */
static void watch(struct medge_qp *qp)
{
	spin_lock_bh(&qp->lock);
	qp->polled.watched = true;
	qp->now = ktime_get_ns();
	medge_second_begin(qp);
	spin_unlock_bh(&qp->lock);
	/* What is there already was told; but look, which clears need_doorbell. */
	medge_send_look(qp);
}

/* From here on he must ring, if he does not yet see that he need not. Under poller->lock. */
static void unwatch(struct medge_qp *qp)
{
	if (!qp->polled.watched)
		return;
	spin_lock_bh(&qp->lock);
	qp->polled.watched = false;
	WRITE_ONCE(qp->sq.hdr->need_doorbell, MEDGE_DOORBELL_NOW);
	spin_unlock_bh(&qp->lock);
	/* Pairs with the barrier between the user's prod and his look at this. */
	smp_mb();
	if (medge_qp_hold(qp)) {
		medge_send_look(qp);
		medge_qp_put(qp);
	}
}

/* Under poller->lock. */
static void choose(struct medge_poller *poller, struct medge_polled *polled)
{
	bool wanted;

	if (poller->mode != MEDGE_POLL_AUTO)
		polled->streams = false;
	wanted = poller->mode == MEDGE_POLL_ALL || polled->streams ||
		 (polled->asked && poller->mode != MEDGE_POLL_OFF);
	WRITE_ONCE(polled->wanted, wanted);
	if (!wanted) {
		unwatch(container_of(polled, struct medge_qp, polled));
		list_del_init(&polled->turn);
	} else if (list_empty(&polled->turn)) {
		list_add_tail(&polled->turn, &poller->turns);
	}
}

/*
 * To wait for somebody who helps, and is at a QP, would cost more than to come to it
 * again. But not before the CPU is given up, for who has left something to the poller
 * counts on that look.
 */
static bool may_come_again(const struct medge_poller *poller)
{
	return medge_help_is(&poller->help) && READ_ONCE(poller->here);
}

/*
 * Take what is new in the ring, if there is something, as a doorbell would.
 * What is not taken then, for want of room, will be when there is room: no
 * need to look again before there is more. Return: there was something, and nobody at it.
 */
static bool look(struct medge_poller *poller, struct medge_qp *qp)
{
	u32 posts = READ_ONCE(qp->sq.hdr->prod) - READ_ONCE(qp->polled.prod);
	bool looked = true;

	if (!posts && !READ_ONCE(qp->polled.left) && qp->polled.watched)
		return false;
	/* It may be being reset, which forgets the ring. */
	if (!medge_qp_hold(qp))
		return false;
	/* A thread that is awake for few looks is not worth it; who lends is awake anyway. */
	poller->found += poller->borrow.is ? posts : !!posts;
	/* Read while it cannot be: what stands there will be looked at. */
	WRITE_ONCE(qp->polled.prod, READ_ONCE(qp->sq.hdr->prod));
	WRITE_ONCE(qp->polled.left, false);
	if (!qp->polled.watched) {
		watch(qp);
	} else if (!may_come_again(poller)) {
		medge_send_look(qp);
	} else if (!medge_send_try_look(qp)) {
		WRITE_ONCE(qp->polled.left, true);
		looked = false;
	}
	medge_qp_put(qp);
	return looked;
}

bool medge_poller_is_helped(const struct medge_qp *qp)
{
	return qp->polled.watched && READ_ONCE(qp->polled.streams) &&
	       !qp->second.long_ops && medge_help_is(&qp->dev->poller.help);
}

u32 medge_poller_doorbell(const struct medge_qp *qp)
{
	if (medge_poller_is_shared(qp))
		return qp->second.posts;
	return medge_poller_is_helped(qp) ? MEDGE_HELP_POSTS :
					    MEDGE_DOORBELL_NONE;
}

/* ---- rounds ---- */

bool medge_poller_look(struct medge_poller *poller)
{
	struct medge_polled *polled;
	bool found = false;

	mutex_lock(&poller->lock);
	list_for_each_entry(polled, &poller->turns, turn)
		found |= look(poller,
			      container_of(polled, struct medge_qp, polled));
	mutex_unlock(&poller->lock);
	return found;
}

/*
 * Frames that have come, in this thread instead of a softirq. Only rails with
 * NAPI instances of their own can be asked: a veth is such once it has GRO.
 */
static void look_at_rails(struct medge_device *dev)
{
#ifdef CONFIG_NET_RX_BUSY_POLL
	u32 i, end = READ_ONCE(dev->rails.end);

	for (i = 0; i < end; i++) {
		u32 napi = READ_ONCE(dev->poller.napi[i]);

		if (napi)
			napi_busy_loop(napi, NULL, NULL, true, BUSY_POLL_BUDGET);
	}
#endif
}

/* ---- where and when it runs ---- */

/*
 * Go where it is quiet, and stay there as long as there are streams. The scheduler
 * may have put this thread to the poster, and would take some ticks to see that he
 * leaves no room; and it would bring the thread there again, seeing ksoftirqd beside
 * it, which is there for our frames. But where it may run is the administrator's to say.
 */
static void move(struct medge_poller *poller)
{
	int cpu = xchg(&poller->cpu, -1);

	if (cpu < 0 || !cpumask_test_cpu(cpu, current->cpus_ptr))
		return;
	cpumask_copy(poller->allowed, current->cpus_ptr);
	if (!set_cpus_allowed_ptr(current, cpumask_of(cpu)))
		poller->stays = cpu;
}

/* Unless he has said so meanwhile, it may run where it might before. */
static void end_stay(struct medge_poller *poller)
{
	if (poller->stays >= 0 &&
	    cpumask_equal(current->cpus_ptr, cpumask_of(poller->stays)))
		set_cpus_allowed_ptr(current, poller->allowed);
	poller->stays = -1;
}

void medge_poller_end_streams(struct medge_poller *poller)
{
	struct medge_polled *polled, *next;

	mutex_lock(&poller->lock);
	WRITE_ONCE(poller->streaming, false);
	medge_trial_end(&poller->trial);
	medge_help_end(&poller->help);
	list_for_each_entry_safe(polled, next, &poller->turns, turn) {
		polled->streams = false;
		choose(poller, polled);
	}
	mutex_unlock(&poller->lock);
	end_stay(poller);
}

void medge_poller_unwatch_all(struct medge_poller *poller)
{
	struct medge_polled *polled;

	mutex_lock(&poller->lock);
	list_for_each_entry(polled, &poller->turns, turn)
		unwatch(container_of(polled, struct medge_qp, polled));
	mutex_unlock(&poller->lock);
}

static bool has_to_do(const struct medge_poller *poller)
{
	return (READ_ONCE(poller->traffic) && !READ_ONCE(poller->borrow.is)) ||
	       kthread_should_stop();
}

static void judge_later(struct medge_poller *poller)
{
	poller->judged = jiffies;
	poller->found = 0;
}

/*
 * Do its posts still make a stream? Who is kept from posting, by whatever has his
 * CPU, may be so at once, and again: it is told by as much time as made it one.
 */
static bool goes_on(struct medge_poller *poller)
{
	bool is;

	if (!READ_ONCE(poller->streaming))
		return false;
	if (time_before(jiffies, poller->judged +
				 msecs_to_jiffies(MEDGE_STREAM_WATCH_MS)))
		return true;
	is = poller->found >= MEDGE_STREAM_POSTS;
	judge_later(poller);
	return is;
}

/* A poster who is kept from posting for a moment goes on with one doorbell. */
static bool pause(struct medge_poller *poller)
{
	return goes_on(poller) &&
	       wait_event_idle_timeout(poller->wait, has_to_do(poller),
				       msecs_to_jiffies(MEDGE_STREAM_PAUSE_MS));
}

/* Who asked for nothing may be served by others meanwhile. */
static void sleep_unseated(struct medge_poller *poller)
{
	WRITE_ONCE(poller->by, NULL);
	do {
		mutex_unlock(&poller->seat);
		wait_event_idle(poller->wait, has_to_do(poller));
		mutex_lock(&poller->seat);
	} while (poller->borrow.is && !kthread_should_stop());
	WRITE_ONCE(poller->by, current);
}

static void sleep(struct medge_device *dev)
{
	struct medge_poller *poller = &dev->poller;

	medge_poller_unwatch_all(poller);
	if (!pause(poller)) {
		medge_poller_end_streams(poller);
		sleep_unseated(poller);
		judge_later(poller);
	}
	move(poller);
	local_bh_disable();
	medge_count(dev, poller_wakes);
	local_bh_enable();
}

static void look_at_trial(struct medge_device *dev)
{
	struct medge_poller *poller = &dev->poller;
	struct medge_trial *trial = &poller->trial;
	bool ends;

	if (!medge_trial_is_due(trial))
		return;
	mutex_lock(&poller->lock);
	/* Or it has just been destroyed. */
	ends = trial->qp && !medge_trial_next(dev, trial);
	mutex_unlock(&poller->lock);
	if (ends)
		medge_poller_end_streams(poller);
}

/*
 * Streams, of which one could be left to who posts. Who lends his CPU serves but one;
 * and one trial at a time.
 */
static bool has_several(const struct medge_poller *poller)
{
	return READ_ONCE(poller->streaming) && !list_empty(&poller->turns) &&
	       !list_is_singular(&poller->turns) &&
	       !medge_trial_is_on(&poller->trial);
}

/* Return: there was something. */
static bool look_at_all(struct medge_device *dev)
{
	bool found = medge_poller_look(&dev->poller);

	look_at_rails(dev);
	look_at_trial(dev);
	medge_help_look(dev, has_several(&dev->poller));
	return found | xchg(&dev->poller.traffic, 0);
}

bool medge_poller_stand_in(struct medge_device *dev, const struct medge_cq *cq,
			   u64 until)
{
	struct medge_poller *poller = &dev->poller;
	u32 done = READ_ONCE(cq->ring.done);
	bool goes;

	medge_seat_take(poller);
	do {
		look_at_all(dev);
		WRITE_ONCE(poller->borrow.rounds, poller->borrow.rounds + 1);
		goes = goes_on(poller);
	} while (goes && READ_ONCE(cq->ring.done) == done && !need_resched() &&
		 !signal_pending(current) && ktime_get_ns() < until);
	medge_seat_give_up(poller);
	return goes;
}

static int poll(void *arg)
{
	struct medge_device *dev = arg;
	struct medge_poller *poller = &dev->poller;
	u64 busy_at = ktime_get_ns();

	mutex_lock(&poller->seat);
	judge_later(poller);
	medge_seat_take(poller);
	while (!kthread_should_stop()) {
		u64 idle = (u64)READ_ONCE(poller->idle_us) * NSEC_PER_USEC;
		bool busy = look_at_all(dev);

		if (need_resched() &&
		    READ_ONCE(poller->mode) == MEDGE_POLL_AUTO) {
			medge_aside_step(poller);
			/* What came meanwhile is to be seen first. */
			busy = true;
		}
		if (!busy && ktime_get_ns() - busy_at <= idle) {
			medge_aside_yield(poller);
			continue;
		}
		if (!busy)
			sleep(dev);
		busy_at = ktime_get_ns();
		if (need_resched()) {
			medge_seat_leave(poller, true);
			cond_resched();
			medge_seat_return(poller);
		}
	}
	WRITE_ONCE(poller->by, NULL);
	mutex_unlock(&poller->seat);
	return 0;
}

/* ---- wake ---- */

void medge_poller_wake(struct medge_poller *poller)
{
	/* If the poller has just seen it, it is awake. */
	if (READ_ONCE(poller->traffic))
		return;
	WRITE_ONCE(poller->traffic, 1);
	/* Which has a barrier before the thread, or who stands in for it, is looked for. */
	if (wq_has_sleeper(&poller->wait) && !READ_ONCE(poller->borrow.is))
		wake_up(&poller->wait);
}

void medge_poller_frame(struct medge_poller *poller, u32 rail,
			const struct sk_buff *skb)
{
#ifdef CONFIG_NET_RX_BUSY_POLL
	/* Below that, the field is the number of the CPU that sent. */
	if (skb->napi_id >= MIN_NAPI_ID &&
	    READ_ONCE(poller->napi[rail]) != skb->napi_id)
		WRITE_ONCE(poller->napi[rail], skb->napi_id);
#endif
	medge_poller_wake(poller);
}

/* ---- who is polled ---- */

void medge_poller_add(struct medge_qp *qp)
{
	struct medge_poller *poller = &qp->dev->poller;

	/* Kernel consumers ring for themselves, where they may. */
	if (!qp->sq.hdr || qp->kpost.kernel)
		return;
	mutex_lock(&poller->lock);
	list_add_tail(&qp->polled.entry, &poller->qps);
	choose(poller, &qp->polled);
	mutex_unlock(&poller->lock);
}

void medge_poller_remove(struct medge_qp *qp)
{
	struct medge_poller *poller = &qp->dev->poller;

	mutex_lock(&poller->lock);
	list_del_init(&qp->polled.entry);
	list_del_init(&qp->polled.turn);
	/* Its frames still come, but the thread may be stopped from here on. */
	spin_lock_bh(&qp->lock);
	qp->polled.watched = false;
	spin_unlock_bh(&qp->lock);
	if (poller->trial.qp == qp)
		medge_trial_end(&poller->trial);
	mutex_unlock(&poller->lock);
}

/* Under poller->lock. Return: false: it goes, or the mode has just changed. */
static bool take(struct medge_poller *poller, struct medge_qp *qp, u32 rate)
{
	bool first = !poller->streaming;

	if (list_empty(&qp->polled.entry))
		return false;
	qp->polled.streams = true;
	choose(poller, &qp->polled);
	if (!qp->polled.streams)
		return false;
	WRITE_ONCE(poller->streaming, true);
	if (first && rate)
		medge_trial_begin(&poller->trial, qp, rate);
	return true;
}

void medge_poller_take(struct medge_qp *qp, int cpu, u32 rate)
{
	struct medge_poller *poller = &qp->dev->poller;

	mutex_lock(&poller->lock);
	if (!poller->streaming)
		WRITE_ONCE(poller->cpu, cpu);
	/* Who stands in does so for one. */
	if (!READ_ONCE(poller->borrow.is))
		take(poller, qp, rate);
	mutex_unlock(&poller->lock);
	medge_poller_wake(poller);
}

bool medge_poller_borrow(struct medge_qp *qp, u32 rate)
{
	struct medge_poller *poller = &qp->dev->poller;
	bool taken;

	mutex_lock(&poller->lock);
	/* Who asked to be polled is so by the thread, which needs no other then. */
	taken = !poller->streaming && list_empty(&poller->turns) &&
		take(poller, qp, rate);
	mutex_unlock(&poller->lock);
	if (taken) {
		judge_later(poller);
		WRITE_ONCE(poller->borrow.is, true);
	}
	return taken;
}

void medge_poller_return(struct medge_poller *poller)
{
	bool wanted;

	medge_poller_end_streams(poller);
	WRITE_ONCE(poller->borrow.is, false);
	/* What was to wake it has not, and who is taken from here on would think it has. */
	WRITE_ONCE(poller->traffic, 0);
	mutex_lock(&poller->lock);
	wanted = !list_empty(&poller->turns);
	mutex_unlock(&poller->lock);
	if (wanted)
		medge_poller_wake(poller);
}

static void set_mode(struct medge_poller *poller, enum medge_polling mode)
{
	struct medge_polled *polled;

	mutex_lock(&poller->lock);
	WRITE_ONCE(poller->mode, mode);
	if (mode != MEDGE_POLL_AUTO) {
		WRITE_ONCE(poller->streaming, false);
		medge_trial_end(&poller->trial);
	}
	list_for_each_entry(polled, &poller->qps, entry)
		choose(poller, polled);
	mutex_unlock(&poller->lock);
}

static int start(struct medge_device *dev)
{
	struct task_struct *task;

	if (dev->poller.task)
		return 0;
	task = kthread_run(poll, dev, "medge_poll/%s",
			   dev_name(&dev->ibdev.dev));
	if (IS_ERR(task))
		return PTR_ERR(task);
	WRITE_ONCE(dev->poller.task, task);
	return 0;
}

static void stop(struct medge_poller *poller)
{
	if (poller->task)
		kthread_stop(poller->task);
	medge_aside_end(&poller->aside);
	WRITE_ONCE(poller->task, NULL);
}

int medge_poller_set(struct medge_device *dev, enum medge_polling mode)
{
	struct medge_poller *poller = &dev->poller;
	int err = 0;

	mutex_lock(&poller->control);
	if (mode != MEDGE_POLL_OFF)
		err = start(dev);
	if (!err)
		set_mode(poller, mode);
	if (mode != MEDGE_POLL_AUTO)
		medge_borrow_end(dev);
	if (mode == MEDGE_POLL_OFF)
		stop(poller);
	mutex_unlock(&poller->control);
	return err;
}

int medge_poller_init(struct medge_device *dev)
{
	struct medge_poller *poller = &dev->poller;

	if (!alloc_cpumask_var(&poller->allowed, GFP_KERNEL))
		return -ENOMEM;
	mutex_init(&poller->control);
	mutex_init(&poller->seat);
	mutex_init(&poller->lock);
	medge_borrow_init(&poller->borrow);
	medge_aside_init(&poller->aside);
	INIT_LIST_HEAD(&poller->qps);
	INIT_LIST_HEAD(&poller->turns);
	poller->idle_us = MEDGE_POLL_IDLE_US;
	poller->cpu = -1;
	poller->stays = -1;
	init_waitqueue_head(&poller->wait);
	return 0;
}

void medge_poller_destroy(struct medge_device *dev)
{
	medge_borrow_end(dev);
	stop(&dev->poller);
	free_cpumask_var(dev->poller.allowed);
	WARN_ON(!list_empty(&dev->poller.qps));
}
