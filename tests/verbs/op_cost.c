/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What an operation takes from post to completion, both ends and all that is
 * between: nanoseconds, which are instructions where an emulated CPU's clock
 * counts them.
 *
 *	op_cost [OPERATION]	each of them, or one again and again until it is killed
 *
 * One process, one operation (or list) at a time: posted, its event awaited,
 * its completion polled, as a program does that does not spin. What is read
 * and written is checked afterwards.
 */
#include <stdlib.h>
#include <string.h>

#include "verbs_test.h"

enum {
	LEN_MAX = 1 << 20,
	LIST_MAX = 32,
	WARM_UP = 50,
	RUNS = 5,
};

static const struct cost {
	const char *name;
	enum ibv_wr_opcode opcode;
	uint32_t len;
	int list;
	int times;
} costs[] = {
	{ "write_64", IBV_WR_RDMA_WRITE, 64, 1, 100 },
	{ "write_64_list_32", IBV_WR_RDMA_WRITE, 64, 32, 20 },
	{ "write_4096", IBV_WR_RDMA_WRITE, 4096, 1, 100 },
	{ "write_65536", IBV_WR_RDMA_WRITE, 65536, 1, 50 },
	{ "write_1048576", IBV_WR_RDMA_WRITE, LEN_MAX, 1, 5 },
	{ "read_65536", IBV_WR_RDMA_READ, 65536, 1, 50 },
};

static struct memory {
	uint8_t *buf;
	struct ibv_mr *mr;
} local, remote;

static void post(struct end *end, const struct cost *cost)
{
	struct ibv_sge sge[LIST_MAX];
	struct ibv_send_wr wr[LIST_MAX], *bad;
	int i;

	for (i = 0; i < cost->list; i++) {
		uint32_t at = i * cost->len;
		bool last = i + 1 == cost->list;

		sge[i] = (struct ibv_sge) {
			.addr = (uintptr_t)local.buf + at,
			.length = cost->len,
			.lkey = local.mr->lkey,
		};
		/* Only what is used: clearing the rest would count, too. */
		wr[i] = (struct ibv_send_wr) {
			.next = last ? NULL : &wr[i + 1],
			.sg_list = &sge[i],
			.num_sge = 1,
			.opcode = cost->opcode,
			.send_flags = last ? IBV_SEND_SIGNALED : 0,
			.wr.rdma.remote_addr = (uintptr_t)remote.buf + at,
			.wr.rdma.rkey = remote.mr->rkey,
		};
	}
	if (ibv_post_send(end->qp, wr, &bad))
		die("ibv_post_send");
}

static void complete(struct end *end)
{
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *context;

	if (ibv_get_cq_event(end->channel, &cq, &context))
		die("ibv_get_cq_event");
	ibv_ack_cq_events(cq, 1);
	if (ibv_req_notify_cq(end->scq, 0))
		die("ibv_req_notify_cq");
	if (ibv_poll_cq(end->scq, 1, &wc) != 1 || wc.status != IBV_WC_SUCCESS)
		die("no completion, or one with an error");
}

/* ns for each operation of the list. */
static uint64_t run(struct end *end, const struct cost *cost, int times)
{
	uint64_t began = now_ns();
	int i;

	for (i = 0; i < times; i++) {
		post(end, cost);
		complete(end);
	}
	return (now_ns() - began) / times / cost->list;
}

static int ascending(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void measure(struct end *end, const struct cost *cost)
{
	uint64_t seed = cost->len + cost->list, took[RUNS];
	size_t len = (size_t)cost->len * cost->list;
	int i;

	rng_fill(&seed, local.buf, len);
	rng_fill(&seed, remote.buf, len);
	run(end, cost, WARM_UP < cost->times ? WARM_UP : cost->times);
	for (i = 0; i < RUNS; i++)
		took[i] = run(end, cost, cost->times);
	if (memcmp(local.buf, remote.buf, len))
		die("%s: wrong data", cost->name);
	qsort(took, RUNS, sizeof(took[0]), ascending);
	printf("%s %llu %llu %llu\n", cost->name,
	       (unsigned long long)took[RUNS / 2], (unsigned long long)took[0],
	       (unsigned long long)took[RUNS - 1]);
}

/* For who looks where the time goes. */
static void repeat(struct end *end, const char *name)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(costs); i++)
		while (!strcmp(name, costs[i].name))
			run(end, &costs[i], 100);
	die("there is no operation %s", name);
}

int main(int argc, char **argv)
{
	struct pair_options po = { .events = true, .send_wr = LIST_MAX };
	struct pair pair;
	struct side a, b;
	size_t i;

	side_open_both(&a, &b);
	pair_create(&pair, &a, &b, &po);
	local.buf = alloc_pages(LEN_MAX);
	remote.buf = alloc_pages(LEN_MAX);
	local.mr = must_reg(&a, local.buf, LEN_MAX, FULL_ACCESS);
	remote.mr = must_reg(&b, remote.buf, LEN_MAX, FULL_ACCESS);
	if (ibv_req_notify_cq(pair.a.scq, 0))
		die("ibv_req_notify_cq");
	if (argc > 1)
		repeat(&pair.a, argv[1]);
	for (i = 0; i < ARRAY_LEN(costs); i++)
		measure(&pair.a, &costs[i]);
	pair_destroy(&pair);
	ibv_dereg_mr(local.mr);
	ibv_dereg_mr(remote.mr);
	side_close(&a);
	side_close(&b);
	return 0;
}
