/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A program tells of what it has posted. The command is our own: POST_SEND of no work
 * requests does the same, but copies, allocates and answers as if there were some,
 * which takes a thousand instructions more.
 */
#ifndef MEDGE_DOORBELL_H
#define MEDGE_DOORBELL_H

#include <rdma/uverbs_ioctl.h>

struct medge_qp;

/* For the send queue of a QP that is held. Process context. */
void medge_doorbell_rung(struct medge_qp *qp);

extern const struct uapi_definition medge_doorbell_defs[];

#endif /* MEDGE_DOORBELL_H */
