/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* How QPs send whose frames nobody acknowledges: UC, UD and QP 1. */
#ifndef MEDGE_TURNS_H
#define MEDGE_TURNS_H

struct medge_qp;
struct sk_buff_head;

enum {
	/* WQEs or frames built in one go, under the lock. */
	MEDGE_TURN_BATCH = 16,
};

/**
 * struct medge_turns - what differs between types of QPs
 * @fill: take what is posted and put its frames into @out, as medge_batch_xmit()
 *        takes them; under qp->lock
 * @hear: what of @out QPs of this device are to hear; BHs are off. NULL: nothing
 */
struct medge_turns {
	void (*fill)(struct medge_qp *qp, struct sk_buff_head *out);
	void (*hear)(struct medge_qp *qp, struct sk_buff_head *out);
};

/*
 * Send what the user has posted; ends a use of the QP. Under qp->lock, which
 * it gives up. Nobody else sends for this QP until it is over, so its frames
 * stay in order.
 */
void medge_turns_unlock(struct medge_qp *qp, const struct medge_turns *turns)
	__releases(&qp->lock);

#endif /* MEDGE_TURNS_H */
