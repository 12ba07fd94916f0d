/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A poller that would make more of a stream, but finds no CPU that idles, borrows the
 * one of somebody who spins for completions, of whichever device: he comes into the
 * kernel and stands in for the poller's thread, until there is something for him, for
 * MEDGE_LEND_US at most. It is to a CQ's user what busy polling is to a socket's; who
 * has other things to look at than his CQ is kept from them for no longer.
 *
 * It is always on trial (trial.h): it goes on only if more is sent so.
 */
#ifndef MEDGE_BORROW_H
#define MEDGE_BORROW_H

#include <linux/list.h>
#include <linux/types.h>
#include <linux/workqueue.h>
#include <rdma/uverbs_ioctl.h>

struct medge_cq;
struct medge_device;
struct medge_qp;

enum {
	MEDGE_LEND_US = 50,		/* as net.core.busy_poll is to be, by its documentation */
	/* CQs that are known to be spun on; there are hardly more CPUs to lend. */
	MEDGE_LENDERS = 64,
	/*
	 * Who has sent so much himself (bytes per us), for so long, has none: two streams
	 * on two CPUs, each near its own, do better than with one of them on both.
	 */
	MEDGE_LENDER_SENDS = 32,
	MEDGE_LENDER_WATCH_US = 1000,
	/* Who posts rings when nobody has lent for so long, ... */
	MEDGE_BORROW_ALONE_US = 200,
	/* ... and always, after that. */
	MEDGE_BORROW_ABSENT_MS = 4,
};

/**
 * struct medge_borrow - of a poller
 * @is: its thread sleeps, and leaves all to who lends; changes under poller->seat
 * @rounds: that they did; and @seen: when that was looked at, @seen_at (ns)
 * @poster: who has no other CPU to lend than the one that sends already,
 * @own: and where he polls; only to compare with
 * @absent: looks whether they have stopped
 */
struct medge_borrow {
	bool is;
	u32 rounds;
	u32 seen;
	u64 seen_at;
	pid_t poster;
	const struct medge_cq *own;
	struct delayed_work absent;
};

/**
 * struct medge_lender - of a CQ: who spins on it
 * @entry: of those who may lend; empty: he has not been seen to spin
 * @sent: bytes of what he posted himself, and has completed, about; wraps
 * @sent_then: at @since (ns)
 * @sends: before that, it was so much that he needs his CPU himself; or it is not known yet
 */
struct medge_lender {
	struct list_head entry;
	u32 sent;
	u32 sent_then;
	u64 since;
	bool sends;
};

/* Where QPs complete at once, some may be lost. */
static inline void medge_lender_sent(struct medge_lender *lender, u32 bytes)
{
	WRITE_ONCE(lender->sent, READ_ONCE(lender->sent) + bytes);
}

void medge_borrow_init(struct medge_borrow *borrow);
/* From here on it borrows no more, unless it asks anew. May sleep. */
void medge_borrow_end(struct medge_device *dev);

/* Does somebody spin on another CQ than this? No lock: he may be about to. */
bool medge_borrow_may(const struct medge_cq *own);
/*
 * Whoever spins, but not on @own, is to lend to this QP's device, which sends @rate
 * bytes per us without; unless somebody lends already. May sleep.
 */
void medge_borrow_ask(struct medge_qp *qp, const struct medge_cq *own, u32 rate);

/* By which the user of a CQ says that he spins: see enum medge_lend. */
extern const struct uapi_definition medge_borrow_defs[];
/* The CQ goes. */
void medge_borrow_forget(struct medge_cq *cq);

#endif /* MEDGE_BORROW_H */
