// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* A connection's state in names and numbers, for whoever must find out why it waits. */
#include "state.h"

void medge_conn_query(const struct medge_conn *c, struct medge_conn_info *info)
{
	*info = (struct medge_conn_info) {
		.seg_len = c->cfg.seg_len,
		.ops_waiting = c->op_next - c->op_send,
		.ops_outstanding = c->op_send - c->op_oldest,
		.frames_unacked = c->nunacked,
		.frames_held = c->nheld,
		.rnr = c->rcv_rnr,
		.rnr_wait = c->rnr_wait,
	};
}

/* What a path looks like from here. */
static int describe_path(const struct medge_conn *c, u32 path,
			 int (*put)(void *arg, const char *name, u64 value),
			 void *arg)
{
	const struct medge_cong *g = &c->paths[path].cong;
	const struct {
		const char *name;
		u64 value;
	} of_path[] = {
		{ "window", g->window },
		{ "inflight", g->inflight },
		{ "rtt_us", g->rtt / MEDGE_USEC },
		{ "base_us", medge_cong_base(g) / MEDGE_USEC },
		{ "target_us", medge_cong_target(g) / MEDGE_USEC },
		{ "rate_mbit", g->rate * 8 / 1000000 },
		{ "rail", c->paths[path].rail },
		{ "state", c->paths[path].state },
	};
	char name[32];
	u32 i;
	int ret;

	for (i = 0; i < ARRAY_SIZE(of_path); i++) {
		snprintf(name, sizeof(name), "path%u_%s", path, of_path[i].name);
		ret = put(arg, name, of_path[i].value);
		if (ret)
			return ret;
	}
	return 0;
}

int medge_conn_describe(const struct medge_conn *c, u64 now,
			int (*put)(void *arg, const char *name, u64 value),
			void *arg)
{
	const struct medge_recv_op *rop = medge_rop(c, c->rop_next);
	const struct {
		const char *name;
		u64 value;
	} of_conn[] = {
		{ "dead", c->dead },
		{ "ops_waiting", c->op_next - c->op_send },
		{ "ops_outstanding", c->op_send - c->op_oldest },
		{ "op_oldest", c->op_oldest },
		{ "op_performed", c->op_performed },
		{ "reads_out", c->reads_out },
		{ "snd_una", c->snd_una },
		{ "snd_nxt", c->snd_nxt },
		{ "window", c->window },
		{ "frames_unacked", c->nunacked },
		{ "frames_lost", c->nlost },
		{ "timeouts", c->backoff },
		{ "quiet_us", (now - c->progress) / MEDGE_USEC },
		{ "rnr_wait", c->rnr_wait },
		{ "nak", c->nak },
		{ "waits_for_memory", c->waits },
		{ "responses_waiting", c->resp_next - c->resp_send },
		{ "responses_outstanding", c->resp_send - c->resp_oldest },
		{ "rcv_nxt", c->rcv_nxt },
		{ "rcv_high", c->rcv_high },
		{ "rop_next", c->rop_next },
		{ "rop_flags", rop->flags },
		{ "rop_opcode", rop->op.opcode },
		{ "rop_wire_flags", rop->op.flags },
		{ "rop_placed", rop->placed },
		{ "rop_len", rop->op.op_len },
		{ "rop_busy", rop->busy },
		{ "held", c->nheld },
		{ "held_loose", c->nheld_loose },
		{ "replies", c->replies },
		{ "replies_trusted", c->replies_trusted },
		{ "rnr", c->rcv_rnr },
		{ "refused", c->refused ? c->refuse_nak : 0 },
		{ "retransmits", c->stats.retransmits },
	};
	int ret = 0;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(of_conn); i++) {
		ret = put(arg, of_conn[i].name, of_conn[i].value);
		if (ret)
			return ret;
	}
	for (i = 0; i < c->npaths && !ret; i++)
		if (c->paths[i].weight)
			ret = describe_path(c, i, put, arg);
	return ret;
}
