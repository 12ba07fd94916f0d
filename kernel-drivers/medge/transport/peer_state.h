/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A peer's state: private to the transport's files.
 *
 *   peer.c      life, own rails, weights; what connections see
 *   health.c    what becomes of a path
 *   probe.c     questions and answers between nodes
 *   share.c     the connection's side of it
 */
#ifndef MEDGE_TRANSPORT_PEER_STATE_H
#define MEDGE_TRANSPORT_PEER_STATE_H

#include "conn.h"
#include "peer.h"

enum {
	MEDGE_USEC = 1000u,
	MEDGE_MSEC = 1000000u,
	/* The most that a path of unknown round trip may take. */
	MEDGE_RTT_LONG = 25 * MEDGE_MSEC,
	/* An answer is never expected sooner: a node may be busy. */
	MEDGE_PROBE_WAIT_MIN = 2 * MEDGE_MSEC,
	MEDGE_PROBE_WAIT_MAX = 1000 * MEDGE_MSEC,
	/* Missing answers in a row: a path that worked; one that may not. */
	MEDGE_PROBE_DOUBTS = 2,
	MEDGE_PROBE_TRIES = 3,
	/* Answers in a row before a path that was down is used. */
	MEDGE_PROBE_PROOFS = 3,
	/* How often a path that is down is asked, at first. */
	MEDGE_DOWN_WAIT = 10 * MEDGE_MSEC,
	/* A path that went down again must answer for so long, doubling. */
	MEDGE_HOLD_MIN = 20 * MEDGE_MSEC,
	MEDGE_FLAPS_MAX = 10,
	/* Up for so long, what was is forgotten. */
	MEDGE_STABLE = 1000 * MEDGE_MSEC,
	/* Without traffic for so long, nothing is asked. */
	MEDGE_RECENT = 1000 * MEDGE_MSEC,
	/* A path that is back starts at 1 / 2^3 of its weight. */
	MEDGE_RAMP_STEPS = 3,
	MEDGE_RAMP_MIN = MEDGE_MSEC,
	/* Losses are judged over so many frames. */
	MEDGE_LOSS_FRAMES = 256,
	/* and not before what was late can have come to light. */
	MEDGE_LOSS_TIME = 4 * MEDGE_MSEC,
	MEDGE_LOSS_MAX_PPM = 200000,
	/* Each part of loss costs so many parts of weight. */
	MEDGE_LOSS_COST = 4,
	/* Mbit/s, where nobody knows. */
	MEDGE_SPEED_GUESS = 10000,
	/* Questions whose answers are waited for. */
	MEDGE_PROBES_OUT = 256,
	/* A node that does not ask for our list has no use for it. */
	MEDGE_LIST_TRIES = 8,
	MEDGE_LIST_WAIT = 4 * MEDGE_MSEC,
};

/**
 * struct medge_path_report - what a connection has learnt of a path
 * @lost: given up; @missed: of them, passed by others on the same path, and not
 *        received after all, as far as known
 * @acked_sent: when the latest frame was sent that was acknowledged
 * @silent_sent: when the latest was sent that ought to have been, but was not
 * @doubt: what was lost may have been lost on it
 * @srtt, @rttvar, @min_rtt: if @measured
 */
struct medge_path_report {
	u64 frames, bytes;
	u32 retransmits;
	u32 acked, lost, missed;
	u64 acked_sent;
	u64 silent_sent;
	u64 srtt, rttvar, min_rtt;
	bool measured;
	bool doubt;
};

/**
 * struct medge_path - a local rail and the peer's rail it reaches
 * @moves: counts the times that what is in flight on it must go another way
 * @base: share of its rails' speed, Mbit/s
 * @srtt, @rttvar: of data; @probe_rtt: of probes; @min_rtt: of either
 * @probe_at: when it is asked (again), or its silence is judged
 * @probe_now: a probe is to be sent
 * @unanswered: probes since the last answer
 * @answered: answers in a row
 * @flaps: times it went down without having been stable
 * @hold_until: it must answer until then
 * @ramp: its weight is halved so many times; one less at @ramp_at
 * @asked_at: when the latest probe was sent
 * @heard: when it last showed that it works
 * @heard_sent: when that was sent which showed it
 * @acked, @lost: since losses were judged last
 * @judge_at: they are not judged again before
 */
struct medge_path {
	u8 state, why;
	u8 rail, peer_rail;
	u8 mac[MEDGE_MAC_LEN];
	bool ever_up;
	bool probe_now;
	bool doubt;
	u8 unanswered, answered;
	u8 flaps, ramp;
	u32 moves;
	u32 base, weight;
	u32 loss_ppm;
	u32 acked, lost;
	u64 srtt, rttvar, min_rtt, probe_rtt;
	u64 changed_at, up_since, hold_until;
	u64 probe_at, ramp_at, judge_at;
	u64 asked_at;
	u64 heard, heard_sent;
	struct medge_path_info info;	/* its counters only */
};

/* A question that may be answered yet; slot: the nonce's low bits. */
struct medge_asked {
	u64 nonce;
	u64 time;
	u8 path;
};

/**
 * struct medge_peer - see peer.h
 * @me: the own node, a copy
 * @generation: of the paths
 * @changes: of their states, all together
 * @known: generation of the peer's list of rails in @rails; 0: none
 * @coming: generation of the list being asked for, rails from @coming_at on are
 *          missing; those in @came have come
 * @active_at: a connection was last heard of
 * @asleep: nothing is asked, for want of traffic
 */
struct medge_peer {
	u8 node[MEDGE_MAC_LEN];
	struct medge_local me;
	u32 generation;
	u32 changes;
	u32 npaths;
	struct medge_path paths[MEDGE_MAX_PATHS];

	u32 known;
	u32 coming;
	u8 coming_at;
	u64 came;
	struct medge_rail_attr rails[MEDGE_MAX_RAILS];
	struct medge_rail_attr came_rails[MEDGE_MAX_RAILS];
	u32 told;			/* our generation that the peer knows */
	u32 wanted;			/* the peer's, as others' probes claim */
	u64 listed_at;			/* when @known came */
	u64 list_at;			/* ask or tell again */
	u8 list_tries;

	u64 active_at;
	bool asleep;
	u64 random;
	u32 nonces;
	struct medge_asked asked[MEDGE_PROBES_OUT];
};

/* ---- peer.c ---- */
/* The peer's rails have changed. */
void medge_peer_follow(struct medge_peer *p, u64 now);
/* If the lists of rails are not in step at @at: ask, and so tell. */
void medge_peer_compare(struct medge_peer *p, u64 at);
/* The paths, or what they are good for, have changed. */
void medge_peer_changed(struct medge_peer *p);
static inline bool medge_rail_exists(const struct medge_rail_attr *a)
{
	static const u8 zeros[MEDGE_MAC_LEN];

	return memcmp(a->mac, zeros, MEDGE_MAC_LEN);
}

/* ---- health.c ---- */
/* A path that is new, or whose rail is back: ask it. */
void medge_path_begin(struct medge_peer *p, struct medge_path *path,
		      enum medge_path_why why, u64 now);
void medge_path_down(struct medge_peer *p, struct medge_path *path,
		     enum medge_path_why why, u64 now);
void medge_path_drain(struct medge_peer *p, struct medge_path *path, u64 now);
/* Can it be asked and used at all? */
bool medge_path_has_carrier(const struct medge_peer *p,
			    const struct medge_path *path);
/* It answered what was asked at @sent. */
void medge_path_answered(struct medge_peer *p, struct medge_path *path,
			 u64 sent, u64 now);
/*
 * It may not work: ask, but go on to use it. @doubt: say so to the peer, unless
 * it was the peer that said so.
 */
void medge_path_check(struct medge_path *path, bool doubt);
void medge_path_reported(struct medge_peer *p, struct medge_path *path,
			 const struct medge_path_report *r, u64 now);
/* probe_at has come. */
void medge_path_expired(struct medge_peer *p, struct medge_path *path, u64 now);
/* How long an answer takes is known now, for the first time. */
void medge_path_hasten(struct medge_peer *p, u64 now);
/* A probe is being sent: when is its answer due? */
void medge_path_asked(struct medge_peer *p, struct medge_path *path, u64 now);

#endif /* MEDGE_TRANSPORT_PEER_STATE_H */
