/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Who may copy a small write: the program, which posts its data in the ring, or the
 * kernel, which reads it in the program's memory (Ulmer, GRIM, figure 5.2).
 *
 *   injection INLINE [MS]    the most that the device takes inline; what all may take
 *
 * Prints, for each size: writes/s by reference, and inline, or 0. Lists of 32, which
 * share a system call.
 */
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "verbs_test.h"

enum {
	LIST = 32,
	LISTS = 4,		/* under way */
	ROUNDS = 3,		/* of all sizes, at least */
	SLICE_NS = 4000000,
};

static const uint32_t sizes[] = { 8, 64, 256, 512, 1024 };

static struct ibv_mr *from, *to;
static struct pair pair;

static void post(uint32_t len, bool is_inline)
{
	struct ibv_sge sge[LIST];
	struct ibv_send_wr wr[LIST], *bad;
	int i;

	for (i = 0; i < LIST; i++) {
		sge[i] = (struct ibv_sge) {
			.addr = (uintptr_t)from->addr + i * len,
			.length = len,
			.lkey = from->lkey,
		};
		wr[i] = (struct ibv_send_wr) {
			.next = i + 1 < LIST ? &wr[i + 1] : NULL,
			.sg_list = &sge[i],
			.num_sge = 1,
			.opcode = IBV_WR_RDMA_WRITE,
			.send_flags = (i + 1 < LIST ? 0 : IBV_SEND_SIGNALED) |
				      (is_inline ? IBV_SEND_INLINE : 0),
			.wr.rdma.remote_addr = (uintptr_t)to->addr + i * len,
			.wr.rdma.rkey = to->rkey,
		};
	}
	if (ibv_post_send(pair.a.qp, wr, &bad))
		die("ibv_post_send");
}

static void reap(void)
{
	struct ibv_wc wc;
	int polls = 0;

	/* What carries the data may need this CPU. */
	while (!ibv_poll_cq(pair.a.scq, 1, &wc))
		if (!(++polls % 64))
			sched_yield();
	if (wc.status)
		die("%s", ibv_wc_status_str(wc.status));
}

static double per_second(uint32_t len, bool is_inline)
{
	uint64_t began = now_ns(), n, done = 0;

	for (n = 0; n < LISTS || now_ns() < began + SLICE_NS; n++) {
		if (n - done == LISTS) {
			reap();
			done++;
		}
		post(len, is_inline);
	}
	for (; done < n; done++)
		reap();
	return n * LIST * 1e9 / (now_ns() - began);
}

int main(int argc, char **argv)
{
	uint32_t most = argc > 1 ? strtoul(argv[1], NULL, 0) : 0;
	uint64_t ms = argc > 2 ? strtoul(argv[2], NULL, 0) : 700, seed = 1, until;
	struct pair_options po = { .send_wr = LIST * (LISTS + 1), .inline_data = most };
	size_t all = LIST * sizes[ARRAY_LEN(sizes) - 1];
	double best[ARRAY_LEN(sizes)][2] = {}, now;
	struct side a, b;
	cpu_set_t first;
	size_t i;
	int round, k;

	if (!most || !ms) {
		fputs("usage: injection INLINE [MS]\n", stderr);
		return 2;
	}
	CPU_ZERO(&first);
	CPU_SET(0, &first);
	sched_setaffinity(0, sizeof(first), &first);
	side_open_both(&a, &b);
	pair_create(&pair, &a, &b, &po);
	from = must_reg(&a, alloc_pages(all), all, FULL_ACCESS);
	to = must_reg(&b, alloc_pages(all), all, FULL_ACCESS);

	/* Others are at work on this machine, and can only make it slower. */
	until = now_ns() + ms * 1000000;
	for (round = 0; round < ROUNDS || now_ns() < until; round++) {
		for (i = 0; i < ARRAY_LEN(sizes); i++) {
			for (k = 0; k < 2 && (!k || sizes[i] <= most); k++) {
				rng_fill(&seed, from->addr, LIST * sizes[i]);
				now = per_second(sizes[i], k);
				if (now > best[i][k])
					best[i][k] = now;
				if (memcmp(from->addr, to->addr, LIST * sizes[i]))
					die("what was written is not what is there");
			}
		}
	}
	for (i = 0; i < ARRAY_LEN(sizes); i++)
		printf("%u %.0f %.0f\n", sizes[i], best[i][0], best[i][1]);
	pair_destroy(&pair);
	ibv_dereg_mr(from);
	ibv_dereg_mr(to);
	side_close(&a);
	side_close(&b);
	return 0;
}
