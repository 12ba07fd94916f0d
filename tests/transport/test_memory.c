/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Memory that is absent for a while: who waits for it, and who does not. */
#include "direct.h"

enum {
	LEN = 20000,
	/* Many times what it takes to suspect a loss. */
	ABSENT = 300 * MSEC,
	TIMEOUT = 20 * MSEC,
	/* And to give up. */
	LONG_ABSENT = 100 * TIMEOUT,
	/* More than there are tries. */
	LEAVES = 40,
};

/* What is absent, on which side, until it is said to have come. */
struct absence {
	u32 side;
	u8 opcode;
	u32 from;		/* the first byte of the op */
	bool over;
	u32 asked;
};

static bool is_absent(struct host *h, const struct medge_op *op)
{
	struct absence *a = h->pair->user;

	if (h->side != a->side || op->opcode != a->opcode || a->over ||
	    op->offset + op->len <= a->from)
		return false;
	a->asked++;
	return true;
}

static void begin(struct pair *p, struct absence *a)
{
	struct pair_params params;
	u32 side;

	pair_params_default(&params, 2);
	for (side = 0; side < 2; side++)
		params.cfg[side].timeout_ns = TIMEOUT;
	pair_init(p, &params);
	p->is_absent = is_absent;
	p->user = a;
	for (side = 0; side < 2; side++) {
		medge_conn_may_wait(p->host[side].conn);
		host_post_recv(&p->host[side], LEN, false);
	}
}

static void come(struct pair *p, struct absence *a)
{
	a->over = true;
	medge_conn_memory_came(p->host[a->side].conn);
	pair_poll(p, a->side);
}

/* It was waited for, all is well in the end, and nobody took it for a loss. */
static void end(struct pair *p, struct absence *a, u32 asks)
{
	u32 side;

	CHECK_EQ(a->asked, asks);
	come(p, a);
	pair_finish(p, SEC);
	for (side = 0; side < 2; side++) {
		const struct medge_conn_stats *st =
			medge_conn_stats(p->host[side].conn);

		CHECK_EQ(st->retransmits, 0);
		CHECK_EQ(st->probes, 0);
	}
	pair_free(p);
}

static void request__waits_and_is_not_lost(void)
{
	struct medge_request req = req_write(REGION_STRICT, 0, LEN,
					     MEDGE_OP_STRICT);
	struct absence a = { .side = 0, .opcode = MEDGE_OP_WRITE };
	struct pair p;

	begin(&p, &a);
	pair_post(&p, 0, &req);
	CHECK(pair_run(&p, ABSENT), "something is going on");
	CHECK_EQ(p.host[0].count.frames_sent, 0);
	end(&p, &a, 1);
}

static void request__waits_in_its_middle(void)
{
	struct medge_request req = req_write(REGION_STRICT, 0, LEN,
					     MEDGE_OP_STRICT);
	struct absence a = {
		.side = 0, .opcode = MEDGE_OP_WRITE, .from = LEN - 1,
	};
	struct pair_params params;
	struct pair p;

	pair_params_default(&params, 2);
	params.cfg[0].seg_len = params.cfg[0].run_max = 1000;
	pair_init(&p, &params);
	p.is_absent = is_absent;
	p.user = &a;
	medge_conn_may_wait(p.host[0].conn);
	pair_post(&p, 0, &req);
	pair_run(&p, ABSENT);
	CHECK_EQ(p.host[0].count.frames_sent, LEN / 1000 - 1);
	end(&p, &a, 1);
}

/* Small ones share a frame; those that are there go without it. */
static void request__does_not_keep_those_before_it(void)
{
	struct medge_request there = req_write(REGION_RELAXED, 0, 64, 0);
	struct medge_request not = req_write_imm(REGION_RELAXED, 64, 64, 0);
	struct absence a = { .side = 0, .opcode = MEDGE_OP_WRITE_IMM };
	struct pair p;

	begin(&p, &a);
	host_post(&p.host[0], &there);
	host_post(&p.host[0], &there);
	host_post(&p.host[0], &not);
	pair_poll(&p, 0);
	pair_run(&p, ABSENT);
	CHECK_EQ(p.host[0].completed, 2);
	end(&p, &a, 1);
}

static void acks__go_while_requests_wait(void)
{
	struct medge_request not = req_write(REGION_STRICT, 0, LEN,
					     MEDGE_OP_STRICT);
	struct medge_request other = req_write_imm(REGION_STRICT, 0, LEN,
						   MEDGE_OP_STRICT);
	struct absence a = { .side = 0, .opcode = MEDGE_OP_WRITE };
	struct pair p;

	begin(&p, &a);
	pair_post(&p, 0, &not);
	pair_post(&p, 1, &other);
	pair_run(&p, ABSENT);
	CHECK_EQ(p.host[1].completed, 1);
	end(&p, &a, 1);
}

static void response__waits_and_is_not_lost(void)
{
	struct medge_request req = req_read(REGION_STRICT, 0, LEN);
	struct absence a = { .side = 1, .opcode = MEDGE_OP_RESPONSE };
	struct pair p;

	begin(&p, &a);
	pair_post(&p, 0, &req);
	pair_run(&p, 10 * MSEC);
	CHECK_EQ(p.host[1].count.frames_sent, 0);
	end(&p, &a, 1);
}

/* It is done once, and what comes after it waits for it as for any other. */
static void atomic__is_done_when_its_memory_comes(void)
{
	struct medge_request add = req_fetch_add(3), after = req_send(100, 0);
	struct absence a = { .side = 1, .opcode = MEDGE_OP_FETCH_ADD };
	struct pair p;

	begin(&p, &a);
	pair_post(&p, 0, &add);
	pair_post(&p, 0, &after);
	pair_run(&p, 10 * MSEC);
	CHECK_EQ(p.host[0].completed, 0);
	CHECK(a.asked, "nobody asked");
	end(&p, &a, a.asked);
}

static void dark(struct pair *p, bool dark)
{
	pair_dark(p, 0, 0, dark);
	pair_dark(p, 0, 1, dark);
}

/* A write is lost, all of it, and its memory is absent from then on. */
static void begin_lost(struct pair *p, struct absence *a)
{
	struct medge_request req = req_write(REGION_STRICT, 0, LEN,
					     MEDGE_OP_STRICT);

	*a = (struct absence){
		.side = 0, .opcode = MEDGE_OP_WRITE, .over = true,
	};
	begin(p, a);
	dark(p, true);
	pair_post(p, 0, &req);
	CHECK(p->host[0].count.frames_sent, "nothing was sent");
	a->over = false;
}

/* A frame that is lost is sent again only when its memory has come back. */
static void lost__goes_again_when_its_memory_comes(void)
{
	struct absence a;
	u64 sent;
	struct pair p;

	begin_lost(&p, &a);
	sent = p.host[0].count.frames_sent;
	dark(&p, false);
	pair_run(&p, 50 * MSEC);
	CHECK_EQ(p.host[0].count.frames_sent, sent);
	CHECK(a.asked, "nothing was to go again");
	come(&p, &a);
	pair_finish(&p, SEC);
	pair_free(&p);
}

/* As long as it waits for its own memory, only a peer that says nothing has gone. */
static void lost__waits_longer_than_for_a_peer(void)
{
	struct absence a;
	struct pair p;

	begin_lost(&p, &a);
	dark(&p, false);
	pair_run(&p, LONG_ABSENT);
	CHECK(a.asked, "nothing was to go again");
	CHECK_EQ(p.host[0].completed, 0);
	come(&p, &a);
	pair_finish(&p, SEC);
	pair_free(&p);
}

static void lost__waits_for_no_peer_that_has_gone(void)
{
	struct absence a;
	struct pair p;

	begin_lost(&p, &a);
	pair_run(&p, LONG_ABSENT);
	CHECK(a.asked, "nothing was to go again");
	CHECK_EQ(p.host[0].completed, 1);
	CHECK_EQ(p.host[0].ops[0].status, MEDGE_RETRY_EXCEEDED);
	pair_free(&p);
}

/* Memory that is there when it is asked for, and not when it is read, so often. */
static u32 leaves;

static bool has_left(struct host *h, const struct medge_op *op)
{
	struct absence *a = h->pair->user;

	if (h->side != a->side || op->opcode != a->opcode || !leaves)
		return false;
	leaves--;
	return true;
}

static void leaving(u32 side, u8 opcode, const struct medge_request *req)
{
	struct absence a = { .side = side, .opcode = opcode, .over = true };
	struct pair p;
	u32 i;

	begin(&p, &a);
	p.has_left = has_left;
	leaves = LEAVES;
	pair_post(&p, 0, req);
	for (i = 0; i < LEAVES; i++) {
		u64 began = pair_now(&p);

		pair_run(&p, began + MSEC);
		CHECK_EQ(leaves, LEAVES - 1 - i);
		come(&p, &a);
	}
	pair_finish(&p, SEC);
	CHECK_EQ(leaves, 0);
	CHECK_EQ(medge_conn_stats(p.host[side].conn)->lost_rto, 0);
	pair_free(&p);
}

/* What has left before it could go is nobody's loss, and goes as soon as it is back. */
static void request__leaves_before_it_goes(void)
{
	struct medge_request req = req_write(REGION_STRICT, 0, LEN,
					     MEDGE_OP_STRICT);

	leaving(0, MEDGE_OP_WRITE, &req);
}

static void response__leaves_before_it_goes(void)
{
	struct medge_request req = req_read(REGION_STRICT, 0, LEN);

	leaving(1, MEDGE_OP_RESPONSE, &req);
}

int main(int argc, char **argv)
{
	direct_begin(argc, argv);
	RUN(request__waits_and_is_not_lost);
	RUN(request__waits_in_its_middle);
	RUN(request__does_not_keep_those_before_it);
	RUN(acks__go_while_requests_wait);
	RUN(response__waits_and_is_not_lost);
	RUN(atomic__is_done_when_its_memory_comes);
	RUN(lost__goes_again_when_its_memory_comes);
	RUN(lost__waits_longer_than_for_a_peer);
	RUN(lost__waits_for_no_peer_that_has_gone);
	RUN(request__leaves_before_it_goes);
	RUN(response__leaves_before_it_goes);
	return direct_end("test_memory");
}
