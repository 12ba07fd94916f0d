/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the device's poller is worth to who asked for it: small writes on a QP
 * that did and on one that did not, in turns, as a stream and one by one; and
 * how often each rang the doorbell. Run while the device polls for who asks.
 */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/medgedv.h>

#include "dv_qp.h"
#include "verbs_test.h"

enum {
	WINDOW = 64,		/* posts under way */
	SIGNALED = 16,		/* one of so many */
	LEN = 64,
	TURNS = 6,
};

struct kind {
	const char *name;
	uint32_t create_flags;
	struct pair pair;
	uint8_t *source, *target;
	struct ibv_mr *smr, *tmr;
	uint64_t posts, doorbells;
	double stream_ns, single_ns;	/* of a post, in the best turn */
};

static struct kind kinds[] = {
	{ .name = "ordinary QP" },
	{ .name = "polled QP", .create_flags = MEDGEDV_QP_CREATE_POLLED },
};

static uint32_t create_flags;
static uint64_t turn_ms = 60;
static bool polled = true;

static struct ibv_qp *create_qp(struct side *side, struct ibv_qp_init_attr *init)
{
	uint32_t flags = create_flags;

	/* Of the side that posts, which comes first. */
	create_flags = 0;
	return create_dv_qp(side, init, flags, 0);
}

static void make(struct kind *k, struct side *a, struct side *b)
{
	struct pair_options opt = {
		.send_wr = WINDOW,
		.inline_data = LEN,
		.create_qp = create_qp,
	};
	struct medgedv_qp_attr attr;

	create_flags = k->create_flags;
	pair_create(&k->pair, a, b, &opt);
	k->source = alloc_pages(WINDOW * LEN);
	k->target = alloc_pages(WINDOW * LEN);
	k->smr = must_reg(a, k->source, WINDOW * LEN, FULL_ACCESS);
	k->tmr = must_reg(b, k->target, WINDOW * LEN, FULL_ACCESS);
	memset(k->source, 0x5a, WINDOW * LEN);
	if (medgedv_query_qp(k->pair.a.qp, &attr, sizeof(attr)))
		die("the QP cannot be queried");
	if (!!(attr.flags & MEDGEDV_QP_POLLED) !=
	    (polled && k->create_flags))
		die("the %s says that it is %spolled", k->name,
		    attr.flags & MEDGEDV_QP_POLLED ? "" : "not ");
}

static void unmake(struct kind *k)
{
	if (memcmp(k->source, k->target, WINDOW * LEN))
		die("what was written is not what is there");
	pair_destroy(&k->pair);
	ibv_dereg_mr(k->smr);
	ibv_dereg_mr(k->tmr);
}

static void post(struct kind *k, bool signaled)
{
	uint64_t at = k->posts++ % WINDOW * LEN;
	int ret = post_write(k->pair.a.qp, k->smr, k->tmr, at, LEN,
			     IBV_SEND_INLINE |
			     (signaled ? IBV_SEND_SIGNALED : 0));

	if (ret)
		die("ibv_post_send: %s", strerror(ret));
}

static void wait_one(struct kind *k)
{
	struct ibv_wc wc;

	if (!wait_wc(k->pair.a.scq, &wc, PATIENCE_MS))
		die("nothing completed on the %s", k->name);
	if (wc.status != IBV_WC_SUCCESS)
		die("%s", ibv_wc_status_str(wc.status));
}

static void best(double *ns, uint64_t began, uint64_t posts)
{
	double now = (double)(now_ns() - began) / posts;

	if (!*ns || now < *ns)
		*ns = now;
}

static void stream(struct kind *k)
{
	uint64_t began = now_ns(), until = began + turn_ms * 1000000;
	uint64_t first = k->posts, under_way = 0;
	int i;

	while (now_ns() < until) {
		if (under_way == WINDOW / SIGNALED) {
			wait_one(k);
			under_way--;
		}
		for (i = 1; i <= SIGNALED; i++)
			post(k, i == SIGNALED);
		under_way++;
	}
	for (; under_way; under_way--)
		wait_one(k);
	best(&k->stream_ns, began, k->posts - first);
}

static void singly(struct kind *k)
{
	uint64_t began = now_ns(), until = began + turn_ms * 1000000;
	uint64_t first = k->posts;

	while (now_ns() < until) {
		post(k, true);
		wait_one(k);
	}
	best(&k->single_ns, began, k->posts - first);
}

static void turn(struct kind *k)
{
	struct side *side = k->pair.a.side;
	uint64_t before;

	/* One wakes the poller; that it sleeps is another's to test. */
	post(k, true);
	wait_one(k);
	before = side_counter(side, "doorbells");
	stream(k);
	singly(k);
	k->doorbells += side_counter(side, "doorbells") - before;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "ms", 1, NULL, 'm' },
		{ "unpolled", 0, NULL, 'u' },
		{},
	};
	const struct kind *plain = &kinds[0], *k;
	struct side a, b;
	int c, i;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 'm': turn_ms = strtoull(optarg, NULL, 0); break;
		case 'u': polled = false; break;
		default:
			fputs("usage: polled_posts [--ms MS] [--unpolled]\n"
			      "--unpolled: the device does not poll for who asks\n",
			      stderr);
			return 2;
		}
	}
	side_open_both(&a, &b);
	for (i = 0; i < (int)ARRAY_LEN(kinds); i++)
		make(&kinds[i], &a, &b);
	for (i = 0; i < TURNS * (int)ARRAY_LEN(kinds); i++)
		turn(&kinds[i % ARRAY_LEN(kinds)]);

	printf("%-14s %10s %10s %12s %8s %12s %8s\n", "64-byte writes", "posts",
	       "doorbells", "stream ns", "rate", "one by one", "rate");
	for (k = kinds; k < kinds + ARRAY_LEN(kinds); k++)
		printf("%-14s %10llu %10llu %9.0f ns %6.2f x %9.0f ns %6.2f x\n",
		       k->name, (unsigned long long)k->posts,
		       (unsigned long long)k->doorbells, k->stream_ns,
		       plain->stream_ns / k->stream_ns, k->single_ns,
		       plain->single_ns / k->single_ns);
	for (i = 0; i < (int)ARRAY_LEN(kinds); i++)
		unmake(&kinds[i]);
	side_close(&a);
	side_close(&b);

	k = &kinds[1];
	if (kinds[0].doorbells < kinds[0].posts / 20)
		die("who is not polled did not ring either: this shows nothing");
	if (polled && k->doorbells > k->posts / 50)
		die("who is polled rang %llu times",
		    (unsigned long long)k->doorbells);
	if (!polled && k->doorbells < k->posts / 20)
		die("nobody polls, and yet nobody rang");
	return 0;
}
