/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The main test: thousands of random scenarios, each made from one seed.
 *
 *   test_pair [--count N] [--base SEED] [--jobs N] [--most FAILURES] [--list]
 *   test_pair --seed SEED [-v]		one scenario again, with a trace
 *
 * MEDGE_SEED in the environment, a number or "random", is the base seed, too.
 */
#include <getopt.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "rng.h"
#include "say.h"
#include "scenario.h"

enum { MAX_JOBS = 256 };

static const char *program;
static bool list;

static u64 parse_seed(const char *s)
{
	struct timespec t;

	if (strcmp(s, "random"))
		return strtoull(s, NULL, 0);
	clock_gettime(CLOCK_REALTIME, &t);
	return (t.tv_sec * 1000000000ULL + t.tv_nsec) & 0xffffffffffULL;
}

static void run_one(u64 seed, struct scenario_result *r)
{
	say_context("seed %llu, again with a trace: %s --seed %llu -v\n", seed,
		    program, seed);
	scenario_run(seed, r);
}

/* What a process has run, seen by its parent even when it dies. */
struct share {
	u32 next;		/* scenario, counted from the base seed */
	u64 ops, frames, retransmits, virtual_ns;
};

static void print_scenario(u64 seed, const struct scenario_result *r)
{
	printf("seed %llu %s: %u rails, %u ops, %llu frames needed, %llu lost, %llu again, %llu ms, %llu steps\n",
	       seed, r->kind, r->nrails, r->ops, r->needed, r->lost,
	       r->retransmits, r->virtual_ns / 1000000, r->steps);
}

static int run_share(struct share *share, u64 base, u32 count, u32 jobs)
{
	struct scenario_result r;

	while (share->next < count) {
		u64 seed = base + share->next;

		share->next += jobs;
		run_one(seed, &r);
		if (list)
			print_scenario(seed, &r);
		share->ops += r.ops;
		share->frames += r.frames;
		share->retransmits += r.retransmits;
		share->virtual_ns += r.virtual_ns;
	}
	return 0;
}

static pid_t start(struct share *share, u64 base, u32 count, u32 jobs)
{
	pid_t pid = fork();

	if (!pid)
		exit(run_share(share, base, count, jobs));
	return pid;
}

/*
 * One process a core. One that fails has said why; another goes on behind the
 * scenario that failed, until @most have. Returns how many did.
 */
static u32 run_all(struct share *shares, u64 base, u32 count, u32 jobs, u32 most)
{
	pid_t pids[MAX_JOBS], pid;
	u32 failures = 0, job, left = jobs;
	int status;

	fflush(stdout);
	for (job = 0; job < jobs; job++) {
		shares[job].next = job;
		pids[job] = start(&shares[job], base, count, jobs);
	}
	while (left) {
		pid = wait(&status);
		for (job = 0; job < jobs && pids[job] != pid; job++)
			;
		if (status && ++failures < most)
			pids[job] = start(&shares[job], base, count, jobs);
		else
			left--;
	}
	return failures;
}

/* Of other bases, which failed once; each of another cause. */
static void run_once_failed(void)
{
	static const u64 seeds[] = {
		576958344896,	/* the ack of a full window was lost */
		300047204,	/* an answer was, of who had refused what came later, */
		700183861,	/* and had requests of its own under way, */
		700128605,	/* a window of them */
		100055419,	/* what went again was asked after at once */
	};
	struct scenario_result r;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(seeds); i++)
		run_one(seeds[i], &r);
}

static int run_many(u64 base, u32 count, u32 jobs, u32 most)
{
	struct share *shares = mmap(NULL, sizeof(*shares) * MAX_JOBS,
				    PROT_READ | PROT_WRITE,
				    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct share sum = { };
	u32 failures, job;

	run_once_failed();
	printf("%u scenarios, base seed %llu\n", count, base);
	failures = run_all(shares, base, count, jobs, most);
	if (failures) {
		printf("FAIL test_pair: %u scenarios failed, base seed %llu\n",
		       failures, base);
		return 1;
	}
	for (job = 0; job < jobs; job++) {
		sum.ops += shares[job].ops;
		sum.frames += shares[job].frames;
		sum.retransmits += shares[job].retransmits;
		sum.virtual_ns += shares[job].virtual_ns;
	}
	say_pass("test_pair",
		 "%u scenarios, base seed %llu, %llu ops, %llu frames, %llu of them again, %llu s",
		 count, base, sum.ops, sum.frames, sum.retransmits,
		 sum.virtual_ns / 1000000000);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "count", required_argument, NULL, 'n' },
		{ "base", required_argument, NULL, 'b' },
		{ "jobs", required_argument, NULL, 'j' },
		{ "list", no_argument, NULL, 'l' },
		{ "most", required_argument, NULL, 'm' },
		{ "seed", required_argument, NULL, 's' },
		{ }
	};
	const char *env = getenv("MEDGE_SEED");
	u64 base = env && *env ? parse_seed(env) : 1, seed = 0;
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	u32 count = 10000, jobs = cores > 0 ? cores : 1, most = 1;
	struct scenario_result r;
	bool single = false;
	int opt;

	program = argv[0];
	while ((opt = getopt_long(argc, argv, "v", options, NULL)) != -1) {
		switch (opt) {
		case 'n': count = strtoul(optarg, NULL, 0); break;
		case 'b': base = parse_seed(optarg); break;
		case 'j': jobs = strtoul(optarg, NULL, 0); break;
		case 'l': list = true; break;
		case 'm': most = strtoul(optarg, NULL, 0); break;
		case 's': seed = parse_seed(optarg); single = true; break;
		case 'v': say_verbose = 1; break;
		default: return 2;
		}
	}
	/* whole lines from each process */
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (single) {
		run_one(seed, &r);
		print_scenario(seed, &r);
		say_pass("test_pair", "seed %llu", seed);
		return 0;
	}
	return run_many(base, count, clamp(jobs, 1u, (u32)MAX_JOBS), most);
}
