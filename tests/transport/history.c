/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Runs one case, told on standard input, and tells what memory saw, for a model
 * that knows the contract and nothing of the transport (test_history.py).
 *
 * The case, a line each:
 *   pair NRAILS SEED SEG_LEN PLACE_PPM PLACE_NS BUDGET SLOP_NS
 *   link SIDE RAIL DELAY_NS JITTER_NS LOSS_PPM DUP_PPM REORDER_PPM REORDER_NS
 *   op SIDE AT_NS OPCODE FLAGS SUBMIT REGION OFFSET LEN OPERAND SWAP
 *   recv SIDE AT_NS LEN RELAXED
 *   rail AT_NS RAIL WHAT UP		WHAT: as in struct rail_event of scenario.c
 * OPCODE, FLAGS, SUBMIT, REGION are the numbers of wire.h, conn.h and host.h;
 * REGION 9 is memory that the peer has not granted.
 *
 * The history, in the order of time:
 *   place SIDE OP OFFSET LEN SPACE AT	of SIDE's op, in the peer's memory
 *   atomic SIDE OP AT BEFORE AFTER
 *   perform SIDE OP | complete SIDE OP STATUS
 *   read SIDE OP HEX | answer SIDE OP VALUE
 */
#include <stdlib.h>

#include "pair.h"

enum {
	REGION_LEN = 4096,
	TAG_LEN = 8192,		/* all of the noise from here says the same */
	REGION_NONE = 9,
	LINE = 256,
};

static struct pair pair;

/* ---- what happens ---- */

static u32 index_of(const struct host *h, const struct op *o)
{
	return o - h->ops;
}

/* @o's bytes are @tag, all of them. */
static void check_tag(const struct op *o, u32 i, const u8 *bytes, u32 len)
{
	u32 k;

	for (k = 0; k < len; k++)
		CHECK(bytes[k] == (u8)(i + 1), "op index %u writes a byte of op %d",
		      i, bytes[k] - 1);
}

static void on_copied(struct host *h, const struct medge_op *op, u32 recv_index,
		      u32 offset, const u8 *bytes, u32 len)
{
	const struct host *from = h->peer;
	struct op *o = host_op(h->peer, op->op_no);
	u32 i = index_of(from, o), r = op->rkey - REGION_RKEY;

	if (!len)
		return;
	check_tag(o, i, bytes, len);
	printf("place %u %u %u %u ", from->side, i, offset, len);
	if (op_is_send(op->opcode))
		printf("recv %u\n", (recv_index - h->recv_base) * TAG_LEN + offset);
	else
		printf("%s %llu\n", r == REGION_STRICT ? "strict" : "relaxed",
		       op->addr - host_addr(r, 0) + offset);
}

static void on_atomic(struct host *h, const struct medge_op *op, u64 before,
		      u64 after)
{
	printf("atomic %u %u %llu %llu %llu\n", !h->side,
	       index_of(h->peer, host_op(h->peer, op->op_no)),
	       op->addr - host_addr(REGION_ATOMIC, 0), before, after);
}

static void on_performed(struct host *h, const struct medge_op *op)
{
	printf("perform %u %u\n", !h->side,
	       index_of(h->peer, host_op(h->peer, op->op_no)));
}

static void on_completed(struct host *h, u32 op_no, enum medge_status status)
{
	struct op *o = host_op(h, op_no);
	u32 i = index_of(h, o), k;

	if (!status && o->req.opcode == MEDGE_OP_READ) {
		printf("read %u %u ", h->side, i);
		for (k = 0; k < o->req.len; k++)
			printf("%02x", o->sink[k]);
		puts(o->req.len ? "" : "-");
	} else if (!status && op_is_atomic(o->req.opcode)) {
		printf("answer %u %u %llu\n", h->side, i,
		       get_unaligned_be64(o->sink));
	}
	printf("complete %u %u %u\n", h->side, i, status);
}

/* ---- the case ---- */

static void make_tags(void)
{
	u32 i;

	for (i = 0; i < NOISE_LEN; i++)
		noise[i] = i / TAG_LEN;
}

struct todo {
	void (*fn)(const struct todo *t);
	u32 side;
	struct medge_request req;
	u64 operand, swap;
	u32 len, rail, what;
	bool flag;
};

static void run_todo(void *arg, bool run)
{
	struct todo *t = arg;

	if (run)
		t->fn(t);
	free(t);
}

static void later(u64 at, const struct todo *todo)
{
	struct todo *t = malloc(sizeof(*t));

	*t = *todo;
	events_add(&pair.events, at, run_todo, t);
}

static void do_op(const struct todo *t)
{
	struct host *h = &pair.host[t->side];
	struct op *o;

	if (h->failed)
		return;
	o = host_post(h, &t->req);
	CHECK(h->nops < NOISE_LEN / TAG_LEN, "too many ops for tags of a byte");
	o->src = h->nops * TAG_LEN;
	o->operand = t->operand;
	o->swap = t->swap;
	pair_poll(&pair, t->side);
}

static void do_recv(const struct todo *t)
{
	host_post_recv(&pair.host[t->side], t->len, t->flag);
}

static void do_rail(const struct todo *t)
{
	u32 side;

	for (side = 0; side < 2; side++) {
		if (t->what & 4 << side)
			pair_dark(&pair, side, t->rail, !t->flag);
		if (t->what & 1 << side)
			pair_rail(&pair, side, t->rail,
				  t->flag ? pair.params.weight[side][t->rail] : 0);
	}
}

static void read_op(const char *line)
{
	struct todo t = { .fn = do_op };
	u32 opcode, flags, submit, region;
	u64 at, offset;

	CHECK(sscanf(line, "%u %llu %u %u %u %u %llu %u %llu %llu", &t.side, &at,
		     &opcode, &flags, &submit, &region, &offset, &t.req.len,
		     &t.operand, &t.swap) == 10, "op %s", line);
	t.req.opcode = opcode;
	t.req.flags = flags;
	t.req.submit = submit;
	if (!op_is_send(opcode)) {
		t.req.addr = host_addr(region == REGION_NONE ? 0 : region, offset);
		t.req.rkey = region == REGION_NONE ? (u32)BAD_RKEY :
						     host_rkey(region);
	}
	later(at, &t);
}

static void read_recv(const char *line)
{
	struct todo t = { .fn = do_recv };
	u32 relaxed;
	u64 at;

	CHECK(sscanf(line, "%u %llu %u %u", &t.side, &at, &t.len, &relaxed) == 4,
	      "recv %s", line);
	t.flag = relaxed;
	later(at, &t);
}

static void read_rail(const char *line)
{
	struct todo t = { .fn = do_rail };
	u32 up;
	u64 at;

	CHECK(sscanf(line, "%llu %u %u %u", &at, &t.rail, &t.what, &up) == 4,
	      "rail %s", line);
	t.flag = up;
	later(at, &t);
}

static void read_pair(const char *line, struct pair_params *p)
{
	u32 nrails, seg_len;
	u64 seed;

	CHECK(sscanf(line, "%u %llu %u", &nrails, &seed, &seg_len) == 3 &&
	      nrails <= MEDGE_MAX_RAILS, "pair %s", line);
	pair_params_default(p, nrails);
	CHECK(sscanf(line, "%*u %*u %*u %u %llu %u %llu", &p->place_ppm,
		     &p->place_ns, &p->budget, &p->slop_ns) == 4, "pair %s", line);
	p->seed = seed;
	p->region_len = REGION_LEN;
	p->cfg[0].seg_len = seg_len;
	p->cfg[1].seg_len = seg_len;
}

static void read_link(const char *line, struct pair_params *p)
{
	struct net_link_cfg *l;
	u32 side, rail;

	CHECK(sscanf(line, "%u %u", &side, &rail) == 2 && side < 2 &&
	      rail < p->nrails, "link %s", line);
	l = &p->link[side][rail];
	CHECK(sscanf(line, "%*u %*u %llu %llu %u %u %u %llu", &l->delay_ns,
		     &l->jitter_ns, &l->loss_ppm, &l->dup_ppm, &l->reorder_ppm,
		     &l->reorder_ns) == 6, "link %s", line);
}

/* The pair and its links come first, then what happens. */
static void read_case(void)
{
	struct pair_params params;
	char word[LINE], line[LINE];
	bool made = false;
	u32 side, i;

	pair_params_default(&params, 1);
	while (scanf("%255s %255[^\n]", word, line) == 2) {
		if (!strcmp(word, "pair")) {
			read_pair(line, &params);
			continue;
		}
		if (!strcmp(word, "link")) {
			read_link(line, &params);
			continue;
		}
		if (!made)
			pair_init(&pair, &params);
		made = true;
		if (!strcmp(word, "op"))
			read_op(line);
		else if (!strcmp(word, "recv"))
			read_recv(line);
		else if (!strcmp(word, "rail"))
			read_rail(line);
		else
			FAIL("%s %s", word, line);
	}
	CHECK(made, "no case");
	for (side = 0; side < 2; side++) {
		for (i = 0; i < REGIONS; i++) {
			struct region *r = &pair.host[side].regions[i];

			r->src = 0;
			memset(r->bytes, 0, r->len);
		}
	}
	pair.on_copied = on_copied;
	pair.on_atomic = on_atomic;
	pair.on_performed = on_performed;
	pair.on_completed = on_completed;
}

int main(int argc, char **argv)
{
	say_verbose = argc > 1 && !strcmp(argv[1], "-v");
	make_tags();
	read_case();
	/* When an op has been refused, both QPs are dead, and who waits waits on. */
	while (!pair_run(&pair, pair_now(&pair) + 50 * MSEC)) {
		if (pair.host[0].failed || pair.host[1].failed)
			break;
		CHECK(pair_now(&pair) < 60 * SEC, "not done in a minute");
	}
	pair_free(&pair);
	return 0;
}
