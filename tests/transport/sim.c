/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Many connections over a fabric, in virtual time. */
#include <stdlib.h>

#include "pair.h"
#include "sim.h"

/* ---- the application: writes, one after the other ---- */

static struct sim_flow *flow_of(const struct sim_end *e)
{
	return &e->sim->flows[e->flow];
}

static void post(struct sim_end *e)
{
	struct sim_flow *fl = flow_of(e);
	const struct sim_cfg *cfg = &e->sim->cfg;
	struct medge_request req = {
		.opcode = MEDGE_OP_WRITE,
		.submit = MEDGE_SUBMIT_SIGNALED,
		.len = cfg->op_len,
		.addr = 0x1000,
	};

	while (fl->posted - fl->done < cfg->depth && !fl->failed &&
	       (!cfg->ops || fl->posted < cfg->ops)) {
		fl->posted_at[fl->posted++ % cfg->depth] = e->sim->events.now;
		medge_conn_submit(e->conn, &req);
	}
}

static void note_time(struct sim *s, u64 took)
{
	if (s->ntook == s->took_size) {
		s->took_size = s->took_size ? 2 * s->took_size : 1024;
		s->took = realloc(s->took, s->took_size * sizeof(*s->took));
	}
	s->took[s->ntook++] = took;
}

static void completed(struct medge_conn *c, u32 op_no, enum medge_status status)
{
	struct sim_end *e = medge_conn_user(c);
	struct sim_flow *fl = flow_of(e);
	struct sim *s = e->sim;

	if (status) {
		s->unfinished -= !fl->failed;
		fl->failed = true;
		return;
	}
	note_time(s, s->events.now - fl->posted_at[fl->done++ % s->cfg.depth]);
	if (fl->done == s->cfg.ops)
		s->unfinished--;
}

static void target(struct medge_conn *c, const struct medge_op *op,
		   struct medge_target *t)
{
	t->nak = MEDGE_NAK_NONE;
	t->relaxed = true;
}

static void performed(struct medge_conn *c, const struct medge_op *op,
		      u32 recv_index)
{
}

static u8 atomic(struct medge_conn *c, const struct medge_op *op, u64 operand,
		 u64 swap, u64 *original)
{
	return MEDGE_NAK_INVALID_REQUEST;
}

static void refused(struct medge_conn *c, const struct medge_op *op,
		    enum medge_nak nak, enum medge_status status)
{
	FAIL("flow %u is refused", ((struct sim_end *)medge_conn_user(c))->flow);
}

static const struct medge_conn_ops ops = {
	.target = target,
	.performed = performed,
	.atomic = atomic,
	.completed = completed,
	.refused = refused,
};

/* ---- out ---- */

static void send_frame(struct sim_end *e, u32 rail, const u8 *hdr, u32 hdr_len,
		       u32 len)
{
	struct packet *p = packet_new(hdr_len);

	memcpy(p->data, hdr, hdr_len);
	/* the payload is only thought of */
	p->len = len;
	fabric_send(&e->sim->fabric, e->host, e->peer->host, e->flow, rail, p);
}

/* As the device does that cuts superframes. */
static void send_run(struct sim_end *e, const struct medge_tx *tx, const u8 *hdr)
{
	u32 seg = e->sim->cfg.seg_len, i;

	for (i = 0; i < tx->nframes; i++) {
		u8 cut[MEDGE_HDR_LEN];

		memcpy(cut, hdr, sizeof(cut));
		medge_wire_cut(cut, i, tx->nframes);
		send_frame(e, tx->rail, cut, sizeof(cut), MEDGE_HDR_LEN +
			   min(seg, tx->op.len - i * seg));
	}
}

static void set_timer(struct sim_end *e);

static void transmit(struct sim_end *e)
{
	u8 buf[MEDGE_ACK_MAX];
	struct medge_tx tx;

	if (e == &flow_of(e)->end[0])
		post(e);
	conn_trust_paths(e->conn, e->sim->cfg.fabric.planes);
	if (!e->sim->cfg.congestion)
		conn_ignore_congestion(e->conn);
	while (medge_conn_poll_tx(e->conn, e->sim->events.now, &tx)) {
		u32 len = medge_tx_header(e->conn, &tx, buf);

		if (tx.type == MEDGE_FRAME_ACK)
			send_frame(e, tx.rail, buf, len, len);
		else
			send_run(e, &tx, buf);
	}
	set_timer(e);
}

static void timer(void *arg, bool run)
{
	struct sim_end *e = arg;
	u64 now = e->sim->events.now;

	if (!run || e->timer > now)
		return;
	e->timer = MEDGE_NEVER;
	if (medge_conn_deadline(e->conn) <= now)
		medge_conn_timeout(e->conn, now);
	transmit(e);
}

/* Lazily: one that comes too early does no harm. */
static void set_timer(struct sim_end *e)
{
	u64 at = medge_conn_deadline(e->conn);

	if (at >= e->timer)
		return;
	e->timer = max(at, e->sim->events.now) +
		   rng_below(&e->sim->rng, e->sim->cfg.slop_ns + 1);
	events_add(&e->sim->events, e->timer, timer, e);
}

/* ---- in ---- */

static void place(struct sim_end *e, struct medge_rx *rx, struct packet *p)
{
	u64 now = e->sim->events.now;
	struct medge_piece piece;
	enum medge_rx_step step;

	while ((step = medge_conn_step(e->conn, now, rx, p->data,
				       &piece)) == MEDGE_RX_PLACE) {
		flow_of(e)->bytes += piece.op.len;
		medge_conn_placed(e->conn, now, rx, &piece, MEDGE_NAK_NONE);
	}
	CHECK_EQ(step, MEDGE_RX_DONE);
}

static void deliver(void *user, u32 host, u32 flow, u32 plane, struct packet *p)
{
	struct sim *s = user;
	struct sim_flow *fl = &s->flows[flow];
	struct sim_end *e = &fl->end[fl->end[1].host == host];
	struct medge_frame f;
	struct medge_ack ack;
	struct medge_rx rx;
	u16 skip = 0;

	/* what send_frame() has kept of it */
	CHECK(!medge_wire_decode(p->data, p->data[0] % 16 == MEDGE_FRAME_ACK ?
				 p->len : MEDGE_HDR_LEN, p->len, &f));
	if (f.type == MEDGE_FRAME_ACK)
		medge_wire_decode_ack(p->data, &ack);
	medge_conn_receive(e->conn, s->events.now, plane, &f,
			   f.type == MEDGE_FRAME_ACK ? &ack : NULL, &rx, &skip);
	if (rx.nframes)
		place(e, &rx, p);
	transmit(e);
}

/* ---- life ---- */

static void init_end(struct sim *s, u32 flow, u32 side, u32 host)
{
	struct sim_end *e = &s->flows[flow].end[side];
	struct medge_conn_config cfg = {
		.psn = 100 + side,
		.peer_psn = 100 + !side,
		.seg_len = s->cfg.seg_len,
		.run_max = MEDGE_RUN_MAX,
		.window = medge_window_first(s->cfg.seg_len),
		.ord = 16,
		.ird = 16,
		.retry_cnt = 7,
		.timeout_ns = 500 * MSEC,
		.ack_frames = MEDGE_ACK_FRAMES,
		.ack_delay_ns = MEDGE_ACK_DELAY_NS,
	};

	e->sim = s;
	e->peer = &s->flows[flow].end[!side];
	e->host = host;
	e->flow = flow;
	e->timer = MEDGE_NEVER;
	e->conn = calloc(1, medge_conn_size());
	medge_conn_init(e->conn, &cfg, &ops, 0);
	medge_conn_set_user(e->conn, e);
	medge_conn_enable_send(e->conn, &cfg, 0);
	medge_conn_schedule(e->conn, s->cfg.scheduler);
}

/* Nobody starts at the very same moment. */
static void start(void *arg, bool run)
{
	if (run)
		transmit(arg);
}

void sim_init(struct sim *s, const struct sim_cfg *cfg, const u32 (*ends)[2])
{
	u32 i;

	memset(s, 0, sizeof(*s));
	s->cfg = *cfg;
	rng_seed(&s->rng, 1);
	fabric_init(&s->fabric, &cfg->fabric, &s->events);
	s->fabric.deliver = deliver;
	s->fabric.user = s;
	s->flows = calloc(cfg->flows, sizeof(*s->flows));
	s->unfinished = cfg->flows;
	for (i = 0; i < cfg->flows; i++) {
		s->flows[i].posted_at = calloc(cfg->depth, sizeof(u64));
		init_end(s, i, 0, ends[i][0]);
		init_end(s, i, 1, ends[i][1]);
		events_add(&s->events, rng_below(&s->rng, 20 * USEC), start,
			   &s->flows[i].end[0]);
	}
}

void sim_free(struct sim *s)
{
	u32 i;

	events_free(&s->events);
	for (i = 0; i < s->cfg.flows; i++) {
		medge_conn_fini(s->flows[i].end[0].conn);
		medge_conn_fini(s->flows[i].end[1].conn);
		free(s->flows[i].end[0].conn);
		free(s->flows[i].end[1].conn);
		free(s->flows[i].posted_at);
	}
	free(s->flows);
	free(s->took);
	fabric_free(&s->fabric);
}

bool sim_run(struct sim *s, u64 until)
{
	while (s->unfinished && events_next(&s->events) <= until)
		events_run(&s->events);
	return !s->unfinished;
}

void sim_measure(struct sim *s)
{
	u32 i;

	for (i = 0; i < s->cfg.flows; i++)
		s->flows[i].bytes = 0;
	s->ntook = 0;
	s->measured_from = s->events.now;
}

/* ---- what came of it ---- */

static int by_size(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

static u64 percentile(struct sim *s, u32 percent)
{
	if (!s->ntook)
		return 0;
	qsort(s->took, s->ntook, sizeof(*s->took), by_size);
	return s->took[(u64)(s->ntook - 1) * percent / 100];
}

void sim_result(struct sim *s, u64 limit, struct sim_result *r)
{
	double sum = 0, squares = 0;
	u64 frames = 0, again = 0;
	u32 i;

	memset(r, 0, sizeof(*r));
	for (i = 0; i < s->cfg.flows; i++) {
		const struct medge_conn_stats *st =
			medge_conn_stats(s->flows[i].end[0].conn);
		double bytes = s->flows[i].bytes;

		sum += bytes;
		squares += bytes * bytes;
		frames += st->tx_frames;
		again += st->retransmits;
		r->failed += s->flows[i].failed;
	}
	r->share = sum * 8e12 / (s->events.now - s->measured_from) / limit;
	r->jain = squares ? 1000 * sum * sum / squares / s->cfg.flows : 0;
	r->p50 = percentile(s, 50);
	r->p99 = percentile(s, 99);
	r->again = again * 1000 / max_t(u64, frames, 1);
	r->drops = fabric_drops(&s->fabric);
}
