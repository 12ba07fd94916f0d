/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What a fence costs: a stream of small writes, each followed by the write of a
 * flag, with one fence or another, and with what a program has to do that has
 * none: wait for the write's completion before it posts the flag.
 *
 * The modes take turns in short slices, so that a machine whose speed changes
 * is the same for all of them; what the fastest tenth of its slices took counts.
 */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/medgedv.h>

#include "dv_qp.h"
#include "verbs_test.h"

enum {
	BATCH = 16,		/* pairs posted by one call */
	BATCHES = 8,		/* under way */
	SLOTS = BATCH * BATCHES,
	FLAG_LEN = 8,
	/* The thesis, section 3.1: host overhead of an operation; latency. */
	THESIS_POST_NS = 2000,
	THESIS_LATENCY_NS = 23000,
};

static uint32_t data_len = 64;
static uint64_t slice_ms = 4;
static uint64_t slices = 140;

static const struct mode {
	const char *name;
	bool ordinary;			/* not relaxed */
	bool drain;
	unsigned int data, flag;	/* send_flags */
} modes[] = {
	{ .name = "no fence" },
	{ .name = "backward, on the flag", .flag = MEDGE_SEND_FENCE_BACKWARD },
	{ .name = "forward, on the data", .data = MEDGE_SEND_FENCE_FORWARD },
	{ .name = "both, on the flag",
	  .flag = MEDGE_SEND_FENCE_BACKWARD | MEDGE_SEND_FENCE_FORWARD },
	{ .name = "IBV_SEND_FENCE, on the flag", .flag = IBV_SEND_FENCE },
	{ .name = "ordinary QP", .ordinary = true },
	{ .name = "drained at the sender", .drain = true },
};

enum { NO_FENCE, BACKWARD, DRAINED = ARRAY_LEN(modes) - 1 };

struct run {
	struct pair pair;
	uint8_t *source, *target;
	struct ibv_mr *smr, *tmr;
	uint64_t pairs;
	double *ns;		/* a pair took, by slice */
};

static struct run runs[ARRAY_LEN(modes)];
static uint32_t create_flags;

static struct ibv_qp *create_qp(struct side *side, struct ibv_qp_init_attr *init)
{
	return create_dv_qp(side, init, create_flags, 0);
}

static void run_make(struct run *r, const struct mode *m, struct side *a,
		     struct side *b)
{
	struct pair_options opt = {
		.send_wr = 2 * SLOTS,
		.inline_data = data_len <= 256 ? data_len : 0,
		.create_qp = create_qp,
	};
	size_t len = SLOTS * (data_len + FLAG_LEN);

	create_flags = m->ordinary ? 0 : MEDGEDV_QP_CREATE_RELAXED;
	pair_create(&r->pair, a, b, &opt);
	r->source = alloc_pages(len);
	r->target = alloc_pages(len);
	r->smr = must_reg(a, r->source, len, FULL_ACCESS);
	r->tmr = must_reg(b, r->target, len, FULL_ACCESS);
	memset(r->source, 0xa5, len);
	r->ns = calloc(slices, sizeof(*r->ns));
}

static void run_destroy(struct run *r)
{
	size_t slots = r->pairs < SLOTS ? r->pairs : SLOTS;
	size_t flags = SLOTS * data_len;

	if (memcmp(r->source, r->target, slots * data_len) ||
	    memcmp(r->source + flags, r->target + flags, slots * FLAG_LEN))
		die("what was written is not what is there");
	free(r->ns);
	pair_destroy(&r->pair);
	ibv_dereg_mr(r->smr);
	ibv_dereg_mr(r->tmr);
}

static void fill(struct run *r, uint64_t off, uint32_t len, unsigned int flags,
		 struct ibv_send_wr *wr, struct ibv_sge *sge)
{
	*sge = (struct ibv_sge) {
		.addr = (uintptr_t)(r->source + off),
		.length = len,
		.lkey = r->smr->lkey,
	};
	*wr = (struct ibv_send_wr) {
		.sg_list = sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = flags | (data_len <= 256 ? IBV_SEND_INLINE : 0),
		.wr.rdma.remote_addr = (uintptr_t)(r->target + off),
		.wr.rdma.rkey = r->tmr->rkey,
	};
}

/* The pair of slot @i: its data, then its flag. */
static void fill_pair(struct run *r, const struct mode *m, uint64_t i,
		      struct ibv_send_wr *wr, struct ibv_sge *sge)
{
	uint64_t slot = i % SLOTS;

	fill(r, slot * data_len, data_len, m->data, &wr[0], &sge[0]);
	fill(r, SLOTS * data_len + slot * FLAG_LEN, FLAG_LEN, m->flag, &wr[1],
	     &sge[1]);
	wr[0].next = &wr[1];
}

static void post(struct run *r, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;
	int ret;

	ret = ibv_post_send(r->pair.a.qp, wr, &bad);
	if (ret)
		die("ibv_post_send: %s", strerror(ret));
}

static void wait_one(struct run *r)
{
	struct ibv_wc wc;

	if (!wait_wc(r->pair.a.scq, &wc, PATIENCE_MS))
		die("nothing completed");
	if (wc.status != IBV_WC_SUCCESS)
		die("%s", ibv_wc_status_str(wc.status));
}

static void post_batch(struct run *r, const struct mode *m, uint64_t first)
{
	struct ibv_send_wr wr[2 * BATCH];
	struct ibv_sge sge[2 * BATCH];
	int i;

	for (i = 0; i < BATCH; i++) {
		fill_pair(r, m, first + i, &wr[2 * i], &sge[2 * i]);
		if (i)
			wr[2 * i - 1].next = &wr[2 * i];
	}
	wr[2 * BATCH - 1].send_flags |= IBV_SEND_SIGNALED;
	post(r, wr);
}

static uint64_t stream(struct run *r, const struct mode *m, uint64_t until)
{
	uint64_t posted = 0, done = 0;

	while (now_ns() < until) {
		if (posted - done == BATCHES) {
			wait_one(r);
			done++;
		}
		post_batch(r, m, posted++ * BATCH);
	}
	for (; done < posted; done++)
		wait_one(r);
	return posted * BATCH;
}

static uint64_t drain(struct run *r, const struct mode *m, uint64_t until)
{
	struct ibv_send_wr wr[2];
	struct ibv_sge sge[2];
	uint64_t n;

	for (n = 0; !n || now_ns() < until; n++) {
		fill_pair(r, m, r->pairs + n, wr, sge);
		wr[0].next = NULL;
		wr[0].send_flags |= IBV_SEND_SIGNALED;
		post(r, &wr[0]);
		wait_one(r);
		post(r, &wr[1]);
	}
	wr[1].send_flags |= IBV_SEND_SIGNALED;
	post(r, &wr[1]);
	wait_one(r);
	return n;
}

static void slice(struct run *r, const struct mode *m, uint64_t index)
{
	uint64_t began = now_ns(), until = began + slice_ms * 1000000, n;

	n = m->drain ? drain(r, m, until) : stream(r, m, until);
	r->ns[index] = (double)(now_ns() - began) / n;
	r->pairs += n;
}

static int by_size(const void *x, const void *y)
{
	const double *a = x, *b = y;

	return (*a > *b) - (*a < *b);
}

/* Others are at work on this machine, and can only make a slice slower. */
static double per_pair(const struct run *r)
{
	return r->ns[slices / 10];
}

static void report(void)
{
	double none = per_pair(&runs[NO_FENCE]);
	size_t i;

	printf("%-30s %12s %10s %8s %12s %10s\n", "writes of the pair", "pairs/s",
	       "ns/pair", "rate", "the fence's", "median ns");
	for (i = 0; i < ARRAY_LEN(modes); i++) {
		double ns = per_pair(&runs[i]);

		printf("%-30s %12.0f %10.0f %6.1f %% %9.0f ns %10.0f\n",
		       modes[i].name, 1e9 / ns, ns, 100 * none / ns, ns - none,
		       runs[i].ns[slices / 2]);
	}
	printf("The thesis measures no fence. An operation costs its poster %d ns, so a pair %d ns; a\n"
	       "drain is a round trip, of %d ns at least: a rate of %.0f %%.\n",
	       THESIS_POST_NS, 2 * THESIS_POST_NS, 2 * THESIS_LATENCY_NS,
	       100.0 * 2 * THESIS_POST_NS /
		       (2 * THESIS_POST_NS + 2 * THESIS_LATENCY_NS));
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "size", 1, NULL, 's' },
		{ "slices", 1, NULL, 'n' },
		{ "ms", 1, NULL, 'm' },
		{ "fenced", 1, NULL, 'f' },
		{ "drained", 1, NULL, 'd' },
		{},
	};
	double fenced_floor = 0, drained_ceiling = 1e9, fenced, drained;
	struct side a, b;
	size_t i;
	uint64_t n;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 's': data_len = strtoul(optarg, NULL, 0); break;
		case 'n': slices = strtoull(optarg, NULL, 0); break;
		case 'm': slice_ms = strtoull(optarg, NULL, 0); break;
		case 'f': fenced_floor = strtod(optarg, NULL); break;
		case 'd': drained_ceiling = strtod(optarg, NULL); break;
		default:
			fputs("usage: fence_bench [--size BYTES] [--slices N] [--ms MS] [--fenced PERCENT] [--drained PERCENT]\n"
			      "PERCENT of the rate without fences: the least with a backward fence, the most when drained\n",
			      stderr);
			return 2;
		}
	}
	if (!slices)
		die("no slices, no figures");
	side_open_both(&a, &b);
	for (i = 0; i < ARRAY_LEN(modes); i++)
		run_make(&runs[i], &modes[i], &a, &b);
	/* Each comes after each other: what one leaves behind hits all alike. */
	for (n = 0; n < slices; n++) {
		for (i = 0; i < ARRAY_LEN(modes); i++) {
			size_t k = (n % 2 ? ARRAY_LEN(modes) - 1 - i : i) + n / 2;

			k %= ARRAY_LEN(modes);
			slice(&runs[k], &modes[k], n);
		}
	}
	for (i = 0; i < ARRAY_LEN(modes); i++)
		qsort(runs[i].ns, slices, sizeof(*runs[i].ns), by_size);
	report();
	fenced = 100 * per_pair(&runs[NO_FENCE]) / per_pair(&runs[BACKWARD]);
	drained = 100 * per_pair(&runs[NO_FENCE]) / per_pair(&runs[DRAINED]);
	for (i = 0; i < ARRAY_LEN(modes); i++)
		run_destroy(&runs[i]);
	side_close(&a);
	side_close(&b);

	if (fenced < fenced_floor)
		die("the fenced rate is %.1f %% of the unfenced, less than %.0f %%",
		    fenced, fenced_floor);
	if (drained > drained_ceiling)
		die("the drained rate is %.1f %% of the unfenced: fences gain nothing",
		    drained);
	return 0;
}
