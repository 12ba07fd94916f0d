/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Virtual time: what happens next, and when. */
#ifndef MEDGE_TEST_EVENTS_H
#define MEDGE_TEST_EVENTS_H

#include "env.h"

/*
 * @run: false: the simulation ends, only release what @arg owns
 */
typedef void (*event_fn)(void *arg, bool run);

struct event {
	u64 at;
	u64 serial;		/* events of one instant: first come, first served */
	event_fn fn;
	void *arg;
};

struct events {
	struct event *heap;
	u32 count;
	u32 size;
	u64 serial;
	u64 now;
};

void events_add(struct events *q, u64 at, event_fn fn, void *arg);
/* ~0ULL: none */
u64 events_next(const struct events *q);
/* Advance to the next event and run it; there is one. */
void events_run(struct events *q);
void events_free(struct events *q);

#endif /* MEDGE_TEST_EVENTS_H */
