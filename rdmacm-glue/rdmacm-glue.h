/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * MultiEdge's interface over any RDMA device: connections, remote reads and
 * writes with fences and notifications, active messages; see rdmacm-glue(7).
 *
 * Conventions. A function that returns int returns 0 (or what it counts), or a
 * negative errno; one that returns a pointer returns NULL and sets errno.
 * Addresses are virtual addresses of the process they belong to, sizes are
 * bytes, times are milliseconds, and a time of -1 is for ever. Only functions
 * with a time, and glue_open(), glue_close(), glue_disconnect() and
 * glue_free(), wait; what finds its queue full returns -EAGAIN instead, and
 * glue_query_event() makes room. All functions may be called by several threads
 * at once, if not for an object that another one is giving up. In the child of
 * a fork() every one fails with ECHILD.
 */
#ifndef RDMACM_GLUE_H
#define RDMACM_GLUE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct glue;
struct glue_connection;

enum {
	GLUE_ARGS = 4,			/* words that go with a call */
	GLUE_HANDLERS = 256,		/* handlers of a node */
	GLUE_MAX_PAYLOAD = 65536,	/* bytes that go with a call */
};

#define GLUE_MAX_OPERATION ((size_t)1 << 30)

enum glue_open_flags {
	/* Peers reach only memory of glue_alloc(); else all of the process's. */
	GLUE_SHARED_ONLY = 1 << 0,
	/* Use the device's on-demand paging, if it has that and it is sound. */
	GLUE_ODP = 1 << 1,
};

/* Zeros stand for the defaults; only @size must be set. */
struct glue_options {
	uint32_t size;			/* sizeof(struct glue_options) */
	uint32_t flags;			/* enum glue_open_flags */
	uint64_t hello;			/* told to each peer; see glue_peer() */
	uint32_t max_connections;	/* 16; at most 1024 */
	uint32_t queue_depth;		/* operations of a connection, 128 */
	uint32_t peer_timeout_ms;	/* a silent peer is dead after 10000 */
	uint32_t spin_us;		/* poll so long before sleeping, 20 */
};

/*
 * A node: the device that has the local address @address, a name or number.
 * @options: NULL for the defaults.
 * Errors: EINVAL (options), EADDRNOTAVAIL (nobody here has the address),
 * ENODEV (no RDMA device has it), ENOMEM, and what verbs return.
 */
struct glue *glue_open(const char *address, const struct glue_options *options);

/* Ends all connections of the node, and the node. Errors: EDEADLK (in a handler). */
int glue_close(struct glue *glue);

/*
 * Let peers connect to @port; 0: to any. Connections are set up from here on,
 * also while nobody is in glue_connection_wait().
 * Return: the port, or -EADDRINUSE, -EALREADY (it listens), -EACCES (a port
 * for the privileged).
 */
int glue_listen(struct glue *glue, uint16_t port);

/*
 * The next connection that a peer has made.
 * Errors: ETIMEDOUT; EINVAL: glue_listen() was not called.
 */
struct glue_connection *glue_connection_wait(struct glue *glue, int timeout_ms);

/*
 * Connect to the node that listens at @address, a name or number, and @port.
 * Errors: ECONNREFUSED (nobody listens there, or the peer is full or not of
 * this library), ETIMEDOUT, EHOSTUNREACH (no way to the address), EINVAL (an
 * address that is none), ENOSPC (max_connections are there).
 */
struct glue_connection *glue_request_connection(struct glue *glue,
						const char *address,
						uint16_t port, int timeout_ms);

/*
 * End a connection, and give it up. It waits, up to half a second, until the
 * peer has all operations and calls that were started; after that they may be
 * performed or not. Handlers run only in glue_query_event(), as always. The peer
 * gets what was sent, then GLUE_EVENT_DISCONNECTED with error 0.
 * Errors: none but ECHILD. In a handler: only of the handler's connection.
 */
int glue_disconnect(struct glue_connection *connection);

/* The word that the peer's options.hello holds. */
uint64_t glue_peer(const struct glue_connection *connection);

/* A pointer of the program's own that goes with the connection. */
void glue_set_context(struct glue_connection *connection, void *context);
void *glue_context(const struct glue_connection *connection);

enum glue_operation {
	GLUE_WRITE,			/* local memory to remote memory */
	GLUE_READ,			/* remote memory to local memory */
};

enum glue_operation_flags {
	/* Performed only after all earlier operations of this connection. */
	GLUE_FENCE_BACKWARD = 1 << 0,
	/* Later operations are performed only after this one. */
	GLUE_FENCE_FORWARD = 1 << 1,
	/* GLUE_EVENT_COMPLETED when it is completed. */
	GLUE_EVENT = 1 << 2,
	/* Use GLUE_NOTIFY(). */
	GLUE_NOTIFY_FLAG = 1 << 3,
};

/* With a write: the peer gets GLUE_EVENT_NOTIFICATION with the 32-bit @tag. */
#define GLUE_NOTIFY(tag) (GLUE_NOTIFY_FLAG | (uint64_t)(uint32_t)(tag) << 32)

/*
 * Start to read or write @size bytes, 0 to GLUE_MAX_OPERATION. Local memory is
 * the operation's until it is completed. Operations without fences may be
 * performed in any order.
 * @flags: of enum glue_operation_flags, and GLUE_NOTIFY() with GLUE_WRITE.
 * @handle: NULL, or where to put what glue_query_operation() takes.
 * Errors: EINVAL, EMSGSIZE, EFAULT (local memory that is not there), EAGAIN
 * (queue full), ENOMEM, ENOTCONN (the connection was lost).
 * Later, as GLUE_EVENT_FAILED: EFAULT (remote memory that is not there),
 * EACCES (the peer does not share it), ENOMEM.
 */
int glue_rdma_operation(struct glue_connection *connection,
			uint64_t remote_address, void *local_address,
			size_t size, enum glue_operation operation,
			uint64_t flags, uint64_t *handle);

/* A notification without data. Errors: EAGAIN, ENOTCONN. */
int glue_notify(struct glue_connection *connection, uint32_t tag);

/*
 * Has the operation been completed: performed at the peer?
 * Return: 1, 0 if not yet, -EINVAL (no such handle), -ENOTCONN (it never
 * will), or why it failed. It learns news only from glue_query_event().
 */
int glue_query_operation(struct glue_connection *connection, uint64_t handle);

enum glue_event_type {
	GLUE_EVENT_COMPLETED = 1,	/* handle */
	GLUE_EVENT_FAILED,		/* handle, error */
	GLUE_EVENT_NOTIFICATION,	/* tag */
	GLUE_EVENT_DISCONNECTED,	/* error; 0: the peer wished it */
	GLUE_EVENT_RAIL_DOWN,		/* rail */
	GLUE_EVENT_RAIL_UP,		/* rail */
};

struct glue_event {
	enum glue_event_type type;
	int error;			/* an errno, positive */
	struct glue_connection *connection;	/* NULL for a rail's */
	uint64_t handle;
	uint32_t tag;
	char rail[16];			/* its name as an interface */
};

/*
 * The node's next event; handlers of calls are run by who is in here.
 * Return: 1, or 0 if none came in time, or -EDEADLK (in a handler).
 */
int glue_query_event(struct glue *glue, struct glue_event *event,
		     int timeout_ms);

/* "GLUE_EVENT_COMPLETED" and so on; never NULL. */
const char *glue_event_name(enum glue_event_type type);

/*
 * Run for a call: in the order of the calls of a connection, once for each.
 * The payload is there until the handler returns. A handler may start
 * operations and calls.
 */
typedef void (*glue_handler)(struct glue_connection *connection,
			     const uint64_t args[GLUE_ARGS],
			     const void *payload, size_t size, void *context);

/*
 * Run @handler for calls of @index, below GLUE_HANDLERS; NULL: ignore them.
 * Errors: EINVAL.
 */
int glue_set_handler(struct glue *glue, uint32_t index, glue_handler handler,
		     void *context);

/*
 * Run the peer's handler @index, after all earlier operations and calls of
 * this connection have been performed.
 * @args: NULL for zeros. @payload: @size bytes, free when this returns.
 * Errors: EINVAL, EMSGSIZE, EAGAIN (queue full, or the peer does not keep up),
 * ENOTCONN.
 */
int glue_call(struct glue_connection *connection, uint32_t index,
	      const uint64_t args[GLUE_ARGS], const void *payload, size_t size);

/*
 * Memory, zeroed and aligned to a page, that needs no preparation when an
 * operation uses it. Errors: EINVAL (no size), ENOMEM.
 */
void *glue_alloc(struct glue *glue, size_t size);

/* Errors: EINVAL: not of glue_alloc(). */
int glue_free(struct glue *glue, void *memory);

#ifdef __cplusplus
}
#endif

#endif /* RDMACM_GLUE_H */
