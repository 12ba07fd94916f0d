/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Work requests on their way from the send ring to the connection. */
#ifndef MEDGE_POST_H
#define MEDGE_POST_H

#include "qp.h"

/*
 * The next WQE of a QP without a connection, which sends one at a time; some are posted.
 * It is @qp->sq.cons - 1 then, and *status is what is wrong with it. Under qp->lock.
 * Return: NULL if there is no memory for it.
 */
struct medge_send_snap *medge_post_next(struct medge_qp *qp,
					enum medge_status *status);

/*
 * Submit what the user has posted, as far as the connection has room. The user
 * need not ring for what he posts from here on. Under qp->lock, state RTS.
 */
void medge_post_take(struct medge_qp *qp);

/*
 * Nothing can be sent now. Ask for a doorbell, unless an acknowledgment will
 * bring us back to the ring anyway. Under qp->lock.
 * Return: false if the user has posted more meanwhile.
 */
bool medge_post_idle(struct medge_qp *qp);

#endif /* MEDGE_POST_H */
