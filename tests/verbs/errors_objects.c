/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Of verbs_errors: objects that cannot be made, and what there is not */
#include <errno.h>
#include <string.h>

#include "errors.h"

/* --- objects ------------------------------------------------------------------ */

int try_qp(struct ibv_qp_cap cap)
{
	struct ibv_cq *cq = ibv_create_cq(A.ctx, 16, NULL, NULL, 0);
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = cap,
	};
	struct ibv_qp *qp;
	int ret = 0;

	check(cq, "ibv_create_cq: %s", strerror(errno));
	errno = 0;
	qp = ibv_create_qp(A.pd, &init);
	if (!qp)
		ret = errno ? errno : -1;
	else
		ibv_destroy_qp(qp);
	check_ret(ibv_destroy_cq(cq), 0);
	return ret;
}

static void qp_too_large(void)
{
	struct ibv_qp_cap plain = { 16, 16, 1, 1, 0 }, cap;
	uint32_t n;
	int i;

	check_ret(try_qp(plain), 0);
	for (i = 0; i < 20; i++) {
		cap = plain;
		cap.max_send_wr = A.attr.max_qp_wr + 1;
		check_ret(try_qp(cap), EINVAL);
		cap = plain;
		cap.max_recv_wr = A.attr.max_qp_wr + 1;
		check_ret(try_qp(cap), EINVAL);
		cap = plain;
		cap.max_send_sge = A.attr.max_sge + 1;
		check_ret(try_qp(cap), EINVAL);
		cap = plain;
		cap.max_recv_sge = A.attr.max_sge + 1;
		check_ret(try_qp(cap), EINVAL);
		cap = plain;
		cap.max_inline_data = 1 << 20;
		check_ret(try_qp(cap), EINVAL);
		cap.max_inline_data = UINT32_MAX;
		check_ret(try_qp(cap), EINVAL);
		cap = plain;
		cap.max_send_wr = UINT32_MAX;
		check_ret(try_qp(cap), EINVAL);
		cap = plain;
		cap.max_recv_sge = UINT32_MAX;
		check_ret(try_qp(cap), EINVAL);
	}
	/* UCX and perftest look for the limit like this. */
	cap = plain;
	for (n = 1; n < 1 << 20; n *= 2) {
		cap.max_inline_data = n;
		if (try_qp(cap) == EINVAL)
			break;
	}
	check(n > 64, "max_inline_data of %u is refused", n);
	cap = plain;
	cap.max_send_wr = A.attr.max_qp_wr;
	cap.max_recv_wr = A.attr.max_qp_wr;
	check_ret(try_qp(cap), 0);
	cap = plain;
	cap.max_send_sge = A.attr.max_sge;
	cap.max_recv_sge = A.attr.max_sge;
	check_ret(try_qp(cap), 0);
}

static void qp_without_queues(void)
{
	struct ibv_qp_cap cap = { 0, 16, 1, 1, 0 };
	struct pair_options opt = {};
	struct ibv_qp_init_attr init = {};
	struct ibv_send_wr *bad;
	struct pair p;

	check_ret(try_qp(cap), 0);
	cap = (struct ibv_qp_cap){ 16, 0, 1, 1, 0 };
	check_ret(try_qp(cap), 0);
	cap = (struct ibv_qp_cap){ 16, 0, 1, 0, 0 };
	check_ret(try_qp(cap), 0);
	cap = (struct ibv_qp_cap){ 0, 0, 0, 0, 0 };
	check_ret(try_qp(cap), 0);

	/* No send queue at B, no receive queue at A. */
	check_ret(end_create(&p.a, &A, &opt), 0);
	check_ret(end_create(&p.b, &B, &opt), 0);
	check_ret(ibv_destroy_qp(p.a.qp), 0);
	check_ret(ibv_destroy_qp(p.b.qp), 0);
	init.qp_type = IBV_QPT_RC;
	init.send_cq = p.a.scq;
	init.recv_cq = p.a.rcq;
	init.cap.max_send_wr = 4;
	init.cap.max_send_sge = 1;
	p.a.qp = ibv_create_qp(A.pd, &init);
	check(p.a.qp, "without a receive queue: %s", strerror(errno));
	memset(&init.cap, 0, sizeof(init.cap));
	init.send_cq = p.b.scq;
	init.recv_cq = p.b.rcq;
	init.cap.max_recv_wr = 4;
	init.cap.max_recv_sge = 1;
	p.b.qp = ibv_create_qp(B.pd, &init);
	check(p.b.qp, "without a send queue: %s", strerror(errno));
	pair_connect(&p, &opt);
	check_works(&p);
	post_recv(&p.b, 1, 8);
	check_ret(post(&p.a, mk(0, IBV_WR_SEND, 8), NULL), 0);
	expect_wc(p.b.rcq, 1, IBV_WC_SUCCESS);
	expect_wc(p.a.scq, 0, IBV_WC_SUCCESS);
	if (!init.cap.max_send_wr) {
		wrs[0].num_sge = 0;
		check_ret(post(&p.b, &wrs[0], &bad), ENOMEM);
	}
	pair_destroy(&p);
}

static void cq_sizes(void)
{
	static const int good[] = { 1, 2, 3, 100, 4096, 128 * 1024 };
	struct ibv_cq *cq;
	size_t i;

	for (i = 0; i < ARRAY_LEN(good); i++) {
		if (good[i] > A.attr.max_cqe) {
			check(type_is("rxe"), "max_cqe is only %d",
			      A.attr.max_cqe);
			continue;
		}
		cq = ibv_create_cq(A.ctx, good[i], NULL, NULL, 0);
		check(cq, "%d entries: %s", good[i], strerror(errno));
		check(cq->cqe >= good[i], "%d entries instead of %d", cq->cqe,
		      good[i]);
		check_ret(ibv_destroy_cq(cq), 0);
	}
	cq = ibv_create_cq(A.ctx, 0, NULL, NULL, 0);
	check(!cq && errno == EINVAL, "0 entries: %s", strerror(errno));
	cq = ibv_create_cq(A.ctx, A.attr.max_cqe + 1, NULL, NULL, 0);
	check(!cq && errno == EINVAL, "more than max_cqe: %s", strerror(errno));
	cq = ibv_create_cq(A.ctx, 16, NULL, NULL, A.ctx->num_comp_vectors);
	check(!cq && errno == EINVAL, "bad vector: %s", strerror(errno));
}

static void mr_arguments(void)
{
	struct ibv_mr *mr;
	void *hole = alloc_pages(4096);

	mr = ibv_reg_mr(A.pd, abuf, BUF, IBV_ACCESS_REMOTE_WRITE);
	check(!mr && errno == EINVAL, "remote without local write: %s",
	      strerror(errno));
	mr = ibv_reg_mr(A.pd, (void *)4096, 4096, FULL_ACCESS);
	check(!mr, "memory that is not there was registered");
	mr = ibv_reg_mr(A.pd, abuf, (size_t)1 << 46, FULL_ACCESS);
	check(!mr, "more memory than there is was registered");
	mr = ibv_reg_mr(A.pd, (void *)(UINTPTR_MAX - 4095), 8192, FULL_ACCESS);
	check(!mr, "memory beyond the end of the world was registered");
	mr = ibv_reg_mr(A.pd, abuf + 3, 1, FULL_ACCESS);
	check(mr, "one byte: %s", strerror(errno));
	check_ret(ibv_dereg_mr(mr), 0);
	mr = ibv_reg_mr_iova(A.pd, abuf + 3, 5000, 0x123456789003, FULL_ACCESS);
	check(mr, "with an iova of its own: %s", strerror(errno));
	check_ret(ibv_dereg_mr(mr), 0);
	(void)hole;
}

/* The address that counts is the iova, and it need not be the memory's. */
static void mr_iova(void)
{
	struct ibv_mr *mr;
	struct pair p;

	make(&p, NULL);
	mr = ibv_reg_mr_iova(B.pd, bbuf + 5, 20000, 5, FULL_ACCESS);
	check(mr, "ibv_reg_mr_iova: %s", strerror(errno));
	memset(abuf, 0x5a, 20000);
	memset(bbuf, 0, BUF);
	mk(0, IBV_WR_RDMA_WRITE, 20000);
	wrs[0].wr.rdma.remote_addr = 5;
	wrs[0].wr.rdma.rkey = mr->rkey;
	check_ret(post(&p.a, &wrs[0], NULL), 0);
	expect_wc(p.a.scq, 0, IBV_WC_SUCCESS);
	check(!bbuf[4] && !memcmp(abuf, bbuf + 5, 20000) && !bbuf[20005],
	      "the bytes are wrong");
	pair_destroy(&p);
	check_ret(ibv_dereg_mr(mr), 0);
}

static void busy_objects(void)
{
	struct pair p;

	make(&p, NULL);
	check(ibv_dealloc_pd(A.pd), "a PD with QPs was freed");
	check(ibv_destroy_cq(p.a.scq), "a CQ with a QP was destroyed");
	check_works(&p);
	pair_destroy(&p);
}

/* --- what there is not ------------------------------------------------------ */

/* Which rdma-core 44 does not name. */
enum { FLUSH_PERSISTENT = 1 << 9 };

static void no_object(void *made, const char *what)
{
	check(!made && errno == EOPNOTSUPP, "%s: %s", what,
	      made ? "there is one" : strerror(errno));
}

#define no(call)                                                               \
	do {                                                                   \
		errno = 0;                                                     \
		no_object(call, #call);                                        \
	} while (0)

static void no_qp(enum ibv_qp_type type, uint32_t flags, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr_ex init = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { 1, 1, 1, 1, 0 },
		.qp_type = type,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS,
		.pd = A.pd,
		.create_flags = flags,
	};

	no(ibv_create_qp_ex(A.ctx, &init));
}

static void no_cq(uint64_t wc_flags, uint32_t flags)
{
	struct ibv_cq_init_attr_ex init = {
		.cqe = 4,
		.wc_flags = wc_flags,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
		.flags = flags,
	};

	no(ibv_create_cq_ex(A.ctx, &init));
}

/* README: "What medge does not do". The peers say so in many ways. */
static void not_supported(void)
{
	struct ibv_qp_rate_limit_attr rate = { .rate_limit = 1000 };
	struct ibv_wq_init_attr wq = { .wq_type = IBV_WQT_RQ, .max_wr = 1, .max_sge = 1, .pd = A.pd };
	struct ibv_rwq_ind_table_init_attr table = {};
	struct ibv_counters_init_attr counters = {};
	struct ibv_flow_attr flow = { .size = sizeof(flow), .port = 1 };
	struct ibv_flow_action_esp_attr esp = {};
	struct ibv_srq_init_attr_ex srq = {
		.attr = { 1, 1, 0 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM,
		.srq_type = IBV_SRQT_TM,
		.pd = A.pd,
		.tm_cap = { 1, 1 },
	};
	struct ibv_qp_attr attr = { .rate_limit = 1000 };
	struct ibv_ece ece = {};
	struct pair p;

	if (!type_is("medge"))
		skip("about medge");
	make(&p, NULL);
	srq.cq = p.a.scq;
	no_qp(IBV_QPT_RAW_PACKET, 0, p.a.scq);
	no_qp(IBV_QPT_DRIVER, 0, p.a.scq);
	no_qp(IBV_QPT_UD, IBV_QP_CREATE_BLOCK_SELF_MCAST_LB, p.a.scq);
	no_qp(IBV_QPT_UD, IBV_QP_CREATE_SCATTER_FCS, p.a.scq);
	no_qp(IBV_QPT_UD, IBV_QP_CREATE_CVLAN_STRIPPING, p.a.scq);
	no_qp(IBV_QPT_UD, IBV_QP_CREATE_SOURCE_QPN, p.a.scq);
	no_cq(IBV_WC_EX_WITH_CVLAN, 0);
	no_cq(IBV_WC_EX_WITH_FLOW_TAG, 0);
	no_cq(IBV_WC_EX_WITH_TM_INFO, 0);
	no_cq(0, IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN);
	no(ibv_create_srq_ex(A.ctx, &srq));
	no(ibv_create_wq(A.ctx, &wq));
	no(ibv_create_rwq_ind_table(A.ctx, &table));
	no(ibv_create_counters(A.ctx, &counters));
	no(ibv_create_flow(p.a.qp, &flow));
	no(ibv_create_flow_action_esp(A.ctx, &esp));
	no(ibv_reg_mr(A.pd, abuf, BUF, FULL_ACCESS | FLUSH_PERSISTENT));
	check_ret(ibv_modify_qp_rate_limit(p.a.qp, &rate), EOPNOTSUPP);
	check_ret(ibv_query_ece(p.a.qp, &ece), EOPNOTSUPP);
	check_ret(ibv_set_ece(p.a.qp, &ece), EOPNOTSUPP);
	check_ret(ibv_modify_qp(p.a.qp, &attr, IBV_QP_RATE_LIMIT), EOPNOTSUPP);
	/* An alternate path is refused by ib_core, with EINVAL, on any RoCE device. */
	attr.path_mig_state = IBV_MIG_REARM;
	check_ret(ibv_modify_qp(p.a.qp, &attr, IBV_QP_PATH_MIG_STATE), EOPNOTSUPP);
	check_works(&p);
	pair_destroy(&p);
}

const struct error_case errors_objects[] = {
	ERROR_CASE(qp_too_large),
	ERROR_CASE(qp_without_queues),
	ERROR_CASE(cq_sizes),
	ERROR_CASE(mr_arguments),
	ERROR_CASE(mr_iova),
	ERROR_CASE(busy_objects),
	ERROR_CASE(not_supported),
	{ NULL }
};
