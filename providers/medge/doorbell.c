/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Doorbells: the kernel is told of what is in a ring, by a command of our own, or by
 * one of no work requests.
 */
#include <errno.h>
#include <sched.h>
#include <unistd.h>

#include <infiniband/cmd_ioctl.h>

#include "medge.h"

/* What such commands answer is which work request was bad, and there is none. */
static int tell_by_ioctl(struct ibv_context *context, const void *cmd,
			 size_t len)
{
	DECLARE_COMMAND_BUFFER(cmdb, UVERBS_OBJECT_DEVICE,
			       UVERBS_METHOD_INVOKE_WRITE, 3);
	const struct ib_uverbs_cmd_hdr *hdr = cmd;
	uint32_t bad_wr;

	fill_attr_const_in(cmdb, UVERBS_ATTR_WRITE_CMD, hdr->command);
	fill_attr_in(cmdb, UVERBS_ATTR_CORE_IN, hdr + 1, len - sizeof(*hdr));
	fill_attr_out_ptr(cmdb, UVERBS_ATTR_CORE_OUT, &bad_wr);
	return execute_ioctl(context, cmdb);
}

/*
 * A write is cheaper, but the kernel takes it only from the very credentials that
 * opened the device: not from who was given it, nor after setuid().
 */
static int tell(struct ibv_context *context, const void *cmd, size_t len)
{
	if (write(context->cmd_fd, cmd, len) == (ssize_t)len)
		return 0;
	return errno == EACCES ? tell_by_ioctl(context, cmd, len) : errno;
}

/*
 * What is published is posted: a kernel that is short of memory, for the command or to
 * read it, is told again.
 */
static int ring(struct ibv_context *context, const void *cmd, size_t len)
{
	int err = tell(context, cmd, len);

	while (err == ENOMEM || err == EINTR || err == EFAULT) {
		sched_yield();
		err = tell(context, cmd, len);
	}
	return err;
}

static int post_nothing(struct ibv_context *context, uint32_t qp_handle)
{
	struct ib_uverbs_post_send_resp resp;
	struct ibv_post_send cmd = {
		.hdr.command = IB_USER_VERBS_CMD_POST_SEND,
		.hdr.in_words = sizeof(cmd) / 4,
		.hdr.out_words = sizeof(resp) / 4,
		.response = (uintptr_t)&resp,
		.qp_handle = qp_handle,
		.wqe_size = sizeof(struct ib_uverbs_send_wr),
	};

	return ring(context, &cmd, sizeof(cmd));
}

int medge_send_ring(struct ibv_context *context, struct medge_qp_id id)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct medge_ring_qp qp;
	} cmd = {
		.hdr.command = MEDGE_CMD_RING_QP,
		.hdr.in_words = sizeof(cmd) / 4,
		.qp.qpn = id.num,
	};

	/* The module may be older, and a context that was imported does not know. */
	if (!(to_medge_context(context)->features & MEDGE_FEATURE_RING_QP))
		return post_nothing(context, id.handle);
	return ring(context, &cmd, sizeof(cmd));
}

int medge_recv_ring(struct ibv_context *context, uint32_t qp_handle)
{
	struct ib_uverbs_post_recv_resp resp;
	struct ibv_post_recv cmd = {
		.hdr.command = IB_USER_VERBS_CMD_POST_RECV,
		.hdr.in_words = sizeof(cmd) / 4,
		.hdr.out_words = sizeof(resp) / 4,
		.response = (uintptr_t)&resp,
		.qp_handle = qp_handle,
		.wqe_size = sizeof(struct ib_uverbs_recv_wr),
	};

	return ring(context, &cmd, sizeof(cmd));
}

int medge_srq_ring(const struct ibv_srq *ibsrq)
{
	struct ib_uverbs_post_srq_recv_resp resp;
	struct ibv_post_srq_recv cmd = {
		.hdr.command = IB_USER_VERBS_CMD_POST_SRQ_RECV,
		.hdr.in_words = sizeof(cmd) / 4,
		.hdr.out_words = sizeof(resp) / 4,
		.response = (uintptr_t)&resp,
		.srq_handle = ibsrq->handle,
		.wqe_size = sizeof(struct ib_uverbs_recv_wr),
	};

	return ring(ibsrq->context, &cmd, sizeof(cmd));
}
