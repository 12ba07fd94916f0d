/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Doorbells: the kernel is told of what is in a ring, by a command of our own, or by
 * one of no work requests.
 */
#include <errno.h>
#include <sched.h>
#include <stddef.h>
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

/* Those of receives look the same as that of sends. */
static_assert(sizeof(struct ibv_post_recv) == sizeof(struct ibv_post_send) &&
	      offsetof(struct ibv_post_recv, qp_handle) ==
		      offsetof(struct ibv_post_send, qp_handle) &&
	      offsetof(struct ibv_post_recv, wqe_size) ==
		      offsetof(struct ibv_post_send, wqe_size),
	      "POST_RECV looks different");
static_assert(sizeof(struct ibv_post_srq_recv) == sizeof(struct ibv_post_send) &&
	      offsetof(struct ibv_post_srq_recv, srq_handle) ==
		      offsetof(struct ibv_post_send, qp_handle) &&
	      offsetof(struct ibv_post_srq_recv, wqe_size) ==
		      offsetof(struct ibv_post_send, wqe_size),
	      "POST_SRQ_RECV looks different");

static int post_nothing(struct ibv_context *context, uint32_t command,
			uint32_t handle, uint32_t wqe_size)
{
	struct ib_uverbs_post_send_resp resp;
	struct ibv_post_send cmd = {
		.hdr.command = command,
		.hdr.in_words = sizeof(cmd) / 4,
		.hdr.out_words = sizeof(resp) / 4,
		.response = (uintptr_t)&resp,
		.qp_handle = handle,
		.wqe_size = wqe_size,
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
		return post_nothing(context, IB_USER_VERBS_CMD_POST_SEND,
				    id.handle, sizeof(struct ib_uverbs_send_wr));
	return ring(context, &cmd, sizeof(cmd));
}

int medge_recv_ring(struct ibv_context *context, uint32_t qp_handle)
{
	return post_nothing(context, IB_USER_VERBS_CMD_POST_RECV, qp_handle,
			    sizeof(struct ib_uverbs_recv_wr));
}

int medge_srq_ring(const struct ibv_srq *ibsrq)
{
	return post_nothing(ibsrq->context, IB_USER_VERBS_CMD_POST_SRQ_RECV,
			    ibsrq->handle, sizeof(struct ib_uverbs_recv_wr));
}
