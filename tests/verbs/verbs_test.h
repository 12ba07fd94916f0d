/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the verbs tests share: two devices opened in one process, and pairs of
 * connected RC QPs between them.
 */
#ifndef VERBS_TEST_H
#define VERBS_TEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <infiniband/verbs.h>

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

enum {
	FULL_ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
		      IBV_ACCESS_REMOTE_READ,
	/* No test waits longer for something that should happen. */
	PATIENCE_MS = 30000,
};

/* One device, opened. */
struct side {
	const char *name;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_device_attr attr;
	struct ibv_port_attr port;
	union ibv_gid gid;
	int gid_index;
};

/* One end of a connection. */
struct end {
	struct side *side;
	struct ibv_comp_channel *channel;
	struct ibv_cq *scq;
	struct ibv_cq *rcq;
	struct ibv_qp *qp;
	struct rdma_cm_id *id;	/* where the CM has connected it */
	struct ibv_qp_cap cap;
	uint32_t psn;
	bool other_cq;		/* that outlives it */
};

struct pair {
	struct end a;
	struct end b;
};

/* What a pair is made of; zeros are replaced by defaults. */
struct pair_options {
	uint32_t send_wr, recv_wr, send_sge, recv_sge, inline_data;
	uint32_t cqe;
	bool sig_all;
	bool events;		/* with a completion channel */
	struct ibv_cq *cq;	/* for both queues; NULL: of its own */
	uint8_t timeout;	/* 4.096 us << timeout */
	uint8_t retry_cnt;
	int rnr_retry;		/* -1: 0 */
	uint8_t min_rnr_timer;
	int access;		/* of the QPs */
	uint32_t path_mtu;
	enum ibv_qp_type type;	/* IBV_QPT_RC, or UC */
	/* NULL: ibv_create_qp() */
	struct ibv_qp *(*create_qp)(struct side *side,
				    struct ibv_qp_init_attr *init);
};

/* Prints the reason and exits with status 1. */
void die(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* xorshift64*; never 0. */
uint64_t rng_next(uint64_t *state);
uint64_t rng_below(uint64_t *state, uint64_t bound);
void rng_fill(uint64_t *state, void *buf, size_t len);
uint64_t rng_seed(const char *arg);

uint64_t now_ns(void);
uint64_t now_ms(void);

/*
 * The two devices: names and GID indices from the environment (DEV_A, GID_A,
 * DEV_B, GID_B).
 */
void side_open_both(struct side *a, struct side *b);
void side_open(struct side *side, const char *dev, const char *gid_index);
void side_close(struct side *side);
/* A counter of its port, once the kernel shows none that is older. */
uint64_t side_counter(const struct side *side, const char *name);

/* Page-aligned memory. */
void *alloc_pages(size_t len);
void *alloc_huge_pages(size_t len);
struct ibv_mr *must_reg(struct side *side, void *buf, size_t len, int access);

/*
 * A packet socket of a port of this network namespace, which hears frames of that
 * EtherType, both ways if that is ETH_P_ALL (0: it hears nothing). Dies without one.
 */
int port_socket(const char *netdev, uint16_t ethertype);

/* A domain that is this process's own; NULL: errno says why not. */
struct ibv_xrcd *xrcd_open(struct side *side);

/*
 * A dma-buf of a file's pages, and in @file that file, both of which the caller
 * closes; -1: this kernel has none.
 */
int udmabuf_create(size_t len, int *file);

int end_create(struct end *end, struct side *side,
	       const struct pair_options *opt);
void end_destroy(struct end *end);
int end_to_init(struct end *end, const struct pair_options *opt);
int end_to_rtr(struct end *end, const struct end *peer,
	       const struct pair_options *opt);
int end_to_rts(struct end *end, const struct pair_options *opt);
int end_to_state(struct end *end, enum ibv_qp_state state);

/*
 * Both ends, which are new or were reset, to RTS, by the CM if they are iWARP's;
 * dies if that fails.
 */
void pair_connect(struct pair *pair, const struct pair_options *opt);
/* New ends, connected. */
void pair_create(struct pair *pair, struct side *a, struct side *b,
		 const struct pair_options *opt);
void pair_destroy(struct pair *pair);

/*
 * An RDMA write of @len bytes, @offset bytes from where either region begins.
 * Return: what ibv_post_send() does.
 */
int post_write(struct ibv_qp *qp, const struct ibv_mr *from,
	       const struct ibv_mr *to, uint64_t offset, uint32_t len,
	       unsigned int flags);

/* medge's command: have the kernel look at the send ring of a QP. 0 or errno. */
int ring_qp(const struct side *side, uint32_t qpn);

/* One completion, or false after @ms. */
bool wait_wc(struct ibv_cq *cq, struct ibv_wc *wc, int ms);

#endif /* VERBS_TEST_H */
