/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Every verb that takes something from the kernel, or gives it back, again and
 * again: with the first allocation or copy from or to user space failing, the
 * second, and so on until none is left to fail (Documentation/fault-injection:
 * fail-nth). It must fail with an errno that says so, or succeed all the same; and
 * what there was before must still work. That nothing leaks is the debug kernel's
 * to tell.
 *
 *   verbs_faults [NAME...]    default: all; needs CONFIG_FAULT_INJECTION
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "verbs_test.h"

enum {
	MOST = 3000,
	LEN = 1 << 20,
	BATCH = 20,		/* messages at a time through queues that are resized */
	MESSAGE = 64,
};

/* What verbs are tried on; made before anything fails. */
static struct {
	struct side a, b;
	struct pair pair;
	struct ibv_mr *src_mr, *dst_mr, *mr;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_qp *ud;
	struct end spare;
	uint8_t *src, *dst;
	/* What is resized: a's send CQ, and @srq, which b receives by. */
	struct pair resized;
	unsigned int unread;	/* completions in that CQ, or soon to be there */
	uint64_t posted, received;
} s;

/* What a verb has made, until it is undone. */
static union {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_cq_ex *cq_ex;
	struct ibv_mr *mr;
	struct ibv_mw *mw;
	struct ibv_qp *qp;
	struct ibv_srq *srq;
	struct ibv_xrcd *xrcd;
	struct ibv_ah *ah;
	struct ibv_dm *dm;
} made;

/* ---- faults ---- */

static int fail_nth = -1;

/* What is read here may be what fails; then it does not the next time. */
static void arm(int nth)
{
	char text[16];
	int n = snprintf(text, sizeof(text), "%d", nth);

	if (pwrite(fail_nth, text, n, 0) != n &&
	    (errno != EFAULT || pwrite(fail_nth, text, n, 0) != n))
		die("fail-nth: %s", strerror(errno));
}

/* Has it failed? Who arms it with 0 before that has seen it fail. */
static bool disarm(void)
{
	char text[16] = "";

	if (pread(fail_nth, text, sizeof(text) - 1, 0) <= 0) {
		if (errno != EFAULT)
			die("fail-nth: %s", strerror(errno));
		/* It was the next, so all of the verb's had been before. */
		return false;
	}
	arm(0);
	return atoi(text) == 0;
}

/* ---- the verbs: each returns 0 or an errno ---- */

static int got(const void *object)
{
	return object ? 0 : errno;
}

static int open_device(void)
{
	return got(made.context = ibv_open_device(s.a.ctx->device));
}

static int close_device(void)
{
	return ibv_close_device(made.context) ? errno : 0;
}

static int alloc_pd(void)
{
	return got(made.pd = ibv_alloc_pd(s.a.ctx));
}

static int dealloc_pd(void)
{
	return ibv_dealloc_pd(made.pd);
}

static int create_channel(void)
{
	return got(made.channel = ibv_create_comp_channel(s.a.ctx));
}

static int destroy_channel(void)
{
	return ibv_destroy_comp_channel(made.channel);
}

static int create_cq(void)
{
	return got(made.cq = ibv_create_cq(s.a.ctx, 5000, NULL, NULL, 0));
}

static int destroy_cq(void)
{
	return ibv_destroy_cq(made.cq);
}

static int create_cq_ex(void)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 100,
		.wc_flags = IBV_WC_STANDARD_FLAGS |
			    IBV_WC_EX_WITH_COMPLETION_TIMESTAMP,
	};

	return got(made.cq_ex = ibv_create_cq_ex(s.a.ctx, &attr));
}

static int destroy_cq_ex(void)
{
	return ibv_destroy_cq(ibv_cq_ex_to_cq(made.cq_ex));
}

static int resize_cq(void)
{
	struct ibv_cq *cq = s.resized.a.scq;

	return ibv_resize_cq(cq, cq->cqe > 1000 ? 100 : 5000);
}

static int resize_srq(void)
{
	struct ibv_srq_attr attr;
	uint32_t has;

	/* Which may be what fails. */
	if (ibv_query_srq(s.srq, &attr))
		return errno;
	has = attr.max_wr;
	attr.max_wr = has > 100 ? 100 : 2000;
	return ibv_modify_srq(s.srq, &attr, IBV_SRQ_MAX_WR);
}

/* More receives than are used, whose order is checked. */
static void post_receives(unsigned int n)
{
	struct ibv_recv_wr *bad;

	while (n--) {
		struct ibv_sge sge = {
			(uintptr_t)s.dst + s.posted % (2 * BATCH) * MESSAGE,
			MESSAGE, s.dst_mr->lkey,
		};
		struct ibv_recv_wr wr = {
			.wr_id = s.posted++, .sg_list = &sge, .num_sge = 1,
		};

		if (ibv_post_srq_recv(s.srq, &wr, &bad))
			die("a receive is refused");
	}
}

static void must_complete(struct ibv_cq *cq, const char *what)
{
	struct ibv_wc wc;

	if (!wait_wc(cq, &wc, PATIENCE_MS))
		die("no completion of a %s", what);
	if (wc.status)
		die("a %s ended with %s", what, ibv_wc_status_str(wc.status));
	if (cq == s.resized.b.rcq && wc.wr_id != s.received)
		die("receive %llu instead of %llu",
		    (unsigned long long)wc.wr_id,
		    (unsigned long long)s.received);
}

/* Completions and receives that were there come out, and others are put in. */
static void use_resized(void)
{
	struct ibv_sge sge = { (uintptr_t)s.src, MESSAGE, s.src_mr->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1,
		.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED,
	}, *bad;
	int i;

	for (; s.unread; s.unread--)
		must_complete(s.resized.a.scq, "send");
	post_receives(BATCH);
	for (i = 0; i < BATCH; i++) {
		uint8_t *to = s.dst + s.received % (2 * BATCH) * MESSAGE;

		memset(to, 0, MESSAGE);
		sge.addr = (uintptr_t)s.src + s.received % (LEN / MESSAGE) *
						      MESSAGE;
		if (ibv_post_send(s.resized.a.qp, &wr, &bad))
			die("a send is refused");
		s.unread++;
		must_complete(s.resized.b.rcq, "receive");
		if (memcmp(to, (void *)(uintptr_t)sge.addr, MESSAGE))
			die("a message has brought something else");
		s.received++;
	}
}

static int reg_mr(void)
{
	return got(made.mr = ibv_reg_mr(s.a.pd, s.src, LEN, FULL_ACCESS));
}

static int null_mr(void)
{
	return got(made.mr = ibv_alloc_null_mr(s.a.pd));
}

static int dereg_mr(void)
{
	return ibv_dereg_mr(made.mr);
}

/* On failure the MR may be as before, or of no use: then there is another. */
static int rereg_mr(void)
{
	int err = ibv_rereg_mr(s.mr, IBV_REREG_MR_CHANGE_TRANSLATION |
				     IBV_REREG_MR_CHANGE_ACCESS,
			       NULL, s.src, LEN / 2, FULL_ACCESS);
	int why = errno;

	if (!err)
		return 0;
	arm(0);
	ibv_dereg_mr(s.mr);
	s.mr = must_reg(&s.a, s.src, LEN, FULL_ACCESS);
	return why;
}

static int alloc_mw(enum ibv_mw_type type)
{
	return got(made.mw = ibv_alloc_mw(s.a.pd, type));
}

static int alloc_mw_1(void)
{
	return alloc_mw(IBV_MW_TYPE_1);
}

static int alloc_mw_2(void)
{
	return alloc_mw(IBV_MW_TYPE_2);
}

static int dealloc_mw(void)
{
	return ibv_dealloc_mw(made.mw);
}

static int create_qp(enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init = {
		.send_cq = s.cq,
		.recv_cq = s.cq,
		.qp_type = type,
		.cap = { 64, 64, 4, 4, 128 },
	};

	return got(made.qp = ibv_create_qp(s.a.pd, &init));
}

static int create_rc(void)
{
	return create_qp(IBV_QPT_RC);
}

static int create_uc(void)
{
	return create_qp(IBV_QPT_UC);
}

static int create_ud(void)
{
	return create_qp(IBV_QPT_UD);
}

static int destroy_qp(void)
{
	return ibv_destroy_qp(made.qp);
}

static int reset_qp(void)
{
	return end_to_state(&s.spare, IBV_QPS_RESET) ? errno : 0;
}

static int modify_qp(void)
{
	const struct pair_options opt = { .timeout = 18 };
	int err = 0;

	if (end_to_init(&s.spare, &opt) ||
	    end_to_rtr(&s.spare, &s.pair.b, &opt) ||
	    end_to_rts(&s.spare, &opt))
		err = errno;
	if (!err)
		return 0;
	arm(0);
	return reset_qp() ? EIO : err;
}

static int create_srq(void)
{
	struct ibv_srq_init_attr init = { .attr = { 1000, 2, 0 } };

	return got(made.srq = ibv_create_srq(s.a.pd, &init));
}

static int destroy_srq(void)
{
	return ibv_destroy_srq(made.srq);
}

static int modify_srq(void)
{
	struct ibv_srq_attr attr = { .srq_limit = 5 };

	return ibv_modify_srq(s.srq, &attr, IBV_SRQ_LIMIT);
}

static int open_xrcd(void)
{
	return got(made.xrcd = xrcd_open(&s.a));
}

static int close_xrcd(void)
{
	return ibv_close_xrcd(made.xrcd);
}

static int create_ah(void)
{
	struct ibv_ah_attr attr = {
		.is_global = 1,
		.port_num = 1,
		.grh = { .dgid = s.b.gid, .sgid_index = s.a.gid_index,
			 .hop_limit = 64 },
	};

	return got(made.ah = ibv_create_ah(s.a.pd, &attr));
}

static int destroy_ah(void)
{
	return ibv_destroy_ah(made.ah);
}

static const union ibv_gid group = { .raw = {
	[10] = 0xff, 0xff, 239, 1, 2, 3,
} };

static int attach(void)
{
	return ibv_attach_mcast(s.ud, &group, 0);
}

static int detach(void)
{
	return ibv_detach_mcast(s.ud, &group, 0);
}

static int alloc_dm(void)
{
	struct ibv_alloc_dm_attr attr = { .length = 4096 };

	return got(made.dm = ibv_alloc_dm(s.a.ctx, &attr));
}

static int free_dm(void)
{
	return ibv_free_dm(made.dm);
}

static int query_all(void)
{
	struct ibv_device_attr_ex device;
	struct ibv_gid_entry gids[64];
	struct ibv_qp_init_attr init;
	struct ibv_port_attr port;
	struct ibv_srq_attr srq;
	struct ibv_qp_attr qp;
	int err;

	err = ibv_query_device_ex(s.a.ctx, NULL, &device);
	if (!err)
		err = ibv_query_port(s.a.ctx, 1, &port);
	if (!err)
		err = ibv_query_qp(s.pair.a.qp, &qp, 0xffff, &init);
	if (!err)
		err = ibv_query_srq(s.srq, &srq);
	if (!err && ibv_query_gid_table(s.a.ctx, gids, 64, 0) < 0)
		err = errno;
	return err;
}

/* Frames that cannot be had go later: a write fails for no want of memory. */
static int write_all(void)
{
	struct ibv_sge sge = { (uintptr_t)s.src, LEN, s.src_mr->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { (uintptr_t)s.dst, s.dst_mr->rkey },
	}, *bad;
	struct ibv_wc wc;
	int err;

	memset(s.dst, 0, LEN);
	err = ibv_post_send(s.pair.a.qp, &wr, &bad);
	if (err)
		return err;
	if (!wait_wc(s.pair.a.scq, &wc, PATIENCE_MS))
		die("a write does not end");
	if (wc.status)
		die("a write ended with %s", ibv_wc_status_str(wc.status));
	if (memcmp(s.src, s.dst, LEN))
		die("a write has brought something else");
	return 0;
}

/* ---- all of them ---- */

static int nothing(void)
{
	return 0;
}

static const struct verb {
	const char *name;
	int (*make)(void);
	int (*undo)(void);
	void (*use)(void);	/* what it is done to, before each time and after the last */
} verbs[] = {
	{ "open_device", open_device, close_device, NULL },
	{ "alloc_pd", alloc_pd, dealloc_pd, NULL },
	{ "create_comp_channel", create_channel, destroy_channel, NULL },
	{ "create_cq", create_cq, destroy_cq, NULL },
	{ "create_cq_ex", create_cq_ex, destroy_cq_ex, NULL },
	{ "resize_cq", resize_cq, nothing, use_resized },
	{ "reg_mr", reg_mr, dereg_mr, NULL },
	{ "null_mr", null_mr, dereg_mr, NULL },
	{ "rereg_mr", rereg_mr, nothing, NULL },
	{ "alloc_mw_1", alloc_mw_1, dealloc_mw, NULL },
	{ "alloc_mw_2", alloc_mw_2, dealloc_mw, NULL },
	{ "create_rc", create_rc, destroy_qp, NULL },
	{ "create_uc", create_uc, destroy_qp, NULL },
	{ "create_ud", create_ud, destroy_qp, NULL },
	{ "modify_qp", modify_qp, reset_qp, NULL },
	{ "create_srq", create_srq, destroy_srq, NULL },
	{ "modify_srq", modify_srq, nothing, NULL },
	{ "resize_srq", resize_srq, nothing, use_resized },
	{ "open_xrcd", open_xrcd, close_xrcd, NULL },
	{ "create_ah", create_ah, destroy_ah, NULL },
	{ "attach_mcast", attach, detach, NULL },
	{ "alloc_dm", alloc_dm, free_dm, NULL },
	{ "query", query_all, nothing, NULL },
	{ "write", write_all, nothing, NULL },
};

static void one(const struct verb *verb)
{
	int nth, err, failed = 0;
	bool hit = true;

	for (nth = 1; hit; nth++) {
		if (nth > MOST)
			die("%s: always one more to fail", verb->name);
		if (verb->use)
			verb->use();
		errno = 0;
		arm(nth);
		err = verb->make();
		hit = disarm();
		if (!err) {
			err = verb->undo();
			if (err)
				die("%s: undoing it: %s", verb->name,
				    strerror(err));
			continue;
		}
		failed++;
		if (!hit || verb->make == write_all)
			die("%s, fault %d: %s", verb->name, nth,
			    strerror(err));
		/* libibverbs tries several ways to open a device, and tells of the last. */
		if (err != ENOMEM && err != EFAULT && verb->make != open_device)
			die("%s, fault %d: not ENOMEM or EFAULT but %d, %s",
			    verb->name, nth, err, strerror(err));
	}
	if (verb->use)
		verb->use();
	printf("%-22s %4d faults, %d failed\n", verb->name, nth - 2, failed);
}

/* What could not be given back is there still, and can; or only the answer was lost. */
static void again(const struct verb *verb, int nth)
{
	int err = verb->undo();

	if (err && err != ENOENT && err != EINVAL)
		die("%s, undoing it after fault %d: %s", verb->name, nth,
		    strerror(err));
}

static void undo_one(const struct verb *verb)
{
	int nth, err, failed = 0;
	bool hit = true;

	for (nth = 1; hit; nth++) {
		if (nth > MOST)
			die("%s: always one more to fail", verb->name);
		err = verb->make();
		if (err)
			die("%s: %s", verb->name, strerror(err));
		arm(nth);
		err = verb->undo();
		hit = disarm();
		if (!err)
			continue;
		failed++;
		if (!hit || (err != ENOMEM && err != EFAULT))
			die("%s, undoing it, fault %d: %s", verb->name, nth,
			    strerror(err));
		again(verb, nth);
	}
	printf("%-22s %4d faults, %d failed\n", "   undone", nth - 2, failed);
}

static bool wanted(const char *name, int argc, char **argv)
{
	int i;

	for (i = 1; i < argc; i++) {
		if (!strcmp(argv[i], name))
			return true;
	}
	return argc == 1;
}

static struct ibv_qp *with_srq(struct side *side, struct ibv_qp_init_attr *init)
{
	if (side == &s.b)
		init->srq = s.srq;
	return ibv_create_qp(side->pd, init);
}

static void prepare(void)
{
	struct pair_options po = { .send_wr = 16, .cqe = 32, .timeout = 18 };
	struct ibv_srq_init_attr srq = { .attr = { 100, 2, 0 } };
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_UD, .cap = { 16, 16, 1, 1, 0 },
	};
	uint64_t seed = 1;
	char path[64];

	side_open_both(&s.a, &s.b);
	s.src = alloc_pages(LEN);
	s.dst = alloc_pages(LEN);
	rng_fill(&seed, s.src, LEN);
	s.src_mr = must_reg(&s.a, s.src, LEN, FULL_ACCESS);
	s.dst_mr = must_reg(&s.b, s.dst, LEN, FULL_ACCESS);
	s.mr = must_reg(&s.a, s.src, LEN, FULL_ACCESS);
	pair_create(&s.pair, &s.a, &s.b, &po);
	s.cq = ibv_create_cq(s.a.ctx, 100, NULL, NULL, 0);
	s.srq = ibv_create_srq(s.b.pd, &srq);
	init.send_cq = s.cq;
	init.recv_cq = s.cq;
	s.ud = ibv_create_qp(s.a.pd, &init);
	if (!s.cq || !s.srq || !s.ud || end_create(&s.spare, &s.a, &po))
		die("what is to be tried on cannot be made");
	po.send_wr = 2 * BATCH;
	po.cqe = 100;
	po.create_qp = with_srq;
	pair_create(&s.resized, &s.a, &s.b, &po);
	post_receives(BATCH);
	snprintf(path, sizeof(path), "/proc/self/task/%ld/fail-nth",
		 syscall(SYS_gettid));
	fail_nth = open(path, O_RDWR);
	if (fail_nth < 0)
		die("%s: %s: this needs a kernel with fault injection", path,
		    strerror(errno));
}

int main(int argc, char **argv)
{
	size_t i, n = 0;

	prepare();
	for (i = 0; i < ARRAY_LEN(verbs); i++) {
		if (!wanted(verbs[i].name, argc, argv))
			continue;
		one(&verbs[i]);
		if (verbs[i].undo != nothing)
			undo_one(&verbs[i]);
		n++;
		if (write_all())
			die("after %s, a write fails", verbs[i].name);
	}
	if (!n)
		die("no such verb");
	pair_destroy(&s.resized);
	end_destroy(&s.spare);
	ibv_destroy_qp(s.ud);
	ibv_destroy_srq(s.srq);
	ibv_destroy_cq(s.cq);
	pair_destroy(&s.pair);
	ibv_dereg_mr(s.mr);
	ibv_dereg_mr(s.src_mr);
	ibv_dereg_mr(s.dst_mr);
	side_close(&s.a);
	side_close(&s.b);
	printf("%zu verbs, each fault survived\n", n);
	return 0;
}
