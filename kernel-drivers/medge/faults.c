// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Softirqs and locks cannot wait for a page. What meets one that is absent is set
 * aside, all else of the QP goes on; a work brings the page in, and takes up what
 * was set aside. To the connection a frame that waits so is one being copied: it
 * is received, and acknowledged as such, so that nobody takes it for lost.
 */
#include <linux/delay.h>

#include "device.h"
#include "faults.h"
#include "place.h"
#include "qp.h"
#include "stats.h"

enum {
	/* Looks, a ms apart, for memory to bring a page into. */
	MEMORY_LOOKS = 100,
};

/* Of its own: a page may be long in coming, and others have works, too. */
static struct workqueue_struct *queue;

int medge_faults_start(void)
{
	queue = alloc_workqueue("medge_faults", WQ_UNBOUND, 0);
	return queue ? 0 : -ENOMEM;
}

void medge_faults_stop(void)
{
	destroy_workqueue(queue);
}

/* ---- to wait ---- */

static void start_work(struct medge_qp *qp)
{
	if (qp->faults.working || !medge_qp_hold(qp))
		return;
	qp->faults.working = true;
	queue_work(queue, &qp->faults.work);
}

bool medge_faults_wait(struct medge_qp *qp, enum medge_fault who, u8 opcode,
		       u32 op_no, struct medge_absent *absent)
{
	bool response = opcode == MEDGE_OP_RESPONSE;
	struct medge_faults *f = &qp->faults;
	struct medge_fault_op *bad = &f->bad[who];

	if (bad->any && bad->op_no == op_no && bad->response == response) {
		medge_mr_put(absent->mr);
		return false;
	}
	if (f->absent[who].mr) {
		medge_mr_put(absent->mr);
		return true;
	}
	f->absent[who] = *absent;
	f->asked[who] = (struct medge_fault_op) {
		.response = response,
		.op_no = op_no,
	};
	medge_count(qp->dev, page_faults);
	start_work(qp);
	return true;
}

void medge_faults_hold(struct medge_qp *qp, struct sk_buff *skb)
{
	__skb_queue_tail(&qp->faults.frames, skb);
	start_work(qp);
}

/* ---- to go on ---- */

static bool stopped(const struct medge_qp *qp)
{
	enum ib_qp_state state = READ_ONCE(qp->state);

	return state == IB_QPS_ERR || state == IB_QPS_RESET;
}

/* The region is put. Return: 0, or why it cannot be had. */
static int bring(struct medge_qp *qp, struct medge_absent *absent)
{
	u32 looks = MEMORY_LOOKS;
	int err = -EIO;

	while (!stopped(qp)) {
		err = medge_odp_fault(absent);
		if (err != -ENOMEM || !--looks)
			break;
		usleep_range(1000, 2000);
	}
	medge_mr_put(absent->mr);
	return err;
}

enum medge_nak medge_faults_place(struct medge_qp *qp, struct sk_buff *skb,
				  const struct medge_piece *piece)
{
	enum medge_nak nak = MEDGE_NAK_ACCESS;

	/* When it has stopped, nobody wants what is placed, nor is to be told that it was. */
	while (!stopped(qp)) {
		struct medge_absent absent = {};

		/* Who waits until a region is used no more must not preempt us. */
		local_bh_disable();
		nak = medge_place_piece(qp, skb, piece, false, NULL, &absent);
		local_bh_enable();
		if (!absent.mr || bring(qp, &absent))
			break;
	}
	return nak;
}

/* The same for those who are asked whether they can go on, and may wait again. */
static void resume(struct medge_qp *qp) __must_hold(&qp->lock)
{
	struct sk_buff_head used;

	__skb_queue_head_init(&used);
	qp->now = ktime_get_ns();
	if (qp->conn && medge_qp_talks(qp)) {
		medge_conn_memory_came(qp->conn);
		medge_receive_released(qp, &used);
	}
	spin_unlock_bh(&qp->lock);
	medge_skbs_used(&used);
	medge_send_look(qp);
	spin_lock_bh(&qp->lock);
}

/* All three are called, and return, under qp->lock. Return: there was something. */
static bool serve(struct medge_qp *qp, enum medge_fault who)
	__must_hold(&qp->lock)
{
	struct medge_faults *f = &qp->faults;
	struct medge_absent absent = f->absent[who];
	struct medge_fault_op asked = f->asked[who];

	if (!absent.mr)
		return false;
	f->absent[who].mr = NULL;
	spin_unlock_bh(&qp->lock);
	asked.any = bring(qp, &absent);
	spin_lock_bh(&qp->lock);
	f->bad[who] = asked;
	resume(qp);
	return true;
}

static bool serve_frame(struct medge_qp *qp) __must_hold(&qp->lock)
{
	struct sk_buff *skb = __skb_dequeue(&qp->faults.frames);

	if (skb)
		medge_receive_again(qp, skb);
	return skb;
}

static bool serve_all(struct medge_qp *qp) __must_hold(&qp->lock)
{
	bool any = serve_frame(qp);
	u32 who;

	for (who = 0; who < MEDGE_FAULTS; who++)
		any |= serve(qp, who);
	return any;
}

static void work(struct work_struct *work)
{
	struct medge_qp *qp = container_of(work, struct medge_qp, faults.work);

	spin_lock_bh(&qp->lock);
	while (serve_all(qp))
		;
	qp->faults.working = false;
	spin_unlock_bh(&qp->lock);
	medge_qp_put(qp);
}

void medge_faults_init(struct medge_qp *qp)
{
	INIT_WORK(&qp->faults.work, work);
	__skb_queue_head_init(&qp->faults.frames);
}

void medge_faults_reset(struct medge_qp *qp)
{
	struct medge_faults *f = &qp->faults;
	struct sk_buff *skb;
	u32 who;

	cancel_work_sync(&f->work);
	/* Set aside when no work could be let in any more. */
	while ((skb = __skb_dequeue(&f->frames))) {
		kfree_skb(skb);
		qp->placing--;
	}
	for (who = 0; who < MEDGE_FAULTS; who++) {
		if (!f->absent[who].mr)
			continue;
		medge_mr_put(f->absent[who].mr);
		f->absent[who].mr = NULL;
	}
	memset(qp->faults.bad, 0, sizeof(qp->faults.bad));
}
