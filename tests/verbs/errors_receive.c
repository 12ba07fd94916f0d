/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Of verbs_errors: receives that are missing, late or wrong, and peers that are */
#include <string.h>
#include <unistd.h>

#include "errors.h"

/* --- receives -------------------------------------------------------------- */

static void rnr_gives_up(void)
{
	struct pair_options opt = { .rnr_retry = -1, .min_rnr_timer = 1 };
	struct ibv_qp_attr attr = { .min_rnr_timer = 25 };
	struct pair p;
	uint64_t start;

	make(&p, &opt);
	check_ret(post(&p.a, mk(0, IBV_WR_SEND, 8), NULL), 0);
	mk(1, IBV_WR_RDMA_WRITE, 8);
	check_ret(post(&p.a, &wrs[1], NULL), 0);
	expect_wc(p.a.scq, 0, IBV_WC_RNR_RETRY_EXC_ERR);
	expect_wc(p.a.scq, 1, IBV_WC_WR_FLUSH_ERR);
	expect_state(&p.a, IBV_QPS_ERR);
	check(state_of(&p.b) == IBV_QPS_RTS, "the responder's QP has failed");
	pair_destroy(&p);

	/* Three times 61.44 ms, and once more; said in RTS, it holds from then on. */
	opt.rnr_retry = 3;
	make(&p, &opt);
	check_ret(ibv_modify_qp(p.b.qp, &attr, IBV_QP_MIN_RNR_TIMER), 0);
	start = now_ms();
	check_ret(post(&p.a, mk(0, IBV_WR_SEND, 8), NULL), 0);
	expect_wc(p.a.scq, 0, IBV_WC_RNR_RETRY_EXC_ERR);
	check(now_ms() - start >= 120, "gave up after %d ms",
	      (int)(now_ms() - start));
	pair_destroy(&p);
}

static void rnr_waits(void)
{
	static const enum ibv_wr_opcode opcodes[] = {
		IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE_WITH_IMM,
	};
	struct pair p;
	size_t i;

	for (i = 0; i < ARRAY_LEN(opcodes); i++) {
		make(&p, NULL);
		memset(abuf, 0x21 + i, BUF);
		memset(bbuf, 0, BUF);
		check_ret(post(&p.a, mk(0, opcodes[i], 40000), NULL), 0);
		check_ret(post(&p.a, mk(1, IBV_WR_RDMA_READ, 8), NULL), 0);
		expect_none(p.a.scq, 300, __LINE__);
		post_recv(&p.b, 5, BUF);
		expect_wc(p.b.rcq, 5, IBV_WC_SUCCESS);
		expect_wc(p.a.scq, 0, IBV_WC_SUCCESS);
		expect_wc(p.a.scq, 1, IBV_WC_SUCCESS);
		check(bbuf[0] == 0x21 + i && bbuf[39999] == 0x21 + i,
		      "the bytes are wrong");
		pair_destroy(&p);
	}
}

/* A send that waits for a receive holds up nothing that goes the other way. */
static void rnr_stalls_nothing_else(void)
{
	struct pair p;
	int i;

	make(&p, NULL);
	check_ret(post(&p.a, mk(0, IBV_WR_SEND, 8), NULL), 0);
	usleep(20000);
	for (i = 0; i < 50; i++) {
		struct ibv_sge sge = { (uintptr_t)bbuf, 20000, bmr->lkey };
		struct ibv_send_wr wr = {
			.wr_id = i, .sg_list = &sge, .num_sge = 1,
			.opcode = i % 2 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE,
			.send_flags = IBV_SEND_SIGNALED,
			.wr.rdma.remote_addr = (uintptr_t)abuf,
			.wr.rdma.rkey = amr->rkey,
		};

		check_ret(post(&p.b, &wr, NULL), 0);
		expect_wc(p.b.scq, i, IBV_WC_SUCCESS);
	}
	expect_none(p.a.scq, 1, __LINE__);
	post_recv(&p.b, 5, 8);
	expect_wc(p.a.scq, 0, IBV_WC_SUCCESS);
	pair_destroy(&p);
}

static void receive_too_small(void)
{
	struct pair p;

	if (type_is("rxe"))
		skip("rxe says LOC_QP_OP_ERR");
	make(&p, NULL);
	memset(bbuf, 0x77, BUF);
	memset(abuf, 0x11, BUF);
	post_recv(&p.b, 5, 99);
	post_recv(&p.b, 6, 99);
	check_ret(post(&p.a, mk(0, IBV_WR_SEND, 100), NULL), 0);
	check_ret(post(&p.a, mk(1, IBV_WR_SEND, 10), NULL), 0);
	expect_wc(p.b.rcq, 5, IBV_WC_LOC_LEN_ERR);
	expect_wc(p.a.scq, 0, IBV_WC_REM_INV_REQ_ERR);
	expect_wc(p.a.scq, 1, IBV_WC_WR_FLUSH_ERR);
	check(bbuf[99] == 0x77, "a byte was written behind the buffer");
	expect_wc(p.b.rcq, 6, IBV_WC_WR_FLUSH_ERR);
	expect_state(&p.b, IBV_QPS_ERR);
	pair_destroy(&p);

	/* Several frames long. */
	make(&p, NULL);
	post_recv(&p.b, 5, 40000);
	check_ret(post(&p.a, mk(0, IBV_WR_SEND, 40001), NULL), 0);
	expect_wc(p.b.rcq, 5, IBV_WC_LOC_LEN_ERR);
	expect_wc(p.a.scq, 0, IBV_WC_REM_INV_REQ_ERR);
	pair_destroy(&p);
}

/*
 * Messages that are posted together come in one frame. The first is wrong, with which
 * the receives of all others are flushed, and are their user's again.
 */
static void nothing_comes_after_a_failure(void)
{
	enum { N = 8, APART = 1000 };
	struct pair p;
	int i;

	if (type_is("rxe"))
		skip("rxe says LOC_QP_OP_ERR");
	make(&p, NULL);
	memset(bbuf, 0x77, BUF);
	memset(abuf, 0x11, BUF);
	for (i = 0; i < N; i++) {
		check_ret(post_recv_at(&p.b, i, bbuf + i * APART,
				       i ? 100 : 99, bmr->lkey), 0);
		mk(i, IBV_WR_SEND, 100);
	}
	link_wrs(N);
	check_ret(post(&p.a, wrs, NULL), 0);
	for (i = 0; i < N; i++) {
		expect_wc(p.b.rcq, i, i ? IBV_WC_WR_FLUSH_ERR :
					  IBV_WC_LOC_LEN_ERR);
		expect_wc(p.a.scq, i, i ? IBV_WC_WR_FLUSH_ERR :
					  IBV_WC_REM_INV_REQ_ERR);
	}
	for (i = APART; i < BUF; i++)
		check(bbuf[i] == 0x77, "byte %d was written", i);
	pair_destroy(&p);
}

static void receive_bad_key(void)
{
	struct pair p;

	if (type_is("rxe"))
		skip("rxe says LOC_QP_OP_ERR");
	make(&p, NULL);
	check_ret(post_recv_at(&p.b, 5, bbuf, 100, bmr->lkey ^ 0x5555), 0);
	check_ret(post(&p.a, mk(0, IBV_WR_SEND, 100), NULL), 0);
	expect_wc(p.b.rcq, 5, IBV_WC_LOC_PROT_ERR);
	expect_wc(p.a.scq, 0, IBV_WC_REM_OP_ERR);
	pair_destroy(&p);
}

static void receives_flush_in_order(void)
{
	struct pair p;
	int i;

	if (type_is("rxe"))
		skip("rxe does not flush what is posted later");
	make(&p, NULL);
	for (i = 0; i < 20; i++)
		post_recv(&p.b, i, 8);
	check_ret(end_to_state(&p.b, IBV_QPS_ERR), 0);
	for (i = 0; i < 20; i++)
		expect_wc(p.b.rcq, i, IBV_WC_WR_FLUSH_ERR);
	post_recv(&p.b, 20, 8);
	expect_wc(p.b.rcq, 20, IBV_WC_WR_FLUSH_ERR);
	pair_destroy(&p);
}

/* --- the peer ---------------------------------------------------------------- */

static void peer_gone(void)
{
	struct pair_options opt = { .timeout = 8, .retry_cnt = 3 };
	struct pair p;

	make(&p, &opt);
	check_works(&p);
	ibv_destroy_qp(p.b.qp);
	p.b.qp = NULL;
	check_ret(post(&p.a, mk(0, IBV_WR_RDMA_WRITE, 100), NULL), 0);
	check_ret(post(&p.a, mk(1, IBV_WR_RDMA_READ, 100), NULL), 0);
	expect_wc(p.a.scq, 0, IBV_WC_RETRY_EXC_ERR);
	expect_wc(p.a.scq, 1, IBV_WC_WR_FLUSH_ERR);
	expect_state(&p.a, IBV_QPS_ERR);
	pair_destroy(&p);
}

static void peer_not_ready_yet(void)
{
	struct pair_options opt = {};
	struct pair p;

	check_ret(end_create(&p.a, &A, &opt), 0);
	check_ret(end_create(&p.b, &B, &opt), 0);
	check_ret(end_to_init(&p.a, &opt), 0);
	check_ret(end_to_rtr(&p.a, &p.b, &opt), 0);
	check_ret(end_to_rts(&p.a, &opt), 0);
	check_ret(end_to_init(&p.b, &opt), 0);
	memset(abuf, 0x3c, 5000);
	memset(bbuf, 0, 5000);
	check_ret(post(&p.a, mk(0, IBV_WR_RDMA_WRITE, 5000), NULL), 0);
	usleep(100000);
	check(!bbuf[0], "a QP in INIT has received");
	check_ret(end_to_rtr(&p.b, &p.a, &opt), 0);
	expect_wc(p.a.scq, 0, IBV_WC_SUCCESS);
	check(!memcmp(abuf, bbuf, 5000), "the bytes are wrong");
	pair_destroy(&p);
}

static void same_device(void)
{
	struct pair_options opt = {};
	struct ibv_mr *mr = must_reg(&A, bbuf, BUF, FULL_ACCESS);
	struct ibv_mr *saved = bmr;
	struct pair p;

	pair_create(&p, &A, &A, &opt);
	bmr = mr;
	check_works(&p);
	post_recv(&p.b, 1, 8);
	check_ret(post(&p.a, mk(0, IBV_WR_SEND, 8), NULL), 0);
	expect_wc(p.b.rcq, 1, IBV_WC_SUCCESS);
	expect_wc(p.a.scq, 0, IBV_WC_SUCCESS);
	bmr = saved;
	pair_destroy(&p);
	ibv_dereg_mr(mr);
}

const struct error_case errors_receive[] = {
	ERROR_CASE(rnr_gives_up),
	ERROR_CASE(rnr_waits),
	ERROR_CASE(rnr_stalls_nothing_else),
	ERROR_CASE(receive_too_small),
	ERROR_CASE(nothing_comes_after_a_failure),
	ERROR_CASE(receive_bad_key),
	ERROR_CASE(receives_flush_in_order),
	ERROR_CASE(peer_gone),
	ERROR_CASE(peer_not_ready_yet),
	ERROR_CASE(same_device),
	{ NULL }
};
