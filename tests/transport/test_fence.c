/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Fences, one by one: an early frame is lost once, and what may overtake it
 * must, what may not must not. (host.c checks the contract at every byte; here
 * the freedom that it leaves is shown to be used.)
 */
#include "direct.h"

enum { SEG = 1024 };

/* When each of side 0's ops got its first byte, and was performed. */
struct order {
	u32 lose_op;		/* index, its first transmission is lost */
	u64 placed_at[16];
	u64 performed_at[16];
	u64 first_tx[16];
	struct pair p;
	struct watch w;
};

static struct order o;

static enum net_verdict lose_once(struct pair *p, const struct seen *seen,
				  u64 *delay, void *user)
{
	u32 i = seen->f.op.op_no;

	if (seen->side || seen->f.type != MEDGE_FRAME_DATA ||
	    seen->f.op.opcode == MEDGE_OP_RESPONSE)
		return NET_PASS;
	if (!o.first_tx[i])
		o.first_tx[i] = pair_now(p) + 1;
	return seen->first && i == o.lose_op ? NET_DROP : NET_PASS;
}

static void start(u32 lose_op)
{
	struct pair_params params;
	u32 i;

	memset(&o, 0, sizeof(o));
	o.lose_op = lose_op;
	pair_params_default(&params, 2);
	/* No frame holds two ops, so that each can be lost alone. */
	params.cfg[0].seg_len = params.cfg[1].seg_len = 64;
	pair_init(&o.p, &params);
	watch_frames(&o.w, &o.p, lose_once, NULL);
	for (i = 0; i < 16; i++)
		host_post_recv(&o.p.host[1], 4 * SEG, true);
}

static void finish(void)
{
	struct host *h = &o.p.host[0];
	bool all = false;
	u32 i;

	pair_poll(&o.p, 0);
	while (!all) {
		CHECK(pair_now(&o.p) < SEC);
		all = pair_run(&o.p, pair_now(&o.p) + USEC);
		for (i = 0; i < h->nops; i++) {
			if (h->ops[i].placed && !o.placed_at[i])
				o.placed_at[i] = pair_now(&o.p);
			if (h->ops[i].performed && !o.performed_at[i])
				o.performed_at[i] = pair_now(&o.p);
		}
	}
	pair_finish(&o.p, SEC);
	pair_free(&o.p);
}

static void post(struct medge_request req)
{
	host_post(&o.p.host[0], &req);
}

static void write(enum host_region region, u8 flags)
{
	post(req_write(region, o.p.host[0].nops * SEG, 100, flags));
}

static bool overtook(u32 later, u32 earlier)
{
	return o.placed_at[later] < o.performed_at[earlier];
}

static void strict__waits_for_all_before(void)
{
	start(0);
	write(REGION_STRICT, MEDGE_OP_STRICT);
	write(REGION_STRICT, MEDGE_OP_STRICT);
	finish();
	CHECK(!overtook(1, 0));
}

static void strict__is_free_in_relaxed_memory(void)
{
	start(0);
	write(REGION_RELAXED, MEDGE_OP_STRICT);
	write(REGION_RELAXED, MEDGE_OP_STRICT);
	finish();
	CHECK(overtook(1, 0));
	CHECK(o.performed_at[1] >= o.performed_at[0]);
}

static void strict__waits_for_relaxed_ones_too(void)
{
	start(0);
	write(REGION_RELAXED, MEDGE_OP_STRICT);
	write(REGION_STRICT, MEDGE_OP_STRICT);
	write(REGION_RELAXED, MEDGE_OP_STRICT);
	finish();
	CHECK(!overtook(1, 0));
	CHECK(overtook(2, 0));
}

static void no_mark__is_free_in_strict_memory(void)
{
	start(0);
	write(REGION_STRICT, 0);
	write(REGION_STRICT, 0);
	finish();
	CHECK(overtook(1, 0));
}

static void backward__binds_in_relaxed_memory(void)
{
	start(0);
	write(REGION_RELAXED, 0);
	write(REGION_RELAXED, 0);
	write(REGION_RELAXED, MEDGE_OP_FENCE_BACKWARD);
	write(REGION_RELAXED, 0);
	finish();
	CHECK(overtook(1, 0));
	CHECK(!overtook(2, 0));
	CHECK(overtook(3, 0), "a backward fence holds only its own op");
}

static void forward__holds_all_behind(void)
{
	start(1);
	write(REGION_RELAXED, 0);
	write(REGION_RELAXED, MEDGE_OP_FENCE_FORWARD);
	write(REGION_RELAXED, 0);
	write(REGION_STRICT, 0);
	finish();
	CHECK(!overtook(2, 1));
	CHECK(!overtook(3, 1));
}

static void forward__waits_for_nobody(void)
{
	start(0);
	write(REGION_RELAXED, 0);
	write(REGION_RELAXED, MEDGE_OP_FENCE_FORWARD);
	write(REGION_RELAXED, 0);
	finish();
	CHECK(overtook(1, 0));
	CHECK(overtook(2, 0), "the op before the fence does not hold those behind");
}

static void both__are_a_barrier(void)
{
	start(0);
	write(REGION_RELAXED, 0);
	write(REGION_RELAXED, MEDGE_OP_FENCE_FORWARD | MEDGE_OP_FENCE_BACKWARD);
	write(REGION_RELAXED, 0);
	write(REGION_RELAXED, 0);
	finish();
	CHECK(!overtook(1, 0));
	CHECK(!overtook(2, 0));
	CHECK(!overtook(3, 0));
}

static void two_forward__each_holds_its_own(void)
{
	start(0);
	write(REGION_RELAXED, MEDGE_OP_FENCE_FORWARD);
	write(REGION_RELAXED, MEDGE_OP_FENCE_FORWARD);
	write(REGION_RELAXED, 0);
	finish();
	CHECK(!overtook(1, 0));
	CHECK(!overtook(2, 0));
}

static void fences__cost_no_round_trip(void)
{
	u32 i;

	start(16);
	for (i = 0; i < 8; i++)
		write(REGION_RELAXED, MEDGE_OP_FENCE_FORWARD |
		      MEDGE_OP_FENCE_BACKWARD);
	pair_poll(&o.p, 0);
	for (i = 0; i < 8; i++)
		CHECK(o.first_tx[i] == 1, "op %u is sent at %llu", i, o.first_tx[i]);
	finish();
	CHECK(o.performed_at[7] < 100 * USEC);
}

/* A message of its own memory may be placed early, not delivered. */
static void send__is_delivered_after_all_before(void)
{
	start(0);
	write(REGION_RELAXED, 0);
	post(req_send(100, 0));
	post(req_write_imm(REGION_RELAXED, 2 * SEG, 100, 0));
	finish();
	CHECK(overtook(1, 0));
	CHECK(overtook(2, 0));
	CHECK(o.performed_at[1] >= o.performed_at[0]);
	CHECK(o.performed_at[2] >= o.performed_at[1]);
}

/* READ sees what was written before it; memory.c checks the bytes. */
static void read__sees_writes_before(void)
{
	start(0);
	post(req_write(REGION_RELAXED, 0, 100, 0));
	post(req_read(REGION_RELAXED, 0, 200));
	finish();
	CHECK(o.performed_at[1] >= o.performed_at[0]);
}

static void read__backward_fence_behind_waits_for_its_answer(void)
{
	start(16);
	post(req_read(REGION_RELAXED, 0, 2000));
	post(req_write(REGION_RELAXED, 0, 2000, MEDGE_OP_FENCE_BACKWARD));
	finish();
	/* A round trip: the answer has been acknowledged. */
	CHECK(o.placed_at[1] >= o.performed_at[0] + 40 * USEC, "%llu after %llu",
	      o.placed_at[1], o.performed_at[0]);
}

/*
 * A fence that waits for an answer waits at the sender: held at the receiver
 * such ops could fill the windows of both directions, and no answer would come.
 */
static void read__forward_fence_holds_those_behind_at_the_sender(void)
{
	struct medge_request req = req_read(REGION_RELAXED, 0, 100);
	u32 i;

	start(16);
	req.flags |= MEDGE_OP_FENCE_FORWARD;
	post(req);
	write(REGION_RELAXED, 0);
	post(req);
	write(REGION_RELAXED, 0);
	write(REGION_RELAXED, 0);
	finish();
	CHECK(o.first_tx[1] > 40 * USEC, "sent at %llu", o.first_tx[1]);
	for (i = 3; i < 5; i++)
		CHECK(o.first_tx[i] > 80 * USEC, "op %u sent at %llu", i,
		      o.first_tx[i]);
}

static void submit_fence__waits_for_answers_at_the_sender(void)
{
	struct medge_request req;

	start(16);
	post(req_read(REGION_RELAXED, 0, 100));
	post(req_fetch_add(0));
	req = req_write(REGION_RELAXED, 0, 100, MEDGE_OP_STRICT);
	req.submit |= MEDGE_SUBMIT_FENCE;
	post(req);
	finish();
	CHECK(o.first_tx[2] > 40 * USEC, "sent at %llu", o.first_tx[2]);
}

static void submit_fence__does_not_wait_for_writes(void)
{
	struct medge_request req;

	start(16);
	post(req_write(REGION_RELAXED, 0, 100, MEDGE_OP_STRICT));
	req = req_send(100, MEDGE_OP_STRICT);
	req.submit |= MEDGE_SUBMIT_FENCE;
	post(req);
	finish();
	CHECK_EQ(o.first_tx[1], 1);
}

static void atomics__once_in_op_order_though_lost(void)
{
	u32 i;

	start(1);
	for (i = 0; i < 6; i++)
		post(req_fetch_add(i % 2));
	finish();
}

/* Small ops share a frame; their fences still count one by one. */
static void packed__fences_inside_a_frame(void)
{
	struct pair_params params;
	u32 i;

	memset(&o, 0, sizeof(o));
	o.lose_op = 0;
	pair_params_default(&params, 2);
	pair_init(&o.p, &params);
	watch_frames(&o.w, &o.p, lose_once, NULL);
	post(req_write(REGION_RELAXED, 0, 4000, 0));
	for (i = 1; i < 8; i++)
		write(REGION_RELAXED, i == 2 ? MEDGE_OP_FENCE_BACKWARD :
				      i == 5 ? MEDGE_OP_FENCE_FORWARD : 0);
	finish();
	CHECK(overtook(1, 0));
	CHECK(!overtook(2, 0));
}

/* Half of all numbers later a fence seems to be ahead, and its distance has no bounds. */
static void forward__is_forgotten_when_it_is_passed(void)
{
	struct medge_request req = req_write(REGION_STRICT, 0, 100,
					     MEDGE_OP_FENCE_FORWARD);
	struct pair_params params;
	struct pair p;

	pair_params_default(&params, 1);
	pair_init(&p, &params);
	pair_post(&p, 0, &req);
	pair_finish(&p, MSEC);
	req.flags = 0;
	pair_post(&p, 0, &req);
	pair_finish(&p, MSEC);
	conn_age_fences(p.host[0].conn, (1u << 31) + 1000);
	pair_post(&p, 0, &req);
	pair_finish(&p, MSEC);
	pair_free(&p);
}

int main(int argc, char **argv)
{
	direct_begin(argc, argv);
	RUN(strict__waits_for_all_before);
	RUN(strict__is_free_in_relaxed_memory);
	RUN(strict__waits_for_relaxed_ones_too);
	RUN(no_mark__is_free_in_strict_memory);
	RUN(backward__binds_in_relaxed_memory);
	RUN(forward__holds_all_behind);
	RUN(forward__waits_for_nobody);
	RUN(forward__is_forgotten_when_it_is_passed);
	RUN(both__are_a_barrier);
	RUN(two_forward__each_holds_its_own);
	RUN(fences__cost_no_round_trip);
	RUN(send__is_delivered_after_all_before);
	RUN(read__sees_writes_before);
	RUN(read__backward_fence_behind_waits_for_its_answer);
	RUN(read__forward_fence_holds_those_behind_at_the_sender);
	RUN(submit_fence__waits_for_answers_at_the_sender);
	RUN(submit_fence__does_not_wait_for_writes);
	RUN(atomics__once_in_op_order_though_lost);
	RUN(packed__fences_inside_a_frame);
	return direct_end("test_fence");
}
