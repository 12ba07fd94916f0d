/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What goes wrong goes wrong once, in its turn, with the right status. */
#include "direct.h"

enum { GOOD_BEFORE = 3 };

static void start(struct pair *p)
{
	struct pair_params params;

	pair_params_default(&params, 2);
	pair_init(p, &params);
}

static void good(struct pair *p, u32 side, u32 count, u8 flags)
{
	struct medge_request req = req_write(REGION_RELAXED, 0, 3000, flags);

	while (count--) {
		req.addr += 3000;
		host_post(&p->host[side], &req);
	}
}

/* All before it are good, it ends with @status, those behind do nothing. */
static void check_one_bad(struct pair *p, enum medge_status status)
{
	struct host *h = &p->host[0];
	u32 i;

	pair_poll(p, 0);
	pair_run(p, SEC);
	CHECK(h->failed);
	CHECK_EQ(h->completed, GOOD_BEFORE + 1);
	for (i = 0; i < GOOD_BEFORE; i++)
		CHECK_EQ(h->ops[i].status, MEDGE_OK);
	CHECK_EQ(h->ops[GOOD_BEFORE].status, status);
	/* ops behind a READ may be done before its answer turns out bad */
	CHECK(h->peer_performed <= GOOD_BEFORE ||
	      op_answers(h->ops[GOOD_BEFORE].req.opcode));
	CHECK_EQ(medge_conn_send_room(h->conn, 1), 0);
	pair_free(p);
}

static void bad(struct medge_request req, u8 flags_behind,
		enum medge_status status)
{
	struct pair p;

	start(&p);
	good(&p, 0, GOOD_BEFORE, MEDGE_OP_STRICT);
	host_post(&p.host[0], &req);
	good(&p, 0, 3, flags_behind);
	check_one_bad(&p, status);
}

static void rkey__unknown(void)
{
	struct medge_request reqs[] = {
		req_write(REGION_STRICT, 0, 100, MEDGE_OP_STRICT),
		req_write(REGION_STRICT, 0, 100, 0),
		req_write(REGION_STRICT, 0, 50000, MEDGE_OP_STRICT),
		req_write_imm(REGION_STRICT, 0, 100, MEDGE_OP_STRICT),
		req_read(REGION_STRICT, 0, 100),
		req_fetch_add(0),
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(reqs); i++) {
		reqs[i].rkey = BAD_RKEY;
		bad(reqs[i], MEDGE_OP_STRICT, MEDGE_REMOTE_ACCESS);
		bad(reqs[i], 0, MEDGE_REMOTE_ACCESS);
	}
}

static void rkey__beyond_the_end(void)
{
	struct medge_request req = req_write(REGION_STRICT, (1 << 18) - 99, 100,
					     MEDGE_OP_STRICT);

	bad(req, 0, MEDGE_REMOTE_ACCESS);
	req = req_read(REGION_STRICT, (1 << 18) - 99, 100);
	bad(req, 0, MEDGE_REMOTE_ACCESS);
}

static void send__longer_than_its_receive(void)
{
	struct pair p;
	struct medge_request req = req_send(5000, MEDGE_OP_STRICT);

	start(&p);
	host_post_recv(&p.host[1], 4999, false);
	good(&p, 0, GOOD_BEFORE, MEDGE_OP_STRICT);
	host_post(&p.host[0], &req);
	good(&p, 0, 3, 0);
	pair_poll(&p, 0);
	pair_run(&p, SEC);
	CHECK(p.host[1].refused);
	CHECK_EQ(p.host[1].refused_status, MEDGE_LOCAL_LENGTH);
	CHECK_EQ(p.host[1].refused_op, p.host[0].first_op + GOOD_BEFORE);
	CHECK(medge_conn_refusing(p.host[1].conn));
	check_one_bad(&p, MEDGE_REMOTE_INVALID_REQUEST);
}

static void send_inv__of_an_unknown_key(void)
{
	struct medge_request req = req_send(100, MEDGE_OP_STRICT);
	struct pair p;

	req.opcode = MEDGE_OP_SEND_INV;
	req.rkey = BAD_RKEY;
	start(&p);
	host_post_recv(&p.host[1], 100, false);
	good(&p, 0, GOOD_BEFORE, MEDGE_OP_STRICT);
	host_post(&p.host[0], &req);
	good(&p, 0, 3, 0);
	check_one_bad(&p, MEDGE_REMOTE_ACCESS);
}

static void nak__lost_is_said_again(void)
{
	struct medge_request req = req_write(REGION_STRICT, 0, 100,
					     MEDGE_OP_STRICT);
	struct pair p;

	req.rkey = BAD_RKEY;
	start(&p);
	good(&p, 0, GOOD_BEFORE, MEDGE_OP_STRICT);
	pair_poll(&p, 0);
	pair_run(&p, 20 * MSEC);
	host_post(&p.host[0], &req);
	pair_dark(&p, 1, 0, true);
	pair_dark(&p, 1, 1, true);
	pair_poll(&p, 0);
	pair_run(&p, 40 * MSEC);
	CHECK(!p.host[0].failed);
	CHECK(p.host[1].refused);
	pair_dark(&p, 1, 0, false);
	pair_dark(&p, 1, 1, false);
	check_one_bad(&p, MEDGE_REMOTE_ACCESS);
}

static void refused__nothing_more_is_placed(void)
{
	struct medge_request req = req_write(REGION_RELAXED, 0, 100,
					     MEDGE_OP_STRICT);
	struct pair p;

	req.rkey = BAD_RKEY;
	start(&p);
	host_post(&p.host[0], &req);
	pair_poll(&p, 0);
	pair_run(&p, 25 * USEC);
	CHECK(p.host[1].refused);
	good(&p, 0, 5, 0);
	pair_poll(&p, 0);
	pair_run(&p, SEC);
	CHECK_EQ(p.host[0].completed, 1);
	CHECK_EQ(p.host[0].peer_performed, 0);
	CHECK(!p.host[0].ops[1].placed);
	pair_free(&p);
}

/* @len: of the op whose memory is gone when it is to be sent */
static void memory_gone(u32 len, u8 flags)
{
	struct medge_request req = req_write(REGION_RELAXED, 0, len, flags);
	struct pair p;
	struct op *o;
	u32 i;

	start(&p);
	good(&p, 0, GOOD_BEFORE, flags);
	o = host_post(&p.host[0], &req);
	o->memory_gone = true;
	good(&p, 0, 3, flags);
	pair_poll(&p, 0);
	pair_run(&p, SEC);
	for (i = GOOD_BEFORE + 1; i < p.host[0].nops; i++)
		CHECK(!p.host[0].ops[i].sent, "op %u behind the failed one was sent", i);
	check_one_bad(&p, MEDGE_LOCAL_PROTECTION);
}

static void memory_gone__of_a_small_op(void)
{
	memory_gone(100, MEDGE_OP_STRICT);
	memory_gone(100, 0);
}

static void memory_gone__of_a_large_op(void)
{
	memory_gone(100000, MEDGE_OP_STRICT);
	memory_gone(100000, 0);
}

/* The frame it would share with the good ops before it never leaves. */
static void memory_gone__of_one_in_a_packed_frame(void)
{
	struct medge_request req = req_write(REGION_RELAXED, 0, 40, 0);
	struct pair p;
	u32 bad_at, i;

	for (bad_at = 0; bad_at < 6; bad_at++) {
		start(&p);
		for (i = 0; i < 6; i++)
			host_post(&p.host[0], &req)->memory_gone = i == bad_at;
		pair_poll(&p, 0);
		pair_run(&p, SEC);
		CHECK(p.host[0].failed, "op %u", bad_at);
		CHECK_EQ(p.host[0].completed, bad_at + 1);
		CHECK_EQ(p.host[0].ops[bad_at].status, MEDGE_LOCAL_PROTECTION);
		CHECK_EQ(p.host[0].peer_performed, bad_at);
		pair_free(&p);
	}
}

static void response__memory_gone(void)
{
	struct medge_request req = req_read(REGION_STRICT, 0, 3000);
	struct pair p;

	start(&p);
	good(&p, 0, GOOD_BEFORE, MEDGE_OP_STRICT);
	host_post(&p.host[0], &req)->response_gone = true;
	good(&p, 0, 3, MEDGE_OP_STRICT);
	check_one_bad(&p, MEDGE_REMOTE_ACCESS);
}

/*
 * The requester has its answer, and by another way has the memory taken back,
 * before its ack is there: nobody is to blame.
 */
static void response__memory_gone_after_it_arrived(void)
{
	struct medge_request req = req_read(REGION_RELAXED, 0, 5000);
	struct pair p;
	struct op *o;
	u32 rail;

	start(&p);
	o = host_post(&p.host[0], &req);
	pair_poll(&p, 0);
	while (!p.host[0].peer_performed)
		pair_run(&p, pair_now(&p) + USEC);
	for (rail = 0; rail < p.params.nrails; rail++)
		pair_dark(&p, 0, rail, true);
	while (!p.host[0].completed)
		pair_run(&p, pair_now(&p) + USEC);
	o->response_gone = true;
	pair_run(&p, pair_now(&p) + 30 * MSEC);
	for (rail = 0; rail < p.params.nrails; rail++)
		pair_dark(&p, 0, rail, false);
	good(&p, 0, 10, 0);
	pair_finish(&p, SEC);
	pair_free(&p);
}

static void sink__memory_gone(void)
{
	struct medge_request req = req_read(REGION_STRICT, 0, 3000);
	struct pair p;

	start(&p);
	good(&p, 0, GOOD_BEFORE, MEDGE_OP_STRICT);
	host_post(&p.host[0], &req)->sink_gone = true;
	good(&p, 0, 3, MEDGE_OP_STRICT);
	check_one_bad(&p, MEDGE_LOCAL_PROTECTION);
}

static void target__gone_while_placing(void)
{
	struct medge_request req = req_write(REGION_STRICT, 0, 3000,
					     MEDGE_OP_STRICT);
	struct pair p;

	start(&p);
	good(&p, 0, GOOD_BEFORE, MEDGE_OP_STRICT);
	host_post(&p.host[0], &req)->place_nak = MEDGE_NAK_ACCESS;
	good(&p, 0, 3, MEDGE_OP_STRICT);
	check_one_bad(&p, MEDGE_REMOTE_ACCESS);
}

static void atomic__refused(void)
{
	struct medge_request req = req_fetch_add(0);
	struct pair p;

	start(&p);
	good(&p, 0, GOOD_BEFORE, MEDGE_OP_STRICT);
	host_post(&p.host[0], &req)->place_nak = MEDGE_NAK_INVALID_REQUEST;
	good(&p, 0, 3, MEDGE_OP_STRICT);
	check_one_bad(&p, MEDGE_REMOTE_INVALID_REQUEST);
}

/* The answer to what came before is sent until it arrives, though nobody's timer runs. */
static void atomic__before_a_refusal_is_answered(void)
{
	struct medge_request add = req_fetch_add(0);
	struct medge_request bad = req_write(REGION_RELAXED, 0, 64, 0);
	struct pair_params params;
	struct pair p;
	u32 i;

	bad.rkey = BAD_RKEY;
	pair_params_default(&params, 2);
	for (i = 0; i < 4; i++)
		params.link[i / 2][i % 2].loss_ppm = 200000;
	for (params.seed = 1; params.seed <= 300; params.seed++) {
		pair_init(&p, &params);
		pair_post(&p, 0, &add);
		pair_post(&p, 0, &bad);
		pair_run(&p, 10 * SEC);
		CHECK_EQ(p.host[0].completed, 2);
		CHECK_EQ(p.host[0].ops[0].status, MEDGE_OK);
		CHECK_EQ(p.host[0].ops[1].status, MEDGE_REMOTE_ACCESS);
		pair_free(&p);
	}
}

/* An answer comes again as another frame, by a CPU that is faster. */
static enum net_verdict answer_again(void *user, u32 side, u32 rail,
				     struct packet *p, u64 *delay)
{
	struct pair *pair = user;
	u32 at = offsetof(struct medge_frame_hdr, psn);
	struct packet *again;

	if (!side || (p->data[0] & 15) != MEDGE_FRAME_DATA)
		return NET_PASS;
	pair->net.ops.filter = NULL;
	again = packet_new(p->len);
	again->nframes = p->nframes;
	again->to = p->to;
	memcpy(again->data, p->data, p->len);
	put_unaligned_be32(get_unaligned_be32(p->data + at) + 1, again->data + at);
	net_send(&pair->net, side, rail, again);
	return NET_PASS;
}

static void nothing_is_copied(struct host *h, u32 op_no, enum medge_status status)
{
	CHECK_EQ(h->count.placing, 0);
}

static void answer__twice_completes_when_both_are_copied(void)
{
	struct medge_request req = req_read(REGION_STRICT, 0, 500);
	struct pair_params params;
	struct pair p;

	pair_params_default(&params, 1);
	params.place_ppm = 1000000;
	params.place_ns = 100 * USEC;
	pair_init(&p, &params);
	p.hostile = true;
	p.net.ops.filter = answer_again;
	p.net.ops.filter_user = &p;
	p.on_completed = nothing_is_copied;
	pair_post(&p, 0, &req);
	pair_run(&p, 5 * MSEC);
	CHECK_EQ(p.host[0].completed, 1);
	pair_free(&p);
}

static enum net_verdict lose_writes(struct pair *p, const struct seen *seen,
				    u64 *delay, void *user)
{
	return seen->side && seen->f.type == MEDGE_FRAME_DATA &&
	       seen->f.op.opcode == MEDGE_OP_WRITE ? NET_DROP : NET_PASS;
}

/*
 * Who has refused sends none of its own requests again: where one was lost there is a
 * gap for good, and an answer that is longer than the window does not get past it.
 */
static void answer__stuck_behind_what_was_lost(void)
{
	struct medge_request write = req_write(REGION_STRICT, 0, 50, 0);
	struct medge_request read;
	struct pair_params params;
	struct watch w;
	struct pair p;

	pair_params_default(&params, 1);
	params.cfg[0].seg_len = params.cfg[1].seg_len = 64;
	params.cfg[0].timeout_ns = 10 * MSEC;
	params.region_len = 3 * MEDGE_WINDOW * 64;
	pair_init(&p, &params);
	watch_frames(&w, &p, lose_writes, NULL);
	read = req_read(REGION_STRICT, 0, 2 * MEDGE_WINDOW * 64);
	pair_post(&p, 1, &write);
	pair_post(&p, 0, &read);
	write.rkey = BAD_RKEY;
	pair_post(&p, 0, &write);
	pair_run(&p, 20 * SEC);
	CHECK(p.host[0].failed, "neither goes on nor ends");
	pair_free(&p);
}

/* What fails one way leaves what is underway the other way alone. */
static void other_direction__goes_on(void)
{
	struct medge_request req = req_write(REGION_RELAXED, 0, 100000, 0);
	struct pair p;

	start(&p);
	host_post(&p.host[0], &req)->memory_gone = true;
	good(&p, 1, 50, MEDGE_OP_STRICT);
	pair_poll(&p, 1);
	pair_poll(&p, 0);
	pair_run(&p, SEC);
	CHECK(p.host[0].failed);
	CHECK_EQ(p.host[1].completed, 50);
	pair_free(&p);
}

int main(int argc, char **argv)
{
	direct_begin(argc, argv);
	RUN(rkey__unknown);
	RUN(rkey__beyond_the_end);
	RUN(send__longer_than_its_receive);
	RUN(send_inv__of_an_unknown_key);
	RUN(nak__lost_is_said_again);
	RUN(refused__nothing_more_is_placed);
	RUN(memory_gone__of_a_small_op);
	RUN(memory_gone__of_a_large_op);
	RUN(memory_gone__of_one_in_a_packed_frame);
	RUN(response__memory_gone);
	RUN(response__memory_gone_after_it_arrived);
	RUN(sink__memory_gone);
	RUN(target__gone_while_placing);
	RUN(atomic__refused);
	RUN(atomic__before_a_refusal_is_answered);
	RUN(answer__twice_completes_when_both_are_copied);
	RUN(answer__stuck_behind_what_was_lost);
	RUN(other_direction__goes_on);
	return direct_end("test_error");
}
