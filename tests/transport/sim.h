/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Many connections over a fabric, in virtual time. Rails do not fail here, so
 * there are no peers to judge them. Frames are headers only, and
 * nobody checks bytes: that is what pairs are for. What counts here is how fast,
 * how fair, and at what cost.
 */
#ifndef MEDGE_TEST_SIM_H
#define MEDGE_TEST_SIM_H

#include "conn.h"
#include "fabric.h"
#include "rng.h"

/**
 * struct sim_cfg - a simulation
 * @flows: connections
 * @seg_len: payload of a frame
 * @op_len: bytes of each write
 * @ops: writes of each flow; 0: they never end
 * @depth: so many at a time
 * @congestion: false: the transport's control of it is put out of action
 * @scheduler: enum medge_scheduler
 * @slop_ns: how late timers are, at most
 */
struct sim_cfg {
	struct fabric_cfg fabric;
	u32 flows;
	u32 seg_len;
	u32 op_len;
	u32 ops;
	u32 depth;
	bool congestion;
	u32 scheduler;
	u64 slop_ns;
};

struct sim;

/* One end of a connection. */
struct sim_end {
	struct sim *sim;
	struct medge_conn *conn;
	struct sim_end *peer;
	u32 host;
	u32 flow;
	u64 timer;		/* the earliest that is set */
};

struct sim_flow {
	struct sim_end end[2];	/* writes go from 0 to 1 */
	u32 posted;
	u32 done;
	u64 *posted_at;		/* of each op in progress, by number */
	u64 bytes;		/* performed since sim_measure() */
	bool failed;
};

struct sim {
	struct sim_cfg cfg;
	struct rng rng;
	struct events events;
	struct fabric fabric;
	struct sim_flow *flows;
	u32 unfinished;
	u64 *took;		/* of ops done, ns */
	u32 ntook, took_size;
	u64 measured_from;
};

/* @ends: for each flow, its two hosts. */
void sim_init(struct sim *s, const struct sim_cfg *cfg, const u32 (*ends)[2]);
void sim_free(struct sim *s);
/* Until @until, or all ops are done (true). */
bool sim_run(struct sim *s, u64 until);
/* Forget what has been counted so far. */
void sim_measure(struct sim *s);

struct sim_result {
	u32 share;		/* of @limit bit/s, per mille, as payload */
	u32 jain;		/* of the flows' bytes, per mille */
	u64 p50, p99;		/* of an op's time, ns */
	u32 again;		/* frames sent again, per mille */
	u64 drops;
	u32 failed;		/* flows */
};

void sim_result(struct sim *s, u64 limit, struct sim_result *r);

#endif /* MEDGE_TEST_SIM_H */
