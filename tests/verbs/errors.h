/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the cases of verbs_errors have in common: two sides, memory registered at
 * each of them, requests that are right as they are made, and what is to come of them.
 */
#ifndef ERRORS_H
#define ERRORS_H

#include <string.h>

#include "verbs_check.h"

enum { BUF = 65536 };

/* A case runs in a process of its own; one that ends well returns. */
struct error_case {
	const char *name;
	void (*run)(void);
};

#define ERROR_CASE(name) { #name, name }

/* Of each file; the last has no name. */
extern const struct error_case errors_post[], errors_access[],
	errors_receive[], errors_objects[], errors_states[], errors_doorbell[];

extern struct side A, B;
extern uint8_t *abuf, *bbuf;		/* of BUF bytes */
extern struct ibv_mr *amr, *bmr;	/* all of them, with all rights */

/* Requests, one after the other in static storage. */
extern struct ibv_sge sges[64][32];
extern struct ibv_send_wr wrs[64];

#define check_ret(expr, want)                                                  \
	do {                                                                   \
		int ret_ = (expr);                                             \
		check(ret_ == (want), "%s is %d (%s) instead of %d (%s)",      \
		      #expr, ret_, strerror(ret_), want, strerror(want));      \
	} while (0)

/* The case ends here. */
void skip(const char *why);
/* The peers deviate here and there; what they do is not what is tested. */
bool type_is(const char *type);

/* From A. Request @i, alone: its first bytes, to B's first. */
struct ibv_send_wr *mk(int i, enum ibv_wr_opcode opcode, size_t len);
/* One that is to go wrong by its key or address. */
struct ibv_send_wr *mk_bad(enum ibv_wr_opcode opcode, uint32_t rkey,
			   uint64_t addr, size_t len);
/* Requests 0 to @n - 1 are a list. */
void link_wrs(int n);
int post(struct end *end, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int post_recv_at(struct end *end, uint64_t wr_id, void *buf, size_t len,
		 uint32_t lkey);
/* At B. */
void post_recv(struct end *end, uint64_t wr_id, size_t len);

#define expect_wc(cq, wr_id, status) expect(cq, wr_id, status, __LINE__)
void expect(struct ibv_cq *cq, uint64_t wr_id, enum ibv_wc_status status,
	    int line);
void expect_none(struct ibv_cq *cq, int ms, int line);
enum ibv_qp_state state_of(struct end *end);
/* Within a while. */
void expect_state(struct end *end, enum ibv_qp_state want);
/* Request 1 of 0..3 is wrong; 2 and 3 flush, and so does what comes later. */
void expect_failure(struct pair *p, enum ibv_wc_status status,
		    enum ibv_qp_state state_b);

/* @opt: NULL for what is usual. */
void make(struct pair *pair, const struct pair_options *opt);
/* Bytes go both ways. */
void check_works(struct pair *pair);

/* Make a QP of these sizes at A, and destroy it: 0 or errno. */
int try_qp(struct ibv_qp_cap cap);

#endif /* ERRORS_H */
