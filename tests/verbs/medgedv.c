/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Direct verbs: each function of medgedv.h, what it refuses, and what fences and
 * relaxed QPs do to the order in which writes appear. For the order the script
 * makes the rails reorder frames; then a relaxed QP must be seen to do so, too,
 * and whatever is fenced must not.
 */
#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/medgedv.h>

#include "dv_qp.h"
#include "verbs_test.h"

enum {
	WORDS = 12,		/* writes of a round */
	WORD_STEP = 64,		/* bytes from one to the next */
	MANY_RAILS = 64,
};

static uint64_t rounds = 60;

static void expect(bool ok, const char *what)
{
	if (!ok)
		die("%s", what);
}

static void expect_errno(bool failed, int is, int wanted, const char *what)
{
	if (!failed)
		die("%s was not refused", what);
	if (is != wanted)
		die("%s: %s instead of %s", what, strerror(is),
		    strerror(wanted));
}

/* ---- making QPs ---- */

static uint32_t create_flags;
static uint64_t send_ops;

static struct ibv_qp *create_dv(struct side *side, struct ibv_qp_init_attr *init)
{
	return create_dv_qp(side, init, create_flags, send_ops);
}

static void refused(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr,
		    struct medgedv_qp_init_attr *dv, uint32_t len, int wanted)
{
	struct ibv_qp *qp;

	errno = 0;
	qp = medgedv_create_qp(ctx, attr, dv, len);
	expect_errno(!qp, errno, wanted, "medgedv_create_qp");
}

static void test_create_qp(struct side *a)
{
	struct {
		struct medgedv_qp_init_attr attr;
		uint64_t later;
	} longer = {};
	struct medgedv_qp_init_attr dv = {};
	struct ibv_qp_init_attr_ex attr = {
		.cap = { .max_send_wr = 1, .max_send_sge = 1 },
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = a->pd,
	};
	struct medgedv_qp_attr is;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	int i;

	cq = ibv_create_cq(a->ctx, 16, NULL, NULL, 0);
	attr.send_cq = cq;
	attr.recv_cq = cq;

	refused(a->ctx, &attr, NULL, sizeof(dv), EINVAL);
	refused(a->ctx, &attr, &dv, sizeof(dv) - 1, EINVAL);
	dv.comp_mask = 1;
	refused(a->ctx, &attr, &dv, sizeof(dv), EINVAL);
	dv.comp_mask = 0;
	dv.create_flags = 1u << 31;
	refused(a->ctx, &attr, &dv, sizeof(dv), EINVAL);
	dv.create_flags = 0;
	dv.reserved = 1;
	refused(a->ctx, &attr, &dv, sizeof(dv), EINVAL);
	longer.later = 1;
	refused(a->ctx, &attr, &longer.attr, sizeof(longer), EINVAL);

	longer.later = 0;
	for (i = 0; i < 2; i++) {
		longer.attr.create_flags = i ? MEDGEDV_QP_CREATE_RELAXED : 0;
		qp = medgedv_create_qp(a->ctx, &attr, &longer.attr,
				       sizeof(longer));
		if (!qp)
			die("medgedv_create_qp: %s", strerror(errno));
		if (medgedv_query_qp(qp, &is, sizeof(is)))
			die("medgedv_query_qp failed");
		expect(!!(is.flags & MEDGEDV_QP_RELAXED) == i,
		       "a QP is relaxed that was not made so, or not");
		expect(!ibv_destroy_qp(qp), "ibv_destroy_qp failed");
	}
	qp = ibv_create_qp_ex(a->ctx, &attr);
	expect(qp && !medgedv_query_qp(qp, &is, sizeof(is)) && !is.flags,
	       "an ordinary QP has flags, or cannot be asked");
	ibv_destroy_qp(qp);
	ibv_destroy_cq(cq);
	puts("medgedv_create_qp: ok");
}

/* ---- traffic ---- */

struct target {
	struct pair pair;
	uint8_t *source, *target;
	struct ibv_mr *smr, *tmr;
};

static void target_make(struct target *t, struct side *a, struct side *b,
			int access, bool dv)
{
	struct pair_options opt = { .send_wr = 64, .recv_wr = 16 };

	if (dv)
		opt.create_qp = create_dv;
	pair_create(&t->pair, a, b, &opt);
	t->source = alloc_pages(WORDS * WORD_STEP);
	t->target = alloc_pages(WORDS * WORD_STEP);
	t->smr = must_reg(a, t->source, WORDS * WORD_STEP, FULL_ACCESS);
	t->tmr = must_reg(b, t->target, WORDS * WORD_STEP, FULL_ACCESS | access);
}

static void target_destroy(struct target *t)
{
	pair_destroy(&t->pair);
	ibv_dereg_mr(t->smr);
	ibv_dereg_mr(t->tmr);
}

static void expect_wc(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	if (!wait_wc(cq, &wc, PATIENCE_MS))
		die("nothing completed");
	if (wc.status != IBV_WC_SUCCESS)
		die("%s", ibv_wc_status_str(wc.status));
}

static void plain_write(struct target *t, int i, unsigned int flags)
{
	int ret = post_write(t->pair.a.qp, t->smr, t->tmr, i * WORD_STEP, 8,
			     flags);

	if (ret)
		die("ibv_post_send: %s", strerror(ret));
}

static void wr_write(struct target *t, int i, unsigned int flags)
{
	struct ibv_qp_ex *qpx = ibv_qp_to_qp_ex(t->pair.a.qp);
	int ret;

	ibv_wr_start(qpx);
	qpx->wr_id = i;
	qpx->wr_flags = flags;
	ibv_wr_rdma_write(qpx, t->tmr->rkey,
			  (uintptr_t)(t->target + i * WORD_STEP));
	ibv_wr_set_sge(qpx, t->smr->lkey,
		       (uintptr_t)(t->source + i * WORD_STEP), 8);
	ret = ibv_wr_complete(qpx);
	if (ret)
		die("ibv_wr_complete: %s", strerror(ret));
}

/* ---- what can be asked ---- */

static void test_query_device(struct side *a)
{
	struct {
		struct medgedv_device_attr attr;
		uint64_t later;
	} is;
	size_t len = sizeof(is.attr);

	expect_errno(true, medgedv_query_device(a->ctx, &is.attr, len - 1),
		     EINVAL, "medgedv_query_device with too little room");
	memset(&is, 0xff, sizeof(is));
	if (medgedv_query_device(a->ctx, &is.attr, sizeof(is)))
		die("medgedv_query_device failed");
	expect(!is.later && !is.attr.comp_mask && !is.attr.reserved,
	       "medgedv_query_device left something that it does not know");
	expect(is.attr.caps == (MEDGEDV_DEVICE_CAP_FENCES |
				MEDGEDV_DEVICE_CAP_RELAXED_QP |
				MEDGEDV_DEVICE_CAP_POLLED_QP), "caps");
	expect(is.attr.num_rails == strtoul(getenv("RAILS"), NULL, 0),
	       "num_rails");
	expect(is.attr.max_rails >= is.attr.num_rails, "max_rails");
	expect(is.attr.window && is.attr.op_window, "windows");
	expect(is.attr.frame_payload &&
	       is.attr.frame_payload < strtoul(getenv("MTU"), NULL, 0),
	       "frame_payload");
	expect(is.attr.superframe_payload >= is.attr.frame_payload,
	       "superframe_payload");
	expect(is.attr.ethertype >= 0x600 && is.attr.wire_version,
	       "the wire's constants");
	expect(is.attr.ack_frames && is.attr.ack_delay_us, "acknowledgements");
	printf("medgedv_query_device: ok: %u of %u rails, window %u frames of %u bytes\n",
	       is.attr.num_rails, is.attr.max_rails, is.attr.window,
	       is.attr.frame_payload);
}

struct rail {
	struct medgedv_rail_attr attr;
	uint64_t later;
};

static uint32_t read_rails(struct side *a, struct rail *rails)
{
	ssize_t n;

	memset(rails, 0xff, MANY_RAILS * sizeof(*rails));
	n = medgedv_query_rails(a->ctx, &rails[0].attr, MANY_RAILS,
				sizeof(*rails));
	if (n < 0)
		die("medgedv_query_rails: %s", strerror(-n));
	return n;
}

static void test_query_rails(struct side *a, struct side *b)
{
	struct medgedv_rail_attr one[2];
	struct rail before[MANY_RAILS], after[MANY_RAILS];
	uint64_t frames = 0, bytes = 0, received = 0;
	uint32_t n, i, k;
	struct target t;

	expect_errno(true, -medgedv_query_rails(a->ctx, one, 1,
						sizeof(*one) - 1),
		     EINVAL, "medgedv_query_rails with too little room");
	n = read_rails(a, before);
	expect(n == strtoul(getenv("RAILS"), NULL, 0), "number of rails");
	memset(one, 0x5a, sizeof(one));
	expect(medgedv_query_rails(a->ctx, one, 1, sizeof(*one)) == n,
	       "number of rails when there is room for one");
	expect(!strcmp(one[0].name, before[0].attr.name), "the first rail");
	expect(one[1].mtu == 0x5a5a5a5a, "more was stored than there is room for");
	expect(medgedv_query_rails(a->ctx, NULL, 0, sizeof(*one)) == n,
	       "number of rails when there is no room");

	target_make(&t, a, b, 0, false);
	for (i = 0; i < 1000; i++) {
		plain_write(&t, i % WORDS, IBV_SEND_SIGNALED);
		expect_wc(t.pair.a.scq);
	}
	target_destroy(&t);
	expect(read_rails(a, after) == n, "number of rails, again");
	for (i = 0; i < n; i++) {
		const struct medgedv_rail_attr *r = &after[i].attr;

		expect(!after[i].later && !r->comp_mask,
		       "medgedv_query_rails left something that it does not know");
		expect(r->index == before[i].attr.index &&
		       r->ifindex == before[i].attr.ifindex, "a rail's identity");
		for (k = 0; k < i; k++)
			expect(r->index != after[k].attr.index,
			       "an index of two rails");
		expect(r->name[0] && strnlen(r->name, sizeof(r->name)) <
		       sizeof(r->name), "a rail's name");
		expect(r->flags == MEDGEDV_RAIL_UP && r->weight, "a rail is up");
		expect(r->mtu == strtoul(getenv("MTU"), NULL, 0), "a rail's MTU");
		expect(r->tx_errors == before[i].attr.tx_errors, "errors");
		frames += r->tx_frames - before[i].attr.tx_frames;
		bytes += r->tx_bytes - before[i].attr.tx_bytes;
		received += r->rx_frames - before[i].attr.rx_frames;
		printf("  rail %u, %s: %llu frames, %llu bytes sent\n", r->index,
		       r->name, (unsigned long long)r->tx_frames,
		       (unsigned long long)r->tx_bytes);
	}
	/* One at a time: a frame each, and an ack each. */
	expect(frames >= 1000 && frames < 2000, "frames sent");
	expect(bytes >= frames * 64 && bytes < frames * 200, "bytes sent");
	expect(received >= 1000 && received < 2100, "acks received");
	puts("medgedv_query_rails: ok");
}

static void post_send_imm(struct end *end)
{
	struct ibv_send_wr *bad, wr = {
		.opcode = IBV_WR_SEND_WITH_IMM,
		.send_flags = IBV_SEND_SIGNALED,
	};

	if (ibv_post_send(end->qp, &wr, &bad))
		die("ibv_post_send failed");
}

static void post_recv(struct end *end)
{
	struct ibv_recv_wr *bad, wr = {};

	if (ibv_post_recv(end->qp, &wr, &bad))
		die("ibv_post_recv failed");
}

static void must_query(struct ibv_qp *qp, struct medgedv_qp_attr *is)
{
	int ret = medgedv_query_qp(qp, is, sizeof(*is));

	if (ret)
		die("medgedv_query_qp: %s", strerror(ret));
}

static void wait_flag(struct ibv_qp *qp, uint32_t flag, const char *what)
{
	uint64_t until = now_ms() + PATIENCE_MS;
	struct medgedv_qp_attr is;

	do {
		must_query(qp, &is);
		if (is.flags & flag)
			return;
	} while (now_ms() < until);
	die("%s is never said", what);
}

static void test_query_qp(struct side *a, struct side *b)
{
	struct {
		struct medgedv_qp_attr attr;
		uint64_t later;
	} is;
	struct pair_options opt = {};
	struct medgedv_qp_attr at_b;
	struct target t;
	struct end end;
	int i;

	expect(!end_create(&end, a, &opt), "ibv_create_qp failed");
	expect_errno(true, medgedv_query_qp(end.qp, &is.attr,
					    sizeof(is.attr) - 1),
		     EINVAL, "medgedv_query_qp with too little room");
	memset(&is, 0xff, sizeof(is));
	expect(!medgedv_query_qp(end.qp, &is.attr, sizeof(is)),
	       "medgedv_query_qp failed");
	for (i = 0; i < (int)sizeof(is); i++)
		expect(!((uint8_t *)&is)[i], "a QP that is not connected has a state");
	end_destroy(&end);

	target_make(&t, a, b, 0, false);
	for (i = 0; i < 100; i++) {
		plain_write(&t, 0, IBV_SEND_SIGNALED);
		expect_wc(t.pair.a.scq);
	}
	must_query(t.pair.a.qp, &is.attr);
	must_query(t.pair.b.qp, &at_b);
	expect(is.attr.flags == MEDGEDV_QP_CONNECTED &&
	       at_b.flags == MEDGEDV_QP_CONNECTED, "flags");
	expect(is.attr.tx_frames - is.attr.retransmits == 100,
	       "frames sent are those of 100 writes");
	expect(at_b.rx_frames == 100 && !at_b.tx_frames, "frames received");
	expect(is.attr.tx_bytes >= 800 && at_b.rx_bytes == 800, "bytes");
	expect(!is.attr.ops_outstanding && !is.attr.ops_waiting &&
	       !is.attr.frames_outstanding && !at_b.frames_held,
	       "nothing is under way");
	expect(is.attr.frame_payload == at_b.frame_payload &&
	       is.attr.frame_payload, "frame_payload");

	post_send_imm(&t.pair.a);
	wait_flag(t.pair.b.qp, MEDGEDV_QP_RNR, "that a receive is missing here");
	wait_flag(t.pair.a.qp, MEDGEDV_QP_RNR_WAIT, "that one is missing there");
	must_query(t.pair.a.qp, &is.attr);
	expect(is.attr.ops_outstanding == 1, "the SEND is outstanding");
	post_recv(&t.pair.b);
	expect_wc(t.pair.a.scq);
	must_query(t.pair.b.qp, &at_b);
	expect(!(at_b.flags & MEDGEDV_QP_RNR), "no receive is missing any more");
	target_destroy(&t);
	puts("medgedv_query_qp: ok");
}

/* Its handle in the kernel is another object than the QP itself. */
static void test_query_xrc_target(struct side *a)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_XRC_RECV,
		.comp_mask = IBV_QP_INIT_ATTR_XRCD,
	};
	struct medgedv_qp_attr is;
	struct ibv_qp *qp;

	attr.xrcd = xrcd_open(a);
	if (!attr.xrcd)
		die("ibv_open_xrcd: %s", strerror(errno));
	qp = ibv_create_qp_ex(a->ctx, &attr);
	if (!qp)
		die("an XRC target: %s", strerror(errno));
	memset(&is, 0xff, sizeof(is));
	must_query(qp, &is);
	expect(!is.flags && !is.frame_payload && !is.tx_frames && !is.rx_frames,
	       "an XRC target that is not connected has a state");
	expect(!ibv_destroy_qp(qp) && !ibv_close_xrcd(attr.xrcd),
	       "an XRC target stays");
	puts("medgedv_query_qp of an XRC target: ok");
}

/* ---- a device of others ---- */

static void test_is_supported(struct side *a, const char *other)
{
	struct medgedv_qp_init_attr dv = {};
	struct ibv_qp_init_attr_ex attr = {};
	struct medgedv_device_attr device;
	struct medgedv_rail_attr rail;
	struct medgedv_qp_attr qp;
	struct pair_options opt = {};
	struct side o;
	struct end end;

	expect(medgedv_is_supported(a->ctx->device), "medge is not supported");
	if (!other) {
		puts("medgedv_is_supported: ok, but no other device to ask about");
		return;
	}
	side_open(&o, other, "0");
	expect(!medgedv_is_supported(o.ctx->device), "another driver's device is");
	refused(o.ctx, &attr, &dv, sizeof(dv), EOPNOTSUPP);
	expect_errno(true, medgedv_query_device(o.ctx, &device, sizeof(device)),
		     EOPNOTSUPP, "medgedv_query_device");
	expect_errno(true, -medgedv_query_rails(o.ctx, &rail, 1, sizeof(rail)),
		     EOPNOTSUPP, "medgedv_query_rails");
	expect(!end_create(&end, &o, &opt), "another driver has no QP");
	expect_errno(true, medgedv_query_qp(end.qp, &qp, sizeof(qp)),
		     EOPNOTSUPP, "medgedv_query_qp");
	end_destroy(&end);
	side_close(&o);
	puts("medgedv_is_supported: ok");
}

/* ---- order ---- */

/* What was seen of the order of one round's writes. */
struct seen {
	uint64_t overtaken;	/* a write appeared before one before it */
	uint64_t last_early;	/* the last before another */
	uint64_t first_late;	/* another before the first */
};

/*
 * From the last to the first: what is there when a later one was seen there has
 * been there before it, or is now.
 */
static bool look(struct target *t, uint64_t round, struct seen *seen)
{
	bool there[WORDS], all = true, later = false;
	int i;

	for (i = WORDS - 1; i >= 0; i--) {
		_Atomic(uint64_t) *word = (void *)(t->target + i * WORD_STEP);

		there[i] = atomic_load(word) == round;
		all = all && there[i];
		if (later && !there[i]) {
			seen->overtaken++;
			seen->last_early += there[WORDS - 1];
			seen->first_late += !i;
		}
		later = later || there[i];
	}
	return all;
}

static void run_round(struct target *t, uint64_t round, unsigned int first,
		      unsigned int last, struct seen *seen,
		      void (*write_one)(struct target *, int, unsigned int))
{
	uint64_t until = now_ms() + PATIENCE_MS;
	int i;

	for (i = 0; i < WORDS; i++)
		*(uint64_t *)(t->source + i * WORD_STEP) = round;
	for (i = 0; i < WORDS; i++) {
		unsigned int flags = 0;

		if (i == 0)
			flags |= first;
		if (i == WORDS - 1)
			flags |= last | IBV_SEND_SIGNALED;
		write_one(t, i, flags);
		look(t, round, seen);
	}
	while (!look(t, round, seen)) {
		if (now_ms() > until)
			die("a write never arrived");
		sched_yield();
	}
	expect_wc(t->pair.a.scq);
}

static const struct order_case {
	const char *name;
	bool relaxed_qp, relaxed_memory;
	unsigned int first, last;
	bool ordered, last_is_last, first_is_first;
} order_cases[] = {
	{ .name = "ordinary QP", .ordered = true },
	{ .name = "ordinary QP, relaxed memory", .relaxed_memory = true },
	{ .name = "relaxed QP", .relaxed_qp = true },
	{ .name = "relaxed QP, backward fence", .relaxed_qp = true,
	  .last = MEDGE_SEND_FENCE_BACKWARD, .last_is_last = true },
	{ .name = "relaxed QP, forward fence", .relaxed_qp = true,
	  .first = MEDGE_SEND_FENCE_FORWARD, .first_is_first = true },
	{ .name = "relaxed QP and memory, both fences", .relaxed_qp = true,
	  .relaxed_memory = true, .first = MEDGE_SEND_FENCE_FORWARD,
	  .last = MEDGE_SEND_FENCE_BACKWARD, .last_is_last = true,
	  .first_is_first = true },
	{ .name = "relaxed memory, both fences", .relaxed_memory = true,
	  .first = MEDGE_SEND_FENCE_FORWARD,
	  .last = MEDGE_SEND_FENCE_BACKWARD, .last_is_last = true,
	  .first_is_first = true },
};

static void test_order_case(struct side *a, struct side *b,
			    const struct order_case *oc, bool wr)
{
	struct seen seen = {};
	struct target t;
	uint64_t i;

	create_flags = oc->relaxed_qp ? MEDGEDV_QP_CREATE_RELAXED : 0;
	send_ops = wr ? IBV_QP_EX_WITH_RDMA_WRITE : 0;
	target_make(&t, a, b,
		    oc->relaxed_memory ? IBV_ACCESS_RELAXED_ORDERING : 0, true);
	for (i = 1; i <= rounds; i++)
		run_round(&t, i, oc->first, oc->last, &seen,
			  wr ? wr_write : plain_write);
	target_destroy(&t);
	create_flags = 0;
	send_ops = 0;

	printf("  %-36s %-13s overtaken %5llu, last early %4llu, first late %4llu\n",
	       oc->name, wr ? "ibv_wr_*" : "ibv_post_send",
	       (unsigned long long)seen.overtaken,
	       (unsigned long long)seen.last_early,
	       (unsigned long long)seen.first_late);
	fflush(stdout);
	if (oc->ordered)
		expect(!seen.overtaken, "a write overtook another");
	else
		expect(seen.overtaken, "nothing was reordered: this shows nothing");
	if (oc->last_is_last)
		expect(!seen.last_early, "a backward fence was overtaken by what it fences");
	else if (!oc->ordered)
		expect(seen.last_early, "the last write was never early: this shows nothing");
	if (oc->first_is_first)
		expect(!seen.first_late, "what a forward fence fences overtook it");
	else if (!oc->ordered)
		expect(seen.first_late, "the first write was never late: this shows nothing");
}

/* Has the provider ibv_wr_*() yet? */
static bool has_wr(struct side *a)
{
	struct pair_options opt = { .create_qp = create_dv };
	struct end end;
	int ret;

	send_ops = IBV_QP_EX_WITH_RDMA_WRITE;
	ret = end_create(&end, a, &opt);
	send_ops = 0;
	end_destroy(&end);
	return !ret;
}

static void test_order(struct side *a, struct side *b)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(order_cases); i++)
		test_order_case(a, b, &order_cases[i], false);
	if (!has_wr(a)) {
		puts("fences: ok, but there is no ibv_wr_*() to try");
		return;
	}
	for (i = 0; i < ARRAY_LEN(order_cases); i++)
		test_order_case(a, b, &order_cases[i], true);
	puts("fences: ok");
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "order", 0, NULL, 'o' },
		{ "other", 1, NULL, 'd' },
		{ "rounds", 1, NULL, 'r' },
		{},
	};
	const char *other = NULL;
	bool order = false;
	struct side a, b;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 'o': order = true; break;
		case 'd': other = optarg; break;
		case 'r': rounds = strtoull(optarg, NULL, 0); break;
		default:
			fputs("usage: medgedv [--other DEVICE] | medgedv --order [--rounds N]\n",
			      stderr);
			return 2;
		}
	}
	side_open_both(&a, &b);
	if (order) {
		test_order(&a, &b);
	} else {
		test_is_supported(&a, other);
		test_create_qp(&a);
		test_query_device(&a);
		test_query_rails(&a, &b);
		test_query_qp(&a, &b);
		test_query_xrc_target(&a);
	}
	side_close(&a);
	side_close(&b);
	return 0;
}
