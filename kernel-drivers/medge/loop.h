/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Loopback: what goes to a device of this host does not go out. */
#ifndef MEDGE_LOOP_H
#define MEDGE_LOOP_H

#include <linux/skbuff.h>

#include "rail.h"

struct medge_device;

/* How a device's QPs reach those of this host. */
enum medge_loopback {
	MEDGE_LOOPBACK_COPY,	/* what is sent is copied to where it belongs, at once */
	MEDGE_LOOPBACK_FRAMES,	/* through the network's queues, as far as they lead there */
	MEDGE_LOOPBACKS,
};

const char *medge_loopback_name(u32 loopback);

/* The device has rails, and may be found; it has none any more. RTNL held. */
void medge_loop_add(struct medge_device *dev);
void medge_loop_remove(struct medge_device *dev);

/* The rail of this host that has what is sent from @rail to @to; NULL: none. RCU read side. */
struct medge_rail *medge_loop_find(struct medge_rail *rail,
				   const struct medge_l2 *to);

/*
 * Give what @from sends to @to, at @rail, to its receiver, here and now. Return: false if that
 * must not be, and @skb is as it was. RCU read side, BHs off, not under a QP's or a node's lock.
 */
bool medge_loop_receive(const struct medge_device *from, struct medge_rail *rail,
			const struct medge_l2 *to, struct sk_buff *skb);

/* Is this within such a call? Who answers is brief, and goes on later. */
bool medge_loop_busy(void);

#endif /* MEDGE_LOOP_H */
