// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A peer that breaks the protocol, in each way that the library finds: the one
 * lied to loses that connection with EPROTO, and serves the next.
 *
 *     glue_liar HERE             is lied to
 *     glue_liar HERE THERE       lies
 *
 * The liar uses the library to connect, and then its QPs behind its back.
 */
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "glue.h"
#include "glue_test.h"

enum {
	PORT = 7483,
	PART = sizeof(struct call_header),
	/* The parts of the longest call, and the lie. */
	WORDS = (GLUE_MAX_PAYLOAD / PART_SIZE + 2) * SLOT_SIZE,
};

/* What is said, over which half, and how much of it. */
static const struct lie {
	const char *name;
	enum half_kind half;
	uint32_t len;
	struct control control;
	struct call_header call;
	uint32_t before;	/* so much of the longest call comes before it */
} lies[] = {
	{ "an unknown control message", HALF_CONTROL, sizeof(struct control),
	  .control = { .type = 0xff } },
	{ "half a control message", HALF_CONTROL, 8,
	  .control = { .type = CONTROL_PING } },
	{ "no control message", HALF_CONTROL, 0, .control = { 0 } },
	{ "a grant that cannot be", HALF_CONTROL, sizeof(struct control),
	  .control = { .type = CONTROL_MAP, .grant = GRANTS } },
	{ "the release of what is not lent", HALF_CONTROL,
	  sizeof(struct control), .control = { .type = CONTROL_RELEASE } },
	{ "the release of what cannot be", HALF_CONTROL,
	  sizeof(struct control),
	  .control = { .type = CONTROL_RELEASE, .grant = 0xffff } },
	{ "an answer to nothing", HALF_CONTROL, sizeof(struct control),
	  .control = { .type = CONTROL_MAPPED } },
	{ "an answer that cannot be", HALF_CONTROL, sizeof(struct control),
	  .control = { .type = CONTROL_MAPPED, .grant = 0xffff } },
	{ "ready twice", HALF_CONTROL, sizeof(struct control),
	  .control = { .type = CONTROL_READY } },
	{ "half a header", HALF_DATA, PART - 1,
	  .call = { .type = CALL_PART } },
	{ "an unknown message", HALF_DATA, PART, .call = { .type = 0xff } },
	{ "a handler that cannot be", HALF_DATA, PART,
	  .call = { .type = CALL_PART, .handler = GLUE_HANDLERS } },
	{ "a part that does not begin", HALF_DATA, PART + 8,
	  .call = { .type = CALL_PART, .size = 8, .total = 64, .offset = 8 } },
	{ "a part of more than all", HALF_DATA, PART + 8,
	  .call = { .type = CALL_PART, .size = 8, .total = 4 } },
	{ "a part that is shorter than it says", HALF_DATA, PART + 8,
	  .call = { .type = CALL_PART, .size = 9, .total = 64 } },
	{ "a call that is too long", HALF_DATA, PART + 8,
	  .call = { .type = CALL_PART, .size = 8, .total = 0xffffffff } },
	{ "a part of nothing", HALF_DATA, PART,
	  .call = { .type = CALL_PART, .total = 64 } },
	{ "a call that ends before its last part", HALF_DATA, PART + PART_SIZE,
	  .call = { .type = CALL_PART, .size = PART_SIZE, .total = 100,
		    .offset = GLUE_MAX_PAYLOAD - 1 },
	  .before = GLUE_MAX_PAYLOAD - 1 },
	{ "a call that becomes shorter", HALF_DATA, PART + 8,
	  .call = { .type = CALL_PART, .size = 8, .total = 2 * PART_SIZE,
		    .offset = PART_SIZE },
	  .before = PART_SIZE },
	{ "a call of two handlers", HALF_DATA, PART + 8,
	  .call = { .type = CALL_PART, .handler = 1, .size = 8,
		    .total = GLUE_MAX_PAYLOAD, .offset = PART_SIZE },
	  .before = PART_SIZE },
};

enum { LIES = sizeof(lies) / sizeof(lies[0]) };

static void spell(const struct lie *lie, char *to)
{
	struct control control = lie->control;
	struct call_header call = lie->call;

	if (lie->half == HALF_CONTROL) {
		control.grant = htole16(control.grant);
		memcpy(to, &control, sizeof(control));
		return;
	}
	call.handler = htole16(call.handler);
	call.size = htole32(call.size);
	call.total = htole32(call.total);
	call.offset = htole32(call.offset);
	memcpy(to, &call, sizeof(call));
}

static void say(struct glue_connection *c, enum half_kind half, char *words,
		uint32_t len, const struct ibv_mr *mr)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)words,
		.length = len,
		.lkey = mr->lkey,
	};
	struct ibv_send_wr wr = {
		/* Of a connection that is no more: the library leaves it alone. */
		.wr_id = (uint64_t)c->slot << 52 |
			 (uint64_t)((c->generation - 1) & 0xfffff) << 32,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
	}, *bad;

	EXPECT(ibv_post_send(c->half[half].id->qp, &wr, &bad), 0);
}

/* Each message has words of its own: the device may read them later. */
static void tell(struct glue_connection *c, const struct lie *lie, char *words,
		 const struct ibv_mr *mr)
{
	struct lie truth = {
		.half = HALF_DATA,
		.call = { .type = CALL_PART, .total = GLUE_MAX_PAYLOAD },
	};
	uint32_t left = lie->before, size;

	memset(words, 0, WORDS);
	for (; left; left -= size) {
		size = left < PART_SIZE ? left : PART_SIZE;
		truth.call.size = size;
		truth.call.offset = lie->before - left;
		spell(&truth, words);
		say(c, HALF_DATA, words, PART + size, mr);
		words += SLOT_SIZE;
	}
	spell(lie, words);
	say(c, lie->half, words, lie->len, mr);
}

static void lie_all(struct glue *g, const char *there)
{
	char *words = aligned_alloc(4096, WORDS);
	struct glue_connection *c;
	struct ibv_mr *mr;
	int i;

	mr = ibv_reg_mr(g->pd, words, WORDS, IBV_ACCESS_LOCAL_WRITE);
	if (!mr)
		die("ibv_reg_mr failed");
	for (i = 0; i < LIES; i++) {
		c = must_connect(g, there, PORT);
		/* Before that, the program there may not have it, and never hear of it. */
		EXPECT(must_event(g, GLUE_EVENT_NOTIFICATION).tag, i);
		tell(c, &lies[i], words, mr);
		must_event(g, GLUE_EVENT_DISCONNECTED);
		EXPECT(glue_disconnect(c), 0);
	}
	/* And the truth. */
	c = must_connect(g, there, PORT);
	EXPECT(glue_notify(c, 4711), 0);
	must_event(g, GLUE_EVENT_DISCONNECTED);
	EXPECT(glue_disconnect(c), 0);
	ibv_dereg_mr(mr);
	free(words);
}

static void be_lied_to(struct glue *g)
{
	struct glue_connection *c;
	struct glue_event e;
	int i;

	EXPECT(glue_listen(g, PORT), PORT);
	for (i = 0; i < LIES; i++) {
		c = must_wait(g);
		EXPECT(glue_notify(c, i), 0);
		e = must_event(g, GLUE_EVENT_DISCONNECTED);
		if (e.error != EPROTO)
			die("%s: the connection is lost with error %d, not EPROTO",
			    lies[i].name, e.error);
		EXPECT(glue_disconnect(c), 0);
	}
	c = must_wait(g);
	EXPECT(must_event(g, GLUE_EVENT_NOTIFICATION).tag, 4711);
	EXPECT(glue_disconnect(c), 0);
}

int main(int argc, char **argv)
{
	struct glue_options options = { .size = sizeof(options) };
	struct glue *g;

	if (argc < 2)
		die("usage: glue_liar HERE [THERE]");
	g = must_open(argv[1], &options);
	if (argc == 2)
		be_lied_to(g);
	else
		lie_all(g, argv[2]);
	EXPECT(glue_close(g), 0);
	printf("%d lies, each found\n", LIES);
	return 0;
}
