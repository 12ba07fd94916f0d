/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A peer: a remote node, the paths to it, and how each of them does. All
 * connections with that node share it.
 *
 * Sans-IO, as a connection is. The caller serializes the calls on one peer
 * (the kernel: under a lock of the peer's, inside the QP's). A connection does
 * not look at the peer for each frame: it has a copy of the paths, which it
 * exchanges for what it has learnt when medge_conn_sync_due() says so.
 *
 *   Sharing:  medge_conn_sync_due() > medge_conn_sync()
 *   Probes:   medge_peer_poll_tx(), medge_peer_probed(), medge_peer_replied()
 *   Time:     medge_peer_deadline(), medge_peer_timeout()
 *
 * States of a path. Only data makes it suspected, only probes clear it, so
 * that no user's frame is ever risked to find out.
 *
 *   PROBING   assumed, or back: nothing is sent on it that has a better way,
 *             until it has answered
 *   UP        used, by its weight: less if it loses frames or has just come back
 *   SUSPECT   went silent while others did not, or all did: it is asked
 *   DOWN      no carrier, no answer, or too many losses; asked ever more rarely
 *   DRAINING  either side's administrator wants it free
 *
 * A path is a local rail, and whichever rail of the peer's that leads to. All
 * slaves of a bond have the bond's address, the only one that each of them
 * accepts in every mode; so nobody but the network decides where a frame comes
 * out, and there are no pairs to choose from: cabled one to one, it is the rail
 * at the other end; in one switched network, the port at which the switch saw
 * that address last, the same for all rails. Replies tell which it is, and rails
 * that lead to one share its speed. Who wants more of a switch gives each rail
 * a network of its own.
 *
 * What has no better way takes what there is: verbs' retry rules decide when
 * to give up, not a path's state.
 */
#ifndef MEDGE_TRANSPORT_PEER_H
#define MEDGE_TRANSPORT_PEER_H

#include "env.h"
#include "wire.h"

struct medge_conn;
struct medge_peer;

enum { MEDGE_MAX_PATHS = 64 };

enum medge_path_state {
	MEDGE_PATH_NONE,
	MEDGE_PATH_PROBING,
	MEDGE_PATH_UP,
	MEDGE_PATH_SUSPECT,
	MEDGE_PATH_DOWN,
	MEDGE_PATH_DRAINING,
	MEDGE_PATH_STATES,
};

/* Why a path is in the state it is in. */
enum medge_path_why {
	MEDGE_WHY_NEW,			/* its rail is new, or the peer is */
	MEDGE_WHY_ANSWERED,		/* a probe was */
	MEDGE_WHY_SILENT,		/* nothing comes back that was sent on it */
	MEDGE_WHY_DOUBTED,		/* an ack, or the peer's probe, was missed */
	MEDGE_WHY_NO_ANSWER,		/* to probes */
	MEDGE_WHY_LOSSY,		/* it loses far more than others */
	MEDGE_WHY_CARRIER,		/* lost, here or there; or back */
	MEDGE_WHY_ADMIN,		/* draining begins or ends */
	MEDGE_WHY_GONE,			/* the rail is no more */
	MEDGE_WHYS,
};

/**
 * struct medge_local - the own node, as it describes itself
 * @generation: another number for each change; never 0, at first random
 */
struct medge_local {
	u8 node[MEDGE_MAC_LEN];
	u32 generation;
	struct medge_rail_attr rails[MEDGE_MAX_RAILS];
};

/* Set rail @rail; NULL: it is gone. Return: that was a change. */
bool medge_local_set(struct medge_local *me, u32 rail,
		     const struct medge_rail_attr *attr);

/* A path, for statistics and whoever asks. */
struct medge_path_info {
	u8 rail;		/* local */
	u8 peer_rail;		/* MEDGE_RAIL_ANY: not known yet */
	u8 state;		/* enum medge_path_state */
	u8 why;			/* enum medge_path_why */
	u8 mac[MEDGE_MAC_LEN];	/* frames are sent to */
	u32 weight;		/* 0: cannot be used at all */
	u32 loss_ppm;
	u64 srtt, rttvar, min_rtt;	/* ns; 0: not measured */
	u64 changed_at;		/* when it came into this state */
	u64 changes;		/* of state */
	u64 frames, bytes, retransmits;	/* of connections, sent on it */
	u64 lost;		/* a later frame was acknowledged, or none was */
	u64 probes, replies;
};

size_t medge_peer_size(void);

/**
 * medge_peer_init() - make a peer
 * @p: medge_peer_size() bytes of zeros
 * @node: its MAC address, as its GID says
 * @me: copied
 * @seed: random, for nobody to guess
 */
void medge_peer_init(struct medge_peer *p, const u8 *node,
		     const struct medge_local *me, u64 seed, u64 now);

/* The own node has changed. */
void medge_peer_local(struct medge_peer *p, const struct medge_local *me,
		      u64 now);

/* Changes with the paths. May be read at any time, without a lock. */
u32 medge_peer_generation(const struct medge_peer *p);

/*
 * Changes with a path's state: then connections that wait for it must be told,
 * too. Weights alone are found out about with the next frame.
 */
u32 medge_peer_changes(const struct medge_peer *p);

/* False: there is no path @i (that says nothing of those behind it). */
bool medge_peer_path(const struct medge_peer *p, u32 i,
		     struct medge_path_info *info);

/* A frame between nodes to send. */
struct medge_peer_tx {
	u8 rail;
	u8 mac[MEDGE_MAC_LEN];
	struct medge_probe probe;
};

bool medge_peer_poll_tx(struct medge_peer *p, u64 now, struct medge_peer_tx *tx);

/*
 * A probe came from the peer on own rail @rail. It must be answered, too
 * (medge_probe_answer()), whether there is a peer or not.
 */
void medge_peer_probed(struct medge_peer *p, u64 now, u32 rail,
		       const struct medge_probe *q);
/* A reply came. False: to nothing that was asked. */
bool medge_peer_replied(struct medge_peer *p, u64 now,
			const struct medge_probe *r);

/*
 * Another way for the reply to @q, beside @rail on which that came: the way back
 * may be what is broken. *@next: 0 at first. False: there is no (further) need.
 */
bool medge_peer_detour(const struct medge_peer *p, const struct medge_probe *q,
		       u32 rail, u32 *next, u8 *other, u8 *mac);

/* What the peer's replies to the peer should say is known of its rails. */
u32 medge_peer_known(const struct medge_peer *p);

/*
 * The reply of node @me to @q, which came on its rail @rail; who has a peer
 * adds @known.
 */
void medge_probe_answer(const struct medge_local *me,
			const struct medge_probe *q, u32 rail,
			struct medge_probe *reply);

/*
 * When medge_peer_timeout() and medge_peer_poll_tx() want to be called, ns;
 * MEDGE_NEVER: not at all.
 */
u64 medge_peer_deadline(const struct medge_peer *p);
void medge_peer_timeout(struct medge_peer *p, u64 now);

/* Has @c something to tell, or is its copy older than generation @gen? */
bool medge_conn_sync_due(const struct medge_conn *c, u32 gen, u64 now);
/* Tell the peer what the connection has learnt, and copy the paths. */
void medge_conn_sync(struct medge_conn *c, struct medge_peer *p, u64 now);

const char *medge_path_state_name(u8 state);
const char *medge_path_why_name(u8 why);

#endif /* MEDGE_TRANSPORT_PEER_H */
