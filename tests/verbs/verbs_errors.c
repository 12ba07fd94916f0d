/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What verbs says happens when things go wrong, and at the edges of what is
 * allowed. Each case runs in a process of its own, with the devices opened
 * anew, so that nothing one leaves behind helps or hurts the next.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "errors.h"

enum {
	SKIPPED = 77,
	CASE_SECONDS = 60,
};

struct side A, B;
uint8_t *abuf, *bbuf;
struct ibv_mr *amr, *bmr;
struct ibv_sge sges[64][32];
struct ibv_send_wr wrs[64];

#include "verbs_check.h"

void skip(const char *why)
{
	printf("(%s) ", why);
	fflush(stdout);
	exit(SKIPPED);
}

bool type_is(const char *type)
{
	const char *t = getenv("TYPE");

	return t && !strcmp(t, type);
}

struct ibv_send_wr *mk(int i, enum ibv_wr_opcode opcode, size_t len)
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

void link_wrs(int n)
{
	int i;

	for (i = 0; i < n; i++)
		wrs[i].next = i < n - 1 ? &wrs[i + 1] : NULL;
}

int post(struct end *end, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct ibv_send_wr *ignored;

	return ibv_post_send(end->qp, wr, bad ? bad : &ignored);
}

int post_recv_at(struct end *end, uint64_t wr_id, void *buf, size_t len,
		 uint32_t lkey)
{
	struct ibv_sge sge = { (uintptr_t)buf, len, lkey };
	struct ibv_recv_wr wr = {
		.wr_id = wr_id, .sg_list = &sge, .num_sge = 1,
	}, *bad;

	return ibv_post_recv(end->qp, &wr, &bad);
}

void post_recv(struct end *end, uint64_t wr_id, size_t len)
{
	check_ret(post_recv_at(end, wr_id, bbuf, len, bmr->lkey), 0);
}

void expect(struct ibv_cq *cq, uint64_t wr_id, enum ibv_wc_status status,
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

void expect_none(struct ibv_cq *cq, int ms, int line)
{
	struct ibv_wc wc;

	if (wait_wc(cq, &wc, ms))
		die("line %d: completion of %d: %s, but none was due", line,
		    (int)wc.wr_id, ibv_wc_status_str(wc.status));
}

enum ibv_qp_state state_of(struct end *end)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	check_ret(ibv_query_qp(end->qp, &attr, IBV_QP_STATE, &init), 0);
	return attr.qp_state;
}

void expect_state(struct end *end, enum ibv_qp_state want)
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

void check_works(struct pair *pair)
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

void make(struct pair *pair, const struct pair_options *opt)
{
	static const struct pair_options plain;

	pair_create(pair, &A, &B, opt ? opt : &plain);
}

void expect_failure(struct pair *p, enum ibv_wc_status status,
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

struct ibv_send_wr *mk_bad(enum ibv_wr_opcode opcode, uint32_t rkey,
			   uint64_t addr, size_t len)
{
	struct ibv_send_wr *wr = mk(50, opcode, len);

	wr->wr.rdma.rkey = rkey;
	wr->wr.rdma.remote_addr = addr;
	return wr;
}

/* --- running ------------------------------------------------------------ */

static const struct error_case *const cases[] = {
	errors_post, errors_access, errors_receive, errors_objects, errors_states,
	errors_doorbell,
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
static int run_case(const struct error_case *c)
{
	uint64_t start = now_ms();
	int status;
	pid_t pid;

	printf("%-28s ", c->name);
	fflush(stdout);
	pid = fork();
	if (pid < 0)
		die("fork: %s", strerror(errno));
	if (!pid)
		run_in_child(c->run);
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

static bool is_named(const struct error_case *c, int argc, char **argv)
{
	int k;

	for (k = 1; k < argc; k++)
		if (strstr(c->name, argv[k]))
			return true;
	return argc == 1;
}

static int list_cases(void)
{
	const struct error_case *c;
	size_t i;

	for (i = 0; i < ARRAY_LEN(cases); i++)
		for (c = cases[i]; c->name; c++)
			puts(c->name);
	return 0;
}

int main(int argc, char **argv)
{
	int failed = 0, passed = 0, skipped = 0, status;
	const struct error_case *c;
	size_t i;

	if (argc == 2 && !strcmp(argv[1], "--max-inline"))
		return print_max_inline();
	if (argc == 2 && !strcmp(argv[1], "--list"))
		return list_cases();
	for (i = 0; i < ARRAY_LEN(cases); i++) {
		for (c = cases[i]; c->name; c++) {
			if (!is_named(c, argc, argv))
				continue;
			status = run_case(c);
			passed += !status;
			skipped += status == SKIPPED;
			failed += status && status != SKIPPED;
		}
	}
	if (!passed && !failed && !skipped) {
		fprintf(stderr, "verbs_errors: no case of that name; see verbs_errors --list\n");
		return 2;
	}
	printf("verbs_errors: %d passed, %d failed, %d skipped\n", passed,
	       failed, skipped);
	return failed ? 1 : 0;
}
