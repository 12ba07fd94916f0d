/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What directed tests share. */
#include <unistd.h>

#include "direct.h"

static u32 count;
static const char *program, *only;

void direct_begin(int argc, char **argv)
{
	int i;

	program = argv[0];
	for (i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "-v"))
			say_verbose = 1;
		else
			only = argv[i];
	}
}

void direct_run(const char *name, void (*fn)(void))
{
	if (only && strcmp(only, name))
		return;
	say_context("again with a trace: %s -v %s\n", program, name);
	TRACE("---- %s\n", name);
	fn();
	count++;
}

int direct_end(const char *name)
{
	if (!count) {
		fprintf(stderr, "FAIL %s: no test is called %s\n", name, only);
		return 1;
	}
	say_pass(name, "%u tests", count);
	return 0;
}

struct medge_request req_write(enum host_region region, u64 offset, u32 len,
			       u8 flags)
{
	return (struct medge_request){
		.opcode = MEDGE_OP_WRITE,
		.flags = flags,
		.submit = MEDGE_SUBMIT_SIGNALED,
		.len = len,
		.addr = host_addr(region, offset),
		.rkey = host_rkey(region),
	};
}

struct medge_request req_read(enum host_region region, u64 offset, u32 len)
{
	struct medge_request req = req_write(region, offset, len, MEDGE_OP_STRICT);

	req.opcode = MEDGE_OP_READ;
	return req;
}

struct medge_request req_send(u32 len, u8 flags)
{
	return (struct medge_request){
		.opcode = MEDGE_OP_SEND,
		.flags = flags,
		.submit = MEDGE_SUBMIT_SIGNALED,
		.len = len,
	};
}

struct medge_request req_write_imm(enum host_region region, u64 offset, u32 len,
				   u8 flags)
{
	struct medge_request req = req_write(region, offset, len, flags);

	req.opcode = MEDGE_OP_WRITE_IMM;
	req.imm = cpu_to_be32(0x12345678);
	return req;
}

struct medge_request req_fetch_add(u32 cell)
{
	return (struct medge_request){
		.opcode = MEDGE_OP_FETCH_ADD,
		.flags = MEDGE_OP_STRICT,
		.submit = MEDGE_SUBMIT_SIGNALED,
		.len = MEDGE_ATOMIC_LEN,
		.addr = host_addr(REGION_ATOMIC, 8 * cell),
		.rkey = host_rkey(REGION_ATOMIC),
	};
}

static enum net_verdict filter(void *user, u32 side, u32 rail, struct packet *p,
			       u64 *delay)
{
	struct watch *w = user;
	struct seen seen = { .side = side, .rail = rail, .packet = p };
	u32 end;

	CHECK(!medge_wire_decode(p->data, p->len, p->len, &seen.f));
	if (seen.f.type == MEDGE_FRAME_PROBE || seen.f.type == MEDGE_FRAME_REPLY)
		return NET_PASS;
	if (seen.f.type == MEDGE_FRAME_ACK) {
		medge_wire_decode_ack(p->data, &seen.ack);
	} else {
		end = seen.f.psn + seen.f.nframes;
		seen.first = !medge_seq_before(seen.f.psn, w->next_psn[side]);
		if (seen.first)
			w->next_psn[side] = end;
	}
	return w->fn(w->pair, &seen, delay, w->user);
}

void watch_frames(struct watch *w, struct pair *p, watch_fn fn, void *user)
{
	*w = (struct watch){ p, fn, user, { p->params.cfg[0].psn,
					    p->params.cfg[1].psn } };
	p->net.ops.filter = filter;
	p->net.ops.filter_user = w;
}
