/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Late doorbells: where the kernel allows it, who posts while there are completions
 * to read does not ring. When they are read, one doorbell tells of all that he has
 * posted; it is rung by a post that finds nothing to be read, or a poll.
 */
#include "medge.h"

enum {
	/* So many posts are worth a doorbell, whoever reads what. */
	UNTOLD_MAX = 32,
};

bool medge_late_defer(struct medge_cq *cq, struct medge_qp *qp)
{
	uint32_t taken = medge_ring_load(&qp->sq.ring.hdr->taken);

	if (qp->sq.ring.prod - taken >= UNTOLD_MAX)
		return false;
	/* He may be between start_poll and end_poll. */
	if (!medge_try_lock(&cq->lock))
		return false;
	if (!qp->late) {
		qp->late = true;
		qp->late_next = cq->late;
		cq->late = qp;
	}
	medge_unlock(&cq->lock);
	return true;
}

/* Those that have been told of, since, are none. Return: there is one. */
static bool pop(struct medge_cq *cq, uint32_t *qp_handle)
{
	bool found = false;

	medge_lock(&cq->lock);
	while (cq->late && !found) {
		struct medge_qp *qp = cq->late;
		uint32_t taken;

		cq->late = qp->late_next;
		qp->late = false;
		found = medge_ring_is_untaken(&qp->sq.ring, &taken);
		*qp_handle = qp->vqp.qp.handle;
	}
	medge_unlock(&cq->lock);
	return found;
}

void medge_late_ring(struct medge_cq *cq)
{
	uint32_t qp_handle;

	/* That the QP, or the device, has gone is for others to say. */
	while (pop(cq, &qp_handle))
		medge_send_ring(cq->vcq.cq.context, qp_handle);
}

void medge_late_forget(struct medge_cq *cq, const struct medge_qp *qp)
{
	struct medge_qp **at;

	medge_lock(&cq->lock);
	for (at = &cq->late; *at && *at != qp; at = &(*at)->late_next)
		;
	if (*at)
		*at = qp->late_next;
	medge_unlock(&cq->lock);
}
