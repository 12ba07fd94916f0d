/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Who spins for completions has a CPU, and may see that what he waits for has not
 * been begun, nor anything else: the poller that looks at his ring has no CPU. Then
 * he rings, as if there were none. A poller that goes on, if slowly, is let alone.
 *
 * And a poller may want that CPU: then he lends it, for a moment at a time.
 */
#include <errno.h>

#include <infiniband/cmd_ioctl.h>

#include "medge.h"

enum {
	/* Polls in vain, tens of microseconds, in which a poller has taken something. */
	PATIENCE = 1024,
	/* So many when rings do not help, as where a window is full. */
	PATIENCE_MAX = PATIENCE << 6,
	/* A microsecond or two; and when another lends, or is to. */
	PATIENCE_LENT = 8,
	PATIENCE_LENT_MAX = PATIENCE,
	/* So often within a CQ's life, and it is not for a moment's sake that it is spun on. */
	SPELLS = 2048,
};

/* Leave more of the core to who shares it, and of the ring's line to who writes it. */
static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

void medge_spin_init(struct medge_cq *cq)
{
	cq->spin.patience = PATIENCE;
	cq->spin.patience_lent = PATIENCE_LENT;
}

void medge_spin_silent(struct medge_cq *cq, struct medge_qp *qp)
{
	atomic_store_explicit(&cq->spin.silent, qp, memory_order_relaxed);
}

static bool is_to_lend(struct medge_cq *cq)
{
	struct medge_spin *spin = &cq->spin;

	if (++spin->vain < spin->patience_lent)
		return false;
	spin->vain = 0;
	switch (medge_ring_load(&cq->ring.hdr->lend)) {
	case MEDGE_LEND_WANTED:
		return true;
	case MEDGE_LEND_UNKNOWN:
		return ++spin->spells >= SPELLS;
	default:
		return false;
	}
}

enum medge_spin_act medge_spin_empty(struct medge_cq *cq, struct medge_qp_id *id)
{
	struct medge_spin *spin = &cq->spin;
	struct medge_qp *qp;
	uint32_t taken;

	relax();
	qp = atomic_load_explicit(&spin->silent, memory_order_relaxed);
	if (!qp || ++spin->polls <= spin->patience)
		return is_to_lend(cq) ? MEDGE_SPIN_LEND : MEDGE_SPIN_ON;
	spin->polls = 0;
	if (!medge_ring_is_untaken(&qp->sq.ring, &taken) || qp != spin->looked_at ||
	    taken != spin->taken) {
		spin->looked_at = qp;
		spin->taken = taken;
		spin->patience = PATIENCE;
		return MEDGE_SPIN_ON;
	}
	if (spin->patience < PATIENCE_MAX)
		spin->patience *= 2;
	*id = medge_qp_id(qp);
	return MEDGE_SPIN_RING;
}

static void lend(struct medge_cq *cq)
{
	DECLARE_COMMAND_BUFFER(cmd, UVERBS_OBJECT_CQ, MEDGE_METHOD_CQ_LEND, 1);
	bool busy;

	fill_attr_in_obj(cmd, MEDGE_ATTR_CQ_LEND_HANDLE, cq->vcq.cq.handle);
	busy = execute_ioctl(cq->vcq.cq.context, cmd) == EBUSY;
	medge_lock(&cq->lock);
	cq->spin.spells = 0;
	cq->spin.patience_lent = busy ? PATIENCE_LENT_MAX : PATIENCE_LENT;
	medge_unlock(&cq->lock);
}

/* That the QP, or the device, has gone is for others to say. */
void medge_spin_help(struct medge_cq *cq, enum medge_spin_act act,
		     struct medge_qp_id id)
{
	if (act == MEDGE_SPIN_RING)
		medge_send_ring(cq->vcq.cq.context, id);
	else
		lend(cq);
}

void medge_spin_forget(struct medge_cq *cq, const struct medge_qp *qp)
{
	medge_lock(&cq->lock);
	if (atomic_load_explicit(&cq->spin.silent, memory_order_relaxed) == qp)
		medge_spin_silent(cq, NULL);
	medge_unlock(&cq->lock);
}
