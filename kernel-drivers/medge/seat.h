/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The seat of a poller: held by who polls, its thread or who stands in for that, and
 * what softirqs do not send because he will.
 *
 * Frames bring acks, and acks let frames go, which has no end in softirqs, so that
 * ksoftirqd took the CPU of who polls, or of who posts. What is handed to him instead
 * must be looked at before he is away; and when he is, others must know.
 */
#ifndef MEDGE_SEAT_H
#define MEDGE_SEAT_H

#include <linux/types.h>

struct medge_poller;
struct medge_qp;

/* ---- by who polls, under poller->seat ---- */

/* From here on it is this task. */
void medge_seat_take(struct medge_poller *poller);
/*
 * Before it gives up the CPU: what was left to it is not to wait. @seen: there was
 * traffic, which has been cleared since the rings were looked at.
 */
void medge_seat_leave(struct medge_poller *poller, bool seen);
/* ... and after that. */
void medge_seat_return(struct medge_poller *poller);
/*
 * By who stood in, for good. What softirqs leave to him is not to keep him: a stream
 * whose peer is near does not end. For a moment nobody polls; if it is longer than that,
 * who posts rings.
 */
void medge_seat_give_up(struct medge_poller *poller);

/* ---- by others, under qp->lock ---- */

/*
 * Does who polls, and watches this QP, send what it has to, by what is told here? Asked
 * in a softirq. A QP that only answers has no need to wait for it.
 */
bool medge_seat_sends(struct medge_qp *qp);
/*
 * Somebody rings who need not, since he polls in vain. But who polls for him is there, and
 * does what there is: ops may be so long that nothing new is taken for a while. Another CPU
 * would send beside it, where it was found that one does more. Return: nobody else is to
 * look at the ring.
 */
bool medge_seat_needs_no_bell(struct medge_qp *qp);
/* Is this who polls for it, and looks again when this is over? */
bool medge_seat_is_mine(const struct medge_qp *qp);
/* There is more to send for it, which he may do. */
void medge_seat_hand(struct medge_qp *qp);
/* qp->polled.alone_at has come; what is posted has to be taken after that. */
void medge_seat_is_alone(struct medge_qp *qp);

#endif /* MEDGE_SEAT_H */
