/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Of verbs_errors: what the peer does not let in */
#include <errno.h>
#include <string.h>

#include "errors.h"

/* --- remote errors -------------------------------------------------------- */

static void remote_access_one(const struct ibv_send_wr *bad, int qp_access)
{
	struct pair_options opt = { .access = qp_access };
	struct ibv_wc wc;
	struct pair p;
	bool first_ok = !qp_access || qp_access & IBV_ACCESS_REMOTE_WRITE;

	memset(bbuf, 0x77, BUF);
	memset(abuf, 0x11, BUF);
	make(&p, &opt);
	post_recv(&p.b, 70, 8);
	mk(1, bad->opcode, bad->sg_list[0].length);
	wrs[1].wr = bad->wr;
	mk(0, IBV_WR_RDMA_WRITE, first_ok ? 8 : 0);
	mk(2, IBV_WR_RDMA_WRITE, 8);
	mk(3, IBV_WR_RDMA_WRITE, 8);
	link_wrs(4);
	wrs[2].wr.rdma.remote_addr += 100;
	check_ret(post(&p.a, &wrs[0], NULL), 0);

	/* The responder's receives are flushed, too: its QP is in error. */
	check(wait_wc(p.b.rcq, &wc, PATIENCE_MS), "the responder's receive");
	check(wc.wr_id == 70 && wc.status == IBV_WC_WR_FLUSH_ERR,
	      "the responder's receive ended with %s",
	      ibv_wc_status_str(wc.status));
	expect_failure(&p, IBV_WC_REM_ACCESS_ERR, IBV_QPS_ERR);
	check(bbuf[8] == 0x77 && bbuf[100] == 0x77 && bbuf[BUF - 1] == 0x77,
	      "bytes were written that must not be");
}

static void remote_access(void)
{
	uint64_t base = (uintptr_t)bbuf;
	struct ibv_mr *no_write, *no_read, *other_mr;
	struct ibv_pd *other_pd;

	if (type_is("rxe"))
		skip("rxe's responder does not go to the error state");
	no_write = must_reg(&B, bbuf, BUF,
			    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
	no_read = must_reg(&B, bbuf, BUF,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	other_pd = ibv_alloc_pd(B.ctx);
	other_mr = other_pd ? ibv_reg_mr(other_pd, bbuf, BUF, FULL_ACCESS) : NULL;
	check(other_mr, "another protection domain");

	remote_access_one(mk_bad(IBV_WR_RDMA_WRITE, bmr->rkey ^ 0x5555, base, 16), 0);
	remote_access_one(mk_bad(IBV_WR_RDMA_READ, bmr->rkey ^ 0x5555, base, 16), 0);
	remote_access_one(mk_bad(IBV_WR_RDMA_WRITE, bmr->rkey, base + BUF - 15, 16), 0);
	remote_access_one(mk_bad(IBV_WR_RDMA_WRITE, bmr->rkey, base - 1, 16), 0);
	remote_access_one(mk_bad(IBV_WR_RDMA_WRITE, bmr->rkey, UINT64_MAX - 7, 16), 0);
	remote_access_one(mk_bad(IBV_WR_RDMA_READ, bmr->rkey, base + BUF, 1), 0);
	/* The whole message is judged, not its first frame. */
	remote_access_one(mk_bad(IBV_WR_RDMA_WRITE, bmr->rkey, base + 8, BUF), 0);
	remote_access_one(mk_bad(IBV_WR_RDMA_WRITE_WITH_IMM, bmr->rkey, base + 8, BUF), 0);
	remote_access_one(mk_bad(IBV_WR_RDMA_READ, bmr->rkey, base + 1, BUF), 0);
	remote_access_one(mk_bad(IBV_WR_RDMA_WRITE, no_write->rkey, base + 8, 16), 0);
	remote_access_one(mk_bad(IBV_WR_RDMA_READ, no_read->rkey, base, 16), 0);
	remote_access_one(mk_bad(IBV_WR_RDMA_WRITE, other_mr->rkey, base + 8, 16), 0);
	ibv_dereg_mr(other_mr);
	ibv_dealloc_pd(other_pd);
	ibv_dereg_mr(no_write);
	ibv_dereg_mr(no_read);
}

/* What the QP does not allow, no key allows; that is an invalid request. */
static void remote_qp_rights(void)
{
	static const struct {
		int access;
		enum ibv_wr_opcode opcode;
	} cases[] = {
		{ IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ, IBV_WR_RDMA_WRITE },
		{ IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ, IBV_WR_RDMA_WRITE_WITH_IMM },
		{ IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, IBV_WR_RDMA_READ },
	};
	struct ibv_wc wc;
	struct pair p;
	size_t i;

	for (i = 0; i < ARRAY_LEN(cases); i++) {
		struct pair_options opt = { .access = cases[i].access };

		make(&p, &opt);
		post_recv(&p.b, 0, 8);
		memset(bbuf, 0x77, 64);
		check_ret(post(&p.a, mk(1, cases[i].opcode, 16), NULL), 0);
		check(wait_wc(p.a.scq, &wc, PATIENCE_MS), "no completion");
		check(wc.status == IBV_WC_REM_INV_REQ_ERR ||
		      wc.status == IBV_WC_REM_ACCESS_ERR, "case %zu: %s", i,
		      ibv_wc_status_str(wc.status));
		check(bbuf[0] == 0x77, "bytes were written that must not be");
		expect_state(&p.a, IBV_QPS_ERR);
		pair_destroy(&p);
	}
}

static void remote_key_gone(void)
{
	struct ibv_mr *mr = must_reg(&B, bbuf, BUF, FULL_ACCESS);
	struct pair p;

	make(&p, NULL);
	mk(0, IBV_WR_RDMA_WRITE, 16)->wr.rdma.rkey = mr->rkey;
	check_ret(post(&p.a, &wrs[0], NULL), 0);
	expect_wc(p.a.scq, 0, IBV_WC_SUCCESS);
	ibv_dereg_mr(mr);
	check_ret(post(&p.a, &wrs[0], NULL), 0);
	expect_wc(p.a.scq, 0, IBV_WC_REM_ACCESS_ERR);
	pair_destroy(&p);
}

static void zero_bytes_need_no_key(void)
{
	static const enum ibv_wr_opcode opcodes[] = {
		IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE_WITH_IMM,
		IBV_WR_SEND, IBV_WR_SEND_WITH_IMM,
	};
	struct ibv_wc wc;
	struct pair p;
	size_t i, sge;

	make(&p, NULL);
	for (i = 0; i < ARRAY_LEN(opcodes); i++)
		for (sge = 0; sge < 2; sge++) {
			struct ibv_send_wr *wr = mk(i, opcodes[i], 0);

			wr->num_sge = sge;
			wr->wr.rdma.rkey = 0xbad;
			wr->wr.rdma.remote_addr = 0xbad;
			if (i >= 2)
				post_recv(&p.b, i, 8);
			check_ret(post(&p.a, wr, NULL), 0);
			expect_wc(p.a.scq, i, IBV_WC_SUCCESS);
			if (i < 2)
				continue;
			check(wait_wc(p.b.rcq, &wc, PATIENCE_MS), "no receive");
			check(wc.status == IBV_WC_SUCCESS && !wc.byte_len,
			      "receive of no bytes: %s, %u bytes",
			      ibv_wc_status_str(wc.status), wc.byte_len);
		}
	check_works(&p);
	pair_destroy(&p);
}

static bool all_are(const uint8_t *buf, uint8_t value, size_t len)
{
	return buf[0] == value && !memcmp(buf, buf + 1, len - 1);
}

/* What is read of a null region are zeros, what is written to it is gone; what stands beside it is as it was. */
static void null_region(void)
{
	enum { PART = 5000, LEN = 3 * PART };
	static const enum ibv_wr_opcode opcodes[] = { IBV_WR_SEND, IBV_WR_RDMA_WRITE };
	struct ibv_recv_wr recv = { .wr_id = 9, .sg_list = sges[40], .num_sge = 3 }, *bad_recv;
	struct pair_options opt = { .send_sge = 3, .recv_sge = 3 };
	struct ibv_mr *a_null = ibv_alloc_null_mr(A.pd);
	struct ibv_mr *b_null = ibv_alloc_null_mr(B.pd);
	struct ibv_send_wr *wr;
	struct pair p;
	size_t i;

	if (!a_null && errno == EOPNOTSUPP && !type_is("medge"))
		skip("no null regions");
	check(a_null && b_null, "no null region: %s", strerror(errno));
	make(&p, &opt);
	/* Of a message, and of a WRITE, the middle part is of nothing, at an address of nothing. */
	for (i = 0; i < ARRAY_LEN(opcodes); i++) {
		memset(abuf, 0x11, LEN);
		memset(bbuf, 0x22, LEN);
		wr = mk(0, opcodes[i], PART);
		sges[0][1] = (struct ibv_sge){ 0xfffffffffff, PART, a_null->lkey };
		sges[0][2] = (struct ibv_sge){ (uintptr_t)abuf, PART, amr->lkey };
		wr->num_sge = 3;
		if (opcodes[i] == IBV_WR_SEND)
			post_recv(&p.b, 9, LEN);
		check_ret(post(&p.a, wr, NULL), 0);
		expect_wc(p.a.scq, 0, IBV_WC_SUCCESS);
		if (opcodes[i] == IBV_WR_SEND)
			expect_wc(p.b.rcq, 9, IBV_WC_SUCCESS);
		check(all_are(bbuf, 0x11, PART) && all_are(bbuf + PART, 0, PART) &&
		      all_are(bbuf + 2 * PART, 0x11, PART), "opcode %d", opcodes[i]);
	}
	/* A receive forgets it. */
	memset(abuf, 0x33, LEN);
	memset(bbuf, 0x44, LEN);
	sges[40][0] = (struct ibv_sge){ (uintptr_t)bbuf, PART, bmr->lkey };
	sges[40][1] = (struct ibv_sge){ 0, PART, b_null->lkey };
	sges[40][2] = (struct ibv_sge){ (uintptr_t)bbuf + PART, PART, bmr->lkey };
	check_ret(ibv_post_recv(p.b.qp, &recv, &bad_recv), 0);
	for (i = 0; i < LEN; i++)
		abuf[i] = i / PART;
	check_ret(post(&p.a, mk(0, IBV_WR_SEND, LEN), NULL), 0);
	expect_wc(p.a.scq, 0, IBV_WC_SUCCESS);
	expect_wc(p.b.rcq, 9, IBV_WC_SUCCESS);
	check(all_are(bbuf, 0, PART) && all_are(bbuf + PART, 2, PART) &&
	      all_are(bbuf + 2 * PART, 0x44, PART), "a receive");
	/* So does a READ, and what it has written is not what is read then. */
	wr = mk(0, IBV_WR_RDMA_READ, LEN);
	sges[0][0] = (struct ibv_sge){ UINT64_MAX - LEN, LEN, a_null->lkey };
	check_ret(post(&p.a, wr, NULL), 0);
	expect_wc(p.a.scq, 0, IBV_WC_SUCCESS);
	wr = mk(0, IBV_WR_RDMA_WRITE, LEN);
	sges[0][0] = (struct ibv_sge){ 0, LEN, a_null->lkey };
	check_ret(post(&p.a, wr, NULL), 0);
	expect_wc(p.a.scq, 0, IBV_WC_SUCCESS);
	check(all_are(bbuf, 0, LEN), "a READ was not forgotten");
	/* Nobody else has it. */
	wr = mk(0, IBV_WR_RDMA_WRITE, 8);
	wr->wr.rdma.rkey = b_null->lkey;
	check_ret(post(&p.a, wr, NULL), 0);
	expect_wc(p.a.scq, 0, IBV_WC_REM_ACCESS_ERR);
	pair_destroy(&p);
	check_ret(ibv_dereg_mr(a_null), 0);
	check_ret(ibv_dereg_mr(b_null), 0);
}

const struct error_case errors_access[] = {
	ERROR_CASE(remote_access),
	ERROR_CASE(remote_qp_rights),
	ERROR_CASE(remote_key_gone),
	ERROR_CASE(zero_bytes_need_no_key),
	ERROR_CASE(null_region),
	{ NULL }
};
