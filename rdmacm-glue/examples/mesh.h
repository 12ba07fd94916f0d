/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the examples with several nodes share: every node is connected to every
 * other one, and knows where its memory is.
 *
 * Each node is started with its rank and the addresses of all:
 *
 *     PROGRAM 0 10.0.0.1 10.0.0.2     on 10.0.0.1
 *     PROGRAM 1 10.0.0.1 10.0.0.2     on 10.0.0.2
 */
#ifndef MESH_H
#define MESH_H

#include <err.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdmacm-glue.h>

enum {
	MESH_PORT = 7500,
	MESH_MAX = 16,
	MESH_PATIENCE = 20000,
	MESH_EARLY = 256,
	/* Handlers: an application's own are below. */
	MESH_BARRIER = 254,
	MESH_ADDRESS = 255,
};

struct mesh {
	struct glue *glue;
	int rank, size;
	char *memory;			/* ours, which peers read and write */
	struct glue_connection *peer[MESH_MAX];
	uint64_t address[MESH_MAX];	/* of the peers' memory */
	int known, arrived, barriers;
	bool closing;
	int gone;			/* peers that have hung up since */
	/* Notifications of nodes that were through a barrier before us. */
	struct glue_event early[MESH_EARLY];
	int first_early, num_early;
};

static inline void mesh_check(int result, const char *what)
{
	if (result < 0)
		errx(1, "%s: %s", what, strerror(-result));
}

/* The rank of a peer: each tells it when it connects. */
static inline int mesh_rank(struct glue_connection *c)
{
	return glue_peer(c);
}

static inline void mesh_on_address(struct glue_connection *c,
				   const uint64_t *args, const void *payload,
				   size_t size, void *context)
{
	struct mesh *m = context;

	m->address[mesh_rank(c)] = args[0];
	m->known++;
}

static inline void mesh_on_barrier(struct glue_connection *c,
				   const uint64_t *args, const void *payload,
				   size_t size, void *context)
{
	((struct mesh *)context)->arrived++;
}

static inline struct glue_event mesh_poll(struct mesh *m, int timeout_ms)
{
	struct glue_event e = {};

	if (glue_query_event(m->glue, &e, timeout_ms) != 1)
		return (struct glue_event){};
	if (e.type == GLUE_EVENT_DISCONNECTED && !e.error && m->closing)
		m->gone++;
	else if (e.type == GLUE_EVENT_DISCONNECTED || e.type == GLUE_EVENT_FAILED)
		errx(1, "node %d: %s of node %d: %s", m->rank,
		     glue_event_name(e.type), mesh_rank(e.connection),
		     strerror(e.error));
	if (e.type == GLUE_EVENT_RAIL_DOWN || e.type == GLUE_EVENT_RAIL_UP)
		fprintf(stderr, "node %d: %s %s\n", m->rank,
			glue_event_name(e.type), e.rail);
	return e;
}

/* The next event within @timeout_ms; a type of 0: none. Losses are fatal. */
static inline struct glue_event mesh_event(struct mesh *m, int timeout_ms)
{
	if (!m->num_early)
		return mesh_poll(m, timeout_ms);
	m->num_early--;
	return m->early[m->first_early++ % MESH_EARLY];
}

/* Run handlers, and keep what is not for us. */
static inline void mesh_keep(struct mesh *m, int timeout_ms)
{
	struct glue_event e = mesh_poll(m, timeout_ms);

	if (e.type != GLUE_EVENT_NOTIFICATION)
		return;
	if (m->num_early == MESH_EARLY)
		errx(1, "node %d: too many early notifications", m->rank);
	m->early[(m->first_early + m->num_early++) % MESH_EARLY] = e;
}

/* All nodes have got here; what they wrote before is there. */
static inline void mesh_barrier(struct mesh *m)
{
	int i, r;

	for (i = 0; i < m->size; i++) {
		if (i == m->rank)
			continue;
		while ((r = glue_call(m->peer[i], MESH_BARRIER, NULL, NULL, 0)) == -EAGAIN)
			mesh_keep(m, 0);
		mesh_check(r, "glue_call");
	}
	m->barriers++;
	while (m->arrived < m->barriers * (m->size - 1))
		mesh_keep(m, 10);
}

static inline struct glue_connection *mesh_connect(struct mesh *m,
						   const char *address,
						   int rank)
{
	struct glue_connection *c;
	int tries;

	for (tries = 0; tries < 200; tries++) {
		c = glue_request_connection(m->glue, address, MESH_PORT + rank,
					    MESH_PATIENCE);
		if (c || errno != ECONNREFUSED)
			break;
		usleep(50000);		/* it may not have been started yet */
	}
	if (!c)
		err(1, "no connection to node %d at %s", rank, address);
	return c;
}

/* With @bytes of memory for peers. */
static inline void mesh_open(struct mesh *m, int argc, char **argv,
			     size_t bytes)
{
	struct glue_options options = { .size = sizeof(options) };
	struct glue_connection *c;
	uint64_t args[GLUE_ARGS] = {};
	int i;

	if (argc < 4 || argc - 2 > MESH_MAX)
		errx(1, "usage: %s RANK ADDRESS ADDRESS...", argv[0]);
	m->rank = atoi(argv[1]);
	m->size = argc - 2;
	if (m->rank < 0 || m->rank >= m->size)
		errx(1, "of %d nodes there is no rank %s", m->size, argv[1]);
	options.hello = m->rank;
	m->glue = glue_open(argv[2 + m->rank], &options);
	if (!m->glue)
		err(1, "glue_open %s", argv[2 + m->rank]);
	m->memory = glue_alloc(m->glue, bytes);
	if (!m->memory)
		err(1, "glue_alloc");
	glue_set_handler(m->glue, MESH_ADDRESS, mesh_on_address, m);
	glue_set_handler(m->glue, MESH_BARRIER, mesh_on_barrier, m);
	mesh_check(glue_listen(m->glue, MESH_PORT + m->rank), "glue_listen");
	for (i = 0; i < m->rank; i++)
		m->peer[i] = mesh_connect(m, argv[2 + i], i);
	for (i = m->rank + 1; i < m->size; i++) {
		c = glue_connection_wait(m->glue, MESH_PATIENCE);
		if (!c)
			err(1, "not all nodes have come");
		m->peer[mesh_rank(c)] = c;
	}
	args[0] = (uintptr_t)m->memory;
	for (i = 0; i < m->size; i++) {
		if (i != m->rank)
			mesh_check(glue_call(m->peer[i], MESH_ADDRESS, args,
					     NULL, 0), "glue_call");
	}
	while (m->known < m->size - 1)
		mesh_keep(m, 10);
}

/*
 * Nobody goes before all have got here. Who is told so first may have hung up when
 * others are still waiting for the word of a third.
 */
static inline void mesh_close(struct mesh *m)
{
	int i;

	m->closing = true;
	mesh_barrier(m);
	/* The higher rank hangs up, and the lower one is told so. */
	for (i = 0; i < m->rank; i++)
		glue_disconnect(m->peer[i]);
	while (m->gone < m->size - 1 - m->rank && mesh_poll(m, MESH_PATIENCE).type)
		;
	glue_close(m->glue);
}

#endif /* MESH_H */
