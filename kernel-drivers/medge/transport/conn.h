/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The edge protocol, one connection: the reliable frame streams of one QP.
 *
 * Sans-IO: it takes operations, decoded frames and the time; it yields runs of
 * frames to send, pieces of payload to place, upcalls and a deadline. It knows
 * no skb, lock, timer or user pointer. The caller serializes all calls on one
 * connection (the kernel: under the QP's lock) and keeps the time monotonic.
 *
 * Send:     medge_conn_submit() > medge_conn_poll_tx() > medge_tx_header()
 * Receive:  medge_conn_receive() > medge_conn_step() > (copy, without the
 *           lock) > medge_conn_placed() > step ... > medge_conn_released()
 * Time:     medge_conn_deadline(), medge_conn_timeout()
 *
 * After receive, placed and timeout the caller polls for frames to send.
 *
 * Two number spaces a direction. Frames are numbered (psn) so that each arrives
 * exactly once; which rail carries it and when does not matter. Request ops
 * are numbered (op_no), so that they are performed as their fences say and
 * delivered in order. Responses are named by the request that they answer.
 */
#ifndef MEDGE_TRANSPORT_CONN_H
#define MEDGE_TRANSPORT_CONN_H

#include "env.h"
#include "wire.h"

#define MEDGE_NEVER (~0ULL)		/* a deadline that does not come */

/* Serial number arithmetic (RFC 1982) on psn and op_no. */
static inline s32 medge_seq_diff(u32 a, u32 b)
{
	return (s32)(a - b);
}

static inline bool medge_seq_before(u32 a, u32 b)
{
	return medge_seq_diff(a, b) < 0;
}

/* How an op ended, in both directions. The kernel maps it to ib_wc_status. */
enum medge_status {
	MEDGE_OK,
	MEDGE_LOCAL_LENGTH,		/* receive buffer too small */
	MEDGE_LOCAL_PROTECTION,		/* an SGE's key, bounds or rights */
	MEDGE_LOCAL_OPERATION,
	MEDGE_REMOTE_INVALID_REQUEST,
	MEDGE_REMOTE_ACCESS,
	MEDGE_REMOTE_OPERATION,
	MEDGE_RETRY_EXCEEDED,
	MEDGE_RNR_RETRY_EXCEEDED,
	MEDGE_LOCAL_BIND,		/* a window cannot be bound so */
	MEDGE_STATUSES,
};

/* What an op wants of its submitter, beside what the wire's flags say. */
enum medge_submit_flags {
	/* wait for all earlier READs and atomics first (IBV_SEND_FENCE) */
	MEDGE_SUBMIT_FENCE = BIT(0),
	/* its completion is wanted: ask for the ack */
	MEDGE_SUBMIT_SIGNALED = BIT(1),
};

/**
 * struct medge_request - a request op, as submitted
 * @opcode: enum medge_opcode, not RESPONSE
 * @flags: enum medge_op_flags
 * @submit: enum medge_submit_flags
 * @len: bytes; of an atomic MEDGE_ATOMIC_LEN go out and 8 come back
 * @addr, @rkey: remote target; of SEND_INV @rkey is what to invalidate. A
 *               SEND's @addr is 0, but for its high half, which is passed on
 * @imm: immediate data, for *_IMM; enum medge_flush, for FLUSH
 */
struct medge_request {
	u8 opcode;
	u8 flags;
	u8 submit;
	u32 len;
	u64 addr;
	u32 rkey;
	__be32 imm;
};

struct medge_conn;

/* What medge_conn_ops.target says of the memory that a request op names. */
struct medge_target {
	u8 nak;			/* enum medge_nak; RNR: no receive posted */
	bool relaxed;		/* all of it registered with RELAXED_ORDERING */
};

/*
 * Upcalls. They run inside calls on the connection, so under the caller's
 * serialization, and must not call the connection back.
 */
struct medge_conn_ops {
	/*
	 * A request op's first frame came (and again after an RNR): may it go
	 * where it says? For SEND, @op->addr is the receive index; the rest of
	 * the check is of the whole op (op_len), not of this frame. When a
	 * WRITE_IMM is performed, the receive it consumes is asked for as that
	 * of a SEND_IMM of no bytes.
	 */
	void (*target)(struct medge_conn *c, const struct medge_op *op,
		       struct medge_target *t);
	/*
	 * Request op @op of the peer has been performed, all before it were;
	 * called in op order. A SEND or *_IMM: consume the receive WQE of index
	 * @recv_index and deliver its CQE. CMP_SWAP, FETCH_ADD: not yet
	 * performed, medge_conn_ops.atomic does it.
	 */
	void (*performed)(struct medge_conn *c, const struct medge_op *op,
			  u32 recv_index);
	/*
	 * Do the atomic on the memory @op names, exactly once; all earlier ops
	 * have been performed. Stores the original value.
	 * Return: enum medge_nak; or MEDGE_NAK_LATER, nothing done: again after
	 * medge_conn_memory_came().
	 */
	u8 (*atomic)(struct medge_conn *c, const struct medge_op *op,
		     u64 operand, u64 swap, u64 *original);
	/*
	 * SEND_INV @op is about to be performed: invalidate the key it names.
	 * Return: enum medge_nak.
	 */
	u8 (*invalidate)(struct medge_conn *c, const struct medge_op *op);
	/*
	 * Own request @op_no is done, with @status; called in op order. After
	 * the first status that is not MEDGE_OK the connection is dead.
	 */
	void (*completed)(struct medge_conn *c, u32 op_no,
			  enum medge_status status);
	/*
	 * The peer broke the protocol or asked for what it may not have: the
	 * NAK goes out, nothing more is received (IBTA 9.9.3 class C errors).
	 * @status: how the receive WQE @op consumed ends, MEDGE_OK if it has none.
	 */
	void (*refused)(struct medge_conn *c, const struct medge_op *op,
			enum medge_nak nak, enum medge_status status);
	/*
	 * Is the payload of @op (offset, len) there to be read? Asked only of
	 * connections that may have to wait for memory, before a frame is given
	 * out. False: no data goes until medge_conn_memory_came().
	 */
	bool (*present)(struct medge_conn *c, const struct medge_op *op);
};

/* Answers an upcall alone, and never goes over the wire. */
enum { MEDGE_NAK_LATER = 255 };

/**
 * struct medge_conn_config - what a connection is made of
 * @psn: number of the first frame we send; looked at by
 *       medge_conn_enable_send()
 * @peer_psn: number of the first frame the peer sends
 * @dest_qpn: peer's QP number
 * @seg_len: payload bytes of a full frame: rail MTU less MEDGE_HDR_LEN
 * @run_max: payload bytes of a run at most, up to MEDGE_RUN_MAX
 * @window: frames in flight to begin with, for each rail of the peer's
 * @ord: READs and atomics we have in flight at most (max_rd_atomic)
 * @ird: READs and atomics the peer may have in flight (max_dest_rd_atomic)
 * @retry_cnt: IBTA 9.7.5.2.8; the op fails when nothing was acknowledged for
 *             (retry_cnt + 1) times @timeout_ns
 * @rnr_retry: RNR NAKs endured for one op; 7: any number
 * @rnr_timer: what we ask a peer to wait when we have no receive (table 45)
 * @timeout_ns: local ack timeout, 4.096 us << timeout; 0: infinite
 * @ack_frames: acknowledge after this many frames, however long (MultiEdge: 48), a
 *              superframe that was not cut being one; the sender asks for more
 *              acks where its window is small
 * @ack_delay_ns: or after this time (MultiEdge: 5 ms)
 */
struct medge_conn_config {
	u32 psn;
	u32 peer_psn;
	u32 dest_qpn;
	u16 seg_len;
	u32 run_max;
	u16 window;
	u8 ord;
	u8 ird;
	u8 retry_cnt;
	u8 rnr_retry;
	u8 rnr_timer;
	u64 timeout_ns;
	u16 ack_frames;
	u32 ack_delay_ns;
};

enum {
	/* Of @window: in frames (MultiEdge 2.1.2), and in bytes where frames are small. */
	MEDGE_WINDOW_FIRST = 512,
	MEDGE_WINDOW_BYTES = 4 << 20,
	MEDGE_ACK_FRAMES = 48,
	MEDGE_ACK_DELAY_NS = 5000000,
};

/*
 * The window of a connection whose frames have @seg_len bytes. So many small ones as make
 * superframes enough for several CPUs; what their path carries is looked after by bytes.
 */
static inline u16 medge_window_first(u32 seg_len)
{
	return clamp_t(u32, MEDGE_WINDOW_BYTES / seg_len, MEDGE_WINDOW_FIRST,
		       MEDGE_WINDOW);
}

/**
 * struct medge_tx - a run to send
 * @type: enum medge_frame_type
 * @rail: on which rail
 * @path: the path to the peer that starts there, see peer.h
 * @mac: where that leads: the frame's destination address
 * @nops: ops in the frame; above 1 only where @nframes is 1
 * @nframes: consecutive frames, to be sent as one superframe if above 1
 * @psn: of the first
 * @len: behind the Ethernet header: all frames' payload, the headers of the
 *       first frame only
 * @response: payload is read from the responder's memory (@op.addr, @op.rkey),
 *            or is @op's atomic result; else from own request @op.op_no
 * @op: the (first) op: op_no, offset and len say which bytes go out
 */
struct medge_tx {
	u8 type;
	u8 rail;
	u8 path;
	u8 mac[MEDGE_MAC_LEN];
	u8 nops;
	bool response;
	u16 nframes;
	u32 psn;
	u32 len;
	struct medge_op op;
	u64 atomic;		/* response to an atomic: the payload */
	bool is_atomic;
	bool again;		/* sent before */
};

/*
 * A received frame's state between receive and its last piece placed. The
 * caller keeps it with the frame's bytes (the kernel in skb->cb) and touches
 * nothing in it; a held frame is linked into the connection.
 */
struct medge_rx {
	struct medge_rx *next;
	u32 psn;		/* first frame of the run */
	u16 nframes;
	u8 flags;		/* enum medge_frame_flags */
	u8 nops;		/* left */
	u32 len;		/* of the current op's payload */
	u16 fence_dist;
	u16 parts;		/* frames that came by themselves, or superframes */
	u32 op_no;		/* the current op's */
	u32 offset;		/* of its payload in the op */
	u32 data_off;		/* and in the frame */
	u16 hdr_off;		/* of its header there */
	u8 opcode;
	u8 state;
};

/* What to place. */
struct medge_piece {
	struct medge_op op;	/* op.len bytes at op.data_off go to op.offset */
	u32 recv_index;		/* of a SEND */
};

enum medge_rx_step {
	MEDGE_RX_PLACE,		/* copy the piece, then medge_conn_placed() */
	MEDGE_RX_HELD,		/* keep the frame; released() gives it back */
	MEDGE_RX_DONE,		/* the frame's bytes are no longer needed */
};

/* Counters of one connection, for rdma statistic and tests. */
struct medge_conn_stats {
	u64 tx_frames, tx_bytes, rx_frames, rx_bytes;
	u64 tx_acks, rx_acks, tx_nacks, rx_nacks;
	u64 retransmits;	/* frames sent again, of them: */
	u64 lost_rail;		/* a later frame of the same path was acked */
	u64 lost_rto;		/* timeout */
	u64 lost_down;		/* their path went down */
	u64 probes;		/* tail-loss probes */
	u64 dups;		/* frames received twice */
	u64 held;		/* frames that had to wait for a fence */
	u64 rnr_naks_sent, rnr_naks_received;
	u64 drops[MEDGE_DROPS];
};

/* Size of a connection, to be zeroed memory of the caller's. */
size_t medge_conn_size(void);

/**
 * medge_conn_init() - make a connection
 * @c: medge_conn_size() bytes of zeros
 * @cfg: copied
 * @ops: kept
 * @now: ns, of the caller's monotonic clock
 *
 * It has no path until its first medge_conn_sync(), see peer.h.
 */
void medge_conn_init(struct medge_conn *c, const struct medge_conn_config *cfg,
		     const struct medge_conn_ops *ops, u64 now);
/* Before its memory is freed. */
void medge_conn_fini(struct medge_conn *c);

/* The caller's own pointer (the kernel's QP). */
void medge_conn_set_user(struct medge_conn *c, void *user);
void *medge_conn_user(const struct medge_conn *c);
const struct medge_conn_stats *medge_conn_stats(const struct medge_conn *c);

/*
 * Sending may start only now (RTS); receiving may from init on (RTR). Again: what
 * may change while a connection lives is now as in @cfg.
 */
void medge_conn_enable_send(struct medge_conn *c,
			    const struct medge_conn_config *cfg, u64 now);

/* That of its configuration may change at any time. */
void medge_conn_set_rnr_timer(struct medge_conn *c, u8 code);

/* By which rule runs are given to paths. */
enum medge_scheduler {
	MEDGE_SCHED_ROUND_ROBIN,	/* one run each, in turn */
	MEDGE_SCHED_WEIGHTED,		/* bytes in proportion to the weights */
	MEDGE_SCHED_WEIGHTED_DYNAMIC,	/* least bytes in flight over weight */
	MEDGE_SCHED_EARLIEST,		/* where it arrives first */
	MEDGE_SCHEDULERS,
};

const char *medge_scheduler_name(u32 scheduler);

/* May be changed at any time; EARLIEST until then. */
void medge_conn_schedule(struct medge_conn *c, enum medge_scheduler scheduler);

/*
 * How many of @want more requests can be submitted. If it is 0, there is room
 * again when one has completed.
 */
u32 medge_conn_send_room(struct medge_conn *c, u32 want);

/**
 * medge_conn_submit() - hand over a request; medge_conn_send_room() is not 0
 *
 * The memory it names must be stable until medge_conn_ops.completed.
 * Return: its op number; they are consecutive.
 */
u32 medge_conn_submit(struct medge_conn *c, const struct medge_request *req);

/* The number medge_conn_submit() will give next, and of the oldest not done. */
u32 medge_conn_next_op(const struct medge_conn *c);
u32 medge_conn_oldest_op(const struct medge_conn *c);

/*
 * Memory of this connection's ops may be absent for a while: it asks
 * medge_conn_ops.present from now on. What it waited for has come, or never will.
 */
void medge_conn_may_wait(struct medge_conn *c);
void medge_conn_memory_came(struct medge_conn *c);
/*
 * It was there, but has left before @tx, which was given out last, could be built.
 * @tx has not gone, which is nothing that a rail or the peer is to blame for.
 */
void medge_conn_memory_left(struct medge_conn *c, const struct medge_tx *tx);

/*
 * Op @op_no cannot be sent (its memory is gone, or was never right): it
 * completes with @status when all before it are done; none after it starts.
 */
void medge_conn_fail_op(struct medge_conn *c, u32 op_no, enum medge_status status);

/* As above, for a response whose memory is gone: the request is refused. */
void medge_conn_fail_response(struct medge_conn *c, u32 op_no);

/* Not for want of a CPU does it send no more now: there is more, and each path's window is full. */
bool medge_conn_is_full(struct medge_conn *c, u64 now);

/**
 * medge_conn_poll_tx() - next run to send
 *
 * Return: false when there is nothing (more) to send now. The caller calls
 * until then or until its budget is used up; what it was given it must send or
 * drop (a drop is recovered as a loss).
 */
bool medge_conn_poll_tx(struct medge_conn *c, u64 now, struct medge_tx *tx);

/* What is sent of medge_conn_farewell(). */
enum { MEDGE_FAREWELLS = 3 };

/**
 * medge_conn_farewell() - an ack, before the connection ends
 *
 * The last one may be lost, and who then repeats what it was for finds nobody who
 * would say it again. Each goes by another path than the one before.
 * Return: false if none is needed, as nothing came lately; @tx is sent otherwise.
 */
bool medge_conn_farewell(struct medge_conn *c, u64 now, struct medge_tx *tx);

/**
 * medge_tx_header() - encode the headers of a run
 * @buf: MEDGE_HDR_LEN bytes (data) or tx->len bytes (ack); for nops > 1
 *       further op headers come from medge_tx_next_op() and
 *       medge_wire_encode_op(), one behind the other
 * Return: bytes written.
 */
u32 medge_tx_header(struct medge_conn *c, const struct medge_tx *tx, void *buf);

/* Advance @op to the next of a frame with several; false: that was the last. */
bool medge_tx_next_op(struct medge_conn *c, const struct medge_tx *tx,
		      struct medge_op *op);

/* Data frame @f is, or begins with, what all frames before have arrived for, or was before. */
bool medge_conn_expects(const struct medge_conn *c, const struct medge_frame *f);

/**
 * medge_conn_receive() - a frame of this connection came
 * @rail: the local rail it came on
 * @f: decoded
 * @ack: decoded second header of an ack frame, else NULL
 * @rx: state of the frame's pieces, if the result is MEDGE_DROP_NONE and
 *      rx->nframes is not 0
 * @skip: in: frames of the run already dealt with, first 0; out: the value for
 *        the next call. While *skip < f->nframes afterwards, the run holds more
 *        that may be new: call again with another @rx (and its own hold on the
 *        bytes); the acknowledgment is processed only at the first call.
 *
 * Return: why nothing of it was accepted, or MEDGE_DROP_NONE.
 */
enum medge_drop medge_conn_receive(struct medge_conn *c, u64 now, u32 rail,
				   const struct medge_frame *f,
				   const struct medge_ack *ack,
				   struct medge_rx *rx, u16 *skip);

/**
 * medge_conn_step() - what to do next with an accepted frame
 * @buf: the frame's bytes, linear as for medge_wire_decode(), unchanged
 * @piece: set for MEDGE_RX_PLACE
 */
enum medge_rx_step medge_conn_step(struct medge_conn *c, u64 now,
				   struct medge_rx *rx, const void *buf,
				   struct medge_piece *piece);

/* What medge_conn_step() said is to be placed, once more. */
void medge_conn_piece(const struct medge_rx *rx, const void *buf,
		      struct medge_piece *piece);

/*
 * The piece of @rx is placed, or could not be (@nak other than NONE; for a
 * response that could not be placed, its request fails with
 * MEDGE_LOCAL_PROTECTION).
 */
void medge_conn_placed(struct medge_conn *c, u64 now, struct medge_rx *rx,
		       const struct medge_piece *piece, enum medge_nak nak);

/* A held frame that may go on (with medge_conn_step()), or NULL. */
struct medge_rx *medge_conn_released(struct medge_conn *c);

/* Teardown: each held frame once, for the caller to free; then NULL. */
struct medge_rx *medge_conn_unhold(struct medge_conn *c);

/* A receive was posted; only needed while medge_conn_rnr() is true. */
void medge_conn_recv_posted(struct medge_conn *c);
bool medge_conn_rnr(const struct medge_conn *c);

/* When medge_conn_timeout() wants to be called, ns; MEDGE_NEVER: not at all. */
u64 medge_conn_deadline(struct medge_conn *c);
/* That is not before this, which costs less to say. */
u64 medge_conn_earliest(const struct medge_conn *c);
void medge_conn_timeout(struct medge_conn *c, u64 now);

/*
 * The peer was refused (medge_conn_ops.refused). Whatever the QP's state, go on
 * to call medge_conn_receive() for frames that come: it accepts nothing, but repeats
 * the refusal, which may have been lost.
 */
bool medge_conn_refusing(const struct medge_conn *c);

/* What the users of a connection may want to know of it. */
struct medge_conn_info {
	u32 seg_len;
	u32 ops_waiting;	/* submitted, no frame sent */
	u32 ops_outstanding;	/* of others, not completed */
	u32 frames_unacked;
	u32 frames_held;
	bool rnr;		/* medge_conn_rnr() */
	bool rnr_wait;		/* the peer's is */
};

void medge_conn_query(const struct medge_conn *c, struct medge_conn_info *info);

/**
 * medge_conn_describe() - tell the connection's state, for people
 * @put: called with each name and value; other than 0 ends it
 *
 * Return: what the last call of @put returned.
 */
int medge_conn_describe(const struct medge_conn *c, u64 now,
			int (*put)(void *arg, const char *name, u64 value),
			void *arg);

/* No own request, response or acknowledgment is outstanding. */
bool medge_conn_idle(const struct medge_conn *c);

#endif /* MEDGE_TRANSPORT_CONN_H */
