/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What comes to a QP. Frames that come one after the other, as those of a bundle do, are
 * received in one go: its lock is taken, the time read, its user told and what may be
 * sent looked for once for all of them.
 */
#ifndef MEDGE_RECEIVE_H
#define MEDGE_RECEIVE_H

#include <linux/skbuff.h>

#include "rail.h"

struct medge_frame;
struct medge_qp;

/**
 * struct medge_arrivals - frames that come one after the other on a rail
 * @rail: the rail
 * @qp: whose they are, held and locked; NULL: nobody's yet
 * @heard: it has taken one
 * @used: to be freed without the lock
 */
struct medge_arrivals {
	struct medge_rail *rail;
	struct medge_qp *qp;
	bool heard;
	struct sk_buff_head used;
};

static inline void medge_arrivals_init(struct medge_arrivals *in,
				       struct medge_rail *rail)
{
	in->rail = rail;
	in->qp = NULL;
}

/*
 * A frame, skb->data at the medge header. Return: it is one, and decoded; false: it is
 * dropped, and counted. BHs off.
 */
bool medge_receive_decode(struct medge_device *dev, struct sk_buff *skb,
			  struct medge_frame *f);
/*
 * What was decoded, or several of that joined, goes where it belongs; consumes the skb.
 * BHs off, RCU read side; and so until medge_arrivals_end(), which tells the last one's
 * QP that no more come.
 */
void medge_receive_decoded(struct medge_arrivals *in, struct sk_buff *skb,
			   const struct medge_frame *f,
			   const struct medge_rx_l2 *l2);
void medge_arrivals_end_qp(struct medge_arrivals *in);

static inline void medge_arrivals_end(struct medge_arrivals *in)
{
	if (in->qp)
		medge_arrivals_end_qp(in);
}

/* All of this, of one frame. */
void medge_receive(struct medge_rail *rail, struct sk_buff *skb,
		   const struct medge_rx_l2 *l2);

#endif /* MEDGE_RECEIVE_H */
