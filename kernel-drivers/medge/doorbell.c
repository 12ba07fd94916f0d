// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* A program tells of what it has posted. */
#include <linux/rcupdate.h>
#include <linux/uaccess.h>
#include <rdma/ib_verbs.h>
#include <rdma/medge-abi.h>

#include "device.h"
#include "doorbell.h"
#include "qp.h"
#include "stream.h"
#include "verbs.h"

void medge_doorbell_rung(struct medge_qp *qp)
{
	medge_stream_rang(qp, medge_send_rung(qp));
}

/* Of the same process; held. */
static struct medge_qp *get_qp(struct medge_ucontext *uc, u32 qpn)
{
	struct medge_qp *qp;

	rcu_read_lock();
	qp = medge_qp_get(to_medge_device(uc->ibuc.device), qpn);
	rcu_read_unlock();
	if (!qp || (qp->process && qp->process == uc->process))
		return qp;
	medge_qp_put(qp);
	return NULL;
}

static int ring_qp(struct uverbs_attr_bundle *attrs)
{
	struct ib_ucontext *ibuc = ib_uverbs_get_ucontext(attrs);
	const struct medge_ring_qp __user *cmd = attrs->ucore.inbuf;
	struct medge_qp *qp;
	u32 qpn;

	if (IS_ERR(ibuc))
		return PTR_ERR(ibuc);
	if (get_user(qpn, &cmd->qpn))
		return -EFAULT;
	qp = get_qp(container_of(ibuc, struct medge_ucontext, ibuc), qpn);
	if (!qp)
		return -EINVAL;
	medge_doorbell_rung(qp);
	medge_qp_put(qp);
	return 0;
}

/* DECLARE_UVERBS_WRITE() would set .write twice, which sparse minds. */
const struct uapi_definition medge_doorbell_defs[] = {
	DECLARE_UVERBS_OBJECT(UVERBS_OBJECT_QP),
	{
		.kind = UAPI_DEF_WRITE,
		.scope = UAPI_SCOPE_OBJECT,
		.write = {
			.command_num = MEDGE_CMD_RING_QP,
			.req_size = sizeof(struct medge_ring_qp),
		},
		.func_write = ring_qp,
	},
	{},
};
