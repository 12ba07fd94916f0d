/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A hostile network in virtual time: two sides joined by rails that lose,
 * duplicate, reorder, delay, cut and die, all by the seed.
 */
#ifndef MEDGE_TEST_NET_H
#define MEDGE_TEST_NET_H

#include "env.h"
#include "events.h"
#include "rng.h"
#include "wire.h"

/*
 * A frame's bytes behind the Ethernet header. Its own allocation, so that the
 * sanitizer sees one byte read too many.
 */
struct packet {
	u32 refs;
	u32 len;
	u16 nframes;		/* above 1: a superframe, uncut */
	u8 to;			/* the rail that a switch leads it to, or NET_WIRED */
	u8 data[];
};

/* It comes out where the rail ends that it entered. */
enum { NET_WIRED = 255 };

struct packet *packet_new(u32 len);
struct packet *packet_get(struct packet *p);
void packet_put(struct packet *p);

/* One rail, one direction. Rates in bit/s, chances in parts per million. */
struct net_link_cfg {
	u64 rate;
	u64 delay_ns;
	u64 jitter_ns;		/* added at random, order kept */
	u32 loss_ppm;
	u32 burst;		/* frames lost in a row, once one is, for 1 ms at most */
	u32 corrupt_ppm;	/* a flipped bit; the FCS finds it */
	u32 dup_ppm;
	u32 reorder_ppm;
	u64 reorder_ns;		/* how much later, at most */
	u32 cut_ppm;		/* superframes that are cut on the way */
	u32 queue_bytes;	/* tail drop above it; 0: never */
	u8 to;			/* the rail it comes out at */
};

struct net_link {
	struct net_link_cfg cfg;
	bool dark;		/* swallows everything */
	u64 busy_until;
	u64 last_arrival;
	u32 burst_left;
	u64 burst_until;
	u64 frames;		/* that entered */
	u64 bytes;
	u64 dropped;
};

enum net_verdict {
	NET_PASS,
	NET_DROP,
	NET_DUP,
	NET_HOLD,		/* deliver after *delay more ns */
};

struct net;

struct net_ops {
	/* @p arrived at @side on its @rail. */
	void (*deliver)(void *user, u32 side, u32 rail, struct packet *p);
	/* What a directed test does with a frame sent; may be NULL. */
	enum net_verdict (*filter)(void *user, u32 side, u32 rail,
				   struct packet *p, u64 *delay);
	void *user;
	void *filter_user;
};

/* Hosts stand still: once in @every_ns, for @ns; 0: never. */
struct net_stall {
	u64 ns;
	u64 every_ns;
};

struct net {
	struct events *events;
	struct rng *rng;
	struct net_ops ops;
	struct net_link links[2][MEDGE_MAX_RAILS];	/* by sending side */
	struct net_stall stall[2];
	u64 in_flight;
};

/* @p leaves @side on @rail; takes over the reference. */
void net_send(struct net *n, u32 side, u32 rail, struct packet *p);

#endif /* MEDGE_TEST_NET_H */
