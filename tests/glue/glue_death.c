// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tells what it is told, one event a line, until its peer is lost; the script
 * does the harm.
 *
 *     glue_death HERE              waits for a peer
 *     glue_death HERE THERE        an idle one
 *     glue_death HERE THERE busy   one that writes all the time
 *
 * From SIGUSR1 on, the device of one that connects refuses all work.
 */
#include <dlfcn.h>
#include <rdma/rdma_cma.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "glue_test.h"

enum { PORT = 7482, PEER_TIMEOUT_MS = 2000 };

static int (*device_post_send)(struct ibv_qp *qp, struct ibv_send_wr *wr,
			       struct ibv_send_wr **bad);
static volatile sig_atomic_t refusing;

static void refuse(int signal)
{
	refusing = signal;
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
		     struct ibv_send_wr **bad)
{
	if (!refusing)
		return device_post_send(qp, wr, bad);
	*bad = wr;
	return ENOTCONN;
}

/* Between the library and librdmacm: here its device is seen. */
int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	__typeof__(rdma_connect) *next = dlsym(RTLD_NEXT, "rdma_connect");
	struct ibv_context_ops *ops = &id->verbs->ops;

	if (ops->post_send != post_send) {
		device_post_send = ops->post_send;
		ops->post_send = post_send;
	}
	return next(id, param);
}

/* Milliseconds since the epoch, as the script's clock has them. */
static uint64_t wall_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void tell(const struct glue_event *e)
{
	if (e->type == GLUE_EVENT_RAIL_DOWN || e->type == GLUE_EVENT_RAIL_UP)
		printf("%s %s\n", glue_event_name(e->type), e->rail);
	else if (e->type == GLUE_EVENT_DISCONNECTED)
		printf("%s %s %llu\n", glue_event_name(e->type),
		       strerrorname_np(e->error) ? strerrorname_np(e->error) : "0",
		       (unsigned long long)wall_ms());
	else
		return;
	fflush(stdout);
}

static void keep_busy(struct glue_connection *c, uint64_t remote, char *buf)
{
	int r;

	do {
		r = glue_rdma_operation(c, remote, buf, 60000, GLUE_WRITE, 0,
					NULL);
	} while (!r);
	EXPECT(r == -EAGAIN || r == -ENOTCONN, 1);
}

int main(int argc, char **argv)
{
	struct glue_options options = { .size = sizeof(options),
					.peer_timeout_ms = PEER_TIMEOUT_MS };
	static char target[60000];
	struct glue_connection *c;
	struct glue_event e;
	bool busy = argc > 3;
	struct glue *g;
	char *buf;

	options.hello = (uintptr_t)target;
	if (argc < 2)
		die("usage: glue_death HERE [THERE [busy]]");
	g = must_open(argv[1], &options);
	buf = glue_alloc(g, sizeof(target));
	if (argc == 2) {
		EXPECT(glue_listen(g, PORT), PORT);
		c = must_wait(g);
	} else {
		c = must_connect(g, argv[2], PORT);
		EXPECT(signal(SIGUSR1, refuse) != SIG_ERR, 1);
	}
	printf("connected\n");
	fflush(stdout);
	do {
		if (busy)
			keep_busy(c, glue_peer(c), buf);
		if (glue_query_event(g, &e, busy ? 1 : 100) != 1)
			continue;
		tell(&e);
	} while (e.type != GLUE_EVENT_DISCONNECTED);
	EXPECT(glue_notify(c, 0), -ENOTCONN);
	EXPECT(glue_disconnect(c), 0);
	EXPECT(glue_free(g, buf), 0);
	EXPECT(glue_close(g), 0);
	return 0;
}
