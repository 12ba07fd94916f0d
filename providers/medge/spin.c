/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Who spins for completions has a CPU, and may see that what he waits for has not
 * been begun, nor anything else: the poller that looks at his ring has no CPU. Then
 * he rings, as if there were none. A poller that goes on, if slowly, is let alone.
 */
#include "medge.h"

enum {
	/* Polls in vain, tens of microseconds, in which a poller has taken something. */
	PATIENCE = 1024,
	/* So many when rings do not help, as where a window is full. */
	PATIENCE_MAX = PATIENCE << 6,
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
}

void medge_spin_silent(struct medge_cq *cq, struct medge_qp *qp)
{
	atomic_store_explicit(&cq->spin.silent, qp, memory_order_relaxed);
}

bool medge_spin_empty(struct medge_cq *cq, uint32_t *qp_handle)
{
	struct medge_spin *spin = &cq->spin;
	struct medge_qp *qp;
	uint32_t taken;

	relax();
	qp = atomic_load_explicit(&spin->silent, memory_order_relaxed);
	if (!qp || ++spin->polls <= spin->patience)
		return false;
	spin->polls = 0;
	if (!medge_ring_is_untaken(&qp->sq.ring, &taken) || qp != spin->looked_at ||
	    taken != spin->taken) {
		spin->looked_at = qp;
		spin->taken = taken;
		spin->patience = PATIENCE;
		return false;
	}
	if (spin->patience < PATIENCE_MAX)
		spin->patience *= 2;
	*qp_handle = qp->vqp.qp.handle;
	return true;
}

void medge_spin_forget(struct medge_cq *cq, const struct medge_qp *qp)
{
	medge_lock(&cq->lock);
	if (atomic_load_explicit(&cq->spin.silent, memory_order_relaxed) == qp)
		medge_spin_silent(cq, NULL);
	medge_unlock(&cq->lock);
}
