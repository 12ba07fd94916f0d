/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The order in which remote operations become visible.
 *
 * polling:  A writes stamps 1, 2, 3 ... over the same two buffers of B, first
 *           all of X, then all of Y, in strict memory, without a pause. A
 *           thread at B reads them all the while. Whoever sees the last word of
 *           a buffer sees the rest of it, and all that was written before;
 *           nothing ever goes back in time.
 * delivery: A writes a buffer, then sends (or writes with immediate) without
 *           waiting; when B has the completion, the buffer is whole. A read
 *           posted after the write returns what was written. This holds in
 *           relaxed memory, too.
 */
#include <arpa/inet.h>
#include <getopt.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "verbs_test.h"

enum {
	SLOTS = 16,
	SAMPLES = 64,
};

static uint64_t seed;
static uint64_t ms_each = 1000;

typedef volatile _Atomic(uint64_t) word;

struct polling {
	word *x, *y;
	size_t words;
	atomic_bool stop;
	uint64_t looks, changes;
	char what[200];		/* the violation, if any */
};

static uint64_t see(word *w)
{
	return atomic_load_explicit(w, memory_order_acquire);
}

/* Words of a buffer that must be at least @floor: all, or a sample. */
static bool at_least(struct polling *p, const char *name, word *buf,
		     uint64_t floor, const char *why, uint64_t *rng)
{
	size_t i, k, n = p->words <= SAMPLES ? p->words : SAMPLES;
	uint64_t v;

	for (k = 0; k < n; k++) {
		i = p->words <= SAMPLES ? k :
		    k == 0		? 0 :
		    k == 1		? p->words - 1 :
					  rng_below(rng, p->words);
		v = see(&buf[i]);
		if (v >= floor)
			continue;
		snprintf(p->what, sizeof(p->what),
			 "word %zu of %zu of %s has stamp %llu, but %s %llu",
			 i, p->words, name, (unsigned long long)v, why,
			 (unsigned long long)floor);
		return false;
	}
	return true;
}

static bool look(struct polling *p, uint64_t *floor_x, uint64_t *floor_y,
		 uint64_t *rng)
{
	uint64_t x, y, any;

	y = see(&p->y[p->words - 1]);
	if (y > *floor_y) {
		p->changes++;
		*floor_y = y;
	}
	if (*floor_x < *floor_y)
		*floor_x = *floor_y;
	if (!at_least(p, "Y", p->y, *floor_y, "its last word had", rng) ||
	    !at_least(p, "X", p->x, *floor_x, "X or the later Y had", rng))
		return false;

	x = see(&p->x[p->words - 1]);
	if (x > *floor_x)
		*floor_x = x;
	if (!at_least(p, "X", p->x, *floor_x, "its last word had", rng))
		return false;

	any = see(&p->x[rng_below(rng, p->words)]);
	return !any || at_least(p, "Y", p->y, any - 1,
				"a later write of X was seen; expected", rng);
}

static void *watch(void *arg)
{
	struct polling *p = arg;
	uint64_t floor_x = 0, floor_y = 0, rng = seed;

	while (!p->stop && !p->what[0]) {
		look(p, &floor_x, &floor_y, &rng);
		p->looks++;
		if (p->looks % 256 == 0)
			sched_yield();
	}
	return NULL;
}

static void stamp(uint64_t *buf, size_t words, uint64_t value)
{
	size_t i;

	for (i = 0; i < words; i++)
		buf[i] = value;
}

static void post(struct ibv_qp *qp, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;
	int ret;

	ret = ibv_post_send(qp, wr, &bad);
	if (ret)
		die("ibv_post_send: %s", strerror(ret));
}

static void expect_wc(struct ibv_cq *cq, struct ibv_wc *wc)
{
	if (!wait_wc(cq, wc, PATIENCE_MS))
		die("seed %llu: nothing completed for %d s",
		    (unsigned long long)seed, PATIENCE_MS / 1000);
	if (wc->status != IBV_WC_SUCCESS)
		die("seed %llu: %s (vendor %#x)", (unsigned long long)seed,
		    ibv_wc_status_str(wc->status), wc->vendor_err);
}

static void test_polling(struct side *a, struct side *b, size_t size)
{
	struct pair_options options = { .send_wr = 2 * SLOTS };
	struct polling p = { .words = size / 8 };
	uint64_t *source = alloc_pages(SLOTS * size);
	uint8_t *target = alloc_pages(2 * size);
	struct ibv_mr *smr, *tmr;
	uint64_t i, done = 0, until;
	pthread_t thread;
	struct pair pair;
	struct ibv_wc wc;
	int k;

	pair_create(&pair, a, b, &options);
	smr = must_reg(a, source, SLOTS * size, FULL_ACCESS);
	tmr = must_reg(b, target, 2 * size, FULL_ACCESS);
	p.x = (word *)target;
	p.y = (word *)(target + size);
	if (pthread_create(&thread, NULL, watch, &p))
		die("no thread");

	until = now_ms() + ms_each;
	for (i = 1; now_ms() < until && !p.what[0]; i++) {
		struct ibv_sge sge = {
			.addr = (uintptr_t)(source + i % SLOTS * p.words),
			.length = size,
			.lkey = smr->lkey,
		};
		struct ibv_send_wr wr[2] = {};

		if (i > SLOTS) {
			expect_wc(pair.a.scq, &wc);
			done = wc.wr_id;
		}
		stamp(source + i % SLOTS * p.words, p.words, i);
		for (k = 0; k < 2; k++) {
			wr[k].wr_id = i;
			wr[k].sg_list = &sge;
			wr[k].num_sge = 1;
			wr[k].opcode = IBV_WR_RDMA_WRITE;
			wr[k].wr.rdma.remote_addr =
				(uintptr_t)(target + k * size);
			wr[k].wr.rdma.rkey = tmr->rkey;
		}
		wr[0].next = &wr[1];
		wr[1].send_flags = IBV_SEND_SIGNALED;
		post(pair.a.qp, wr);
	}
	while (done < i - 1) {
		expect_wc(pair.a.scq, &wc);
		done = wc.wr_id;
	}
	p.stop = true;
	pthread_join(thread, NULL);
	if (p.what[0])
		die("seed %llu: polling, %zu bytes: %s",
		    (unsigned long long)seed, size, p.what);
	printf("polling  %8zu bytes: %8llu pairs of writes, %8llu looks, %8llu changes seen\n",
	       size, (unsigned long long)i - 1, (unsigned long long)p.looks,
	       (unsigned long long)p.changes);
	fflush(stdout);

	pair_destroy(&pair);
	ibv_dereg_mr(smr);
	ibv_dereg_mr(tmr);
}

struct delivery {
	struct pair pair;
	size_t words;
	uint64_t *source, *target, *back;
	struct ibv_mr *smr, *tmr, *bmr;
};

static void delivery_post_recv(struct delivery *d, uint64_t i)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)(d->target + SLOTS * d->words + i % SLOTS),
		.length = 8,
		.lkey = d->tmr->lkey,
	};
	struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 };
	struct ibv_recv_wr *bad;

	if (ibv_post_recv(d->pair.b.qp, &wr, &bad))
		die("ibv_post_recv failed");
}

/* A write, what tells of it, and a read of what was written. */
static void delivery_post(struct delivery *d, uint64_t i, bool send)
{
	uint64_t slot = i % SLOTS * d->words;
	struct ibv_sge sge[3] = {
		{ (uintptr_t)(d->source + slot), d->words * 8, d->smr->lkey },
		{ (uintptr_t)(d->source + slot), 8, d->smr->lkey },
		{ (uintptr_t)(d->back + slot), d->words * 8, d->bmr->lkey },
	};
	struct ibv_send_wr wr[3] = {
		{ .opcode = IBV_WR_RDMA_WRITE, .next = &wr[1] },
		{ .opcode = send ? IBV_WR_SEND_WITH_IMM :
				   IBV_WR_RDMA_WRITE_WITH_IMM,
		  .imm_data = htonl(i), .next = &wr[2] },
		{ .opcode = IBV_WR_RDMA_READ,
		  .send_flags = IBV_SEND_SIGNALED },
	};
	int k;

	for (k = 0; k < 3; k++) {
		wr[k].wr_id = i;
		wr[k].sg_list = &sge[k];
		wr[k].num_sge = 1;
		wr[k].wr.rdma.remote_addr = (uintptr_t)(d->target + slot);
		wr[k].wr.rdma.rkey = d->tmr->rkey;
	}
	if (!send) {		/* the immediate alone */
		wr[1].num_sge = 0;
		wr[1].wr.rdma.remote_addr = 0;
		wr[1].wr.rdma.rkey = 0;
	}
	stamp(d->source + slot, d->words, i);
	post(d->pair.a.qp, wr);
}

static void delivery_check(const struct delivery *d, const uint64_t *buf,
			   uint64_t i, const char *what)
{
	size_t k;

	buf += i % SLOTS * d->words;
	for (k = 0; k < d->words; k++)
		if (buf[k] != i)
			die("seed %llu: %s, %zu bytes: word %zu is %llu instead of %llu",
			    (unsigned long long)seed, what, d->words * 8, k,
			    (unsigned long long)buf[k], (unsigned long long)i);
}

static void test_delivery(struct side *a, struct side *b, size_t size, int access)
{
	struct pair_options options = { .send_wr = 3 * SLOTS, .recv_wr = SLOTS };
	struct delivery d = { .words = size / 8 };
	uint64_t i, received = 0, done = 0, rng = seed, until;
	struct ibv_wc wc;

	pair_create(&d.pair, a, b, &options);
	d.source = alloc_pages(SLOTS * size);
	d.back = alloc_pages(SLOTS * size);
	d.target = alloc_pages(SLOTS * (size + 8));
	d.smr = must_reg(a, d.source, SLOTS * size, FULL_ACCESS | access);
	d.bmr = must_reg(a, d.back, SLOTS * size, FULL_ACCESS | access);
	d.tmr = must_reg(b, d.target, SLOTS * (size + 8), FULL_ACCESS | access);

	for (i = 1; i <= SLOTS; i++)
		delivery_post_recv(&d, i);
	until = now_ms() + ms_each;
	i = 1;
	while (done < i - 1 || now_ms() < until) {
		/* A slot is free again when its receive and its read are done. */
		while (now_ms() < until && i <= received + SLOTS &&
		       i <= done + SLOTS)
			delivery_post(&d, i++, rng_below(&rng, 2));
		if (received < i - 1) {
			expect_wc(d.pair.b.rcq, &wc);
			received++;
			if (ntohl(wc.imm_data) != (uint32_t)received)
				die("seed %llu: receive %llu has immediate %u",
				    (unsigned long long)seed,
				    (unsigned long long)received,
				    ntohl(wc.imm_data));
			delivery_check(&d, d.target, received,
				       "delivered before the write was");
			delivery_post_recv(&d, received + SLOTS);
		}
		if (done < i - 1) {
			expect_wc(d.pair.a.scq, &wc);
			done++;
			if (wc.wr_id != done)
				die("seed %llu: read %llu completed as %llu",
				    (unsigned long long)seed,
				    (unsigned long long)wc.wr_id,
				    (unsigned long long)done);
			delivery_check(&d, d.back, done,
				       "a read did not see the write before it");
		}
	}
	printf("delivery %8zu bytes: %8llu writes in %s memory\n", size,
	       (unsigned long long)done, access ? "relaxed" : "strict");
	fflush(stdout);

	pair_destroy(&d.pair);
	ibv_dereg_mr(d.smr);
	ibv_dereg_mr(d.bmr);
	ibv_dereg_mr(d.tmr);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "seed", 1, NULL, 's' },
		{ "ms", 1, NULL, 'm' },
		{},
	};
	static const size_t sizes[] = { 8, 64, 4096, 8960, 40000, 65536, 262144 };
	const char *seed_arg = NULL;
	struct side a, b;
	size_t i;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 's': seed_arg = optarg; break;
		case 'm': ms_each = strtoull(optarg, NULL, 0); break;
		default:
			fputs("usage: verbs_order [--seed N] [--ms MS]\nMS for each size and test\n",
			      stderr);
			return 2;
		}
	}
	seed = rng_seed(seed_arg);
	printf("verbs_order: seed %llu\n", (unsigned long long)seed);
	fflush(stdout);
	side_open_both(&a, &b);
	for (i = 0; i < ARRAY_LEN(sizes); i++)
		test_polling(&a, &b, sizes[i]);
	for (i = 0; i < ARRAY_LEN(sizes); i++) {
		test_delivery(&a, &b, sizes[i], 0);
		test_delivery(&a, &b, sizes[i], IBV_ACCESS_RELAXED_ORDERING);
	}
	side_close(&a);
	side_close(&b);
	puts("verbs_order: everything in order");
	return 0;
}
