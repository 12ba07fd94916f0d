/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * How long does an application wait around an event? A stream of writes, each
 * checked byte by byte, runs between the two devices while commands are run at
 * random instants; the longest time without a completion is taken around each,
 * and around a command that does no harm, for comparison: what the machine
 * itself makes one wait.
 *
 *   verbs_gap --tool PROGRAM... --cut LINES --mend LINES --control LINES
 *             [--count N] [--seed S] [--limit-us L] [--trace FILE]
 *
 * Starting a process stops a User-Mode Linux for many times what a cut costs, so
 * the PROGRAMs run all the time and read lines (ip -batch -, tc -batch -). LINES
 * are separated by ";", and each begins with whose it is: "0 link set x down" is
 * for the first PROGRAM.
 *
 * FILE, the kernel's tracing_on, has 1 written to it a little before each cut, and 0
 * after what was looked at, for what only the kernel sees.
 *
 * Checked: no error, every byte, and that the gap is at most L more than what the
 * harmless line makes one wait: of many, the 99th percentile against the worst of
 * five times as many harmless lines; of a few, the shortest against their 99th
 * percentile. A guest's CPUs are taken away for 4 ms and more, cut or no cut (a
 * program that only reads the clock sees it every 200 ms), so that one percentile
 * against the other would be a toss-up, and the median of a few may be one of those.
 */
#include <getopt.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verbs_test.h"

enum {
	SLOTS = 8,		/* writes in flight */
	LEN = 32768,
	MAX_COUNT = 1000,
	/*
	 * Looked at from the command on. No longer than the longest gap that is
	 * allowed needs: more would find more of the machine's own. One that
	 * lasts to the end is longer than anybody knows.
	 */
	AROUND_MS = 60,
	CONTROLS = 5,		/* harmless lines for each cut */
	SETTLE_MS = 1300,	/* a path is forgiven after a second */
	TRACE_BEFORE_MS = 10,	/* what is under way at a cut */
	MANY = 50,		/* gaps have a 99th percentile */
	MAX_TOOLS = 4,
};

static struct {
	const char *cut, *mend, *control;
	int count;
	uint64_t seed;
	uint64_t limit_us;
	FILE *trace;
	FILE *tools[MAX_TOOLS];
	int num_tools;
} opt = { .count = 8 };

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

static void start_tool(const char *program)
{
	if (opt.num_tools == MAX_TOOLS)
		die("at most %d tools", MAX_TOOLS);
	opt.tools[opt.num_tools] = popen(program, "we");
	if (!opt.tools[opt.num_tools++])
		die("%s", program);
}

static void end_tools(void)
{
	int i;

	for (i = 0; i < opt.num_tools; i++) {
		if (pclose(opt.tools[i]))
			die("tool %d failed", i);
	}
}

static void tell(const char *lines)
{
	const char *line, *end;
	int n;

	for (line = lines; *line; line = *end ? end + 1 : end) {
		while (*line == ' ')
			line++;
		end = strchrnul(line, ';');
		n = *line - '0';
		if (n < 0 || n >= opt.num_tools || line[1] != ' ')
			die("'%s' begins with no tool's number", line);
		/* One whose last line was wrong has ended. */
		if (fprintf(opt.tools[n], "%.*s\n", (int)(end - line) - 2,
			    line + 2) < 0 || fflush(opt.tools[n]))
			die("tool %d takes no more", n);
	}
}

static uint64_t gap_around(const char *lines)
{
	atomic_store(&longest, 0);
	tell(lines);
	usleep(AROUND_MS * 1000);
	return atomic_load(&longest) / 1000;
}

static void trace(bool on)
{
	if (opt.trace && (fprintf(opt.trace, "%d\n", on) < 0 || fflush(opt.trace)))
		die("it cannot be traced");
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Index of the 99th percentile of @n, by nearest rank. */
static int p99(int n)
{
	return (n * 99 + 99) / 100 - 1;
}

/* Sorts and prints, all in us. */
static void print(const char *what, uint64_t *gaps, int n)
{
	qsort(gaps, n, sizeof(*gaps), by_size);
	printf("gap %-8s %4d times: p50 %6llu us  p90 %6llu us  p99 %6llu us  max %6llu us\n",
	       what, n, (unsigned long long)gaps[n / 2],
	       (unsigned long long)gaps[n * 9 / 10],
	       (unsigned long long)gaps[p99(n)],
	       (unsigned long long)gaps[n - 1]);
}

static int judge(const uint64_t *control, const uint64_t *cut)
{
	bool many = opt.count >= MANY;
	int controls = CONTROLS * opt.count;
	uint64_t is = cut[many ? p99(opt.count) : 0];
	uint64_t allowed = opt.limit_us +
			   control[many ? controls - 1 : p99(controls)];

	allowed = allowed < AROUND_MS * 900 ? allowed : AROUND_MS * 900;
	if (!opt.limit_us || is <= allowed)
		return 0;
	printf("FAIL: the %s is above %llu us\n",
	       many ? "99th percentile" : "shortest",
	       (unsigned long long)allowed);
	return 1;
}

static int measure(void)
{
	static uint64_t control[CONTROLS * MAX_COUNT], cut[MAX_COUNT];
	int i, k;

	for (i = 0; i < opt.count; i++) {
		usleep(1000 * (SETTLE_MS + rng_below(&opt.seed, 50)));
		for (k = 0; k < CONTROLS; k++)
			control[CONTROLS * i + k] = gap_around(opt.control);
		usleep(rng_below(&opt.seed, 20000));
		trace(true);
		if (opt.trace)
			usleep(TRACE_BEFORE_MS * 1000);
		cut[i] = gap_around(opt.cut);
		trace(false);
		tell(opt.mend);
	}
	print("control", control, CONTROLS * opt.count);
	print("cut", cut, opt.count);
	return judge(control, cut);
}

static void parse(int argc, char **argv)
{
	static const struct option options[] = {
		{ "tool", required_argument, NULL, 't' },
		{ "cut", required_argument, NULL, 'c' },
		{ "mend", required_argument, NULL, 'm' },
		{ "control", required_argument, NULL, 'o' },
		{ "count", required_argument, NULL, 'n' },
		{ "seed", required_argument, NULL, 's' },
		{ "limit-us", required_argument, NULL, 'l' },
		{ "trace", required_argument, NULL, 'r' },
		{ }
	};
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 't': start_tool(optarg); break;
		case 'c': opt.cut = optarg; break;
		case 'm': opt.mend = optarg; break;
		case 'o': opt.control = optarg; break;
		case 'n': opt.count = atoi(optarg); break;
		case 's': opt.seed = rng_seed(optarg); break;
		case 'r':
			opt.trace = fopen(optarg, "we");
			if (!opt.trace)
				die("%s", optarg);
			break;
		case 'l': opt.limit_us = strtoull(optarg, NULL, 0); break;
		default: exit(2);
		}
	}
	if (!opt.cut || !opt.mend || !opt.control || opt.count < 1 ||
	    opt.count > MAX_COUNT)
		die("say --cut, --mend, --control, and a --count of 1 to %d",
		    MAX_COUNT);
	if (!opt.seed)
		opt.seed = rng_seed("1");
}

int main(int argc, char **argv)
{
	struct pair_options po = { .send_wr = SLOTS, .cqe = 2 * SLOTS };
	struct side a, b;
	pthread_t thread;
	int status;

	signal(SIGPIPE, SIG_IGN);
	go_to(0, SCHED_OTHER);
	parse(argc, argv);
	side_open_both(&a, &b);
	load.src = alloc_pages(SLOTS * LEN);
	load.dst = alloc_pages(SLOTS * LEN);
	load.src_mr = must_reg(&a, load.src, SLOTS * LEN, FULL_ACCESS);
	load.dst_mr = must_reg(&b, load.dst, SLOTS * LEN, FULL_ACCESS);
	pair_create(&load.pair, &a, &b, &po);
	if (pthread_create(&thread, NULL, run_load, NULL))
		die("pthread_create");
	status = measure();
	atomic_store(&done, true);
	pthread_join(thread, NULL);
	end_tools();
	printf("verbs_gap: %llu writes, every byte right\n",
	       (unsigned long long)load.writes);
	pair_destroy(&load.pair);
	ibv_dereg_mr(load.src_mr);
	ibv_dereg_mr(load.dst_mr);
	side_close(&a);
	side_close(&b);
	return status;
}
