/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Completions: from the CQ's ring to the application, without a system call. */
#include "medge.h"

static_assert(sizeof(struct medge_cqe) <= 1 << MEDGE_CQE_SHIFT,
	      "a completion fits an entry of the ring");

static void medge_cqe_to_wc(const struct medge_cqe *cqe, struct ibv_wc *wc)
{
	wc->wr_id = cqe->wr_id;
	wc->status = cqe->status;
	wc->opcode = cqe->opcode;
	wc->vendor_err = cqe->vendor_err;
	wc->byte_len = cqe->byte_len;
	wc->imm_data = cqe->imm;
	wc->qp_num = cqe->qp_num;
	wc->src_qp = cqe->src_qp;
	wc->wc_flags = cqe->wc_flags;
	wc->pkey_index = 0;
	wc->slid = 0;
	wc->sl = cqe->sl;
	wc->dlid_path_bits = 0;
}

int medge_poll_cq(struct ibv_cq *ibcq, int num_entries, struct ibv_wc *wc)
{
	struct medge_cq *cq = to_medge_cq(ibcq);
	const struct medge_cqe *cqe;
	enum medge_spin_act act = MEDGE_SPIN_ON;
	struct medge_qp_id id;
	bool late = false;
	int n = 0;

	medge_lock(&cq->lock);
	while (n < num_entries) {
		cqe = medge_ring_peek(&cq->ring);
		if (!cqe)
			break;
		medge_cqe_to_wc(cqe, &wc[n++]);
		cq->ring.cons++;
	}
	if (n) {
		medge_ring_release(&cq->ring);
		medge_spin_found(cq);
	} else {
		late = cq->late;
		act = medge_spin_empty(cq, &id);
	}
	medge_unlock(&cq->lock);
	if (late)
		medge_late_ring(cq);
	if (act != MEDGE_SPIN_ON)
		medge_spin_help(cq, act, id);
	return n;
}
