/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Two connections in virtual time: who runs when, and what must hold then. */
#include <stdlib.h>

#include "pair.h"

enum { SPINS_MAX = 4 };

void pair_params_default(struct pair_params *params, u32 nrails)
{
	u32 side, i;

	memset(params, 0, sizeof(*params));
	params->nrails = nrails;
	params->region_len = 1 << 18;
	params->event_limit = 10 * 1000 * 1000;
	for (side = 0; side < 2; side++) {
		struct medge_conn_config *cfg = &params->cfg[side];

		cfg->psn = 1000 * (side + 1);
		cfg->dest_qpn = 17 + !side;
		cfg->seg_len = 1024;
		cfg->run_max = MEDGE_RUN_MAX;
		cfg->window = MEDGE_WINDOW_FIRST;
		cfg->ord = 16;
		cfg->ird = 16;
		cfg->retry_cnt = 7;
		cfg->rnr_retry = 7;
		cfg->rnr_timer = 1;
		cfg->ack_frames = MEDGE_ACK_FRAMES;
		cfg->ack_delay_ns = MEDGE_ACK_DELAY_NS;
		for (i = 0; i < nrails; i++) {
			params->weight[side][i] = 10000;
			params->link[side][i] = (struct net_link_cfg){
				.rate = 10 * SEC,
				.delay_ns = 20 * USEC,
				.cut_ppm = 1000000,
				.to = i,
			};
		}
	}
	params->cfg[0].peer_psn = params->cfg[1].psn;
	params->cfg[1].peer_psn = params->cfg[0].psn;
}

static void deliver(void *user, u32 side, u32 rail, struct packet *packet)
{
	struct pair *p = user;

	if (!p->weight[side][rail] && !p->hostile)
		return;		/* no carrier, no frame */
	host_receive(&p->host[side], rail, packet);
}

void pair_rail_mac(u8 *mac, u32 side, u32 rail)
{
	memcpy(mac, (u8[]){ 2, 0, 0, 0, side, rail }, MEDGE_MAC_LEN);
}

u8 pair_leads_to(struct pair *p, u32 side, u32 rail, const u8 *mac)
{
	u8 to = mac[5];

	if (!p->params.switched)
		return NET_WIRED;
	CHECK_EQ(mac[4], !side);
	p->seen_on[side] = rail;
	if (p->params.bonded)
		return p->seen_on[!side];
	/* The node's own address is that of its first rail, too. */
	if (to == 255)
		for (to = 0; to < p->params.nrails - 1; to++)
			if (p->weight[!side][to])
				break;
	return to;
}

static void set_rail(struct pair *p, u32 side, u32 rail, u32 weight)
{
	struct medge_rail_attr attr = { .speed = weight, .id = 1 };

	if (weight)
		attr.flags = MEDGE_PORT_UP;
	if (p->drained[side][rail])
		attr.flags |= MEDGE_PORT_DRAINING;
	pair_rail_mac(attr.mac, side, rail);
	p->weight[side][rail] = weight;
	medge_local_set(&p->host[side].me, rail, &attr);
}

static void init_peer(struct pair *p, u32 side)
{
	struct host *h = &p->host[side];
	u8 mac[MEDGE_MAC_LEN];
	u32 i;

	pair_rail_mac(h->me.node, side, 255);
	h->me.generation = rng_next(&p->rng) | 1;
	for (i = 0; i < (p->params.nfirst ?: p->params.nrails); i++)
		set_rail(p, side, i, p->params.weight[side][i]);
	pair_rail_mac(mac, !side, 255);
	h->remote = calloc(1, medge_peer_size());
	medge_peer_init(h->remote, mac, &h->me, rng_next(&p->rng), 0);
}

static void init_side(struct pair *p, u32 side)
{
	const struct pair_params *params = &p->params;
	struct host *h = &p->host[side];
	u32 i;

	h->pair = p;
	h->side = side;
	h->peer = &p->host[!side];
	host_init(h, params->region_len);
	h->snd_nxt = params->cfg[side].psn;
	h->acked = h->snd_nxt;
	h->recv_base = params->recv_base[!side];
	h->first_op = params->op_base[side];
	h->conn = calloc(1, medge_conn_size());
	medge_conn_init(h->conn, &params->cfg[side], &host_conn_ops, 0);
	conn_start_at(h->conn, params->op_base[side], params->recv_base[side],
		      params->op_base[!side], params->recv_base[!side]);
	medge_conn_set_user(h->conn, h);
	medge_conn_enable_send(h->conn, &params->cfg[side], 0);
	for (i = 0; i < params->nrails; i++)
		p->net.links[side][i].cfg = params->link[side][i];
	p->net.stall[side] = params->stall[side];
	init_peer(p, side);
}

void pair_init(struct pair *p, const struct pair_params *params)
{
	memset(p, 0, sizeof(*p));
	p->params = *params;
	rng_seed(&p->rng, params->seed);
	p->net.events = &p->events;
	p->net.rng = &p->rng;
	p->net.ops.deliver = deliver;
	p->net.ops.user = p;
	init_side(p, 0);
	init_side(p, 1);
	host_sync(&p->host[0]);
	host_sync(&p->host[1]);
}

void pair_free(struct pair *p)
{
	u32 side;

	events_free(&p->events);
	for (side = 0; side < 2; side++) {
		host_drop_held(&p->host[side]);
		host_free(&p->host[side]);
	}
}

/* ---- who runs when ---- */

struct poll_event {
	struct pair *pair;
	u32 side;
};

static void poll_event(void *arg, bool run)
{
	struct poll_event *e = arg;

	if (run) {
		e->pair->polling[e->side] = false;
		pair_poll(e->pair, e->side);
	}
	free(e);
}

void pair_poll(struct pair *p, u32 side)
{
	struct host *h = &p->host[side];
	struct poll_event *e;

	host_submit(h);
	host_sync(h);
	if (host_transmit(h, p->params.budget) || p->polling[side])
		return;
	p->polling[side] = true;
	e = malloc(sizeof(*e));
	*e = (struct poll_event){ p, side };
	events_add(&p->events, pair_now(p) + rng_below(&p->rng, 5 * USEC),
		   poll_event, e);
}

void pair_post(struct pair *p, u32 side, const struct medge_request *req)
{
	host_post(&p->host[side], req);
	pair_poll(p, side);
}

void pair_rail(struct pair *p, u32 side, u32 rail, u32 weight)
{
	struct host *h = &p->host[side];

	TRACE("%llu side %u rail %u weight %u\n", pair_now(p), side, rail, weight);
	set_rail(p, side, rail, weight);
	medge_peer_local(h->remote, &h->me, pair_now(p));
	pair_poll(p, side);
}

void pair_rail_gone(struct pair *p, u32 side, u32 rail)
{
	struct host *h = &p->host[side];

	TRACE("%llu side %u rail %u is gone\n", pair_now(p), side, rail);
	p->weight[side][rail] = 0;
	medge_local_set(&h->me, rail, NULL);
	medge_peer_local(h->remote, &h->me, pair_now(p));
	pair_poll(p, side);
}

void pair_drain(struct pair *p, u32 side, u32 rail, bool drain)
{
	p->drained[side][rail] = drain;
	pair_rail(p, side, rail, p->weight[side][rail]);
}

void pair_dark(struct pair *p, u32 side, u32 rail, bool dark)
{
	TRACE("%llu side %u rail %u %s\n", pair_now(p), side, rail,
	      dark ? "goes dark" : "is back");
	p->net.links[side][rail].dark = dark;
}

/* When the timer of @side goes off: its deadline, and late as timers are. */
static u64 timer_at(struct pair *p, u32 side)
{
	u64 deadline = medge_conn_deadline(p->host[side].conn);

	CHECK(medge_conn_earliest(p->host[side].conn) <= deadline);
	/* As in the kernel: a QP in ERR only answers. */
	if (p->host[side].silent || p->host[side].refused ||
	    deadline == MEDGE_NEVER)
		return MEDGE_NEVER;
	if (p->timer[side].deadline != deadline) {
		p->timer[side].deadline = deadline;
		p->timer[side].at = max(deadline, pair_now(p)) +
				    rng_below(&p->rng, p->params.slop_ns + 1);
	}
	return p->timer[side].at;
}

void pair_dump(struct pair *p)
{
	u32 side;

	for (side = 0; say_verbose && side < 2; side++) {
		printf("side %u\n", side);
		conn_dump(p->host[side].conn);
	}
}

static void timer(struct pair *p, u32 side)
{
	struct host *h = &p->host[side];
	u64 deadline;

	p->timer[side].deadline = MEDGE_NEVER;
	TRACE("%llu side %u timeout\n", pair_now(p), side);
	medge_conn_timeout(h->conn, pair_now(p));
	host_released(h);
	pair_poll(p, side);
	deadline = medge_conn_deadline(h->conn);
	if (deadline > pair_now(p) || p->polling[side]) {
		p->timer[side].spins = 0;
		return;
	}
	/* A timer that is due again at once, again and again, spins a machine. */
	if (++p->timer[side].spins < SPINS_MAX)
		return;
	pair_dump(p);
	FAIL("side %u: deadline %llu is not moved by timeouts at %llu", side,
	     deadline, pair_now(p));
}

/* The same for the peer's. */
static u64 peer_timer_at(struct pair *p, u32 side)
{
	u64 deadline = medge_peer_deadline(p->host[side].remote);

	if (deadline == MEDGE_NEVER)
		return MEDGE_NEVER;
	if (p->peer_timer[side].deadline != deadline) {
		p->peer_timer[side].deadline = deadline;
		p->peer_timer[side].at = max(deadline, pair_now(p)) +
				rng_below(&p->rng, p->params.slop_ns + 1);
	}
	return p->peer_timer[side].at;
}

static void peer_timer(struct pair *p, u32 side)
{
	struct host *h = &p->host[side];
	u64 deadline = medge_peer_deadline(h->remote);

	p->peer_timer[side].deadline = MEDGE_NEVER;
	medge_peer_timeout(h->remote, pair_now(p));
	pair_poll(p, side);
	if (medge_peer_deadline(h->remote) != deadline) {
		p->peer_timer[side].spins = 0;
		return;
	}
	CHECK(++p->peer_timer[side].spins < SPINS_MAX,
	      "side %u: the peer's deadline %llu is not moved at %llu", side,
	      deadline, pair_now(p));
}

bool pair_run(struct pair *p, u64 until)
{
	for (;;) {
		u64 event = events_next(&p->events);
		u64 timers[2] = { timer_at(p, 0), timer_at(p, 1) };
		u64 peers[2] = { peer_timer_at(p, 0), peer_timer_at(p, 1) };
		u64 peer = min(peers[0], peers[1]);
		u64 next = min(min3(event, timers[0], timers[1]), peer);

		if (next == MEDGE_NEVER)
			return true;
		if (next > until) {
			p->events.now = max(p->events.now, until);
			return false;
		}
		CHECK(++p->steps <= p->params.event_limit, "livelock at %llu ns",
		      pair_now(p));
		if (event == next) {
			events_run(&p->events);
			continue;
		}
		p->events.now = next;
		if (peer == next)
			peer_timer(p, peers[1] == next);
		else
			timer(p, timers[1] == next);
	}
}

/* ---- what must hold at the end ---- */

void pair_check_idle(struct pair *p)
{
	struct medge_tx tx;
	u32 side;

	for (side = 0; side < 2; side++) {
		struct host *h = &p->host[side];

		CHECK(!medge_conn_poll_tx(h->conn, pair_now(p), &tx),
		      "side %u sends when all is done", side);
		CHECK(medge_conn_deadline(h->conn) == MEDGE_NEVER);
		CHECK(medge_peer_deadline(h->remote) == MEDGE_NEVER);
		CHECK(medge_conn_idle(h->conn), "side %u", side);
		CHECK_EQ(h->count.held, 0);
		CHECK_EQ(h->count.placing, 0);
	}
}

void pair_check_done(struct pair *p, u32 side)
{
	struct host *h = &p->host[side];

	CHECK(!h->failed && !h->refused, "side %u", side);
	CHECK(h->completed == h->nops, "side %u: %u of %u completed", side,
	      h->completed, h->nops);
	CHECK_EQ(h->peer_performed, h->nops);
	CHECK_EQ(h->peer->consumed, h->recvs_wanted);
	CHECK_EQ(h->reads_out, 0);
	check_memory(h);
}

static bool all_done(struct pair *p)
{
	u32 side;

	for (side = 0; side < 2; side++)
		if (p->host[side].completed != p->host[side].nops ||
		    !medge_conn_idle(p->host[side].conn))
			return false;
	return true;
}

void pair_finish(struct pair *p, u64 limit)
{
	u64 until = pair_now(p) + limit;

	/* Paths that do not work are asked for a while longer. */
	if (!pair_run(p, until) &&
	    !(all_done(p) && pair_run(p, pair_now(p) + 3 * SEC))) {
		pair_dump(p);
		FAIL("not done in %llu ns: side 0 completed %u of %u, side 1 %u of %u",
		     limit, p->host[0].completed, p->host[0].nops,
		     p->host[1].completed, p->host[1].nops);
	}
	pair_check_done(p, 0);
	pair_check_done(p, 1);
	pair_check_idle(p);
}

/* ---- for host_rx.c ---- */

u64 pair_place_delay(struct pair *p)
{
	if (!rng_ppm(&p->rng, p->params.place_ppm))
		return 0;
	return rng_below(&p->rng, p->params.place_ns) + 1;
}

void pair_target(struct host *h, const struct medge_op *op,
		 struct medge_target *t)
{
	if (h->pair->on_target)
		h->pair->on_target(h, op, t);
}
