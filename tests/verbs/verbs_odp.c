/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * On-demand paging: each operation on memory that is not there, that goes while
 * it is used, or that nobody may use; and advice.
 *
 *   verbs_odp [--seed N] [--ms N] [NAME]...
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "verbs_test.h"

enum {
	PAGE = 4096,
	PAGES = 512,
	BUF = PAGES * PAGE,
	ACCESS = FULL_ACCESS | IBV_ACCESS_REMOTE_ATOMIC,
	PAGED = ACCESS | IBV_ACCESS_ON_DEMAND,
};

static struct side A, B;
static uint64_t seed;
static int race_ms = 700;

#define check(cond, fmt, ...)                                                  \
	do {                                                                   \
		if (!(cond))                                                   \
			die("line %d, seed %llu: " fmt, __LINE__,              \
			    (unsigned long long)seed, ##__VA_ARGS__);          \
	} while (0)

/*
 * Memory that keeps its bytes while its pages come and go: it is a file's. A
 * MADV_DONTNEED then takes the pages out of the page table, no more.
 */
static uint8_t *map_file(size_t len)
{
	int fd = memfd_create("verbs_odp", MFD_CLOEXEC);
	void *mem;

	check(fd >= 0 && !ftruncate(fd, len), "memfd: %s", strerror(errno));
	mem = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	check(mem != MAP_FAILED, "mmap: %s", strerror(errno));
	close(fd);
	return mem;
}

static uint8_t *map_own(size_t len)
{
	void *mem = mmap(NULL, len, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	check(mem != MAP_FAILED, "mmap: %s", strerror(errno));
	return mem;
}

static void send_away(void *mem, size_t len)
{
	check(!madvise(mem, len, MADV_DONTNEED), "madvise: %s", strerror(errno));
}

static bool all_there(void *mem, size_t len)
{
	unsigned char there[PAGES];
	size_t i, n = (len + PAGE - 1) / PAGE;

	check(!mincore(mem, len, there), "mincore: %s", strerror(errno));
	for (i = 0; i < n; i++)
		if (!(there[i] & 1))
			return false;
	return true;
}

static struct ibv_mr *paged(struct side *side, void *mem, size_t len, int access)
{
	struct ibv_mr *mr = ibv_reg_mr(side->pd, mem, len, access);

	check(mr, "a paged region was refused: %s", strerror(errno));
	return mr;
}

/* One side's memory, and what it is known by. */
struct area {
	uint8_t *mem;
	struct ibv_mr *mr;
};

struct job {
	enum ibv_wr_opcode opcode;
	size_t local, remote, len;
	int nsge;
	uint64_t compare, swap;
};

static void post_job(struct pair *p, const struct area *a, const struct area *b,
		     const struct job *job, uint64_t id)
{
	size_t half = job->nsge == 2 ? job->len / 2 : 0;
	struct ibv_sge sge[2] = {
		{ (uintptr_t)a->mem + job->local, job->len - half, a->mr->lkey },
		{ (uintptr_t)a->mem + job->local + job->len - half, half,
		  a->mr->lkey },
	};
	struct ibv_send_wr *bad, wr = {
		.wr_id = id,
		.sg_list = sge,
		.num_sge = half ? 2 : 1,
		.opcode = job->opcode,
		.send_flags = IBV_SEND_SIGNALED,
	};

	if (job->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
	    job->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = (uintptr_t)b->mem + job->remote;
		wr.wr.atomic.rkey = b->mr->rkey;
		wr.wr.atomic.compare_add = job->compare;
		wr.wr.atomic.swap = job->swap;
	} else {
		wr.wr.rdma.remote_addr = (uintptr_t)b->mem + job->remote;
		wr.wr.rdma.rkey = b->mr->rkey;
	}
	check(!ibv_post_send(p->a.qp, &wr, &bad), "a request was refused");
}

static void post_recv(struct pair *p, const struct area *b, size_t at, size_t len)
{
	struct ibv_sge sge = { (uintptr_t)b->mem + at, len, b->mr->lkey };
	struct ibv_recv_wr *bad, wr = { .sg_list = &sge, .num_sge = 1 };

	check(!ibv_post_recv(p->b.qp, &wr, &bad), "a receive was refused");
}

static void must_end(struct ibv_cq *cq, enum ibv_wc_status status,
		     const char *what)
{
	struct ibv_wc wc;

	check(wait_wc(cq, &wc, PATIENCE_MS), "%s: no completion", what);
	check(wc.status == status, "%s: %s instead of %s", what,
	      ibv_wc_status_str(wc.status), ibv_wc_status_str(status));
}

static void do_job(struct pair *p, const struct area *a, const struct area *b,
		   const struct job *job, enum ibv_wc_status status,
		   const char *what)
{
	post_job(p, a, b, job, 1);
	must_end(p->a.scq, status, what);
	/*
	 * On User-Mode Linux with several CPUs, a thread sees a page in place
	 * of another when it next enters the kernel.
	 */
	sched_yield();
}

static const struct pair_options options = {
	.access = ACCESS,
	.send_sge = 2,
	.timeout = 14,
	.retry_cnt = 7,
	.send_wr = 64,
	.recv_wr = 64,
};

/* ---- each operation, with nothing there on either side ---- */

static void compare(const uint8_t *got, const uint8_t *want, size_t len,
		    const char *what)
{
	size_t i;

	for (i = 0; i < len; i++)
		check(got[i] == want[i], "%s: byte %zu of %zu is %02x, not %02x",
		      what, i, len, got[i], want[i]);
}

/* Lengths on either side of what a frame, a run and a fault bring. */
static const size_t lengths[] = { 1, 8, 100, 255, 3000, PAGE, 9000, 70000,
				  BUF - PAGE };

static void write_and_read(struct pair *p, struct area *a, struct area *b,
			   const char *what)
{
	uint8_t *want = malloc(BUF);
	size_t i;

	for (i = 0; i < ARRAY_LEN(lengths); i++) {
		struct job job = {
			.opcode = IBV_WR_RDMA_WRITE, .len = lengths[i],
			.local = rng_below(&seed, PAGE),
			.remote = rng_below(&seed, PAGE),
			.nsge = 1 + rng_below(&seed, 2),
		};

		rng_fill(&seed, want, job.len);
		memcpy(a->mem + job.local, want, job.len);
		memset(b->mem, 0, BUF);
		send_away(a->mem, BUF);
		send_away(b->mem, BUF);
		do_job(p, a, b, &job, IBV_WC_SUCCESS, what);
		compare(b->mem + job.remote, want, job.len, what);
		compare(a->mem + job.local, want, job.len, what);

		memset(a->mem, 0, BUF);
		send_away(a->mem, BUF);
		send_away(b->mem, BUF);
		job.opcode = IBV_WR_RDMA_READ;
		do_job(p, a, b, &job, IBV_WC_SUCCESS, what);
		compare(a->mem + job.local, want, job.len, what);
	}
	free(want);
}

static void sends(struct pair *p, struct area *a, struct area *b,
		  const char *what)
{
	uint8_t *want = malloc(BUF);
	size_t i;

	for (i = 0; i < ARRAY_LEN(lengths); i++) {
		struct job job = {
			.opcode = IBV_WR_SEND, .len = lengths[i],
			.local = rng_below(&seed, PAGE),
		};
		size_t at = rng_below(&seed, PAGE);

		rng_fill(&seed, want, job.len);
		memcpy(a->mem + job.local, want, job.len);
		memset(b->mem, 0, BUF);
		send_away(a->mem, BUF);
		send_away(b->mem, BUF);
		post_recv(p, b, at, job.len);
		do_job(p, a, b, &job, IBV_WC_SUCCESS, what);
		must_end(p->b.rcq, IBV_WC_SUCCESS, what);
		compare(b->mem + at, want, job.len, what);
	}
	free(want);
}

static void atomics(struct pair *p, struct area *a, struct area *b,
		    const char *what)
{
	uint64_t *word = (uint64_t *)(b->mem + 5 * PAGE);
	uint64_t *was = (uint64_t *)(a->mem + 3 * PAGE), i;
	struct job job = {
		.local = 3 * PAGE, .remote = 5 * PAGE, .len = 8,
	};

	*word = 1000;
	for (i = 0; i < 20; i++) {
		send_away(a->mem, BUF);
		send_away(b->mem, BUF);
		job.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
		job.compare = 7;
		do_job(p, a, b, &job, IBV_WC_SUCCESS, what);
		check(*was == 1000 + 7 * i, "%s: add found %llu", what,
		      (unsigned long long)*was);
		check(*word == 1007 + 7 * i, "%s: add left %llu", what,
		      (unsigned long long)*word);
	}
	send_away(a->mem, BUF);
	send_away(b->mem, BUF);
	job.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
	job.compare = *word;
	job.swap = 42;
	send_away(b->mem, BUF);
	do_job(p, a, b, &job, IBV_WC_SUCCESS, what);
	check(*word == 42, "%s: swap left %llu", what, (unsigned long long)*word);
}

static void every_operation(struct area *a, struct area *b, const char *what)
{
	struct pair p;

	pair_create(&p, &A, &B, &options);
	write_and_read(&p, a, b, what);
	sends(&p, a, b, what);
	atomics(&p, a, b, what);
	pair_destroy(&p);
}

static void explicit_region(void)
{
	struct area a = { map_file(BUF), NULL }, b = { map_file(BUF), NULL };

	a.mr = paged(&A, a.mem, BUF, PAGED);
	b.mr = paged(&B, b.mem, BUF, PAGED);
	every_operation(&a, &b, "explicit");
	ibv_dereg_mr(a.mr);
	/* Of another kind on one side, and less of it. */
	a.mr = must_reg(&A, a.mem, BUF, ACCESS);
	ibv_dereg_mr(b.mr);
	b.mr = paged(&B, b.mem, BUF, PAGED | IBV_ACCESS_RELAXED_ORDERING);
	every_operation(&a, &b, "to a relaxed one");
	ibv_dereg_mr(a.mr);
	ibv_dereg_mr(b.mr);
	munmap(a.mem, BUF);
	munmap(b.mem, BUF);
}

static void implicit_region(void)
{
	struct area a = { NULL, NULL }, b = { NULL, NULL };

	a.mr = paged(&A, NULL, SIZE_MAX, PAGED);
	b.mr = paged(&B, NULL, SIZE_MAX, PAGED);
	/* Mapped after it was registered. */
	a.mem = map_file(BUF);
	b.mem = map_file(BUF);
	every_operation(&a, &b, "implicit");
	ibv_dereg_mr(a.mr);
	ibv_dereg_mr(b.mr);
	munmap(a.mem, BUF);
	munmap(b.mem, BUF);
}

/* Pages of its own, that were never touched, and read as zeros. */
static void untouched_memory(void)
{
	struct area a = { map_own(BUF), NULL }, b = { map_own(BUF), NULL };
	struct job job = { .opcode = IBV_WR_RDMA_READ, .len = BUF };
	struct pair p;
	size_t i;

	a.mr = paged(&A, a.mem, BUF, PAGED);
	b.mr = paged(&B, b.mem, BUF, PAGED);
	pair_create(&p, &A, &B, &options);
	memset(a.mem, 1, BUF);
	do_job(&p, &a, &b, &job, IBV_WC_SUCCESS, "read of untouched memory");
	for (i = 0; i < BUF; i++)
		check(!a.mem[i], "byte %zu is %02x", i, a.mem[i]);
	job.opcode = IBV_WR_RDMA_WRITE;
	memset(a.mem, 7, BUF);
	do_job(&p, &a, &b, &job, IBV_WC_SUCCESS, "write to zero pages");
	for (i = 0; i < BUF; i++)
		check(b.mem[i] == 7, "byte %zu is %02x", i, b.mem[i]);
	pair_destroy(&p);
	ibv_dereg_mr(a.mr);
	ibv_dereg_mr(b.mr);
	munmap(a.mem, BUF);
	munmap(b.mem, BUF);
}

/* ---- what nobody may use ---- */

enum hole { HOLE_LOCAL, HOLE_REMOTE };

static void must_fail(enum ibv_wr_opcode opcode, enum hole where, int prot,
		      enum ibv_wc_status status, const char *what)
{
	struct area a = { map_file(BUF), NULL }, b = { map_file(BUF), NULL };
	struct job job = { .opcode = opcode, .len = 8 };
	uint8_t *hole = where == HOLE_LOCAL ? a.mem : b.mem;
	struct pair p;

	if (opcode == IBV_WR_RDMA_WRITE || opcode == IBV_WR_RDMA_READ ||
	    opcode == IBV_WR_SEND)
		job.len = 20 * PAGE;
	a.mr = paged(&A, a.mem, BUF, PAGED);
	b.mr = paged(&B, b.mem, BUF, PAGED);
	pair_create(&p, &A, &B, &options);
	if (opcode == IBV_WR_SEND)
		post_recv(&p, &b, 0, job.len);
	/*
	 * The first pages are good, but where there is one alone. From here on
	 * nothing else is mapped, which could fill the hole.
	 */
	if (prot < 0)
		munmap(hole + (job.len > 8 ? 10 * PAGE : 0), BUF / 2);
	else
		check(!mprotect(hole, BUF, prot), "mprotect");
	do_job(&p, &a, &b, &job, status, what);
	pair_destroy(&p);
	ibv_dereg_mr(a.mr);
	ibv_dereg_mr(b.mr);
	munmap(a.mem, BUF);
	munmap(b.mem, BUF);
}

static void holes(void)
{
	must_fail(IBV_WR_RDMA_WRITE, HOLE_REMOTE, -1, IBV_WC_REM_ACCESS_ERR,
		  "write to a hole");
	must_fail(IBV_WR_RDMA_WRITE, HOLE_REMOTE, PROT_READ,
		  IBV_WC_REM_ACCESS_ERR, "write to what is only read");
	must_fail(IBV_WR_RDMA_WRITE, HOLE_LOCAL, -1, IBV_WC_LOC_PROT_ERR,
		  "write from a hole");
	must_fail(IBV_WR_RDMA_WRITE, HOLE_LOCAL, PROT_READ, IBV_WC_SUCCESS,
		  "write from what is only read");
	must_fail(IBV_WR_RDMA_READ, HOLE_REMOTE, -1, IBV_WC_REM_ACCESS_ERR,
		  "read of a hole");
	must_fail(IBV_WR_RDMA_READ, HOLE_REMOTE, PROT_NONE,
		  IBV_WC_REM_ACCESS_ERR, "read of what is nobody's");
	must_fail(IBV_WR_RDMA_READ, HOLE_LOCAL, -1, IBV_WC_LOC_PROT_ERR,
		  "read into a hole");
	must_fail(IBV_WR_SEND, HOLE_LOCAL, -1, IBV_WC_LOC_PROT_ERR,
		  "send from a hole");
	must_fail(IBV_WR_SEND, HOLE_REMOTE, -1, IBV_WC_REM_OP_ERR,
		  "send to a hole");
	must_fail(IBV_WR_ATOMIC_FETCH_AND_ADD, HOLE_REMOTE, -1,
		  IBV_WC_REM_ACCESS_ERR, "add in a hole");
	must_fail(IBV_WR_ATOMIC_FETCH_AND_ADD, HOLE_REMOTE, PROT_READ,
		  IBV_WC_REM_ACCESS_ERR, "add in what is only read");
	must_fail(IBV_WR_ATOMIC_CMP_AND_SWP, HOLE_LOCAL, -1,
		  IBV_WC_LOC_PROT_ERR, "swap's answer to a hole");
}

/* ---- memory that goes while it is used ---- */

/* What takes the memory of both sides away, again and again. */
struct thief {
	struct area *a, *b;
	pthread_t thread;
	atomic_bool stop;
	atomic_ulong taken;
	void (*take)(struct area *area, uint64_t *rng);
};

static size_t some_pages(uint64_t *rng, size_t *at)
{
	*at = rng_below(rng, PAGES) * PAGE;
	return (1 + rng_below(rng, PAGES - *at / PAGE)) * PAGE;
}

static void take_away(struct area *area, uint64_t *rng)
{
	size_t at, len = some_pages(rng, &at);

	madvise(area->mem + at, len, MADV_DONTNEED);
}

static void page_out(struct area *area, uint64_t *rng)
{
	size_t at, len = some_pages(rng, &at);

	madvise(area->mem + at, len, MADV_PAGEOUT);
}

static void protect(struct area *area, uint64_t *rng)
{
	size_t at, len = some_pages(rng, &at);

	/* Only for a moment: who asks meanwhile must wait, but not for long. */
	madvise(area->mem + at, len, MADV_COLD);
	mprotect(area->mem + at, len, PROT_READ | PROT_WRITE | PROT_EXEC);
	mprotect(area->mem + at, len, PROT_READ | PROT_WRITE);
}

static void fork_off(struct area *area, uint64_t *rng)
{
	size_t at = rng_below(rng, PAGES) * PAGE;
	pid_t child = fork();
	int status;

	check(child >= 0, "fork: %s", strerror(errno));
	if (!child) {
		uint8_t before[PAGE];

		/* What is written now is the parent's, and must not be seen here. */
		memcpy(before, area->mem + at, PAGE);
		usleep(rng_below(rng, 3000));
		_exit(memcmp(before, area->mem + at, PAGE) != 0);
	}
	check(waitpid(child, &status, 0) == child, "waitpid");
	check(!status, "a child saw its memory change");
}

static void *steal(void *arg)
{
	struct thief *t = arg;
	uint64_t rng = seed ^ 0x5bd1e995;

	while (!atomic_load(&t->stop)) {
		t->take(t->a, &rng);
		t->take(t->b, &rng);
		t->taken++;
	}
	return NULL;
}

/* One write and its reading back, each of random bytes at a random place. */
static void round_trip(struct pair *p, struct area *a, struct area *b,
		       uint8_t *want, const char *what)
{
	struct job job = {
		.opcode = IBV_WR_RDMA_WRITE,
		.len = 1 + rng_below(&seed, rng_below(&seed, 4) ? 20000 : BUF / 2),
		.nsge = 1 + rng_below(&seed, 2),
	};

	job.local = rng_below(&seed, BUF / 2 - job.len + 1);
	job.remote = rng_below(&seed, BUF - job.len + 1);
	rng_fill(&seed, want, job.len);
	memcpy(a->mem + job.local, want, job.len);
	do_job(p, a, b, &job, IBV_WC_SUCCESS, what);
	compare(b->mem + job.remote, want, job.len, what);
	job.opcode = IBV_WR_RDMA_READ;
	job.local += BUF / 2;
	do_job(p, a, b, &job, IBV_WC_SUCCESS, what);
	compare(a->mem + job.local, want, job.len, what);
}

static void sum_up(struct pair *p, struct area *a, struct area *b, uint64_t n,
		   const char *what)
{
	struct job job = {
		.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .len = 8,
		.local = 0, .remote = BUF, .compare = 1,
	};

	do_job(p, a, b, &job, IBV_WC_SUCCESS, what);
	check(*(uint64_t *)(b->mem + BUF) == n, "%s: sum %llu, not %llu", what,
	      (unsigned long long)*(uint64_t *)(b->mem + BUF),
	      (unsigned long long)n);
}

/*
 * User-Mode Linux with several CPUs lets one of them go on writing to a page, for
 * a moment, that another has just paged out: what is written then is lost, also
 * where nobody has to do with RDMA. So we and the thief share a CPU there.
 */
static void share_cpu(bool share)
{
	static cpu_set_t all;
	cpu_set_t one;

	if (!share) {
		check(!sched_setaffinity(0, sizeof(all), &all), "affinity");
		return;
	}
	check(!sched_getaffinity(0, sizeof(all), &all), "affinity");
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	check(!sched_setaffinity(0, sizeof(one), &one), "affinity");
}

static void race(void (*take)(struct area *area, uint64_t *rng), bool file,
		 const char *what)
{
	struct area a = { file ? map_file(BUF + PAGE) : map_own(BUF + PAGE), NULL };
	struct area b = { file ? map_file(BUF + PAGE) : map_own(BUF + PAGE), NULL };
	struct thief thief = { .a = &a, .b = &b, .take = take };
	uint64_t until = now_ms() + race_ms, n = 0;
	uint8_t *want = malloc(BUF);
	struct pair p;

	a.mr = paged(&A, a.mem, BUF + PAGE, PAGED);
	b.mr = paged(&B, b.mem, BUF + PAGE, PAGED);
	pair_create(&p, &A, &B, &options);
	if (take == page_out)
		share_cpu(true);
	check(!pthread_create(&thief.thread, NULL, steal, &thief), "no thread");
	/* On a slow machine the thief may come late. */
	while (now_ms() < until || !atomic_load(&thief.taken)) {
		round_trip(&p, &a, &b, want, what);
		sum_up(&p, &a, &b, ++n, what);
	}
	atomic_store(&thief.stop, true);
	pthread_join(thief.thread, NULL);
	if (take == page_out)
		share_cpu(false);
	printf("%s: %llu rounds, memory taken %lu times\n", what,
	       (unsigned long long)n, atomic_load(&thief.taken));
	pair_destroy(&p);
	ibv_dereg_mr(a.mr);
	ibv_dereg_mr(b.mr);
	munmap(a.mem, BUF + PAGE);
	munmap(b.mem, BUF + PAGE);
	free(want);
}

static void races_with_reclaim(void)
{
	race(take_away, true, "taken away");
	race(page_out, false, "paged out");
}

static void races_with_mprotect(void)
{
	race(protect, true, "protected");
}

static void races_with_fork(void)
{
	race(fork_off, false, "forked");
}

/* Memory goes for good, with much on its way: any end but a wrong one will do. */
static void races_with_munmap(void)
{
	int i, n, bad;

	for (i = 0; i < 20; i++) {
		struct area a = { map_file(BUF), NULL };
		struct area b = { map_file(BUF), NULL };
		struct job job = { .opcode = IBV_WR_RDMA_WRITE, .len = BUF };
		struct ibv_wc wc;
		struct pair p;

		a.mr = paged(&A, a.mem, BUF, PAGED);
		b.mr = paged(&B, b.mem, BUF, PAGED);
		if (i & 1)
			job.opcode = IBV_WR_RDMA_READ;
		pair_create(&p, &A, &B, &options);
		for (n = 0; n < 8; n++)
			post_job(&p, &a, &b, &job, n);
		usleep(rng_below(&seed, 2000));
		munmap(i & 2 ? a.mem : b.mem, BUF);
		for (n = bad = 0; n < 8; n++) {
			check(wait_wc(p.a.scq, &wc, PATIENCE_MS),
			      "munmap: no completion");
			bad += wc.status != IBV_WC_SUCCESS;
		}
		check(bad || now_ms(), "munmap");
		pair_destroy(&p);
		ibv_dereg_mr(a.mr);
		ibv_dereg_mr(b.mr);
		munmap(i & 2 ? b.mem : a.mem, BUF);
	}
}

/* A QP goes while its frames wait for pages, and so does its region. */
static void destroy_with_faults(void)
{
	int i, n;

	for (i = 0; i < 20; i++) {
		struct area a = { map_file(BUF), NULL };
		struct area b = { map_file(BUF), NULL };
		struct job job = { .opcode = IBV_WR_RDMA_WRITE, .len = BUF };
		struct pair p;

		a.mr = paged(&A, a.mem, BUF, PAGED);
		b.mr = paged(&B, b.mem, BUF, PAGED);
		pair_create(&p, &A, &B, &options);
		for (n = 0; n < 8; n++)
			post_job(&p, &a, &b, &job, n);
		usleep(rng_below(&seed, 500));
		if (i & 1)
			end_to_state(&p.b, IBV_QPS_RESET);
		if (i & 2)
			check(!ibv_dereg_mr(b.mr), "dereg");
		pair_destroy(&p);
		if (!(i & 2))
			check(!ibv_dereg_mr(b.mr), "dereg");
		check(!ibv_dereg_mr(a.mr), "dereg");
		munmap(a.mem, BUF);
		munmap(b.mem, BUF);
	}
}

/* ---- the rest ---- */

static void capabilities(void)
{
	struct ibv_device_attr_ex attr;
	uint32_t rc = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV |
		      IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ |
		      IBV_ODP_SUPPORT_ATOMIC | IBV_ODP_SUPPORT_SRQ_RECV;

	check(!ibv_query_device_ex(A.ctx, NULL, &attr), "query_device_ex");
	check(attr.odp_caps.general_caps & IBV_ODP_SUPPORT, "no paging");
	check(attr.odp_caps.general_caps & IBV_ODP_SUPPORT_IMPLICIT,
	      "no implicit regions");
	check((attr.odp_caps.per_transport_caps.rc_odp_caps & rc) == rc,
	      "RC: %x", attr.odp_caps.per_transport_caps.rc_odp_caps);
	check(attr.odp_caps.per_transport_caps.ud_odp_caps & IBV_ODP_SUPPORT_SEND,
	      "UD: %x", attr.odp_caps.per_transport_caps.ud_odp_caps);
}

static int advise(struct ibv_mr *mr, void *at, size_t len,
		  enum ibv_advise_mr_advice advice, uint32_t flags)
{
	struct ibv_sge sge = { (uintptr_t)at, len, mr->lkey };

	return ibv_advise_mr(A.pd, advice, flags, &sge, 1);
}

static void advice(void)
{
	uint8_t *mem = map_own(BUF), *file = map_file(BUF);
	struct ibv_mr *mr = paged(&A, mem, BUF, PAGED);
	struct ibv_mr *ro = paged(&A, file, BUF, IBV_ACCESS_ON_DEMAND);
	struct ibv_mr *pinned = must_reg(&A, file, BUF, ACCESS);
	struct ibv_mr wrong = { .lkey = mr->lkey ^ 0x5500 };

	check(!all_there(mem, BUF), "memory is there by itself");
	check(!advise(mr, mem, BUF, IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT, 0),
	      "prefetch without faults");
	check(!all_there(mem, BUF), "prefetch without faults faults");
	check(!advise(mr, mem + 100, 3 * PAGE, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
		      IBV_ADVISE_MR_FLAG_FLUSH), "prefetch");
	check(all_there(mem, 4 * PAGE), "prefetch brings nothing");
	check(!all_there(mem, 5 * PAGE), "prefetch brings too much");
	check(!advise(mr, mem, BUF, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, 0),
	      "prefetch");
	check(!advise(ro, file, BUF, IBV_ADVISE_MR_ADVICE_PREFETCH,
		      IBV_ADVISE_MR_FLAG_FLUSH), "prefetch for reading");
	check(advise(ro, file, BUF, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
		     IBV_ADVISE_MR_FLAG_FLUSH) == EPERM,
	      "prefetch for writing of what is only read");
	check(advise(mr, mem + PAGE, BUF, IBV_ADVISE_MR_ADVICE_PREFETCH,
		     IBV_ADVISE_MR_FLAG_FLUSH) == EFAULT, "out of bounds");
	check(advise(&wrong, mem, BUF, IBV_ADVISE_MR_ADVICE_PREFETCH,
		     IBV_ADVISE_MR_FLAG_FLUSH) == ENOENT, "no such key");
	check(advise(pinned, file, BUF, IBV_ADVISE_MR_ADVICE_PREFETCH,
		     IBV_ADVISE_MR_FLAG_FLUSH) == EINVAL, "not a paged one");
	munmap(mem + 8 * PAGE, PAGE);
	check(advise(mr, mem, BUF, IBV_ADVISE_MR_ADVICE_PREFETCH,
		     IBV_ADVISE_MR_FLAG_FLUSH) == EFAULT, "over a hole");
	ibv_dereg_mr(mr);
	ibv_dereg_mr(ro);
	ibv_dereg_mr(pinned);
	munmap(mem, BUF);
	munmap(file, BUF);
}

/* From pinned to paged and back, under one key. */
static void reregistration(void)
{
	struct area a = { map_file(BUF), NULL }, b = { map_file(BUF), NULL };
	struct pair p;

	a.mr = paged(&A, a.mem, BUF, PAGED);
	b.mr = must_reg(&B, b.mem, BUF, ACCESS);
	pair_create(&p, &A, &B, &options);
	write_and_read(&p, &a, &b, "pinned");
	check(!ibv_rereg_mr(b.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
			    PAGED), "rereg to paged");
	write_and_read(&p, &a, &b, "paged by rereg");
	check(!ibv_rereg_mr(b.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
			    ACCESS), "rereg to pinned");
	write_and_read(&p, &a, &b, "pinned by rereg");
	pair_destroy(&p);
	ibv_dereg_mr(a.mr);
	ibv_dereg_mr(b.mr);
	munmap(a.mem, BUF);
	munmap(b.mem, BUF);
}

struct adviser {
	struct ibv_mr *mr;
	uint8_t *mem;
	atomic_bool stop;
	pthread_t thread;
};

static void *advise_on(void *arg)
{
	struct adviser *who = arg;
	int err;

	while (!atomic_load(&who->stop)) {
		err = advise(who->mr, who->mem, PAGE,
			     IBV_ADVISE_MR_ADVICE_PREFETCH,
			     IBV_ADVISE_MR_FLAG_FLUSH);
		check(!err, "advice as it is registered anew: %s",
		      strerror(err));
	}
	return NULL;
}

/* Its key is right in every moment. */
static void reregistration_with_advice(void)
{
	struct adviser who = { .mem = map_own(BUF) };
	uint64_t until = now_ms() + race_ms, i = 0;

	who.mr = paged(&A, who.mem, BUF, PAGED);
	check(!pthread_create(&who.thread, NULL, advise_on, &who), "no thread");
	while (now_ms() < until)
		check(!ibv_rereg_mr(who.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL,
				    NULL, 0, i++ & 1 ? PAGED :
				    PAGED | IBV_ACCESS_RELAXED_ORDERING),
		      "rereg: %s", strerror(errno));
	atomic_store(&who.stop, true);
	pthread_join(who.thread, NULL);
	ibv_dereg_mr(who.mr);
	munmap(who.mem, BUF);
}

static const struct test {
	const char *name;
	void (*run)(void);
} tests[] = {
#define TEST(name) { #name, name }
	TEST(capabilities),
	TEST(explicit_region),
	TEST(implicit_region),
	TEST(untouched_memory),
	TEST(holes),
	TEST(advice),
	TEST(reregistration),
	TEST(reregistration_with_advice),
	TEST(races_with_reclaim),
	TEST(races_with_mprotect),
	TEST(races_with_fork),
	TEST(races_with_munmap),
	TEST(destroy_with_faults),
};

static bool wanted(const char *name, char **names)
{
	bool all = !*names;

	for (; *names; names++)
		all |= !strcmp(*names, name);
	return all;
}

int main(int argc, char **argv)
{
	size_t i, n = 0;

	seed = rng_seed(NULL);
	for (argv++; argc > 2 && !strncmp(*argv, "--", 2); argv += 2, argc -= 2) {
		if (!strcmp(*argv, "--seed"))
			seed = rng_seed(argv[1]);
		else if (!strcmp(*argv, "--ms"))
			race_ms = atoi(argv[1]);
		else
			die("there is no option %s", *argv);
	}
	side_open_both(&A, &B);
	for (i = 0; i < ARRAY_LEN(tests); i++) {
		uint64_t began = now_ms();

		if (!wanted(tests[i].name, argv))
			continue;
		tests[i].run();
		printf("%s: %llu ms\n", tests[i].name,
		       (unsigned long long)(now_ms() - began));
		n++;
	}
	side_close(&A);
	side_close(&B);
	printf("%zu tests\n", n);
	return !n;
}
