// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Look at rings and rails instead of being told. */
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <net/busy_poll.h>

#include "device.h"
#include "poller.h"
#include "qp.h"
#include "stats.h"

static const char * const names[MEDGE_POLLINGS] = {
	[MEDGE_POLL_OFF] = "off",
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
	WRITE_ONCE(qp->sq.hdr->need_doorbell, 1);
	spin_unlock_bh(&qp->lock);
	/* Pairs with the barrier between the user's prod and his look at this. */
	smp_mb();
	if (medge_qp_hold(qp)) {
		medge_send_look(qp);
		medge_qp_put(qp);
	}
}

/*
 * Take what is new in the ring, if there is something, as a doorbell would.
 * What is not taken then, for want of room, will be when there is room: no
 * need to look again before there is more. Return: there was something.
 */
static bool look(struct medge_qp *qp)
{
	if (READ_ONCE(qp->sq.hdr->prod) == READ_ONCE(qp->polled.prod) &&
	    qp->polled.watched)
		return false;
	/* It may be being reset, which forgets the ring. */
	if (!medge_qp_hold(qp))
		return false;
	/* Read while it cannot be: what stands there will be looked at. */
	WRITE_ONCE(qp->polled.prod, READ_ONCE(qp->sq.hdr->prod));
	if (qp->polled.watched)
		medge_send_look(qp);
	else
		watch(qp);
	medge_qp_put(qp);
	return true;
}

/* ---- rounds ---- */

static bool look_at_rings(struct medge_poller *poller)
{
	struct medge_polled *polled;
	bool found = false;

	mutex_lock(&poller->lock);
	list_for_each_entry(polled, &poller->qps, entry) {
		if (!polled->wanted)
			continue;
		found |= look(container_of(polled, struct medge_qp, polled));
	}
	mutex_unlock(&poller->lock);
	return found;
}

/*
 * Frames that have come, in this thread instead of a softirq. Only rails with
 * NAPI instances of their own can be asked: a veth is such once it has GRO.
 */
static void look_at_rails(struct medge_poller *poller)
{
#ifdef CONFIG_NET_RX_BUSY_POLL
	u32 i;

	for (i = 0; i < MEDGE_MAX_RAILS; i++) {
		u32 napi = READ_ONCE(poller->napi[i]);

		if (napi)
			napi_busy_loop(napi, NULL, NULL, true, BUSY_POLL_BUDGET);
	}
#endif
}

static void sleep(struct medge_device *dev)
{
	struct medge_poller *poller = &dev->poller;
	struct medge_polled *polled;

	mutex_lock(&poller->lock);
	list_for_each_entry(polled, &poller->qps, entry)
		unwatch(container_of(polled, struct medge_qp, polled));
	mutex_unlock(&poller->lock);

	wait_event_idle(poller->wait,
			READ_ONCE(poller->traffic) || kthread_should_stop());
	local_bh_disable();
	medge_count(dev, poller_wakes);
	local_bh_enable();
}

static int poll(void *arg)
{
	struct medge_device *dev = arg;
	struct medge_poller *poller = &dev->poller;
	u64 busy_at = ktime_get_ns();

	while (!kthread_should_stop()) {
		u64 idle = (u64)READ_ONCE(poller->idle_us) * NSEC_PER_USEC;
		bool busy = look_at_rings(poller);

		look_at_rails(poller);
		busy |= xchg(&poller->traffic, 0);
		if (!busy && ktime_get_ns() - busy_at <= idle) {
			/* Who shares the CPU may be who posts, or polls his CQ. */
			yield();
			continue;
		}
		if (!busy)
			sleep(dev);
		busy_at = ktime_get_ns();
		cond_resched();
	}
	return 0;
}

/* ---- wake ---- */

void medge_poller_wake(struct medge_poller *poller)
{
	/* If the poller has just seen it, it is awake. */
	if (READ_ONCE(poller->traffic))
		return;
	WRITE_ONCE(poller->traffic, 1);
	if (wq_has_sleeper(&poller->wait))
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

/* Under poller->lock. */
static void choose(struct medge_poller *poller, struct medge_polled *polled)
{
	bool wanted = poller->mode == MEDGE_POLL_ALL ||
		      (poller->mode == MEDGE_POLL_ASKED && polled->asked);

	WRITE_ONCE(polled->wanted, wanted);
	if (!wanted)
		unwatch(container_of(polled, struct medge_qp, polled));
}

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
	mutex_unlock(&poller->lock);
}

static void set_mode(struct medge_poller *poller, enum medge_polling mode)
{
	struct medge_polled *polled;

	mutex_lock(&poller->lock);
	poller->mode = mode;
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
	if (mode == MEDGE_POLL_OFF)
		stop(poller);
	mutex_unlock(&poller->control);
	return err;
}

void medge_poller_init(struct medge_device *dev)
{
	struct medge_poller *poller = &dev->poller;

	mutex_init(&poller->control);
	mutex_init(&poller->lock);
	INIT_LIST_HEAD(&poller->qps);
	poller->idle_us = MEDGE_POLL_IDLE_US;
	init_waitqueue_head(&poller->wait);
}

void medge_poller_destroy(struct medge_device *dev)
{
	stop(&dev->poller);
	WARN_ON(!list_empty(&dev->poller.qps));
}
