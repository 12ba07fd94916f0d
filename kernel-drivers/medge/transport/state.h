/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A connection's state: private to the transport's files.
 *
 *   conn.c      life, rails, time
 *   request.c   our requests, submitted and completed in order
 *   response.c  our answers to the peer's
 *   sendq.c     requests and responses > frames
 *   sched.c     which path carries them; schedulers.c: by which rule
 *   congestion.c  how much may be in flight on a path
 *   share.c     what it knows of paths, and the peer with it
 *   loss.c      what was lost, and when that is known
 *   ack.c       what is acknowledged, both ways
 *   reply.c     when an ack waits for data to carry it
 *   recvq.c     frames > pieces > performed ops
 *   fence.c     what may be placed now, and what is held
 *   describe.c  the state, for people
 */
#ifndef MEDGE_TRANSPORT_STATE_H
#define MEDGE_TRANSPORT_STATE_H

#include "bits.h"
#include "congestion.h"
#include "conn.h"
#include "peer_state.h"
#include "table.h"

enum {
	MEDGE_OPS_IN_FRAME = 255,
	/* Slots that a connection has before it grows. */
	MEDGE_SENT_FIRST = 4,
	MEDGE_OPS_FIRST = 4,
	MEDGE_RESPONSES_FIRST = 1,
	MEDGE_PATHS_FIRST = 2,
	MEDGE_RAILS_FIRST = 2,
};

static_assert(!(MEDGE_WINDOW & (MEDGE_WINDOW - 1)));
static_assert(!(MEDGE_OP_WINDOW & (MEDGE_OP_WINDOW - 1)));
static_assert(!(MEDGE_MAX_RD_ATOMIC & (MEDGE_MAX_RD_ATOMIC - 1)));

enum {
	/* Before a round trip has been measured. */
	MEDGE_RTT_GUESS = MEDGE_MSEC,
	MEDGE_PATIENCE_MAX = 100 * MEDGE_MSEC,
	/* Half of it is lost in so long. */
	MEDGE_IMPATIENT = 20 * MEDGE_MSEC,
	/* A path may be behind others for so long, and for what it was of late. */
	MEDGE_BEHIND_MIN = 1500 * MEDGE_USEC,
	/* Time in which nothing at all was heard counts for no more than this. */
	MEDGE_CLOCK_STEP = MEDGE_MSEC / 2,
	/* A timer that is later says that we were asleep, not the peer. */
	MEDGE_TIMER_LATE = 2 * MEDGE_MSEC,
	/* A probe or timeout is never earlier: timers are no finer everywhere. */
	MEDGE_PTO_MIN = MEDGE_MSEC,
	/* It grows to this where nothing is lost, by a part of the time since the last loss. */
	MEDGE_PTO_CALM = 4 * MEDGE_MSEC,
	MEDGE_PTO_CALM_PART = 8,
	MEDGE_RTO_MIN = 10 * MEDGE_MSEC,
	MEDGE_RTO_MAX = 1000 * MEDGE_MSEC,
	/* What it learns of paths, a connection tells no more often. */
	MEDGE_SYNC_MIN = 2 * MEDGE_MSEC,
	MEDGE_PATH_UNKNOWN = 255,
	/*
	 * A reply comes so soon after the peer has asked for an ack. After so many in a
	 * row, the next ack waits for its own; when it has done so in vain, it takes twice
	 * as many, until as many more have come.
	 */
	MEDGE_REPLY_SOON = 100 * MEDGE_USEC,
	MEDGE_REPLIES_MIN = 8,
	MEDGE_REPLIES_MAX = 4096,
	/* Time, also of a timer that finds it has moved on; and what an ack less is worth. */
	MEDGE_REPLY_WAIT_MIN = 500 * MEDGE_USEC,
	MEDGE_REPLY_WORTH = 4 * MEDGE_USEC,
};

enum medge_sent_flags {
	MEDGE_SENT_ACKED = BIT(0),	/* received by the peer */
	MEDGE_SENT_LOST = BIT(1),	/* waits to be sent again */
	MEDGE_SENT_AGAIN = BIT(2),	/* was sent more than once */
	MEDGE_SENT_RESPONSE = BIT(3),
	MEDGE_SENT_ACK_REQ = BIT(4),
	MEDGE_SENT_ECHO = BIT(5),	/* its path is measured by it */
};

/**
 * struct medge_sent - a frame in flight, slot psn
 * @time: of its latest transmission
 * @path_seq: counts transmissions of this connection on that path
 * @op_no: its (first) request; of a response its slot number
 * @index: of the frame in the op: its offset is index * seg_len
 * @len: bytes behind the Ethernet header
 */
struct medge_sent {
	u64 time;
	u32 path_seq;
	u32 op_no;
	u32 index;
	u16 len;
	u8 path;
	u8 nops;
	u8 flags;
};

/**
 * struct medge_send_op - a request of ours, slot op_no
 * @next_index: first frame not yet sent
 * @fence_dist: distance to the last op before it with a forward fence, or 0
 * @read_dist: so, but to a READ or atomic with one
 * @recv_index: of the receive it will consume, if it does
 * @placed: bytes of the response placed
 * @busy: pieces of it being copied
 * @status: not MEDGE_OK: it fails
 */
struct medge_send_op {
	struct medge_request req;
	u32 next_index;
	u32 recv_index;
	u32 placed;
	u16 fence_dist;
	u16 read_dist;
	u16 busy;
	u8 status;
	bool answered;
};

enum medge_recv_op_flags {
	MEDGE_RECV_KNOWN = BIT(0),	/* a frame of it came */
	MEDGE_RECV_TARGET = BIT(1),	/* target resolved */
	MEDGE_RECV_RELAXED = BIT(2),	/* all target memory is relaxed */
	MEDGE_RECV_DONE = BIT(3),	/* all frames placed */
	MEDGE_RECV_ACK_REQ = BIT(4),	/* ack when performed */
};

/**
 * struct medge_recv_op - a request of the peer's, slot op_no
 * @op: as its first frame had it (offset and len are of no meaning)
 * @placed: bytes placed; for strict ops also how far
 * @busy: pieces being copied
 * @nak: enum medge_nak, when its turn comes
 * @operand, @swap: of an atomic
 */
struct medge_recv_op {
	struct medge_op op;
	u32 placed;
	u16 busy;
	u8 flags;
	u8 nak;
	u64 operand;
	u64 swap;
};

/**
 * struct medge_response - an answer to a READ or atomic of the peer's
 * @next_index: first frame not yet sent
 * @acked: frames acknowledged
 * @gone: its memory cannot be read any more; seen when @gone_acks explicit acks
 *        had come
 */
struct medge_response {
	u32 op_no;
	u32 len;
	u64 addr;
	u32 rkey;
	__be32 imm;
	u32 next_index;
	u32 acked;
	bool is_atomic;
	bool gone;
	u32 gone_acks;
	u64 atomic;
};

/**
 * struct medge_conn_path - what one connection knows of a path
 * @state: enum medge_path_state, the peer's, or our own suspicion until it
 *         has been told; so are @weight, @rail, @mac, @moves
 * @next_seq: number of the next transmission on it
 * @acked_seq: all but a few transmissions before it are judged by it
 * @expect_seq: acknowledged next if nothing is late
 * @charged: bytes sent on it over its weight, the static share's virtual time
 * @cong: what it may have in flight
 * @srtt, @rttvar: ns, RFC 6298; 0: not measured
 * @reorder: ns a frame may be later than its successor; grows with duplicates
 * @since: by the connection's clock, since when it has owed an ack
 * @behind: ns for which others were heard that were to be later; of late
 * @newest: latest transmission that the ack at hand is the first to acknowledge
 * @report: what the peer has not been told yet
 */
struct medge_conn_path {
	u8 state;
	u8 rail;
	u8 mac[MEDGE_MAC_LEN];
	bool any_acked;
	u32 weight;
	u32 moves;
	u32 next_seq;
	u32 acked_seq;
	u32 expect_seq;
	u64 charged;
	struct medge_cong cong;
	u64 srtt;
	u64 rttvar;
	u64 reorder;
	u64 since;
	u64 behind;
	u64 newest;
	struct medge_path_report report;
};

/**
 * struct medge_conn_rail - what one connection knows of a rail it receives on
 * @rx_high: highest psn received on it
 * @echo_psn: to be echoed on it
 * @rx_time: when it was; 0: never
 */
struct medge_conn_rail {
	u32 rx_high;
	u32 echo_psn;
	u64 rx_time;
};

/* What a connection has slots for from the beginning. */
struct medge_conn_first {
	struct medge_sent sent[MEDGE_SENT_FIRST];
	struct medge_send_op sops[MEDGE_OPS_FIRST];
	struct medge_recv_op rops[MEDGE_OPS_FIRST];
	struct medge_response resps[MEDGE_RESPONSES_FIRST];
	struct medge_conn_path paths[MEDGE_PATHS_FIRST];
	struct medge_conn_rail rails[MEDGE_RAILS_FIRST];
};

struct medge_conn {
	struct medge_conn_config cfg;
	const struct medge_conn_ops *ops;
	void *user;
	struct medge_conn_stats stats;
	bool psn_known;
	bool can_send;
	bool dead;			/* no more requests go out */
	bool fresh;			/* has work after having had none */
	bool may_wait;			/* payload may have to wait for its memory */
	bool waits;			/* some does */
	u32 npaths;			/* one above the highest there is */
	u32 nrails;			/* one above the highest received on */
	u32 peer_gen;			/* of the paths' copy */
	bool report_now;		/* the peer must be told at once */
	bool report_some;		/* there is something to tell it */
	u64 sync_at;			/* not before that, then */
	u32 late;			/* frames, taken for lost, had arrived */
	u8 scheduler;			/* enum medge_scheduler */
	u8 sched_last;			/* the path used last */
	u64 paced_at;			/* when a paced path may send again */
	u64 unsent;			/* bytes submitted, not yet sent once */

	/* ---- sendq: frames ---- */
	u32 snd_una;			/* oldest frame not acknowledged */
	u32 snd_nxt;			/* next new frame */
	u32 window;			/* frames between them at most */
	u32 nlost;			/* frames marked LOST */
	u32 nunacked;			/* frames not marked ACKED */
	u32 lost_hint;			/* no LOST frame before it */
	u8 nends;			/* rails of the peer's that @window began for */
	bool turn;			/* responses and requests alternate */

	/* ---- sendq: requests ---- */
	u32 op_next;			/* next to be submitted */
	u32 op_send;			/* next with frames to send */
	u32 op_oldest;			/* oldest not completed */
	u32 op_performed;		/* the peer performed all before it */
	u32 recv_index_next;
	u32 fence_op;			/* last submitted with a forward fence */
	bool any_fence;
	u32 fence_read;			/* last READ, atomic with one */
	bool any_fence_read;
	bool any_failed;
	u32 failed_op;			/* the first that cannot be sent */
	u16 reads_out;			/* READs, atomics sent, not answered */

	/* ---- sendq: RNR, as requester ---- */
	bool rnr_wait;			/* the peer has no receive */
	bool rnr_poke;			/* time to ask again */
	bool rnr_poked;			/* asked, not answered yet */
	u32 rnr_op;
	u32 rnr_count;
	u16 rnr_seq;			/* of the last NAK seen */
	u64 rnr_at;
	/* The peer refused nak_op. */
	u8 nak;
	u32 nak_op;

	/* ---- sendq: responses ---- */
	u32 resp_oldest;		/* not all acknowledged */
	u32 resp_send;			/* next with frames to send */
	u32 resp_next;			/* next to be queued */

	/* ---- recvq ---- */
	u32 rcv_nxt;			/* all frames before it are settled */
	u32 rcv_high;			/* one after the highest received */
	u32 rcv_latest;			/* received last */
	u64 received[MEDGE_BITMAP_WORDS];
	u64 settled[MEDGE_BITMAP_WORDS];
	u32 rop_next;			/* all request ops before it are performed */
	u32 recv_msn;			/* receives consumed */
	bool recheck;			/* a held frame may be ready */
	bool refused;			/* class C error: receive no more */
	bool rcv_rnr;			/* rop_next waits for a receive */
	u8 refuse_nak;
	u32 refuse_op;
	u16 rnr_nak_seq;
	u16 nheld;
	u16 nheld_loose;		/* of them, not waiting for their turn */
	struct medge_rx *held;		/* in psn order */
	struct medge_rx *held_last;

	/* ---- ack ---- */
	bool ack_now;
	bool ack_word;			/* what data cannot say is waited for */
	bool nack_now;
	bool poke_now;			/* ask the peer for its state */
	u8 poke_paths;			/* on so many paths more */
	u64 poked;			/* when it was, for want of acks */
	u16 ack_pending;		/* frames and uncut runs since the last ack sent */
	u64 ack_at;			/* deadline of a delayed ack */
	u64 asked_at;			/* one was asked for, no data has gone out since; or 0 */
	u16 replies;			/* so many in a row went out with data soon */
	u16 replies_trusted;		/* from so many on, one that is asked for waits for data */
	bool reply_was_late;		/* the one before */
	u8 ack_rail;			/* where frames come from */
	u8 ack_last_path;		/* where the last explicit ack went */
	bool ack_doubt;			/* that one may have been lost */
	u32 nacked;			/* the hole that was nacked last */
	bool any_nacked;
	u64 echo_rails;			/* that owe an echo */
	u64 marked_rails;		/* frames have met congestion, which was not said */
	u8 acks_on;			/* the rail the ack at hand came on */
	bool echo_now;			/* the ack at hand is one, to the first */
	u32 peer_dups;			/* as its last ack said */

	/* ---- loss ---- */
	u64 progress;			/* last time that anything was acked */
	u64 loss_at;			/* next look for losses */
	u64 last_tx;			/* of data */
	bool last_ack_req;
	u8 backoff;			/* timeouts in a row */
	bool probed;			/* the tail was, since the last ack */
	u64 lost_at;			/* a frame was given up; or our life began */
	u64 acked_time;			/* latest transmission time acked */
	u64 clock;			/* ns in which the peer was heard, see loss.c */
	u64 clock_at;			/* when it was set */
	bool gap;			/* a path was acked out of its order */
	u64 patience;			/* ns more for silent paths, see loss.c */
	u64 patient_at;			/* when it may grow again */
	u64 impatient_at;		/* when it is halved */
	u64 grace;			/* ns more until the timeout */

	/* ---- what grows: accessors below ---- */
	struct medge_table sent;	/* snd_una to snd_nxt */
	struct medge_table sops;	/* op_oldest to op_next */
	struct medge_table rops;	/* rop_next and all behind it */
	struct medge_table resps;	/* resp_oldest to resp_next */
	struct medge_table rails;	/* by index */
	struct medge_conn_path *paths;	/* paths_max of them */
	u32 paths_max;

	/* The best of the paths that leave on a rail; MEDGE_PATH_UNKNOWN: none. */
	u8 rail_path[MEDGE_MAX_RAILS];
	struct medge_conn_first first;
};

/* There are thousands: this is one of twelve in eight pages. */
static_assert(sizeof(struct medge_conn) <= 32768 / 12);

static inline struct medge_sent *medge_sent(const struct medge_conn *c, u32 psn)
{
	return medge_table_slot(&c->sent, psn, sizeof(struct medge_sent));
}

/* The one after @before. */
static inline struct medge_sent *medge_sent_next(const struct medge_conn *c,
						 struct medge_sent *before,
						 u32 psn)
{
	return medge_table_next(&c->sent, before, psn, sizeof(*before));
}

static inline struct medge_send_op *medge_sop(const struct medge_conn *c,
					      u32 op_no)
{
	return medge_table_slot(&c->sops, op_no, sizeof(struct medge_send_op));
}

static inline struct medge_recv_op *medge_rop(const struct medge_conn *c,
					      u32 op_no)
{
	return medge_table_slot(&c->rops, op_no, sizeof(struct medge_recv_op));
}

static inline struct medge_response *medge_resp(const struct medge_conn *c,
						u32 slot)
{
	return medge_table_slot(&c->resps, slot, sizeof(struct medge_response));
}

static inline struct medge_conn_rail *medge_rx_rail(const struct medge_conn *c,
						    u32 rail)
{
	return medge_table_slot(&c->rails, rail, sizeof(struct medge_conn_rail));
}

static inline bool medge_opcode_answers(u8 opcode)
{
	return opcode == MEDGE_OP_READ || opcode == MEDGE_OP_CMP_SWAP ||
	       opcode == MEDGE_OP_FETCH_ADD;
}

static inline bool medge_opcode_is_send(u8 opcode)
{
	return opcode == MEDGE_OP_SEND || opcode == MEDGE_OP_SEND_IMM ||
	       opcode == MEDGE_OP_SEND_INV;
}

static inline bool medge_opcode_consumes(u8 opcode)
{
	return medge_opcode_is_send(opcode) || opcode == MEDGE_OP_WRITE_IMM;
}

/* Bytes of payload that go out with a request. */
static inline u32 medge_request_payload(const struct medge_request *req)
{
	return medge_opcode_bare(req->opcode) ? 0 : req->len;
}

/* Frames that @len bytes make; an op of no bytes takes one. */
static inline u32 medge_frames(const struct medge_conn *c, u32 len)
{
	return len ? DIV_ROUND_UP(len, c->cfg.seg_len) : 1;
}

/* ---- conn.c ---- */
/*
 * Our first frame's number, once and for all. A QP that only receives (RTR) is
 * never told it by its user, and learns it from what the peer expects.
 */
void medge_conn_start_at(struct medge_conn *c, u32 psn);

/* Have room for @npaths paths. False: no memory. */
bool medge_conn_reserve_paths(struct medge_conn *c, u32 npaths);

/* ---- request.c ---- */
/* Complete own requests, in order, as far as they are done. */
void medge_request_complete(struct medge_conn *c);
/* @placed more bytes of the response to request @op_no are in place. */
void medge_request_answered(struct medge_conn *c, u32 op_no, u32 placed);

/* ---- response.c ---- */
bool medge_response_room(struct medge_conn *c);
/* Queue an answer; there is room. */
void medge_response_queue(struct medge_conn *c, const struct medge_op *op,
			  u64 atomic);
/* All have been acknowledged (so their memory is read for good). */
bool medge_response_none(const struct medge_conn *c);
/* The answer to the peer's request @op_no has not been acknowledged. */
bool medge_response_pending(struct medge_conn *c, u32 op_no);
/* Frames of one were acknowledged. */
void medge_response_acked(struct medge_conn *c, u32 slot, u32 frames);

/* ---- sendq.c ---- */
/* There are frames, other than acks, that could be sent, had they a rail and a window. */
bool medge_sendq_wants(struct medge_conn *c);

/* ---- recvq.c ---- */
/* Receive no more: the peer is told why, and of our own requests none goes out any more. */
void medge_recvq_refuse(struct medge_conn *c, const struct medge_op *op, u8 nak);
/* Perform what can be performed, in op order. */
void medge_recvq_advance(struct medge_conn *c);
/*
 * The peer asks again after RNR NAK @poke_seq: look again, and say so again.
 * Return: that was the last we said, so it has had all our acks.
 */
bool medge_recvq_poked(struct medge_conn *c, u16 poke_seq);
/* The frames of @rx count as arrived for good. */
void medge_recvq_settle(struct medge_conn *c, struct medge_rx *rx);

/* ---- fence.c ---- */
/* In struct medge_rx.state */
enum {
	MEDGE_RX_SETTLED = BIT(0),	/* acknowledged while it is held (RNR) */
	MEDGE_RX_PIECE = BIT(1),	/* the current op's piece is dealt with */
	MEDGE_RX_LOOSE = BIT(2),	/* held, but not for its turn */
};

enum medge_gate {
	MEDGE_GATE_OPEN,
	MEDGE_GATE_TURN,	/* opens when its turn comes */
	MEDGE_GATE_LOOSE,	/* waits for something else */
};

/* May the current op's piece of @rx be placed? */
enum medge_gate medge_fence_gate(struct medge_conn *c,
				 const struct medge_rx *rx);
void medge_fence_hold(struct medge_conn *c, u64 now, struct medge_rx *rx,
		      enum medge_gate gate);
/* The op whose turn it is has no receive; it has one. */
void medge_fence_enter_rnr(struct medge_conn *c);
void medge_fence_leave_rnr(struct medge_conn *c);

/* ---- ack.c ---- */
/* Frames came after @since. */
bool medge_ack_heard(const struct medge_conn *c, u64 since);
/* A frame's acknowledgment of our frames and ops; @ack may be NULL. */
enum medge_drop medge_ack_process(struct medge_conn *c, u64 now,
				  const struct medge_frame *f,
				  const struct medge_ack *ack);
/* A data frame came on @rail: what does it tell, or ask, about its path? */
void medge_ack_path(struct medge_conn *c, u32 rail, const struct medge_frame *f);
/* Frames were accepted on @rail, up to @high; @bytes of payload in all. */
void medge_ack_received(struct medge_conn *c, u64 now, u32 rail, u32 high,
			u32 bytes);
/*
 * The frames of @rx are settled, or held: there is something to acknowledge. Not
 * when they are accepted: an ack that goes out while they are being placed
 * does not cover them, and no other might follow.
 */
void medge_ack_due(struct medge_conn *c, u64 now, const struct medge_rx *rx);
/* Fill in the echo that is owed first, in an explicit acknowledgment. */
void medge_ack_fill_echo(struct medge_conn *c, struct medge_frame *f);
/* Fill in the acknowledgment that every frame carries. */
void medge_ack_fill(struct medge_conn *c, struct medge_frame *f);
void medge_ack_fill_ext(struct medge_conn *c, struct medge_ack *ack);
/* Words of the bitmap that an explicit acknowledgment has now. */
u32 medge_ack_words(const struct medge_conn *c);
/* What we said we received is on its way. */
void medge_ack_sent(struct medge_conn *c, bool explicit_ack);
/* An explicit ack must go out. */
static inline bool medge_ack_wanted(const struct medge_conn *c)
{
	return c->ack_now || c->ack_word || c->nack_now || c->poke_now ||
	       c->rnr_poke || c->echo_rails;
}

/* ---- reply.c ---- */
/* The peer has asked for an ack, by what was received or performed just now. */
void medge_reply_asked(struct medge_conn *c);
/* What an ack waited for has not come in time. */
void medge_reply_overdue(struct medge_conn *c);
/* Data goes out, and an ack with it. */
void medge_reply_sent(struct medge_conn *c);

/* ---- loss.c ---- */
/*
 * Of the @most frames from @psn on, so many are alike: they went along on one path, in its order
 * and at one time, and fared the same since. An ack means the same for all of them.
 */
u32 medge_loss_alike(const struct medge_conn *c, u32 psn, u32 most);
/* @n of them were acknowledged for the first time. */
void medge_loss_acked(struct medge_conn *c, u32 psn, u32 n);
/* A frame is acknowledged, and all sent before it are accounted for. */
void medge_loss_accounted(struct medge_conn *c, u32 psn, u64 now);
/* It is to be sent again. */
void medge_loss_mark(struct medge_conn *c, u32 psn);
/* The peer need not get it (any more). */
void medge_loss_forget(struct medge_conn *c, u32 psn);
/* No frame of a request goes out any more. */
void medge_loss_forget_requests(struct medge_conn *c);
u64 medge_loss_rto(const struct medge_conn *c);
/* ns until it is asked, at least, whether what is in flight was lost. */
u64 medge_loss_pto_least(const struct medge_conn *c);
/* Something was acknowledged: does that say that something else was lost? */
void medge_loss_news(struct medge_conn *c, u64 now);
/* The peer said what it has, and nothing was new: what ought to be there is lost. */
void medge_loss_answered(struct medge_conn *c, u64 now);
/* Judge the frames in flight; sets loss_at. */
void medge_loss_detect(struct medge_conn *c, u64 now);
/* What is in flight on a path must go another way. */
void medge_loss_path_down(struct medge_conn *c, u32 path);
void medge_loss_timeout(struct medge_conn *c, u64 now);
/* Deadline of the tail probe or the timeout; MEDGE_NEVER if none is due. */
u64 medge_loss_deadline(struct medge_conn *c);
/* No later than that, and quickly said. */
u64 medge_loss_earliest(const struct medge_conn *c);
/* We gave up: no acknowledgment for as long as verbs allow. */
bool medge_loss_hopeless(const struct medge_conn *c, u64 now);
void medge_loss_spurious(struct medge_conn *c, u64 now, u32 dups);

/* ---- share.c ---- */
/* What was sent on the path may have been lost there. */
void medge_share_doubt(struct medge_conn *c, u32 path);
/* It was, and so was all else for a while; @sent: the latest. */
void medge_share_silent(struct medge_conn *c, u32 path, u64 sent);
void medge_share_rtt(struct medge_conn *c, struct medge_conn_path *path, u64 rtt);

/* ---- sched.c ---- */
/**
 * struct medge_pick - what is to be sent, and where
 * @avoid: the path on which it was lost before; MEDGE_PATH_UNKNOWN: it is new
 * @urgent: it cannot wait until a path has room
 * @bytes: left of it, at least
 * @path: the result
 */
struct medge_pick {
	u32 avoid;
	bool urgent;
	u32 bytes;
	u32 path;
};

/* The path for the next run. False: there is none, or none to be used now. */
bool medge_sched_pick(struct medge_conn *c, u64 now, struct medge_pick *p);
void medge_sched_charge(struct medge_conn *c, u32 path, u32 bytes);
/* Paths that can be used at all. */
u32 medge_sched_paths(const struct medge_conn *c);
/* The next path after @path, or @path itself; of the best, or of @all. */
u32 medge_sched_next(const struct medge_conn *c, u32 path, bool all);
/* A path came up: it does not catch up on what it missed. */
void medge_sched_up(struct medge_conn *c, u32 path);
/* It is new, or another than it was, and nothing is in flight on it. */
void medge_sched_new(struct medge_conn *c, u32 path);
/* How far it is from what one would choose; 0: it is. */
u32 medge_sched_rank(const struct medge_conn_path *path);

/* ---- schedulers.c ---- */
/* One of @paths (not 0) by the connection's rule; -1: wait until there is room. */
s32 medge_scheduler_choose(struct medge_conn *c, u64 now, u64 paths,
			   const struct medge_pick *p);
/* Bytes of what is to be sent that @path may take at once; 0: there is too much. */
u32 medge_sched_share(const struct medge_conn *c, u32 path);

#endif /* MEDGE_TRANSPORT_STATE_H */
