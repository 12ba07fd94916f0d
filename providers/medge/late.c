/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Late doorbells: where the kernel allows it, who posts need not ring at once. One
 * doorbell tells of all that he has posted, when it is many, or when he polls in
 * vain, be it for sends or for receives: then he waits for something.
 */
#include "medge.h"

static struct medge_cq *cq_of(const struct medge_late *late)
{
	const struct ibv_qp *ibqp = &late->qp->vqp.qp;
	struct ibv_cq *ibcq = late == &late->qp->late[MEDGE_LATE_SENDS] ?
			      ibqp->send_cq : ibqp->recv_cq;

	return ibcq ? to_medge_cq(ibcq) : NULL;
}

void medge_late_init(struct medge_qp *qp)
{
	int i;

	for (i = 0; i < MEDGE_LATES; i++)
		qp->late[i].qp = qp;
}

/* Return: it is in its CQ's list. */
static bool note(struct medge_late *late)
{
	struct medge_cq *cq = cq_of(late);

	/* He may be between start_poll and end_poll. */
	if (!cq || !medge_try_lock(&cq->lock))
		return false;
	if (!late->noted) {
		late->noted = true;
		late->next = cq->late;
		cq->late = late;
	}
	medge_unlock(&cq->lock);
	return true;
}

bool medge_late_defer(struct medge_qp *qp, uint32_t posts)
{
	const struct medge_ring *ring = &qp->sq.ring;
	const struct ibv_qp *ibqp = &qp->vqp.qp;

	if (ring->prod - medge_ring_load(&ring->hdr->taken) >= posts)
		return false;
	if (!note(&qp->late[MEDGE_LATE_SENDS]))
		return false;
	return !ibqp->recv_cq || ibqp->recv_cq == ibqp->send_cq ||
	       note(&qp->late[MEDGE_LATE_RECEIVES]);
}

/* Those that have been told of, since, are none. Return: there is one. */
static bool pop(struct medge_cq *cq, uint32_t *qp_handle)
{
	bool found = false;

	medge_lock(&cq->lock);
	while (cq->late && !found) {
		struct medge_late *late = cq->late;
		uint32_t taken;

		cq->late = late->next;
		late->noted = false;
		found = medge_ring_is_untaken(&late->qp->sq.ring, &taken);
		*qp_handle = late->qp->vqp.qp.handle;
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

void medge_late_now(struct medge_qp *qp)
{
	struct medge_ring *ring = &qp->sq.ring;
	struct ibv_qp *ibqp = &qp->vqp.qp;
	uint32_t taken;

	/* That it is in a list yet does no harm. */
	if (ring->hdr &&
	    medge_ring_need_doorbell(ring) >= MEDGE_DOORBELL_LATE &&
	    medge_ring_is_untaken(ring, &taken))
		medge_send_ring(ibqp->context, ibqp->handle);
}

static void forget(struct medge_late *late)
{
	struct medge_cq *cq = cq_of(late);
	struct medge_late **at;

	if (!cq)
		return;
	medge_lock(&cq->lock);
	for (at = &cq->late; *at && *at != late; at = &(*at)->next)
		;
	if (*at)
		*at = late->next;
	medge_unlock(&cq->lock);
}

void medge_late_forget(struct medge_qp *qp)
{
	int i;

	for (i = 0; i < MEDGE_LATES; i++)
		forget(&qp->late[i]);
}
