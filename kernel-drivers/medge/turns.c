// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Turns: what is posted is built under the lock and sent without it. */
#include "batch.h"
#include "late.h"
#include "qp.h"
#include "turns.h"

enum {
	/* Goes of one turn; in softirq and out of it. */
	GOES_SOFTIRQ = 4,
	GOES = 64,
};

/*
 * All is sent that was there when @prod was read. He rings for what follows, late or
 * not. Return: false if he has posted more meanwhile.
 */
static bool go_idle(struct medge_qp *qp, u32 prod)
{
	struct medge_ring_hdr *hdr = qp->sq.hdr;
	u32 need;

	/* The poller looks again when there is more. */
	if (qp->polled.watched || qp->state != IB_QPS_RTS)
		return true;
	need = medge_late_doorbell(qp);
	/* He rings already. */
	if (need == MEDGE_DOORBELL_NOW &&
	    READ_ONCE(hdr->need_doorbell) == MEDGE_DOORBELL_NOW)
		return true;
	WRITE_ONCE(hdr->need_doorbell, need);
	/* Pairs with the barrier between the user's prod and his look at this. */
	smp_mb();
	return READ_ONCE(hdr->prod) == prod;
}

void medge_turns_unlock(struct medge_qp *qp, const struct medge_turns *turns)
	__releases(&qp->lock)
{
	u32 goes = in_serving_softirq() ? GOES_SOFTIRQ : GOES;
	struct sk_buff_head out;

	__skb_queue_head_init(&out);
	while (!qp->sending && qp->sq.hdr) {
		u32 prod = READ_ONCE(qp->sq.hdr->prod);

		turns->fill(qp, &out);
		medge_ring_show_taken(&qp->sq);
		if (skb_queue_empty(&out) && go_idle(qp, prod))
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
