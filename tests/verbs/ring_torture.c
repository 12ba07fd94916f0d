/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A hostile process: it scribbles over everything that it shares with the
 * kernel while its own QPs are busy, and takes their memory away.
 *
 * Each life is a child of its own, for what it does may well crash it, and it
 * may be killed at any moment. All it can reach is its own: canaries between
 * its memory regions must survive, as must, which the caller looks at, the
 * kernel and everybody else.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "verbs_test.h"

enum {
	MAX_RINGS = 64,
	MAX_PAIRS = 4,
	SCRIBBLERS = 2,
	PAGE = 4096,
	BUF_LEN = 64 * PAGE,
	CANARY = 0xc7,
	HDR_LEN = 128,		/* of a ring, before its entries */
	WQE_WORDS = 16,
	BROKE_OUT = 42,		/* exit status of a life */
};

static struct {
	uint64_t seed;
	unsigned int lives;
} opt = { .lives = 100 };

/* ---- what is scribbled over ---- */

struct ring {
	volatile uint32_t *words;
	size_t len;
};

static struct ring rings[MAX_RINGS];
static int nrings;
/* What the QPs may use: end e of pair i has number 2 * i + e. */
static struct {
	uint8_t *buf;
	uint32_t lkey, rkey;
} regions[2 * MAX_PAIRS];
static int nregions;

/* The rings are the shared mappings of the device's file. */
static void find_rings(void)
{
	char line[512], perms[8], path[256];
	unsigned long from, to;
	FILE *maps = fopen("/proc/self/maps", "r");

	nrings = 0;
	while (maps && fgets(line, sizeof(line), maps)) {
		path[0] = 0;
		if (sscanf(line, "%lx-%lx %7s %*s %*s %*s %255s", &from, &to,
			   perms, path) < 4 || !strstr(path, "uverbs") ||
		    nrings == MAX_RINGS)
			continue;
		rings[nrings++] = (struct ring){ (void *)from, to - from };
	}
	if (maps)
		fclose(maps);
}

/* A WQE that looks right in most respects. */
static void forge(uint64_t *rng, volatile uint32_t *e)
{
	int own = rng_below(rng, nregions);
	uint64_t addr = (uintptr_t)regions[own].buf + rng_below(rng, BUF_LEN);

	e[2] = rng_below(rng, 9) |
	       rng_below(rng, rng_below(rng, 4) ? 5 : 256) << 8 |
	       rng_below(rng, 128) << 16;
	e[4] = addr;
	e[5] = addr >> 32;
	e[6] = regions[rng_below(rng, nregions)].rkey;
	e[7] = rng_below(rng, 2) ? rng_below(rng, 512) : rng_next(rng);
	e[16] = addr;
	e[17] = addr >> 32;
	e[18] = rng_below(rng, 4) ? rng_below(rng, BUF_LEN) : rng_next(rng);
	e[19] = regions[own].lkey;
}

static void scribble(uint64_t *rng)
{
	struct ring *r = &rings[rng_below(rng, nrings)];
	size_t words = r->len / 4, at = rng_below(rng, words);
	size_t slots = (r->len - HDR_LEN) / 64 / 2;
	size_t a = HDR_LEN / 4 + WQE_WORDS * rng_below(rng, slots);
	size_t b = HDR_LEN / 4 + WQE_WORDS * rng_below(rng, slots);
	int i;

	switch (rng_below(rng, 8)) {
	case 0:
		r->words[at] = rng_next(rng);
		break;
	case 1:
		r->words[at] ^= 1u << rng_below(rng, 32);
		break;
	case 2:		/* the producer's index, the consumer's, the doorbell */
		r->words[rng_below(rng, 2) * 16 + rng_below(rng, 2)] =
			rng_next(rng) >> rng_below(rng, 32);
		break;
	case 3:
		r->words[0] += rng_below(rng, 5) - 2;
		break;
	case 4:
		for (i = 0; i < WQE_WORDS; i++)
			r->words[a + i] = r->words[b + i];
		break;
	case 5:
	case 6:
		forge(rng, &r->words[a]);
		break;
	default:
		for (i = 0; i < WQE_WORDS; i++)
			r->words[a + i] = rng_below(rng, 2) ? 0 : ~0u;
	}
}

static void *scribbler(void *arg)
{
	uint64_t rng = (uint64_t)arg;

	for (;;) {
		int n = rng_below(&rng, 64);

		while (n-- && nrings)
			scribble(&rng);
		usleep(rng_below(&rng, 200));
	}
	return NULL;
}

/* ---- memory that comes and goes ---- */

/* Anonymous, of a file, or huge where there is any; canaries around it. */
static uint8_t *make_buffer(uint64_t *rng)
{
	size_t len = BUF_LEN + 2 * PAGE;
	uint8_t *p;
	int fd = -1;

	if (rng_below(rng, 3) == 0) {
		fd = memfd_create("torture", 0);
		if (fd < 0 || ftruncate(fd, len))
			die("memfd: %s", strerror(errno));
	}
	p = mmap(NULL, len, PROT_READ | PROT_WRITE,
		 fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		die("mmap: %s", strerror(errno));
	if (fd >= 0)
		close(fd);
	if (rng_below(rng, 4) == 0)
		madvise(p, len, MADV_HUGEPAGE);
	memset(p, CANARY, PAGE);
	memset(p + PAGE + BUF_LEN, CANARY, PAGE);
	return p + PAGE;
}

static void check_canaries(void)
{
	for (int i = 0; i < nregions; i++)
		for (int j = 0; j < PAGE; j++)
			if (regions[i].buf[j - PAGE] != CANARY ||
			    regions[i].buf[BUF_LEN + j] != CANARY)
				_exit(BROKE_OUT);
}

/* What an application may do to its memory while the device uses it. */
static void disturb(uint64_t *rng)
{
	uint8_t *p = regions[rng_below(rng, nregions)].buf;
	size_t at = rng_below(rng, BUF_LEN / PAGE) * PAGE;
	size_t len = (1 + rng_below(rng, 4)) * PAGE;
	pid_t child;

	if (at + len > BUF_LEN)
		len = BUF_LEN - at;
	switch (rng_below(rng, 6)) {
	case 0:
		madvise(p + at, len, MADV_DONTNEED);
		break;
	case 1:
		madvise(p + at, len, MADV_REMOVE);
		break;
	case 2:		/* another page is there now */
		mmap(p + at, len, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		break;
	case 3:
		mprotect(p + at, len, rng_below(rng, 2) ? PROT_READ :
			 PROT_READ | PROT_WRITE);
		break;
	case 4:		/* a child that shares the rings, if it may, and copies pages */
		child = fork();
		if (child == 0) {
			if (nrings && rng_below(rng, 2))
				for (int i = 0; i < 50; i++)
					scribble(rng);
			_exit(0);
		}
		if (child > 0)
			waitpid(child, NULL, 0);
		break;
	default:	/* the rings themselves */
		if (nrings && rng_below(rng, 8) == 0) {
			struct ring *r = &rings[rng_below(rng, nrings)];

			mprotect((void *)r->words, r->len, PROT_READ | PROT_WRITE);
			madvise((void *)r->words, r->len, MADV_DONTNEED);
			mremap((void *)r->words, r->len, r->len / 2, 0);
		}
	}
}

/* ---- one life ---- */

static void post(uint64_t *rng, struct end *end, int own, int peer)
{
	static const enum ibv_wr_opcode opcodes[] = {
		IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_SEND,
		IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_READ,
		IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD,
	};
	uint32_t from = rng_below(rng, BUF_LEN - 64) & ~7u;
	struct ibv_sge sge = {
		.addr = (uintptr_t)regions[own].buf + from,
		.length = rng_below(rng, BUF_LEN - from),
		.lkey = regions[own].lkey,
	};
	struct ibv_recv_wr recv = { .sg_list = &sge, .num_sge = 1 }, *bad_recv;
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1,
		.opcode = opcodes[rng_below(rng, ARRAY_LEN(opcodes))],
		.send_flags = IBV_SEND_SIGNALED,
	}, *bad;
	uint64_t remote = (uintptr_t)regions[peer].buf;

	ibv_post_recv(end->qp, &recv, &bad_recv);
	if (wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
	    wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		sge.length = 8;
		wr.wr.atomic.remote_addr = remote;
		wr.wr.atomic.rkey = regions[peer].rkey;
	} else {
		wr.wr.rdma.remote_addr = remote;
		wr.wr.rdma.rkey = regions[peer].rkey;
	}
	ibv_post_send(end->qp, &wr, &bad);
}

/* False: the QP has failed. */
static bool reap(struct end *end)
{
	struct ibv_wc wc[16];
	bool ok = true;
	int i, n;

	n = ibv_poll_cq(end->scq, ARRAY_LEN(wc), wc);
	for (i = 0; i < n; i++)
		ok &= wc[i].status == IBV_WC_SUCCESS;
	n = ibv_poll_cq(end->rcq, ARRAY_LEN(wc), wc);
	for (i = 0; i < n; i++)
		ok &= wc[i].status == IBV_WC_SUCCESS;
	ibv_req_notify_cq(end->scq, 0);
	return ok;
}

/* A QP that failed can do no more harm: begin again. */
static void revive(struct pair *pair, const struct pair_options *options)
{
	end_to_state(&pair->a, IBV_QPS_RESET);
	end_to_state(&pair->b, IBV_QPS_RESET);
	end_to_init(&pair->a, options);
	end_to_init(&pair->b, options);
	end_to_rtr(&pair->a, &pair->b, options);
	end_to_rtr(&pair->b, &pair->a, options);
	end_to_rts(&pair->a, options);
	end_to_rts(&pair->b, options);
}

static void make_options(uint64_t *rng, struct pair_options *options)
{
	*options = (struct pair_options){
		.send_wr = 1 + rng_below(rng, rng_below(rng, 2) ? 4 : 200),
		.recv_wr = 1 + rng_below(rng, rng_below(rng, 2) ? 4 : 200),
		.send_sge = 1 + rng_below(rng, 4),
		.inline_data = rng_below(rng, 256),
		.retry_cnt = 1, .timeout = 10, .rnr_retry = rng_below(rng, 8),
		.min_rnr_timer = 1, .access = FULL_ACCESS | IBV_ACCESS_REMOTE_ATOMIC,
	};
}

static void make_pairs(uint64_t *rng, struct side sides[2],
		       const struct pair_options *options,
		       struct pair *pairs, int n)
{
	for (int i = 0; i < n; i++) {
		pair_create(&pairs[i], &sides[0], &sides[1], options);
		for (int e = 0; e < 2; e++) {
			uint8_t *buf = make_buffer(rng);
			struct ibv_mr *mr;

			mr = must_reg(&sides[e], buf, BUF_LEN,
				      FULL_ACCESS | IBV_ACCESS_REMOTE_ATOMIC |
				      (rng_below(rng, 2) ?
				       IBV_ACCESS_RELAXED_ORDERING : 0));
			regions[nregions].buf = buf;
			regions[nregions].lkey = mr->lkey;
			regions[nregions++].rkey = mr->rkey;
		}
	}
}

/* Never returns: killed, crashed, or gone of its own will. */
static void live(uint64_t seed)
{
	struct rlimit no_core = { 0, 0 };
	struct pair_options options;
	struct pair pairs[MAX_PAIRS];
	uint64_t rng = seed, end;
	struct side sides[2];
	int n = 1 + rng_below(&rng, MAX_PAIRS);

	setrlimit(RLIMIT_CORE, &no_core);
	alarm(10);	/* whatever the provider makes of its torn rings */
	side_open_both(&sides[0], &sides[1]);
	make_options(&rng, &options);
	make_pairs(&rng, sides, &options, pairs, n);
	find_rings();
	if (!nrings)
		_exit(1);
	for (int i = 0; i < SCRIBBLERS; i++) {
		pthread_t thread;

		pthread_create(&thread, NULL, scribbler,
			       (void *)rng_next(&rng));
	}
	end = now_ms() + rng_below(&rng, 300);
	while (now_ms() < end) {
		int i = rng_below(&rng, n);
		bool ok;

		post(&rng, &pairs[i].a, 2 * i, 2 * i + 1);
		post(&rng, &pairs[i].b, 2 * i + 1, 2 * i);
		ok = reap(&pairs[i].a);
		if (!reap(&pairs[i].b) || !ok || rng_below(&rng, 200) == 0)
			revive(&pairs[i], &options);
		if (rng_below(&rng, 20) == 0)
			disturb(&rng);
	}
	check_canaries();
	if (rng_below(&rng, 2))
		for (int i = 0; i < n; i++)
			pair_destroy(&pairs[i]);
	_exit(0);
}

/* ---- all lives ---- */

static struct {
	unsigned int left, crashed, killed;
} count;

static void one_life(uint64_t *rng, unsigned int life)
{
	uint64_t seed = rng_next(rng) | 1;
	bool murder = rng_below(rng, 3) == 0;
	unsigned int after = rng_below(rng, 350);
	int status;
	pid_t child = fork();

	if (child < 0)
		die("fork: %s", strerror(errno));
	if (child == 0)
		live(seed);
	if (murder) {
		usleep(1000 * after);
		kill(child, SIGKILL);
	}
	if (waitpid(child, &status, 0) != child)
		die("waitpid: %s", strerror(errno));
	if (WIFEXITED(status) && WEXITSTATUS(status) == BROKE_OUT)
		die("life %u: bytes outside of its memory regions have changed",
		    life);
	if (WIFEXITED(status) && WEXITSTATUS(status))
		die("life %u: could not begin", life);
	if (WIFEXITED(status))
		count.left++;
	else if (WTERMSIG(status) == SIGKILL)
		count.killed++;
	else
		count.crashed++;
}

int main(int argc, char **argv)
{
	uint64_t rng;

	if (argc > 3 || (argc > 1 && !atoi(argv[1]))) {
		fputs("usage: ring_torture [LIVES] [SEED]\n", stderr);
		return 2;
	}
	if (argc > 1)
		opt.lives = atoi(argv[1]);
	opt.seed = rng_seed(argc > 2 ? argv[2] : NULL);
	printf("ring_torture: seed %llu\n", (unsigned long long)opt.seed);
	fflush(stdout);
	rng = opt.seed;
	for (unsigned int i = 0; i < opt.lives; i++)
		one_life(&rng, i);
	printf("ring_torture: %u lives: %u to their end, %u crashed, %u killed\n",
	       opt.lives, count.left, count.crashed, count.killed);
	return 0;
}
