// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Our answers to the peer's READs and atomics, until they are acknowledged. */
#include "state.h"

/* Without memory for one more there is room when those there are have been acknowledged. */
bool medge_response_room(struct medge_conn *c)
{
	u32 used = c->resp_next - c->resp_oldest;

	medge_table_grow(&c->resps, sizeof(struct medge_response), used + 1,
			 MEDGE_MAX_RD_ATOMIC, c->resp_oldest, used);
	return used < medge_table_size(&c->resps);
}

void medge_response_queue(struct medge_conn *c, const struct medge_op *op,
			  u64 atomic)
{
	struct medge_response *r = medge_resp(c, c->resp_next++);

	memset(r, 0, sizeof(*r));
	r->op_no = op->op_no;
	r->is_atomic = op->opcode != MEDGE_OP_READ;
	r->len = r->is_atomic ? sizeof(u64) : op->op_len;
	r->addr = op->addr;
	r->rkey = op->rkey;
	r->imm = op->imm;
	r->atomic = atomic;
	c->unsent += r->len;
}

bool medge_response_none(const struct medge_conn *c)
{
	return c->resp_oldest == c->resp_next;
}

bool medge_response_pending(struct medge_conn *c, u32 op_no)
{
	u32 slot;

	for (slot = c->resp_oldest; slot != c->resp_next; slot++) {
		struct medge_response *r = medge_resp(c, slot);

		if (r->op_no == op_no && r->acked < medge_frames(c, r->len))
			return true;
	}
	return false;
}

void medge_response_acked(struct medge_conn *c, u32 slot, u32 frames)
{
	medge_resp(c, slot)->acked += frames;
	while (c->resp_oldest != c->resp_send) {
		struct medge_response *r = medge_resp(c, c->resp_oldest);

		if (r->acked < medge_frames(c, r->len))
			return;
		c->resp_oldest++;
		c->recheck = true;
	}
}

static struct medge_response *find_response(struct medge_conn *c, u32 op_no)
{
	u32 slot;

	for (slot = c->resp_oldest; slot != c->resp_next; slot++)
		if (medge_resp(c, slot)->op_no == op_no)
			return medge_resp(c, slot);
	return NULL;
}

/*
 * Who has its answer may tell us, by any other way, to take the memory back
 * before its ack is here, and a frame of the answer is to go again: so ask
 * first. Two answers: the first may have been on its way.
 */
static bool in_doubt(struct medge_conn *c, struct medge_response *r)
{
	u32 acks = c->stats.rx_acks;

	if (!r->gone)
		r->gone_acks = acks;
	r->gone = true;
	c->poke_now = true;
	return acks - r->gone_acks < 2;
}

void medge_conn_fail_response(struct medge_conn *c, u32 op_no)
{
	struct medge_op op = { .opcode = MEDGE_OP_READ, .op_no = op_no };
	struct medge_response *r = find_response(c, op_no);

	if (c->refused || (r && in_doubt(c, r)))
		return;
	/* The requester has not got its data, so nothing but this op fails. */
	medge_recvq_refuse(c, &op, MEDGE_NAK_ACCESS);
}
