// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What `rdma -dd resource` shows beyond what ib_core knows. */
#include <linux/ktime.h>
#include <rdma/restrack.h>
#include <uapi/rdma/rdma_netlink.h>

#include "qp.h"

static int put_value(void *msg, const char *name, u64 value)
{
	return rdma_nl_put_driver_u64(msg, name, value);
}

int medge_fill_res_qp(struct sk_buff *msg, struct ib_qp *ibqp)
{
	struct medge_qp *qp = to_medge_qp(ibqp);
	struct nlattr *table;
	int ret = 0;

	if (!medge_qp_hold(qp))
		return 0;
	table = nla_nest_start(msg, RDMA_NLDEV_ATTR_DRIVER);
	if (!table) {
		ret = -EMSGSIZE;
		goto put;
	}
	spin_lock_bh(&qp->lock);
	if (qp->conn)
		ret = medge_conn_describe(qp->conn, ktime_get_ns(), put_value, msg);
	spin_unlock_bh(&qp->lock);
	if (ret)
		nla_nest_cancel(msg, table);
	else
		nla_nest_end(msg, table);
put:
	medge_qp_put(qp);
	return ret;
}
