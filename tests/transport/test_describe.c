/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What is told of a connection, for people: all of it, and truly. */
#include "direct.h"

enum { ENOUGH = 4711 };

/* What was told. */
struct told {
	u32 n;
	u32 stop_at;
	u64 ops_outstanding, frames_unacked, rcv_nxt, path1_rail;
};

static int take(void *arg, const char *name, u64 value)
{
	struct told *told = arg;

	if (told->n++ == told->stop_at)
		return ENOUGH;
	if (!strcmp(name, "ops_outstanding"))
		told->ops_outstanding = value;
	else if (!strcmp(name, "frames_unacked"))
		told->frames_unacked = value;
	else if (!strcmp(name, "rcv_nxt"))
		told->rcv_nxt = value;
	else if (!strcmp(name, "path1_rail"))
		told->path1_rail = value;
	return 0;
}

static void begin(struct pair *p)
{
	struct medge_request req = req_write(REGION_STRICT, 0, 5000,
					     MEDGE_OP_STRICT);
	struct pair_params params;

	pair_params_default(&params, 2);
	pair_init(p, &params);
	pair_run(p, MSEC);
	pair_post(p, 0, &req);
}

static void query__busy_and_idle(void)
{
	struct medge_conn_info info;
	struct pair p;

	begin(&p);
	medge_conn_query(p.host[0].conn, &info);
	CHECK_EQ(info.seg_len, p.params.cfg[0].seg_len);
	CHECK_EQ(info.ops_waiting + info.ops_outstanding, 1);
	CHECK(info.frames_unacked);
	CHECK(!info.rnr && !info.rnr_wait);
	pair_finish(&p, SEC);
	medge_conn_query(p.host[0].conn, &info);
	CHECK_EQ(info.ops_waiting + info.ops_outstanding, 0);
	CHECK_EQ(info.frames_unacked, 0);
	CHECK_EQ(info.frames_held, 0);
	pair_free(&p);
}

static void describe__agrees_with_query(void)
{
	struct told told = { .stop_at = ~0u, .path1_rail = 99 };
	struct medge_conn_info info;
	struct pair p;

	begin(&p);
	medge_conn_query(p.host[0].conn, &info);
	CHECK_EQ(medge_conn_describe(p.host[0].conn, pair_now(&p), take, &told), 0);
	CHECK_EQ(told.ops_outstanding, info.ops_outstanding);
	CHECK_EQ(told.frames_unacked, info.frames_unacked);
	CHECK_EQ(told.path1_rail, 1);
	pair_finish(&p, SEC);
	CHECK_EQ(medge_conn_describe(p.host[1].conn, pair_now(&p), take, &told), 0);
	CHECK_EQ(told.rcv_nxt, p.host[0].snd_nxt);
	pair_free(&p);
}

/* Who has no more room is not told more. */
static void describe__stops(void)
{
	struct told all = { .stop_at = ~0u }, some;
	struct pair p;
	u32 i;

	begin(&p);
	medge_conn_describe(p.host[0].conn, pair_now(&p), take, &all);
	for (i = 0; i < all.n; i++) {
		some = (struct told){ .stop_at = i };
		CHECK_EQ(medge_conn_describe(p.host[0].conn, pair_now(&p), take,
					     &some), ENOUGH);
		CHECK_EQ(some.n, i + 1);
	}
	pair_finish(&p, SEC);
	pair_free(&p);
}

static void names__of_all_and_no_more(void)
{
	u32 i;

	for (i = 0; i < MEDGE_PATH_STATES; i++)
		CHECK(strlen(medge_path_state_name(i)) > 1);
	CHECK(!strcmp(medge_path_state_name(MEDGE_PATH_STATES), "?"));
	for (i = 0; i < MEDGE_WHYS; i++)
		CHECK(strlen(medge_path_why_name(i)) > 1);
	CHECK(!strcmp(medge_path_why_name(MEDGE_WHYS), "?"));
	for (i = 0; i < MEDGE_SCHEDULERS; i++)
		CHECK(strlen(medge_scheduler_name(i)) > 1);
	CHECK(!medge_scheduler_name(MEDGE_SCHEDULERS));
}

int main(int argc, char **argv)
{
	direct_begin(argc, argv);
	RUN(query__busy_and_idle);
	RUN(describe__agrees_with_query);
	RUN(describe__stops);
	RUN(names__of_all_and_no_more);
	return direct_end("test_describe");
}
