/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The poller: a thread of a device that looks at the send rings of QPs, so that
 * who posts need not ring, and that takes frames from the rails, so that they
 * need not interrupt. It is awake while there is traffic, and for a time after
 * it; then it sleeps, and everything is as without it.
 */
#ifndef MEDGE_POLLER_H
#define MEDGE_POLLER_H

#include <linux/cpumask.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/skbuff.h>
#include <linux/wait.h>

#include "aside.h"
#include "borrow.h"
#include "help.h"
#include "transport/wire.h"
#include "trial.h"

struct medge_device;
struct medge_qp;

/* Whose QPs are polled. */
enum medge_polling {
	MEDGE_POLL_OFF,			/* nobody's */
	MEDGE_POLL_AUTO,		/* who asked, and streams while a CPU idles */
	MEDGE_POLL_ASKED,		/* who asked for it when it was created */
	MEDGE_POLL_ALL,			/* all that user space posts to */
	MEDGE_POLLINGS,
};

enum {
	MEDGE_POLL_IDLE_US = 1000,
	MEDGE_POLL_IDLE_US_MAX = 10 * 1000 * 1000,
	/* One that stopped, and goes on within so long, is still one. */
	MEDGE_STREAM_PAUSE_MS = 50,
};

/**
 * struct medge_poller - a device's poller
 * @control: serializes changes of @mode, with starts and stops of @task
 * @seat: held by who polls: the thread while it is awake, or who stands in for it. What is
 *        said to be "its own" is his
 * @by: who that is; NULL: nobody. Read without a lock, too
 * @borrow: who may stand in
 * @lock: guards what follows it; held for a round over all QPs
 * @qps: all that could be polled
 * @turns: those that are
 * @task: NULL: there is none; read without a lock, too
 * @idle_us: how long it stays awake for nothing; read without a lock
 * @here: before it gives up its CPU, it looks at what is left to it
 * @traffic: there was some, since it was last cleared
 * @aside: what it leaves to others
 * @streaming: it has taken a stream
 * @help: of who posts them, if they are many
 * @found: looks at rings that found new posts (where a CPU is lent: those posts) since
 *         @judged (jiffies), when it was last told whether there are streams still; both
 *         its own
 * @trial: of a stream that it has taken
 * @rings: doorbells of all that it could take
 * @cpu: where it should go when it wakes, or -1; an int, for xchg()
 * @stays: where it has gone, or -1; its own, as is what follows
 * @allowed: where it might run before
 * @napi: by rail: the NAPI instance that its frames came from last; 0: none
 */
struct medge_poller {
	struct mutex control;
	struct task_struct *task;

	struct mutex seat;
	struct task_struct *by;
	struct medge_borrow borrow;

	struct mutex lock;
	enum medge_polling mode;
	struct list_head qps;
	struct list_head turns;

	u32 idle_us;
	bool here;
	u32 traffic;			/* or 0; a word, for xchg() */
	struct medge_aside aside;
	bool streaming;
	struct medge_help help;
	u32 found;
	unsigned long judged;
	struct medge_trial trial;
	unsigned long rings;
	int cpu;
	int stays;
	cpumask_var_t allowed;
	wait_queue_head_t wait;
	u32 napi[MEDGE_MAX_RAILS];
};

/**
 * struct medge_polled - what the poller knows of a QP
 * @entry: in poller->qps; empty: it is not
 * @turn: in poller->turns, while @wanted
 * @asked: MEDGE_CREATE_QP_POLLED
 * @streams: it was seen to be a stream, and the poller has not slept since
 * @wanted: the device's mode says so; changes under poller->lock
 * @watched: the poller is awake, and looks: who posts need not ring. Changes
 *           under both poller->lock and qp->lock
 * @left: a softirq has left the sending to the poller, or who helped was at it
 * @alone_at: ns: who stood in for the poller is not back by then; or 0. Under qp->lock
 * @prod: the ring's, when the poller looked last; its own
 * @told: how far the kernel had taken what is posted, at the last doorbell
 */
struct medge_polled {
	struct list_head entry;
	struct list_head turn;
	bool asked;
	bool streams;
	bool wanted;
	bool watched;
	bool left;
	u64 alone_at;
	u32 prod;
	u32 told;
};

const char *medge_polling_name(u32 mode);

/* Return: 0 or -ENOMEM. */
int medge_poller_init(struct medge_device *dev);
/* No QP is left. */
void medge_poller_destroy(struct medge_device *dev);
/* Starts or stops the thread. May sleep. */
int medge_poller_set(struct medge_device *dev, enum medge_polling mode);

/* A QP is there, and will be gone. */
void medge_poller_add(struct medge_qp *qp);
void medge_poller_remove(struct medge_qp *qp);

/* Does this run in who polls, and in no softirq that interrupted it? */
static inline bool medge_poller_is_at_it(const struct medge_poller *poller)
{
	return READ_ONCE(poller->by) == current && !in_serving_softirq();
}

/* ... and is that somebody who lends his CPU? */
static inline bool medge_poller_is_lent(const struct medge_poller *poller)
{
	return READ_ONCE(poller->borrow.is) && medge_poller_is_at_it(poller);
}

/*
 * Its posts make a stream: poll it, on @cpu if this is the first. If @rate is not 0, that
 * is to be tried: so many bytes per us are sent without it. May sleep.
 */
void medge_poller_take(struct medge_qp *qp, int cpu, u32 rate);

/*
 * The same for who spins: the thread is to sleep, and others to stand in for it. Under
 * poller->seat. May sleep. Return: the stream is taken.
 */
bool medge_poller_borrow(struct medge_qp *qp, u32 rate);
/* No more: the thread polls whom it finds. Under poller->seat. May sleep. */
void medge_poller_return(struct medge_poller *poller);

/*
 * Poll in place of the thread: until a completion is added to @cq, @until (ns), or
 * something else wants this task or its CPU. Under poller->seat. Return: there are
 * streams still.
 */
bool medge_poller_stand_in(struct medge_device *dev, const struct medge_cq *cq,
			   u64 until);

/* Look at the rings of all that are polled. May sleep. Return: there was something. */
bool medge_poller_look(struct medge_poller *poller);

/* Who is polled rings until he is looked at again. May sleep. */
void medge_poller_unwatch_all(struct medge_poller *poller);

/* There are no streams any more. By who polls. May sleep. */
void medge_poller_end_streams(struct medge_poller *poller);

/* May who posts help the poller with it? Under qp->lock, as what follows. */
bool medge_poller_is_helped(const struct medge_qp *qp);
/*
 * What who posts is to see while he is being served: nothing, or, of a stream that
 * the poller watches, when to send beside it (second.h), or in its place (help.h).
 */
u32 medge_poller_doorbell(const struct medge_qp *qp);

/* Of a QP that is wanted: the poller should be awake. Any context. */
void medge_poller_wake(struct medge_poller *poller);
/* The same, when a frame has come from @rail. In softirq. */
void medge_poller_frame(struct medge_poller *poller, u32 rail,
			const struct sk_buff *skb);

#endif /* MEDGE_POLLER_H */
