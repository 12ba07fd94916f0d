// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Setting up and ending connections.
 *
 * The one who asks connects its control half, then its data half; the other one
 * knows by the token what belongs together. All steps are the agent's, driven
 * by the CM's events; the program's threads wait for glue.changed.
 */
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "glue.h"

enum {
	/* For the CM's own steps; the program's patience is glue_request_connection()'s. */
	RESOLVE_MS = 2000,
	/* What the CM sends and nobody gets, it sends again after 4.3 s. */
	START_MS = 20000,
	FINISH_MS = 500,
	LOOK_US = 50,
	BYE_MS = 500,
	REASON_MS = 500,
	BACKLOG = 128,
	MAX_READS = 16,
};

static struct hello make_hello(const struct half *half)
{
	const struct glue_connection *c = half->connection;

	return (struct hello){
		.magic = htole32(HELLO_MAGIC),
		.version = htole16(HELLO_VERSION),
		.kind = half->kind,
		.token = c->token,
		.word = htole64(c->glue->options.hello),
		.mailbox = htole64((uintptr_t)c->mailbox),
		.mailbox_key = htole32(c->mailbox_mr->rkey),
		.credits = htole32(SLOTS),
	};
}

/* Private data comes padded with zeros; it may be anything. */
static bool read_hello(const struct rdma_conn_param *param, struct hello *hello)
{
	if (!param->private_data || param->private_data_len < sizeof(*hello))
		return false;
	memcpy(hello, param->private_data, sizeof(*hello));
	return le32toh(hello->magic) == HELLO_MAGIC &&
	       le16toh(hello->version) == HELLO_VERSION && hello->kind < HALVES;
}

static void take_hello(struct half *half, const struct hello *hello)
{
	struct glue_connection *c = half->connection;

	c->peer_hello = le64toh(hello->word);
	if (half->kind != HALF_DATA)
		return;
	c->peer_mailbox = le64toh(hello->mailbox);
	c->peer_mailbox_key = le32toh(hello->mailbox_key);
	c->credits = le32toh(hello->credits);
}

static struct rdma_conn_param conn_param(const struct half *half,
					 const struct hello *hello)
{
	const struct ibv_device_attr *device = &half->connection->glue->device;
	int out = device->max_qp_init_rd_atom, in = device->max_qp_rd_atom;

	return (struct rdma_conn_param){
		.private_data = hello,
		.private_data_len = sizeof(*hello),
		.responder_resources = in < MAX_READS ? in : MAX_READS,
		.initiator_depth = out < MAX_READS ? out : MAX_READS,
		.retry_count = 7,
		.rnr_retry_count = 7,
	};
}

/* The first one who knows why says why. */
static bool leave_state(struct glue_connection *c, enum connection_state from,
			enum connection_state to, int error)
{
	int unknown = -1;

	if (c->state != from)
		return false;
	atomic_compare_exchange_strong(&c->error, &unknown, error);
	return atomic_compare_exchange_strong(&c->state, &from, to);
}

static void start_failed(struct glue_connection *c, int error)
{
	if (leave_state(c, CONNECTION_STARTING, CONNECTION_FAILED, error))
		announce(c->glue);
}

static void open_connection(struct glue_connection *c)
{
	struct glue *g = c->glue;
	enum connection_state starting = CONNECTION_STARTING;
	struct glue_connection **tail;

	c->heard_ms = now_ms();
	pthread_mutex_lock(&g->lock);
	if (atomic_compare_exchange_strong(&c->state, &starting,
					   CONNECTION_OPEN) && c->passive) {
		for (tail = &g->waiting; *tail; tail = &(*tail)->next)
			;
		*tail = c;
	}
	pthread_mutex_unlock(&g->lock);
	announce(g);
}

/*
 * Who asked speaks first: an iWARP device takes what comes before that for
 * garbage (RFC 5044, section 7.1), for it may overtake the CM's reply.
 */
static void half_up(struct half *half)
{
	struct glue_connection *c = half->connection;

	half->up = true;
	if (c->passive || !c->half[HALF_CONTROL].up || !c->half[HALF_DATA].up)
		return;
	control_ready(c);
	open_connection(c);
}

/* Both halves are up where they were asked for, so they are here. */
void connect_ready(struct glue_connection *c)
{
	if (c->passive && c->state == CONNECTION_STARTING &&
	    c->half[HALF_DATA].id)
		open_connection(c);
	else
		connection_lost(c, EPROTO);
}

/* The event of it follows when all that came before is told. */
void connection_lost(struct glue_connection *c, int error)
{
	struct glue *g = c->glue;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	int kind;

	start_failed(c, error);
	if (!leave_state(c, CONNECTION_OPEN, CONNECTION_LOST, error))
		return;
	for (kind = 0; kind < HALVES; kind++)
		ibv_modify_qp(c->half[kind].id->qp, &attr, IBV_QP_STATE);
	g->lost_untold++;
	announce(g);
	wake(g->wake_poller);
}

void connection_suspect(struct glue_connection *c, int error)
{
	int was = 0;

	if (atomic_compare_exchange_strong(&c->suspicion, &was, error))
		wake(c->glue->wake_agent);
	else if (was == EIO)
		atomic_compare_exchange_strong(&c->suspicion, &was, error);
}

void connection_refuses_work(struct glue_connection *c)
{
	start_failed(c, EIO);
	connection_suspect(c, EIO);
}

/* An error that says nothing of the cause, which somebody will soon tell. */
static bool is_vague(int error)
{
	return error == ECONNRESET || error == EIO;
}

/* Returns true if it is too early to decide. */
static bool judge(struct glue_connection *c)
{
	uint64_t now = now_ms();

	if (!c->suspicion || c->state != CONNECTION_OPEN)
		return false;
	if (!c->suspected_ms)
		c->suspected_ms = now;
	if (is_vague(c->suspicion) && !c->heard_bye &&
	    now - c->suspected_ms < REASON_MS)
		return true;
	connection_lost(c, c->heard_bye ? 0 : c->suspicion);
	return false;
}

bool connect_suspicions(struct glue *g)
{
	struct glue_connection *c;
	bool any = false;
	uint32_t i;

	for (i = 0; i < g->options.max_connections; i++) {
		pthread_mutex_lock(&g->lock);
		c = g->connections[i];
		pthread_mutex_unlock(&g->lock);
		if (c && judge(c))
			any = true;
	}
	return any;
}

static int start_half(struct half *half, const struct sockaddr *to)
{
	struct glue *g = half->connection->glue;
	struct sockaddr_storage from = g->address;

	/* The port is the CM's to choose. */
	if (from.ss_family == AF_INET)
		((struct sockaddr_in *)&from)->sin_port = 0;
	else
		((struct sockaddr_in6 *)&from)->sin6_port = 0;
	if (rdma_create_id(g->cm, &half->id, half, RDMA_PS_TCP))
		return errno;
	if (rdma_resolve_addr(half->id, (struct sockaddr *)&from,
			      (struct sockaddr *)to, RESOLVE_MS))
		return errno;
	return 0;
}

static int connect_half(struct half *half)
{
	struct hello hello = make_hello(half);
	struct rdma_conn_param param = conn_param(half, &hello);
	int error;

	if (half->id->verbs != half->connection->glue->verbs)
		return EHOSTUNREACH;
	error = half_create_qp(half, half->id);
	if (error)
		return error;
	return rdma_connect(half->id, &param) ? errno : 0;
}

/* What the CM's bad news means to a program. */
static int bad_news(const struct rdma_cm_event *event)
{
	int error = event->status < 0 ? -event->status : 0;

	switch (event->event) {
	case RDMA_CM_EVENT_REJECTED:
		return ECONNREFUSED;
	case RDMA_CM_EVENT_UNREACHABLE:
		return ETIMEDOUT;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
		return EHOSTUNREACH;
	default:
		return error ? error : ECONNREFUSED;
	}
}

static void established(struct half *half, const struct rdma_conn_param *param)
{
	struct glue_connection *c = half->connection;
	struct rdma_cm_id *id = half->id;
	struct hello hello;
	int error = 0;

	if (!c->passive) {
		if (!read_hello(param, &hello) || hello.kind != half->kind) {
			start_failed(c, ECONNREFUSED);
			return;
		}
		take_hello(half, &hello);
		if (half->kind == HALF_CONTROL)
			error = start_half(&c->half[HALF_DATA],
					   rdma_get_peer_addr(id));
	}
	if (error)
		start_failed(c, error);
	else
		half_up(half);
}

static struct glue_connection *find_partner(struct glue *g, uint64_t token)
{
	struct glue_connection *found = NULL, *c;
	uint32_t i;

	pthread_mutex_lock(&g->lock);
	for (i = 0; i < g->options.max_connections && !found; i++) {
		c = g->connections[i];
		if (c && c->passive && c->token == token &&
		    c->state == CONNECTION_STARTING && !c->half[HALF_DATA].id)
			found = c;
	}
	pthread_mutex_unlock(&g->lock);
	return found;
}

static int accept_half(struct half *half, struct rdma_cm_id *id,
		       const struct hello *theirs)
{
	struct hello hello = make_hello(half);
	struct rdma_conn_param param = conn_param(half, &hello);
	int error;

	take_hello(half, theirs);
	id->context = half;
	error = half_create_qp(half, id);
	if (!error && rdma_accept(id, &param))
		error = errno;
	return error;
}

/* A peer asks. Whoever cannot be taken is told so, and his id is gone. */
static void requested(struct glue *g, struct rdma_cm_id *id,
		      const struct hello *hello)
{
	struct glue_connection *c = NULL;
	struct half *half;

	if (hello && id->verbs == g->verbs) {
		if (hello->kind == HALF_DATA) {
			c = find_partner(g, hello->token);
		} else {
			c = connection_new(g);
			if (c) {
				c->passive = true;
				c->token = hello->token;
			}
		}
	}
	if (!c) {
		rdma_reject(id, NULL, 0);
		rdma_destroy_id(id);
		return;
	}
	half = &c->half[hello->kind];
	if (accept_half(half, id, hello)) {
		start_failed(c, ECONNREFUSED);
		if (!half->id) {
			rdma_reject(id, NULL, 0);
			rdma_destroy_id(id);
		}
	}
}

static void disconnected(struct glue *g, struct glue_connection *c)
{
	/* A farewell may be there, and not read yet. */
	control_poll(g);
	connection_lost(c, c->heard_bye ? 0 : ECONNRESET);
}

/* Acknowledges the event: its id may have to be destroyed. */
void connect_event(struct glue *g, struct rdma_cm_event *event)
{
	struct rdma_cm_event e = *event;
	struct half *half = e.id->context;
	struct hello hello;
	bool has_hello = false;
	int error = 0;

	if (e.event == RDMA_CM_EVENT_CONNECT_REQUEST) {
		has_hello = read_hello(&e.param.conn, &hello);
		rdma_ack_cm_event(event);
		requested(g, e.id, has_hello ? &hello : NULL);
		return;
	}
	if (e.event == RDMA_CM_EVENT_ESTABLISHED && half)
		established(half, &e.param.conn);
	rdma_ack_cm_event(event);
	if (!half)
		return;
	switch (e.event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		error = rdma_resolve_route(half->id, RESOLVE_MS) ? errno : 0;
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		error = connect_half(half);
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_REJECTED:
		error = bad_news(&e);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		disconnected(g, half->connection);
		break;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		connection_lost(half->connection, ENODEV);
		break;
	default:
		break;
	}
	if (error)
		start_failed(half->connection, error);
}

/* Out of the table, with polling and glue.lock held: nobody polls for it from here on. */
static void take_away(struct glue_connection *c)
{
	c->glue->connections[c->slot] = NULL;
	if (c->num_early)
		c->glue->early--;
}

/* The agent's: never given to the program, and of no use. */
static struct glue_connection *find_stillborn(struct glue *g)
{
	uint64_t now = now_ms();
	struct glue_connection *c;
	uint32_t i;

	for (i = 0; i < g->options.max_connections; i++) {
		c = g->connections[i];
		if (!c || !c->passive || c->given)
			continue;
		if (c->state == CONNECTION_STARTING &&
		    now - c->began_ms > START_MS)
			start_failed(c, ETIMEDOUT);
		if (c->state == CONNECTION_FAILED) {
			take_away(c);
			return c;
		}
	}
	return NULL;
}

static struct glue_connection *take_doomed(struct glue *g)
{
	struct glue_connection *c;
	bool polls;

	/* Who polls may be looking at it; then it has time. */
	polls = !pthread_mutex_trylock(&g->polling);
	pthread_mutex_lock(&g->lock);
	c = g->doomed;
	if (c)
		g->doomed = c->next;
	else if (polls)
		c = find_stillborn(g);
	pthread_mutex_unlock(&g->lock);
	if (polls)
		pthread_mutex_unlock(&g->polling);
	return c;
}

void connect_clean(struct glue *g)
{
	struct glue_connection *c;
	_Atomic bool *gone;
	int kind;

	while ((c = take_doomed(g))) {
		for (kind = 0; kind < HALVES; kind++) {
			if (c->half[kind].up)
				rdma_disconnect(c->half[kind].id);
		}
		/* It may be lost only since it was given up. */
		if (c->state == CONNECTION_LOST && !c->lost_told)
			g->lost_untold--;
		gone = c->gone;
		/* The agent itself may have put some since it was given up. */
		event_forget(g, c);
		connection_destroy(c);
		if (gone) {
			*gone = true;
			announce(g);
		}
	}
}

int glue_listen(struct glue *g, uint16_t port)
{
	struct sockaddr_storage at = g->address;
	int error = 0;

	if (!node_is_ours(g))
		return -ECHILD;
	if (at.ss_family == AF_INET)
		((struct sockaddr_in *)&at)->sin_port = htons(port);
	else
		((struct sockaddr_in6 *)&at)->sin6_port = htons(port);
	pthread_mutex_lock(&g->lock);
	if (g->listener)
		error = EALREADY;
	else if (rdma_create_id(g->cm, &g->listener, NULL, RDMA_PS_TCP) ||
		 rdma_bind_addr(g->listener, (struct sockaddr *)&at) ||
		 rdma_listen(g->listener, BACKLOG))
		error = errno;
	if (!error) {
		port = ntohs(rdma_get_src_port(g->listener));
	} else if (error != EALREADY && g->listener) {
		rdma_destroy_id(g->listener);
		g->listener = NULL;
	}
	pthread_mutex_unlock(&g->lock);
	return error ? -error : port;
}

/* Who sleeps has left alone what came of it before this: messages, and its loss. */
static void give(struct glue_connection *c)
{
	c->given = true;
	wake(c->glue->wake_poller);
}

static struct glue_connection *take_waiting(struct glue *g)
{
	struct glue_connection *c;

	pthread_mutex_lock(&g->lock);
	c = g->waiting;
	if (c) {
		g->waiting = c->next;
		c->next = NULL;
		give(c);
	}
	pthread_mutex_unlock(&g->lock);
	return c;
}

struct glue_connection *glue_connection_wait(struct glue *g, int timeout_ms)
{
	struct timespec deadline = deadline_in(timeout_ms < 0 ? 0 : timeout_ms);
	struct glue_connection *c;
	uint32_t seen;

	if (!node_is_ours(g)) {
		errno = ECHILD;
		return NULL;
	}
	if (!g->listener) {
		errno = EINVAL;
		return NULL;
	}
	for (;;) {
		seen = g->changes;
		c = take_waiting(g);
		if (c)
			return c;
		if (!wait_changed(g, seen, timeout_ms < 0 ? NULL : &deadline)) {
			errno = ETIMEDOUT;
			return NULL;
		}
	}
}

static int find_peer(const char *address, uint16_t port, int family,
		     struct sockaddr_storage *to)
{
	struct addrinfo hints = {
		.ai_family = family,
		.ai_socktype = SOCK_STREAM,
	}, *info;
	char service[8];

	snprintf(service, sizeof(service), "%u", port);
	if (!address || !port || getaddrinfo(address, service, &hints, &info))
		return EINVAL;
	memcpy(to, info->ai_addr, info->ai_addrlen);
	freeaddrinfo(info);
	return 0;
}

/* Take it from all tables, and have the agent destroy it. */
static void doom(struct glue_connection *c)
{
	struct glue *g = c->glue;
	bool polls = event_in_handler() == g;
	_Atomic bool gone = false;
	uint32_t seen;

	if (!polls)
		pthread_mutex_lock(&g->polling);
	pthread_mutex_lock(&g->lock);
	take_away(c);
	c->gone = &gone;
	c->next = g->doomed;
	g->doomed = c;
	pthread_mutex_unlock(&g->lock);
	if (!polls)
		pthread_mutex_unlock(&g->polling);
	wake(g->wake_agent);
	do {
		seen = g->changes;
	} while (!gone && wait_changed(g, seen, NULL));
}

struct glue_connection *glue_request_connection(struct glue *g,
						const char *address,
						uint16_t port, int timeout_ms)
{
	struct timespec deadline = deadline_in(timeout_ms < 0 ? 0 : timeout_ms);
	struct sockaddr_storage to;
	struct glue_connection *c;
	uint32_t seen;
	int error;

	errno = ECHILD;
	if (!node_is_ours(g))
		return NULL;
	errno = find_peer(address, port, g->address.ss_family, &to);
	if (errno)
		return NULL;
	c = connection_new(g);
	if (!c)
		return NULL;
	error = start_half(&c->half[HALF_CONTROL], (struct sockaddr *)&to);
	if (error)
		start_failed(c, error);
	/* The agent looks after peers from now on. */
	wake(g->wake_agent);
	for (;;) {
		seen = g->changes;
		if (c->state != CONNECTION_STARTING)
			break;
		if (!wait_changed(g, seen, timeout_ms < 0 ? NULL : &deadline))
			start_failed(c, ETIMEDOUT);
	}
	if (c->state == CONNECTION_FAILED) {
		error = c->error;
		doom(c);
		errno = error;
		return NULL;
	}
	give(c);
	return c;
}

/*
 * The peer shall have all that was started. Its agent and its device see to
 * that, whether its program polls or not; ours is here, and may be in a handler.
 */
static void finish_work(struct glue_connection *c, uint64_t until_ms)
{
	while (!work_is_all_done(c) && c->state == CONNECTION_OPEN &&
	       now_ms() < until_ms) {
		event_poll_for_later(c->glue);
		if (!work_is_all_done(c))
			usleep(LOOK_US);
	}
}

/*
 * An iWARP device is done with what TCP has taken, and who hears the farewell
 * may be faster than the data. What it reads comes after all that was sent.
 */
static void finish_sent(struct glue_connection *c)
{
	uint64_t until_ms = now_ms() + FINISH_MS;

	finish_work(c, until_ms);
	if (!c->glue->iwarp || !work_is_all_done(c) ||
	    c->state != CONNECTION_OPEN)
		return;
	work_read_mailbox(c);
	finish_work(c, until_ms);
}

/* So that the peer knows that it is wished, and no accident. */
static void say_bye(struct glue_connection *c)
{
	struct control bye = { .type = CONTROL_BYE };
	struct timespec deadline = deadline_in(BYE_MS);
	uint32_t seen;

	if (c->state != CONNECTION_OPEN)
		return;
	pthread_mutex_lock(&c->lock);
	control_send(c, &bye);
	pthread_mutex_unlock(&c->lock);
	do {
		seen = c->glue->changes;
	} while (!c->bye_sent && c->state == CONNECTION_OPEN &&
		 wait_changed(c->glue, seen, &deadline));
}

int glue_disconnect(struct glue_connection *c)
{
	if (!node_is_ours(c->glue))
		return -ECHILD;
	finish_sent(c);
	say_bye(c);
	doom(c);
	return 0;
}

uint64_t glue_peer(const struct glue_connection *c)
{
	return c->peer_hello;
}

void glue_set_context(struct glue_connection *c, void *context)
{
	c->context = context;
}

void *glue_context(const struct glue_connection *c)
{
	return c->context;
}
