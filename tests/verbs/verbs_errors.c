/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What verbs says happens when things go wrong, and at the edges of what is
 * allowed. Each case runs in a process of its own, with the devices opened
 * anew, so that nothing one leaves behind helps or hurts the next.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "verbs_check.h"

enum {
	SKIPPED = 77,
	CASE_SECONDS = 60,
	BUF = 65536,
};

static struct side A, B;
static uint8_t *abuf, *bbuf;
static struct ibv_mr *amr, *bmr;

#define check_ret(expr, want)                                                  \
	do {                                                                   \
		int ret_ = (expr);                                             \
		check(ret_ == (want), "%s is %d (%s) instead of %d (%s)",      \
		      #expr, ret_, strerror(ret_), want, strerror(want));      \
	} while (0)

static void skip(const char *why)
{
	printf("(%s) ", why);
	fflush(stdout);
	exit(SKIPPED);
}

/* The peers deviate here and there; what they do is not what is tested. */
static bool type_is(const char *type)
{
	const char *t = getenv("TYPE");

	return t && !strcmp(t, type);
}

/* Requests, one after the other in static storage. */
static struct ibv_sge sges[64][32];
static struct ibv_send_wr wrs[64];
static struct ibv_recv_wr recvs[64];

static struct ibv_send_wr *mk(int i, enum ibv_wr_opcode opcode, size_t len)
{
	struct ibv_send_wr *wr = &wrs[i];

	sges[i][0] = (struct ibv_sge){ (uintptr_t)abuf, len, amr->lkey };
	*wr = (struct ibv_send_wr){
		.wr_id = i,
		.sg_list = sges[i],
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.imm_data = htonl(i),
		.wr.rdma.remote_addr = (uintptr_t)bbuf,
		.wr.rdma.rkey = bmr->rkey,
	};
	if (i)
		wrs[i - 1].next = NULL;
	return wr;
}

static void link_wrs(int n)
{
	int i;

	for (i = 0; i < n; i++)
		wrs[i].next = i < n - 1 ? &wrs[i + 1] : NULL;
}

static int post(struct end *end, struct ibv_send_wr *wr,
		struct ibv_send_wr **bad)
{
	struct ibv_send_wr *ignored;

	return ibv_post_send(end->qp, wr, bad ? bad : &ignored);
}

static int post_recv_at(struct end *end, uint64_t wr_id, void *buf, size_t len,
			uint32_t lkey)
{
	struct ibv_sge sge = { (uintptr_t)buf, len, lkey };
	struct ibv_recv_wr *bad;

	recvs[0] = (struct ibv_recv_wr){
		.wr_id = wr_id, .sg_list = &sge, .num_sge = 1,
	};
	return ibv_post_recv(end->qp, &recvs[0], &bad);
}

/* At B. */
static void post_recv(struct end *end, uint64_t wr_id, size_t len)
{
	check_ret(post_recv_at(end, wr_id, bbuf, len, bmr->lkey), 0);
}

static void expect(struct ibv_cq *cq, uint64_t wr_id, enum ibv_wc_status status,
		   int line)
{
	struct ibv_wc wc;

	if (!wait_wc(cq, &wc, PATIENCE_MS))
		die("line %d: no completion of %d", line, (int)wr_id);
	if (wc.wr_id != wr_id || wc.status != status)
		die("line %d: completion of %d: %s, instead of %d: %s", line,
		    (int)wc.wr_id, ibv_wc_status_str(wc.status), (int)wr_id,
		    ibv_wc_status_str(status));
}

#define expect_wc(cq, wr_id, status) expect(cq, wr_id, status, __LINE__)

static void expect_none(struct ibv_cq *cq, int ms, int line)
{
	struct ibv_wc wc;

	if (wait_wc(cq, &wc, ms))
		die("line %d: completion of %d: %s, but none was due", line,
		    (int)wc.wr_id, ibv_wc_status_str(wc.status));
}

static enum ibv_qp_state state_of(struct end *end)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	check_ret(ibv_query_qp(end->qp, &attr, IBV_QP_STATE, &init), 0);
	return attr.qp_state;
}

static void expect_state(struct end *end, enum ibv_qp_state want)
{
	enum ibv_qp_state state = -1;
	uint64_t until = now_ms() + 2000;

	while (now_ms() < until) {
		state = state_of(end);
		if (state == want)
			return;
		usleep(1000);
	}
	die("%s: QP in state %d instead of %d", end->side->name, state, want);
}

/* Bytes go both ways. */
static void check_works(struct pair *pair)
{
	static unsigned int round;

	memset(abuf, 0x40 + ++round % 64, 5000);
	memset(bbuf, 0, 5000);
	check_ret(post(&pair->a, mk(40, IBV_WR_RDMA_WRITE, 5000), NULL), 0);
	expect_wc(pair->a.scq, 40, IBV_WC_SUCCESS);
	check(!memcmp(abuf, bbuf, 5000), "the written bytes are wrong");
	memset(abuf, 0, 5000);
	check_ret(post(&pair->a, mk(41, IBV_WR_RDMA_READ, 5000), NULL), 0);
	expect_wc(pair->a.scq, 41, IBV_WC_SUCCESS);
	check(!memcmp(abuf, bbuf, 5000), "the read bytes are wrong");
}

static void make(struct pair *pair, const struct pair_options *opt)
{
	static const struct pair_options plain;

	pair_create(pair, &A, &B, opt ? opt : &plain);
}

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

/* Request 1 of 0..3 is wrong; 2 and 3 flush, and so does what comes later. */
static void expect_failure(struct pair *p, enum ibv_wc_status status,
			   enum ibv_qp_state state_b)
{
	expect_wc(p->a.scq, 0, IBV_WC_SUCCESS);
	expect_wc(p->a.scq, 1, status);
	expect_wc(p->a.scq, 2, IBV_WC_WR_FLUSH_ERR);
	expect_wc(p->a.scq, 3, IBV_WC_WR_FLUSH_ERR);
	expect_state(&p->a, IBV_QPS_ERR);
	if (state_b == IBV_QPS_ERR)
		expect_state(&p->b, IBV_QPS_ERR);
	check_ret(post(&p->a, mk(9, IBV_WR_RDMA_WRITE, 8), NULL), 0);
	expect_wc(p->a.scq, 9, IBV_WC_WR_FLUSH_ERR);
	check_ret(post_recv_at(&p->a, 10, abuf, 8, amr->lkey), 0);
	expect_wc(p->a.rcq, 10, IBV_WC_WR_FLUSH_ERR);
	expect_none(p->a.scq, 5, __LINE__);
	pair_destroy(p);
}

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

static struct ibv_send_wr *mk_bad(enum ibv_wr_opcode opcode, uint32_t rkey,
				  uint64_t addr, size_t len)
{
	struct ibv_send_wr *wr = mk(50, opcode, len);

	wr->wr.rdma.rkey = rkey;
	wr->wr.rdma.remote_addr = addr;
	return wr;
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

/* --- objects ------------------------------------------------------------------ */

static int try_qp(struct ibv_qp_cap cap)
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
	check_ret(end_to_init(&p.a, &opt), 0);
	check_ret(end_to_init(&p.b, &opt), 0);
	check_ret(end_to_rtr(&p.a, &p.b, &opt), 0);
	check_ret(end_to_rtr(&p.b, &p.a, &opt), 0);
	check_ret(end_to_rts(&p.a, &opt), 0);
	check_ret(end_to_rts(&p.b, &opt), 0);
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

/* --- states --------------------------------------------------------------------- */

static void state_machine(void)
{
	struct pair_options opt = {};
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct pair p;

	check_ret(end_create(&p.a, &A, &opt), 0);
	check_ret(end_create(&p.b, &B, &opt), 0);
	check(state_of(&p.a) == IBV_QPS_RESET, "not in RESET at first");
	check_ret(end_to_rtr(&p.a, &p.b, &opt), EINVAL);
	check_ret(end_to_rts(&p.a, &opt), EINVAL);
	check(state_of(&p.a) == IBV_QPS_RESET, "a refused change was made");

	check_ret(ibv_modify_qp(p.a.qp, &attr, IBV_QP_STATE | IBV_QP_PORT),
		  EINVAL);
	attr.port_num = 2;
	check(ibv_modify_qp(p.a.qp, &attr,
			    IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX |
				    IBV_QP_ACCESS_FLAGS), "port 2");
	attr.port_num = 1;
	attr.pkey_index = 1000;
	check(ibv_modify_qp(p.a.qp, &attr,
			    IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX |
				    IBV_QP_ACCESS_FLAGS) ||
		      type_is("rxe"), "P_Key index 1000");
	if (state_of(&p.a) != IBV_QPS_RESET)
		check_ret(end_to_state(&p.a, IBV_QPS_RESET), 0);

	check_ret(end_to_init(&p.a, &opt), 0);
	check_ret(end_to_init(&p.a, &opt), 0);		/* INIT to INIT is */
	check_ret(end_to_rts(&p.a, &opt), EINVAL);
	A.gid_index += 1000;
	check(end_to_rtr(&p.a, &p.b, &opt), "a GID index that is not there");
	A.gid_index -= 1000;
	opt.path_mtu = 200;
	check(end_to_rtr(&p.a, &p.b, &opt), "path MTU 200");
	opt.path_mtu = 0;
	if (!type_is("rxe")) {
		p.b.qp->qp_num |= 1u << 24;
		check_ret(end_to_rtr(&p.a, &p.b, &opt), EINVAL);
		p.b.qp->qp_num &= ~(1u << 24);
	}
	check(state_of(&p.a) == IBV_QPS_INIT, "a refused change was made");
	check_ret(end_to_rtr(&p.a, &p.b, &opt), 0);
	check_ret(end_to_init(&p.a, &opt), EINVAL);
	check_ret(end_to_rts(&p.a, &opt), 0);
	check_ret(end_to_rtr(&p.a, &p.b, &opt), EINVAL);
	check_ret(end_to_state(&p.a, IBV_QPS_ERR), 0);
	check_ret(end_to_init(&p.a, &opt), EINVAL);
	check_ret(end_to_state(&p.a, IBV_QPS_ERR), 0);
	check_ret(end_to_state(&p.a, IBV_QPS_RESET), 0);
	check_ret(end_to_state(&p.a, IBV_QPS_RESET), 0);
	pair_destroy(&p);
}

/* A QP that was used, with requests of all kinds in it, works after RESET. */
static void reset_and_use_again(void)
{
	struct pair_options opt = {};
	struct ibv_wc wc;
	struct pair p;
	int i, round;

	make(&p, &opt);
	for (round = 0; round < 5; round++) {
		check_works(&p);
		for (i = 0; i < 10; i++) {
			check_ret(post(&p.a, mk(i, IBV_WR_SEND, 100), NULL), 0);
			check_ret(post_recv_at(&p.a, i, abuf, 8, amr->lkey), 0);
		}
		if (round % 2)
			check_ret(end_to_state(&p.a, IBV_QPS_ERR), 0);
		check_ret(end_to_state(&p.a, IBV_QPS_RESET), 0);
		check_ret(end_to_state(&p.b, IBV_QPS_RESET), 0);
		while (ibv_poll_cq(p.a.scq, 1, &wc) ||
		       ibv_poll_cq(p.a.rcq, 1, &wc))
			;
		p.a.psn = p.b.psn += 1000;
		check_ret(end_to_init(&p.a, &opt), 0);
		check_ret(end_to_init(&p.b, &opt), 0);
		check_ret(end_to_rtr(&p.a, &p.b, &opt), 0);
		check_ret(end_to_rtr(&p.b, &p.a, &opt), 0);
		check_ret(end_to_rts(&p.a, &opt), 0);
		check_ret(end_to_rts(&p.b, &opt), 0);
		expect_none(p.a.scq, 10, __LINE__);
	}
	check_works(&p);
	pair_destroy(&p);
}

static void query_what_was_set(void)
{
	struct pair_options opt = {
		.timeout = 15, .retry_cnt = 5, .rnr_retry = 4,
		.min_rnr_timer = 17, .send_wr = 33, .recv_wr = 44,
		.send_sge = 3, .recv_sge = 2, .inline_data = 40,
	};
	struct ibv_qp_init_attr init = {};
	struct ibv_qp_attr attr = {};
	struct pair p;

	make(&p, &opt);
	check_ret(ibv_query_qp(p.a.qp, &attr, 0x1fffff, &init), 0);
#define same(what, want)                                                       \
	check((uint64_t)(what) == (uint64_t)(want), "%s is %#llx instead of %#llx", \
	      #what, (unsigned long long)(what), (unsigned long long)(want))
	same(attr.qp_state, IBV_QPS_RTS);
	same(attr.path_mtu, A.port.active_mtu);
	same(attr.dest_qp_num, p.b.qp->qp_num);
	same(attr.rq_psn & 0xffffff, p.b.psn & 0xffffff);
	if (!type_is("rxe"))		/* tells the next one */
		same(attr.sq_psn & 0xffffff, p.a.psn & 0xffffff);
	same(attr.qp_access_flags & FULL_ACCESS, FULL_ACCESS);
	same(attr.timeout, 15);
	same(attr.retry_cnt, 5);
	same(attr.rnr_retry, 4);
	same(attr.min_rnr_timer, 17);
	same(attr.port_num, 1);
	same(attr.pkey_index, 0);
	same(attr.max_rd_atomic, 16 < A.attr.max_qp_init_rd_atom ?
					 16 : A.attr.max_qp_init_rd_atom);
	same(attr.max_dest_rd_atomic, 16 < A.attr.max_qp_rd_atom ?
					      16 : A.attr.max_qp_rd_atom);
	same(attr.ah_attr.is_global, 1);
	same(attr.ah_attr.grh.sgid_index, A.gid_index);
	same(memcmp(&attr.ah_attr.grh.dgid, &B.gid, 16), 0);
	same(attr.cap.max_send_wr, p.a.cap.max_send_wr);
	same(attr.cap.max_recv_wr, p.a.cap.max_recv_wr);
	same(attr.cap.max_send_sge, p.a.cap.max_send_sge);
	same(attr.cap.max_recv_sge, p.a.cap.max_recv_sge);
	same(attr.cap.max_inline_data, p.a.cap.max_inline_data);
	check(p.a.cap.max_send_wr >= 33 && p.a.cap.max_recv_wr >= 44 &&
	      p.a.cap.max_send_sge >= 3 && p.a.cap.max_recv_sge >= 2 &&
	      p.a.cap.max_inline_data >= 40, "less than was asked for");
	same(init.qp_type, IBV_QPT_RC);
	pair_destroy(&p);
}

/* --- events ------------------------------------------------------------------------ */

static bool event_within(struct end *end, int ms)
{
	struct pollfd fd = { .fd = end->channel->fd, .events = POLLIN };

	return poll(&fd, 1, ms) == 1;
}

static void take_event(struct end *end, struct ibv_cq *want)
{
	struct ibv_cq *cq;
	void *context;

	check_ret(ibv_get_cq_event(end->channel, &cq, &context), 0);
	check(cq == want, "an event of another CQ");
	ibv_ack_cq_events(cq, 1);
}

static void send_one(struct pair *p, int i, int flags)
{
	mk(i, IBV_WR_SEND, 8)->send_flags |= flags;
	check_ret(post(&p->a, &wrs[i], NULL), 0);
	expect_wc(p->a.scq, i, IBV_WC_SUCCESS);
}

static void cq_events(void)
{
	struct pair_options opt = { .events = true };
	struct pair p;
	int i;

	make(&p, &opt);
	for (i = 0; i < 20; i++)
		post_recv(&p.b, i, 8);

	send_one(&p, 0, IBV_SEND_SOLICITED);
	check(!event_within(&p.b, 50), "an event of a CQ that is not armed");
	expect_wc(p.b.rcq, 0, IBV_WC_SUCCESS);

	check_ret(ibv_req_notify_cq(p.b.rcq, 0), 0);
	check(!event_within(&p.b, 50), "an event without a completion");
	send_one(&p, 1, 0);
	check(event_within(&p.b, PATIENCE_MS), "no event");
	take_event(&p.b, p.b.rcq);
	send_one(&p, 2, 0);
	check(!event_within(&p.b, 50), "a second event, armed once");
	expect_wc(p.b.rcq, 1, IBV_WC_SUCCESS);
	expect_wc(p.b.rcq, 2, IBV_WC_SUCCESS);

	check_ret(ibv_req_notify_cq(p.b.rcq, 1), 0);
	send_one(&p, 3, 0);
	check(!event_within(&p.b, 50), "an event of an unsolicited send");
	send_one(&p, 4, IBV_SEND_SOLICITED);
	check(event_within(&p.b, PATIENCE_MS), "no event of a solicited send");
	take_event(&p.b, p.b.rcq);
	expect_wc(p.b.rcq, 3, IBV_WC_SUCCESS);
	expect_wc(p.b.rcq, 4, IBV_WC_SUCCESS);

	/* Armed for any, then for solicited: any still counts. */
	check_ret(ibv_req_notify_cq(p.b.rcq, 0), 0);
	check_ret(ibv_req_notify_cq(p.b.rcq, 1), 0);
	send_one(&p, 5, 0);
	check(event_within(&p.b, PATIENCE_MS), "the weaker request won");
	take_event(&p.b, p.b.rcq);
	expect_wc(p.b.rcq, 5, IBV_WC_SUCCESS);

	/* An error is always solicited. */
	if (type_is("rxe"))
		skip("rxe has no event of a flush");
	check_ret(ibv_req_notify_cq(p.b.rcq, 1), 0);
	check_ret(end_to_state(&p.b, IBV_QPS_ERR), 0);
	check(event_within(&p.b, PATIENCE_MS), "no event of a flush");
	take_event(&p.b, p.b.rcq);
	pair_destroy(&p);
}

/* Wait, take all, arm, wait: nothing is lost, as in every program with events. */
static void cq_event_loop(void)
{
	struct pair_options opt = { .events = true };
	struct ibv_wc wc[8];
	struct pair p;
	int sent = 0, done = 0, n;

	make(&p, &opt);
	check_ret(ibv_req_notify_cq(p.a.scq, 0), 0);
	while (done < 2000) {
		while (sent < 2000 && sent - done < 16) {
			check_ret(post(&p.a, mk(0, IBV_WR_RDMA_WRITE, 8), NULL), 0);
			sent++;
		}
		check(event_within(&p.a, 10000), "event lost after %d", done);
		take_event(&p.a, p.a.scq);
		check_ret(ibv_req_notify_cq(p.a.scq, 0), 0);
		while ((n = ibv_poll_cq(p.a.scq, 8, wc)) > 0)
			done += n;
	}
	pair_destroy(&p);
}

static void async_events(void)
{
	struct ibv_async_event event;
	struct pollfd fd;
	struct pair p;

	if (type_is("rxe"))
		skip("rxe raises none here");
	make(&p, NULL);
	fd = (struct pollfd){ .fd = B.ctx->async_fd, .events = POLLIN };
	check_ret(post(&p.a, mk_bad(IBV_WR_RDMA_WRITE, 1, 1, 16), NULL), 0);
	expect_wc(p.a.scq, 50, IBV_WC_REM_ACCESS_ERR);
	for (;;) {
		check(poll(&fd, 1, 5000) == 1, "no asynchronous event at B");
		check_ret(ibv_get_async_event(B.ctx, &event), 0);
		ibv_ack_async_event(&event);
		if (event.event_type == IBV_EVENT_QP_ACCESS_ERR)
			break;
		check(event.event_type == IBV_EVENT_COMM_EST, "event %s",
		      ibv_event_type_str(event.event_type));
	}
	check(event.element.qp == p.b.qp, "an event of another QP");
	pair_destroy(&p);
}

/* --- threads ------------------------------------------------------------------------ */

enum { POSTERS = 3, EACH = 1500 };

struct crowd {
	struct pair p;
	pthread_mutex_t mutex;
	int room;
	int done;
	uint8_t seen[POSTERS * EACH];
};

static void *poster(void *arg)
{
	static int next;
	struct crowd *c = arg;
	int i, id, ret;
	bool go;

	id = __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED);
	for (i = 0; i < EACH; i++) {
		struct ibv_sge sge = { (uintptr_t)abuf, 64, amr->lkey };
		struct ibv_send_wr *bad, wr = {
			.wr_id = id * EACH + i, .sg_list = &sge, .num_sge = 1,
			.opcode = IBV_WR_RDMA_WRITE,
			.send_flags = IBV_SEND_SIGNALED,
			.wr.rdma.remote_addr = (uintptr_t)bbuf,
			.wr.rdma.rkey = bmr->rkey,
		};

		do {
			pthread_mutex_lock(&c->mutex);
			go = c->room > 0;
			c->room -= go;
			pthread_mutex_unlock(&c->mutex);
			if (!go)
				usleep(10);
		} while (!go);
		ret = ibv_post_send(c->p.a.qp, &wr, &bad);
		if (ret)
			die("ibv_post_send: %s", strerror(ret));
	}
	return NULL;
}

static void *poller(void *arg)
{
	struct crowd *c = arg;
	uint64_t until = now_ms() + PATIENCE_MS;
	struct ibv_wc wc[4];
	int i, n, done;

	do {
		n = ibv_poll_cq(c->p.a.scq, 4, wc);
		/* A slow kernel takes its time; one that loses one never ends. */
		if (n)
			until = now_ms() + PATIENCE_MS;
		else
			usleep(10);
		pthread_mutex_lock(&c->mutex);
		for (i = 0; i < n; i++) {
			if (wc[i].status || c->seen[wc[i].wr_id]++)
				die("completion %d: %s, seen %d times",
				    (int)wc[i].wr_id,
				    ibv_wc_status_str(wc[i].status),
				    c->seen[wc[i].wr_id]);
			c->room++;
			c->done++;
		}
		done = c->done;
		pthread_mutex_unlock(&c->mutex);
		if (now_ms() > until)
			die("%d of %d completed", done, POSTERS * EACH);
	} while (done < POSTERS * EACH);
	return NULL;
}

static void threads_share_a_qp(void)
{
	static struct crowd c = { .mutex = PTHREAD_MUTEX_INITIALIZER };
	pthread_t threads[POSTERS + 2];
	size_t i;

	make(&c.p, NULL);
	c.room = 60;
	for (i = 0; i < ARRAY_LEN(threads); i++)
		if (pthread_create(&threads[i], NULL,
				   i < POSTERS ? poster : poller, &c))
			die("no thread");
	for (i = 0; i < ARRAY_LEN(threads); i++)
		pthread_join(threads[i], NULL);
	pair_destroy(&c.p);
}

/* --- running ------------------------------------------------------------------------ */

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
#define CASE(name) { #name, name }
	CASE(post_in_wrong_state),
	CASE(post_bad_request),
	CASE(post_inline_up_to_max),
	CASE(post_until_full),
	CASE(signaling),
	CASE(local_protection),
	CASE(local_key_gone),
	CASE(remote_access),
	CASE(remote_qp_rights),
	CASE(remote_key_gone),
	CASE(zero_bytes_need_no_key),
	CASE(null_region),
	CASE(atomics),
	CASE(rnr_gives_up),
	CASE(rnr_waits),
	CASE(rnr_stalls_nothing_else),
	CASE(receive_too_small),
	CASE(receive_bad_key),
	CASE(receives_flush_in_order),
	CASE(peer_gone),
	CASE(peer_not_ready_yet),
	CASE(same_device),
	CASE(qp_too_large),
	CASE(qp_without_queues),
	CASE(cq_sizes),
	CASE(mr_arguments),
	CASE(mr_iova),
	CASE(busy_objects),
	CASE(not_supported),
	CASE(state_machine),
	CASE(reset_and_use_again),
	CASE(query_what_was_set),
	CASE(cq_events),
	CASE(cq_event_loop),
	CASE(async_events),
	CASE(threads_share_a_qp),
};

static void run_in_child(void (*run)(void))
{
	alarm(CASE_SECONDS);
	side_open_both(&A, &B);
	abuf = alloc_pages(BUF);
	bbuf = alloc_pages(BUF);
	amr = must_reg(&A, abuf, BUF, FULL_ACCESS);
	bmr = must_reg(&B, bbuf, BUF, FULL_ACCESS);
	run();
	check_ret(ibv_dereg_mr(amr), 0);
	check_ret(ibv_dereg_mr(bmr), 0);
	side_close(&A);
	side_close(&B);
	exit(0);
}

/* 0: passed, SKIPPED, or failed. */
static int run_case(size_t i)
{
	uint64_t start = now_ms();
	int status;
	pid_t pid;

	printf("%-28s ", cases[i].name);
	fflush(stdout);
	pid = fork();
	if (pid < 0)
		die("fork: %s", strerror(errno));
	if (!pid)
		run_in_child(cases[i].run);
	if (waitpid(pid, &status, 0) != pid)
		die("waitpid: %s", strerror(errno));
	if (WIFSIGNALED(status)) {
		printf("FAIL: %s\n", WTERMSIG(status) == SIGALRM ?
			       "it hangs" : strsignal(WTERMSIG(status)));
		return 1;
	}
	status = WEXITSTATUS(status);
	printf("%s (%d ms)\n", status == SKIPPED ? "skip" :
			       status		 ? "FAIL" : "ok",
	       (int)(now_ms() - start));
	return status;
}

/* Prints the most inline data that a QP of A can have. */
static int print_max_inline(void)
{
	struct ibv_qp_cap cap = { 16, 16, 1, 1, 0 };
	uint32_t low = 0, high = 1 << 16;

	side_open_both(&A, &B);
	while (low < high) {
		cap.max_inline_data = (low + high + 1) / 2;
		if (try_qp(cap))
			high = cap.max_inline_data - 1;
		else
			low = cap.max_inline_data;
	}
	printf("%u\n", low);
	return 0;
}

int main(int argc, char **argv)
{
	int failed = 0, passed = 0, skipped = 0, status;
	bool list = argc == 2 && !strcmp(argv[1], "--list");
	size_t i;
	int k;

	if (argc == 2 && !strcmp(argv[1], "--max-inline"))
		return print_max_inline();
	for (i = 0; i < ARRAY_LEN(cases); i++) {
		for (k = 1; k < argc; k++)
			if (strstr(cases[i].name, argv[k]))
				break;
		if (list) {
			puts(cases[i].name);
			continue;
		}
		if (argc > 1 && k == argc)
			continue;
		status = run_case(i);
		passed += !status;
		skipped += status == SKIPPED;
		failed += status && status != SKIPPED;
	}
	if (list)
		return 0;
	if (!passed && !failed && !skipped) {
		fprintf(stderr, "verbs_errors: no case of that name; see verbs_errors --list\n");
		return 2;
	}
	printf("verbs_errors: %d passed, %d failed, %d skipped\n", passed,
	       failed, skipped);
	return failed ? 1 : 0;
}
