/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* CQEs of WQEs that have been given back. */
#ifndef MEDGE_COMPLETE_H
#define MEDGE_COMPLETE_H

#include "qp.h"

/*
 * Of a send, whose WQE had this @opcode; @status is an enum ib_wc_status. Under
 * qp->lock.
 */
void medge_send_complete(struct medge_qp *qp, u64 wr_id, u8 opcode,
			 u32 byte_len, u8 status);
/* Of a receive, where that belongs: of XRC, to its SRQ's CQ. Under qp->lock. */
void medge_recv_cqe(struct medge_qp *qp, const struct medge_recv_snap *snap,
		    const struct medge_cqe *cqe, bool solicited);

/*
 * Frames of many small ops make many completions: from the first on they are but put
 * into their CQs, until all of them are told at once. Each touches lines of the
 * cache that who waits for them reads all the time. Under qp->lock, which is not given
 * up before they are told.
 */
void medge_completions_gather(struct medge_qp *qp);
void medge_completions_tell_all(struct medge_qp *qp);

static inline void medge_completions_tell(struct medge_qp *qp)
{
	if (qp->gathered.on)
		medge_completions_tell_all(qp);
}

#endif /* MEDGE_COMPLETE_H */
