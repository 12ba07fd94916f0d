/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Tracepoints, /sys/kernel/tracing/events/medge: frames, ops, holds, rails, paths. They
 * cost nothing to speak of while they are off.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM medge

#if !defined(MEDGE_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define MEDGE_TRACE_H

#include <linux/etherdevice.h>
#include <linux/tracepoint.h>

#include "device.h"
#include "node.h"
#include "qp.h"

#ifndef MEDGE_TRACE_NAMES
#define MEDGE_TRACE_NAMES
#define MEDGE_OP_NAMES							\
	{ MEDGE_OP_WRITE, "write" }, { MEDGE_OP_WRITE_IMM, "write_imm" },	\
	{ MEDGE_OP_SEND, "send" }, { MEDGE_OP_SEND_IMM, "send_imm" },	\
	{ MEDGE_OP_READ, "read" }, { MEDGE_OP_CMP_SWAP, "cmp_swap" },	\
	{ MEDGE_OP_FETCH_ADD, "fetch_add" },				\
	{ MEDGE_OP_SEND_INV, "send_inv" },				\
	{ MEDGE_OP_ATOMIC_WRITE, "atomic_write" },			\
	{ MEDGE_OP_FLUSH, "flush" }, { MEDGE_OP_NOP, "nop" },		\
	{ MEDGE_OP_RESPONSE, "response" }
#define MEDGE_RAIL_WHY_NAMES						\
	{ MEDGE_RAIL_COMES_UP, "comes up" },				\
	{ MEDGE_RAIL_IS_DOWN, "is down" },				\
	{ MEDGE_RAIL_NO_CARRIER, "no carrier" },			\
	{ MEDGE_RAIL_SMALL_MTU, "small mtu" },				\
	{ MEDGE_RAIL_LEAVES, "leaves" }
#define MEDGE_PATH_STATE_NAMES						\
	{ MEDGE_PATH_PROBING, "probing" }, { MEDGE_PATH_UP, "up" },	\
	{ MEDGE_PATH_SUSPECT, "suspect" }, { MEDGE_PATH_DOWN, "down" },	\
	{ MEDGE_PATH_DRAINING, "draining" }
#define MEDGE_PATH_WHY_NAMES						\
	{ MEDGE_WHY_NEW, "new" }, { MEDGE_WHY_ANSWERED, "answered" },	\
	{ MEDGE_WHY_SILENT, "silent" }, { MEDGE_WHY_DOUBTED, "doubted" },	\
	{ MEDGE_WHY_NO_ANSWER, "no answer" }, { MEDGE_WHY_LOSSY, "lossy" },	\
	{ MEDGE_WHY_CARRIER, "carrier" }, { MEDGE_WHY_ADMIN, "admin" },	\
	{ MEDGE_WHY_GONE, "gone" }
#define MEDGE_OP_FLAG_NAMES						\
	{ MEDGE_OP_STRICT, "strict" },					\
	{ MEDGE_OP_FENCE_BACKWARD, "backward" },			\
	{ MEDGE_OP_FENCE_FORWARD, "forward" },				\
	{ MEDGE_OP_SOLICITED, "solicited" }
#endif

/* A run of frames of a connection goes out; @again: it has before. */
TRACE_EVENT(medge_send,
	TP_PROTO(const struct medge_qp *qp, const struct medge_tx *tx),
	TP_ARGS(qp, tx),
	TP_STRUCT__entry(
		__array(char, dev, IB_DEVICE_NAME_MAX)
		__field(u32, qpn)
		__field(u32, psn)
		__field(u32, len)
		__field(u32, op_no)
		__field(u16, nframes)
		__field(u8, nops)
		__field(u8, opcode)
		__field(u8, rail)
		__field(bool, ack)
		__field(bool, again)
	),
	TP_fast_assign(
		strscpy(__entry->dev, dev_name(&qp->dev->ibdev.dev),
			sizeof(__entry->dev));
		__entry->qpn = qp->qpn;
		__entry->psn = tx->psn;
		__entry->len = tx->len;
		__entry->op_no = tx->op.op_no;
		__entry->nframes = tx->nframes;
		__entry->nops = tx->nops;
		__entry->opcode = tx->op.opcode;
		__entry->rail = tx->rail;
		__entry->ack = tx->type == MEDGE_FRAME_ACK;
		__entry->again = tx->again;
	),
	TP_printk("%s qp %u rail %u %s%s psn %u+%u len %u op %u+%u",
		  __entry->dev, __entry->qpn, __entry->rail,
		  __entry->ack ? "ack" :
		  __print_symbolic(__entry->opcode, MEDGE_OP_NAMES),
		  __entry->again ? " again" : "", __entry->psn,
		  __entry->nframes, __entry->len, __entry->op_no,
		  __entry->nops)
);

/* A frame, or an uncut superframe, of a connection has come; @drop: and is not wanted. */
TRACE_EVENT(medge_receive,
	TP_PROTO(const struct medge_qp *qp, u32 rail,
		 const struct medge_frame *frame, u8 drop),
	TP_ARGS(qp, rail, frame, drop),
	TP_STRUCT__entry(
		__array(char, dev, IB_DEVICE_NAME_MAX)
		__field(u32, qpn)
		__field(u32, psn)
		__field(u32, ack_psn)
		__field(u32, ack_op)
		__field(u16, nframes)
		__field(u8, rail)
		__field(u8, drop)
		__field(bool, ack)
	),
	TP_fast_assign(
		strscpy(__entry->dev, dev_name(&qp->dev->ibdev.dev),
			sizeof(__entry->dev));
		__entry->qpn = qp->qpn;
		__entry->psn = frame->psn;
		__entry->ack_psn = frame->ack_psn;
		__entry->ack_op = frame->ack_op;
		__entry->nframes = frame->nframes;
		__entry->rail = rail;
		__entry->drop = drop;
		__entry->ack = frame->type == MEDGE_FRAME_ACK;
	),
	TP_printk("%s qp %u rail %u %s psn %u+%u ack_psn %u ack_op %u drop %u",
		  __entry->dev, __entry->qpn, __entry->rail,
		  __entry->ack ? "ack" : "data", __entry->psn,
		  __entry->nframes, __entry->ack_psn, __entry->ack_op,
		  __entry->drop)
);

/* A work request is taken from the ring. */
TRACE_EVENT(medge_submit,
	TP_PROTO(const struct medge_qp *qp, u32 op_no,
		 const struct medge_request *req),
	TP_ARGS(qp, op_no, req),
	TP_STRUCT__entry(
		__array(char, dev, IB_DEVICE_NAME_MAX)
		__field(u32, qpn)
		__field(u32, op_no)
		__field(u32, len)
		__field(u8, opcode)
		__field(u8, flags)
	),
	TP_fast_assign(
		strscpy(__entry->dev, dev_name(&qp->dev->ibdev.dev),
			sizeof(__entry->dev));
		__entry->qpn = qp->qpn;
		__entry->op_no = op_no;
		__entry->len = req->len;
		__entry->opcode = req->opcode;
		__entry->flags = req->flags;
	),
	TP_printk("%s qp %u op %u %s len %u %s", __entry->dev, __entry->qpn,
		  __entry->op_no,
		  __print_symbolic(__entry->opcode, MEDGE_OP_NAMES),
		  __entry->len,
		  __print_flags(__entry->flags, "|", MEDGE_OP_FLAG_NAMES))
);

DECLARE_EVENT_CLASS(medge_op,
	TP_PROTO(const struct medge_qp *qp, u32 op_no, u8 status),
	TP_ARGS(qp, op_no, status),
	TP_STRUCT__entry(
		__array(char, dev, IB_DEVICE_NAME_MAX)
		__field(u32, qpn)
		__field(u32, op_no)
		__field(u8, status)
	),
	TP_fast_assign(
		strscpy(__entry->dev, dev_name(&qp->dev->ibdev.dev),
			sizeof(__entry->dev));
		__entry->qpn = qp->qpn;
		__entry->op_no = op_no;
		__entry->status = status;
	),
	TP_printk("%s qp %u op %u status %u", __entry->dev, __entry->qpn,
		  __entry->op_no, __entry->status)
);

/* A request of the peer's is performed here; its op number is the peer's. */
DEFINE_EVENT(medge_op, medge_perform,
	TP_PROTO(const struct medge_qp *qp, u32 op_no, u8 status),
	TP_ARGS(qp, op_no, status));

/* A request of the peer's is refused; status: enum medge_nak. */
DEFINE_EVENT(medge_op, medge_refuse,
	TP_PROTO(const struct medge_qp *qp, u32 op_no, u8 status),
	TP_ARGS(qp, op_no, status));

/* Ours is complete; status: enum medge_status. */
DEFINE_EVENT(medge_op, medge_complete,
	TP_PROTO(const struct medge_qp *qp, u32 op_no, u8 status),
	TP_ARGS(qp, op_no, status));

/* A request of the peer's finds no receive. */
DEFINE_EVENT(medge_op, medge_rnr,
	TP_PROTO(const struct medge_qp *qp, u32 op_no, u8 status),
	TP_ARGS(qp, op_no, status));

DECLARE_EVENT_CLASS(medge_hold,
	TP_PROTO(const struct medge_qp *qp, const struct medge_rx *rx),
	TP_ARGS(qp, rx),
	TP_STRUCT__entry(
		__array(char, dev, IB_DEVICE_NAME_MAX)
		__field(u32, qpn)
		__field(u32, psn)
		__field(u32, op_no)
		__field(u16, nframes)
	),
	TP_fast_assign(
		strscpy(__entry->dev, dev_name(&qp->dev->ibdev.dev),
			sizeof(__entry->dev));
		__entry->qpn = qp->qpn;
		__entry->psn = rx->psn;
		__entry->op_no = rx->op_no;
		__entry->nframes = rx->nframes;
	),
	TP_printk("%s qp %u psn %u+%u op %u", __entry->dev, __entry->qpn,
		  __entry->psn, __entry->nframes, __entry->op_no)
);

/* A frame waits for a fence, for its turn, or for a receive ... */
DEFINE_EVENT(medge_hold, medge_hold,
	TP_PROTO(const struct medge_qp *qp, const struct medge_rx *rx),
	TP_ARGS(qp, rx));

/* ... and goes on. */
DEFINE_EVENT(medge_hold, medge_release,
	TP_PROTO(const struct medge_qp *qp, const struct medge_rx *rx),
	TP_ARGS(qp, rx));

/* A rail can be used from now on, or cannot. */
TRACE_EVENT(medge_rail,
	TP_PROTO(const struct medge_rail *rail, bool up, u8 why),
	TP_ARGS(rail, up, why),
	TP_STRUCT__entry(
		__array(char, dev, IB_DEVICE_NAME_MAX)
		__array(char, netdev, IFNAMSIZ)
		__field(u32, index)
		__field(u32, speed)
		__field(bool, up)
		__field(u8, why)
	),
	TP_fast_assign(
		strscpy(__entry->dev, dev_name(&rail->dev->ibdev.dev) ?: "",
			sizeof(__entry->dev));
		strscpy(__entry->netdev, netdev_name(rail->netdev),
			sizeof(__entry->netdev));
		__entry->index = rail->index;
		__entry->speed = rail->speed;
		__entry->up = up;
		__entry->why = why;
	),
	TP_printk("%s rail %u %s %s, %u Mbit/s: %s", __entry->dev,
		  __entry->index, __entry->netdev, __entry->up ? "up" : "down",
		  __entry->speed,
		  __print_symbolic(__entry->why, MEDGE_RAIL_WHY_NAMES))
);

/* A path to a peer is in another state. */
TRACE_EVENT(medge_path,
	TP_PROTO(const struct medge_node *node,
		 const struct medge_path_info *path),
	TP_ARGS(node, path),
	TP_STRUCT__entry(
		__array(char, dev, IB_DEVICE_NAME_MAX)
		__array(u8, peer, ETH_ALEN)
		__field(u8, rail)
		__field(u8, peer_rail)
		__field(u8, state)
		__field(u8, why)
		__field(u32, weight)
		__field(u32, loss_ppm)
		__field(u64, srtt)
	),
	TP_fast_assign(
		strscpy(__entry->dev, dev_name(&node->dev->ibdev.dev),
			sizeof(__entry->dev));
		ether_addr_copy(__entry->peer, node->l2.dmac);
		__entry->rail = path->rail;
		__entry->peer_rail = path->peer_rail;
		__entry->state = path->state;
		__entry->why = path->why;
		__entry->weight = path->weight;
		__entry->loss_ppm = path->loss_ppm;
		__entry->srtt = path->srtt;
	),
	TP_printk("%s peer %pM rail %u peer_rail %d %s: %s, weight %u loss_ppm %u srtt_us %llu",
		  __entry->dev, __entry->peer, __entry->rail,
		  __entry->peer_rail == MEDGE_RAIL_ANY ? -1 :
		  __entry->peer_rail,
		  __print_symbolic(__entry->state, MEDGE_PATH_STATE_NAMES),
		  __print_symbolic(__entry->why, MEDGE_PATH_WHY_NAMES),
		  __entry->weight, __entry->loss_ppm,
		  div_u64(__entry->srtt, NSEC_PER_USEC))
);

/* A DMA engine was measured: ns for a copy of so many bytes, one of several. */
TRACE_EVENT(medge_engine,
	TP_PROTO(const char *chan, u32 len, u64 cpu, u64 handed, u64 engine),
	TP_ARGS(chan, len, cpu, handed, engine),
	TP_STRUCT__entry(
		__array(char, chan, 32)
		__field(u32, len)
		__field(u64, cpu)
		__field(u64, handed)
		__field(u64, engine)
	),
	TP_fast_assign(
		strscpy(__entry->chan, chan, sizeof(__entry->chan));
		__entry->len = len;
		__entry->cpu = cpu;
		__entry->handed = handed;
		__entry->engine = engine;
	),
	TP_printk("%s len %u cpu_ns %llu handed_ns %llu engine_ns %llu",
		  __entry->chan, __entry->len, __entry->cpu, __entry->handed,
		  __entry->engine)
);

#endif /* MEDGE_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
