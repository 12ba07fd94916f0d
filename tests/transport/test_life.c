/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A connection's life: idle, up, with frames in its hands when it ends. */
#include <stdlib.h>

#include "direct.h"

static void new__is_idle(void)
{
	struct pair_params params;
	struct pair p;

	pair_params_default(&params, 2);
	pair_init(&p, &params);
	/* The rails are looked at, and that is it. */
	CHECK(pair_run(&p, SEC));
	CHECK(pair_now(&p) < MSEC);
	pair_check_idle(&p);
	CHECK(medge_conn_released(p.host[0].conn) == NULL);
	CHECK(medge_conn_unhold(p.host[0].conn) == NULL);
	CHECK(!medge_conn_rnr(p.host[0].conn));
	CHECK(!medge_conn_refusing(p.host[0].conn));
	pair_free(&p);
}

static void done__is_idle(void)
{
	struct medge_request req = req_write(REGION_STRICT, 0, 5000,
					     MEDGE_OP_STRICT);
	struct pair_params params;
	struct pair p;
	u32 i;

	pair_params_default(&params, 2);
	pair_init(&p, &params);
	for (i = 0; i < 5; i++) {
		pair_post(&p, i % 2, &req);
		pair_finish(&p, SEC);
	}
	CHECK_EQ(medge_conn_oldest_op(p.host[0].conn),
		 medge_conn_next_op(p.host[0].conn));
	pair_free(&p);
}

static void before_rts__receives_but_does_not_send(void)
{
	struct medge_request req = req_write(REGION_STRICT, 0, 5000,
					     MEDGE_OP_STRICT);
	struct pair_params params;
	struct medge_conn *c;
	struct pair p;

	pair_params_default(&params, 1);
	pair_init(&p, &params);
	c = p.host[1].conn;
	medge_conn_fini(c);
	memset(c, 0, medge_conn_size());
	medge_conn_init(c, &params.cfg[1], &host_conn_ops, 0);
	medge_conn_set_user(c, &p.host[1]);
	CHECK_EQ(medge_conn_send_room(c, MEDGE_OP_WINDOW), 0);
	host_sync(&p.host[1]);
	pair_post(&p, 0, &req);
	pair_run(&p, MSEC);
	/* acknowledged, all the same */
	CHECK_EQ(p.host[0].completed, 1);
	medge_conn_enable_send(c, &params.cfg[1], pair_now(&p));
	CHECK_EQ(medge_conn_send_room(c, MEDGE_OP_WINDOW), MEDGE_OP_WINDOW);
	pair_post(&p, 1, &req);
	pair_finish(&p, SEC);
	pair_free(&p);
}

static void no_rails__waits_in_peace(void)
{
	struct medge_request req = req_write(REGION_STRICT, 0, 5000,
					     MEDGE_OP_STRICT);
	struct pair_params params;
	struct pair p;

	pair_params_default(&params, 2);
	params.weight[0][0] = params.weight[0][1] = 0;
	pair_init(&p, &params);
	pair_post(&p, 0, &req);
	pair_run(&p, 10 * SEC);
	CHECK_EQ(p.host[0].count.frames_sent, 0);
	CHECK(p.steps < 2000, "%llu timeouts without a rail", p.steps);
	pair_rail(&p, 0, 1, 10000);
	pair_finish(&p, SEC);
	pair_free(&p);
}

static void rail_of_any_number__is_harmless(void)
{
	struct medge_rail_attr attr = { .flags = MEDGE_PORT_UP };
	struct medge_local me = { };

	CHECK(!medge_local_set(&me, MEDGE_MAX_RAILS, &attr));
	CHECK(!medge_local_set(&me, ~0u, &attr));
	CHECK(medge_local_set(&me, MEDGE_MAX_RAILS - 1, &attr));
	CHECK(!medge_local_set(&me, MEDGE_MAX_RAILS - 1, &attr));
}

static void rail_63__carries_frames(void)
{
	struct medge_request req = req_write(REGION_STRICT, 0, 5000,
					     MEDGE_OP_STRICT);
	struct pair_params params;
	struct pair p;
	u32 side;

	pair_params_default(&params, MEDGE_MAX_RAILS);
	for (side = 0; side < 2; side++)
		memset(params.weight[side], 0, 63 * sizeof(u32));
	pair_init(&p, &params);
	pair_post(&p, 0, &req);
	pair_finish(&p, SEC);
	CHECK(p.net.links[0][63].frames >= 5);
	pair_free(&p);
}

/* Torn down with frames held: each comes back once (pair_free checks). */
static void torn_down__gives_back_what_it_holds(void)
{
	struct medge_request req = req_write(REGION_STRICT, 0, 100000,
					     MEDGE_OP_STRICT);
	struct pair_params params;
	struct pair p;

	pair_params_default(&params, 2);
	params.link[0][0].delay_ns = MSEC;
	pair_init(&p, &params);
	pair_post(&p, 0, &req);
	pair_run(&p, 500 * USEC);
	CHECK(p.host[1].count.held > 10);
	pair_free(&p);
}

static void fail_op__of_what_is_not_there(void)
{
	struct pair_params params;
	struct pair p;

	pair_params_default(&params, 1);
	pair_init(&p, &params);
	medge_conn_fail_op(p.host[0].conn, 0, MEDGE_LOCAL_PROTECTION);
	medge_conn_fail_op(p.host[0].conn, 77, MEDGE_LOCAL_PROTECTION);
	pair_run(&p, SEC);
	pair_check_idle(&p);
	pair_free(&p);
}

/* Timers may go off early or twice. */
static void timeout__early_is_harmless(void)
{
	struct medge_request req = req_write(REGION_STRICT, 0, 100000,
					     MEDGE_OP_STRICT);
	struct pair_params params;
	struct pair p;
	u32 i;

	pair_params_default(&params, 2);
	pair_init(&p, &params);
	pair_post(&p, 0, &req);
	for (i = 0; i < 500; i++) {
		pair_run(&p, i * USEC);
		medge_conn_timeout(p.host[i % 2].conn, pair_now(&p));
		pair_poll(&p, i % 2);
	}
	pair_finish(&p, SEC);
	CHECK_EQ(medge_conn_stats(p.host[0].conn)->retransmits, 0);
	pair_free(&p);
}

/* Nobody waits for the receive that was posted. */
static void recv_posted__for_nobody(void)
{
	struct medge_request req = req_write(REGION_STRICT, 0, 5000,
					     MEDGE_OP_STRICT);
	struct pair_params params;
	struct pair p;

	pair_params_default(&params, 1);
	pair_init(&p, &params);
	pair_post(&p, 0, &req);
	medge_conn_recv_posted(p.host[1].conn);
	pair_finish(&p, SEC);
	pair_free(&p);
}

int main(int argc, char **argv)
{
	direct_begin(argc, argv);
	RUN(new__is_idle);
	RUN(done__is_idle);
	RUN(before_rts__receives_but_does_not_send);
	RUN(no_rails__waits_in_peace);
	RUN(rail_of_any_number__is_harmless);
	RUN(rail_63__carries_frames);
	RUN(torn_down__gives_back_what_it_holds);
	RUN(fail_op__of_what_is_not_there);
	RUN(timeout__early_is_harmless);
	RUN(recv_posted__for_nobody);
	return direct_end("test_life");
}
