/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What congestion control is for: many senders into one receiver, a thousand
 * nodes on a fat tree, with it and without.
 *
 *	test_sim	16 to 1, and a fat tree of 128 nodes: seconds
 *	test_sim big	1,024 nodes
 */
#include <stdlib.h>

#include "pair.h"
#include "sim.h"

enum {
	SENDERS = 16,
	MTU = 9000,
	/* Simulations of one incast, each on links a little longer: one alone is chance. */
	TRIES = 6,
	LONGER_NS = 37,
};

static void head(const char *what)
{
	printf("%s\n%-34s %7s %6s %9s %9s %7s %9s %6s\n", what, "", "goodput",
	       "Jain", "p50", "p99", "again", "drops", "failed");
}

static void row(const char *name, const struct sim_result *r)
{
	printf("%-34s %5u.%u %% %6.3f %6.2f ms %6.2f ms %3u.%u %% %9llu %6u\n",
	       name, r->share / 10, r->share % 10, r->jain / 1000.0,
	       r->p50 / 1e6, r->p99 / 1e6, r->again / 10, r->again % 10,
	       r->drops, r->failed);
	fflush(stdout);
}

static void config(struct sim_cfg *cfg)
{
	*cfg = (struct sim_cfg){
		.fabric = {
			.planes = 1,
			.rate = 10 * SEC,
			.delay_ns = USEC,
			.buffer = 2 << 20,
		},
		.seg_len = MTU - MEDGE_HDR_LEN,
		.op_len = 1 << 20,
		.depth = 4,
		.congestion = true,
		.scheduler = MEDGE_SCHED_EARLIEST,
		.slop_ns = 20 * USEC,
	};
}

/* ---- many to one ---- */

static void incast(struct sim_cfg *cfg, u32 senders, u64 time,
		   struct sim_result *r)
{
	u32 (*ends)[2] = calloc(senders, sizeof(*ends));
	struct sim s;
	u32 i;

	cfg->fabric.hosts = senders + 1;
	cfg->flows = senders;
	for (i = 0; i < senders; i++) {
		ends[i][0] = 1 + i;
		ends[i][1] = 0;
	}
	sim_init(&s, cfg, ends);
	sim_run(&s, time / 2);
	sim_measure(&s);
	sim_run(&s, time / 2 + time);
	sim_result(&s, cfg->fabric.rate * cfg->fabric.planes, r);
	if (say_verbose)
		printf("queue at most %u bytes\n",
		       fabric_port_to(&s.fabric, 0, 0)->queue_high);
	sim_free(&s);
	free(ends);
}

/* The mean of them. */
static void incast_tries(const struct sim_cfg *cfg, u32 senders, u64 time,
			 struct sim_result *mean)
{
	u32 i;

	*mean = (struct sim_result) {};
	for (i = 0; i < TRIES; i++) {
		struct sim_cfg one = *cfg;
		struct sim_result r;

		one.fabric.delay_ns += i * LONGER_NS;
		incast(&one, senders, time, &r);
		mean->share += r.share;
		mean->jain += r.jain;
		mean->p50 += r.p50;
		mean->p99 += r.p99;
		mean->again += r.again;
		mean->drops += r.drops;
		mean->failed += r.failed;
	}
	mean->share /= TRIES;
	mean->jain /= TRIES;
	mean->p50 /= TRIES;
	mean->p99 /= TRIES;
	mean->again /= TRIES;
	mean->drops /= TRIES;
}

static void check_incast(const char *name, struct sim_cfg *cfg, u32 senders,
			 u64 time)
{
	struct sim_result with, without;
	char line[64];

	incast_tries(cfg, senders, time, &with);
	row(name, &with);
	cfg->congestion = false;
	incast(cfg, senders, time, &without);
	snprintf(line, sizeof(line), "  without control");
	row(line, &without);
	CHECK(with.share >= 930, "%s: goodput", name);
	CHECK(with.jain >= 900, "%s: somebody starves", name);
	CHECK_EQ(with.failed, 0);
	CHECK(with.again <= without.again);
}

static void incasts(void)
{
	struct sim_cfg cfg;

	head("16 senders, 1 receiver, one switch, 10 Gbit/s, endless 1 MiB writes");
	config(&cfg);
	check_incast("port buffer 2 MiB", &cfg, SENDERS, 100 * MSEC);
	config(&cfg);
	cfg.fabric.mark = 200 << 10;
	check_incast("2 MiB, marked above 200 KiB", &cfg, SENDERS, 100 * MSEC);
	config(&cfg);
	cfg.fabric.buffer = 512 << 10;
	check_incast("port buffer 512 KiB", &cfg, SENDERS, 600 * MSEC);
	config(&cfg);
	cfg.fabric.planes = 2;
	check_incast("two rails, 2 MiB each", &cfg, SENDERS, 100 * MSEC);
}

/* ---- a fat tree ---- */

/* Everybody sends to one, and receives from one other. */
static void permutation(struct rng *rng, u32 hosts, u32 (*ends)[2])
{
	u32 i, j;

	for (i = 0; i < hosts; i++) {
		ends[i][0] = i;
		ends[i][1] = i;
	}
	/* Sattolo: nobody sends to himself */
	for (i = hosts - 1; i; i--) {
		j = rng_below(rng, i);
		swap(ends[i][1], ends[j][1]);
	}
}

/* Groups of @size, far apart: all of a group send to its first. */
static u32 groups(u32 hosts, u32 size, u32 (*ends)[2])
{
	u32 ngroups = hosts / size, i, n = 0;

	for (i = ngroups; i < ngroups * size; i++) {
		ends[n][0] = i;
		ends[n++][1] = i % ngroups;
	}
	return n;
}

/* All hosts of a tree: how long writes take, if each flow has a few. */
static void tree_times(struct sim_cfg *cfg, u32 (*ends)[2], struct sim_result *r)
{
	struct sim s;

	cfg->ops = 4;
	sim_init(&s, cfg, ends);
	CHECK(sim_run(&s, 20 * SEC), "%u flows do not end", s.unfinished);
	sim_result(&s, 1, r);
	sim_free(&s);
}

/* And what is carried while they go on without an end. */
static void tree_goodput(struct sim_cfg *cfg, u32 (*ends)[2], u64 receivers,
			 u64 time, struct sim_result *r)
{
	struct sim_result endless;
	struct sim s;

	cfg->ops = 0;
	sim_init(&s, cfg, ends);
	sim_run(&s, time / 2);
	sim_measure(&s);
	sim_run(&s, time + time / 2);
	sim_result(&s, cfg->fabric.rate * cfg->fabric.planes * receivers,
		   &endless);
	sim_free(&s);
	r->share = endless.share;
	r->jain = endless.jain;
}

/* @group: so many are a group, all send to the first; 0: a permutation */
static void tree(struct sim_cfg *cfg, u32 k, u32 group, struct sim_result *r)
{
	u32 hosts = k * k * k / 4, (*ends)[2] = calloc(hosts, sizeof(*ends));
	struct rng rng;

	rng_seed(&rng, 7);
	cfg->fabric.k = k;
	cfg->fabric.hosts = hosts;
	cfg->flows = hosts;
	if (group)
		cfg->flows = groups(hosts, group, ends);
	else
		permutation(&rng, hosts, ends);
	tree_times(cfg, ends, r);
	tree_goodput(cfg, ends, group ? hosts / group : hosts,
		     (group ? 96 : 12) * MSEC / cfg->fabric.planes, r);
	free(ends);
}

static void check_tree(const char *name, u32 planes, u32 k, u32 group)
{
	struct sim_result with, without;
	struct sim_cfg cfg;

	config(&cfg);
	cfg.fabric.buffer = 1 << 20;
	cfg.fabric.planes = planes;
	tree(&cfg, k, group, &with);
	row(name, &with);
	cfg.congestion = false;
	tree(&cfg, k, group, &without);
	row("  without control", &without);
	CHECK_EQ(with.failed, 0);
	CHECK(with.share >= without.share, "%s: goodput", name);
	CHECK(with.again <= without.again, "%s: sent again", name);
	CHECK(with.p99 <= without.p99, "%s: the last wait", name);
}

static void trees(u32 k)
{
	printf("\n%u nodes: ", k * k * k / 4);
	head("fat tree, 10 Gbit/s, port buffers 1 MiB; times: 4 writes of 1 MiB each");
	check_tree("permutation, 1 rail", 1, k, 0);
	check_tree("permutation, 4 rails", 4, k, 0);
	check_tree("incast 31 to 1, 1 rail", 1, k, 32);
	check_tree("incast 31 to 1, 4 rails", 4, k, 32);
}

int main(int argc, char **argv)
{
	bool big = argc > 1 && !strcmp(argv[1], "big");

	if (!big) {
		incasts();
		trees(8);
	} else {
		trees(16);
	}
	say_pass("test_sim", "%s", big ? "1024 nodes" : "16 to 1, 128 nodes");
	return 0;
}
