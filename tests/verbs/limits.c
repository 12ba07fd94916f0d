/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What a process may have, and no more.
 *
 *   limits pinned     under RLIMIT_MEMLOCK, without the right to exceed it
 *   limits objects    makes QPs until it is told that it has enough, prints how
 *                     many, and waits to be killed
 *   limits quota N    where process_max_* are N, which must be 2 or more
 */
#include <errno.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "verbs_test.h"

enum {
	LIMIT_KIB = 4096,
	MOST = 512,		/* objects, if nothing else stops us */
};

static struct side side;
static struct ibv_cq *cq;
static struct ibv_xrcd *xrcd;

/* KiB that the kernel says we have pinned. */
static unsigned long pinned(void)
{
	unsigned long kib = 0;
	char line[256];
	FILE *f = fopen("/proc/self/status", "r");

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "VmPin: %lu", &kib) == 1)
			break;
	if (!f || fclose(f))
		die("/proc/self/status: %s", strerror(errno));
	return kib;
}

static void lose_right(void)
{
	struct __user_cap_header_struct hdr = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct data[2];
	struct rlimit limit = { LIMIT_KIB << 10, LIMIT_KIB << 10 };

	if (syscall(SYS_capget, &hdr, data))
		die("capget: %s", strerror(errno));
	data[0].effective &= ~(1u << CAP_IPC_LOCK);
	data[0].permitted &= ~(1u << CAP_IPC_LOCK);
	if (syscall(SYS_capset, &hdr, data) || setrlimit(RLIMIT_MEMLOCK, &limit))
		die("less rights: %s", strerror(errno));
}

/* ---- one of each kind, of 128 KiB or more; NULL: errno says why not ---- */

static void *make_mr(void)
{
	static void *buf;

	if (!buf)
		buf = alloc_pages(128 << 10);
	return ibv_reg_mr(side.pd, buf, 128 << 10, IBV_ACCESS_LOCAL_WRITE);
}

static int end_mr(void *mr)
{
	return ibv_dereg_mr(mr);
}

static void *make_cq(void)
{
	return ibv_create_cq(side.ctx, 2048, NULL, NULL, 0);
}

static int end_cq(void *made)
{
	return ibv_destroy_cq(made);
}

static void *make_qp(enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = type,
		.cap = { 512, 512, 4, 4, 64 },
	};

	return ibv_create_qp(side.pd, &init);
}

static void *make_rc(void)
{
	return make_qp(IBV_QPT_RC);
}

static void *make_ud(void)
{
	return make_qp(IBV_QPT_UD);
}

/* Which ib_core makes without saying whose it is. */
static void *make_xrc_recv(void)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_XRC_RECV,
		.comp_mask = IBV_QP_INIT_ATTR_XRCD,
		.xrcd = xrcd,
	};

	return ibv_create_qp_ex(side.ctx, &init);
}

static int end_qp(void *qp)
{
	return ibv_destroy_qp(qp);
}

static void *make_srq(void)
{
	struct ibv_srq_init_attr init = { .attr = { 2048, 4, 0 } };

	return ibv_create_srq(side.pd, &init);
}

static int end_srq(void *srq)
{
	return ibv_destroy_srq(srq);
}

static void *make_dm(void)
{
	struct ibv_alloc_dm_attr attr = { .length = 128 << 10 };

	return ibv_alloc_dm(side.ctx, &attr);
}

static int end_dm(void *dm)
{
	return ibv_free_dm(dm);
}

static const struct {
	const char *name;
	void *(*make)(void);
	int (*end)(void *object);
} kinds[] = {
	{ "MR", make_mr, end_mr }, { "CQ", make_cq, end_cq },
	{ "RC QP", make_rc, end_qp }, { "UD QP", make_ud, end_qp },
	{ "XRC receive QP", make_xrc_recv, end_qp },
	{ "SRQ", make_srq, end_srq }, { "DM", make_dm, end_dm },
};

/* As many as there may be: all of them together are within the limit. */
static void fill_up(int kind)
{
	const char *name = kinds[kind].name;
	unsigned long before = pinned(), most;
	void *made[MOST];
	int n = 0, err;

	while (n < MOST && (made[n] = kinds[kind].make()))
		n++;
	err = errno;
	most = pinned();
	printf("%d %ss pin %lu KiB\n", n, name, most - before);
	if (!n || n == MOST)
		die("%d %ss could be made", n, name);
	if (err != ENOMEM)
		die("the last %s: %s", name, strerror(err));
	if (most > LIMIT_KIB || most < LIMIT_KIB / 2)
		die("%ss: %lu KiB are pinned", name, most);
	while (n)
		if (kinds[kind].end(made[--n]))
			die("%s: cannot be ended", name);
	if (pinned() != before)
		die("%ss: %lu KiB are pinned, before it were %lu", name,
		    pinned(), before);
}

static void test_pinned(void)
{
	unsigned long before;
	void *all = alloc_pages(2 * LIMIT_KIB << 10);

	lose_right();
	before = pinned();
	if (ibv_reg_mr(side.pd, all, 2 * LIMIT_KIB << 10, 0) || errno != ENOMEM)
		die("a region larger than the limit: %s", strerror(errno));
	if (pinned() != before)
		die("what was refused is pinned");
	for (int i = 0; i < (int)ARRAY_LEN(kinds); i++)
		fill_up(i);
	if (ibv_resize_cq(cq, LIMIT_KIB << 10 >> 6) != ENOMEM)
		die("a CQ grows beyond the limit");
	if (pinned() != before)
		die("%lu KiB are pinned", pinned());
}

static void test_objects(void)
{
	int n = 0;

	while (n < MOST && make_ud())
		n++;
	printf("%d QPs, then: %s\n", n, strerrorname_np(errno));
	fflush(stdout);
	pause();
}

/* ---- so many of each kind ---- */

/* Of @kind, beside those there are already, @most; the next one is refused. */
static void have(int kind, int most, void **made)
{
	int n;

	for (n = 0; n < most; n++) {
		made[n] = kinds[kind].make();
		if (!made[n])
			die("%s %d of %d: %s", kinds[kind].name, n + 1, most,
			    strerror(errno));
	}
	if (kinds[kind].make() || errno != EAGAIN)
		die("a %s too many: %s", kinds[kind].name, strerror(errno));
}

static void end_all(int kind, int most, void **made)
{
	while (most--)
		if (kinds[kind].end(made[most]))
			die("%s: cannot be ended", kinds[kind].name);
}

static void open_device(void)
{
	side_open(&side, getenv("DEV_A"), getenv("GID_A"));
	cq = ibv_create_cq(side.ctx, 16, NULL, NULL, 0);
	xrcd = xrcd_open(&side);
	if (!cq || !xrcd)
		die("no CQ, or no XRC domain: %s", strerror(errno));
}

static void close_device(void)
{
	if (ibv_close_xrcd(xrcd) || ibv_destroy_cq(cq))
		die("the device's XRC domain, or its CQ: %s", strerror(errno));
	side_close(&side);
}

/*
 * What a child makes of what it was left is its parent's; if it opens the device
 * itself, it is another process.
 */
static void child_has_its_own(int kind, int most)
{
	pid_t pid = fork();
	int status;

	if (pid < 0)
		die("fork: %s", strerror(errno));
	if (!pid) {
		void *made[MOST];

		/* Of these nobody knows what they were left by whom. */
		if (kinds[kind].make != make_xrc_recv &&
		    (kinds[kind].make() || errno != EAGAIN))
			die("a child has another %s of its parent's: %s",
			    kinds[kind].name, strerror(errno));
		open_device();
		have(kind, most, made);
		_exit(0);
	}
	if (waitpid(pid, &status, 0) != pid || status)
		die("a child: status %d", status);
}

/* Nor by opening the device once more. */
static void second_context_has_no_more(int kind)
{
	struct ibv_xrcd *first_xrcd = xrcd;
	struct ibv_cq *first_cq = cq;
	struct side first = side;

	if (kinds[kind].make == make_cq)
		side_open(&side, getenv("DEV_A"), getenv("GID_A"));
	else
		open_device();
	if (kinds[kind].make() || errno != EAGAIN)
		die("a second context has another %s: %s", kinds[kind].name,
		    strerror(errno));
	if (cq != first_cq)
		close_device();
	else
		side_close(&side);
	side = first;
	cq = first_cq;
	xrcd = first_xrcd;
}

static void test_quota(int max)
{
	/* MR, CQ, and the QPs. */
	for (int kind = 0; kind < 5; kind++) {
		/* One CQ there is. */
		int most = kinds[kind].make == make_cq ? max - 1 : max;
		void *made[MOST];

		have(kind, most, made);
		second_context_has_no_more(kind);
		child_has_its_own(kind, most);
		/* What changes its memory is still one. */
		if (kinds[kind].make == make_mr &&
		    ibv_rereg_mr(made[0], IBV_REREG_MR_CHANGE_ACCESS, NULL,
				 NULL, 0, IBV_ACCESS_LOCAL_WRITE))
			die("rereg: %s", strerror(errno));
		end_all(kind, most, made);
		have(kind, most, made);
		end_all(kind, most, made);
		printf("%d %ss\n", max, kinds[kind].name);
	}
}

int main(int argc, char **argv)
{
	const char *what = argc >= 2 ? argv[1] : "";

	open_device();
	if (!strcmp(what, "quota") && argc == 3)
		test_quota(atoi(argv[2]));
	else if (!strcmp(what, "pinned"))
		test_pinned();
	else if (!strcmp(what, "objects"))
		test_objects();
	else
		die("usage: limits pinned|objects|quota N");
	close_device();
	return 0;
}
