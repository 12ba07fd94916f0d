/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A hostile network in virtual time. */
#include <stdlib.h>

#include "env.h"
#include "net.h"
#include "say.h"

enum { ETH_OVERHEAD = 14 + 4 + 8 + 12 };	/* header, FCS, preamble, gap */

struct packet *packet_new(u32 len)
{
	struct packet *p = malloc(sizeof(*p) + len);

	p->refs = 1;
	p->len = len;
	p->nframes = 1;
	p->to = NET_WIRED;
	return p;
}

struct packet *packet_get(struct packet *p)
{
	p->refs++;
	return p;
}

void packet_put(struct packet *p)
{
	if (!--p->refs)
		free(p);
}

struct flight {
	struct net *net;
	struct packet *packet;
	u8 side;		/* where it arrives */
	u8 rail;
};

static void arrive(void *arg, bool run)
{
	struct flight *f = arg;

	f->net->in_flight--;
	if (run)
		f->net->ops.deliver(f->net->ops.user, f->side, f->rail,
				    f->packet);
	packet_put(f->packet);
	free(f);
}

static void launch(struct net *n, u32 side, struct net_link *l,
		   struct packet *p, u64 at)
{
	struct flight *f = malloc(sizeof(*f));

	*f = (struct flight){ n, packet_get(p), !side,
			      p->to == NET_WIRED ? l->cfg.to : p->to };
	n->in_flight++;
	events_add(n->events, at, arrive, f);
}

static bool lost(struct net *n, struct net_link *l)
{
	if (l->burst_left && n->events->now < l->burst_until) {
		l->burst_left--;
		return true;
	}
	if (rng_ppm(n->rng, l->cfg.corrupt_ppm))
		return true;
	if (!rng_ppm(n->rng, l->cfg.loss_ppm))
		return false;
	if (l->cfg.burst)
		l->burst_left = rng_below(n->rng, l->cfg.burst);
	l->burst_until = n->events->now + 1000000;
	return true;
}

/* Time on the wire; false: the rail's queue is full. */
static bool serialize(struct net *n, struct net_link *l, const struct packet *p)
{
	u64 start = max(l->busy_until, n->events->now);
	u64 bytes = p->len + (u64)p->nframes * ETH_OVERHEAD;
	u64 queued = (start - n->events->now) * l->cfg.rate / 8000000000ULL;

	if (l->cfg.queue_bytes && queued > l->cfg.queue_bytes)
		return false;
	l->busy_until = start + bytes * 8000000000ULL / l->cfg.rate;
	return true;
}

/* When the host of @side, which may stand still @at, takes what arrives. */
static u64 awake(const struct net *n, u32 side, u64 at)
{
	const struct net_stall *s = &n->stall[side];
	u64 begin;

	if (!s->ns)
		return at;
	/* The other host's turn is another. */
	begin = at / s->every_ns * s->every_ns + side * s->every_ns / 2;
	return at >= begin && at < begin + s->ns ? begin + s->ns : at;
}

/* One frame, or a superframe that stays uncut. */
static void transit(struct net *n, u32 side, u32 rail, struct packet *p)
{
	struct net_link *l = &n->links[side][rail];
	enum net_verdict verdict = NET_PASS;
	u64 at, extra = 0;

	l->frames += p->nframes;
	l->bytes += p->len;
	if (n->ops.filter)
		verdict = n->ops.filter(n->ops.filter_user, side, rail, p, &extra);
	if (!serialize(n, l, p) || l->dark || verdict == NET_DROP ||
	    lost(n, l)) {
		l->dropped += p->nframes;
		TRACE("  x lost on rail %u of side %u\n", rail, side);
		return;
	}
	at = l->busy_until + l->cfg.delay_ns + rng_below(n->rng, l->cfg.jitter_ns);
	at = awake(n, !side, at);
	if (verdict == NET_HOLD)
		at += extra;
	else if (rng_ppm(n->rng, l->cfg.reorder_ppm))
		at += rng_below(n->rng, l->cfg.reorder_ns);
	else
		l->last_arrival = at = max(at, l->last_arrival);
	launch(n, side, l, p, at);
	if (verdict == NET_DUP || rng_ppm(n->rng, l->cfg.dup_ppm))
		launch(n, side, l, p, at + rng_below(n->rng, l->cfg.reorder_ns + 1));
}

/* The superframe's frame @i, with the header that a device's cut gives it. */
static struct packet *cut(const struct packet *p, u32 i, u32 seg_len)
{
	u32 from = MEDGE_HDR_LEN + i * seg_len;
	u32 len = min(seg_len, p->len - from);
	struct packet *part = packet_new(MEDGE_HDR_LEN + len);

	part->to = p->to;
	memcpy(part->data, p->data, MEDGE_HDR_LEN);
	medge_wire_cut(part->data, i, p->nframes);
	memcpy(part->data + MEDGE_HDR_LEN, p->data + from, len);
	return part;
}

void net_send(struct net *n, u32 side, u32 rail, struct packet *p)
{
	u32 seg_len, i;

	if (p->nframes == 1 ||
	    !rng_ppm(n->rng, n->links[side][rail].cfg.cut_ppm)) {
		transit(n, side, rail, p);
		packet_put(p);
		return;
	}
	seg_len = get_unaligned_be16(p->data +
				     offsetof(struct medge_frame_hdr, seg_len));
	for (i = 0; i < p->nframes; i++) {
		struct packet *part = cut(p, i, seg_len);

		transit(n, side, rail, part);
		packet_put(part);
	}
	packet_put(p);
}
