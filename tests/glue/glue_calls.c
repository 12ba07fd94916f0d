// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Every function: what it does, and every error that it documents.
 *
 *     glue_calls serve HERE
 *     glue_calls HERE THERE NOWHERE
 *     glue_calls HERE THERE          connections that end before anybody polls
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>

#include "glue_test.h"

enum {
	PORT = 7480,
	MEGA = 1 << 20,
	AREA = MEGA + 4096,
	/* The peer's 64 receives of 8 KiB, and headers, take so many calls. */
	FAREWELL_SIZE = 48 << 10,
	FAREWELL_CALLS = 9,
	FAREWELLS = 20,
};

/* What the server does when called. */
enum {
	CALL_WHERE,		/* answer with the addresses of its memory */
	CALL_ECHO,		/* call back, with the same */
	CALL_FILL,		/* args: address, size, seed */
	CALL_CHECK,		/* the same; answers with whether it is so */
	CALL_FREE,		/* the memory of glue_alloc(): give it back */
	CALL_SLEEP,		/* args: milliseconds */
	CALL_WATCH,		/* args: address, size, seed: see on_watch() */
	CALL_BYE,		/* end the connection */
	CALL_PART_OF_FAREWELL,	/* args: number, of how many; the last one counts */
	CALL_FAREWELLS,		/* answers with how many were whole */
	CALL_FAREWELL,		/* call as many as there is room for, and end the connection */
	CALL_ANSWER,		/* the server's */
};

static const char constant[MEGA] = { 1 };
static char fixed[AREA];

/* What came of calls that were made before the connection was ended. */
struct farewell {
	uint64_t next;		/* of the one that is coming */
	uint64_t whole;
};

struct server {
	struct glue *g;
	char *heap, *shared;
	bool stop;
	struct farewell heard;
};

static void answer(struct glue_connection *c, const uint64_t args[GLUE_ARGS],
		   const void *payload, size_t size)
{
	/* The client asks one by one, so there is room. */
	EXPECT(glue_call(c, CALL_ANSWER, args, payload, size), 0);
}

static void on_where(struct glue_connection *c, const uint64_t *args,
		     const void *payload, size_t size, void *context)
{
	struct server *s = context;
	uint64_t where[GLUE_ARGS] = { (uintptr_t)s->heap, (uintptr_t)s->shared,
				      (uintptr_t)fixed, (uintptr_t)constant };

	answer(c, where, NULL, 0);
}

static void on_echo(struct glue_connection *c, const uint64_t *args,
		    const void *payload, size_t size, void *context)
{
	answer(c, args, payload, size);
}

static void on_fill(struct glue_connection *c, const uint64_t *args,
		    const void *payload, size_t size, void *context)
{
	rng_fill(args[2], (void *)(uintptr_t)args[0], args[1]);
	answer(c, args, NULL, 0);
}

static void on_check(struct glue_connection *c, const uint64_t *args,
		     const void *payload, size_t size, void *context)
{
	uint64_t same[GLUE_ARGS] = {
		rng_same(args[2], (void *)(uintptr_t)args[0], args[1])
	};

	answer(c, same, NULL, 0);
}

static void on_free(struct glue_connection *c, const uint64_t *args,
		    const void *payload, size_t size, void *context)
{
	struct server *s = context;

	EXPECT(glue_free(s->g, s->shared), 0);
	answer(c, args, NULL, 0);
}

static void on_sleep(struct glue_connection *c, const uint64_t *args,
		     const void *payload, size_t size, void *context)
{
	usleep(args[0] * 1000);
}

/* Polls the word behind the memory; when it is the seed, the memory must be, too. */
static void on_watch(struct glue_connection *c, const uint64_t *args,
		     const void *payload, size_t size, void *context)
{
	volatile uint64_t *flag = (uint64_t *)(uintptr_t)(args[0] + args[1]);
	uint64_t end = now_ms() + PATIENCE_MS, same[GLUE_ARGS] = {};

	while (*flag != args[2] && now_ms() < end)
		;
	same[0] = rng_same(args[2], (void *)(uintptr_t)args[0], args[1]);
	answer(c, same, NULL, 0);
}

static void on_bye(struct glue_connection *c, const uint64_t *args,
		   const void *payload, size_t size, void *context)
{
	struct server *s = context;

	EXPECT(glue_disconnect(c), 0);
	s->stop = args[0];
}

/* Calls until the peer's receives are used up, which nobody waits for. */
static void say_farewell(struct glue_connection *c)
{
	static char payload[FAREWELL_SIZE];
	uint64_t args[GLUE_ARGS] = { 0, FAREWELL_CALLS };

	for (; args[0] < FAREWELL_CALLS; args[0]++) {
		rng_fill(args[0], payload, sizeof(payload));
		EXPECT(glue_call(c, CALL_PART_OF_FAREWELL, args, payload,
				 sizeof(payload)), 0);
	}
	EXPECT(glue_disconnect(c), 0);
}

static void on_part_of_farewell(struct glue_connection *c, const uint64_t *args,
				const void *payload, size_t size, void *context)
{
	struct farewell *f = context;

	EXPECT(args[0], f->next++);
	EXPECT(size, FAREWELL_SIZE);
	EXPECT(rng_same(args[0], payload, size), 1);
	if (f->next < args[1])
		return;
	f->next = 0;
	f->whole++;
}

static void on_farewells(struct glue_connection *c, const uint64_t *args,
			 const void *payload, size_t size, void *context)
{
	const struct server *s = context;
	uint64_t whole[GLUE_ARGS] = { s->heard.whole };

	answer(c, whole, NULL, 0);
}

static void on_farewell(struct glue_connection *c, const uint64_t *args,
			const void *payload, size_t size, void *context)
{
	say_farewell(c);
}

static void serve(const char *here)
{
	struct glue_options options = {
		.size = sizeof(options),
		.hello = 0x1122334455667788,
		.peer_timeout_ms = 4000,
	};
	struct server s = { .g = must_open(here, &options) };
	struct glue_connection *c;
	struct glue_event e;

	s.heap = malloc(AREA);
	s.shared = glue_alloc(s.g, AREA);
	if (!s.heap || !s.shared)
		die("no memory");
	EXPECT(glue_listen(s.g, PORT), PORT);
	EXPECT(glue_listen(s.g, PORT), -EALREADY);
	glue_set_handler(s.g, CALL_WHERE, on_where, &s);
	glue_set_handler(s.g, CALL_ECHO, on_echo, &s);
	glue_set_handler(s.g, CALL_FILL, on_fill, &s);
	glue_set_handler(s.g, CALL_CHECK, on_check, &s);
	glue_set_handler(s.g, CALL_FREE, on_free, &s);
	glue_set_handler(s.g, CALL_SLEEP, on_sleep, &s);
	glue_set_handler(s.g, CALL_WATCH, on_watch, &s);
	glue_set_handler(s.g, CALL_BYE, on_bye, &s);
	glue_set_handler(s.g, CALL_PART_OF_FAREWELL, on_part_of_farewell,
			 &s.heard);
	glue_set_handler(s.g, CALL_FAREWELLS, on_farewells, &s);
	glue_set_handler(s.g, CALL_FAREWELL, on_farewell, NULL);
	while (!s.stop) {
		c = glue_connection_wait(s.g, 0);
		if (c)
			EXPECT(glue_peer(c), 77);
		e = next_event(s.g, 20);
		if (e.type == GLUE_EVENT_DISCONNECTED) {
			EXPECT(e.error, 0);
			glue_disconnect(e.connection);
		} else if (e.type == GLUE_EVENT_NOTIFICATION) {
			EXPECT(glue_notify(e.connection, e.tag + 1), 0);
		}
	}
	glue_close(s.g);
}

struct client {
	struct glue *g;
	struct glue_connection *c;
	bool answered;
	uint64_t args[GLUE_ARGS];
	char payload[GLUE_MAX_PAYLOAD];
	size_t size;
	uint64_t heap, shared, fixed, constant;
};

static void on_answer(struct glue_connection *c, const uint64_t *args,
		      const void *payload, size_t size, void *context)
{
	struct client *k = context;
	struct glue_event e;

	EXPECT(c == k->c, 1);
	EXPECT(k->answered, 0);
	k->answered = true;
	memcpy(k->args, args, sizeof(k->args));
	memcpy(k->payload, payload, size);
	k->size = size;
	EXPECT(glue_query_event(k->g, &e, 0), -EDEADLK);
	EXPECT(glue_close(k->g), -EDEADLK);
}

static void ask(struct client *k, uint32_t what, uint64_t a0, uint64_t a1,
		uint64_t a2)
{
	uint64_t args[GLUE_ARGS] = { a0, a1, a2 };
	uint64_t end = now_ms() + PATIENCE_MS;

	k->answered = false;
	EXPECT(UNTIL_ROOM(k->g, glue_call(k->c, what, args, NULL, 0)), 0);
	while (!k->answered && now_ms() < end)
		no_event(k->g);
	EXPECT(k->answered, 1);
}

static void test_open(const char *here)
{
	struct glue_options o = { .size = sizeof(o) };
	struct glue *g;

	EXPECT_NULL(glue_open(NULL, NULL), EADDRNOTAVAIL);
	EXPECT_NULL(glue_open("192.0.2.1", NULL), EADDRNOTAVAIL);
	EXPECT_NULL(glue_open("no address", NULL), EADDRNOTAVAIL);
	EXPECT_NULL(glue_open("0.0.0.0", NULL), ENODEV);
	o.size = 3;
	EXPECT_NULL(glue_open(here, &o), EINVAL);
	o.size = sizeof(o);
	o.flags = 1u << 31;
	EXPECT_NULL(glue_open(here, &o), EINVAL);
	o.flags = 0;
	o.max_connections = 1025;
	EXPECT_NULL(glue_open(here, &o), EINVAL);
	o.max_connections = 1024;
	o.queue_depth = 8192;
	EXPECT_NULL(glue_open(here, &o), EINVAL);
	o.max_connections = 0;
	o.queue_depth = 0;
	o.peer_timeout_ms = 1;
	EXPECT_NULL(glue_open(here, &o), EINVAL);
	g = must_open(here, NULL);
	EXPECT(glue_close(g), 0);
}

static void test_connect(const char *here, const char *there,
			 const char *nowhere)
{
	struct glue_options o = { .size = sizeof(o), .max_connections = 1,
				  .hello = 77 };
	struct glue *g = must_open(here, &o), *g2 = must_open(here, NULL);
	struct glue_connection *c;
	int port = glue_listen(g, 0);
	uint64_t began = now_ms();

	EXPECT(port > 0, 1);
	EXPECT(glue_listen(g, 0), -EALREADY);
	EXPECT(glue_listen(g2, port), -EADDRINUSE);
	EXPECT_NULL(glue_connection_wait(g2, 0), EINVAL);
	EXPECT_NULL(glue_connection_wait(g, 50), ETIMEDOUT);
	EXPECT(now_ms() - began >= 50, 1);
	EXPECT_NULL(glue_request_connection(g, "no address", PORT, 1000), EINVAL);
	EXPECT_NULL(glue_request_connection(g, NULL, PORT, 1000), EINVAL);
	EXPECT_NULL(glue_request_connection(g, there, 0, 1000), EINVAL);
	EXPECT_NULL(glue_request_connection(g, there, PORT + 1, PATIENCE_MS),
		    ECONNREFUSED);
	began = now_ms();
	c = glue_request_connection(g, nowhere, PORT, PATIENCE_MS);
	EXPECT(c == NULL && (errno == EHOSTUNREACH || errno == ETIMEDOUT), 1);
	EXPECT(now_ms() - began < PATIENCE_MS, 1);
	EXPECT_NULL(glue_request_connection(g, nowhere, PORT, 1), ETIMEDOUT);
	c = must_connect(g, there, PORT);
	EXPECT(glue_peer(c), 0x1122334455667788);
	EXPECT_NULL(glue_request_connection(g, there, PORT, 1000), ENOSPC);
	EXPECT(glue_context(c) == NULL, 1);
	glue_set_context(c, g2);
	EXPECT(glue_context(c) == g2, 1);
	EXPECT(glue_disconnect(c), 0);
	c = must_connect(g, there, PORT);
	EXPECT(glue_close(g2), 0);
	EXPECT(glue_close(g), 0);
}

/* Connects without the library; what it says of itself may be anything. */
static int stranger(const char *here, const char *there, const void *hello,
		    uint8_t size)
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP };
	struct rdma_addrinfo *info, *source;
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { 1, 1, 1, 1, 0 },
	};
	struct rdma_conn_param param = {
		.private_data = hello,
		.private_data_len = size,
	};
	struct rdma_cm_id *id;
	char port[8];
	int error;

	snprintf(port, sizeof(port), "%d", PORT);
	EXPECT(rdma_getaddrinfo(there, port, &hints, &info), 0);
	hints.ai_flags = RAI_PASSIVE;
	EXPECT(rdma_getaddrinfo(here, "0", &hints, &source), 0);
	EXPECT(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), 0);
	EXPECT(rdma_resolve_addr(id, source->ai_src_addr, info->ai_dst_addr,
				 2000), 0);
	EXPECT(rdma_resolve_route(id, 2000), 0);
	EXPECT(rdma_create_qp(id, NULL, &attr), 0);
	error = rdma_connect(id, &param) ? errno : 0;
	rdma_destroy_ep(id);
	rdma_freeaddrinfo(info);
	rdma_freeaddrinfo(source);
	return error;
}

/* Nobody who is not of this library gets in, whatever he says. */
static void test_strangers(const char *here, const char *there)
{
	/* As struct hello begins, with a token that nobody has. */
	struct {
		uint32_t magic;
		uint16_t version;
		uint8_t kind, reserved;
		uint64_t rest[4];
	} hello = { 0x65756c67, 2, 1, 0, { 12345 } };

	EXPECT(stranger(here, there, NULL, 0), ECONNREFUSED);
	EXPECT(stranger(here, there, "x", 1), ECONNREFUSED);
	EXPECT(stranger(here, there, &hello, 39), ECONNREFUSED);
	EXPECT(stranger(here, there, &hello, 40), ECONNREFUSED);
	hello.version = 1;
	hello.kind = 0;
	EXPECT(stranger(here, there, &hello, 40), ECONNREFUSED);
	hello.version = 2;
	hello.kind = 2;
	EXPECT(stranger(here, there, &hello, 40), ECONNREFUSED);
	hello.kind = 0;
	hello.magic++;
	EXPECT(stranger(here, there, &hello, 40), ECONNREFUSED);
}

/* Writes, and reads back into other memory, of every kind of memory. */
static void one_transfer(struct client *k, char *local, uint64_t remote,
			 size_t size, uint64_t seed)
{
	uint64_t handle;

	rng_fill(seed, local, size);
	EXPECT(UNTIL_ROOM(k->g, glue_rdma_operation(k->c, remote, local, size,
						    GLUE_WRITE, 0, &handle)),
	       0);
	wait_done(k->g, k->c, handle);
	ask(k, CALL_CHECK, remote, size, seed);
	EXPECT(k->args[0], 1);
	memset(local, 0, size);
	EXPECT(UNTIL_ROOM(k->g, glue_rdma_operation(k->c, remote, local, size,
						    GLUE_READ, 0, &handle)),
	       0);
	wait_done(k->g, k->c, handle);
	EXPECT(rng_same(seed, local, size), 1);
}

/* Said if the program ends before its time. */
static char now_doing[64];

static void doing(size_t size, int local, int remote)
{
	snprintf(now_doing, sizeof(now_doing), "%zu bytes, memory %d to %d",
		 size, local, remote);
}

static void say_doing(void)
{
	if (*now_doing)
		fprintf(stderr, "while: %s\n", now_doing);
}

static void test_transfers(struct client *k)
{
	static const size_t sizes[] = { 0, 1, 63, 200, 4096, 8192, 8193, 50001,
					AREA - 64 };
	char *locals[] = { malloc(AREA), glue_alloc(k->g, AREA), fixed };
	uint64_t remotes[] = { k->heap, k->shared, k->fixed };
	uint64_t seed = 1;
	size_t l, r, s;

	for (s = 0; s < sizeof(sizes) / sizeof(*sizes); s++) {
		for (l = 0; l < 3; l++) {
			for (r = 0; r < 3; r++) {
				doing(sizes[s], l, r);
				one_transfer(k, locals[l] + s, remotes[r] + 2 * s,
					     sizes[s], seed++);
			}
		}
	}
	*now_doing = 0;
	free(locals[0]);
	EXPECT(glue_free(k->g, locals[1] + 1), -EINVAL);
	EXPECT(glue_free(k->g, fixed), -EINVAL);
	EXPECT(glue_free(k->g, locals[1]), 0);
	EXPECT(glue_free(k->g, locals[1]), -EINVAL);
	EXPECT_NULL(glue_alloc(k->g, 0), EINVAL);
	EXPECT_NULL(glue_alloc(k->g, SIZE_MAX), EINVAL);
	EXPECT_NULL(glue_alloc(k->g, (size_t)1 << 50), ENOMEM);
}

static void test_arguments(struct client *k)
{
	char *hole = mmap(NULL, AREA, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);
	struct glue_event e;
	uint64_t handle;

	EXPECT(glue_rdma_operation(k->c, k->heap, fixed, 1, 7, 0, NULL), -EINVAL);
	EXPECT(glue_rdma_operation(k->c, k->heap, fixed, 1, GLUE_WRITE, 1 << 20,
				   NULL), -EINVAL);
	EXPECT(glue_rdma_operation(k->c, k->heap, fixed, 1, GLUE_READ,
				   GLUE_NOTIFY(1), NULL), -EINVAL);
	EXPECT(glue_rdma_operation(k->c, k->heap, fixed, GLUE_MAX_OPERATION + 1,
				   GLUE_READ, 0, NULL), -EMSGSIZE);
	munmap(hole, AREA);
	EXPECT(glue_rdma_operation(k->c, k->heap, hole, AREA, GLUE_WRITE, 0,
				   NULL), -EFAULT);
	EXPECT(glue_rdma_operation(k->c, k->heap, hole, AREA, GLUE_READ, 0,
				   NULL), -EFAULT);
	EXPECT(glue_rdma_operation(k->c, k->heap, (void *)(uintptr_t)constant,
				   MEGA, GLUE_READ, 0, NULL), -EFAULT);
	EXPECT(glue_query_operation(k->c, 0), -EINVAL);
	EXPECT(glue_query_operation(k->c, 1 << 30), -EINVAL);
	EXPECT(glue_call(k->c, GLUE_HANDLERS, NULL, NULL, 0), -EINVAL);
	EXPECT(glue_call(k->c, CALL_ECHO, NULL, fixed, GLUE_MAX_PAYLOAD + 1),
	       -EMSGSIZE);
	EXPECT(glue_set_handler(k->g, GLUE_HANDLERS, on_answer, k), -EINVAL);

	/* Memory that the peer does not have fails the operation alone. */
	EXPECT(glue_rdma_operation(k->c, 64, fixed, 5, GLUE_WRITE, 0, &handle),
	       0);
	e = must_event(k->g, GLUE_EVENT_FAILED);
	EXPECT(e.error, EFAULT);
	EXPECT(e.handle, handle);
	EXPECT(e.connection == k->c, 1);
	EXPECT(glue_query_operation(k->c, handle), -EFAULT);
	EXPECT(glue_rdma_operation(k->c, UINT64_MAX - 2, fixed, 5, GLUE_READ, 0,
				   NULL), 0);
	EXPECT(must_event(k->g, GLUE_EVENT_FAILED).error, EFAULT);
	EXPECT(glue_rdma_operation(k->c, k->constant, fixed, 5, GLUE_WRITE, 0,
				   NULL), 0);
	EXPECT(must_event(k->g, GLUE_EVENT_FAILED).error, EFAULT);
	/* Its notification does not come, and what follows does. */
	EXPECT(glue_rdma_operation(k->c, 64, fixed, 5, GLUE_WRITE,
				   GLUE_NOTIFY(5), &handle), 0);
	EXPECT(glue_notify(k->c, 11), 0);
	e = must_event(k->g, GLUE_EVENT_FAILED);
	EXPECT(e.handle, handle);
	EXPECT(must_event(k->g, GLUE_EVENT_NOTIFICATION).tag, 12);
	/* What can only be read can be read. */
	EXPECT(glue_rdma_operation(k->c, k->constant, fixed, MEGA, GLUE_READ, 0,
				   &handle), 0);
	wait_done(k->g, k->c, handle);
	EXPECT(fixed[0] == 1 && fixed[1] == 0, 1);
}

static void test_notifications(struct client *k)
{
	char *local = glue_alloc(k->g, AREA);
	uint64_t handle;
	uint32_t i;

	for (i = 0; i < 300; i++) {
		rng_fill(i, local, 1000);
		EXPECT(glue_rdma_operation(k->c, k->shared, local, 1000,
					   GLUE_WRITE, GLUE_NOTIFY(i * 10),
					   &handle), 0);
		EXPECT(must_event(k->g, GLUE_EVENT_NOTIFICATION).tag, i * 10 + 1);
		wait_done(k->g, k->c, handle);
	}
	EXPECT(glue_notify(k->c, UINT32_MAX), 0);
	EXPECT(must_event(k->g, GLUE_EVENT_NOTIFICATION).tag, 0);
	EXPECT(glue_rdma_operation(k->c, k->shared, local, 8, GLUE_WRITE,
				   GLUE_EVENT, &handle), 0);
	EXPECT(must_event(k->g, GLUE_EVENT_COMPLETED).handle, handle);
	EXPECT(glue_free(k->g, local), 0);
}

static void test_calls(struct client *k)
{
	static const size_t sizes[] = { 0, 1, 100, 8144, 8145, 20000, 65535,
					GLUE_MAX_PAYLOAD };
	uint64_t args[GLUE_ARGS] = { 1, UINT64_MAX, 1ull << 63, 4 };
	uint64_t end;
	size_t i;

	for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		rng_fill(i, fixed, sizes[i]);
		k->answered = false;
		EXPECT(UNTIL_ROOM(k->g, glue_call(k->c, CALL_ECHO, args, fixed,
						  sizes[i])), 0);
		end = now_ms() + PATIENCE_MS;
		while (!k->answered && now_ms() < end)
			no_event(k->g);
		EXPECT(k->answered, 1);
		EXPECT(k->size, sizes[i]);
		EXPECT(rng_same(i, k->payload, sizes[i]), 1);
		EXPECT(memcmp(args, k->args, sizeof(args)), 0);
	}
	/* A handler that nobody has set is no error. */
	EXPECT(UNTIL_ROOM(k->g, glue_call(k->c, 200, NULL, NULL, 0)), 0);
}

/* Data, and a flag after it that the peer polls for: one of the two has a fence. */
static void test_fences(struct client *k)
{
	char *local = glue_alloc(k->g, AREA);
	const size_t size = 200000;
	uint64_t *flag = (uint64_t *)(local + size), seed, end;
	uint64_t args[GLUE_ARGS] = { k->shared, size };
	uint64_t handle;
	bool forward;

	for (seed = 1; seed <= 40; seed++) {
		forward = seed % 2;
		rng_fill(seed, local, size);
		*flag = args[2] = seed;
		k->answered = false;
		EXPECT(UNTIL_ROOM(k->g, glue_call(k->c, CALL_WATCH, args, NULL, 0)), 0);
		EXPECT(glue_rdma_operation(k->c, k->shared, local, size, GLUE_WRITE,
					   forward ? GLUE_FENCE_FORWARD : 0, NULL), 0);
		EXPECT(glue_rdma_operation(k->c, k->shared + size, flag, sizeof(*flag),
					   GLUE_WRITE,
					   forward ? 0 : GLUE_FENCE_BACKWARD,
					   &handle), 0);
		end = now_ms() + PATIENCE_MS;
		while (!k->answered && now_ms() < end)
			no_event(k->g);
		EXPECT(k->answered, 1);
		EXPECT(k->args[0], 1);
		/* What is read with a fence behind it is what was, not what will be. */
		EXPECT(glue_rdma_operation(k->c, k->shared, local, size, GLUE_READ,
					   forward ? GLUE_FENCE_FORWARD : 0, NULL), 0);
		EXPECT(glue_rdma_operation(k->c, k->shared, fixed, size, GLUE_WRITE,
					   forward ? 0 : GLUE_FENCE_BACKWARD,
					   &handle), 0);
		wait_done(k->g, k->c, handle);
		EXPECT(rng_same(seed, local, size), 1);
	}
	EXPECT(glue_free(k->g, local), 0);
}

/* A peer that does not listen for a while: no room, and then again room. */
static void test_full(struct client *k)
{
	uint64_t args[GLUE_ARGS] = { 500 };
	int calls = 0, r;

	ask(k, CALL_ECHO, 0, 0, 0);
	EXPECT(glue_call(k->c, CALL_SLEEP, args, NULL, 0), 0);
	while (!(r = glue_call(k->c, 200, NULL, fixed, 10)))
		calls++;
	EXPECT(r, -EAGAIN);
	EXPECT(calls > 10 && calls < 1000, 1);
	EXPECT(glue_notify(k->c, 1), -EAGAIN);
	/* Other operations go on: nobody has to be awake for them. */
	r = glue_rdma_operation(k->c, k->shared, fixed, 8, GLUE_WRITE, 0, NULL);
	EXPECT(r == 0 || r == -EAGAIN, 1);
	ask(k, CALL_ECHO, 0, 0, 0);
}

static void test_fork(struct client *k)
{
	char *local = glue_alloc(k->g, AREA);
	struct glue_event e;
	uint64_t handle;
	int status;
	pid_t pid;

	rng_fill(5, local, AREA);
	pid = fork();
	if (!pid) {
		/* The child's memory is its own, and its writes do not show. */
		memset(local, 0, AREA);
		if (glue_query_event(k->g, &e, 0) != -ECHILD ||
		    glue_call(k->c, 0, NULL, NULL, 0) != -ECHILD ||
		    glue_notify(k->c, 0) != -ECHILD ||
		    glue_rdma_operation(k->c, k->heap, local, 1, GLUE_READ, 0,
					NULL) != -ECHILD ||
		    glue_query_operation(k->c, 1) != -ECHILD ||
		    glue_disconnect(k->c) != -ECHILD ||
		    glue_listen(k->g, 0) != -ECHILD ||
		    glue_free(k->g, local) != -ECHILD ||
		    glue_set_handler(k->g, 0, NULL, NULL) != -ECHILD ||
		    glue_close(k->g) != -ECHILD)
			_exit(1);
		if (glue_alloc(k->g, 1) || errno != ECHILD ||
		    glue_connection_wait(k->g, 0) || errno != ECHILD ||
		    glue_request_connection(k->g, "", 1, 0) || errno != ECHILD)
			_exit(2);
		_exit(0);
	}
	EXPECT(waitpid(pid, &status, 0), pid);
	EXPECT(status, 0);
	EXPECT(glue_rdma_operation(k->c, k->heap, local, AREA, GLUE_WRITE, 0,
				   &handle), 0);
	wait_done(k->g, k->c, handle);
	ask(k, CALL_CHECK, k->heap, AREA, 5);
	EXPECT(k->args[0], 1);
	EXPECT(glue_free(k->g, local), 0);
}

/* The peer's memory goes: keys are called back, and the connection lives. */
static void test_free(struct client *k)
{
	uint64_t handle;

	EXPECT(glue_rdma_operation(k->c, k->shared, fixed, 8, GLUE_WRITE, 0,
				   &handle), 0);
	wait_done(k->g, k->c, handle);
	ask(k, CALL_FREE, 0, 0, 0);
	EXPECT(glue_rdma_operation(k->c, k->shared, fixed, 8, GLUE_WRITE, 0,
				   NULL), 0);
	EXPECT(must_event(k->g, GLUE_EVENT_FAILED).error, EFAULT);
	ask(k, CALL_ECHO, 0, 0, 0);
}

/*
 * Whoever ends a connection may do so as soon as he has called: here from a
 * program that does not poll, and there from a handler. Nothing of it is lost.
 */
static void test_farewell(struct client *k, const char *here, const char *there)
{
	struct glue_options o = { .size = sizeof(o), .max_connections = 1,
				  .hello = 77 };
	struct glue *g = must_open(here, &o);
	uint64_t end = now_ms() + PATIENCE_MS;
	struct farewell heard = {};
	struct glue_connection *c;
	int i;

	glue_set_handler(g, CALL_PART_OF_FAREWELL, on_part_of_farewell, &heard);
	for (i = 0; i < FAREWELLS; i++)
		say_farewell(must_connect(g, there, PORT));
	/* The server may not have taken the last connection yet. */
	do {
		ask(k, CALL_FAREWELLS, 0, 0, 0);
	} while (k->args[0] < FAREWELLS && now_ms() < end);
	EXPECT(k->args[0], FAREWELLS);
	for (i = 1; i <= FAREWELLS; i++) {
		c = must_connect(g, there, PORT);
		EXPECT(glue_call(c, CALL_FAREWELL, NULL, NULL, 0), 0);
		EXPECT(must_event(g, GLUE_EVENT_DISCONNECTED).error, 0);
		EXPECT(heard.whole, i);
		EXPECT(glue_disconnect(c), 0);
	}
	EXPECT(glue_close(g), 0);
}

static void test_disconnect(struct client *k)
{
	uint64_t args[GLUE_ARGS] = { 1 };
	struct glue_event e;

	EXPECT(UNTIL_ROOM(k->g, glue_call(k->c, CALL_BYE, args, NULL, 0)), 0);
	e = must_event(k->g, GLUE_EVENT_DISCONNECTED);
	EXPECT(e.error, 0);
	EXPECT(e.connection == k->c, 1);
	EXPECT(glue_rdma_operation(k->c, k->heap, fixed, 8, GLUE_WRITE, 0, NULL),
	       -ENOTCONN);
	EXPECT(glue_notify(k->c, 1), -ENOTCONN);
	EXPECT(glue_call(k->c, 1, NULL, NULL, 0), -ENOTCONN);
	EXPECT(glue_query_event(k->g, &e, 0), 0);
	EXPECT(glue_disconnect(k->c), 0);
}

static void step(const char *name)
{
	static uint64_t began;

	if (began)
		printf("%5llu ms\n", (unsigned long long)(now_ms() - began));
	began = now_ms();
	if (name)
		printf("    %-16s", name);
	fflush(stdout);
}

static void run(const char *here, const char *there, const char *nowhere)
{
	struct glue_options options = { .size = sizeof(options), .hello = 77,
					.peer_timeout_ms = 4000 };
	static struct client k;

	atexit(say_doing);
	step("open");
	test_open(here);
	step("connect");
	test_connect(here, there, nowhere);
	step("strangers");
	test_strangers(here, there);
	step("transfers");
	k.g = must_open(here, &options);
	k.c = must_connect(k.g, there, PORT);
	glue_set_handler(k.g, CALL_ANSWER, on_answer, &k);
	ask(&k, CALL_WHERE, 0, 0, 0);
	k.heap = k.args[0];
	k.shared = k.args[1];
	k.fixed = k.args[2];
	k.constant = k.args[3];
	test_transfers(&k);
	step("arguments");
	test_arguments(&k);
	step("notifications");
	test_notifications(&k);
	step("calls");
	test_calls(&k);
	step("fences");
	test_fences(&k);
	step("full");
	test_full(&k);
	step("fork");
	test_fork(&k);
	step("free");
	test_free(&k);
	step("farewell");
	test_farewell(&k, here, there);
	step("disconnect");
	test_disconnect(&k);
	step(NULL);
	glue_close(k.g);
}

/* What they leave behind does not fill the queue of those that follow. */
static void run_unpolled(const char *here, const char *there)
{
	struct glue_options o = { .size = sizeof(o), .max_connections = 1,
				  .queue_depth = 16, .hello = 77 };
	struct glue *g = must_open(here, &o);
	uint64_t bye[GLUE_ARGS] = { 1 };
	struct glue_connection *c;
	int i;

	for (i = 0; i < 20; i++) {
		c = must_connect(g, there, PORT);
		EXPECT(glue_disconnect(c), 0);
	}
	c = must_connect(g, there, PORT);
	EXPECT(glue_notify(c, 1), 0);
	EXPECT(must_event(g, GLUE_EVENT_NOTIFICATION).tag, 2);
	EXPECT(glue_call(c, CALL_BYE, bye, NULL, 0), 0);
	EXPECT(must_event(g, GLUE_EVENT_DISCONNECTED).error, 0);
	EXPECT(glue_close(g), 0);
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "serve"))
		serve(argv[2]);
	else if (argc == 3)
		run_unpolled(argv[1], argv[2]);
	else if (argc == 4)
		run(argv[1], argv[2], argv[3]);
	else
		die("usage: glue_calls serve HERE | HERE THERE [NOWHERE]");
	return 0;
}
