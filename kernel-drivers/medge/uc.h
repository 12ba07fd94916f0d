/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Unreliable connections: frames in order, or the message is lost. */
#ifndef MEDGE_UC_H
#define MEDGE_UC_H

#include <linux/skbuff.h>

#include "transport/wire.h"

struct medge_qp;
struct medge_rx_l2;

/* Send what the user has posted; ends a use of the QP. Under qp->lock, which it gives up. */
void medge_uc_send_unlock(struct medge_qp *qp) __releases(&qp->lock);

/* A frame for a UC QP; consumes the skb. In softirq. */
void medge_uc_receive(struct medge_qp *qp, struct sk_buff *skb,
		      const struct medge_frame *frame,
		      const struct medge_rx_l2 *l2);

/*
 * qp->uc.order.until has come: take what has waited for as long; the skbs to be freed go
 * to @used. Under qp->lock, at qp->now.
 */
void medge_uc_timeout(struct medge_qp *qp, struct sk_buff_head *used);

/* From INIT to RTR, or from there to RTS: number frames as both sides have said. */
void medge_uc_begin(struct medge_qp *qp, enum ib_qp_state state);

#endif /* MEDGE_UC_H */
