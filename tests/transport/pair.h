/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Two connections in virtual time, joined by a hostile network. */
#ifndef MEDGE_TEST_PAIR_H
#define MEDGE_TEST_PAIR_H

#include "env.h"
#include "conn.h"
#include "events.h"
#include "host.h"
#include "net.h"
#include "rng.h"

#define USEC	1000ULL
#define MSEC	1000000ULL
#define SEC	1000000000ULL

/**
 * struct pair_params - what a pair is made of
 * @region_len: bytes of each memory region of each side
 * @op_base, @recv_base: first op number and receive index of each direction
 * @place_ppm: pieces that take time to be placed
 * @place_ns: how long at most
 * @slop_ns: how late a timer may be
 * @budget: runs sent at a time at most, 0: any number
 * @nfirst: rails that are there from the beginning; 0: all
 * @switched: all rails are on one switch, and a frame's address says where it goes
 * @bonded: there, all rails of a node have its address: where that was seen last
 * @joins: frames that come in order are joined; superframes that come uncut were, too
 * @gone_ppm: hostile runs: how often memory turns out to be gone
 * @event_limit: a run with more events than this is livelocked
 */
struct pair_params {
	u64 seed;
	u32 nrails;
	u32 nfirst;
	struct medge_conn_config cfg[2];
	u32 weight[2][MEDGE_MAX_RAILS];
	struct net_link_cfg link[2][MEDGE_MAX_RAILS];
	struct net_stall stall[2];
	u32 region_len;
	u32 op_base[2];
	u32 recv_base[2];
	u32 place_ppm;
	u64 place_ns;
	u64 slop_ns;
	u32 budget;
	u32 gone_ppm;
	u64 event_limit;
	bool switched;
	bool bonded;
	bool joins;
};

struct pair {
	struct pair_params params;
	struct rng rng;
	struct events events;
	struct net net;
	struct host host[2];
	u32 weight[2][MEDGE_MAX_RAILS];	/* as they are now */
	bool drained[2][MEDGE_MAX_RAILS];
	struct {
		u64 deadline;
		u64 at;
		u32 spins;
	} timer[2], peer_timer[2];
	u8 seen_on[2];		/* rails, by the switch */
	bool polling[2];	/* a poll is due, the budget was used up */
	bool hostile;		/* frames are forged: only safety is checked */
	u64 steps;
	/* Directed tests look at or change what the memory says; may be NULL. */
	void (*on_target)(struct host *h, const struct medge_op *op,
			  struct medge_target *t);
	void (*on_completed)(struct host *h, u32 op_no, enum medge_status status);
	/* What the application could see; may be NULL. */
	void (*on_copied)(struct host *h, const struct medge_op *op,
			  u32 recv_index, u32 offset, const u8 *bytes, u32 len);
	void (*on_atomic)(struct host *h, const struct medge_op *op, u64 before,
			  u64 after);
	void (*on_performed)(struct host *h, const struct medge_op *op);
	/* Memory that has to be waited for; may be NULL if no connection asks. */
	bool (*is_absent)(struct host *h, const struct medge_op *op);
	/* Of what was there when it was asked for: has it left since? */
	bool (*has_left)(struct host *h, const struct medge_op *op);
	void *user;
};

/* A plain network: @nrails rails of 10 Gbit/s, 20 us, nothing ever lost. */
void pair_params_default(struct pair_params *params, u32 nrails);
void pair_init(struct pair *p, const struct pair_params *params);
void pair_free(struct pair *p);

static inline u64 pair_now(const struct pair *p)
{
	return p->events.now;
}

static inline u32 pair_qpn(const struct pair *p, u32 side)
{
	return p->params.cfg[!side].dest_qpn;
}

/* Post and start to send. */
void pair_post(struct pair *p, u32 side, const struct medge_request *req);
/* Let @side send what it can. */
void pair_poll(struct pair *p, u32 side);
/* Carrier seen by @side; weight 0: lost. */
void pair_rail(struct pair *p, u32 side, u32 rail, u32 weight);
/* @rail is none of @side's any more. */
void pair_rail_gone(struct pair *p, u32 side, u32 rail);
/* 02:00:00:00:<side>:<rail>; the node's own ends in ff. */
void pair_rail_mac(u8 *mac, u32 side, u32 rail);
/* Where a switch leads to what @side sends on @rail to this address, or NET_WIRED. */
u8 pair_leads_to(struct pair *p, u32 side, u32 rail, const u8 *mac);
/* The administrator of @side wants @rail free, or not any more. */
void pair_drain(struct pair *p, u32 side, u32 rail, bool drain);
/* Silent black hole for what @side sends on @rail. */
void pair_dark(struct pair *p, u32 side, u32 rail, bool dark);
/*
 * Run until nothing more will happen (true) or it is @until (false).
 */
bool pair_run(struct pair *p, u64 until);
/* Run until all is done, at most @limit ns more, and idle; all must have gone well. */
void pair_finish(struct pair *p, u64 limit);
/* All ops of @side completed well, are performed, and nothing is left. */
void pair_check_done(struct pair *p, u32 side);
/* Nobody has anything to send or to wait for. */
void pair_check_idle(struct pair *p);

/* ---- for host_rx.c ---- */
u64 pair_place_delay(struct pair *p);
void pair_target(struct host *h, const struct medge_op *op,
		 struct medge_target *t);
u8 pair_atomic(struct host *h, const struct medge_op *op, u8 *cell,
	       u64 operand, u64 swap, u64 *original);

/* inside.c: reaches into the transport's state */
void conn_start_at(struct medge_conn *c, u32 own_op, u32 own_recv, u32 peer_op,
		   u32 peer_recv);
void conn_dump(struct medge_conn *c);
/* So many ops were submitted since its fences. */
void conn_age_fences(struct medge_conn *c, u32 ops);
/* The ack that comes next is older than one that told of a duplicate. */
void conn_forget_dup(struct medge_conn *c);
/* Frames that were taken for lost and had arrived, as its peer told it. */
u32 conn_late(const struct medge_conn *c);
/* As if no path were ever congested: to be called before frames are sent. */
void conn_ignore_congestion(struct medge_conn *c);
/* As if a peer said, whatever happens, that path i is rail i and well. */
void conn_trust_paths(struct medge_conn *c, u32 npaths);
/* The state does not contradict itself. */
void conn_check(struct medge_conn *c);

/* Both connections, with a trace only. */
void pair_dump(struct pair *p);

#endif /* MEDGE_TEST_PAIR_H */
