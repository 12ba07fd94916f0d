// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Queue pairs: moved through their states, with the connections that they have in some. */
#include <linux/etherdevice.h>
#include <linux/slab.h>

#include "ah.h"
#include "device.h"
#include "qp.h"
#include "snap.h"
#include "uc.h"

/* ---- the connection ---- */

/* A power of two would be half as much again. */
static struct kmem_cache *conns;

int medge_qps_start(void)
{
	conns = kmem_cache_create("medge_conn", medge_conn_size(), 0,
				  SLAB_ACCOUNT, NULL);
	return conns ? 0 : -ENOMEM;
}

void medge_qps_stop(void)
{
	kmem_cache_destroy(conns);
}

static void connection_config(const struct medge_qp *qp,
			      struct medge_conn_config *cfg)
{
	const struct ib_qp_attr *attr = &qp->attr;
	u32 room = medge_rails_room(qp->dev, MEDGE_HDR_LEN);
	u32 seg_len = min_t(u32, room, MEDGE_RUN_MAX);

	*cfg = (struct medge_conn_config) {
		.psn = attr->sq_psn,
		.peer_psn = attr->rq_psn,
		.dest_qpn = attr->dest_qp_num,
		.seg_len = seg_len,
		.run_max = MEDGE_RUN_MAX,
		.window = medge_window_first(seg_len),
		.ord = attr->max_rd_atomic,
		.ird = attr->max_dest_rd_atomic,
		.retry_cnt = attr->retry_cnt,
		.rnr_retry = attr->rnr_retry,
		.rnr_timer = attr->min_rnr_timer,
		.timeout_ns = attr->timeout ? 4096ULL << attr->timeout : 0,
		.ack_frames = MEDGE_ACK_FRAMES,
		.ack_delay_ns = MEDGE_ACK_DELAY_NS,
	};
}

/* INIT to RTR. */
static int connect_qp(struct medge_qp *qp)
{
	struct medge_conn_config cfg;
	struct medge_node_member *member;
	struct medge_conn *conn;

	conn = kmem_cache_zalloc(conns, GFP_KERNEL_ACCOUNT);
	if (!conn)
		return -ENOMEM;
	member = medge_node_join(qp);
	if (!member) {
		kmem_cache_free(conns, conn);
		return -ENOMEM;
	}
	connection_config(qp, &cfg);

	spin_lock_bh(&qp->lock);
	qp->now = ktime_get_ns();
	medge_conn_init(conn, &cfg, &medge_conn_upcalls, qp->now);
	medge_conn_set_user(conn, qp);
	qp->member = member;
	medge_conn_schedule(conn, READ_ONCE(qp->dev->scheduler));
	qp->recv_base = qp->rq.done;
	qp->op_base = medge_conn_next_op(conn) - qp->sq.cons;
	qp->conn = conn;
	qp->state = IB_QPS_RTR;
	medge_send_unlock(qp);
	return 0;
}

/* RTR or SQD to RTS. */
static void start_sending(struct medge_qp *qp, enum ib_qp_state from)
{
	struct medge_conn_config cfg;

	connection_config(qp, &cfg);
	spin_lock_bh(&qp->lock);
	qp->now = ktime_get_ns();
	/* The connection may have failed since modify looked at the state. */
	if (qp->state == from) {
		medge_conn_enable_send(qp->conn, &cfg, qp->now);
		qp->state = IB_QPS_RTS;
	}
	spin_unlock_bh(&qp->lock);
	/* What was posted meanwhile. */
	medge_send_look(qp);
}

/* RTS to SQD. */
static void drain_sq(struct medge_qp *qp, bool tell)
{
	/* What a poller has not seen yet was posted before this. */
	medge_send_look(qp);
	spin_lock_bh(&qp->lock);
	qp->now = ktime_get_ns();
	if (qp->state == IB_QPS_RTS) {
		qp->state = IB_QPS_SQD;
		qp->tell_drained = tell;
		medge_qp_drained(qp);
	}
	spin_unlock_bh(&qp->lock);
}

static void fail_qp(struct medge_qp *qp)
{
	spin_lock_bh(&qp->lock);
	qp->now = ktime_get_ns();
	medge_qp_fail(qp, -1);
	spin_unlock_bh(&qp->lock);
}

/* Nobody else is at work on the QP. */
static void free_connection(struct medge_qp *qp)
{
	if (!qp->conn)
		return;
	medge_receive_free_held(qp);
	medge_stats_retire(qp->dev, medge_conn_stats(qp->conn));
	medge_conn_fini(qp->conn);
	kmem_cache_free(conns, qp->conn);
	qp->conn = NULL;
	medge_node_leave(qp->member);
	qp->member = NULL;
}

void medge_qp_reset_rings(struct medge_qp *qp)
{
	/* What was taken from the rings is forgotten with them. */
	medge_snaps_empty(&qp->sq_snaps);
	medge_snaps_empty(&qp->rq_snaps);
	medge_ring_reset(&qp->sq);
	medge_ring_reset(&qp->rq);
	WRITE_ONCE(qp->polled.prod, 0);
	spin_lock_bh(&qp->lock);
	if (qp->sq.hdr)
		WRITE_ONCE(qp->sq.hdr->need_doorbell,
			   qp->polled.watched ? MEDGE_DOORBELL_NONE :
						MEDGE_DOORBELL_NOW);
	spin_unlock_bh(&qp->lock);
	if (qp->rq.hdr)
		WRITE_ONCE(qp->rq.hdr->need_doorbell, MEDGE_DOORBELL_NONE);
}

static void set_state(struct medge_qp *qp, enum ib_qp_state state)
{
	spin_lock_bh(&qp->lock);
	qp->state = state;
	spin_unlock_bh(&qp->lock);
}

void medge_qp_stop(struct medge_qp *qp)
{
	medge_send_farewell(qp);
	set_state(qp, IB_QPS_RESET);
	medge_qp_close(qp);
	/* They need to be let in, so all they can do is to be cancelled. */
	hrtimer_cancel(&qp->timer);
	qp->timer_at = MEDGE_NEVER;
	medge_late_init(qp);
	medge_kpost_stop(&qp->kpost);
	cancel_work_sync(&qp->event_work);
	qp->events = 0;
	medge_faults_reset(qp);
	medge_order_drop(qp);
	free_connection(qp);
}

static void reset_qp(struct medge_qp *qp)
{
	medge_qp_stop(qp);
	medge_qp_reset_rings(qp);
	qp->uc = (struct medge_uc) {};
	qp->recv_base = 0;
	qp->op_base = 0;
	qp->unsent = false;
	qp->full = false;
	qp->refused = false;
	qp->flush_late = false;
	medge_qp_open(qp);
}

/* ---- modify and query ---- */

/*
 * Who drains may say again where the peer is, but it is there. SMC-R, version 2,
 * knows the MAC address of a peer only if there is a router on the way to it.
 */
static int check_address(const struct medge_qp *qp, struct ib_qp_attr *attr,
			 enum ib_qp_state cur)
{
	struct medge_l2 l2;
	int err = 0;

	if (is_zero_ether_addr(attr->ah_attr.roce.dmac))
		err = medge_mac_find(&attr->ah_attr);
	if (!err)
		err = medge_l2_resolve(qp->dev, &attr->ah_attr, &l2);
	if (err)
		return err;
	if (!is_valid_ether_addr(l2.dmac))
		return -EINVAL;
	if (cur == IB_QPS_SQD && (!ether_addr_equal(l2.dmac, qp->l2.dmac) ||
				  l2.vlan != qp->l2.vlan))
		return -EOPNOTSUPP;
	return 0;
}

static bool values_are_ok(const struct ib_qp_attr *attr, int mask)
{
	if (mask & IB_QP_PORT && attr->port_num != 1)
		return false;
	if (mask & IB_QP_PKEY_INDEX && attr->pkey_index)
		return false;
	if (mask & IB_QP_PATH_MTU &&
	    (attr->path_mtu < IB_MTU_256 || attr->path_mtu > IB_MTU_4096))
		return false;
	if (mask & IB_QP_DEST_QPN && attr->dest_qp_num >= BIT(24))
		return false;
	if (mask & IB_QP_MAX_QP_RD_ATOMIC &&
	    attr->max_rd_atomic > MEDGE_MAX_RD_ATOMIC)
		return false;
	if (mask & IB_QP_MAX_DEST_RD_ATOMIC &&
	    attr->max_dest_rd_atomic > MEDGE_MAX_RD_ATOMIC)
		return false;
	if (mask & IB_QP_MIN_RNR_TIMER && attr->min_rnr_timer > 31)
		return false;
	if (mask & IB_QP_TIMEOUT && attr->timeout > 31)
		return false;
	if (mask & IB_QP_RETRY_CNT && attr->retry_cnt > 7)
		return false;
	if (mask & IB_QP_RNR_RETRY && attr->rnr_retry > 7)
		return false;
	return true;
}

static int check_modify(const struct medge_qp *qp, const struct ib_qp_attr *attr,
			int mask, enum ib_qp_state cur, enum ib_qp_state next)
{
	if (mask & ~IB_QP_ATTR_STANDARD_BITS)
		return -EOPNOTSUPP;
	if (!ib_modify_qp_is_ok(cur, next, qp->ibqp.qp_type, mask))
		return -EINVAL;
	if (mask & (IB_QP_ALT_PATH | IB_QP_PATH_MIG_STATE))
		return -EOPNOTSUPP;
	return values_are_ok(attr, mask) ? 0 : -EINVAL;
}

static void store_attr(struct medge_qp *qp, const struct ib_qp_attr *attr,
		       int mask)
{
	struct ib_qp_attr *to = &qp->attr;

#define STORE(bit, field) do { if (mask & (bit)) to->field = attr->field; } while (0)
	STORE(IB_QP_ACCESS_FLAGS, qp_access_flags);
	STORE(IB_QP_PKEY_INDEX, pkey_index);
	STORE(IB_QP_PORT, port_num);
	STORE(IB_QP_QKEY, qkey);
	STORE(IB_QP_AV, ah_attr);
	STORE(IB_QP_PATH_MTU, path_mtu);
	STORE(IB_QP_TIMEOUT, timeout);
	STORE(IB_QP_RETRY_CNT, retry_cnt);
	STORE(IB_QP_RNR_RETRY, rnr_retry);
	STORE(IB_QP_RQ_PSN, rq_psn);
	STORE(IB_QP_MAX_QP_RD_ATOMIC, max_rd_atomic);
	STORE(IB_QP_MIN_RNR_TIMER, min_rnr_timer);
	STORE(IB_QP_SQ_PSN, sq_psn);
	STORE(IB_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic);
	STORE(IB_QP_DEST_QPN, dest_qp_num);
	STORE(IB_QP_EN_SQD_ASYNC_NOTIFY, en_sqd_async_notify);
#undef STORE
	if (mask & IB_QP_AV)
		medge_l2_resolve(qp->dev, &attr->ah_attr, &qp->l2);
	/* ib_core's reference, not ours */
	to->ah_attr.grh.sgid_attr = NULL;
}

/* It may change in any state, and what is received goes on. */
static void set_rnr_timer(struct medge_qp *qp)
{
	spin_lock_bh(&qp->lock);
	if (qp->conn)
		medge_conn_set_rnr_timer(qp->conn, qp->attr.min_rnr_timer);
	spin_unlock_bh(&qp->lock);
}

static bool is_unacked(const struct medge_qp *qp)
{
	return medge_qp_is_ud(qp) || medge_qp_is_uc(qp);
}

/* Where nothing is acknowledged, nothing is set up but the numbers of UC's frames. */
static void begin_unacked(struct medge_qp *qp, enum ib_qp_state state)
{
	if (medge_qp_is_uc(qp))
		medge_uc_begin(qp, state);
	else
		set_state(qp, state);
}

static int enter_rtr(struct medge_qp *qp)
{
	if (!is_unacked(qp))
		return connect_qp(qp);
	begin_unacked(qp, IB_QPS_RTR);
	return 0;
}

static void enter_rts(struct medge_qp *qp, enum ib_qp_state cur)
{
	if (!is_unacked(qp)) {
		if (cur == IB_QPS_RTR || cur == IB_QPS_SQD)
			start_sending(qp, cur);
		return;
	}
	if (cur == IB_QPS_RTR)
		begin_unacked(qp, IB_QPS_RTS);
	else
		set_state(qp, IB_QPS_RTS);
	if (cur == IB_QPS_SQD)
		medge_send_look(qp);
}

static int enter_state(struct medge_qp *qp, enum ib_qp_state cur,
		       enum ib_qp_state next, bool tell)
{
	switch (next) {
	case IB_QPS_RESET:
		reset_qp(qp);
		return 0;
	case IB_QPS_INIT:
		set_state(qp, IB_QPS_INIT);
		return 0;
	case IB_QPS_RTR:
		return enter_rtr(qp);
	case IB_QPS_RTS:
		enter_rts(qp, cur);
		return 0;
	case IB_QPS_SQD:
		drain_sq(qp, tell);
		return 0;
	case IB_QPS_ERR:
		fail_qp(qp);
		return 0;
	default:
		return -EOPNOTSUPP;
	}
}

static int modify(struct medge_qp *qp, struct ib_qp_attr *attr, int mask)
{
	enum ib_qp_state cur = READ_ONCE(qp->state);
	enum ib_qp_state next = mask & IB_QP_STATE ? attr->qp_state : cur;
	bool tell = mask & IB_QP_EN_SQD_ASYNC_NOTIFY &&
		    attr->en_sqd_async_notify;
	int err;

	if (mask & IB_QP_CUR_STATE && attr->cur_qp_state != cur)
		return -EINVAL;
	err = check_modify(qp, attr, mask, cur, next);
	if (!err && mask & IB_QP_AV)
		err = check_address(qp, attr, cur);
	if (err)
		return err;
	store_attr(qp, attr, mask);
	if (mask & IB_QP_MIN_RNR_TIMER)
		set_rnr_timer(qp);
	return enter_state(qp, cur, next, tell);
}

int medge_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		    struct ib_udata *udata)
{
	struct medge_qp *qp = to_medge_qp(ibqp);
	int err;

	mutex_lock(&qp->modify_lock);
	err = modify(qp, attr, mask);
	mutex_unlock(&qp->modify_lock);
	return err;
}

int medge_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		   struct ib_qp_init_attr *init)
{
	struct medge_qp *qp = to_medge_qp(ibqp);

	mutex_lock(&qp->modify_lock);
	*attr = qp->attr;
	spin_lock_bh(&qp->lock);
	attr->qp_state = qp->state;
	attr->sq_draining = medge_qp_draining(qp);
	spin_unlock_bh(&qp->lock);
	mutex_unlock(&qp->modify_lock);

	attr->cur_qp_state = attr->qp_state;
	attr->path_mig_state = IB_MIG_MIGRATED;
	attr->cap = qp->init.cap;
	init->cap = qp->init.cap;
	init->qp_type = ibqp->qp_type;
	init->sq_sig_type = qp->init.sq_sig_type;
	init->send_cq = ibqp->send_cq;
	init->recv_cq = ibqp->recv_cq;
	init->xrcd = ibqp->xrcd;
	init->srq = ibqp->srq;
	return 0;
}
