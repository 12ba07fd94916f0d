/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The ordering contract (DESIGN section 4), checked at the moment when it could
 * be broken: at each byte placed, op performed, op completed, frame sent.
 */
#include <stdlib.h>

#include "host.h"
#include "pair.h"

static u32 op_payload(const struct medge_request *req)
{
	return medge_opcode_bare(req->opcode) ? 0 : req->len;
}

/* Bytes that come back. */
static u32 op_answer(const struct medge_request *req)
{
	return req->opcode == MEDGE_OP_READ ? req->len : sizeof(u64);
}

static u32 index_of(const struct host *h, const struct op *op)
{
	return op - h->ops;
}

/* ---- sending ---- */

static void check_numbers(struct host *h, const struct medge_tx *tx)
{
	u32 end = tx->psn + tx->nframes;

	CHECK(tx->nframes >= 1);
	CHECK(medge_seq_diff(tx->psn, h->snd_nxt) <= 0, "psn %u skips %u",
	      tx->psn, h->snd_nxt);
	/* not part of a run again, part of it new */
	CHECK(tx->psn == h->snd_nxt || medge_seq_diff(end, h->snd_nxt) <= 0);
	CHECK((u32)(end - h->acked) <= MEDGE_WINDOW ||
	      medge_seq_before(tx->psn, h->acked),
	      "window: psn %u sent, acknowledged %u", end - 1, h->acked);
	h->count.frames_sent += tx->nframes;
	if (tx->psn == h->snd_nxt) {
		h->snd_nxt = end;
		h->count.frames_new += tx->nframes;
	}
	h->count.superframes += tx->nframes > 1;
}

void check_tx(struct host *h, const struct medge_tx *tx)
{
	const struct medge_conn_config *cfg = &h->pair->params.cfg[h->side];

	if (h->pair->hostile)
		return;
	CHECK(tx->rail < h->pair->params.nrails);
	CHECK(h->pair->weight[h->side][tx->rail], "sent on rail %u, down",
	      tx->rail);
	if (tx->type == MEDGE_FRAME_ACK) {
		h->count.acks_sent++;
		CHECK(tx->len <= MEDGE_ACK_MAX);
		CHECK_EQ(tx->nframes, 1);
		return;
	}
	check_numbers(h, tx);
	CHECK(tx->nops >= 1);
	if (tx->nops > 1) {
		CHECK_EQ(tx->nframes, 1);
		CHECK(tx->len <= (u32)cfg->seg_len + MEDGE_HDR_LEN);
		return;
	}
	CHECK_EQ(tx->nframes, max(DIV_ROUND_UP(tx->op.len, cfg->seg_len), 1u));
	CHECK(tx->op.len <= max_t(u32, cfg->run_max, cfg->seg_len));
}

/* All READs and atomics before @op have their answers. */
static void check_submit_fence(const struct host *h, const struct op *op)
{
	u32 i;

	for (i = 0; i < index_of(h, op); i++) {
		const struct op *before = &h->ops[i];

		CHECK(!op_answers(before->req.opcode) ||
		      before->sunk == op_answer(&before->req),
		      "op index %u sent, fenced, but %u has no answer",
		      index_of(h, op), i);
	}
}

static void first_sent(struct host *h, struct op *op)
{
	op->sent = true;
	CHECK(op == h->ops || op[-1].sent, "op index %u sent before the one before",
	      index_of(h, op));
	CHECK(!h->failed, "op index %u sent after a failure", index_of(h, op));
	if (op->req.submit & MEDGE_SUBMIT_FENCE)
		check_submit_fence(h, op);
	if (!op_answers(op->req.opcode))
		return;
	h->reads_out++;
	CHECK(h->reads_out <= max_t(u32, h->pair->params.cfg[h->side].ord, 1),
	      "%u READs and atomics in flight", h->reads_out);
}

static void check_tx_response(struct host *h, const struct medge_op *op)
{
	struct op *o = host_op(h->peer, op->op_no);

	CHECK_EQ(op->opcode, MEDGE_OP_RESPONSE);
	CHECK(op_answers(o->req.opcode), "response to a %s",
	      medge_opcode_name(o->req.opcode));
	CHECK(o->performed, "response %u before its request was performed",
	      op->op_no);
	CHECK_EQ(op->op_len, op_answer(&o->req));
	CHECK(op->offset + op->len <= op->op_len);
	if (o->req.opcode == MEDGE_OP_READ && o->req.len) {
		CHECK_EQ(op->addr, o->req.addr);
		CHECK_EQ(op->rkey, o->req.rkey);
	}
}

void check_tx_op(struct host *h, const struct medge_tx *tx,
		 const struct medge_op *op)
{
	struct op *o;

	if (h->pair->hostile)
		return;
	if (tx->response) {
		check_tx_response(h, op);
		return;
	}
	o = host_op(h, op->op_no);
	CHECK_EQ(op->opcode, o->req.opcode);
	CHECK_EQ(op->flags, o->req.flags);
	CHECK_EQ(op->op_len, o->req.len);
	CHECK(op->offset + op->len <= op_payload(&o->req));
	/* Its memory is the application's again. */
	CHECK(!o->completed || !op->len, "op %u sent after its completion",
	      op->op_no);
	if (!o->sent)
		first_sent(h, o);
}

/* ---- placing ---- */

/* Each byte is given out for placing once. */
static void mark(u8 **map, u32 total, u32 offset, u32 len)
{
	CHECK(offset <= total && len <= total - offset,
	      "bytes %u to %u of an op of %u", offset, offset + len, total);
	if (!*map)
		*map = calloc(1, total + 1);
	CHECK(!memchr(*map + offset, 1, len), "bytes placed twice, in %u to %u",
	      offset, offset + len);
	memset(*map + offset, 1, len);
}

static void place_response(struct host *h, const struct medge_op *op, bool begin)
{
	struct op *o = host_op(h, op->op_no);
	u32 total = op_answer(&o->req);

	CHECK(op_answers(o->req.opcode));
	if (!begin) {
		o->sinking--;
		if (o->sink_gone)
			return;
		o->sunk += op->len;
		if (o->sunk == total)
			h->reads_out--;
		return;
	}
	CHECK(o->sent && (!o->completed || h->failed));
	if (!o->sink)
		o->sink = calloc(1, total + 1);
	mark(&o->sunk_map, total, op->offset, op->len);
	o->sinking++;
}

/* Is all of op index @i of @from in place, or at least performed? */
static bool in_place(const struct host *from, u32 i)
{
	const struct op *o = &from->ops[i];

	return o->performed ||
	       (o->req.opcode == MEDGE_OP_WRITE && o->targeted &&
		o->placed == o->req.len && !o->placing);
}

/* @from's op @o is about to change memory, or does: may it? */
static void check_order(const struct host *from, const struct op *o)
{
	bool strict = o->req.flags & MEDGE_OP_STRICT && !o->relaxed;
	u32 i = index_of(from, o);

	if (strict || o->req.flags & MEDGE_OP_FENCE_BACKWARD)
		CHECK(from->peer_performed == i,
		      "op index %u placed, but only %u are performed", i,
		      from->peer_performed);
	if (o->fence_before >= 0)
		CHECK(in_place(from, o->fence_before),
		      "op index %u placed before %d with a forward fence", i,
		      o->fence_before);
}

static void place_request(struct host *h, const struct medge_op *op, bool begin)
{
	struct host *from = h->peer;
	struct op *o = host_op(from, op->op_no);
	bool strict = o->req.flags & MEDGE_OP_STRICT && !o->relaxed;

	CHECK(o->targeted && !o->target_nak && !o->performed);
	check_order(from, o);
	if (!begin) {
		o->placing--;
		o->placed += op->len;
		return;
	}
	CHECK_EQ(op->opcode, o->req.opcode);
	CHECK_EQ(op->op_len, o->req.len);
	mark(&o->placed_map, op_payload(&o->req), op->offset, op->len);
	if (strict)
		CHECK(!o->placing && o->placed == op->offset,
		      "op %u, strict: offset %u placed when %u bytes were", op->op_no,
		      op->offset, o->placed);
	o->placing++;
}

/*
 * Forged frames say anything; the bytes must still go where the target upcall
 * or the reader's own request allowed.
 */
static void place_hostile(struct host *h, const struct medge_piece *piece)
{
	const struct medge_op *op = &piece->op;
	const struct grant *g = &h->grants[op->op_no % GRANTS];
	struct op *o;

	if (op->opcode == MEDGE_OP_RESPONSE) {
		o = host_op(h, op->op_no);
		CHECK(op_answers(o->req.opcode) && !o->completed);
		CHECK(op->offset <= op_answer(&o->req) &&
		      op->len <= op_answer(&o->req) - op->offset);
		if (!o->sink)
			o->sink = calloc(1, op_answer(&o->req) + 1);
		return;
	}
	CHECK(g->given && g->op_no == op->op_no, "op %u has no target",
	      op->op_no);
	CHECK_EQ(g->opcode, op->opcode);
	CHECK_EQ(g->op_len, op->op_len);
	CHECK_EQ(g->addr, op->addr);
	CHECK_EQ(g->rkey, op->rkey);
	CHECK(op->offset <= op->op_len && op->len <= op->op_len - op->offset);
}

void check_place(struct host *h, const struct medge_piece *piece, bool begin)
{
	if (h->pair->hostile) {
		if (begin)
			place_hostile(h, piece);
		return;
	}
	if (piece->op.opcode == MEDGE_OP_RESPONSE)
		place_response(h, &piece->op, begin);
	else
		place_request(h, &piece->op, begin);
	if (op_is_send(piece->op.opcode))
		CHECK_EQ(piece->recv_index,
			 host_op(h->peer, piece->op.op_no)->recv_index);
}

/* ---- performing ---- */

static void check_receive(struct host *h, const struct op *o, u32 recv_index)
{
	u32 i = recv_index - h->recv_base, k;
	struct recv *r = &h->recvs[i];

	CHECK_EQ(recv_index, o->recv_index);
	CHECK(i < h->nrecvs, "receive %u was never posted", recv_index);
	CHECK_EQ(i, h->consumed);
	h->consumed++;
	CHECK(!r->delivered);
	r->delivered = true;
	k = op_is_send(o->req.opcode) ? o->req.len : 0;
	CHECK(!memcmp(r->bytes, noise + o->src, k),
	      "receive %u delivered with wrong bytes", recv_index);
	for (; k < r->len + RECV_SLACK; k++)
		CHECK(r->bytes[k] == 0xa5, "receive %u written beyond its message",
		      recv_index);
}

void check_performed(struct host *h, const struct medge_op *op, u32 recv_index)
{
	struct host *from = h->peer;
	struct op *o;

	if (h->pair->hostile) {
		if (op_consumes(op->opcode))
			CHECK(host_recv(h, recv_index) &&
			      recv_index == h->recv_base + h->consumed++,
			      "receive %u consumed", recv_index);
		return;
	}
	TRACE("%llu side %u performed op %u\n", pair_now(h->pair), h->side,
	      op->op_no);
	o = host_op(from, op->op_no);
	CHECK_EQ(index_of(from, o), from->peer_performed);
	CHECK(!h->refused, "op %u performed after a refusal", op->op_no);
	CHECK(o->targeted && !o->target_nak && !o->place_nak && !o->placing);
	CHECK_EQ(op->opcode, o->req.opcode);
	CHECK_EQ(op->flags, o->req.flags);
	CHECK_EQ(op->op_len, o->req.len);
	CHECK_EQ(op->imm, o->req.imm);
	CHECK(op->opcode != MEDGE_OP_SEND_INV || o->invalidated,
	      "op %u performed, but its key is still valid", op->op_no);
	if (op_is_atomic(o->req.opcode))
		CHECK(o->executed);
	else
		CHECK(o->placed == op_payload(&o->req),
		      "op %u performed with %u bytes of %u placed", op->op_no,
		      o->placed, o->req.len);
	if (op_consumes(o->req.opcode))
		check_receive(h, o, recv_index);
	o->performed = true;
	from->peer_performed++;
}

u8 pair_atomic(struct host *h, const struct medge_op *op, u8 *cell,
	       u64 operand, u64 swap, u64 *original)
{
	u64 value;

	memcpy(&value, cell, sizeof(value));
	*original = value;
	if (!h->pair->hostile) {
		struct op *o = host_op(h->peer, op->op_no);

		CHECK_EQ(index_of(h->peer, o), h->peer->peer_performed);
		CHECK(!o->executed, "atomic %u executed twice", op->op_no);
		CHECK_EQ(operand, o->operand);
		if (op->opcode == MEDGE_OP_CMP_SWAP)
			CHECK_EQ(swap, o->swap);
		if (o->place_nak)
			return o->place_nak;
		o->executed = true;
		o->original = value;
	}
	if (op->opcode == MEDGE_OP_FETCH_ADD)
		value += operand;
	else if (value == operand)
		value = swap;
	memcpy(cell, &value, sizeof(value));
	return MEDGE_NAK_NONE;
}

/* ---- completing ---- */

static void check_completed_ok(struct host *h, u32 i)
{
	struct op *o = &h->ops[i];

	CHECK(o->performed, "op index %u completed but not performed", i);
	CHECK(!o->memory_gone || !op_payload(&o->req));
	if (!op_answers(o->req.opcode))
		return;
	CHECK_EQ(o->sunk, op_answer(&o->req));
	CHECK_EQ(o->sinking, 0);
	if (op_is_atomic(o->req.opcode))
		CHECK(get_unaligned_be64(o->sink) == o->original,
		      "atomic %u has a wrong answer", i);
	else
		check_read(h, i);
}

void check_completed(struct host *h, u32 op_no, enum medge_status status)
{
	u32 i = op_no - h->first_op;

	TRACE("%llu side %u completed op %u status %u\n", pair_now(h->pair),
	      h->side, op_no, status);
	CHECK(i == h->completed && i < h->submitted,
	      "op %u completed when %u ops were", op_no, h->completed);
	CHECK(!h->failed, "op %u completed after a failure", op_no);
	CHECK(status < MEDGE_STATUSES);
	h->completed++;
	h->ops[i].completed = true;
	h->ops[i].status = status;
	h->failed = status != MEDGE_OK;
	if (status == MEDGE_OK && !h->pair->hostile)
		check_completed_ok(h, i);
	if (h->pair->on_completed)
		h->pair->on_completed(h, op_no, status);
}
