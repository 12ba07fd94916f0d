/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What directed tests share: requests in a line, a look at each frame sent. */
#ifndef MEDGE_TEST_DIRECT_H
#define MEDGE_TEST_DIRECT_H

#include "pair.h"

/* Run a test function; its name is said if it fails. */
#define RUN(fn) direct_run(#fn, fn)

void direct_run(const char *name, void (*fn)(void));

/*
 * To be called first and last in main(). Arguments of the program: -v for a
 * trace, and the name of the only test to run.
 */
void direct_begin(int argc, char **argv);
int direct_end(const char *name);

struct medge_request req_write(enum host_region region, u64 offset, u32 len,
			       u8 flags);
struct medge_request req_read(enum host_region region, u64 offset, u32 len);
struct medge_request req_send(u32 len, u8 flags);
struct medge_request req_write_imm(enum host_region region, u64 offset, u32 len,
				   u8 flags);
struct medge_request req_fetch_add(u32 cell);

/*
 * A look at what connections send, decoded, cut. @first: it was not sent
 * before (data).
 */
struct seen {
	u32 side;
	u32 rail;
	bool first;
	struct medge_frame f;
	struct medge_ack ack;		/* of an ack frame */
	struct packet *packet;
};

typedef enum net_verdict (*watch_fn)(struct pair *p, const struct seen *seen,
				     u64 *delay, void *user);

/* One at a time for each pair; @user is the test's own. */
struct watch {
	struct pair *pair;
	watch_fn fn;
	void *user;
	u32 next_psn[2];
};

void watch_frames(struct watch *w, struct pair *p, watch_fn fn, void *user);

#endif /* MEDGE_TEST_DIRECT_H */
