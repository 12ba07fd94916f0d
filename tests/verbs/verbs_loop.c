/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Both ends on one host, as DEV_A and DEV_B say.
 *
 *   verbs_loop [--rounds N] [--seed S] [--judge] speed    copies beside frames, in turns, on one connection
 *   verbs_loop [--ms N] ring                    QPs of DEV_A that are connected in a ring, not in pairs
 *
 * speed: in each round messages go to and fro, and then writes one way; every
 * byte that arrives is compared. The best of all rounds is printed; to be judged,
 * it may not be worse for copies than for frames by more than what chance can do.
 *
 * ring: each QP has much to send to the next, which acknowledges it to the one
 * after that. What becomes of it is nobody's business, but the host must live.
 */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "verbs_test.h"

enum {
	PING = 64,
	PINGS = 200,
	WRITE = 1 << 20,
	WRITES = 16,
	MEMORY = WRITE * WRITES,
	RING = 32,
	RING_WRITE = 1 << 18,
	RING_WRS = 16,
};

enum how { COPY, FRAMES, HOWS };

static const char *const hows[HOWS] = { "copy", "frames" };

static struct {
	int rounds;
	int ms;
	uint64_t seed;
	bool judge;
} opt = { .rounds = 8, .ms = 300 };

/* The best there was. */
struct figures {
	double half_trip_us;
	double mb_per_s;
};

/* Returns an errno. */
static int post_write(struct end *end, const void *from, uint32_t len,
		      const struct ibv_mr *mr, const void *to,
		      const struct ibv_mr *remote)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)from, .length = len, .lkey = mr->lkey
	};
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { (uintptr_t)to, remote->rkey },
	}, *bad;

	return ibv_post_send(end->qp, &wr, &bad);
}

/* ---- speed ---- */

static struct side side_a, side_b;
static struct pair pair;
static struct ibv_mr *mr_a, *mr_b;
static uint8_t *mem_a, *mem_b;

static void choose(const struct side *side, enum how how)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/loopback",
		 side->name);
	f = fopen(path, "w");
	if (!f || fprintf(f, "%s\n", hows[how]) < 0 || fclose(f))
		die("%s cannot be set to %s", path, hows[how]);
}

static void must_wc(struct ibv_cq *cq, const char *what)
{
	struct ibv_wc wc;

	if (!wait_wc(cq, &wc, PATIENCE_MS))
		die("%s: no completion", what);
	if (wc.status)
		die("%s: %s", what, ibv_wc_status_str(wc.status));
}

static void post_recv(struct end *end, void *at, struct ibv_mr *mr)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)at, .length = PING, .lkey = mr->lkey
	};
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	if (ibv_post_recv(end->qp, &wr, &bad))
		die("ibv_post_recv failed");
}

static void post_send(struct end *end, void *at, struct ibv_mr *mr)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)at, .length = PING, .lkey = mr->lkey
	};
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	}, *bad;

	if (ibv_post_send(end->qp, &wr, &bad))
		die("ibv_post_send failed");
}

/* There and back: what comes back is what went out. */
static double ping(uint64_t *rng)
{
	uint64_t began;

	rng_fill(rng, mem_a, PING);
	memset(mem_a + PING, 0, PING);
	post_recv(&pair.b, mem_b, mr_b);
	post_recv(&pair.a, mem_a + PING, mr_a);
	began = now_ns();
	post_send(&pair.a, mem_a, mr_a);
	must_wc(pair.b.rcq, "ping");
	post_send(&pair.b, mem_b, mr_b);
	must_wc(pair.a.rcq, "pong");
	began = now_ns() - began;
	must_wc(pair.a.scq, "ping's send");
	must_wc(pair.b.scq, "pong's send");
	if (memcmp(mem_a, mem_a + PING, PING))
		die("what came back is not what went out");
	return began / 2000.0;
}

static double write_all(uint64_t *rng)
{
	uint64_t began;
	int i;

	/* Unlike all that was there before, without much time taken for it. */
	for (i = 0; i < WRITES; i++)
		rng_fill(rng, mem_a + i * WRITE, WRITE / 16);
	memset(mem_b, 0, MEMORY);
	began = now_ns();
	for (i = 0; i < WRITES; i++)
		if (post_write(&pair.a, mem_a + i * WRITE, WRITE, mr_a,
			       mem_b + i * WRITE, mr_b))
			die("ibv_post_send failed");
	for (i = 0; i < WRITES; i++)
		must_wc(pair.a.scq, "write");
	began = now_ns() - began;
	if (memcmp(mem_a, mem_b, MEMORY))
		die("what arrived is not what was written");
	return MEMORY * 1e3 / began;
}

static void measure(enum how how, struct figures *best, uint64_t *rng)
{
	double value;
	int i;

	choose(&side_a, how);
	choose(&side_b, how);
	for (i = 0; i < PINGS; i++) {
		value = ping(rng);
		if (!best->half_trip_us || value < best->half_trip_us)
			best->half_trip_us = value;
	}
	value = write_all(rng);
	if (value > best->mb_per_s)
		best->mb_per_s = value;
}

static int speed(void)
{
	struct pair_options options = { .timeout = 18 };
	struct figures best[HOWS] = {};
	uint64_t rng = opt.seed;
	int i;

	side_open_both(&side_a, &side_b);
	mem_a = alloc_pages(MEMORY);
	mem_b = alloc_pages(MEMORY);
	rng_fill(&rng, mem_a, MEMORY);
	mr_a = must_reg(&side_a, mem_a, MEMORY, FULL_ACCESS);
	mr_b = must_reg(&side_b, mem_b, MEMORY, FULL_ACCESS);
	pair_create(&pair, &side_a, &side_b, &options);
	for (i = 0; i < opt.rounds * HOWS; i++)
		measure(i % HOWS, &best[i % HOWS], &rng);
	choose(&side_a, COPY);
	choose(&side_b, COPY);
	pair_destroy(&pair);
	ibv_dereg_mr(mr_a);
	ibv_dereg_mr(mr_b);
	side_close(&side_a);
	side_close(&side_b);
	printf("copy %.0f MB/s, %.1f us; frames %.0f MB/s, %.1f us\n",
	       best[COPY].mb_per_s, best[COPY].half_trip_us,
	       best[FRAMES].mb_per_s, best[FRAMES].half_trip_us);
	return opt.judge &&
	       (best[COPY].mb_per_s < best[FRAMES].mb_per_s / 2 ||
		best[COPY].half_trip_us > best[FRAMES].half_trip_us * 1.5);
}

/* ---- ring ---- */

/* All are told to expect the same first number, so that frames are taken. */
static void make_ring(struct end *ends, struct side *side)
{
	struct pair_options options = { .send_wr = RING_WRS };
	int i;

	for (i = 0; i < RING; i++) {
		if (end_create(&ends[i], side, &options) ||
		    end_to_init(&ends[i], &options))
			die("QP %d cannot be made", i);
		ends[i].psn = 0;
	}
	for (i = 0; i < RING; i++)
		if (end_to_rtr(&ends[i], &ends[(i + 1) % RING], &options) ||
		    end_to_rts(&ends[i], &options))
			die("QP %d cannot be connected", i);
}

static int ring(void)
{
	static struct end ends[RING];
	struct ibv_wc wc[RING_WRS];
	uint64_t until, writes = 0;
	struct ibv_mr *mr;
	struct side side;
	int i;

	side_open(&side, getenv("DEV_A"), getenv("GID_A"));
	mr = must_reg(&side, alloc_pages(RING_WRITE), RING_WRITE, FULL_ACCESS);
	make_ring(ends, &side);
	for (until = now_ms() + opt.ms; now_ms() < until; writes++)
		for (i = RING - 1; i >= 0; i--) {
			/* There is no room, or it has failed: all the same. */
			post_write(&ends[i], mr->addr, RING_WRITE, mr, mr->addr, mr);
			ibv_poll_cq(ends[i].scq, RING_WRS, wc);
		}
	for (i = 0; i < RING; i++)
		end_destroy(&ends[i]);
	ibv_dereg_mr(mr);
	side_close(&side);
	printf("%d QPs in a ring, %lu writes of each\n", RING, (unsigned long)writes);
	return 0;
}

static void usage(void)
{
	fputs("usage: verbs_loop [--rounds N] [--ms N] [--seed S] [--judge] speed|ring\n",
	      stderr);
	exit(2);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "rounds", required_argument, NULL, 'r' },
		{ "ms", required_argument, NULL, 'm' },
		{ "seed", required_argument, NULL, 's' },
		{ "judge", no_argument, NULL, 'j' },
		{},
	};
	const char *seed = NULL;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 'r':
			opt.rounds = atoi(optarg);
			break;
		case 'm':
			opt.ms = atoi(optarg);
			break;
		case 's':
			seed = optarg;
			break;
		case 'j':
			opt.judge = true;
			break;
		default:
			usage();
		}
	}
	opt.seed = rng_seed(seed);
	if (optind != argc - 1)
		usage();
	if (!strcmp(argv[optind], "speed"))
		return speed();
	if (!strcmp(argv[optind], "ring"))
		return ring();
	usage();
}
