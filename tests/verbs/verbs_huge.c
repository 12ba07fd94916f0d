/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Verbs at the sizes that the device says are its largest, and one more, which
 * is refused: a CQ whose ring wraps, full queues, every length of inline data,
 * messages of 2 GiB of which each byte is compared, and all QPs.
 *
 *   verbs_huge cq|depth|inline|message|qps... [SEED]
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "verbs_check.h"

enum {
	CQE = 1 << 22,
	DEPTH = 16384,
	SLOTS = 4096,		/* that small writes go to, in turn */
	MESSAGE = 64,
	INLINE = 512,		/* is granted at least */
	EACH = 4099,		/* of so many QPs one is used */
	WINDOW = 1 << 26,	/* bytes that a 2 GiB message is made of, and */
	PIECE = 1 << 20,	/* of pieces of this size, in any order */
	LONG_MS = 1200000,
};

static const size_t message = 1UL << 31;

static struct side a, b;
static uint64_t seed;

static void must_complete(struct ibv_cq *cq, uint64_t wr_id)
{
	struct ibv_wc wc;

	check(wait_wc(cq, &wc, LONG_MS), "no completion of %llu",
	      (unsigned long long)wr_id);
	check(!wc.status, "%llu ended with %s", (unsigned long long)wr_id,
	      ibv_wc_status_str(wc.status));
	check(wc.wr_id == wr_id, "%llu instead of %llu",
	      (unsigned long long)wc.wr_id, (unsigned long long)wr_id);
}

/* ---- a CQ ---- */

static struct ibv_cq *big;

static struct ibv_qp *with_big_cq(struct side *side,
				  struct ibv_qp_init_attr *init)
{
	if (side == &a)
		init->send_cq = big;
	return ibv_create_qp(side->pd, init);
}

static void no_cq_of(int cqe)
{
	check(!ibv_create_cq(a.ctx, cqe, NULL, NULL, 0) && errno == EINVAL,
	      "a CQ of %d: %s", cqe, strerror(errno));
}

/* The @at-th of all, which is its number in a slot. */
static void post_number(struct ibv_qp *qp, uint64_t at, struct ibv_mr *to)
{
	struct ibv_sge sge = { (uintptr_t)&at, sizeof(at), 0 };
	struct ibv_send_wr *bad, wr = {
		.wr_id = at, .sg_list = &sge, .num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE,
		.wr.rdma = { (uintptr_t)to->addr + at % SLOTS * sizeof(at),
			     to->rkey },
	};
	int err;

	while ((err = ibv_post_send(qp, &wr, &bad)) == ENOMEM)
		sched_yield();
	check(!err, "a write is refused: %s", strerror(err));
}

static void test_cq(void)
{
	struct pair_options po = {
		.send_wr = DEPTH, .inline_data = 8, .timeout = 18,
		.create_qp = with_big_cq,
	};
	volatile uint64_t *dst = alloc_pages(SLOTS * sizeof(*dst));
	struct ibv_mr *mr = must_reg(&b, (void *)dst, SLOTS * sizeof(*dst),
				     FULL_ACCESS);
	uint64_t posted = 0, polled = 0, deadline;
	struct ibv_wc wc;
	struct pair p;
	int n, i;

	check(a.attr.max_cqe == CQE, "CQs have %d entries", a.attr.max_cqe);
	no_cq_of(CQE + 1);
	no_cq_of(1 << 30);
	no_cq_of(0);
	no_cq_of(-1);
	big = ibv_create_cq(a.ctx, CQE, NULL, NULL, 0);
	check(big && big->cqe == CQE, "no CQ of %d: %s", CQE, strerror(errno));
	check(ibv_resize_cq(big, CQE + 1) == EINVAL, "resized to more");
	pair_create(&p, &a, &b, &po);
	/* The ring is not at its beginning. */
	for (; posted < 1000; posted++)
		post_number(p.a.qp, posted, mr);
	for (; polled < posted; polled++)
		must_complete(big, polled);
	/* So many are there at once, and none is lost. */
	for (; posted < 1000 + CQE; posted++)
		post_number(p.a.qp, posted, mr);
	deadline = now_ms() + LONG_MS;
	while (dst[(posted - 1) % SLOTS] != posted - 1)
		check(now_ms() < deadline, "the last does not come");
	for (; polled < posted; polled++)
		must_complete(big, polled);
	/* And while it is emptied, past the end again. */
	for (; posted < 3ULL * CQE; posted++) {
		post_number(p.a.qp, posted, mr);
		n = posted % 64 ? 0 : ibv_poll_cq(big, 1, &wc);
		check(n >= 0 && (!n || (!wc.status && wc.wr_id == polled)),
		      "completion %llu", (unsigned long long)polled);
		polled += n;
		/* Never more than it holds. */
		for (; posted - polled > CQE - 2; polled++)
			must_complete(big, polled);
	}
	for (; polled < posted; polled++)
		must_complete(big, polled);
	check(!ibv_poll_cq(big, 1, &wc), "one more completion");
	for (i = 0; i < SLOTS; i++)
		check(dst[i] == posted - SLOTS + i, "slot %d", i);
	check(!ibv_resize_cq(big, 16) && big->cqe == 16, "not made small");
	check(!ibv_resize_cq(big, CQE) && big->cqe == CQE, "nor large again");
	post_number(p.a.qp, posted, mr);
	must_complete(big, posted);
	pair_destroy(&p);
	ibv_destroy_cq(big);
	ibv_dereg_mr(mr);
	munmap((void *)dst, SLOTS * sizeof(*dst));
	printf("a CQ of %d entries: %llu completions in order\n", CQE,
	       (unsigned long long)posted + 1);
}

/* ---- queues ---- */

static int receive(struct pair *p, struct ibv_mr *mr, int i)
{
	struct ibv_sge sge = { (uintptr_t)mr->addr + (size_t)i * MESSAGE,
			       MESSAGE, mr->lkey };
	struct ibv_recv_wr *bad, wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 };

	return ibv_post_recv(p->b.qp, &wr, &bad);
}

static int send_one(struct pair *p, struct ibv_mr *mr, int i)
{
	struct ibv_sge sge = { (uintptr_t)mr->addr + (size_t)i * MESSAGE,
			       MESSAGE, mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.wr_id = i, .sg_list = &sge, .num_sge = 1,
		.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED,
	};

	return ibv_post_send(p->a.qp, &wr, &bad);
}

typedef int post_fn(struct pair *p, struct ibv_mr *mr, int i);

/* Nothing of it is done meanwhile, so one more has no room. */
static void fill(post_fn *post, struct pair *p, struct ibv_mr *mr)
{
	int i;

	for (i = 0; i < DEPTH; i++)
		check(!post(p, mr, i), "request %d is refused", i);
	check(post(p, mr, 0) == ENOMEM, "more than %d", DEPTH);
}

static void empty(struct pair *p, struct ibv_mr *src, struct ibv_mr *dst)
{
	int i;

	for (i = 0; i < DEPTH; i++) {
		must_complete(p->b.rcq, i);
		must_complete(p->a.scq, i);
	}
	check(!memcmp(src->addr, dst->addr, src->length), "other bytes");
}

static void no_qp_of(const struct ibv_qp_cap *cap)
{
	struct ibv_cq *cq = ibv_create_cq(a.ctx, 16, NULL, NULL, 0);
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = *cap,
	};

	check(cq, "no CQ");
	check(!ibv_create_qp(a.pd, &init) && errno == EINVAL,
	      "a QP of %u sends of %u SGEs and %u inline, %u receives of %u: %s",
	      cap->max_send_wr, cap->max_send_sge, cap->max_inline_data,
	      cap->max_recv_wr, cap->max_recv_sge, strerror(errno));
	ibv_destroy_cq(cq);
}

static void test_depth(void)
{
	struct pair_options po = {
		.send_wr = DEPTH, .recv_wr = DEPTH, .cqe = DEPTH, .timeout = 18,
		.rnr_retry = 7, .min_rnr_timer = 1,
	};
	uint8_t *mem = alloc_pages(2 * DEPTH * MESSAGE);
	struct ibv_mr *src = must_reg(&a, mem, DEPTH * MESSAGE, FULL_ACCESS);
	struct ibv_mr *dst = must_reg(&b, mem + DEPTH * MESSAGE,
				      DEPTH * MESSAGE, FULL_ACCESS);
	struct pair p;

	check(a.attr.max_qp_wr == DEPTH, "QPs have %d", a.attr.max_qp_wr);
	no_qp_of(&(struct ibv_qp_cap){ DEPTH + 1, 1, 1, 1, 0 });
	no_qp_of(&(struct ibv_qp_cap){ 1, DEPTH + 1, 1, 1, 0 });
	no_qp_of(&(struct ibv_qp_cap){ UINT32_MAX, 1, 1, 1, 0 });
	no_qp_of(&(struct ibv_qp_cap){ 1, 1, a.attr.max_sge + 1, 1, 0 });
	no_qp_of(&(struct ibv_qp_cap){ 1, 1, 1, a.attr.max_sge + 1, 0 });
	pair_create(&p, &a, &b, &po);
	rng_fill(&seed, mem, DEPTH * MESSAGE);
	fill(receive, &p, dst);
	for (int i = 0; i < DEPTH; i++)
		check(!send_one(&p, src, i), "send %d is refused", i);
	empty(&p, src, dst);
	/* Without receives, no send ends. */
	rng_fill(&seed, mem, DEPTH * MESSAGE);
	fill(send_one, &p, src);
	for (int i = 0; i < DEPTH; i++)
		check(!receive(&p, dst, i), "receive %d is refused", i);
	empty(&p, src, dst);
	pair_destroy(&p);
	ibv_dereg_mr(src);
	ibv_dereg_mr(dst);
	munmap(mem, 2 * DEPTH * MESSAGE);
	printf("%d receives, and %d sends, that wait\n", DEPTH, DEPTH);
}

/* ---- inline data ---- */

static uint32_t inline_limit(void)
{
	struct ibv_cq *cq = ibv_create_cq(a.ctx, 16, NULL, NULL, 0);
	uint32_t limit = INLINE - 1;
	struct ibv_qp *qp;

	check(cq, "no CQ");
	do {
		struct ibv_qp_init_attr init = {
			.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
			.cap = { 1, 1, 1, 1, limit + 1 },
		};

		qp = ibv_create_qp(a.pd, &init);
		if (!qp)
			break;
		check(init.cap.max_inline_data > limit, "less inline than asked");
		check(!ibv_destroy_qp(qp), "destroy");
		limit++;
	} while (1);
	check(errno == EINVAL, "inline data of %u: %s", limit + 1,
	      strerror(errno));
	ibv_destroy_cq(cq);
	return limit;
}

static void test_inline(void)
{
	struct pair_options po = { .inline_data = inline_limit(), .timeout = 18 };
	uint32_t limit = po.inline_data, len;
	uint8_t *mem = alloc_pages(4096), *own = malloc(limit + 1);
	uint8_t *sent = malloc(limit + 1);
	struct ibv_mr *mr = must_reg(&b, mem, 4096, FULL_ACCESS);
	struct pair p;

	check(own && sent, "no memory");
	check(limit >= INLINE, "inline data only up to %u", limit);
	no_qp_of(&(struct ibv_qp_cap){ 1, 1, 1, 1, UINT32_MAX });
	pair_create(&p, &a, &b, &po);
	for (len = 0; len <= limit + 1; len++) {
		struct ibv_sge sge = { (uintptr_t)own, len, 0 };
		struct ibv_send_wr *bad, wr = {
			.wr_id = len, .sg_list = &sge, .num_sge = 1,
			.opcode = IBV_WR_RDMA_WRITE,
			.send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE,
			.wr.rdma = { (uintptr_t)mem + 1, mr->rkey },
		};
		int err;

		rng_fill(&seed, own, limit + 1);
		memcpy(sent, own, len);
		memset(mem, 0xa5, 4096);
		err = ibv_post_send(p.a.qp, &wr, &bad);
		/* It is the caller's again. */
		memset(own, 0, limit + 1);
		if (len > limit) {
			check(err == EINVAL, "%u bytes inline: %s", len,
			      strerror(err));
			break;
		}
		check(!err, "%u bytes inline: %s", len, strerror(err));
		must_complete(p.a.scq, len);
		check(!memcmp(mem + 1, sent, len), "other bytes of %u", len);
		check(mem[0] == 0xa5 && mem[len + 1] == 0xa5,
		      "beside the %u bytes", len);
	}
	pair_destroy(&p);
	ibv_dereg_mr(mr);
	munmap(mem, 4096);
	free(own);
	free(sent);
	printf("inline data of 0 to %u bytes\n", limit);
}

/* ---- messages ---- */

/* The pieces of a smaller file, each where it is for no reason: a displaced one is seen. */
static uint8_t *map_pieces(void)
{
	uint8_t *mem = mmap(NULL, message, PROT_NONE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	int file = memfd_create("verbs_huge", MFD_CLOEXEC);
	uint8_t *window;
	size_t at;

	check(mem != MAP_FAILED && file >= 0 && !ftruncate(file, WINDOW),
	      "no memory");
	window = mmap(NULL, WINDOW, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	check(window != MAP_FAILED, "no window");
	rng_fill(&seed, window, WINDOW);
	munmap(window, WINDOW);
	for (at = 0; at < message; at += PIECE) {
		off_t from = (off_t)rng_below(&seed, WINDOW / PIECE) * PIECE;

		check(mmap(mem + at, PIECE, PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_FIXED, file, from) == mem + at,
		      "piece: %s", strerror(errno));
	}
	close(file);
	return mem;
}

static void send_huge(struct pair *p, enum ibv_wr_opcode opcode,
		      struct ibv_mr *local, struct ibv_mr *remote)
{
	struct ibv_sge sge = { (uintptr_t)local->addr, message, local->lkey };
	struct ibv_send_wr *bad, wr = {
		.wr_id = opcode, .sg_list = &sge, .num_sge = 1, .opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { (uintptr_t)remote->addr, remote->rkey },
	};

	check(!ibv_post_send(p->a.qp, &wr, &bad), "refused");
}

static void must_be_same(const uint8_t *src, uint8_t *dst, const char *what,
			 uint64_t began)
{
	check(!memcmp(src, dst, message), "%s has brought other bytes", what);
	printf("%s of 2 GiB: every byte, %.0f s\n", what,
	       (double)(now_ms() - began) / 1000);
	fflush(stdout);
	memset(dst, 0, message);
}

/* Two SGEs that have one byte too many between them: refused at once, or as too long. */
static void one_more(struct pair *p, struct ibv_mr *local, struct ibv_mr *remote)
{
	struct ibv_sge sge[] = {
		{ (uintptr_t)local->addr, message, local->lkey },
		{ (uintptr_t)local->addr, 1, local->lkey },
	};
	struct ibv_send_wr *bad, wr = {
		.sg_list = sge, .num_sge = 2, .opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { (uintptr_t)remote->addr, remote->rkey },
	};
	struct ibv_wc wc;
	int err = ibv_post_send(p->a.qp, &wr, &bad);

	check(!err || err == EINVAL, "2 GiB and a byte: %s", strerror(err));
	if (err)
		return;
	check(wait_wc(p->a.scq, &wc, LONG_MS), "no completion");
	check(wc.status == IBV_WC_LOC_LEN_ERR, "2 GiB and a byte: %s",
	      ibv_wc_status_str(wc.status));
}

static void test_message(void)
{
	struct pair_options po = { .timeout = 20, .send_sge = 2 };
	uint8_t *src = map_pieces(), *dst = alloc_pages(message);
	struct ibv_mr *from = must_reg(&a, src, message, FULL_ACCESS);
	struct ibv_mr *to = must_reg(&b, dst, message, FULL_ACCESS);
	struct ibv_mr *back = must_reg(&a, dst, message, FULL_ACCESS);
	struct ibv_mr *there = must_reg(&b, src, message, FULL_ACCESS);
	struct ibv_sge sge = { (uintptr_t)dst, message, to->lkey };
	struct ibv_recv_wr *bad, wr = { .sg_list = &sge, .num_sge = 1 };
	struct pair p;
	uint64_t began;

	check(a.port.max_msg_sz == message, "messages have %u bytes",
	      a.port.max_msg_sz);
	pair_create(&p, &a, &b, &po);
	began = now_ms();
	send_huge(&p, IBV_WR_RDMA_WRITE, from, to);
	must_complete(p.a.scq, IBV_WR_RDMA_WRITE);
	must_be_same(src, dst, "a write", began);

	began = now_ms();
	send_huge(&p, IBV_WR_RDMA_READ, back, there);
	must_complete(p.a.scq, IBV_WR_RDMA_READ);
	must_be_same(src, dst, "a read", began);

	began = now_ms();
	check(!ibv_post_recv(p.b.qp, &wr, &bad), "receive");
	send_huge(&p, IBV_WR_SEND, from, to);
	must_complete(p.b.rcq, 0);
	must_complete(p.a.scq, IBV_WR_SEND);
	must_be_same(src, dst, "a send", began);
	one_more(&p, from, to);
	pair_destroy(&p);
	ibv_dereg_mr(from);
	ibv_dereg_mr(to);
	ibv_dereg_mr(back);
	ibv_dereg_mr(there);
	munmap(src, message);
	munmap(dst, message);
}

/* ---- QPs ---- */

static struct ibv_cq *shared;

static struct ibv_qp *make_qp(void)
{
	struct ibv_qp_init_attr init = {
		.send_cq = shared, .recv_cq = shared, .qp_type = IBV_QPT_RC,
		.cap = { 1, 1, 1, 1, 0 },
	};

	return ibv_create_qp(a.pd, &init);
}

static struct ibv_qp *with_shared_cq(struct side *side,
				     struct ibv_qp_init_attr *init)
{
	if (side == &a)
		init->send_cq = shared;
	return ibv_create_qp(side->pd, init);
}

static void use(struct pair *p, struct ibv_mr *mr, uint64_t at)
{
	post_number(p->a.qp, at, mr);
	must_complete(shared, at);
	check(((uint64_t *)mr->addr)[at % SLOTS] == at, "QP %llu",
	      (unsigned long long)at);
}

static void test_qps(void)
{
	struct pair_options po = {
		.send_wr = 1, .recv_wr = 1, .cqe = 1, .inline_data = 8,
		.timeout = 18, .create_qp = with_shared_cq,
	};
	int max = a.attr.max_qp, n = 0, used = 0, i;
	struct ibv_qp **qps = calloc(max, sizeof(*qps));
	struct pair *pairs = calloc(max / EACH + 1, sizeof(*pairs));
	uint64_t *dst = alloc_pages(SLOTS * sizeof(*dst));
	struct ibv_mr *mr = must_reg(&b, dst, SLOTS * sizeof(*dst), FULL_ACCESS);
	uint64_t began = now_ms();
	struct ibv_qp *qp;

	check(qps && pairs, "no memory");
	check(max >= 65536, "only %d QPs", max);
	shared = ibv_create_cq(a.ctx, 1024, NULL, NULL, 0);
	check(shared, "no CQ");
	while (n + used < max) {
		if ((n + used) % EACH == 0) {
			pair_create(&pairs[used], &a, &b, &po);
			use(&pairs[used], mr, used + 1);
			used++;
			continue;
		}
		qp = make_qp();
		if (!qp)
			break;
		qps[n++] = qp;
	}
	printf("%d QPs, %.0f s", n + used, (double)(now_ms() - began) / 1000);
	if (n + used < max)
		printf("; then %s", strerror(errno));
	putchar('\n');
	/* The device may keep one for itself: that of the connection manager. */
	check(n + used >= max - 2, "%d QPs of %d", n + used, max);
	check(!make_qp() && errno == ENOMEM, "one more: %s", strerror(errno));
	for (i = 0; i < used; i++)
		use(&pairs[i], mr, 100 + i);
	check(!ibv_destroy_qp(qps[--n]), "destroy");
	qps[n++] = make_qp();
	check(qps[n - 1], "no QP in place of one that is gone: %s",
	      strerror(errno));
	while (n)
		check(!ibv_destroy_qp(qps[--n]), "destroy");
	while (used)
		pair_destroy(&pairs[--used]);
	ibv_destroy_cq(shared);
	ibv_dereg_mr(mr);
	munmap(dst, SLOTS * sizeof(*dst));
	free(qps);
	free(pairs);
}

static const struct {
	const char *name;
	void (*run)(void);
} tests[] = {
	{ "cq", test_cq },
	{ "depth", test_depth },
	{ "inline", test_inline },
	{ "message", test_message },
	{ "qps", test_qps },
};

int main(int argc, char **argv)
{
	size_t t;

	if (argc < 2)
		die("usage: verbs_huge cq|depth|inline|message|qps [SEED]");
	seed = rng_seed(argc > 2 ? argv[2] : NULL);
	side_open_both(&a, &b);
	for (t = 0; t < ARRAY_LEN(tests); t++) {
		if (strcmp(tests[t].name, argv[1]))
			continue;
		tests[t].run();
		side_close(&a);
		side_close(&b);
		return 0;
	}
	die("no test '%s'", argv[1]);
}
