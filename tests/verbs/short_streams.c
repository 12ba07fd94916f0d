/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Short writes over many queue pairs, for which who posts helps the poller when that
 * does more: each completion of a queue pair in order, and each byte where it belongs.
 *
 *	short_streams HELPED MS SEED
 *		until so many doorbells have sent beside the poller, and for so long at
 *		least; none: for so long, and none may; any: for so long
 */
#include <stdlib.h>
#include <string.h>

#include "verbs_test.h"

enum {
	QPS = 12,
	SLOTS = 64,		/* of a queue pair: ops under way */
	SLOT = 4096,
	WORDS = SLOT / sizeof(uint64_t),
	SIZES = 7,		/* 64 bytes to 4 KiB, by queue pair */
	LOOK_MS = 2000,		/* a look at the counter ends a stream */
	LIMIT_MS = 60000,	/* until so many doorbells */
	ROUNDS = 256,		/* between looks at the time */
};

typedef uint64_t slot[WORDS];

static struct side a, b;
static struct pair pairs[QPS];
static slot (*source)[SLOTS], (*target)[SLOTS];
static uint64_t posted[QPS], completed[QPS];

static uint32_t size_of(int qp)
{
	return 64u << qp % SIZES;
}

static uint64_t word(int qp, uint32_t at, uint32_t w)
{
	return ((uint64_t)qp << 48 | (uint64_t)at << 32 | w) *
	       0x9e3779b97f4a7c15ULL;
}

/* What is between the stamps stays as it is; what is behind them belongs to nobody. */
static void fill(void)
{
	uint32_t at, w;
	int qp;

	for (qp = 0; qp < QPS; qp++)
		for (at = 0; at < SLOTS; at++)
			for (w = 0; w < WORDS; w++)
				source[qp][at][w] = word(qp, at, w);
}

static void check_rest(void)
{
	uint32_t at, w, end;
	uint64_t want;
	int qp;

	for (qp = 0; qp < QPS; qp++) {
		end = size_of(qp) / sizeof(uint64_t);
		for (at = 0; at < SLOTS && at < posted[qp]; at++) {
			for (w = 1; w < WORDS; w++) {
				want = w < end - 1 ? word(qp, at, w) : 0;
				if (w != end - 1 && target[qp][at][w] != want)
					die("QP %d, slot %u, word %u is wrong",
					    qp, at, w);
			}
		}
	}
}

static void post(int qp, const struct ibv_mr *smr, const struct ibv_mr *tmr)
{
	uint32_t at = posted[qp] % SLOTS, size = size_of(qp);
	uint64_t *words = source[qp][at];

	words[0] = words[size / sizeof(uint64_t) - 1] = ++posted[qp];
	if (post_write(pairs[qp].a.qp, smr, tmr,
		       ((uint64_t)qp * SLOTS + at) * SLOT, size,
		       IBV_SEND_SIGNALED))
		die("ibv_post_send");
}

static int find_qp(uint32_t qp_num)
{
	int qp;

	for (qp = 0; qp < QPS; qp++)
		if (pairs[qp].a.qp->qp_num == qp_num)
			return qp;
	die("a completion of no QP, %#x", qp_num);
}

static void complete(const struct ibv_wc *wc)
{
	int qp = find_qp(wc->qp_num);
	const uint64_t *words = target[qp][completed[qp]++ % SLOTS];
	uint64_t last = words[size_of(qp) / sizeof(uint64_t) - 1];

	if (wc->status != IBV_WC_SUCCESS)
		die("QP %d, op %llu: %s", qp, (unsigned long long)completed[qp],
		    ibv_wc_status_str(wc->status));
	if (words[0] != completed[qp] || last != completed[qp])
		die("QP %d: of ops %llu and %llu, not %llu", qp,
		    (unsigned long long)words[0], (unsigned long long)last,
		    (unsigned long long)completed[qp]);
}

/* Return: how many have completed. */
static int poll_once(struct ibv_cq *cq)
{
	struct ibv_wc wc[16];
	int n = ibv_poll_cq(cq, ARRAY_LEN(wc), wc), i;

	if (n < 0)
		die("ibv_poll_cq");
	for (i = 0; i < n; i++)
		complete(&wc[i]);
	return n;
}

/* As much as there is room for, to one after the other, in @rounds. */
static void stream(struct ibv_cq *cq, const struct ibv_mr *smr,
		   const struct ibv_mr *tmr, int rounds, uint64_t *seed)
{
	int qp;

	for (; rounds; rounds--) {
		for (qp = 0; qp < QPS; qp++) {
			/* Now and then one falls behind. */
			if (!rng_below(seed, 16))
				continue;
			while (posted[qp] - completed[qp] < SLOTS)
				post(qp, smr, tmr);
		}
		poll_once(cq);
	}
}

static bool all_completed(void)
{
	return !memcmp(posted, completed, sizeof(posted));
}

static void drain(struct ibv_cq *cq)
{
	uint64_t news = now_ms();

	while (!all_completed()) {
		if (poll_once(cq))
			news = now_ms();
		else if (now_ms() - news > PATIENCE_MS)
			die("nothing completes any more");
	}
}

/* All of one CQ, as who has many polls them. */
static struct ibv_cq *connect_pairs(void)
{
	struct pair_options opt = { .send_wr = SLOTS }, with_cq = opt;
	int qp;

	with_cq.cq = ibv_create_cq(a.ctx, QPS * SLOTS, NULL, NULL, 0);
	if (!with_cq.cq)
		die("ibv_create_cq");
	for (qp = 0; qp < QPS; qp++) {
		if (end_create(&pairs[qp].a, &a, &with_cq) ||
		    end_create(&pairs[qp].b, &b, &opt))
			die("end_create");
		pair_connect(&pairs[qp], &opt);
	}
	return with_cq.cq;
}

int main(int argc, char **argv)
{
	uint64_t helped, want, seed, began, ms, took, all = 0;
	struct ibv_mr *smr, *tmr;
	struct ibv_cq *cq;
	bool none;
	int qp;

	if (argc != 4) {
		fputs("usage: short_streams HELPED MS SEED\n", stderr);
		return 2;
	}
	none = !strcmp(argv[1], "none");
	want = strtoull(argv[1], NULL, 0);
	ms = strtoull(argv[2], NULL, 0);
	seed = rng_seed(argv[3]);
	side_open_both(&a, &b);
	source = alloc_pages(sizeof(*source) * QPS);
	target = alloc_pages(sizeof(*target) * QPS);
	smr = must_reg(&a, source, sizeof(*source) * QPS, FULL_ACCESS);
	tmr = must_reg(&b, target, sizeof(*target) * QPS, FULL_ACCESS);
	fill();
	cq = connect_pairs();

	helped = side_counter(&a, "poller_shared");
	began = now_ms();
	do {
		uint64_t until = now_ms() + LOOK_MS;

		while (now_ms() < until)
			stream(cq, smr, tmr, ROUNDS, &seed);
		drain(cq);
		check_rest();
		took = now_ms() - began;
	} while (took < ms ||
		 (took < LIMIT_MS &&
		  side_counter(&a, "poller_shared") - helped < want));

	helped = side_counter(&a, "poller_shared") - helped;
	for (qp = 0; qp < QPS; qp++)
		all += completed[qp];
	printf("%llu writes of 64 bytes to 4 KiB over %d queue pairs, every byte right; %llu doorbells beside the poller\n",
	       (unsigned long long)all, QPS, (unsigned long long)helped);
	if (helped < want || (none && helped))
		die("not as many as wanted");
	for (qp = 0; qp < QPS; qp++)
		pair_destroy(&pairs[qp]);
	ibv_destroy_cq(cq);
	ibv_dereg_mr(smr);
	ibv_dereg_mr(tmr);
	side_close(&a);
	side_close(&b);
	return 0;
}
