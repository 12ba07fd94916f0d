/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Switches in virtual time: output queues with finite buffers that mark and
 * drop, in a fat tree (Al-Fares, SIGCOMM 2008) or as one switch.
 *
 *	            core (k/2)^2
 *	        /                  \
 *	   pod 0: k/2 agg          pod k-1
 *	          k/2 edge   ...
 *	          k/2 hosts each
 *
 * Each rail of the hosts has a fabric of its own. A flow's way up is chosen by
 * its number, as ECMP does by a hash.
 */
#ifndef MEDGE_TEST_FABRIC_H
#define MEDGE_TEST_FABRIC_H

#include "env.h"
#include "events.h"
#include "net.h"

struct fabric_cfg {
	u32 k;			/* ports of a switch: k^3/4 hosts; 0: one switch */
	u32 hosts;		/* used of them */
	u32 planes;		/* rails of a host */
	u64 rate;		/* of all links, bit/s */
	u64 delay_ns;		/* of each link */
	u32 buffer;		/* bytes a port queues before it drops */
	u32 mark;		/* bytes queued from which on it marks; 0: never */
};

struct fabric_port {
	u64 busy_until;
	u64 bytes;		/* carried */
	u64 drops;
	u64 marks;
	u32 queue_high;
};

struct fabric {
	struct fabric_cfg cfg;
	struct events *events;
	struct fabric_port *ports;
	u32 nports;		/* of one plane */
	void (*deliver)(void *user, u32 host, u32 flow, u32 plane,
			struct packet *p);
	void *user;
};

void fabric_init(struct fabric *f, const struct fabric_cfg *cfg,
		 struct events *events);
void fabric_free(struct fabric *f);
/* A frame (not a run) of @flow from host to host; takes over the reference. */
void fabric_send(struct fabric *f, u32 from, u32 to, u32 flow, u32 plane,
		 struct packet *p);
u64 fabric_drops(const struct fabric *f);
/* The port that leads to @host. */
const struct fabric_port *fabric_port_to(const struct fabric *f, u32 host,
					 u32 plane);

#endif /* MEDGE_TEST_FABRIC_H */
