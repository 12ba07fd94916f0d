// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What the program is told: it polls, and what it finds becomes events. */
#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "glue.h"

enum { SOON_MS = 1 };

static __thread struct glue *in_handler;

struct glue *event_in_handler(void)
{
	return in_handler;
}

struct glue *event_enter_handler(struct glue *g)
{
	struct glue *outer = in_handler;

	in_handler = g;
	return outer;
}

void event_leave_handler(struct glue *outer)
{
	in_handler = outer;
}

/* There is room for those of all operations; others may have to be left out. */
void event_put(struct glue *g, const struct glue_event *event)
{
	pthread_mutex_lock(&g->event_lock);
	if (g->events_put - g->events_got < g->event_room)
		g->events[g->events_put++ & (g->event_room - 1)] = *event;
	pthread_mutex_unlock(&g->event_lock);
	if (g->sleepers)
		wake(g->wake_poller);
}

static bool event_get(struct glue *g, struct glue_event *event)
{
	bool got, more;

	if (g->events_put == g->events_got)
		return false;
	pthread_mutex_lock(&g->event_lock);
	got = g->events_put != g->events_got;
	if (got)
		*event = g->events[g->events_got++ & (g->event_room - 1)];
	more = g->events_put != g->events_got;
	pthread_mutex_unlock(&g->event_lock);
	if (more && g->sleepers)
		wake(g->wake_poller);
	return got;
}

void event_forget(struct glue *g, const struct glue_connection *c)
{
	uint32_t mask = g->event_room - 1, from, to;

	pthread_mutex_lock(&g->event_lock);
	to = g->events_got;
	for (from = to; from != g->events_put; from++) {
		if (g->events[from & mask].connection != c)
			g->events[to++ & mask] = g->events[from & mask];
	}
	g->events_put = to;
	pthread_mutex_unlock(&g->event_lock);
}

static bool is_work_done(const struct ibv_wc *wc)
{
	return wr_kind(wc->wr_id) == WR_WORK && wc->status == IBV_WC_SUCCESS;
}

/* Work of one connection that is done, of @n completions. Returns how many those are. */
static int work_done(struct glue *g, const struct ibv_wc *wc, int n)
{
	struct glue_connection *c = wr_connection(g, wc->wr_id);
	int i = 0;

	while (i < n && is_work_done(&wc[i]) &&
	       wr_are_alike(wc[i].wr_id, wc->wr_id))
		i++;
	if (c && i)
		work_complete(c, wc, i);
	return i;
}

static void completed(struct glue *g, const struct ibv_wc *wc)
{
	struct glue_connection *c = wr_connection(g, wc->wr_id);
	uint32_t index = wr_index(wc->wr_id);
	int error = status_error(wc->status);
	struct arrival arrival = { .slot = index, .size = wc->byte_len };

	if (!c)
		return;
	if (error) {
		connection_suspect(c, error);
		return;
	}
	if (wr_kind(wc->wr_id) == WR_REPORT) {
		call_reported(c);
		return;
	}
	arrival.notification = wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM;
	if (arrival.notification)
		arrival.tag = be32toh(wc->imm_data);
	call_arrived(c, &arrival);
}

/*
 * With polling held. A handler that ends a connection takes the rest of the
 * batch, and overwrites it: see event_poll_for_later().
 */
static void take_batch(struct glue *g)
{
	const struct ibv_wc *wc;
	int done;

	while (g->batch_at < g->batch_num) {
		wc = &g->batch[g->batch_at];
		done = work_done(g, wc, g->batch_num - g->batch_at);
		g->batch_at += done ? done : 1;
		if (!done)
			completed(g, wc);
	}
}

/* Returns how much there was. With polling held. */
static int poll_batch(struct glue *g)
{
	int n = ibv_poll_cq(g->cq, POLL_BATCH, g->batch);

	g->batch_at = 0;
	g->batch_num = n;
	take_batch(g);
	return n < 0 ? 0 : n;
}

void event_poll_for_later(struct glue *g)
{
	bool polls = in_handler == g;

	if (!polls && pthread_mutex_trylock(&g->polling))
		return;
	g->later = true;
	take_batch(g);
	while (poll_batch(g))
		;
	g->later = false;
	/* Who sleeps, now or next, will not hear of it from the device. */
	if (g->early && (polls || g->sleepers))
		wake(g->wake_poller);
	if (!polls)
		pthread_mutex_unlock(&g->polling);
}

/* All that came over them has been told: tell that they are lost. */
static void tell_lost(struct glue *g)
{
	struct glue_event event = { .type = GLUE_EVENT_DISCONNECTED };
	struct glue_connection *c;
	uint32_t i;

	pthread_mutex_lock(&g->lock);
	for (i = 0; i < g->options.max_connections; i++) {
		c = g->connections[i];
		if (!c || c->state != CONNECTION_LOST || c->lost_told ||
		    !c->given)
			continue;
		c->lost_told = true;
		g->lost_untold--;
		event.connection = c;
		event.error = c->error;
		event.handle = c->completed;
		event_put(g, &event);
	}
	pthread_mutex_unlock(&g->lock);
}

/* Returns false if there was nothing to do, or somebody else is at it: @taken. */
static bool progress(struct glue *g, bool *taken)
{
	int n;

	*taken = pthread_mutex_trylock(&g->polling);
	if (*taken)
		return false;
	if (g->early)
		call_early(g);
	n = poll_batch(g);
	pthread_mutex_unlock(&g->polling);
	if (!n && g->lost_untold)
		tell_lost(g);
	return n || g->events_put != g->events_got;
}

static void take_cq_events(struct glue *g)
{
	struct ibv_cq *cq;
	void *context;

	pthread_mutex_lock(&g->polling);
	while (!ibv_get_cq_event(g->channel, &cq, &context))
		g->unacked_cq_events++;
	if (g->unacked_cq_events > 1000) {
		ibv_ack_cq_events(g->cq, g->unacked_cq_events);
		g->unacked_cq_events = 0;
	}
	pthread_mutex_unlock(&g->polling);
}

static void sleep_until_news(struct glue *g, int ms)
{
	struct pollfd fds[] = {
		{ .fd = g->channel->fd, .events = POLLIN },
		{ .fd = g->wake_poller, .events = POLLIN },
	};
	uint64_t count;
	bool taken;

	g->sleepers++;
	ibv_req_notify_cq(g->cq, 0);
	/*
	 * What came before it was armed rings no bell. Who has the queue now
	 * need not be there for that: then look again.
	 */
	if (!progress(g, &taken) && g->events_put == g->events_got)
		poll(fds, 2, taken ? SOON_MS : ms);
	g->sleepers--;
	if (fds[0].revents)
		take_cq_events(g);
	if (fds[1].revents && read(g->wake_poller, &count, sizeof(count)) < 0)
		return;		/* somebody else was faster */
}

/* How long to sleep, or 0: it is too late. */
static int time_left(uint64_t began_us, int timeout_ms)
{
	uint64_t gone;

	if (timeout_ms < 0)
		return -1;
	gone = (now_us() - began_us) / 1000;
	return gone < (uint64_t)timeout_ms ? timeout_ms - (int)gone : 0;
}

static bool spins(const struct glue *g, uint64_t began_us)
{
	return now_us() - began_us < g->options.spin_us;
}

int glue_query_event(struct glue *g, struct glue_event *event, int timeout_ms)
{
	uint64_t began = 0;
	bool taken;
	int left;

	if (!node_is_ours(g))
		return -ECHILD;
	if (in_handler == g)
		return -EDEADLK;
	for (;;) {
		if (event_get(g, event))
			return 1;
		if (progress(g, &taken) && event_get(g, event))
			return 1;
		if (!timeout_ms)
			return 0;
		if (!began)
			began = now_us();
		left = time_left(began, timeout_ms);
		if (!left)
			return 0;
		if (!spins(g, began))
			sleep_until_news(g, left);
	}
}

const char *glue_event_name(enum glue_event_type type)
{
	switch (type) {
	case GLUE_EVENT_COMPLETED:
		return "GLUE_EVENT_COMPLETED";
	case GLUE_EVENT_FAILED:
		return "GLUE_EVENT_FAILED";
	case GLUE_EVENT_NOTIFICATION:
		return "GLUE_EVENT_NOTIFICATION";
	case GLUE_EVENT_DISCONNECTED:
		return "GLUE_EVENT_DISCONNECTED";
	case GLUE_EVENT_RAIL_DOWN:
		return "GLUE_EVENT_RAIL_DOWN";
	case GLUE_EVENT_RAIL_UP:
		return "GLUE_EVENT_RAIL_UP";
	}
	return "unknown event";
}
