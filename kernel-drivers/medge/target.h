/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the peer's requests may touch. */
#ifndef MEDGE_TARGET_H
#define MEDGE_TARGET_H

#include "transport/conn.h"

static inline bool medge_op_is_send(const struct medge_op *op)
{
	return op->opcode == MEDGE_OP_SEND ||
	       op->opcode == MEDGE_OP_SEND_IMM ||
	       op->opcode == MEDGE_OP_SEND_INV;
}

/* medge_conn_ops.target */
void medge_op_target(struct medge_conn *c, const struct medge_op *op,
		     struct medge_target *t);

#endif /* MEDGE_TARGET_H */
