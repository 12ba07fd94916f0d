// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Unreliable connections: nothing is acknowledged or sent again. Frames carry
 * copies, since a send completes when it has left. All of a QP's go on one rail,
 * so that they come in order; a message of which one is missing is dropped.
 */
#include "batch.h"
#include "build.h"
#include "device.h"
#include "place.h"
#include "post.h"
#include "qp.h"
#include "rail.h"
#include "snap.h"
#include "stats.h"
#include "turns.h"
#include "uc.h"

/* What a UC QP can ask of its peer; 0: not that. */
static const struct uc_kind {
	bool known;
	bool is_send;
	bool consumes;
	bool has_imm;
} uc_kinds[MEDGE_OPCODES] = {
	[MEDGE_OP_WRITE] = { .known = true },
	[MEDGE_OP_WRITE_IMM] = {
		.known = true, .consumes = true, .has_imm = true
	},
	[MEDGE_OP_SEND] = { .known = true, .is_send = true, .consumes = true },
	[MEDGE_OP_SEND_IMM] = {
		.known = true, .is_send = true, .consumes = true, .has_imm = true
	},
};

static const u8 wire_opcodes[MEDGE_WQE_OPCODES] = {
	[MEDGE_WQE_WRITE] = MEDGE_OP_WRITE,
	[MEDGE_WQE_WRITE_IMM] = MEDGE_OP_WRITE_IMM,
	[MEDGE_WQE_SEND] = MEDGE_OP_SEND,
	[MEDGE_WQE_SEND_IMM] = MEDGE_OP_SEND_IMM,
};

/* ---- send ---- */

static enum medge_status check(const struct medge_send_snap *snap)
{
	switch (snap->wqe.opcode) {
	case MEDGE_WQE_WRITE:
	case MEDGE_WQE_WRITE_IMM:
	case MEDGE_WQE_SEND:
	case MEDGE_WQE_SEND_IMM:
		return MEDGE_OK;
	default:
		return MEDGE_LOCAL_OPERATION;
	}
}

/* A bad WQE stops the send queue, but not the receive queue. */
static void end_message(struct medge_qp *qp, const struct medge_send_snap *snap,
			enum medge_status status)
{
	qp->uc.sending = false;
	qp->uc.tx_msg++;
	medge_send_done(qp, snap, status);
	if (!status)
		return;
	qp->state = IB_QPS_SQE;
	medge_flush_sq(qp);
}

/* Return: a message is being sent. */
static bool begin_message(struct medge_qp *qp)
{
	struct medge_send_snap *snap;
	enum medge_status status;

	if (qp->uc.sending)
		return true;
	if (!medge_ring_posted(&qp->sq))
		return false;
	snap = medge_post_next(qp, &status);
	if (!snap)
		return false;
	if (!status)
		status = check(snap);
	if (status) {
		end_message(qp, snap, status);
		return false;
	}
	qp->uc.sending = true;
	qp->uc.tx_index = qp->sq.cons - 1;
	qp->uc.tx_offset = 0;
	qp->uc.seg_len = min_t(u32, medge_rails_room(qp->dev, MEDGE_HDR_LEN),
			       MEDGE_RUN_MAX);
	return true;
}

static void put_header(struct medge_qp *qp, const struct medge_send_snap *snap,
		       u32 len, void *to)
{
	struct medge_frame f = {
		.type = MEDGE_FRAME_DATA,
		.nops = 1,
		.seg_len = qp->uc.seg_len,
		.qpn = qp->attr.dest_qp_num,
		.psn = qp->uc.tx_psn++,
	};
	struct medge_op op = {
		.opcode = wire_opcodes[snap->wqe.opcode],
		.len = len,
		.op_no = qp->uc.tx_msg,
		.op_len = snap->len,
		.offset = qp->uc.tx_offset,
		.imm = snap->wqe.imm,
	};

	if (!uc_kinds[op.opcode].is_send) {
		op.addr = snap->wqe.remote_addr;
		op.rkey = snap->wqe.rkey;
	}
	if (snap->wqe.flags & MEDGE_WQE_SOLICITED)
		op.flags |= MEDGE_OP_SOLICITED;
	medge_wire_encode_frame(to, &f);
	medge_wire_encode_op(to + sizeof(struct medge_frame_hdr), &op);
}

static bool put_payload(struct medge_qp *qp, const struct medge_send_snap *snap,
			void *to, u32 len, struct medge_absent *absent)
{
	struct medge_walk walk;
	bool ok;

	if (snap->wqe.flags & MEDGE_WQE_INLINE) {
		memcpy(to, snap->data + qp->uc.tx_offset, len);
		return true;
	}
	medge_walk_start(&walk, qp, qp->ibqp.pd, 0, medge_snap_sges(snap),
			 snap->wqe.num_sge, qp->uc.tx_offset, len);
	walk.absent = absent;
	ok = medge_walk_read(&walk, to, len);
	return medge_walk_end(&walk) && ok;
}

/*
 * The next frame of the message. What there is no memory for is lost. Return:
 * false if its payload is not there yet.
 */
static bool send_frame(struct medge_qp *qp, u32 rail, struct sk_buff_head *out)
{
	struct medge_send_snap *snap = medge_snap_send(qp, qp->uc.tx_index);
	u32 len = min_t(u32, snap->len - qp->uc.tx_offset, qp->uc.seg_len);
	struct medge_absent absent = {};
	struct sk_buff *skb = medge_build_skb(qp, MEDGE_HDR_LEN + len);

	if (skb) {
		put_header(qp, snap, len, skb_put(skb, MEDGE_HDR_LEN));
		if (!put_payload(qp, snap, skb_put(skb, len), len, &absent)) {
			kfree_skb(skb);
			qp->uc.tx_psn--;
			if (absent.mr && medge_faults_wait(qp, MEDGE_FAULT_SEND, 0,
							   qp->uc.tx_index, &absent))
				return false;
			end_message(qp, snap, MEDGE_LOCAL_PROTECTION);
			return true;
		}
		skb->ip_summed = CHECKSUM_UNNECESSARY;
		*medge_tx_cb(skb) = (struct medge_tx_cb) {
			.l2 = qp->l2,
			.rail = rail,
		};
		__skb_queue_tail(out, skb);
	}
	qp->uc.tx_offset += len;
	if (qp->uc.tx_offset >= snap->len)
		end_message(qp, snap, MEDGE_OK);
	return true;
}

static void fill(struct medge_qp *qp, struct sk_buff_head *out)
{
	u32 rail = medge_rail_for_turn(qp->dev,
				       qp->qpn ^ qp->attr.dest_qp_num);
	u32 n;

	for (n = 0; n < MEDGE_TURN_BATCH; n++) {
		bool goes_on = qp->state == IB_QPS_RTS ||
			       (qp->state == IB_QPS_SQD && qp->uc.sending);

		if (!goes_on || !begin_message(qp) ||
		    !send_frame(qp, rail, out))
			break;
	}
}

void medge_uc_send_unlock(struct medge_qp *qp) __releases(&qp->lock)
{
	static const struct medge_turns turns = { .fill = fill };

	medge_turns_unlock(qp, &turns);
}

/* ---- receive ---- */

static bool may_receive(const struct medge_qp *qp, const struct medge_rx_l2 *l2)
{
	return medge_qp_hears(qp) && !l2->multicast &&
	       medge_l2_matches(&qp->l2, l2->smac, l2->vlan);
}

static bool may_write(struct medge_qp *qp, const struct medge_op *op)
{
	struct medge_mr *mr;

	if (!(qp->attr.qp_access_flags & IB_ACCESS_REMOTE_WRITE))
		return false;
	if (!op->op_len)
		return true;
	mr = medge_mr_get(qp, qp->ibqp.pd, op->rkey, op->addr, op->op_len,
			  IB_ACCESS_REMOTE_WRITE);
	if (mr)
		medge_mr_put(mr);
	return mr;
}

/* A message begins; one that did not come to its end leaves its receive to it. */
static bool begin_receive(struct medge_qp *qp, const struct medge_op *op)
{
	struct medge_recv_snap *snap;

	if (!uc_kinds[op->opcode].is_send)
		return may_write(qp, op);
	snap = medge_recv_take(qp, qp->rq.done, 0);
	if (!snap) {
		medge_count(qp->dev, rx_no_recv);
		return false;
	}
	if (snap->status || op->op_len > snap->len) {
		medge_count(qp->dev, rx_too_long);
		return false;
	}
	return true;
}

static void complete_receive(struct medge_qp *qp, const struct medge_op *op)
{
	const struct uc_kind *kind = &uc_kinds[op->opcode];
	struct medge_recv_snap *snap;
	struct medge_cqe cqe = {
		.status = IB_WC_SUCCESS,
		.opcode = kind->is_send ? IB_WC_RECV : IB_WC_RECV_RDMA_WITH_IMM,
		.qp_num = qp->qpn,
		.src_qp = qp->attr.dest_qp_num,
		.byte_len = op->op_len,
		.timestamp = qp->now,
	};

	if (!kind->consumes)
		return;
	snap = medge_recv_take(qp, qp->rq.done, 0);
	if (!snap) {
		medge_count(qp->dev, rx_no_recv);
		return;
	}
	cqe.wr_id = snap->wr_id;
	if (kind->has_imm) {
		cqe.imm = op->imm;
		cqe.wc_flags = IB_WC_WITH_IMM;
	}
	medge_recv_done(qp, snap, &cqe, op->flags & MEDGE_OP_SOLICITED);
}

/* Under qp->lock. Return: the frame was of use. */
static bool receive(struct medge_qp *qp, struct sk_buff *skb,
		    const struct medge_frame *frame)
{
	const struct medge_op *op = &frame->op;
	struct medge_piece piece = { .op = *op, .recv_index = qp->rq.done };
	struct medge_absent absent = {};
	struct medge_uc *uc = &qp->uc;

	if (frame->type != MEDGE_FRAME_DATA || frame->nops != 1 ||
	    !uc_kinds[op->opcode].known)
		return false;
	if (!op->offset) {
		uc->receiving = begin_receive(qp, op);
		uc->rx_msg = op->op_no;
		uc->rx_op = *op;
		uc->rx_offset = 0;
	}
	if (!uc->receiving)
		return false;
	uc->receiving = op->op_no == uc->rx_msg && op->offset == uc->rx_offset &&
			op->opcode == uc->rx_op.opcode &&
			op->op_len == uc->rx_op.op_len &&
			!medge_place_piece(qp, skb, &piece, true, NULL, &absent);
	/* The message is lost, but the next one finds the memory there. */
	if (absent.mr)
		medge_faults_wait(qp, MEDGE_FAULT_AHEAD, 0, op->op_no, &absent);
	if (!uc->receiving)
		return false;
	uc->rx_offset += op->len;
	if (uc->rx_offset >= op->op_len) {
		uc->receiving = false;
		complete_receive(qp, op);
	}
	return true;
}

static void take(struct medge_qp *qp, struct sk_buff *skb,
		 const struct medge_frame *frame)
{
	if (!receive(qp, skb, frame))
		medge_count(qp->dev, rx_uc_dropped);
}

/* Those that overtook others which have come now, or do not come. */
static void take_early(struct medge_qp *qp, struct sk_buff_head *used)
{
	struct medge_early *early;

	while ((early = medge_order_next(qp))) {
		take(qp, early->skb, &early->frame);
		__skb_queue_tail(used, early->skb);
		kfree(early);
	}
}

void medge_uc_receive(struct medge_qp *qp, struct sk_buff *skb,
		      const struct medge_frame *frame,
		      const struct medge_rx_l2 *l2)
{
	struct sk_buff_head used;

	__skb_queue_head_init(&used);
	spin_lock_bh(&qp->lock);
	qp->now = ktime_get_ns();
	if (!may_receive(qp, l2)) {
		medge_count(qp->dev, rx_bad_peer);
	} else {
		if (medge_order_come(qp, frame, &skb))
			take(qp, skb, frame);
		else if (skb)
			medge_count(qp->dev, rx_uc_dropped);
		take_early(qp, &used);
	}
	if (skb)
		__skb_queue_tail(&used, skb);
	spin_unlock_bh(&qp->lock);
	medge_skbs_used(&used);
}

void medge_uc_timeout(struct medge_qp *qp, struct sk_buff_head *used)
{
	if (medge_qp_hears(qp)) {
		medge_order_skip(qp);
		take_early(qp, used);
	} else {
		medge_order_drop(qp);
	}
}

void medge_uc_begin(struct medge_qp *qp, enum ib_qp_state state)
{
	spin_lock_bh(&qp->lock);
	if (state == IB_QPS_RTR)
		qp->uc.order.psn = qp->attr.rq_psn;
	else
		qp->uc.tx_psn = qp->attr.sq_psn;
	qp->state = state;
	spin_unlock_bh(&qp->lock);
}
