/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Frames, or runs of them, as the connection wants them sent. */
#ifndef MEDGE_BUILD_H
#define MEDGE_BUILD_H

#include <linux/skbuff.h>

#include "qp.h"

/*
 * The skb of @tx, for medge_batch_xmit(); the connection takes it for sent. Under qp->lock.
 * Return: NULL: there is no memory, or what it is made of has gone; then the
 * connection knows.
 */
struct sk_buff *medge_build(struct medge_qp *qp, const struct medge_tx *tx);

/* An skb for @len bytes from the header on, with room in front; NULL: no memory. */
struct sk_buff *medge_build_skb(struct medge_qp *qp, u32 len);

/*
 * An skb of so many bytes, if possible in pages that many share: less to count, and
 * nothing to zero. NULL: no memory. BHs are off.
 */
struct sk_buff *medge_skb_alloc(u32 room);

/* No skb is built any more. */
void medge_build_stop(void);

/* medge_conn_ops.present */
bool medge_build_present(struct medge_conn *c, const struct medge_op *op);

#endif /* MEDGE_BUILD_H */
