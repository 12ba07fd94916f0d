// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The way out: requests and responses become runs of frames, once or again. */
#include "state.h"

/* ---- frames ---- */

static u32 window_room(const struct medge_conn *c)
{
	u32 inflight = c->snd_nxt - c->snd_una;
	u32 window = min(c->window, medge_table_size(&c->sent));

	/* It shrinks when rails go. */
	return window - min(window, inflight);
}

/*
 * Have slots for the frames of what is to be sent next, and as many again: an
 * echo may come when its frame has long been acknowledged. Without memory for
 * them, acks make room among those there are.
 */
static void reserve_frames(struct medge_conn *c)
{
	u32 inflight = c->snd_nxt - c->snd_una;
	u32 bytes = min_t(u64, c->unsent, c->cfg.run_max);
	u32 size = medge_table_size(&c->sent);
	u32 want = inflight + max(DIV_ROUND_UP(bytes, c->cfg.seg_len), 1u);

	if (size < 2 * want)
		medge_table_grow(&c->sent, sizeof(struct medge_sent), 2 * want,
				 MEDGE_WINDOW, c->snd_nxt - size, size);
}

/*
 * The window is full. If a rail could send, but all wait for one that is much
 * longer, then it is too small for these rails: the frames that the others
 * carry during its round trip must fit.
 */
static void widen_window(struct medge_conn *c, u64 now)
{
	u32 oldest = medge_sent(c, c->snd_una)->path, i;

	for (i = 0; i < c->npaths; i++) {
		const struct medge_conn_path *r = &c->paths[i];

		if (!r->weight || !medge_cong_may_send(&r->cong, now) ||
		    2 * r->cong.rtt >= c->paths[oldest].cong.rtt)
			continue;
		c->window = min_t(u32, 2 * c->window, MEDGE_WINDOW);
		return;
	}
}

/*
 * A fence that meets an answer of the peer's is kept here: at the peer it would
 * last until the answer is acknowledged, no less, and frames held for it could
 * fill the windows of both sides, with the answers behind them.
 */
static bool awaits_answer(struct medge_conn *c, u32 op_no)
{
	const struct medge_send_op *sop = medge_sop(c, op_no);

	if (!c->reads_out)
		return false;
	if (sop->req.submit & MEDGE_SUBMIT_FENCE ||
	    sop->req.flags & MEDGE_OP_FENCE_BACKWARD)
		return true;
	return sop->read_dist &&
	       !medge_seq_before(op_no - sop->read_dist, c->op_oldest) &&
	       !medge_sop(c, op_no - sop->read_dist)->answered;
}

/* May a request that has been submitted send its next frame? */
static bool may_go(struct medge_conn *c, u32 op_no)
{
	struct medge_send_op *sop = medge_sop(c, op_no);

	if (c->dead || c->nak || c->refused)
		return false;
	if (c->any_failed && !medge_seq_before(op_no, c->failed_op))
		return false;
	if (sop->next_index)
		return true;
	if (awaits_answer(c, op_no))
		return false;
	return !medge_opcode_answers(sop->req.opcode) ||
	       c->reads_out < max_t(u8, c->cfg.ord, 1);
}

static bool request_ready(struct medge_conn *c, u32 op_no)
{
	return op_no != c->op_next && may_go(c, op_no);
}

static bool requests_ready(struct medge_conn *c)
{
	return c->can_send && !c->rnr_wait && request_ready(c, c->op_send);
}

static bool responses_ready(const struct medge_conn *c)
{
	return c->resp_send != c->resp_next;
}

bool medge_sendq_wants(struct medge_conn *c)
{
	if (c->waits)
		return false;
	return c->nlost || responses_ready(c) || requests_ready(c);
}

bool medge_conn_is_full(struct medge_conn *c, u64 now)
{
	u32 i;

	if (!medge_sendq_wants(c))
		return false;
	for (i = 0; i < c->npaths; i++)
		if (c->paths[i].weight &&
		    medge_cong_may_send(&c->paths[i].cong, now))
			return false;
	return true;
}

/*
 * Is the payload of @op there? If not, nothing has been done about it yet, so
 * that the wait is no loss, and no time on a rail.
 */
static bool present(struct medge_conn *c, const struct medge_op *op)
{
	if (!c->may_wait || !op->len)
		return true;
	c->waits = !c->ops->present(c, op);
	return !c->waits;
}

static void fill_request(struct medge_conn *c, u32 op_no, struct medge_op *op)
{
	const struct medge_send_op *sop = medge_sop(c, op_no);

	memset(op, 0, sizeof(*op));
	op->opcode = sop->req.opcode;
	op->flags = sop->req.flags;
	op->op_no = op_no;
	op->op_len = sop->req.len;
	op->len = medge_request_payload(&sop->req) <= c->cfg.seg_len ?
		  medge_request_payload(&sop->req) : 0;
	op->addr = sop->req.addr;
	if (medge_opcode_is_send(op->opcode))
		op->addr |= sop->recv_index;
	op->rkey = sop->req.rkey;
	op->imm = sop->req.imm;
}

static void fill_response(struct medge_conn *c, u32 slot, struct medge_tx *tx)
{
	const struct medge_response *r = medge_resp(c, slot);
	struct medge_op *op = &tx->op;

	memset(op, 0, sizeof(*op));
	op->opcode = MEDGE_OP_RESPONSE;
	op->op_no = r->op_no;
	op->op_len = r->len;
	op->addr = r->addr;
	op->rkey = r->rkey;
	op->imm = r->imm;
	tx->response = true;
	tx->is_atomic = r->is_atomic;
	tx->atomic = r->atomic;
}

/* The part of the (first) op that frames index .. index + count carry. */
static void set_part(struct medge_conn *c, struct medge_tx *tx, u32 payload,
		     u32 index, u32 count)
{
	u32 seg = c->cfg.seg_len;

	tx->nframes = count;
	tx->op.offset = payload ? index * seg : 0;
	tx->op.len = min(payload - tx->op.offset, count * seg);
	tx->len = MEDGE_HDR_LEN + tx->op.len;
}

/*
 * Of @frames, those that go out in one run. A window is cut into parts, so that
 * their acks keep it moving; what fits into it at once needs no such thing.
 */
static u32 run_frames(const struct medge_conn *c, const struct medge_pick *p,
		      u32 frames)
{
	u32 seg = c->cfg.seg_len, part, share, most;

	if (frames == 1)
		return 1;
	part = medge_cong_run(&c->paths[p->path].cong) / seg;
	share = DIV_ROUND_UP(medge_sched_share(c, p->path), seg);
	most = clamp(max(part, share), 1u, max(c->cfg.run_max / seg, 1u));
	return min(frames, most);
}

/* Record the frames of @tx as sent, now; the last with MEDGE_SENT_ACK_REQ, if @flags have it. */
static void record(struct medge_conn *c, u64 now, const struct medge_tx *tx,
		   u32 op_no, u32 index, u8 flags)
{
	struct medge_conn_path *path = &c->paths[tx->path];
	u8 how = c->unsent ? MEDGE_CONG_MORE : 0;
	u32 i, sent = tx->len + (tx->nframes - 1) * MEDGE_HDR_LEN;
	u32 left = sent, most = c->cfg.seg_len + MEDGE_HDR_LEN;
	struct medge_sent *last = medge_sent(c, tx->psn);
	struct medge_sent new = {
		.time = now,
		.path_seq = path->next_seq,
		.op_no = op_no,
		.index = index,
		.path = tx->path,
		.nops = tx->nops,
	};

	for (i = 0; i < tx->nframes; i++) {
		if (i)
			last = medge_sent_next(c, last, tx->psn + i);
		new.flags = flags & ~MEDGE_SENT_ACK_REQ;
		if (flags & MEDGE_SENT_AGAIN)
			new.flags |= last->flags & MEDGE_SENT_ACK_REQ;
		new.len = min(left, most);
		*last = new;
		left -= new.len;
		new.path_seq++;
		new.index++;
	}
	path->next_seq += tx->nframes;
	last->flags |= flags & MEDGE_SENT_ACK_REQ;
	medge_sched_charge(c, tx->path, tx->len);
	if (!path->cong.inflight)
		path->since = c->clock;
	if (last->flags & MEDGE_SENT_ACK_REQ)
		how |= MEDGE_CONG_ASKED;
	if (medge_cong_sent(&path->cong, now, sent, how))
		last->flags |= MEDGE_SENT_ECHO;
	path->report.frames += tx->nframes;
	path->report.bytes += tx->len;
	if (flags & MEDGE_SENT_AGAIN)
		path->report.retransmits += tx->nframes;
	c->report_some = true;
	c->stats.tx_frames += tx->nframes;
	c->stats.tx_bytes += tx->len;
	c->last_tx = now;
}

/* Another small request that may share the frame of @tx? */
static bool joins(struct medge_conn *c, const struct medge_tx *tx, u32 op_no)
{
	struct medge_send_op *sop = medge_sop(c, op_no);
	u32 room = c->cfg.seg_len + MEDGE_HDR_LEN;
	struct medge_op op;

	if (tx->nops == MEDGE_OPS_IN_FRAME || !request_ready(c, op_no))
		return false;
	if (tx->len + sizeof(struct medge_op_hdr) +
	    medge_request_payload(&sop->req) > room)
		return false;
	if (!c->may_wait)
		return true;
	fill_request(c, op_no, &op);
	return present(c, &op);
}

static void start_request(struct medge_conn *c, u32 op_no)
{
	if (medge_opcode_answers(medge_sop(c, op_no)->req.opcode))
		c->reads_out++;
}

/* Small requests that are posted already share a frame; none waits for others. */
static void pack(struct medge_conn *c, struct medge_tx *tx)
{
	while (joins(c, tx, c->op_send)) {
		struct medge_send_op *sop = medge_sop(c, c->op_send);

		start_request(c, c->op_send);
		tx->len += sizeof(struct medge_op_hdr) +
			   medge_request_payload(&sop->req);
		c->unsent -= medge_request_payload(&sop->req);
		tx->nops++;
		sop->next_index = 1;
		c->op_send++;
	}
}

/* Does the last request of @tx want its ack? */
static bool asks_ack(struct medge_conn *c, u32 last_op)
{
	const struct medge_send_op *sop = medge_sop(c, last_op);

	if (medge_opcode_answers(sop->req.opcode))
		return false;
	return sop->req.submit & MEDGE_SUBMIT_SIGNALED ||
	       !request_ready(c, last_op + 1);
}

/* These return false if they have to wait for memory, and nothing has changed. */
static bool tx_request(struct medge_conn *c, u64 now,
		       const struct medge_pick *p, struct medge_tx *tx)
{
	u32 op_no = c->op_send, index, total, count, payload;
	struct medge_send_op *sop = medge_sop(c, op_no);
	u8 flags = 0;

	fill_request(c, op_no, &tx->op);
	payload = medge_request_payload(&sop->req);
	total = medge_frames(c, payload);
	index = sop->next_index;
	count = run_frames(c, p, min(total - index, window_room(c)));
	tx->nops = 1;
	tx->psn = c->snd_nxt;
	set_part(c, tx, payload, index, count);
	if (!present(c, &tx->op))
		return false;
	c->unsent -= tx->op.len;
	if (!index)
		start_request(c, op_no);
	sop->next_index += count;
	if (sop->next_index == total) {
		c->op_send++;
		if (total == 1)
			pack(c, tx);
		if (asks_ack(c, c->op_send - 1))
			flags |= MEDGE_SENT_ACK_REQ;
	}
	c->snd_nxt += count;
	c->nunacked += count;
	record(c, now, tx, op_no, index, flags);
	return true;
}

static bool tx_response(struct medge_conn *c, u64 now,
			const struct medge_pick *p, struct medge_tx *tx)
{
	u32 slot = c->resp_send, index, total, count;
	struct medge_response *r = medge_resp(c, slot);

	fill_response(c, slot, tx);
	total = medge_frames(c, r->len);
	index = r->next_index;
	count = run_frames(c, p, min(total - index, window_room(c)));
	tx->nops = 1;
	tx->psn = c->snd_nxt;
	set_part(c, tx, r->len, index, count);
	if (!r->is_atomic && !present(c, &tx->op))
		return false;
	c->unsent -= tx->op.len;
	r->next_index += count;
	if (r->next_index == total)
		c->resp_send++;
	c->snd_nxt += count;
	c->nunacked += count;
	record(c, now, tx, slot, index, MEDGE_SENT_RESPONSE);
	return true;
}

/*
 * A request that the peer has performed needs no frames any more: it has them
 * all, whatever its bitmap has told us so far. Nor does a failed one.
 */
static bool outdated(struct medge_conn *c, const struct medge_sent *s)
{
	if (s->flags & MEDGE_SENT_RESPONSE)
		return false;
	if (c->any_failed && !medge_seq_before(s->op_no, c->failed_op))
		return true;
	return medge_seq_before(s->op_no, c->op_oldest);
}

static bool next_lost(struct medge_conn *c, u32 *psn)
{
	if (medge_seq_before(c->lost_hint, c->snd_una))
		c->lost_hint = c->snd_una;
	for (; c->nlost && c->lost_hint != c->snd_nxt; c->lost_hint++) {
		struct medge_sent *s = medge_sent(c, c->lost_hint);

		if (!(s->flags & MEDGE_SENT_LOST))
			continue;
		if (outdated(c, s)) {
			medge_loss_forget(c, c->lost_hint);
			continue;
		}
		*psn = c->lost_hint;
		return true;
	}
	return false;
}

/* Lost frames from @psn on that can go again as one run. */
static u32 lost_run(struct medge_conn *c, u32 psn, u32 most)
{
	const struct medge_sent *first = medge_sent(c, psn);
	u32 n = 1;

	if (first->nops > 1)
		return 1;
	while (n < most && psn + n != c->snd_nxt) {
		const struct medge_sent *s = medge_sent(c, psn + n);

		if (!(s->flags & MEDGE_SENT_LOST) || s->nops != 1 ||
		    s->op_no != first->op_no || s->index != first->index + n ||
		    (s->flags ^ first->flags) & MEDGE_SENT_RESPONSE)
			break;
		n++;
	}
	return n;
}

/* Length of a frame of several ops, as pack() made it. */
static u32 packed_len(struct medge_conn *c, u32 op_no, u32 nops)
{
	u32 len = medge_wire_headers(nops);

	while (nops--)
		len += medge_request_payload(&medge_sop(c, op_no++)->req);
	return len;
}

/* The same of all that @tx, which is to go again, is made of. */
static bool all_present(struct medge_conn *c, const struct medge_tx *tx)
{
	struct medge_op op = tx->op;

	if (!c->may_wait || tx->is_atomic)
		return true;
	do {
		if (!present(c, &op))
			return false;
	} while (tx->nops > 1 && medge_tx_next_op(c, tx, &op));
	return true;
}

static bool tx_again(struct medge_conn *c, u64 now, u32 psn,
		     const struct medge_pick *p, struct medge_tx *tx)
{
	struct medge_sent *s = medge_sent(c, psn);
	u32 op_no = s->op_no, index = s->index, payload;
	u8 flags = MEDGE_SENT_AGAIN | (s->flags & MEDGE_SENT_RESPONSE);

	tx->psn = psn;
	tx->nops = s->nops;
	tx->again = true;
	if (s->flags & MEDGE_SENT_RESPONSE) {
		fill_response(c, op_no, tx);
		payload = tx->op.op_len;
	} else {
		fill_request(c, op_no, &tx->op);
		payload = medge_request_payload(&medge_sop(c, op_no)->req);
	}
	set_part(c, tx, payload, index,
		 lost_run(c, psn, run_frames(c, p, c->nlost)));
	if (tx->nops > 1)
		tx->len = packed_len(c, op_no, tx->nops);
	if (!all_present(c, tx))
		return false;
	c->nlost -= tx->nframes;
	c->stats.retransmits += tx->nframes;
	record(c, now, tx, op_no, index, flags);
	/* The sender has gone without an answer once already. */
	medge_sent(c, psn + tx->nframes - 1)->flags |= MEDGE_SENT_ACK_REQ;
	return true;
}

void medge_conn_memory_left(struct medge_conn *c, const struct medge_tx *tx)
{
	u32 i;

	for (i = 0; i < tx->nframes; i++)
		medge_loss_mark(c, tx->psn + i);
	c->waits = true;
}

static void set_path(struct medge_conn *c, struct medge_tx *tx, u32 path)
{
	tx->path = path;
	tx->rail = c->paths[path].rail;
	memcpy(tx->mac, c->paths[path].mac, MEDGE_MAC_LEN);
}

/* Bytes of the response or request whose turn it is. */
static u32 bytes_next(struct medge_conn *c, bool response)
{
	u32 seg = c->cfg.seg_len, len, done;

	if (response) {
		len = medge_resp(c, c->resp_send)->len;
		done = medge_resp(c, c->resp_send)->next_index * seg;
	} else {
		len = medge_request_payload(&medge_sop(c, c->op_send)->req);
		done = medge_sop(c, c->op_send)->next_index * seg;
	}
	return len - min(len, done);
}

static bool tx_data(struct medge_conn *c, u64 now, struct medge_tx *tx)
{
	bool lost, responses, requests, out;
	struct medge_pick p;
	u32 psn = 0;

	if (c->waits)
		return false;
	lost = next_lost(c, &psn);
	responses = responses_ready(c);
	requests = requests_ready(c);
	if (!lost && !responses && !requests)
		return false;
	reserve_frames(c);
	if (!window_room(c) && c->window < MEDGE_WINDOW && (responses || requests))
		widen_window(c, now);
	if (!window_room(c)) {
		responses = false;
		requests = false;
		if (!lost)
			return false;
	}
	p = (struct medge_pick){ .avoid = MEDGE_PATH_UNKNOWN };
	if (lost) {
		p.avoid = medge_sent(c, psn)->path;
		p.bytes = medge_sent(c, psn)->len;
		/*
		 * What is to bring an answer must go, or nothing makes room; so
		 * must what was on a path that works no more, or may not.
		 */
		p.urgent = c->probed || c->backoff ||
			   medge_sched_rank(&c->paths[p.avoid]) ||
			   !c->paths[p.avoid].weight;
	}
	responses = !lost && responses && (c->turn || !requests);
	if (!lost)
		p.bytes = bytes_next(c, responses);
	if (!medge_sched_pick(c, now, &p))
		return false;
	memset(tx, 0, sizeof(*tx));
	tx->type = MEDGE_FRAME_DATA;
	set_path(c, tx, p.path);
	if (c->snd_una == c->snd_nxt)
		c->progress = max(c->progress, now);
	if (lost) {
		out = tx_again(c, now, psn, &p, tx);
	} else if (responses) {
		c->turn = false;
		out = tx_response(c, now, &p, tx);
	} else {
		c->turn = true;
		out = tx_request(c, now, &p, tx);
	}
	if (!out)
		return false;
	c->last_ack_req = medge_sent(c, tx->psn + tx->nframes - 1)->flags &
			  MEDGE_SENT_ACK_REQ;
	return true;
}

/* An ack goes back where frames come from, unless that seems not to work. */
static bool ack_path(struct medge_conn *c, u64 now, u32 *path)
{
	struct medge_pick p = { .urgent = true };

	*path = c->rail_path[c->ack_rail];
	if (c->ack_doubt) {
		*path = medge_sched_next(c, c->ack_last_path, c->poke_paths);
	} else if (*path == MEDGE_PATH_UNKNOWN ||
		   medge_sched_rank(&c->paths[*path])) {
		p.avoid = *path;
		if (!medge_sched_pick(c, now, &p))
			return false;
		*path = p.path;
	}
	return c->paths[*path].weight;
}

/*
 * An echo goes back on the rail where the question came. If that does not work,
 * an echo by another way is better than none: without it no window grows.
 */
static bool echo_path(struct medge_conn *c, u64 now, u32 *path)
{
	*path = c->rail_path[__ffs64(c->echo_rails)];
	if (*path != MEDGE_PATH_UNKNOWN && c->paths[*path].weight &&
	    c->paths[*path].state != MEDGE_PATH_DOWN)
		return true;
	return ack_path(c, now, path);
}

/* It is wanted. */
static bool tx_ack(struct medge_conn *c, u64 now, struct medge_tx *tx)
{
	u32 path;

	/* An echo goes where it must, which is no way out of a doubt. */
	c->echo_now = c->echo_rails && !c->ack_doubt;
	if (c->echo_now) {
		if (!echo_path(c, now, &path))
			return false;
	} else {
		if (!ack_path(c, now, &path))
			return false;
		c->ack_doubt = false;
		c->ack_last_path = path;
		/* The paths are in use: the peer should know. */
		c->report_some = true;
	}
	memset(tx, 0, sizeof(*tx));
	tx->type = MEDGE_FRAME_ACK;
	set_path(c, tx, path);
	tx->nframes = 1;
	tx->len = medge_wire_ack_len(medge_ack_words(c));
	return true;
}

bool medge_conn_poll_tx(struct medge_conn *c, u64 now, struct medge_tx *tx)
{
	if (c->fresh) {
		c->fresh = false;
		c->progress = now;
		c->last_tx = now;
	}
	/*
	 * A round trip is measured: it must not include our own data's time. Nor is
	 * there an end to that where the question's ack makes room for it.
	 */
	if ((c->echo_rails || c->ack_word) && tx_ack(c, now, tx))
		return true;
	return tx_data(c, now, tx) ||
	       (medge_ack_wanted(c) && tx_ack(c, now, tx));
}

/* Whose ack was lost has repeated what it was for by then, and got another. */
enum { FAREWELL_NS = 100 * MEDGE_MSEC };

bool medge_conn_farewell(struct medge_conn *c, u64 now, struct medge_tx *tx)
{
	if (!medge_ack_heard(c, now > FAREWELL_NS ? now - FAREWELL_NS : 0))
		return false;
	c->ack_now = true;
	c->ack_doubt = true;
	return tx_ack(c, now, tx);
}

bool medge_tx_next_op(struct medge_conn *c, const struct medge_tx *tx,
		      struct medge_op *op)
{
	u32 op_no = op->op_no + 1;

	if (op_no - tx->op.op_no >= tx->nops)
		return false;
	fill_request(c, op_no, op);
	return true;
}
