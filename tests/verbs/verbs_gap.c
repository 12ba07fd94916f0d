/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * How long does an application wait around an event? A stream of writes, each
 * checked byte by byte, runs between the two devices while commands are run at
 * random instants; the longest time without a completion is taken around each,
 * and around a command that does no harm, for comparison: what the machine
 * itself makes one wait.
 *
 *   verbs_gap --cut CMD --mend CMD [--control CMD] [--count N] [--seed S]
 *             [--limit-us L]
 *
 * Checked: no error, every byte, and that the median gap is at most L more than
 * the harmless command's 99th percentile: on a machine that others use, too,
 * that alone is many times what a cut costs.
 */
#include <getopt.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verbs_test.h"

enum {
	SLOTS = 8,		/* writes in flight */
	LEN = 32768,
	MAX_COUNT = 1000,
	AROUND_MS = 100,	/* looked at from the command on */
	SETTLE_MS = 1300,	/* a path is forgiven after a second */
};

static struct {
	const char *cut, *mend, *control;
	int count;
	uint64_t seed;
	uint64_t limit_us;
} opt = { .control = "true", .count = 8 };

static _Atomic uint64_t longest;	/* ns; since it was set to 0 */
static atomic_bool done;

static struct {
	struct pair pair;
	struct ibv_mr *src_mr, *dst_mr;
	uint8_t *src, *dst;
	uint64_t seq[SLOTS];
	uint64_t writes;
} load;

/* ---- the load ---- */

static void fill(int slot, uint64_t seq)
{
	uint64_t *p = (uint64_t *)(load.src + slot * LEN);
	size_t i;

	for (i = 0; i < LEN / 8; i++)
		p[i] = seq << 16 | i;
	load.seq[slot] = seq;
}

static void post(int slot)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)load.src + slot * LEN,
		.length = LEN,
		.lkey = load.src_mr->lkey,
	};
	struct ibv_send_wr wr = {
		.wr_id = slot,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma.remote_addr = (uintptr_t)load.dst + slot * LEN,
		.wr.rdma.rkey = load.dst_mr->rkey,
	}, *bad;

	fill(slot, ++load.writes);
	if (ibv_post_send(load.pair.a.qp, &wr, &bad))
		die("post_send");
}

static void check(int slot)
{
	if (memcmp(load.src + slot * LEN, load.dst + slot * LEN, LEN))
		die("write %llu is not what was written",
		    (unsigned long long)load.seq[slot]);
}

static void note(uint64_t gap)
{
	uint64_t was = atomic_load(&longest);

	while (gap > was && !atomic_compare_exchange_weak(&longest, &was, gap))
		;
}

/*
 * The load has a CPU for itself, where there are two: else the longest gap is
 * the time that the commands' own processes take.
 */
static void go_to(int cpu, int policy)
{
	struct sched_param param = { .sched_priority = policy == SCHED_FIFO };
	cpu_set_t set;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		return;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) ||
	    sched_setscheduler(0, policy, &param))
		die("a CPU for itself");
}

static void *run_load(void *arg)
{
	uint64_t last, now;
	struct ibv_wc wc;
	int slot, n;

	go_to(1, SCHED_FIFO);
	last = now_ns();
	for (slot = 0; slot < SLOTS; slot++)
		post(slot);
	while (!atomic_load(&done)) {
		n = ibv_poll_cq(load.pair.a.scq, 1, &wc);
		now = now_ns();
		if (n < 0)
			die("poll_cq");
		/* A gap that is not over yet is one, too. */
		note(now - last);
		if (!n) {
			if (now - last > PATIENCE_MS * 1000000ULL)
				die("no completion");
			continue;
		}
		if (wc.status)
			die("a write ended with %s", ibv_wc_status_str(wc.status));
		last = now;
		check(wc.wr_id);
		post(wc.wr_id);
	}
	return NULL;
}

/* ---- the events ---- */

static uint64_t gap_around(const char *cmd)
{
	atomic_store(&longest, 0);
	if (system(cmd))
		die("%s: failed", cmd);
	usleep(AROUND_MS * 1000);
	return atomic_load(&longest) / 1000;
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Sorts and prints, all in us. */
static void print(const char *what, uint64_t *gaps)
{
	int n = opt.count;

	qsort(gaps, n, sizeof(*gaps), by_size);
	printf("gap %-8s %4d times: p50 %6llu us  p99 %6llu us  max %6llu us\n",
	       what, n, (unsigned long long)gaps[n / 2],
	       (unsigned long long)gaps[n * 99 / 100],
	       (unsigned long long)gaps[n - 1]);
}

static int measure(void)
{
	static uint64_t control[MAX_COUNT], cut[MAX_COUNT];
	uint64_t allowed;
	int i;

	for (i = 0; i < opt.count; i++) {
		usleep(1000 * (SETTLE_MS + rng_below(&opt.seed, 50)));
		control[i] = gap_around(opt.control);
		usleep(rng_below(&opt.seed, 20000));
		cut[i] = gap_around(opt.cut);
		if (system(opt.mend))
			die("%s: failed", opt.mend);
	}
	print("control", control);
	print("cut", cut);
	allowed = opt.limit_us + control[opt.count * 99 / 100];
	if (!opt.limit_us || cut[opt.count / 2] <= allowed)
		return 0;
	printf("FAIL: the median is above %llu us\n", (unsigned long long)allowed);
	return 1;
}

static void parse(int argc, char **argv)
{
	static const struct option options[] = {
		{ "cut", required_argument, NULL, 'c' },
		{ "mend", required_argument, NULL, 'm' },
		{ "control", required_argument, NULL, 'o' },
		{ "count", required_argument, NULL, 'n' },
		{ "seed", required_argument, NULL, 's' },
		{ "limit-us", required_argument, NULL, 'l' },
		{ }
	};
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 'c': opt.cut = optarg; break;
		case 'm': opt.mend = optarg; break;
		case 'o': opt.control = optarg; break;
		case 'n': opt.count = atoi(optarg); break;
		case 's': opt.seed = rng_seed(optarg); break;
		case 'l': opt.limit_us = strtoull(optarg, NULL, 0); break;
		default: exit(2);
		}
	}
	if (!opt.cut || !opt.mend || opt.count < 1 || opt.count > MAX_COUNT)
		die("say --cut, --mend, and a --count of 1 to %d", MAX_COUNT);
	if (!opt.seed)
		opt.seed = rng_seed("1");
}

int main(int argc, char **argv)
{
	struct pair_options po = { .send_wr = SLOTS, .cqe = 2 * SLOTS };
	struct side a, b;
	pthread_t thread;
	int status;

	parse(argc, argv);
	side_open_both(&a, &b);
	load.src = alloc_pages(SLOTS * LEN);
	load.dst = alloc_pages(SLOTS * LEN);
	load.src_mr = must_reg(&a, load.src, SLOTS * LEN, FULL_ACCESS);
	load.dst_mr = must_reg(&b, load.dst, SLOTS * LEN, FULL_ACCESS);
	pair_create(&load.pair, &a, &b, &po);
	go_to(0, SCHED_OTHER);
	if (pthread_create(&thread, NULL, run_load, NULL))
		die("pthread_create");
	status = measure();
	atomic_store(&done, true);
	pthread_join(thread, NULL);
	printf("verbs_gap: %llu writes, every byte right\n",
	       (unsigned long long)load.writes);
	pair_destroy(&load.pair);
	ibv_dereg_mr(load.src_mr);
	ibv_dereg_mr(load.dst_mr);
	side_close(&a);
	side_close(&b);
	return status;
}
