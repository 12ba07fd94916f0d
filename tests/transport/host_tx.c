/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the kernel does on the way out: runs become frames from memory. */
#include <stdlib.h>

#include "host.h"
#include "pair.h"

static void put_atomic(struct host *h, const struct medge_op *op, u8 *out)
{
	const struct op *own = host_op(h, op->op_no);

	put_unaligned_be64(own->operand, out);
	put_unaligned_be64(own->swap, out + 8);
}

/* The payload of one of our own requests. */
static void put_request(struct host *h, const struct medge_op *op, u8 *out)
{
	if (!op->len)
		return;
	if (op_is_atomic(op->opcode))
		put_atomic(h, op, out);
	else
		memcpy(out, noise + host_op(h, op->op_no)->src + op->offset,
		       op->len);
}

static void put_response(struct host *h, const struct medge_tx *tx, u8 *out)
{
	enum host_region region;
	u8 *from;

	if (tx->is_atomic) {
		put_unaligned_be64(tx->atomic, out);
		return;
	}
	if (!tx->op.op_len)
		return;
	from = host_memory(h, tx->op.rkey, tx->op.addr, tx->op.op_len, &region);
	CHECK(from, "response %u from memory that is not ours", tx->op.op_no);
	memcpy(out, from + tx->op.offset, tx->op.len);
}

/* Is the memory that the run is made of still there? */
static bool memory_there(struct host *h, const struct medge_tx *tx)
{
	bool gone = rng_ppm(&h->pair->rng, h->pair->params.gone_ppm);
	u32 i;

	if (tx->response) {
		if (!gone && (h->pair->hostile ||
			      !host_op(h->peer, tx->op.op_no)->response_gone))
			return true;
		medge_conn_fail_response(h->conn, tx->op.op_no);
		return false;
	}
	for (i = 0; i < tx->nops; i++) {
		if (!gone && !host_op(h, tx->op.op_no + i)->memory_gone)
			continue;
		medge_conn_fail_op(h->conn, tx->op.op_no + i,
				   MEDGE_LOCAL_PROTECTION);
		return false;
	}
	return true;
}

static struct packet *build_several(struct host *h, const struct medge_tx *tx)
{
	struct packet *p = packet_new(tx->len);
	struct medge_op op = tx->op;
	u32 at = medge_wire_headers(tx->nops), n = 1;

	memset(p->data, 0, p->len);
	CHECK_EQ(medge_tx_header(h->conn, tx, p->data), MEDGE_HDR_LEN);
	check_tx_op(h, tx, &op);
	put_request(h, &op, p->data + at);
	at += op.len;
	while (medge_tx_next_op(h->conn, tx, &op)) {
		check_tx_op(h, tx, &op);
		CHECK_EQ(op.op_no, tx->op.op_no + n);
		CHECK(n < tx->nops && at + op.len <= p->len);
		medge_wire_encode_op(p->data + medge_wire_headers(n++), &op);
		put_request(h, &op, p->data + at);
		at += op.len;
	}
	CHECK_EQ(n, tx->nops);
	CHECK_EQ(at, tx->len);
	return p;
}

static struct packet *build(struct host *h, const struct medge_tx *tx)
{
	struct packet *p;

	/* Its requests are flushed then, and their memory is the application's again. */
	CHECK(!h->refused || tx->type != MEDGE_FRAME_DATA || tx->response,
	      "who has refused something sends a request");
	if (tx->type == MEDGE_FRAME_DATA && tx->nops > 1)
		return build_several(h, tx);
	p = packet_new(tx->len);
	p->nframes = tx->nframes;
	CHECK_EQ(medge_tx_header(h->conn, tx, p->data),
		 tx->type == MEDGE_FRAME_ACK ? tx->len : MEDGE_HDR_LEN);
	if (tx->type == MEDGE_FRAME_ACK)
		return p;
	CHECK_EQ(tx->len, MEDGE_HDR_LEN + tx->op.len);
	check_tx_op(h, tx, &tx->op);
	if (tx->response)
		put_response(h, tx, p->data + MEDGE_HDR_LEN);
	else
		put_request(h, &tx->op, p->data + MEDGE_HDR_LEN);
	return p;
}

static void trace_tx(struct host *h, const struct medge_tx *tx)
{
	if (tx->type == MEDGE_FRAME_ACK)
		TRACE("%llu side %u > rail %u ack\n", pair_now(h->pair),
		      h->side, tx->rail);
	else
		TRACE("%llu side %u > rail %u psn %u+%u %s op %u+%u offset %u len %u\n",
		      pair_now(h->pair), h->side, tx->rail, tx->psn,
		      tx->nframes, medge_opcode_name(tx->op.opcode),
		      tx->op.op_no, tx->nops, tx->op.offset, tx->op.len);
}

static void send_to(struct host *h, u32 rail, const u8 *mac, struct packet *p)
{
	p->to = pair_leads_to(h->pair, h->side, rail, mac);
	net_send(&h->pair->net, h->side, rail, p);
}

static void send_probe(struct host *h, u32 rail, const u8 *mac,
		       const struct medge_probe *probe)
{
	struct packet *p = packet_new(MEDGE_PROBE_LEN);

	TRACE("%llu side %u > rail %u %s\n", pair_now(h->pair), h->side, rail,
	      probe->type == MEDGE_FRAME_PROBE ? "probe" : "reply");
	medge_wire_encode_probe(p->data, probe);
	send_to(h, rail, mac, p);
}

static void trace_paths(struct host *h)
{
	struct medge_path_info info;
	u32 i;

	for (i = 0; say_verbose && i < MEDGE_MAX_PATHS; i++) {
		if (!medge_peer_path(h->remote, i, &info) ||
		    info.changes == h->path_changes[i])
			continue;
		h->path_changes[i] = info.changes;
		TRACE("%llu side %u path %u (rail %u) is %s: %s, weight %u\n",
		      pair_now(h->pair), h->side, i, info.rail,
		      medge_path_state_name(info.state),
		      medge_path_why_name(info.why), info.weight);
	}
}

void host_sync(struct host *h)
{
	u64 now = pair_now(h->pair);
	struct medge_peer_tx tx;

	if (medge_conn_sync_due(h->conn, medge_peer_generation(h->remote), now))
		medge_conn_sync(h->conn, h->remote, now);
	trace_paths(h);
	while (medge_peer_poll_tx(h->remote, now, &tx))
		send_probe(h, tx.rail, tx.mac, &tx.probe);
}

void host_answer(struct host *h, u32 rail, const struct medge_probe *q)
{
	u8 mac[MEDGE_MAC_LEN], other;
	struct medge_probe reply;
	u32 next = 0;

	medge_probe_answer(&h->me, q, rail, &reply);
	reply.known = medge_peer_known(h->remote);
	pair_rail_mac(mac, !h->side, q->rail);
	send_probe(h, rail, mac, &reply);
	while (medge_peer_detour(h->remote, q, rail, &next, &other, mac)) {
		reply.rail = other;
		send_probe(h, other, mac, &reply);
	}
}

u32 host_leave(struct host *h)
{
	struct medge_tx tx;
	u32 n;

	for (n = 0; n < MEDGE_FAREWELLS; n++) {
		if (!medge_conn_farewell(h->conn, pair_now(h->pair), &tx))
			break;
		CHECK_EQ(tx.type, MEDGE_FRAME_ACK);
		trace_tx(h, &tx);
		send_to(h, tx.rail, tx.mac, build(h, &tx));
	}
	h->silent = true;
	return n;
}

bool host_transmit(struct host *h, u32 budget)
{
	struct medge_tx tx;

	if (h->silent)
		return true;
	while (medge_conn_poll_tx(h->conn, pair_now(h->pair), &tx)) {
		struct packet *p;

		trace_tx(h, &tx);
		check_tx(h, &tx);
		if (tx.type == MEDGE_FRAME_DATA && !memory_there(h, &tx))
			continue;
		if (tx.type == MEDGE_FRAME_DATA && h->pair->has_left &&
		    h->pair->has_left(h, &tx.op)) {
			medge_conn_memory_left(h->conn, &tx);
			continue;
		}
		p = build(h, &tx);
		if (tx.type == MEDGE_FRAME_ACK && say_verbose)
			TRACE("    ack_psn %u ack_op %u\n",
			      get_unaligned_be32(p->data + 12),
			      get_unaligned_be32(p->data + 16));
		send_to(h, tx.rail, tx.mac, p);
		if (budget && !--budget)
			return false;
	}
	return true;
}
