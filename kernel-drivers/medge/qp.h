/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Queue pairs: the verbs object around a connection. */
#ifndef MEDGE_QP_H
#define MEDGE_QP_H

#include <linux/hrtimer.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <rdma/ib_verbs.h>

#include "cq.h"
#include "faults.h"
#include "kpost.h"
#include "late.h"
#include "mr.h"
#include "order.h"
#include "pin.h"
#include "poller.h"
#include "qpref.h"
#include "rail.h"
#include "ring.h"
#include "second.h"
#include "transport/conn.h"

struct medge_srq;

/**
 * struct medge_uc - how far a UC QP is with the messages at hand
 * @seg_len: payload of a frame of the one being sent
 * @tx_index: its SQ index
 * @rx_op: the one being received, as its first frame had it
 * @order: of the frames that are received
 */
struct medge_uc {
	bool sending, receiving;
	u16 seg_len;
	u32 tx_psn, tx_msg, tx_index, tx_offset;
	u32 rx_msg, rx_offset;
	struct medge_op rx_op;
	struct medge_order order;
};

/**
 * struct medge_snaps - a ring of slots for WQEs that are under way
 * @chunks: that of slot i is number i >> @shift; NULL: none of its slots is in use
 * @spare: chunks that are not in use; each begins with the next one's address
 * @size: bytes of a slot
 * @mask: that of number n is slot n & @mask
 * @inner: and slot n & @inner of its chunk
 * @end: behind the last number that has entered, where they do so in any order
 * @shift: log2 of a chunk's slots
 *
 * Few are under way mostly, of those that could be; so there are as many chunks as
 * have ever been in use at a time. None is moved: who copies without the QP's lock
 * reads in them where to.
 */
struct medge_snaps {
	void **chunks;
	void *spare;
	u32 size, mask, inner, end;
	u8 shift;
};

/*
 * A send WQE taken from the ring, once and for all; slot op_no. A power of two as
 * the entry is, so that chunks of them are.
 */
struct medge_send_snap {
	union {
		struct medge_send_wqe wqe;	/* num_sge, inline_len are checked */
		struct {
			u8 before_reserved[offsetof(struct medge_send_wqe, reserved)];
			u32 len;		/* of the message */
		};
	};
	/* SGEs or inline data follow: (1 << sq.shift) - sizeof(wqe) bytes */
	u8 data[] __aligned(8);
};

static_assert(sizeof(struct medge_send_snap) == sizeof(struct medge_send_wqe));

/* A receive WQE taken from the ring; slot index. */
struct medge_recv_snap {
	u64 wr_id;
	const struct ib_pd *pd;		/* of its memory; only to compare with */
	u32 len;			/* all SGEs together */
	u32 byte_len;			/* of the message placed in it */
	u32 num_sge;
	u32 index;			/* RQ index */
	u32 srqn;			/* XRC: the SRQ it was taken from */
	u32 op_no;			/* the peer's that is to consume it, if @named */
	bool named;
	bool valid;			/* taken, not yet completed */
	bool relaxed;			/* all its memory is */
	u8 status;			/* enum medge_status: an SGE is bad */
	struct medge_sge sge[];
};

/* Completions that are in a CQ, but not told of: there are some, or such as are solicited. */
struct medge_untold {
	bool any, solicited;
};

/**
 * struct medge_gathered - completions that are in their CQs, but not told of
 * @on: those to come are to be so, too
 * @done: sends without one are done, and not given back yet
 */
struct medge_gathered {
	bool on, done;
	struct medge_untold send, recv;
};

/**
 * struct medge_qp - a QP
 * @lock: BH-safe; guards all that follows it, and serializes @conn
 * @conn: exists from RTR on; never, if it is one of datagrams
 * @state: enum ib_qp_state. Changes under @lock
 * @modify_lock: serializes modify_qp, as ib_core does not
 * @ref: counts receive handlers, timers and posts at work, see medge_qp_get()
 *       and medge_qp_hold(). Reset and destroy wait for them before @conn goes.
 * @sq, @rq: shared rings; @rq.cons is unused, receives are taken by index
 * @srq: NULL, or where receives are taken from: then @rq has no ring, only
 *       the snapshots of those taken, the next to be completed being @rq.done
 * @recv_base: RQ index that receive index 0 of this connection stands for
 * @op_base: op number less SQ index, the same for all WQEs of a connection
 * @now: ns, time of the call that @lock is held for
 * @placing: pieces that are being copied without @lock; flushes wait for them
 * @held_bytes: of the skbs that @conn holds
 * @mr: the region used last while @lock is held, see medge_mr_get_locked()
 * @sending: a batch of skbs is on its way without @lock; only one at a time,
 *           so that frames stay in order on their rails
 * @look_again: there may be more to send than @sending is for
 * @unsent: the connection waits for acks to send what was submitted, and
 * @full: for those alone that make room on its paths
 * @refused: in ERR because of the peer, which may still ask for the NAK
 * @flush_late: flush as soon as @placing is 0
 * @reaped: SQ ring index up to which flush has completed WQEs
 * @sq_snaps: of WQEs that @conn has, or that are being sent
 * @rq_snaps: of receives that messages have begun to come for
 * @kpost: if it is a kernel consumer's
 * @pin: the process that made it, for all of it but the rings
 * @process: whose one QP of so many it is
 */
struct medge_qp {
	struct ib_qp ibqp;
	struct medge_device *dev;
	u32 qpn;
	struct medge_qp_ref *ref;
	struct mutex modify_lock;
	struct hrtimer timer;		/* conn's deadline; softirq mode */
	struct medge_kpost kpost;
	struct medge_pin pin;
	struct medge_process *process;
	struct medge_polled polled;

	spinlock_t lock;
	struct medge_late late;
	struct medge_late_recv late_recv;
	struct medge_second second;
	enum ib_qp_state state;
	struct medge_conn *conn;
	struct medge_l2 l2;		/* peer's address */
	u32 ud_turn;			/* of rails */
	struct medge_node_member *member;	/* of the peer's node; as long as @conn */
	bool relaxed;			/* MEDGE_CREATE_QP_RELAXED */
	bool sq_sig_all;
	u64 timer_at;			/* what @timer is set to; MEDGE_NEVER: off */
	u64 now;
	u32 recv_base;
	u32 op_base;
	struct medge_uc uc;
	u32 placing;
	size_t held_bytes;
	struct medge_mr *mr;
	struct medge_gathered gathered;
	bool sending, look_again, unsent, full, refused, flush_late;
	struct medge_faults faults;
	struct medge_ring sq;
	struct medge_ring rq;
	struct medge_srq *srq;
	struct list_head srq_waits;	/* in srq->waiting; empty: it is not */
	struct medge_snaps sq_snaps, rq_snaps;
	u32 max_sge, max_recv_sge, max_inline;
	struct ib_qp_attr attr;		/* what modify said, for query */
	struct ib_qp_init_attr init;
	struct work_struct event_work;	/* tells of @events, in process context */
	unsigned long events;		/* bits by enum ib_event_type */
	bool tell_drained;		/* in SQD: tell when that is so */
};

static inline struct medge_qp *to_medge_qp(struct ib_qp *ibqp)
{
	return container_of(ibqp, struct medge_qp, ibqp);
}

static inline struct medge_cq *medge_qp_send_cq(const struct medge_qp *qp)
{
	return to_medge_cq(qp->ibqp.send_cq);
}

static inline struct medge_cq *medge_qp_recv_cq(const struct medge_qp *qp)
{
	return to_medge_cq(qp->ibqp.recv_cq);
}

static inline bool medge_qp_is_uc(const struct medge_qp *qp)
{
	return qp->ibqp.qp_type == IB_QPT_UC;
}

/* It has no connection: what it sends are datagrams. */
static inline bool medge_qp_is_ud(const struct medge_qp *qp)
{
	return qp->ibqp.qp_type == IB_QPT_UD || qp->ibqp.qp_type == IB_QPT_GSI;
}

/* The two ends of XRC: one only sends, the other takes what it receives from SRQs. */
static inline bool medge_qp_is_xrc_ini(const struct medge_qp *qp)
{
	return qp->ibqp.qp_type == IB_QPT_XRC_INI;
}

static inline bool medge_qp_is_xrc_tgt(const struct medge_qp *qp)
{
	return qp->ibqp.qp_type == IB_QPT_XRC_TGT;
}

/* May something be received? A failed send queue does not keep it from that. */
static inline bool medge_qp_hears(const struct medge_qp *qp)
{
	switch (qp->state) {
	case IB_QPS_RTR:
	case IB_QPS_RTS:
	case IB_QPS_SQD:
	case IB_QPS_SQE:
		return true;
	default:
		return false;
	}
}

/* In SQD: something was begun that is not done. Under qp->lock. */
static inline bool medge_qp_draining(const struct medge_qp *qp)
{
	return qp->state == IB_QPS_SQD && qp->sq.done != qp->sq.cons;
}

/*
 * Frames come and go in this state. In ERR, a peer that was refused something
 * may have missed our NAK, and is told again. Under qp->lock.
 */
static inline bool medge_qp_talks(const struct medge_qp *qp)
{
	switch (qp->state) {
	case IB_QPS_RTR:
	case IB_QPS_RTS:
	case IB_QPS_SQD:
		return true;
	case IB_QPS_ERR:
		return qp->refused;
	default:
		return false;
	}
}

/* Does who posts send beside the poller? Under qp->lock. */
static inline bool medge_poller_is_shared(const struct medge_qp *qp)
{
	return qp->polled.watched && READ_ONCE(qp->polled.streams) &&
	       qp->second.posts;
}

/* See medge_mr_get_locked(). */
static inline void medge_qp_forget_mr(struct medge_qp *qp)
{
	if (!qp->mr)
		return;
	medge_mr_put(qp->mr);
	qp->mr = NULL;
}

/* ---- qp.c ---- */
int medge_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *init,
		    struct ib_udata *udata);
int medge_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata);

/* Have it follow its node's paths, which have changed. In softirq. */
void medge_qp_sync(struct medge_qp *qp);
/* All connections, now and later, give their runs to paths by this rule. */
void medge_qps_schedule(struct medge_device *dev, u32 scheduler);

/* ---- modify.c ---- */
/* With the module. */
int medge_qps_start(void);
void medge_qps_stop(void);
int medge_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		    struct ib_udata *udata);
int medge_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		   struct ib_qp_init_attr *init);
/* Nothing of it is at work any more, nor will be; its connection is no more. Sleeps. */
void medge_qp_stop(struct medge_qp *qp);
/*
 * As if nothing had been posted. The user must ring for what it sends; receives are
 * found when needed.
 */
void medge_qp_reset_rings(struct medge_qp *qp);

/* ---- send.c: data path out ---- */
/* Take what is posted, and send what can be sent. The QP is held; process context. */
void medge_send_look(struct medge_qp *qp);
/* Return: false: somebody is at it, and nothing was done. */
bool medge_send_try_look(struct medge_qp *qp);
/* Doorbells: look at the ring. Not under a lock, interrupts on. */
void medge_send_doorbell(struct medge_qp *qp);
void medge_recv_doorbell(struct medge_qp *qp);
/* The same for who holds the QP. Return: when that began, ns. */
u64 medge_send_rung(struct medge_qp *qp);
/* There may be receives for messages that wait. Under qp->lock; @used as below. */
void medge_recv_look(struct medge_qp *qp, struct sk_buff_head *used);

/*
 * Take WQEs from the SQ and build skbs for all that the connection wants to
 * send, up to a budget, into @out. Under qp->lock; medge_send_flush() without.
 */
struct medge_send_batch {
	struct sk_buff_head skbs;	/* as medge_batch_xmit() takes them */
	struct medge_qp *qp;		/* NULL: nothing to send */
};

void medge_send_build(struct medge_qp *qp, struct medge_send_batch *out);
void medge_send_flush(struct medge_device *dev, struct medge_send_batch *out);

/*
 * The QP leaves: what it has received, its peer is told again, as nobody will repeat
 * it. Process context.
 */
void medge_send_farewell(struct medge_qp *qp);

/* Send what is posted, as QPs of its type do. Under qp->lock, which it gives up. */
void medge_send_ready_unlock(struct medge_qp *qp) __releases(&qp->lock);

/* Build, set the timer, unlock and flush: ends each use of the connection. */
void medge_send_unlock(struct medge_qp *qp) __releases(&qp->lock);

/* ---- timer.c ---- */
/* Set the timer to the connection's deadline. Under qp->lock. */
void medge_timer_update(struct medge_qp *qp);
/* Set it to now: there is more to send than one turn may. Under qp->lock. */
void medge_timer_kick(struct medge_qp *qp);
/* It fires at @at, or before; who has a deadline looks whether it has come. Under qp->lock. */
void medge_timer_set(struct medge_qp *qp, u64 at);
enum hrtimer_restart medge_timer_fire(struct hrtimer *timer);

/* ---- receive.c ---- */
/*
 * Place the frames that waited for others, or for a receive, and need not any
 * more. Under qp->lock; the caller frees @used without it.
 */
void medge_receive_released(struct medge_qp *qp, struct sk_buff_head *used);
/*
 * A frame whose piece was not placed, since its memory was absent: place it, and
 * go on. Under qp->lock, which is given up meanwhile. Sleeps.
 */
void medge_receive_again(struct medge_qp *qp, struct sk_buff *skb)
	__must_hold(&qp->lock);
/* Its piece has been placed, or with @nak cannot be: go on. Not under qp->lock. */
void medge_receive_copied(struct medge_qp *qp, struct sk_buff *skb,
			  const struct medge_piece *piece, enum medge_nak nak);
/* Free what medge_conn_unhold() gives back; nobody else uses the QP. */
void medge_receive_free_held(struct medge_qp *qp);

/* ---- complete.c ---- */
extern const struct medge_conn_ops medge_conn_upcalls;
/* A receive, and a send, are done: give back the WQE, then add the CQE. */
void medge_recv_done(struct medge_qp *qp, struct medge_recv_snap *snap,
		     const struct medge_cqe *cqe, bool solicited);
void medge_send_done(struct medge_qp *qp, const struct medge_send_snap *snap,
		     enum medge_status status);
/* In SQD: if all that was begun is done, tell whoever wants to know. Under qp->lock. */
void medge_qp_drained(struct medge_qp *qp);

/* ---- recv_wqe.c ---- */
/*
 * The receive WQE of ring index @index, taken now if not before, of XRC from
 * SRQ @srqn; NULL: none.
 */
struct medge_recv_snap *medge_recv_take(struct medge_qp *qp, u32 index,
					u32 srqn);
/*
 * Take the receive WQE at @entry, of 1 << @shift bytes, into @snap, and check
 * its memory for @pd.
 */
void medge_recv_snapshot(struct medge_qp *qp, struct medge_recv_snap *snap,
			 const void *entry, u32 shift, u32 index,
			 const struct ib_pd *pd);

/* ---- flush.c ---- */
/* Complete all that is posted with IB_WC_WR_FLUSH_ERR. Under qp->lock, state ERR. */
void medge_flush_sq(struct medge_qp *qp);
void medge_flush_rq(struct medge_qp *qp);
/* Both, now or when nothing is being placed; then its SRQ hears of it. */
void medge_qp_flush(struct medge_qp *qp);
/* To state ERR, with a flush, and an async event unless @event is negative. Under qp->lock. */
void medge_qp_fail(struct medge_qp *qp, int event);
/* Raise an async event, soon. Any context. */
void medge_qp_event(struct medge_qp *qp, enum ib_event_type type);
/* qp->event_work */
void medge_qp_events(struct work_struct *work);

#endif /* MEDGE_QP_H */
