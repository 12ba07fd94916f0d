// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Turns: what is posted is built under the lock and sent without it. */
#include "batch.h"
#include "qp.h"
#include "turns.h"

enum {
	/* Goes of one turn; in softirq and out of it. */
	GOES_SOFTIRQ = 4,
	GOES = 64,
};

void medge_turns_unlock(struct medge_qp *qp, const struct medge_turns *turns)
	__releases(&qp->lock)
{
	u32 goes = in_serving_softirq() ? GOES_SOFTIRQ : GOES;
	struct sk_buff_head out;

	__skb_queue_head_init(&out);
	while (!qp->sending && qp->sq.hdr) {
		turns->fill(qp, &out);
		medge_ring_show_taken(&qp->sq);
		if (skb_queue_empty(&out))
			break;
		qp->sending = true;
		/* BHs stay off: nobody preempts who is sending. */
		spin_unlock(&qp->lock);
		if (turns->hear)
			turns->hear(qp, &out);
		medge_batch_xmit(qp->dev, &out);
		/* Here the frames may be received, if the peer is near. */
		local_bh_enable();
		spin_lock_bh(&qp->lock);
		qp->sending = false;
		qp->now = ktime_get_ns();
		if (!--goes) {
			tasklet_schedule(&qp->kpost.bell);
			break;
		}
	}
	spin_unlock_bh(&qp->lock);
}
