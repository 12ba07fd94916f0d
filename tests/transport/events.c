/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Virtual time: a binary heap of what happens next. */
#include <stdlib.h>

#include "env.h"
#include "events.h"

static bool earlier(const struct event *a, const struct event *b)
{
	return a->at != b->at ? a->at < b->at : a->serial < b->serial;
}

void events_add(struct events *q, u64 at, event_fn fn, void *arg)
{
	struct event e = { max(at, q->now), q->serial++, fn, arg };
	u32 i = q->count++;

	if (q->count > q->size) {
		q->size = q->size ? 2 * q->size : 64;
		q->heap = realloc(q->heap, q->size * sizeof(*q->heap));
	}
	while (i && earlier(&e, &q->heap[(i - 1) / 2])) {
		q->heap[i] = q->heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	q->heap[i] = e;
}

u64 events_next(const struct events *q)
{
	return q->count ? q->heap[0].at : ~0ULL;
}

static struct event pop(struct events *q)
{
	struct event top = q->heap[0];
	struct event last = q->heap[--q->count];
	u32 i = 0, child;

	while ((child = 2 * i + 1) < q->count) {
		if (child + 1 < q->count &&
		    earlier(&q->heap[child + 1], &q->heap[child]))
			child++;
		if (!earlier(&q->heap[child], &last))
			break;
		q->heap[i] = q->heap[child];
		i = child;
	}
	q->heap[i] = last;
	return top;
}

void events_run(struct events *q)
{
	struct event e = pop(q);

	q->now = e.at;
	e.fn(e.arg, true);
}

void events_free(struct events *q)
{
	while (q->count) {
		struct event e = pop(q);

		e.fn(e.arg, false);
	}
	free(q->heap);
	memset(q, 0, sizeof(*q));
}
