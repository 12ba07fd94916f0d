/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* RC QPs connected by the connection manager. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <rdma/rdma_cma.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verbs_cm.h"

enum { PORT = 7500, STEP_MS = 10000, MAX_READS = 16 };

static struct sockaddr_in address(const char *variable)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	const char *ip = getenv(variable);

	if (!ip || inet_pton(AF_INET, ip, &at.sin_addr) != 1)
		die("the environment has no %s: run this in the lab", variable);
	return at;
}

static int open_namespace(const char *path)
{
	int ns = open(path, O_RDONLY | O_CLOEXEC);

	if (ns < 0)
		die("%s: %s", path, strerror(errno));
	return ns;
}

static void enter(int ns)
{
	if (setns(ns, CLONE_NEWNET))
		die("setns: %s", strerror(errno));
	close(ns);
}

static struct rdma_cm_id *create_id(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id;

	if (!channel || rdma_create_id(channel, &id, NULL, RDMA_PS_TCP))
		die("rdma_create_id: %s", strerror(errno));
	return id;
}

static void destroy_id(struct rdma_cm_id *id)
{
	struct rdma_event_channel *channel = id->channel;

	if (rdma_destroy_id(id))
		die("rdma_destroy_id: %s", strerror(errno));
	rdma_destroy_event_channel(channel);
}

/* The id that the event, which must be the next one, is about. */
static struct rdma_cm_id *expect(struct rdma_cm_id *id,
				 enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;
	enum rdma_cm_event_type is;
	int status;

	if (rdma_get_cm_event(id->channel, &event))
		die("rdma_get_cm_event: %s", strerror(errno));
	is = event->event;
	status = event->status;
	id = event->id;
	rdma_ack_cm_event(event);
	if (is != type)
		die("%s with status %d instead of %s", rdma_event_str(is), status,
		    rdma_event_str(type));
	return id;
}

static struct rdma_cm_id *listen_at(struct sockaddr_in *at)
{
	struct rdma_cm_id *id = create_id();

	if (rdma_bind_addr(id, (struct sockaddr *)at) || rdma_listen(id, 1))
		die("rdma_listen: %s", strerror(errno));
	return id;
}

static struct rdma_cm_id *call(struct sockaddr_in *at, struct rdma_conn_param *param)
{
	struct rdma_cm_id *id = create_id();

	if (rdma_resolve_addr(id, NULL, (struct sockaddr *)at, STEP_MS))
		die("rdma_resolve_addr: %s", strerror(errno));
	expect(id, RDMA_CM_EVENT_ADDR_RESOLVED);
	if (rdma_resolve_route(id, STEP_MS))
		die("rdma_resolve_route: %s", strerror(errno));
	expect(id, RDMA_CM_EVENT_ROUTE_RESOLVED);
	if (rdma_connect(id, param))
		die("rdma_connect: %s", strerror(errno));
	return id;
}

/*
 * Who listens and who calls is in the network namespace of his address, as his id is
 * then, and siw's sockets.
 */
void cm_connect(struct end *a, struct end *b)
{
	struct rdma_conn_param param = {
		.responder_resources = MAX_READS,
		.initiator_depth = MAX_READS,
	};
	int before = open_namespace("/proc/thread-self/ns/net");
	struct sockaddr_in at = address("IP_B");
	struct rdma_cm_id *listener;

	/* Both may be of one node. */
	enter(open_namespace(getenv("NETNS_B") ?: "/run/netns/b"));
	listener = listen_at(&at);
	enter(open_namespace("/run/netns/a"));
	param.qp_num = a->qp->qp_num;
	a->id = call(&at, &param);
	enter(before);
	b->id = expect(listener, RDMA_CM_EVENT_CONNECT_REQUEST);
	param.qp_num = b->qp->qp_num;
	if (rdma_accept(b->id, &param))
		die("rdma_accept: %s", strerror(errno));
	expect(a->id, RDMA_CM_EVENT_ESTABLISHED);
	expect(b->id, RDMA_CM_EVENT_ESTABLISHED);
	/* Its channel is now that of the id it has brought. */
	if (rdma_destroy_id(listener))
		die("rdma_destroy_id: %s", strerror(errno));
}

void cm_disconnect(struct end *end)
{
	if (!end->id)
		return;
	rdma_disconnect(end->id);
	destroy_id(end->id);
	end->id = NULL;
}
