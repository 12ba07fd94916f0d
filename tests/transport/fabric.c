/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Switches in virtual time. */
#include <stdlib.h>

#include "fabric.h"

enum {
	HOPS_MAX = 6,
	ETH_OVERHEAD = 14 + 4 + 8 + 12,	/* header, FCS, preamble, gap */
};

/* A frame under way. */
struct hop {
	struct fabric *fabric;
	struct packet *packet;
	u32 ports[HOPS_MAX];
	u8 nports;
	u8 next;
	u8 plane;
	u32 to;
	u32 flow;
};

/*
 * Ports of a plane by what they lead from and to: host up, edge up, agg up,
 * core down, agg down, edge down to the host.
 */
static u32 half(const struct fabric *f)
{
	return f->cfg.k / 2;
}

static u32 tree_hosts(const struct fabric *f)
{
	return f->cfg.k * half(f) * half(f);
}

void fabric_init(struct fabric *f, const struct fabric_cfg *cfg,
		 struct events *events)
{
	memset(f, 0, sizeof(*f));
	f->cfg = *cfg;
	f->events = events;
	/* every tier of a fat tree has as many links as there are hosts */
	f->nports = cfg->k ? 6 * tree_hosts(f) : 2 * cfg->hosts;
	f->ports = calloc((size_t)f->nports * cfg->planes, sizeof(*f->ports));
}

void fabric_free(struct fabric *f)
{
	free(f->ports);
}

static u32 mix(u32 x)
{
	x = (x ^ x >> 16) * 0x7feb352d;
	x = (x ^ x >> 15) * 0x846ca68b;
	return x ^ x >> 16;
}

/* The ports on the way, by ECMP's choice of @flow. */
static u32 find_way(const struct fabric *f, u32 from, u32 to, u32 hash,
		    u32 *ports)
{
	u32 h = half(f), n = tree_hosts(f), i = 0;
	u32 edge_from, edge_to, pod_from, pod_to, up, core;

	if (!f->cfg.k) {
		ports[i++] = from;
		ports[i++] = f->cfg.hosts + to;
		return i;
	}
	up = hash % h;
	core = hash / h % h;
	edge_from = from / h;
	edge_to = to / h;
	pod_from = edge_from / h;
	pod_to = edge_to / h;
	ports[i++] = from;
	if (edge_from != edge_to) {
		ports[i++] = n + edge_from * h + up;
		if (pod_from != pod_to) {
			ports[i++] = 2 * n + (pod_from * h + up) * h + core;
			ports[i++] = 3 * n + (up * h + core) * f->cfg.k + pod_to;
		}
		ports[i++] = 4 * n + (pod_to * h + up) * h + edge_to % h;
	}
	ports[i++] = 5 * n + to;
	return i;
}

static void mark(struct packet *p)
{
	u8 *flags = p->data + offsetof(struct medge_frame_hdr, flags);

	if (p->data[0] % 16 == MEDGE_FRAME_DATA)
		*flags |= MEDGE_FRAME_MARKED;
}

/* False: the queue is full. The host's own queue never is, and never marks. */
static bool enqueue(struct fabric *f, struct hop *h, u64 *at)
{
	struct fabric_port *port = &f->ports[h->plane * f->nports +
					     h->ports[h->next]];
	u64 now = f->events->now, start = max(port->busy_until, now);
	u64 bytes = h->packet->len + ETH_OVERHEAD;
	u64 queued = (start - now) * f->cfg.rate / 8000000000ULL;

	if (h->next) {
		if (queued + bytes > f->cfg.buffer) {
			port->drops++;
			return false;
		}
		if (f->cfg.mark && queued > f->cfg.mark) {
			mark(h->packet);
			port->marks++;
		}
		port->queue_high = max_t(u64, port->queue_high, queued);
	}
	port->busy_until = start + bytes * 8000000000ULL / f->cfg.rate;
	port->bytes += h->packet->len;
	*at = port->busy_until + f->cfg.delay_ns;
	return true;
}

static void go_on(void *arg, bool run)
{
	struct hop *h = arg;
	struct fabric *f = h->fabric;
	u64 at;

	if (run && h->next == h->nports) {
		f->deliver(f->user, h->to, h->flow, h->plane, h->packet);
	} else if (run && enqueue(f, h, &at)) {
		h->next++;
		events_add(f->events, at, go_on, h);
		return;
	}
	packet_put(h->packet);
	free(h);
}

void fabric_send(struct fabric *f, u32 from, u32 to, u32 flow, u32 plane,
		 struct packet *p)
{
	struct hop *h = malloc(sizeof(*h));

	*h = (struct hop){ .fabric = f, .packet = p, .plane = plane, .to = to,
			   .flow = flow };
	h->nports = find_way(f, from, to, mix(flow * 64 + plane), h->ports);
	go_on(h, true);
}

u64 fabric_drops(const struct fabric *f)
{
	u64 drops = 0;
	u32 i;

	for (i = 0; i < f->nports * f->cfg.planes; i++)
		drops += f->ports[i].drops;
	return drops;
}

const struct fabric_port *fabric_port_to(const struct fabric *f, u32 host,
					 u32 plane)
{
	u32 first = f->cfg.k ? 5 * tree_hosts(f) : f->cfg.hosts;

	return &f->ports[plane * f->nports + first + host];
}
