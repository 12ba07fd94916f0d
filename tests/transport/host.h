/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * One side of a pair: a connection, the memory and queues of its application,
 * and what the kernel does around the transport.
 */
#ifndef MEDGE_TEST_HOST_H
#define MEDGE_TEST_HOST_H

#include "env.h"
#include "conn.h"
#include "net.h"
#include "peer.h"
#include "say.h"

enum host_region {
	REGION_STRICT,
	REGION_RELAXED,
	REGION_ATOMIC,
	REGIONS,
};

enum {
	REGION_RKEY = 0x4d00,		/* + enum host_region */
	BAD_RKEY = 0xbad,
	/* Every payload is a stretch of the same noise. */
	NOISE_LEN = 1 << 21,
	RECV_SLACK = 16,
	/* The transport's own bound: a window, and as many a run was split into. */
	HELD_MAX = 2 * MEDGE_WINDOW,
	GRANTS = MEDGE_OP_WINDOW,
};

/* So that a truncated address is found. */
#define REGION_BASE	0x7f5a00001000ULL
#define REGION_STEP	0x10000000000ULL

extern u8 noise[NOISE_LEN];

struct region {
	u8 *bytes;
	u32 len;
	u32 src;		/* initial content: noise from here */
};

/* A request, as its poster knows it and as it is seen at the peer. */
struct op {
	struct medge_request req;
	u32 src;		/* payload: noise from here */
	u64 operand, swap;	/* of an atomic */
	s32 fence_before;	/* index of the last op before with a forward fence */
	u32 recv_index;
	bool memory_gone;	/* the poster's memory: sending it fails */
	bool response_gone;	/* the responder's */
	u8 target_nak;		/* what the responder's kernel says */
	u8 place_nak;		/* its copying or atomic fails, though the target was fine */
	bool sink_gone;		/* copying the answer fails */

	/* ---- at the poster ---- */
	bool sent;
	u8 *sink;		/* READ, atomics: the answer */
	u8 *sunk_map;
	u32 sunk;
	u32 sinking;		/* pieces in progress */
	bool completed;
	u8 status;

	/* ---- at the peer ---- */
	bool targeted;
	bool relaxed;
	u8 *placed_map;		/* bytes given out for placing, once each */
	u32 placed;
	u32 placing;		/* pieces in progress */
	bool performed;
	bool executed;		/* an atomic */
	bool invalidated;	/* SEND_INV */
	u64 original;
	bool refused;
};

struct recv {
	u8 *bytes;
	u32 len;
	bool relaxed;
	bool delivered;
};

struct host_counts {
	u64 frames_sent;	/* data */
	u64 acks_sent;
	u64 frames_new;		/* data, first transmissions */
	u64 superframes;
	u32 held, held_high;
	u32 placing, placing_high;
};

/*
 * What the target upcall allowed. In a hostile run the peer's own view of its
 * ops says nothing, so that pieces are measured by this.
 */
struct grant {
	bool given;
	u8 opcode;
	u32 op_no;
	u32 op_len;
	u64 addr;
	u32 rkey;
};

struct pair;

/* A frame that others are joined to, as kernel-drivers/medge/join.c does. */
struct waiting {
	struct packet *packet;	/* NULL: none waits */
	struct medge_frame frame;
	u32 rail;
	u64 until;
};

struct host {
	struct pair *pair;
	struct medge_conn *conn;
	struct host *peer;
	struct medge_local me;
	struct medge_peer *remote;	/* what we know of the peer's rails */
	u64 path_changes[MEDGE_MAX_PATHS];	/* traced */
	u32 side;

	struct op *ops;
	u32 nops, ops_size;
	u32 submitted;
	u32 completed;		/* in order, so a count */
	u32 peer_performed;	/* how many of them the peer has */
	u32 targets;		/* asked for by the transport, again and again if there is none */
	u32 first_op;
	u32 recvs_wanted;	/* by its ops, at the peer */
	u32 reads_out;

	struct recv *recvs;
	u32 nrecvs, recvs_size;
	u32 consumed;
	u32 recv_base;		/* index of the first */
	struct region regions[REGIONS];
	struct waiting waiting;

	u32 snd_nxt;		/* frame number space, from the outside */
	u32 acked;		/* highest cumulative ack that came */
	bool failed;		/* an own op ended badly */
	bool refused;		/* the peer was refused something */
	bool silent;		/* the QP is gone: no frame in or out */
	u8 refused_nak;
	u8 refused_status;
	u32 refused_op;
	struct grant grants[GRANTS];	/* hostile runs only */
	struct host_counts count;
};

/* ---- host.c: the application ---- */
void host_init(struct host *h, u32 region_len);
void host_free(struct host *h);
struct op *host_post(struct host *h, const struct medge_request *req);
/* A receive is in the ring, and can be found there. */
void host_fill_recv(struct host *h, u32 len, bool relaxed);
/* The doorbell, which may come later. */
void host_ring_recv(struct host *h);
/* Both. */
void host_post_recv(struct host *h, u32 len, bool relaxed);
/* Submit what is posted as far as there is room. */
void host_submit(struct host *h);
struct op *host_op(struct host *h, u32 op_no);
/* NULL: not posted */
struct recv *host_recv(struct host *h, u32 index);
u64 host_addr(enum host_region region, u64 offset);
u32 host_rkey(enum host_region region);
/* NULL: not within a region */
u8 *host_memory(struct host *h, u32 rkey, u64 addr, u32 len,
		enum host_region *region);
static inline bool op_is_atomic(u8 opcode)
{
	return opcode == MEDGE_OP_CMP_SWAP || opcode == MEDGE_OP_FETCH_ADD;
}

static inline bool op_answers(u8 opcode)
{
	return opcode == MEDGE_OP_READ || op_is_atomic(opcode);
}

static inline bool op_is_send(u8 opcode)
{
	return opcode == MEDGE_OP_SEND || opcode == MEDGE_OP_SEND_IMM ||
	       opcode == MEDGE_OP_SEND_INV;
}

static inline bool op_consumes(u8 opcode)
{
	return op_is_send(opcode) || opcode == MEDGE_OP_WRITE_IMM;
}

/* ---- host_tx.c, host_rx.c: the kernel ---- */
/* Leave: a last word, and from then on no frame in or out. Return: how many it took. */
u32 host_leave(struct host *h);
/* @budget: runs at most, 0: any number. False: it was used up. */
bool host_transmit(struct host *h, u32 budget);
void host_receive(struct host *h, u32 rail, struct packet *p);
/* Exchange what the connection and the peer know of paths; send probes. */
void host_sync(struct host *h);
void host_answer(struct host *h, u32 rail, const struct medge_probe *q);
/* Held frames that may go on. */
void host_released(struct host *h);
void host_drop_held(struct host *h);
extern const struct medge_conn_ops host_conn_ops;

/* ---- check.c: the contract, as it is kept or broken ---- */
void check_tx(struct host *h, const struct medge_tx *tx);
void check_tx_op(struct host *h, const struct medge_tx *tx,
		 const struct medge_op *op);
void check_place(struct host *h, const struct medge_piece *piece, bool begin);
void check_performed(struct host *h, const struct medge_op *op, u32 recv_index);
void check_completed(struct host *h, u32 op_no, enum medge_status status);
/* memory.c: what the READ of index @i brought */
void check_read(struct host *h, u32 i);
/* At the end: every byte of memory. */
void check_memory(struct host *h);
/* @from's op @i must not be performed before its @j, on whatever memory. */
bool check_ordered(const struct host *h, u32 i, u32 j);

#endif /* MEDGE_TEST_HOST_H */
