// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The agent: a thread of each node that sets up connections, answers peers that
 * ask for memory, and finds out who is dead, whatever the program does
 * meanwhile. It sleeps unless there is something to do.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <unistd.h>

#include "glue.h"

enum { SOON_MS = 50 };

static void take_cm_events(struct glue *g)
{
	struct rdma_cm_event *event;

	/* connect_event() acknowledges it. */
	while (!rdma_get_cm_event(g->cm, &event))
		connect_event(g, event);
}

static void take_control_events(struct glue *g)
{
	struct ibv_cq *cq;
	void *context;
	unsigned int n = 0;

	while (!ibv_get_cq_event(g->control_channel, &cq, &context))
		n++;
	if (n)
		ibv_ack_cq_events(g->control_cq, n);
	/* Armed before the last look, so that nothing is overlooked. */
	ibv_req_notify_cq(g->control_cq, 0);
	control_poll(g);
}

static void drain(int fd)
{
	uint64_t count;

	while (read(fd, &count, sizeof(count)) > 0)
		;
}

static bool has_connections(struct glue *g)
{
	bool any = false;
	uint32_t i;

	pthread_mutex_lock(&g->lock);
	for (i = 0; i < g->options.max_connections && !any; i++)
		any = g->connections[i];
	any = any || g->doomed;
	pthread_mutex_unlock(&g->lock);
	return any;
}

static void *agent_run(void *arg)
{
	struct glue *g = arg;
	struct pollfd fds[] = {
		{ .fd = g->cm->fd, .events = POLLIN },
		{ .fd = g->control_channel->fd, .events = POLLIN },
		{ .fd = g->wake_agent, .events = POLLIN },
		{ .fd = g->rail_socket, .events = POLLIN },
	};
	int tick = g->options.peer_timeout_ms / 8;
	uint64_t next = 0, now;
	bool soon = false;
	int wait;

	while (!g->stop) {
		wait = has_connections(g) ? tick : -1;
		poll(fds, 4, soon && (wait < 0 || wait > SOON_MS) ? SOON_MS : wait);
		if (fds[0].revents)
			take_cm_events(g);
		if (fds[1].revents)
			take_control_events(g);
		if (fds[2].revents)
			drain(g->wake_agent);
		if (fds[3].revents)
			rails_news(g);
		soon = connect_suspicions(g);
		connect_clean(g);
		now = now_ms();
		if (now >= next) {
			control_tick(g, now);
			next = now + tick;
		}
	}
	return NULL;
}

int agent_start(struct glue *g)
{
	sigset_t all, old;
	int error;

	/* The program's signals are for the program's threads. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	error = pthread_create(&g->agent, NULL, agent_run, g);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	g->agent_runs = !error;
	return error;
}

void agent_stop(struct glue *g)
{
	atomic_store(&g->stop, true);
	wake(g->wake_agent);
	pthread_join(g->agent, NULL);
	g->agent_runs = false;
}
