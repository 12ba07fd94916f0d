/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Datagrams: QPs of type UD, and the general service interface's QP 1. */
#ifndef MEDGE_UD_H
#define MEDGE_UD_H

#include <linux/skbuff.h>

#include "transport/wire.h"

struct medge_device;
struct medge_qp;
struct medge_rx_l2;

/* A datagram that has come, or that goes to members on our own device. */
struct medge_ud_arrival {
	struct sk_buff *skb;		/* header at skb->data */
	u16 vlan;
	struct medge_datagram head;
};

/*
 * Send what the user has posted; ends a use of the QP. Under qp->lock, which
 * it gives up.
 */
void medge_ud_send_unlock(struct medge_qp *qp) __releases(&qp->lock);

/* A frame of type DATAGRAM; consumes the skb. In softirq. */
void medge_ud_receive(struct medge_device *dev, struct sk_buff *skb,
		      const struct medge_rx_l2 *l2);

/* Give it to one QP, which may have no use for it. BHs are off. */
void medge_ud_deliver(struct medge_qp *qp,
		      const struct medge_ud_arrival *arrival);

#endif /* MEDGE_UD_H */
