/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Late doorbells: where the kernel allows it, who posts need not ring at once. One
 * doorbell tells of all that he has posted, when it is many, or when he polls in
 * vain, be it for sends or for receives: then he waits for something.
 */
#include <sched.h>

#include "medge.h"

enum {
	LOOKS = 1000,		/* at a ring that somebody else is at, some 100 us and more */
};

static struct medge_cq *cq_of(const struct medge_late *late)
{
	const struct ibv_qp *ibqp = &late->qp->vqp.qp;
	struct ibv_cq *ibcq = late - late->qp->late == MEDGE_LATE_SENDS ?
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

bool medge_late_defer_recv(struct medge_qp *qp, uint32_t posts)
{
	const struct medge_ring *ring = &qp->rq.ring;

	return ring->prod - medge_ring_load(&ring->hdr->cons) < posts &&
	       note(&qp->late[MEDGE_LATE_RQ]);
}

static bool is_rq(const struct medge_late *late)
{
	return late - late->qp->late == MEDGE_LATE_RQ;
}

/* The kernel has yet to be told of what is posted there. */
static bool is_due(const struct medge_late *late)
{
	struct medge_ring *ring = &late->qp->rq.ring;
	uint32_t taken;

	if (!is_rq(late))
		return medge_ring_is_untaken(&late->qp->sq.ring, &taken);
	return medge_ring_need_doorbell(ring) >= MEDGE_DOORBELL_LATE &&
	       medge_ring_load(&ring->hdr->cons) != medge_ring_load(&ring->hdr->prod);
}

/* Those that have been told of, since, are none. Return: there is one. */
static bool pop(struct medge_cq *cq, struct medge_qp_id *id, bool *rq)
{
	bool found = false;

	medge_lock(&cq->lock);
	while (cq->late && !found) {
		struct medge_late *late = cq->late;

		cq->late = late->next;
		late->noted = false;
		found = is_due(late);
		*rq = is_rq(late);
		*id = medge_qp_id(late->qp);
	}
	medge_unlock(&cq->lock);
	return found;
}

void medge_late_ring(struct medge_cq *cq)
{
	struct ibv_context *context = cq->vcq.cq.context;
	struct medge_qp_id id;
	bool rq;

	/* That the QP, or the device, has gone is for others to say. */
	while (pop(cq, &id, &rq)) {
		if (rq)
			medge_recv_ring(context, id.handle);
		else
			medge_send_ring(context, id);
	}
}

void medge_late_now(struct medge_qp *qp)
{
	struct medge_ring *ring = &qp->sq.ring;
	uint32_t taken;

	/* That it is in a list yet does no harm. */
	if (ring->hdr &&
	    medge_ring_need_doorbell(ring) >= MEDGE_DOORBELL_LATE &&
	    medge_ring_is_untaken(ring, &taken))
		medge_send_ring(qp->vqp.qp.context, medge_qp_id(qp));
}

void medge_late_add(struct medge_qp *qp)
{
	struct medge_context *ctx = to_medge_context(qp->vqp.qp.context);

	if (qp->vqp.qp.qp_type != IBV_QPT_UD)
		return;
	pthread_mutex_lock(&ctx->ud_mutex);
	qp->next_ud = ctx->uds;
	ctx->uds = qp;
	pthread_mutex_unlock(&ctx->ud_mutex);
}

/*
 * Somebody else may be at it, who has seen them or is to look again: a ring changes
 * nothing then. A QP that does not send takes nothing, however often it is asked.
 */
static void have_taken(struct medge_qp *qp)
{
	uint32_t taken;
	int i;

	for (i = 0; i < LOOKS && qp->sq.ring.hdr &&
		    medge_ring_is_untaken(&qp->sq.ring, &taken); i++) {
		if (i)
			sched_yield();
		if (medge_send_ring(qp->vqp.qp.context, medge_qp_id(qp)))
			break;
	}
}

void medge_late_datagrams(struct medge_context *ctx)
{
	struct medge_qp *qp;

	pthread_mutex_lock(&ctx->ud_mutex);
	for (qp = ctx->uds; qp; qp = qp->next_ud)
		have_taken(qp);
	pthread_mutex_unlock(&ctx->ud_mutex);
}

static void forget_datagrams(struct medge_qp *qp)
{
	struct medge_context *ctx = to_medge_context(qp->vqp.qp.context);
	struct medge_qp **at;

	pthread_mutex_lock(&ctx->ud_mutex);
	for (at = &ctx->uds; *at && *at != qp; at = &(*at)->next_ud)
		;
	if (*at)
		*at = qp->next_ud;
	pthread_mutex_unlock(&ctx->ud_mutex);
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

	forget_datagrams(qp);
	for (i = 0; i < MEDGE_LATES; i++)
		forget(&qp->late[i]);
}
