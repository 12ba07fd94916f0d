/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What tests do and see behind the transport's back. */
#include "pair.h"
#include "state.h"

void conn_start_at(struct medge_conn *c, u32 own_op, u32 own_recv, u32 peer_op,
		   u32 peer_recv)
{
	c->op_next = own_op;
	c->op_send = own_op;
	c->op_oldest = own_op;
	c->op_performed = own_op;
	c->recv_index_next = own_recv;
	c->rop_next = peer_op;
	c->recv_msn = peer_recv;
}

void conn_age_fences(struct medge_conn *c, u32 ops)
{
	c->fence_op -= ops;
	c->fence_read -= ops;
}

void conn_forget_dup(struct medge_conn *c)
{
	c->peer_dups++;
}

u32 conn_late(const struct medge_conn *c)
{
	return c->late;
}

void conn_ignore_congestion(struct medge_conn *c)
{
	u32 i;

	for (i = 0; i < c->npaths; i++)
		c->paths[i].cong.window = 1 << 30;
}

void conn_trust_paths(struct medge_conn *c, u32 npaths)
{
	u32 i;

	CHECK(medge_conn_reserve_paths(c, npaths));
	c->npaths = npaths;
	for (i = 0; i < npaths; i++) {
		struct medge_conn_path *path = &c->paths[i];

		path->state = MEDGE_PATH_UP;
		path->weight = MEDGE_SPEED_GUESS;
		path->rail = i;
		c->rail_path[i] = i;
		if (!path->cong.frame)
			medge_sched_new(c, i);
	}
}

static void dump_frames(struct medge_conn *c)
{
	u32 psn;

	for (psn = c->snd_una; psn != c->snd_nxt; psn++) {
		const struct medge_sent *s = medge_sent(c, psn);

		if (s->flags & MEDGE_SENT_ACKED)
			continue;
		printf("    psn %u op %u+%u index %u path %u seq %u sent %llu flags %x\n",
		       psn, s->op_no, s->nops, s->index, s->path, s->path_seq,
		       s->time, s->flags);
	}
}

static void dump_paths(const struct medge_conn *c)
{
	u32 i;

	for (i = 0; i < c->npaths; i++) {
		const struct medge_conn_path *path = &c->paths[i];

		printf("    path %u rail %u %s weight %u next %u acked %u%s srtt %llu var %llu reorder %llu\n",
		       i, path->rail, medge_path_state_name(path->state),
		       path->weight, path->next_seq, path->acked_seq,
		       path->any_acked ? "" : " (none)", path->srtt,
		       path->rttvar, path->reorder);
	}
}

static void dump_held(struct medge_conn *c)
{
	const struct medge_rx *rx;

	for (rx = c->held; rx; rx = rx->next)
		printf("    held psn %u+%u op %u offset %u state %x nops %u fence %u\n",
		       rx->psn, rx->nframes, rx->op_no, rx->offset, rx->state,
		       rx->nops, rx->fence_dist);
}

void conn_dump(struct medge_conn *c)
{
	const struct medge_recv_op *rop = medge_rop(c, c->rop_next);

	printf("  send: psn %u to %u, lost %u from %u; ops next %u send %u oldest %u performed %u, reads %u\n",
	       c->snd_una, c->snd_nxt, c->nlost, c->lost_hint, c->op_next,
	       c->op_send, c->op_oldest, c->op_performed, c->reads_out);
	printf("  dead %u nak %u of %u, rnr wait %u op %u count %u at %llu\n",
	       c->dead, c->nak, c->nak_op, c->rnr_wait, c->rnr_op, c->rnr_count,
	       c->rnr_at);
	printf("  responses: oldest %u send %u next %u\n", c->resp_oldest,
	       c->resp_send, c->resp_next);
	printf("  receive: psn %u high %u, op %u flags %x placed %u of %u busy %u, rnr %u refused %u of %u, recheck %u\n",
	       c->rcv_nxt, c->rcv_high, c->rop_next, rop->flags, rop->placed,
	       rop->op.op_len, rop->busy, c->rcv_rnr, c->refused, c->refuse_op,
	       c->recheck);
	printf("  time: progress %llu loss at %llu last tx %llu backoff %u probed %u deadline %llu, ack at %llu\n",
	       c->progress, c->loss_at, c->last_tx, c->backoff, c->probed,
	       medge_conn_deadline(c), c->ack_at);
	dump_paths(c);
	dump_frames(c);
	dump_held(c);
}

/* ---- what always holds, whatever comes in ---- */

static void check_send_state(struct medge_conn *c)
{
	u32 psn, lost = 0, unacked = 0;

	CHECK(c->snd_nxt - c->snd_una <= MEDGE_WINDOW);
	CHECK(c->op_next - c->op_oldest <= MEDGE_OP_WINDOW);
	CHECK(c->op_send - c->op_oldest <= c->op_next - c->op_oldest);
	CHECK(medge_seq_diff(c->op_next, c->op_performed) >= 0);
	CHECK(c->resp_next - c->resp_oldest <= MEDGE_MAX_RD_ATOMIC);
	CHECK(c->resp_send - c->resp_oldest <= c->resp_next - c->resp_oldest);
	for (psn = c->snd_una; psn != c->snd_nxt; psn++) {
		u8 flags = medge_sent(c, psn)->flags;

		CHECK(!(flags & MEDGE_SENT_LOST) || !(flags & MEDGE_SENT_ACKED));
		lost += !!(flags & MEDGE_SENT_LOST);
		unacked += !(flags & MEDGE_SENT_ACKED);
	}
	CHECK_EQ(c->nlost, lost);
	CHECK_EQ(c->nunacked, unacked);
}

static void check_receive_state(struct medge_conn *c)
{
	const struct medge_rx *rx, *last = NULL;
	u32 held = 0, loose = 0, i;

	CHECK(medge_seq_diff(c->rcv_high, c->rcv_nxt) <= MEDGE_WINDOW);
	for (i = 0; i < MEDGE_BITMAP_WORDS; i++)
		CHECK(!(c->settled[i] & ~c->received[i]), "settled, not received");
	for (rx = c->held; rx; rx = rx->next) {
		CHECK(!last || !medge_seq_before(rx->psn, last->psn),
		      "held frames are not in psn order");
		last = rx;
		held++;
		loose += !!(rx->state & 4);	/* RX_LOOSE */
	}
	CHECK_EQ(c->nheld, held);
	CHECK_EQ(c->nheld_loose, loose);
	CHECK(c->replies <= 2 * MEDGE_REPLIES_MAX && c->replies_trusted >= MEDGE_REPLIES_MIN &&
	      c->replies_trusted <= MEDGE_REPLIES_MAX, "%u replies, trusted from %u on",
	      c->replies, c->replies_trusted);
	CHECK(!held || c->held_last == last);
}

void conn_check(struct medge_conn *c)
{
	check_send_state(c);
	check_receive_state(c);
}
