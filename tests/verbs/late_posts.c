/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Posts that the kernel may be told of late: who posts one after the other rings
 * for many at once; and whatever he does instead of polling, all is sent.
 *
 *	late_posts [--never|--slow]	never: nobody may be late, each post rings; slow: with all
 *					sanitizers, a post and its doorbell take as long as
 *					posts may wait. He may find himself asked to ring at
 *					once, or be looked for while he rings: looks are
 *					neither wanted nor amiss, and of a stream half of
 *					the posts ring, at most
 *
 * How often it rings hangs on the time that the host gives it: one of several tries
 * counts. That all arrives does not.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rdma/ib_user_verbs.h>

#include "verbs_test.h"

enum {
	SLOTS = 256,
	FIRST = 4,	/* doorbells, until he may be late: MEDGE_LATE_RINGS */
	STREAM = 200,
	FEW = 16,
	TRIES = 30,
};

struct line {
	struct pair pair;
	volatile uint64_t *source, *target;
	struct ibv_mr *smr, *tmr;
	uint64_t posts;
};

static struct side a, b;
static struct line one, two;
static struct ibv_comp_channel *channel;
static struct ibv_cq *cq;		/* for sends of both */

static enum ibv_qp_type type = IBV_QPT_RC;
static bool never, slow;

static struct ibv_qp *create_qp(struct side *side, struct ibv_qp_init_attr *init)
{
	if (side == &a)
		init->send_cq = cq;
	return ibv_create_qp(side->pd, init);
}

static void make(struct line *l, uint32_t send_wr)
{
	struct pair_options opt = {
		.send_wr = send_wr, .inline_data = sizeof(uint64_t),
		.create_qp = create_qp, .type = type,
		.access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
	};

	pair_create(&l->pair, &a, &b, &opt);
	l->source = alloc_pages(SLOTS * sizeof(uint64_t));
	l->target = alloc_pages(SLOTS * sizeof(uint64_t));
	l->smr = must_reg(&a, (void *)l->source, SLOTS * sizeof(uint64_t), FULL_ACCESS);
	l->tmr = must_reg(&b, (void *)l->target, SLOTS * sizeof(uint64_t), FULL_ACCESS);
	l->posts = 0;
}

static void unmake(struct line *l)
{
	if (l->pair.a.qp)
		pair_destroy(&l->pair);
	ibv_dereg_mr(l->smr);
	ibv_dereg_mr(l->tmr);
	munmap((void *)l->source, SLOTS * sizeof(uint64_t));
	munmap((void *)l->target, SLOTS * sizeof(uint64_t));
}

/* Writes the number of the post, from 1 on, into its slot. False: there is no room. */
static bool try_post(struct line *l, bool signaled)
{
	uint64_t at = l->posts % SLOTS;
	int ret;

	l->source[at] = l->posts + 1;
	ret = post_write(l->pair.a.qp, l->smr, l->tmr, at * sizeof(uint64_t),
			 sizeof(uint64_t),
			 IBV_SEND_INLINE | (signaled ? IBV_SEND_SIGNALED : 0));
	if (ret && ret != ENOMEM)
		die("ibv_post_send: %s", strerror(ret));
	l->posts += !ret;
	return !ret;
}

static void post(struct line *l, bool signaled)
{
	if (!try_post(l, signaled))
		die("ibv_post_send: no room");
}

static void arrive(struct line *l, const char *what)
{
	uint64_t at = (l->posts - 1) % SLOTS, began = now_ms();

	while (l->target[at] != l->posts)
		if (now_ms() - began > PATIENCE_MS)
			die("%s: post %llu has not arrived", what,
			    (unsigned long long)l->posts);
}

static void wait_one(void)
{
	struct ibv_wc wc;

	if (!wait_wc(cq, &wc, PATIENCE_MS) || wc.status != IBV_WC_SUCCESS)
		die("no completion");
}

/* Until the next one may be told of late, and is not told of. */
static void post_late(struct line *l)
{
	int i;

	for (i = 0; i <= FIRST; i++)
		post(l, false);
}

/* ---- what may be done behind it ---- */

static uint64_t stream(const char *what)
{
	uint32_t i;

	(void)what;
	for (i = 1; i <= STREAM; i++)
		post(&one, i == STREAM);
	wait_one();
	return slow ? STREAM / 2 : STREAM / 8 + FIRST;
}

/* Of a queue for less than what is worth a doorbell; he who finds it full tries again. */
static uint64_t fills_the_queue(const char *what)
{
	uint64_t began = now_ms();

	while (one.posts < STREAM) {
		if (!try_post(&one, one.posts % FEW == FEW - 1) &&
		    now_ms() - began > PATIENCE_MS)
			die("%s: post %llu has no room", what,
			    (unsigned long long)one.posts);
	}
	/* That he gets on is what counts. */
	return STREAM;
}

static uint64_t polls(const char *what)
{
	struct ibv_wc wc;
	int i;

	for (i = 0; i <= FIRST; i++) {
		post(&one, false);
		post(&two, false);
	}
	if (ibv_poll_cq(cq, 1, &wc))
		die("%s: a completion that nobody asked for", what);
	return 2 * (FIRST + 1);
}

static uint64_t polls_for_receives(const char *what)
{
	struct ibv_wc wc;

	post_late(&one);
	if (ibv_poll_cq(one.pair.a.rcq, 1, &wc))
		die("%s: a completion of nothing", what);
	return FIRST + 1;
}

static uint64_t looks_at_memory(const char *what)
{
	int i;

	post_late(&one);
	arrive(&one, what);
	/* It has been found once, by nobody's doorbell: from now on he rings at once. */
	for (i = 0; i < 5; i++) {
		post(&one, false);
		arrive(&one, what);
	}
	return FIRST + 5;
}

static uint64_t waits_for_an_event(const char *what)
{
	struct ibv_cq *event_cq;
	struct ibv_wc wc;
	void *context;

	post_late(&one);
	post(&one, true);
	if (ibv_req_notify_cq(cq, 0))
		die("%s: no notification", what);
	/* Of what is there already, nothing is told. */
	if (ibv_poll_cq(cq, 1, &wc) == 1)
		return FIRST + 2;
	if (ibv_get_cq_event(channel, &event_cq, &context))
		die("%s: no event", what);
	ibv_ack_cq_events(event_cq, 1);
	wait_one();
	return FIRST + 1;
}

static uint64_t posts_between_polls(const char *what)
{
	struct ibv_poll_cq_attr attr = {};
	struct ibv_cq_ex *ex = (struct ibv_cq_ex *)cq;

	post(&one, true);
	while (ibv_start_poll(ex, &attr))
		;
	post_late(&one);
	if (end_to_state(&one.pair.a, IBV_QPS_SQD))
		die("%s: not to SQD", what);
	ibv_end_poll(ex);
	return FIRST + 2;
}

static uint64_t changes_the_state(const char *what)
{
	post_late(&one);
	if (end_to_state(&one.pair.a, IBV_QPS_SQD))
		die("%s: not to SQD", what);
	return FIRST + 1;
}

static uint64_t destroys_the_qp(const char *what)
{
	(void)what;
	post_late(&one);
	pair_destroy(&one.pair);
	one.pair.a.qp = NULL;
	return FIRST + 1;
}

static const struct act {
	const char *what;
	uint64_t (*act)(const char *what);	/* Return: doorbells at most */
	uint32_t send_wr;			/* or SLOTS */
	bool extended;				/* CQ */
	bool looked;				/* by the kernel, at least once */
	bool may_look;				/* else it does not */
} acts[] = {
	{ .what = "posts on", .act = stream, .may_look = true },
	{ .what = "fills the queue", .act = fills_the_queue, .send_wr = FEW,
	  .may_look = true },
	{ .what = "polls", .act = polls },
	{ .what = "polls for receives", .act = polls_for_receives },
	{ .what = "looks at memory", .act = looks_at_memory, .looked = true,
	  .may_look = true },
	{ .what = "waits for an event", .act = waits_for_an_event },
	{ .what = "posts between start and end of a poll",
	  .act = posts_between_polls, .extended = true },
	{ .what = "changes the state", .act = changes_the_state },
	{ .what = "destroys the QP", .act = destroys_the_qp },
};

static bool as_expected(const struct act *act)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = 2 * SLOTS };
	uint64_t most, rang, looks;

	channel = ibv_create_comp_channel(a.ctx);
	attr.channel = channel;
	cq = act->extended ? ibv_cq_ex_to_cq(ibv_create_cq_ex(a.ctx, &attr)) :
			     ibv_create_cq(a.ctx, 2 * SLOTS, NULL, channel, 0);
	if (!cq)
		die("ibv_create_cq");
	make(&one, act->send_wr ?: SLOTS);
	make(&two, SLOTS);
	rang = side_counter(&a, "doorbells");
	looks = side_counter(&a, "late_looks");
	most = act->act(act->what);
	arrive(&one, act->what);
	if (two.posts)
		arrive(&two, act->what);
	rang = side_counter(&a, "doorbells") - rang;
	looks = side_counter(&a, "late_looks") - looks;
	printf("%s, %-36s %3llu posts, %3llu doorbells, %llu looks\n",
	       type == IBV_QPT_UC ? "UC" : "RC", act->what,
	       (unsigned long long)(one.posts + two.posts),
	       (unsigned long long)rang, (unsigned long long)looks);
	if (never && (rang != one.posts + two.posts || looks))
		die("who must ring at once did not");
	unmake(&one);
	unmake(&two);
	two.posts = 0;
	if (ibv_destroy_cq(cq) || ibv_destroy_comp_channel(channel))
		die("something is left in the CQ");
	return never || (slow && act->looked) ||
	       (rang <= most &&
		(slow || (looks ? act->may_look : !act->looked)));
}

/* ---- QPs that have no send queue, and one that has no CQ for it either ---- */

static struct ibv_xrcd *xrcd;

static struct ibv_qp *create_xrc(struct side *side, struct ibv_qp_init_attr *init)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_XRC_SEND,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = side->pd,
		.send_cq = init->send_cq,
		.cap = { .max_send_wr = 1, .max_send_sge = 1 },
	};
	struct ibv_qp_init_attr_ex target = {
		.qp_type = IBV_QPT_XRC_RECV,
		.comp_mask = IBV_QP_INIT_ATTR_XRCD,
		.xrcd = xrcd,
	};

	return ibv_create_qp_ex(side->ctx, side == &a ? &attr : &target);
}

static struct ibv_qp *create_queueless(struct side *side,
				       struct ibv_qp_init_attr *init)
{
	init->cap.max_send_wr = 0;
	init->cap.max_recv_wr = 0;
	return ibv_create_qp(side->pd, init);
}

/* No library does it; a program may. */
static void ring_often(struct ibv_qp *qp, uint32_t command, uint32_t wqe_size)
{
	struct ib_uverbs_post_send_resp resp;
	/* That of receives looks the same. */
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_post_send cmd;
	} __attribute__((packed)) ring = {
		.hdr.command = command,
		.hdr.in_words = sizeof(ring) / 4,
		.hdr.out_words = sizeof(resp) / 4,
		.cmd.response = (uintptr_t)&resp,
		.cmd.qp_handle = qp->handle,
		.cmd.wqe_size = wqe_size,
	};
	int i;

	for (i = 0; i < 2 * FIRST; i++)
		if (write(b.ctx->cmd_fd, &ring, sizeof(ring)) != sizeof(ring))
			die("a doorbell of no queue: %s", strerror(errno));
}

static void ring_of_a_target(void)
{
	struct pair_options opt = { .create_qp = create_xrc };
	struct pair pair;

	xrcd = xrcd_open(&b);
	if (!xrcd)
		die("ibv_open_xrcd");
	pair_create(&pair, &a, &b, &opt);
	ring_often(pair.b.qp, IB_USER_VERBS_CMD_POST_SEND,
		   sizeof(struct ib_uverbs_send_wr));
	pair_destroy(&pair);
	if (ibv_close_xrcd(xrcd))
		die("ibv_close_xrcd");
}

static void ring_of_no_queue(enum ibv_qp_type of)
{
	struct pair_options opt = { .create_qp = create_queueless, .type = of };
	struct pair pair;

	pair_create(&pair, &a, &b, &opt);
	ring_often(pair.b.qp, IB_USER_VERBS_CMD_POST_SEND,
		   sizeof(struct ib_uverbs_send_wr));
	ring_often(pair.b.qp, IB_USER_VERBS_CMD_POST_RECV,
		   sizeof(struct ib_uverbs_recv_wr));
	pair_destroy(&pair);
}

static void do_all(enum ibv_qp_type of)
{
	size_t i;
	int try;

	type = of;
	for (i = 0; i < ARRAY_LEN(acts); i++) {
		for (try = 1; !as_expected(&acts[i]); try++)
			if (try == TRIES)
				die("%s: not as expected in %d tries",
				    acts[i].what, TRIES);
	}
}

int main(int argc, char **argv)
{
	never = argc == 2 && !strcmp(argv[1], "--never");
	slow = argc == 2 && !strcmp(argv[1], "--slow");
	if (argc > 2 || (argc == 2 && !never && !slow)) {
		fputs("usage: late_posts [--never|--slow]\n", stderr);
		return 2;
	}
	side_open_both(&a, &b);
	ring_of_a_target();
	ring_of_no_queue(IBV_QPT_RC);
	ring_of_no_queue(IBV_QPT_UC);
	do_all(IBV_QPT_RC);
	do_all(IBV_QPT_UC);
	side_close(&a);
	side_close(&b);
	puts("all passed");
	return 0;
}
