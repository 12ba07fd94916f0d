/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What a QP waits for: memory that is not there, brought in from process context. */
#ifndef MEDGE_FAULTS_H
#define MEDGE_FAULTS_H

#include <linux/skbuff.h>
#include <linux/workqueue.h>

#include "odp.h"
#include "transport/wire.h"

struct medge_piece;
struct medge_qp;

/* Who waits, but for frames. */
enum medge_fault {
	MEDGE_FAULT_SEND,	/* what is to be sent next, request or response */
	MEDGE_FAULT_ATOMIC,	/* the peer's atomic whose turn it is */
	MEDGE_FAULT_AHEAD,	/* nobody: who wanted it has gone on without */
	MEDGE_FAULTS,
};

/* An op of this QP or of its peer. */
struct medge_fault_op {
	bool any;
	bool response;
	u32 op_no;
};

/**
 * struct medge_faults - the faults of a QP, under its lock
 * @work: queued or running if @working; then it is a user of the QP
 * @frames: received; their next piece has to be placed
 * @absent: by enum medge_fault
 * @asked: the op that each is for
 * @bad: by enum medge_fault, the last whose memory cannot be had: it is not to
 *       wait again, but to fail
 */
struct medge_faults {
	struct work_struct work;
	bool working;
	struct sk_buff_head frames;
	struct medge_absent absent[MEDGE_FAULTS];
	struct medge_fault_op asked[MEDGE_FAULTS];
	struct medge_fault_op bad[MEDGE_FAULTS];
};

int medge_faults_start(void);
void medge_faults_stop(void);

void medge_faults_init(struct medge_qp *qp);
/* Nobody else is at work on the QP, nor can be. */
void medge_faults_reset(struct medge_qp *qp);

/*
 * Something is not there (@absent, which is used up): have it brought in, and
 * whoever waits go on. Under qp->lock. Return: it is; false: that failed
 * before for this op (@opcode is 0 if it is none of a connection), and it has to
 * go without.
 */
bool medge_faults_wait(struct medge_qp *qp, enum medge_fault who, u8 opcode,
		       u32 op_no, struct medge_absent *absent);

/*
 * The next piece of a frame, which counts in qp->placing, has to be placed however long
 * that takes. Under qp->lock.
 */
void medge_faults_hold(struct medge_qp *qp, struct sk_buff *skb);

/* What medge_place_piece() does, however long it takes, unless the QP stops. Sleeps. */
enum medge_nak medge_faults_place(struct medge_qp *qp, struct sk_buff *skb,
				  const struct medge_piece *piece);

#endif /* MEDGE_FAULTS_H */
