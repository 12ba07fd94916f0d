// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What `rdma -dd resource` shows beyond what ib_core knows. */
#include <linux/ktime.h>
#include <rdma/restrack.h>
#include <uapi/rdma/rdma_netlink.h>

#include "cq.h"
#include "mr.h"
#include "qp.h"
#include "restrack.h"

static int put_value(void *msg, const char *name, u64 value)
{
	return rdma_nl_put_driver_u64(msg, name, value);
}

/* A table of what @put says. */
static int put_table(struct sk_buff *msg,
		     int (*put)(struct sk_buff *msg, void *obj), void *obj)
{
	struct nlattr *table = nla_nest_start(msg, RDMA_NLDEV_ATTR_DRIVER);
	int ret;

	if (!table)
		return -EMSGSIZE;
	ret = put(msg, obj);
	if (ret)
		nla_nest_cancel(msg, table);
	else
		nla_nest_end(msg, table);
	return ret;
}

/* ---- QPs ---- */

static int put_queues(struct sk_buff *msg, struct medge_qp *qp)
{
	if (!qp->sq.hdr)
		return 0;
	return put_value(msg, "sq_posted", medge_ring_posted(&qp->sq)) ?:
	       put_value(msg, "sq_outstanding", qp->sq.cons - qp->sq.done);
}

static int put_qp(struct sk_buff *msg, void *obj)
{
	struct medge_qp *qp = obj;
	int ret;

	spin_lock_bh(&qp->lock);
	qp->now = ktime_get_ns();
	ret = put_queues(msg, qp);
	if (!ret && qp->conn)
		ret = medge_conn_describe(qp->conn, qp->now, put_value, msg);
	spin_unlock_bh(&qp->lock);
	return ret;
}

int medge_fill_res_qp(struct sk_buff *msg, struct ib_qp *ibqp)
{
	struct medge_qp *qp = to_medge_qp(ibqp);
	int ret;

	if (!medge_qp_hold(qp))
		return 0;
	ret = put_table(msg, put_qp, qp);
	medge_qp_put(qp);
	return ret;
}

/* ---- CQs, MRs ---- */

static int put_cq(struct sk_buff *msg, void *obj)
{
	struct medge_cq *cq = obj;
	u32 unread = 0;

	spin_lock_bh(&cq->lock);
	/* Some kernels still ask of one that is being destroyed. */
	if (cq->ring.hdr)
		unread = cq->ring.prod - READ_ONCE(cq->ring.hdr->cons);
	spin_unlock_bh(&cq->lock);
	return put_value(msg, "unread", unread) ?:
	       put_value(msg, "armed", medge_cq_armed(cq)) ?:
	       put_value(msg, "overrun", READ_ONCE(cq->error));
}

int medge_fill_res_cq(struct sk_buff *msg, struct ib_cq *ibcq)
{
	return put_table(msg, put_cq, to_medge_cq(ibcq));
}

static int put_mr(struct sk_buff *msg, void *obj)
{
	const struct medge_mr *mr = obj;

	return put_value(msg, "iova", mr->iova) ?:
	       put_value(msg, "access", mr->access) ?:
	       put_value(msg, "pages", mr->npages) ?:
	       put_value(msg, "windows", max(atomic_read(&mr->windows), 0)) ?:
	       put_value(msg, "invalid", READ_ONCE(mr->invalid));
}

int medge_fill_res_mr(struct sk_buff *msg, struct ib_mr *ibmr)
{
	return put_table(msg, put_mr, to_medge_mr(ibmr));
}
