/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Of verbs_errors: what is posted wrongly, or at the edge of what may be, and what is wrong at its own end */
#include <errno.h>
#include <string.h>

#include "errors.h"

/* --- posting ------------------------------------------------------------ */

static void post_in_wrong_state(void)
{
	struct pair_options opt = {};
	struct ibv_send_wr *bad = NULL;
	struct pair p;

	check_ret(end_create(&p.a, &A, &opt), 0);
	check_ret(end_create(&p.b, &B, &opt), 0);
	if (type_is("rxe"))
		skip("rxe accepts them");
	check_ret(post(&p.a, mk(0, IBV_WR_RDMA_WRITE, 8), &bad), EINVAL);
	check(bad == &wrs[0], "bad_wr");
	check_ret(post_recv_at(&p.a, 0, abuf, 8, amr->lkey), EINVAL);
	check_ret(end_to_init(&p.a, &opt), 0);
	check_ret(post(&p.a, mk(0, IBV_WR_RDMA_WRITE, 8), &bad), EINVAL);
	check_ret(post_recv_at(&p.a, 0, abuf, 8, amr->lkey), 0);
	check_ret(end_to_rtr(&p.a, &p.b, &opt), 0);
	check_ret(post(&p.a, mk(0, IBV_WR_RDMA_WRITE, 8), &bad), EINVAL);
	check_ret(end_to_rts(&p.a, &opt), 0);
	check_ret(end_to_init(&p.b, &opt), 0);
	check_ret(end_to_rtr(&p.b, &p.a, &opt), 0);
	check_ret(post(&p.a, mk(0, IBV_WR_RDMA_WRITE, 8), &bad), 0);
	expect_wc(p.a.scq, 0, IBV_WC_SUCCESS);
	pair_destroy(&p);
}

/* The third of four requests is bad: two are done, it is pointed at. */
static void third_is_bad(struct pair *p, int want, const char *what)
{
	struct ibv_send_wr *bad = NULL;
	int ret;

	mk(0, IBV_WR_RDMA_WRITE, 8);
	mk(1, IBV_WR_RDMA_WRITE, 8);
	mk(3, IBV_WR_RDMA_WRITE, 8);
	link_wrs(4);
	ret = post(&p->a, &wrs[0], &bad);
	check(ret == want, "%s: %d (%s) instead of %s", what, ret,
	      strerror(ret), strerror(want));
	check(bad == &wrs[2], "%s: bad_wr is number %d", what,
	      bad ? (int)(bad - wrs) : -1);
	expect_wc(p->a.scq, 0, IBV_WC_SUCCESS);
	expect_wc(p->a.scq, 1, IBV_WC_SUCCESS);
	expect_none(p->a.scq, 20, __LINE__);
}

static void post_bad_request(void)
{
	struct pair_options opt = { .send_sge = 2, .inline_data = 32 };
	struct pair p;
	uint32_t i, n;

	if (type_is("rxe"))
		skip("rxe checks less and tells other errors");
	make(&p, &opt);

	mk(2, 200, 8);
	third_is_bad(&p, EINVAL, "unknown opcode");
	mk(2, IBV_WR_TSO, 8);
	third_is_bad(&p, EOPNOTSUPP, "opcode medge has not");
	mk(2, IBV_WR_RDMA_WRITE, 8)->num_sge = -1;
	third_is_bad(&p, EINVAL, "num_sge -1");
	mk(2, IBV_WR_RDMA_WRITE, 8)->num_sge = p.a.cap.max_send_sge + 1;
	for (i = 0; i < ARRAY_LEN(sges[2]); i++)
		sges[2][i] = sges[2][0];
	third_is_bad(&p, EINVAL, "num_sge above max_send_sge");
	mk(2, IBV_WR_RDMA_WRITE, p.a.cap.max_inline_data + 1)->send_flags |=
		IBV_SEND_INLINE;
	third_is_bad(&p, EINVAL, "inline data above max_inline_data");
	mk(2, IBV_WR_RDMA_READ, 8)->send_flags |= IBV_SEND_INLINE;
	third_is_bad(&p, EINVAL, "an inline read");
	n = A.port.max_msg_sz;
	if (n < UINT32_MAX) {
		mk(2, IBV_WR_RDMA_WRITE, n + 1);
		third_is_bad(&p, EINVAL, "longer than max_msg_sz");
	}
	mk(2, IBV_WR_RDMA_WRITE, UINT32_MAX)->num_sge = 2;
	sges[2][1] = sges[2][0];
	third_is_bad(&p, EINVAL, "SGEs that add up beyond 32 bits");
	check_works(&p);
	pair_destroy(&p);
}

static struct ibv_send_wr *mk_atomic(int i, enum ibv_wr_opcode opcode,
				     uint64_t compare_add, uint64_t swap)
{
	struct ibv_send_wr *wr = mk(i, opcode, 8);

	wr->wr.atomic.remote_addr = (uintptr_t)bbuf;
	wr->wr.atomic.rkey = bmr->rkey;
	wr->wr.atomic.compare_add = compare_add;
	wr->wr.atomic.swap = swap;
	return wr;
}

static uint64_t do_atomic(struct pair *p, enum ibv_wr_opcode opcode,
			  uint64_t compare_add, uint64_t swap)
{
	struct ibv_wc wc;

	check_ret(post(&p->a, mk_atomic(0, opcode, compare_add, swap), NULL), 0);
	check(wait_wc(p->a.scq, &wc, PATIENCE_MS), "no completion");
	check(wc.status == IBV_WC_SUCCESS, "%s", ibv_wc_status_str(wc.status));
	check(wc.opcode == (opcode == IBV_WR_ATOMIC_CMP_AND_SWP ?
				    IBV_WC_COMP_SWAP : IBV_WC_FETCH_ADD),
	      "opcode %d", wc.opcode);
	return *(uint64_t *)abuf;
}

static void atomics(void)
{
	volatile uint64_t *there = (uint64_t *)bbuf;
	struct ibv_wc wc;
	struct pair p;
	uint64_t old;
	int i, done;

	check_ret(ibv_dereg_mr(bmr), 0);
	bmr = must_reg(&B, bbuf, BUF, FULL_ACCESS | IBV_ACCESS_REMOTE_ATOMIC);
	make(&p, &(struct pair_options){
		.access = FULL_ACCESS | IBV_ACCESS_REMOTE_ATOMIC });
	if (A.attr.atomic_cap == IBV_ATOMIC_NONE) {
		check_ret(post(&p.a, mk_atomic(0, IBV_WR_ATOMIC_FETCH_AND_ADD,
					       1, 0), NULL), EOPNOTSUPP);
		skip("the device has none");
	}
	*there = 1000;
	old = do_atomic(&p, IBV_WR_ATOMIC_FETCH_AND_ADD, 234, 0);
	check(old == 1000 && *there == 1234, "fetch and add");
	old = do_atomic(&p, IBV_WR_ATOMIC_FETCH_AND_ADD, -1, 0);
	check(old == 1234 && *there == 1233, "fetch and add of -1");
	old = do_atomic(&p, IBV_WR_ATOMIC_CMP_AND_SWP, 1, 77);
	check(old == 1233 && *there == 1233, "compare and swap, unequal");
	old = do_atomic(&p, IBV_WR_ATOMIC_CMP_AND_SWP, 1233,
			0x123456789abcdef0);
	check(old == 1233 && *there == 0x123456789abcdef0,
	      "compare and swap, equal");

	/* Each exactly once, in post order, also when frames get lost. */
	*there = 0;
	for (i = done = 0; done < 2000; done++) {
		for (; i < 2000 && i - done < 32; i++) {
			mk_atomic(0, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0);
			wrs[0].wr_id = i;
			sges[0][0].addr = (uintptr_t)abuf + i % 64 * 8;
			check_ret(post(&p.a, &wrs[0], NULL), 0);
		}
		check(wait_wc(p.a.scq, &wc, PATIENCE_MS), "no completion");
		check(wc.status == IBV_WC_SUCCESS && wc.wr_id == (uint64_t)done,
		      "atomic %d: %s", done, ibv_wc_status_str(wc.status));
		old = ((uint64_t *)abuf)[done % 64];
		check(old == (uint64_t)done, "atomic %d found %llu", done,
		      (unsigned long long)old);
	}
	check(*there == 2000, "2000 additions made %llu",
	      (unsigned long long)*there);

	/* An address that is not a multiple of 8; no right in the key. */
	mk_atomic(0, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0);
	wrs[0].wr.atomic.remote_addr += 4;
	check_ret(post(&p.a, &wrs[0], NULL), 0);
	expect_wc(p.a.scq, 0, IBV_WC_REM_INV_REQ_ERR);
	pair_destroy(&p);
	ibv_dereg_mr(bmr);
	bmr = must_reg(&B, bbuf, BUF, FULL_ACCESS);
	make(&p, &(struct pair_options){
		.access = FULL_ACCESS | IBV_ACCESS_REMOTE_ATOMIC });
	mk_atomic(0, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0);
	check_ret(post(&p.a, &wrs[0], NULL), 0);
	expect_wc(p.a.scq, 0, IBV_WC_REM_ACCESS_ERR);
	check(*there == 2000, "memory without the right was changed");
	pair_destroy(&p);
}

static void post_inline_up_to_max(void)
{
	struct pair_options opt = { .inline_data = 1, .send_sge = 3 };
	struct pair p;
	uint32_t len, max;

	make(&p, &opt);
	max = p.a.cap.max_inline_data;
	for (len = 0; len <= max; len += len < 70 ? 1 : max - len < 7 ? 1 : 7) {
		struct ibv_send_wr *wr = mk(0, IBV_WR_RDMA_WRITE, len);
		uint64_t rng = len + 1;

		rng_fill(&rng, abuf, len);
		memset(bbuf, 0xee, max + 1);
		/* Three pieces, and a key that nobody may look at. */
		sges[0][0].length = len / 3;
		sges[0][1] = (struct ibv_sge){ (uintptr_t)abuf + len / 3,
					       len / 3, 0 };
		sges[0][2] = (struct ibv_sge){ (uintptr_t)abuf + len / 3 * 2,
					       len - len / 3 * 2, 0 };
		sges[0][0].lkey = 0;
		wr->num_sge = 3;
		wr->send_flags |= IBV_SEND_INLINE;
		check_ret(post(&p.a, wr, NULL), 0);
		uint8_t first = len ? abuf[0] : 0;

		/* The buffer is the program's again at once. */
		memset(abuf, 0, len);
		expect_wc(p.a.scq, 0, IBV_WC_SUCCESS);
		rng = len + 1;
		rng_fill(&rng, abuf, len);
		check(!len || first == abuf[0], "the test itself is wrong");
		check(!memcmp(abuf, bbuf, len), "%u bytes inline are wrong", len);
		check(bbuf[len] == 0xee, "%u bytes inline: one too many", len);
	}
	pair_destroy(&p);
}

static void post_until_full(void)
{
	struct pair_options opt = { .send_wr = 20, .recv_wr = 20 };
	struct ibv_send_wr *bad;
	struct pair p;
	uint32_t i, n, r;
	int ret = 0;

	make(&p, &opt);
	/* Nobody receives: nothing completes. */
	for (n = 0; n < 10000; n++) {
		bad = NULL;
		ret = post(&p.a, mk(0, IBV_WR_SEND, 8), &bad);
		if (ret)
			break;
	}
	check(ret == ENOMEM, "a full send queue: %d (%s)", ret, strerror(ret));
	check(bad == &wrs[0], "bad_wr");
	check(n >= 20, "full after %u", n);
	check(n >= p.a.cap.max_send_wr, "full after %u of %u", n,
	      p.a.cap.max_send_wr);

	for (i = 0; i < n; i += r) {
		for (r = 0; r < 20 && i + r < n; r++)
			post_recv(&p.b, r, 8);
		for (uint32_t k = 0; k < r; k++) {
			expect_wc(p.b.rcq, k, IBV_WC_SUCCESS);
			expect_wc(p.a.scq, 0, IBV_WC_SUCCESS);
		}
	}
	for (n = 0; n < 10000; n++) {
		ret = post_recv_at(&p.b, n, bbuf, 8, bmr->lkey);
		if (ret)
			break;
	}
	check(ret == ENOMEM, "a full receive queue: %d (%s)", ret,
	      strerror(ret));
	check(n >= p.b.cap.max_recv_wr, "full after %u of %u", n,
	      p.b.cap.max_recv_wr);
	check_works(&p);
	pair_destroy(&p);
}

static void signaling(void)
{
	struct pair_options all = { .sig_all = true };
	struct pair p;

	make(&p, NULL);
	mk(0, IBV_WR_RDMA_WRITE, 8)->send_flags = 0;
	mk(1, IBV_WR_RDMA_WRITE, 8);
	mk(2, IBV_WR_RDMA_WRITE, 8)->send_flags = 0;
	link_wrs(3);
	check_ret(post(&p.a, &wrs[0], NULL), 0);
	expect_wc(p.a.scq, 1, IBV_WC_SUCCESS);
	expect_none(p.a.scq, 50, __LINE__);
	/* An error is told in any case. */
	mk(3, IBV_WR_RDMA_WRITE, 8)->send_flags = 0;
	wrs[3].wr.rdma.rkey ^= 0x5555;
	check_ret(post(&p.a, &wrs[3], NULL), 0);
	expect_wc(p.a.scq, 3, IBV_WC_REM_ACCESS_ERR);
	pair_destroy(&p);

	make(&p, &all);
	mk(0, IBV_WR_RDMA_WRITE, 8)->send_flags = 0;
	check_ret(post(&p.a, &wrs[0], NULL), 0);
	expect_wc(p.a.scq, 0, IBV_WC_SUCCESS);
	pair_destroy(&p);
}

/* --- local errors -------------------------------------------------------- */

static void post_four(struct pair *p)
{
	mk(0, IBV_WR_RDMA_WRITE, 8);
	mk(2, IBV_WR_RDMA_WRITE, 8);
	mk(3, IBV_WR_RDMA_WRITE, 8);
	link_wrs(4);
	check_ret(post(&p->a, &wrs[0], NULL), 0);
}

static void local_protection(void)
{
	struct ibv_mr *read_only, *other_mr;
	struct ibv_pd *other_pd;
	struct pair p;

	if (type_is("rxe"))
		skip("rxe flushes what came before the bad request, too");
	read_only = must_reg(&A, abuf, BUF, 0);
	other_pd = ibv_alloc_pd(A.ctx);
	check(other_pd, "ibv_alloc_pd");
	other_mr = ibv_reg_mr(other_pd, abuf, BUF, FULL_ACCESS);
	check(other_mr, "ibv_reg_mr");

	make(&p, NULL);
	mk(1, IBV_WR_RDMA_WRITE, 8);
	sges[1][0].lkey ^= 0x5555;
	post_four(&p);
	expect_failure(&p, IBV_WC_LOC_PROT_ERR, IBV_QPS_RTS);

	make(&p, NULL);
	mk(1, IBV_WR_RDMA_WRITE, BUF);
	sges[1][0].addr++;
	post_four(&p);
	expect_failure(&p, IBV_WC_LOC_PROT_ERR, IBV_QPS_RTS);

	make(&p, NULL);
	mk(1, IBV_WR_RDMA_WRITE, 8);
	sges[1][0].addr = UINT64_MAX - 3;
	post_four(&p);
	expect_failure(&p, IBV_WC_LOC_PROT_ERR, IBV_QPS_RTS);

	make(&p, NULL);
	mk(1, IBV_WR_RDMA_WRITE, 8);
	sges[1][0].lkey = other_mr->lkey;
	post_four(&p);
	expect_failure(&p, IBV_WC_LOC_PROT_ERR, IBV_QPS_RTS);

	make(&p, NULL);
	mk(1, IBV_WR_RDMA_READ, 8);
	sges[1][0].lkey = read_only->lkey;
	post_four(&p);
	expect_failure(&p, IBV_WC_LOC_PROT_ERR, IBV_QPS_RTS);

	/* Read-only memory can be sent; of no bytes no key is asked. */
	make(&p, NULL);
	mk(0, IBV_WR_RDMA_WRITE, 8);
	sges[0][0].lkey = read_only->lkey;
	check_ret(post(&p.a, &wrs[0], NULL), 0);
	expect_wc(p.a.scq, 0, IBV_WC_SUCCESS);
	check_works(&p);
	pair_destroy(&p);

	ibv_dereg_mr(other_mr);
	ibv_dealloc_pd(other_pd);
	ibv_dereg_mr(read_only);
}

static void local_key_gone(void)
{
	struct ibv_mr *mr = must_reg(&A, abuf, BUF, FULL_ACCESS);
	uint32_t lkey = mr->lkey;
	struct pair p;

	if (type_is("rxe"))
		skip("rxe flushes what came before the bad request, too");
	ibv_dereg_mr(mr);
	make(&p, NULL);
	mk(1, IBV_WR_RDMA_WRITE, 8);
	sges[1][0].lkey = lkey;
	post_four(&p);
	expect_failure(&p, IBV_WC_LOC_PROT_ERR, IBV_QPS_RTS);
}

const struct error_case errors_post[] = {
	ERROR_CASE(post_in_wrong_state),
	ERROR_CASE(post_bad_request),
	ERROR_CASE(post_inline_up_to_max),
	ERROR_CASE(post_until_full),
	ERROR_CASE(signaling),
	ERROR_CASE(local_protection),
	ERROR_CASE(local_key_gone),
	ERROR_CASE(atomics),
	{ NULL }
};
