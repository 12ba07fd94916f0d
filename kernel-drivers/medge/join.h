/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Frames of one op come one after the other: those that a port had cut out of a
 * superframe, and superframes. Here they become one before their connection sees
 * them, which then takes its lock, looks the memory up and tells the time once for
 * all of them: what a driver's GRO does for IP, for any port, and where its
 * interrupts end. Where two CPUs receive for one connection, each has its lock and
 * its state, which come from the other, for so much longer.
 */
#ifndef MEDGE_JOIN_H
#define MEDGE_JOIN_H

#include <linux/interrupt.h>
#include <linux/spinlock.h>

#include "qp.h"

struct medge_arrivals;
struct medge_rail;

/**
 * struct medge_joined - frames on their way to their connection, in one
 * @skb: NULL: there are none
 * @frame: what they are as a whole
 * @l2: how they came
 */
struct medge_joined {
	struct sk_buff *skb;
	struct medge_frame frame;
	struct medge_rx_l2 l2;
};

/**
 * struct medge_join - frames of one rail that came on one CPU
 * @lock: nobody else's but ours, where softirqs are not preempted
 * @wait: those that others may be joined to
 * @last: of their list of skbs; NULL: it has none
 * @next_len: of the frame that comes next if it says nothing new; 0: it has to
 * @next: its header
 * @rail: where from
 * @end: when this softirq has no more frames: they go on as they are
 */
struct medge_join {
	spinlock_t lock;
	struct medge_joined wait;
	struct sk_buff *last;
	u32 next_len;
	u8 next[MEDGE_HDR_LEN] __aligned(8);
	struct medge_rail *rail;
	struct tasklet_struct end;
};

/* 0, or -ENOMEM. */
int medge_join_init(struct medge_rail *rail);
/* No frame comes any more; those that wait go on. May sleep. */
void medge_join_destroy(struct medge_rail *rail);

/*
 * A frame, skb->data at the medge header; consumes the skb. What need not wait goes on
 * to medge_receive_decoded(), whose context this needs, in softirq.
 */
void medge_join_receive(struct medge_arrivals *in, struct sk_buff *skb,
			const struct medge_rx_l2 *l2);

#endif /* MEDGE_JOIN_H */
