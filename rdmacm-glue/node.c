// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* A node: a device, found by a local address, and what its connections share. */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "glue.h"

enum {
	MAX_CONNECTIONS = 1024,
	MAX_DEPTH = 8192,
	/* Completions of a connection beside those of its operations. */
	EXTRA_CQES = SLOTS + 4,
	/* Events beside those of connections: rails, a batch of receives. */
	EXTRA_EVENTS = 256,
};

/* How many fork()s this process is away from the one the library was loaded in. */
static int forks;

static void count_fork(void)
{
	forks++;
}

__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, count_fork);
}

bool node_is_ours(const struct glue *g)
{
	return g->fork_generation == forks;
}

uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

uint64_t now_ms(void)
{
	return now_us() / 1000;
}

struct timespec deadline_in(int ms)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_sec += ms / 1000;
	t.tv_nsec += ms % 1000 * 1000000L;
	if (t.tv_nsec >= 1000000000) {
		t.tv_sec++;
		t.tv_nsec -= 1000000000;
	}
	return t;
}

void announce(struct glue *g)
{
	pthread_mutex_lock(&g->change_lock);
	g->changes++;
	pthread_cond_broadcast(&g->changed);
	pthread_mutex_unlock(&g->change_lock);
}

bool wait_changed(struct glue *g, uint32_t seen,
		  const struct timespec *deadline)
{
	int error = 0;

	pthread_mutex_lock(&g->change_lock);
	while (g->changes == seen && !error) {
		if (deadline)
			error = pthread_cond_timedwait(&g->changed,
						       &g->change_lock,
						       deadline);
		else
			error = pthread_cond_wait(&g->changed,
						  &g->change_lock);
	}
	pthread_mutex_unlock(&g->change_lock);
	return !error;
}

void wake(int fd)
{
	uint64_t one = 1;

	/* It can fail only because it is awake already. */
	if (write(fd, &one, sizeof(one)) < 0)
		return;
}

static uint32_t power_of_two(uint32_t n)
{
	uint32_t p = 16;

	while (p < n)
		p *= 2;
	return p;
}

static int take_options(struct glue *g, const struct glue_options *given)
{
	const uint32_t known = GLUE_SHARED_ONLY | GLUE_ODP;
	struct glue_options *o = &g->options;

	if (given) {
		if (given->size != sizeof(*o))
			return EINVAL;
		*o = *given;
	}
	if (!o->max_connections)
		o->max_connections = 16;
	if (!o->queue_depth)
		o->queue_depth = 128;
	if (!o->peer_timeout_ms)
		o->peer_timeout_ms = 10000;
	if (!o->spin_us)
		o->spin_us = 20;
	if (o->flags & ~known || o->max_connections > MAX_CONNECTIONS ||
	    o->queue_depth > MAX_DEPTH || o->peer_timeout_ms < 100 ||
	    o->peer_timeout_ms > 3600000)
		return EINVAL;
	o->queue_depth = power_of_two(o->queue_depth);
	return 0;
}

static int take_address(struct glue *g, const char *address)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *info;

	if (!address || getaddrinfo(address, NULL, &hints, &info))
		return EADDRNOTAVAIL;
	memcpy(&g->address, info->ai_addr, info->ai_addrlen);
	freeaddrinfo(info);
	return 0;
}

static int nonblocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) ? errno : 0;
}

/* The device that has the address. */
static int find_device(struct glue *g)
{
	g->cm = rdma_create_event_channel();
	if (!g->cm || nonblocking(g->cm->fd))
		return errno;
	if (rdma_create_id(g->cm, &g->bound, NULL, RDMA_PS_TCP))
		return errno;
	if (rdma_bind_addr(g->bound, (struct sockaddr *)&g->address))
		return errno;
	g->verbs = g->bound->verbs;
	if (!g->verbs)		/* the address of no device, such as 0.0.0.0 */
		return ENODEV;
	if (ibv_query_device(g->verbs, &g->device))
		return errno ? errno : EIO;
	g->iwarp = g->verbs->device->transport_type == IBV_TRANSPORT_IWARP;
	g->odp = g->options.flags & GLUE_ODP && memory_has_odp(g->verbs);
	g->relaxed = medge_can_relax(g->verbs);
	return 0;
}

static int create_queues(struct glue *g)
{
	const struct glue_options *o = &g->options;
	int cqes = o->max_connections * (o->queue_depth + EXTRA_CQES);
	int control = o->max_connections * (CONTROL_RECVS + CONTROL_SENDS);

	if (cqes > g->device.max_cqe || control > g->device.max_cqe ||
	    (int)o->queue_depth + 2 > g->device.max_qp_wr)
		return EINVAL;
	g->pd = ibv_alloc_pd(g->verbs);
	g->channel = ibv_create_comp_channel(g->verbs);
	g->control_channel = ibv_create_comp_channel(g->verbs);
	if (!g->pd || !g->channel || !g->control_channel ||
	    nonblocking(g->channel->fd) || nonblocking(g->control_channel->fd))
		return errno;
	g->cq = ibv_create_cq(g->verbs, cqes, NULL, g->channel, 0);
	g->control_cq = ibv_create_cq(g->verbs, control, NULL,
				      g->control_channel, 0);
	if (!g->cq || !g->control_cq)
		return errno;
	return ibv_req_notify_cq(g->control_cq, 0);
}

static int create_tables(struct glue *g)
{
	const struct glue_options *o = &g->options;
	pthread_condattr_t attr;

	pthread_mutex_init(&g->polling, NULL);
	pthread_mutex_init(&g->lock, NULL);
	pthread_mutex_init(&g->change_lock, NULL);
	pthread_mutex_init(&g->region_lock, NULL);
	pthread_mutex_init(&g->free_lock, NULL);
	pthread_mutex_init(&g->event_lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&g->changed, &attr);
	pthread_condattr_destroy(&attr);
	/* What came before the program had a connection is told all at once. */
	g->event_room = power_of_two(o->max_connections *
				     (o->queue_depth + SLOTS + 2) +
				     EXTRA_EVENTS);
	g->events = calloc(g->event_room, sizeof(*g->events));
	g->connections = calloc(o->max_connections, sizeof(*g->connections));
	return g->events && g->connections ? 0 : ENOMEM;
}

static void node_destroy(struct glue *g)
{
	memory_free_all(g);
	if (g->listener)
		rdma_destroy_id(g->listener);
	if (g->bound)
		rdma_destroy_id(g->bound);
	if (g->cm)
		rdma_destroy_event_channel(g->cm);
	if (g->unacked_cq_events)
		ibv_ack_cq_events(g->cq, g->unacked_cq_events);
	if (g->cq)
		ibv_destroy_cq(g->cq);
	if (g->control_cq)
		ibv_destroy_cq(g->control_cq);
	if (g->channel)
		ibv_destroy_comp_channel(g->channel);
	if (g->control_channel)
		ibv_destroy_comp_channel(g->control_channel);
	if (g->pd)
		ibv_dealloc_pd(g->pd);
	if (g->rail_socket >= 0)
		close(g->rail_socket);
	if (g->wake_agent >= 0)
		close(g->wake_agent);
	if (g->wake_poller >= 0)
		close(g->wake_poller);
	free(g->events);
	free(g->connections);
	free(g);
}

static int node_create(struct glue *g, const char *address)
{
	int error;

	g->wake_agent = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	g->wake_poller = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (g->wake_agent < 0 || g->wake_poller < 0)
		return errno;
	error = create_tables(g);
	if (!error)
		error = take_address(g, address);
	if (!error)
		error = find_device(g);
	if (!error)
		error = create_queues(g);
	if (!error)
		error = rails_watch(g);
	if (!error)
		error = agent_start(g);
	return error;
}

struct glue *glue_open(const char *address, const struct glue_options *options)
{
	struct glue *g = calloc(1, sizeof(*g));
	int error;

	if (!g)
		return NULL;
	g->fork_generation = forks;
	g->wake_agent = g->wake_poller = g->rail_socket = -1;
	error = take_options(g, options);
	if (error) {
		free(g);
		errno = error;
		return NULL;
	}
	error = node_create(g, address);
	if (error) {
		node_destroy(g);
		errno = error;
		return NULL;
	}
	return g;
}

int glue_close(struct glue *g)
{
	struct glue_connection *c;
	uint32_t i;

	if (!node_is_ours(g))
		return -ECHILD;
	if (event_in_handler() == g)
		return -EDEADLK;
	for (i = 0; i < g->options.max_connections; i++) {
		pthread_mutex_lock(&g->lock);
		c = g->connections[i];
		pthread_mutex_unlock(&g->lock);
		if (c && c->given)
			glue_disconnect(c);
	}
	agent_stop(g);
	for (i = 0; i < g->options.max_connections; i++) {
		if (g->connections[i])
			connection_destroy(g->connections[i]);
	}
	node_destroy(g);
	return 0;
}
