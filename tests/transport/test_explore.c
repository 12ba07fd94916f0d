/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * All that may become of the first frames: for a few ops, each frame that is
 * sent, of either side, data or acknowledgment, new or again, is delivered, lost, doubled,
 * overtaken by the next, or late by more than it takes to be sent again; in every
 * combination for the first DEPTH of them. The rest of a run goes well.
 *
 *   test_explore [--depth N] [-v]
 *
 * A run is told by its fates, a digit each: test_explore --run SCENARIO FATES
 */
#include <getopt.h>
#include <stdlib.h>

#include "direct.h"
#include "say.h"

enum {
	DEPTH = 5,
	DEPTH_MAX = 16,
};

static const struct fate {
	enum net_verdict verdict;
	u64 delay;
} fates[] = {
	{ NET_PASS, 0 },
	{ NET_DROP, 0 },
	{ NET_DUP, 0 },
	{ NET_HOLD, 30 * USEC },
	{ NET_HOLD, 5 * MSEC },
};

struct course {
	u8 fate[DEPTH_MAX];
	u32 depth;
	u32 seen;		/* frames in this run */
};

static enum net_verdict meet_fate(void *user, u32 side, u32 rail,
				  struct packet *p, u64 *delay)
{
	struct course *c = user;
	const struct fate *fate;
	u8 type = p->data[0] % 16;

	/* Paths are another matter. */
	if (type == MEDGE_FRAME_PROBE || type == MEDGE_FRAME_REPLY ||
	    c->seen++ >= c->depth)
		return NET_PASS;
	fate = &fates[c->fate[c->seen - 1]];
	*delay = fate->delay;
	return fate->verdict;
}

/* ---- what is done ---- */

/* The later must win, wherever they overlap. */
static void overlapping_writes(struct pair *p)
{
	struct medge_request req = req_write(REGION_STRICT, 0, 1500,
					     MEDGE_OP_STRICT);

	pair_post(p, 0, &req);
	req.addr += 500;
	pair_post(p, 0, &req);
	req.len = 100;
	pair_post(p, 0, &req);
}

/* What is told by a SEND is there. */
static void relaxed_writes_and_send(struct pair *p)
{
	struct medge_request req = req_write(REGION_RELAXED, 0, 1500, 0);

	host_post_recv(&p->host[1], 200, false);
	pair_post(p, 0, &req);
	req = req_send(200, MEDGE_OP_STRICT);
	pair_post(p, 0, &req);
}

static void fences(struct pair *p)
{
	struct medge_request req = req_write(REGION_RELAXED, 0, 900,
					     MEDGE_OP_FENCE_FORWARD);

	pair_post(p, 0, &req);
	req = req_write(REGION_RELAXED, 500, 900, MEDGE_OP_FENCE_BACKWARD);
	pair_post(p, 0, &req);
	req = req_write(REGION_RELAXED, 2000, 900, 0);
	pair_post(p, 0, &req);
}

static void write_and_read(struct pair *p)
{
	struct medge_request req = req_write(REGION_STRICT, 0, 900,
					     MEDGE_OP_STRICT);

	pair_post(p, 0, &req);
	req = req_read(REGION_STRICT, 0, 1500);
	pair_post(p, 0, &req);
}

/* Each exactly once. */
static void atomics(struct pair *p)
{
	struct medge_request req = req_fetch_add(1);

	pair_post(p, 0, &req);
	pair_post(p, 0, &req);
}

static void both_ways(struct pair *p)
{
	struct medge_request req = req_write_imm(REGION_STRICT, 0, 900,
						 MEDGE_OP_STRICT);
	u32 side;

	for (side = 0; side < 2; side++)
		host_post_recv(&p->host[side], 100, false);
	for (side = 0; side < 2; side++)
		pair_post(p, side, &req);
}

/* The receive is late. */
static void no_receive(struct pair *p)
{
	struct medge_request req = req_send(200, MEDGE_OP_STRICT);

	pair_post(p, 0, &req);
	req = req_write(REGION_STRICT, 0, 900, MEDGE_OP_STRICT);
	pair_post(p, 0, &req);
	pair_run(p, pair_now(p) + 200 * USEC);
	host_post_recv(&p->host[1], 200, false);
}

static const struct scenario {
	const char *name;
	void (*post)(struct pair *p);
} scenarios[] = {
	{ "overlapping_writes", overlapping_writes },
	{ "relaxed_writes_and_send", relaxed_writes_and_send },
	{ "fences", fences },
	{ "write_and_read", write_and_read },
	{ "atomics", atomics },
	{ "both_ways", both_ways },
	{ "no_receive", no_receive },
};

/* ---- all courses ---- */

static void run(const struct scenario *s, struct course *c)
{
	struct pair_params params;
	struct pair p;
	u32 side;

	pair_params_default(&params, 2);
	for (side = 0; side < 2; side++) {
		params.cfg[side].seg_len = 1000;
		params.cfg[side].run_max = 1000;
	}
	pair_init(&p, &params);
	pair_run(&p, MSEC);
	c->seen = 0;
	p.net.ops.filter = meet_fate;
	p.net.ops.filter_user = c;
	s->post(&p);
	pair_finish(&p, 10 * SEC);
	for (side = 0; side < 2; side++)
		conn_check(p.host[side].conn);
	pair_free(&p);
}

/* The next that is different as far as frames were seen; false: that was the last. */
static bool next_course(struct course *c)
{
	u32 i = min(c->seen, c->depth);

	while (i--) {
		if (++c->fate[i] < ARRAY_SIZE(fates))
			return true;
		c->fate[i] = 0;
	}
	return false;
}

static void tell(const char *program, const struct scenario *s,
		 const struct course *c)
{
	char digits[DEPTH_MAX + 1] = "";
	u32 i;

	for (i = 0; i < c->depth; i++)
		digits[i] = '0' + c->fate[i];
	say_context("%s, again with a trace: %s -v --run %s %s\n", s->name,
		    program, s->name, digits);
}

static u32 explore(const char *program, const struct scenario *s, u32 depth)
{
	struct course c = { .depth = depth };
	u32 n = 0;

	do {
		tell(program, s, &c);
		run(s, &c);
		n++;
	} while (next_course(&c));
	return n;
}

static int run_one(const char *program, const char *name, const char *digits)
{
	struct course c = { .depth = strlen(digits) };
	u32 i;

	for (i = 0; i < c.depth && i < DEPTH_MAX; i++)
		c.fate[i] = (digits[i] - '0') % ARRAY_SIZE(fates);
	for (i = 0; i < ARRAY_SIZE(scenarios); i++) {
		if (strcmp(name, scenarios[i].name))
			continue;
		tell(program, &scenarios[i], &c);
		run(&scenarios[i], &c);
		return 0;
	}
	return 2;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "depth", required_argument, NULL, 'd' },
		{ "run", required_argument, NULL, 'r' },
		{ }
	};
	const char *name = NULL;
	u32 depth = DEPTH, n = 0, i;
	int opt;

	while ((opt = getopt_long(argc, argv, "v", options, NULL)) != -1) {
		switch (opt) {
		case 'd': depth = strtoul(optarg, NULL, 0); break;
		case 'r': name = optarg; break;
		case 'v': say_verbose = 1; break;
		default: return 2;
		}
	}
	if (name && optind < argc && strlen(argv[optind]) <= DEPTH_MAX)
		return run_one(argv[0], name, argv[optind]);
	if (name || depth > DEPTH_MAX)
		return 2;
	for (i = 0; i < ARRAY_SIZE(scenarios); i++)
		n += explore(argv[0], &scenarios[i], depth);
	say_pass("test_explore", "%u courses of %zu scenarios, the fates of %u frames",
		 n, ARRAY_SIZE(scenarios), depth);
	return 0;
}
