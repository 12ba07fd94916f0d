/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Of verbs_errors: medge's own command of a doorbell, and being without it */
#include <errno.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/medge-abi.h>
#include <rdma/rdma_user_ioctl_cmds.h>

#include "errors.h"

static void need_medge(void)
{
	if (!type_is("medge"))
		skip("it is medge's");
}

static void doorbell_of_no_qp(void)
{
	static const uint32_t wrong[] = { 0, 1, 0xffffff, 1 << 24, UINT32_MAX };
	struct pair p;
	uint32_t qpn;
	size_t i;

	need_medge();
	make(&p, NULL);
	qpn = p.a.qp->qp_num;
	for (i = 0; i < ARRAY_LEN(wrong); i++)
		check_ret(ring_qp(&A, wrong[i]), EINVAL);
	check_ret(ring_qp(&A, 1u << 31 | qpn), EINVAL);
	/* It is there, and has nothing to say. */
	check_ret(ring_qp(&A, qpn), 0);
	check_works(&p);
	pair_destroy(&p);
	check_ret(ring_qp(&A, qpn), EINVAL);
}

static void doorbell_cut_short(void)
{
	struct ib_uverbs_cmd_hdr hdr = {
		.command = MEDGE_CMD_RING_QP, .in_words = sizeof(hdr) / 4,
	};
	uint8_t *edge = alloc_pages(2 * 4096) + 4096;

	need_medge();
	check(write(A.ctx->cmd_fd, &hdr, sizeof(hdr)) < 0 && errno == ENOSPC,
	      "of no QP at all: %s", strerror(errno));
	/* What is behind it cannot be read. */
	hdr.in_words++;
	check(!munmap(edge, 4096), "munmap: %s", strerror(errno));
	edge -= sizeof(hdr);
	memcpy(edge, &hdr, sizeof(hdr));
	check(write(A.ctx->cmd_fd, edge, sizeof(hdr) + 4) < 0 && errno == EFAULT,
	      "of bytes that are not there: %s", strerror(errno));
}

/* One process does not ring for another's QP. */
static void doorbell_of_another(void)
{
	struct pair p;
	int status;
	pid_t pid;

	need_medge();
	make(&p, NULL);
	pid = fork();
	check(pid >= 0, "fork: %s", strerror(errno));
	if (!pid) {
		struct side mine = B;

		mine.ctx = ibv_open_device(B.ctx->device);
		check(mine.ctx, "ibv_open_device: %s", strerror(errno));
		check_ret(ring_qp(&mine, p.b.qp->qp_num), EINVAL);
		_exit(0);
	}
	check(waitpid(pid, &status, 0) == pid && !status, "the other failed");
	check_works(&p);
	pair_destroy(&p);
}

/* Who has changed since he opened the device may not write commands. */
static void doorbell_after_setuid(void)
{
	struct pair p;

	make(&p, NULL);
	if (setegid(65534) || seteuid(65534))
		die("seteuid: %s", strerror(errno));
	if (type_is("medge"))
		check_ret(ring_qp(&A, p.a.qp->qp_num), EACCES);
	check_works(&p);
	if (seteuid(0) || setegid(0))
		die("seteuid: %s", strerror(errno));
	pair_destroy(&p);
}

/* ---- a module that does not have it ---- */

static unsigned int forgotten;		/* 1: it is to be; 2: it was */

/* libibverbs calls this one. */
int ioctl(int fd, unsigned long request, ...)
{
	struct ib_uverbs_ioctl_hdr *hdr;
	va_list args;
	int i, ret;

	va_start(args, request);
	hdr = va_arg(args, void *);
	va_end(args);
	ret = syscall(SYS_ioctl, fd, request, hdr);
	if (ret || !forgotten || request != RDMA_VERBS_IOCTL ||
	    hdr->object_id != UVERBS_OBJECT_DEVICE)
		return ret;
	for (i = 0; i < hdr->num_attrs; i++) {
		struct medge_alloc_ucontext_resp *resp = (void *)(uintptr_t)hdr->attrs[i].data;

		if (hdr->attrs[i].attr_id == UVERBS_ATTR_UHW_OUT && hdr->attrs[i].len == sizeof(*resp)) {
			check(resp->features & MEDGE_FEATURE_RING_QP, "it does not have it anyway");
			resp->features = 0;
			forgotten = 2;
		}
	}
	return ret;
}

static void open_older(struct side *side, const struct side *like)
{
	*side = *like;
	forgotten = 1;
	side->ctx = ibv_open_device(like->ctx->device);
	check(side->ctx, "ibv_open_device: %s", strerror(errno));
	check(forgotten == 2, "it was not asked for what it can do");
	forgotten = 0;
	side->pd = ibv_alloc_pd(side->ctx);
	check(side->pd, "ibv_alloc_pd: %s", strerror(errno));
}

/* It takes longer, and that is all. */
static void doorbell_of_verbs(void)
{
	struct ibv_mr *mr_a = amr, *mr_b = bmr;
	struct side a, b;
	struct pair p;

	need_medge();
	open_older(&a, &A);
	open_older(&b, &B);
	amr = must_reg(&a, abuf, BUF, FULL_ACCESS);
	bmr = must_reg(&b, bbuf, BUF, FULL_ACCESS);
	pair_create(&p, &a, &b, &(struct pair_options){});
	check_works(&p);
	pair_destroy(&p);
	check_ret(ibv_dereg_mr(amr), 0);
	check_ret(ibv_dereg_mr(bmr), 0);
	side_close(&a);
	side_close(&b);
	amr = mr_a;
	bmr = mr_b;
}

const struct error_case errors_doorbell[] = {
	ERROR_CASE(doorbell_of_no_qp),
	ERROR_CASE(doorbell_cut_short),
	ERROR_CASE(doorbell_of_another),
	ERROR_CASE(doorbell_after_setuid),
	ERROR_CASE(doorbell_of_verbs),
	{ NULL }
};
