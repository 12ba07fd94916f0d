// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Who spins for completions stands in for a poller that has no CPU. */
#include <linux/ktime.h>
#include <linux/sched.h>
#include <rdma/medge-abi.h>
#include <rdma/uverbs_ioctl.h>

#include "borrow.h"
#include "cq.h"
#include "device.h"
#include "poller.h"
#include "qp.h"
#include "rate.h"
#include "stats.h"

#define UVERBS_MODULE_NAME medge
#include <rdma/uverbs_named_ioctl.h>

/* Guards what follows, and is held by who lends: one at a time, to one device at a time. */
static DEFINE_MUTEX(lock);
static LIST_HEAD(lenders);
static u32 nlenders;
static struct medge_device *borrower;

static void tell(struct medge_cq *cq, enum medge_lend word)
{
	/* The ring may be about to be exchanged. */
	spin_lock_bh(&cq->lock);
	WRITE_ONCE(cq->ring.hdr->lend, word);
	spin_unlock_bh(&cq->lock);
}

/* Under lock. */
static void watch_lender(struct medge_lender *lender, bool sends)
{
	lender->since = ktime_get_ns();
	lender->sent_then = READ_ONCE(lender->sent);
	lender->sends = sends;
}

/* Under lock. */
static void tell_all(enum medge_lend word)
{
	struct medge_cq *cq;

	list_for_each_entry(cq, &lenders, lender.entry) {
		watch_lender(&cq->lender, true);
		tell(cq, word);
	}
}

/* Under lock. */
static void end(void)
{
	struct medge_poller *poller = &borrower->poller;

	borrower = NULL;
	tell_all(MEDGE_LEND_NOTED);
	mutex_lock(&poller->seat);
	medge_poller_return(poller);
	mutex_unlock(&poller->seat);
}

static void watch_absent(struct medge_borrow *borrow)
{
	queue_delayed_work(system_dfl_wq, &borrow->absent,
			   msecs_to_jiffies(MEDGE_BORROW_ABSENT_MS));
}

static void look_for_absent(struct work_struct *work)
{
	struct medge_borrow *borrow = container_of(to_delayed_work(work),
						   struct medge_borrow, absent);
	struct medge_poller *poller = container_of(borrow, struct medge_poller,
						   borrow);
	u32 rounds = READ_ONCE(borrow->rounds);
	u64 now = ktime_get_ns();

	if (!READ_ONCE(borrow->is))
		return;
	if (rounds != borrow->seen) {
		borrow->seen = rounds;
		borrow->seen_at = now;
	}
	/* By the clock: jiffies that are late come all at once. */
	if (now - borrow->seen_at < MEDGE_BORROW_ABSENT_MS * NSEC_PER_MSEC) {
		watch_absent(borrow);
		return;
	}
	/* Who lends may be kept from it as he does. */
	medge_poller_unwatch_all(poller);
	if (!mutex_trylock(&lock)) {
		watch_absent(borrow);
		return;
	}
	if (borrower && poller == &borrower->poller)
		end();
	mutex_unlock(&lock);
}

void medge_borrow_init(struct medge_borrow *borrow)
{
	INIT_DELAYED_WORK(&borrow->absent, look_for_absent);
}

void medge_borrow_end(struct medge_device *dev)
{
	mutex_lock(&lock);
	if (borrower == dev)
		end();
	mutex_unlock(&lock);
	cancel_delayed_work_sync(&dev->poller.borrow.absent);
}

/* ---- who borrows ---- */

bool medge_borrow_may(const struct medge_cq *own)
{
	return READ_ONCE(nlenders) > !list_empty_careful(&own->lender.entry) &&
	       !READ_ONCE(borrower);
}

void medge_borrow_ask(struct medge_qp *qp, const struct medge_cq *own, u32 rate)
{
	struct medge_poller *poller = &qp->dev->poller;
	struct medge_borrow *borrow = &poller->borrow;
	bool asked = false;

	if (!mutex_trylock(&lock))
		return;
	/* Its thread is not awake. */
	if (!borrower && mutex_trylock(&poller->seat)) {
		asked = medge_poller_borrow(qp, rate);
		mutex_unlock(&poller->seat);
	}
	if (asked) {
		this_cpu_inc(qp->dev->stats->poller_tried);
		borrower = qp->dev;
		borrow->poster = task_pid_nr(current);
		borrow->seen = borrow->rounds;
		borrow->seen_at = ktime_get_ns();
		borrow->own = own;
		tell_all(MEDGE_LEND_WANTED);
		watch_absent(borrow);
	}
	mutex_unlock(&lock);
}

/* ---- who lends ---- */

/*
 * He holds what the users of another QP wait for. Whom the scheduler puts behind all
 * others would have them wait for those, too.
 */
static bool runs_as_most(void)
{
	return current->policy == SCHED_NORMAL && task_nice(current) <= 0;
}

static bool is_empty(struct medge_cq *cq)
{
	u32 cons, unread;
	unsigned long irq;

	/* To enable BHs would be to run softirqs, which bring completions. */
	spin_lock_irqsave(&cq->lock, irq);
	unread = medge_cq_unread(cq, &cons);
	spin_unlock_irqrestore(&cq->lock, irq);
	return !unread;
}

static void note(struct medge_cq *cq)
{
	mutex_lock(&lock);
	if (list_empty(&cq->lender.entry) && nlenders < MEDGE_LENDERS) {
		list_add_tail(&cq->lender.entry, &lenders);
		WRITE_ONCE(nlenders, nlenders + 1);
	}
	tell(cq, MEDGE_LEND_NOTED);
	mutex_unlock(&lock);
}

/* Does he send much himself? Under lock. */
static bool sends(struct medge_lender *lender)
{
	u64 ns = ktime_get_ns() - lender->since;
	u32 sent = READ_ONCE(lender->sent) - lender->sent_then;

	if (ns >= MEDGE_LENDER_WATCH_US * NSEC_PER_USEC)
		watch_lender(lender, medge_rate(sent, ns) >= MEDGE_LENDER_SENDS);
	return lender->sends;
}

/* Under lock. */
static bool may_lend(const struct medge_borrow *borrow, struct medge_cq *cq)
{
	return cq != borrow->own &&
	       task_pid_nr(current) != borrow->poster && runs_as_most() &&
	       !sends(&cq->lender);
}

/* Under lock. */
static void lend(struct medge_device *dev, struct medge_cq *cq)
{
	struct medge_poller *poller = &dev->poller;
	bool goes_on;

	if (!is_empty(cq) || !mutex_trylock(&poller->seat))
		return;
	this_cpu_inc(dev->stats->poller_lent);
	goes_on = medge_poller_stand_in(dev, cq, ktime_get_ns() +
					MEDGE_LEND_US * NSEC_PER_USEC);
	mutex_unlock(&poller->seat);
	if (!goes_on)
		end();
}

/* Return: 0, or -EBUSY: somebody else lends, or nobody is to, or not he. */
static int UVERBS_HANDLER(MEDGE_METHOD_CQ_LEND)(struct uverbs_attr_bundle *attrs)
{
	struct ib_cq *ibcq = uverbs_attr_get_obj(attrs, MEDGE_ATTR_CQ_LEND_HANDLE);
	struct medge_cq *cq;
	bool may;

	if (IS_ERR(ibcq))
		return PTR_ERR(ibcq);
	cq = to_medge_cq(ibcq);
	if (list_empty_careful(&cq->lender.entry)) {
		note(cq);
		return 0;
	}
	if (!mutex_trylock(&lock))
		return -EBUSY;
	may = borrower && may_lend(&borrower->poller.borrow, cq);
	if (may)
		lend(borrower, cq);
	mutex_unlock(&lock);
	return may ? 0 : -EBUSY;
}

void medge_borrow_forget(struct medge_cq *cq)
{
	/* None of its methods is being called any more. */
	if (list_empty(&cq->lender.entry))
		return;
	mutex_lock(&lock);
	list_del(&cq->lender.entry);
	WRITE_ONCE(nlenders, nlenders - 1);
	mutex_unlock(&lock);
}

DECLARE_UVERBS_NAMED_METHOD(MEDGE_METHOD_CQ_LEND,
			    UVERBS_ATTR_IDR(MEDGE_ATTR_CQ_LEND_HANDLE,
					    UVERBS_OBJECT_CQ,
					    UVERBS_ACCESS_READ, UA_MANDATORY));

ADD_UVERBS_METHODS(medge_cq, UVERBS_OBJECT_CQ,
		   &UVERBS_METHOD(MEDGE_METHOD_CQ_LEND));

const struct uapi_definition medge_borrow_defs[] = {
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_CQ, &medge_cq),
	{},
};
