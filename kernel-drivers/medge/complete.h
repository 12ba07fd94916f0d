/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* CQEs of WQEs that have been given back. */
#ifndef MEDGE_COMPLETE_H
#define MEDGE_COMPLETE_H

#include <linux/types.h>

struct medge_cqe;
struct medge_qp;
struct medge_recv_snap;

/*
 * Of a send, whose WQE had this @opcode; @status is an enum ib_wc_status. Under
 * qp->lock.
 */
void medge_send_complete(struct medge_qp *qp, u64 wr_id, u8 opcode,
			 u32 byte_len, u8 status);
/* Of a receive, where that belongs: of XRC, to its SRQ's CQ. Under qp->lock. */
void medge_recv_cqe(struct medge_qp *qp, const struct medge_recv_snap *snap,
		    const struct medge_cqe *cqe, bool solicited);

#endif /* MEDGE_COMPLETE_H */
