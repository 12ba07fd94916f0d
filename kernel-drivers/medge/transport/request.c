// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Our requests, from submission to completion in their order. */
#include "state.h"

/* How a refused request ends (IBTA 9.7.5.2.8). */
static const u8 nak_status[MEDGE_NAKS] = {
	[MEDGE_NAK_INVALID_REQUEST] = MEDGE_REMOTE_INVALID_REQUEST,
	[MEDGE_NAK_ACCESS] = MEDGE_REMOTE_ACCESS,
	[MEDGE_NAK_OPERATION] = MEDGE_REMOTE_OPERATION,
};

static enum medge_status refused_status(u8 nak)
{
	return nak < MEDGE_NAKS ? nak_status[nak] : MEDGE_REMOTE_OPERATION;
}

u32 medge_conn_send_room(struct medge_conn *c, u32 want)
{
	u32 used = c->op_next - c->op_oldest;

	if (!c->can_send || c->dead)
		return 0;
	medge_table_grow(&c->sops, sizeof(struct medge_send_op),
			 used + min_t(u32, want, MEDGE_OP_WINDOW),
			 MEDGE_OP_WINDOW, c->op_oldest, used);
	return min(want, medge_table_size(&c->sops) - used);
}

u32 medge_conn_next_op(const struct medge_conn *c)
{
	return c->op_next;
}

u32 medge_conn_oldest_op(const struct medge_conn *c)
{
	return c->op_oldest;
}

/*
 * How far back @fence is, if it is not passed yet. One that is passed is forgotten, for
 * its number is one of those to come when half of them have been used.
 */
static u16 fence_dist(const struct medge_conn *c, bool *any, u32 fence, u32 op_no)
{
	if (*any && medge_seq_before(fence, c->op_oldest))
		*any = false;
	return *any ? op_no - fence : 0;
}

u32 medge_conn_submit(struct medge_conn *c, const struct medge_request *req)
{
	u32 op_no = c->op_next++;
	struct medge_send_op *sop = medge_sop(c, op_no);

	if (c->op_oldest == op_no && c->snd_una == c->snd_nxt)
		c->fresh = true;
	memset(sop, 0, sizeof(*sop));
	sop->req = *req;
	c->unsent += medge_request_payload(req);
	sop->fence_dist = fence_dist(c, &c->any_fence, c->fence_op, op_no);
	sop->read_dist = fence_dist(c, &c->any_fence_read, c->fence_read, op_no);
	if (medge_opcode_consumes(req->opcode))
		sop->recv_index = c->recv_index_next++;
	if (req->flags & MEDGE_OP_FENCE_FORWARD) {
		c->fence_op = op_no;
		c->any_fence = true;
		if (medge_opcode_answers(req->opcode)) {
			c->fence_read = op_no;
			c->any_fence_read = true;
		}
	}
	return op_no;
}

/*
 * The frame that was to carry failed op @op_no behind others has not left: the
 * others must go again, without it.
 */
static void release_packed(struct medge_conn *c, u32 op_no)
{
	u32 psn;

	for (psn = c->snd_una; psn != c->snd_nxt; psn++) {
		struct medge_sent *s = medge_sent(c, psn);

		if (!(s->flags & MEDGE_SENT_RESPONSE) &&
		    op_no - s->op_no < s->nops && op_no != s->op_no) {
			s->nops = op_no - s->op_no;
			medge_loss_mark(c, psn);
		}
	}
}

void medge_conn_fail_op(struct medge_conn *c, u32 op_no, enum medge_status status)
{
	if (op_no - c->op_oldest >= c->op_next - c->op_oldest)
		return;
	if (!medge_sop(c, op_no)->status)
		medge_sop(c, op_no)->status = status;
	if (!c->any_failed || medge_seq_before(op_no, c->failed_op))
		c->failed_op = op_no;
	c->any_failed = true;
	release_packed(c, op_no);
	medge_request_complete(c);
}

static bool op_done(struct medge_conn *c, u32 op_no)
{
	struct medge_send_op *sop = medge_sop(c, op_no);

	if (!medge_seq_before(op_no, c->op_send))
		return false;
	if (medge_opcode_answers(sop->req.opcode))
		return sop->answered;
	return medge_seq_before(op_no, c->op_performed);
}

static enum medge_status op_status(struct medge_conn *c, u32 op_no)
{
	struct medge_send_op *sop = medge_sop(c, op_no);

	if (sop->status)
		return sop->status;
	if (c->nak && c->nak_op == op_no)
		return refused_status(c->nak);
	return MEDGE_OK;
}

void medge_request_complete(struct medge_conn *c)
{
	while (!c->dead && c->op_oldest != c->op_next) {
		u32 op_no = c->op_oldest;
		enum medge_status status = op_status(c, op_no);

		if (status == MEDGE_OK && !op_done(c, op_no))
			return;
		/* A piece that came twice, or before an error, is not to come after that. */
		if (medge_sop(c, op_no)->busy)
			return;
		c->op_oldest++;
		if (medge_seq_before(c->op_send, c->op_oldest))
			c->op_send = c->op_oldest;
		if (status != MEDGE_OK) {
			c->dead = true;
			medge_loss_forget_requests(c);
		}
		c->ops->completed(c, op_no, status);
	}
}

void medge_request_answered(struct medge_conn *c, u32 op_no, u32 placed)
{
	struct medge_send_op *sop = medge_sop(c, op_no);
	u32 want = sop->req.opcode == MEDGE_OP_READ ? sop->req.len : 8;

	sop->placed += placed;
	if (sop->placed >= want && !sop->answered) {
		sop->answered = true;
		c->reads_out--;
	}
	medge_request_complete(c);
}
