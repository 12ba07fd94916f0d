/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Both ends on one host, as DEV_A and DEV_B say.
 *
 *   verbs_loop [--rounds N] [--seed S] [--judge] speed    copies beside frames, in turns, on one connection
 *   verbs_loop [--ms N] ring                    QPs of DEV_A that are connected in a ring, not in pairs
 *
 * speed: in each round messages go to and fro, and then writes one way; every
 * byte that arrives is compared. The best of all rounds is printed. To be judged,
 * copies may not be worse than frames by more than what chance can do. Each is
 * held against its neighbour in time, and the middle one of all such pairs counts:
 * for seconds at a time the host may run a guest's kernel and its program on two
 * CPUs, which doubles what each system call takes, and then whoever has a single
 * ping outside of such a time has the best by far. What seems worse is measured
 * for longer.
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
	PINGS = 10,		/* of one kind, before it is the other's turn */
	TURNS = 20,		/* of each, in a round */
	LONGER = 5,		/* times as many rounds, if in doubt */
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

/* What copies are to the frames beside them, each time. */
struct ratios {
	double *of;
	int n;
};

/* The best there was of each, and all ratios. */
struct figures {
	double half_trip_us[HOWS];
	double mb_per_s[HOWS];
	struct ratios time;
	struct ratios rate;
};

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
		if (post_write(pair.a.qp, mr_a, mr_b, i * WRITE, WRITE,
			       IBV_SEND_SIGNALED))
			die("ibv_post_send failed");
	for (i = 0; i < WRITES; i++)
		must_wc(pair.a.scq, "write");
	began = now_ns() - began;
	if (memcmp(mem_a, mem_b, MEMORY))
		die("what arrived is not what was written");
	return MEMORY * 1e3 / began;
}

static void choose_both(enum how how)
{
	choose(&side_a, how);
	choose(&side_b, how);
}

/* The best of some. */
static double pings(uint64_t *rng)
{
	double value, best = ping(rng);
	int i;

	for (i = 1; i < PINGS; i++) {
		value = ping(rng);
		if (value < best)
			best = value;
	}
	return best;
}

static void note_ratio(struct ratios *ratios, const double *value)
{
	ratios->of[ratios->n++] = value[COPY] / value[FRAMES];
}

static void one_round(struct figures *f, uint64_t *rng)
{
	double value[HOWS];
	int i, how;

	for (i = 0; i < TURNS; i++) {
		for (how = 0; how < HOWS; how++) {
			choose_both(how);
			value[how] = pings(rng);
			if (!f->half_trip_us[how] ||
			    value[how] < f->half_trip_us[how])
				f->half_trip_us[how] = value[how];
		}
		note_ratio(&f->time, value);
	}
	for (how = 0; how < HOWS; how++) {
		choose_both(how);
		value[how] = write_all(rng);
		if (value[how] > f->mb_per_s[how])
			f->mb_per_s[how] = value[how];
	}
	note_ratio(&f->rate, value);
}

static int ascending(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static double median(struct ratios *ratios)
{
	qsort(ratios->of, ratios->n, sizeof(*ratios->of), ascending);
	return ratios->of[ratios->n / 2];
}

static bool is_worse(struct figures *f)
{
	return median(&f->rate) < 1 / 2.0 || median(&f->time) > 1.5;
}

static void room_for(struct ratios *ratios, int n)
{
	ratios->of = calloc(n, sizeof(*ratios->of));
	if (!ratios->of)
		die("no memory");
}

static int speed(void)
{
	struct pair_options options = { .timeout = 18 };
	int i, most = opt.judge ? opt.rounds * LONGER : opt.rounds;
	uint64_t rng = opt.seed;
	struct figures f = {};
	bool worse;

	side_open_both(&side_a, &side_b);
	mem_a = alloc_pages(MEMORY);
	mem_b = alloc_pages(MEMORY);
	rng_fill(&rng, mem_a, MEMORY);
	mr_a = must_reg(&side_a, mem_a, MEMORY, FULL_ACCESS);
	mr_b = must_reg(&side_b, mem_b, MEMORY, FULL_ACCESS);
	pair_create(&pair, &side_a, &side_b, &options);
	room_for(&f.time, most * TURNS);
	room_for(&f.rate, most);
	for (i = 0; i < opt.rounds || (i < most && is_worse(&f)); i++)
		one_round(&f, &rng);
	worse = is_worse(&f);
	choose_both(COPY);
	pair_destroy(&pair);
	ibv_dereg_mr(mr_a);
	ibv_dereg_mr(mr_b);
	side_close(&side_a);
	side_close(&side_b);
	printf("copy %.0f MB/s, %.1f us; frames %.0f MB/s, %.1f us; medians of %d rounds: %.2f times the rate, %.2f times the time\n",
	       f.mb_per_s[COPY], f.half_trip_us[COPY], f.mb_per_s[FRAMES],
	       f.half_trip_us[FRAMES], i, median(&f.rate), median(&f.time));
	free(f.time.of);
	free(f.rate.of);
	return opt.judge && worse;
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
			post_write(ends[i].qp, mr, mr, 0, RING_WRITE,
				   IBV_SEND_SIGNALED);
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
