// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Who polls, and what softirqs leave to him. */
#include <linux/preempt.h>
#include <linux/sched.h>

#include "device.h"
#include "poller.h"
#include "qp.h"
#include "seat.h"

/* ---- to sit there ---- */

void medge_seat_take(struct medge_poller *poller)
{
	WRITE_ONCE(poller->by, current);
	medge_seat_return(poller);
}

void medge_seat_leave(struct medge_poller *poller, bool seen)
{
	WRITE_ONCE(poller->here, false);
	/* Pairs with the barrier in hand_over(). */
	smp_mb();
	if (seen || READ_ONCE(poller->traffic))
		medge_poller_look(poller);
}

void medge_seat_return(struct medge_poller *poller)
{
	WRITE_ONCE(poller->here, true);
}

/* ---- what others leave to who sits there ---- */

/*
 * Does this softirq run on its CPU, and it as soon as that ends? The softirq has
 * interrupted it, or is in a thread of that CPU's own: ksoftirqd, which goes on only
 * while there is something to do.
 */
static bool is_next(const struct task_struct *task)
{
	return current == task ||
	       (current->flags & PF_KTHREAD &&
		current->flags & PF_NO_SETAFFINITY &&
		task_cpu(task) == raw_smp_processor_id());
}

/* Does it run, and look again before it does not? */
static bool is_there(const struct medge_poller *poller,
		     const struct task_struct *task)
{
#ifdef CONFIG_SMP
	return READ_ONCE(poller->here) && READ_ONCE(task->on_cpu);
#else
	return false;
#endif
}

void medge_seat_hand(struct medge_qp *qp)
{
	WRITE_ONCE(qp->polled.left, true);
	WRITE_ONCE(qp->dev->poller.traffic, 1);
}

/* Return: @task, if any, is there, and looks at it; else it may have gone. */
static bool hand_over(struct medge_qp *qp, const struct task_struct *task)
{
	const struct medge_poller *poller = &qp->dev->poller;

	if (!task || !is_there(poller, task))
		return false;
	medge_seat_hand(qp);
	/* Pairs with the barrier in medge_seat_leave(): it sees that, or we that it is not here. */
	smp_mb();
	return READ_ONCE(poller->here);
}

bool medge_seat_sends(struct medge_qp *qp)
{
	const struct task_struct *task;

	if (!qp->conn || !in_serving_softirq() ||
	    medge_conn_next_op(qp->conn) == medge_conn_oldest_op(qp->conn))
		return false;
	/* Who stood in may have gone, and be no task any more; but not while softirqs run. */
	task = READ_ONCE(qp->dev->poller.by);
	if (task ? is_next(task) : qp->polled.alone_at > qp->now) {
		medge_seat_hand(qp);
		return true;
	}
	return hand_over(qp, task);
}

bool medge_seat_needs_no_bell(struct medge_qp *qp)
{
	if (!qp->polled.watched || qp->state != IB_QPS_RTS ||
	    medge_poller_doorbell(qp) != MEDGE_DOORBELL_NONE)
		return false;
	/* As above: BHs are off. */
	return hand_over(qp, READ_ONCE(qp->dev->poller.by));
}

bool medge_seat_is_mine(const struct medge_qp *qp)
{
	const struct medge_poller *poller = &qp->dev->poller;

	/* What a softirq that interrupts it leaves is medge_seat_sends()'s to say. */
	return qp->polled.watched && !in_serving_softirq() &&
	       current == READ_ONCE(poller->by) && READ_ONCE(poller->here);
}

/* ---- when nobody does ---- */

/* At qp->now, under qp->lock. */
static void look_whether_alone(struct medge_qp *qp)
{
	qp->polled.alone_at = qp->now + MEDGE_BORROW_ALONE_US * NSEC_PER_USEC;
	medge_timer_set(qp, qp->polled.alone_at);
}

/* For a moment, it is thought; if not, who posts is to ring. Under poller->lock. */
static void leave_alone(struct medge_qp *qp)
{
	spin_lock_bh(&qp->lock);
	qp->now = ktime_get_ns();
	if (qp->polled.watched)
		look_whether_alone(qp);
	spin_unlock_bh(&qp->lock);
}

void medge_seat_is_alone(struct medge_qp *qp)
{
	struct medge_poller *poller = &qp->dev->poller;

	qp->polled.alone_at = 0;
	if (READ_ONCE(poller->by)) {
		/* Somebody has come, or has not quite gone; or it is the thread. */
		if (READ_ONCE(poller->borrow.is))
			look_whether_alone(qp);
		return;
	}
	WRITE_ONCE(qp->sq.hdr->need_doorbell, MEDGE_DOORBELL_NOW);
	/* Pairs with the barrier between the user's prod and his look at this. */
	smp_mb();
}

void medge_seat_give_up(struct medge_poller *poller)
{
	struct medge_polled *polled;

	medge_seat_leave(poller, true);
	mutex_lock(&poller->lock);
	list_for_each_entry(polled, &poller->turns, turn)
		leave_alone(container_of(polled, struct medge_qp, polled));
	mutex_unlock(&poller->lock);
	WRITE_ONCE(poller->by, NULL);
}
