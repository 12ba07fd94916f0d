/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* ib_device_ops of `rdma -dd resource`. */
#ifndef MEDGE_RESTRACK_H
#define MEDGE_RESTRACK_H

#include <rdma/ib_verbs.h>

/* The send queue, and the connection's state. */
int medge_fill_res_qp(struct sk_buff *msg, struct ib_qp *ibqp);
int medge_fill_res_cq(struct sk_buff *msg, struct ib_cq *ibcq);
int medge_fill_res_mr(struct sk_buff *msg, struct ib_mr *ibmr);

#endif /* MEDGE_RESTRACK_H */
