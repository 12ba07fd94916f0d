/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * One byte to and fro between the nodes, whose ends sleep until it comes, for
 * who looks at the way that it takes.
 *
 *	ping_path udp|verbs COUNT
 *
 * Prints the id of the thread on node b, and of each message when the program
 * on a gave it away, when that on b had it, and when a had the answer, by the
 * clock that traces have as x86-tsc. After some to warm up, tracing is switched
 * on until the last has come.
 *
 * Both are threads of one process: to switch between them is as little as
 * waking a thread on an idle CPU of another host would be.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "verbs_test.h"

enum {
	A,
	B,
	WARM_UP = 20,
	MOST = 1000,
	PORT = 4791,
	/* What a message leaves to be done is done before the next. */
	PAUSE_US = 1000,
};

static struct message {
	uint64_t sent, got, back;
} messages[MOST];
static int count;
static pid_t receiver;

static int sockets[2];
static struct pair pair;
static uint8_t *byte;
static struct ibv_mr *mr[2];

static uint64_t stamp(void)
{
#ifdef __x86_64__
	return __builtin_ia32_rdtsc();
#else
	die("traces have no x86-tsc on this machine");
#endif
}

static void trace(bool on)
{
	int fd = open("/sys/kernel/tracing/tracing_on", O_WRONLY);

	if (fd < 0 || write(fd, on ? "1" : "0", 1) != 1)
		die("tracing_on: %s", strerror(errno));
	close(fd);
}

static struct sockaddr_in address(const char *name)
{
	struct sockaddr_in sin = { .sin_family = AF_INET,
				   .sin_port = htons(PORT) };
	const char *ip = getenv(name);

	if (!ip || inet_pton(AF_INET, ip, &sin.sin_addr) != 1)
		die("the environment has no %s: run this in the lab", name);
	return sin;
}

static int udp_socket(const char *node, const char *own, const char *other)
{
	struct sockaddr_in from = address(own), to = address(other);
	int ns = open(node, O_RDONLY), fd;

	if (ns < 0 || setns(ns, CLONE_NEWNET))
		die("%s: %s", node, strerror(errno));
	close(ns);
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&from, sizeof(from)) ||
	    connect(fd, (struct sockaddr *)&to, sizeof(to)))
		die("a socket on %s: %s", node, strerror(errno));
	return fd;
}

static void udp_open(void)
{
	sockets[A] = udp_socket("/run/netns/a", "IP_A", "IP_B");
	sockets[B] = udp_socket("/run/netns/b", "IP_B", "IP_A");
}

static void udp_say(int end)
{
	if (send(sockets[end], byte, 1, 0) != 1)
		die("send: %s", strerror(errno));
}

static void udp_hear(int end)
{
	uint8_t got;

	if (recv(sockets[end], &got, 1, 0) != 1)
		die("recv: %s", strerror(errno));
}

static struct end *end_of(int end)
{
	return end == A ? &pair.a : &pair.b;
}

static struct ibv_sge one_byte(int end)
{
	return (struct ibv_sge) { .addr = (uintptr_t)byte, .length = 1,
				  .lkey = mr[end]->lkey };
}

static void verbs_open(void)
{
	/* Nothing has to be posted or reaped on the way. */
	struct pair_options po = { .events = true, .send_wr = MOST,
				   .recv_wr = MOST };
	static struct side sides[2];
	int end, i;

	side_open_both(&sides[A], &sides[B]);
	pair_create(&pair, &sides[A], &sides[B], &po);
	for (end = A; end <= B; end++) {
		struct ibv_recv_wr wr = { .num_sge = 1 }, *bad;
		struct ibv_sge sge;

		mr[end] = must_reg(&sides[end], byte, 1, FULL_ACCESS);
		sge = one_byte(end);
		wr.sg_list = &sge;
		for (i = 0; i < WARM_UP + count; i++)
			if (ibv_post_recv(end_of(end)->qp, &wr, &bad))
				die("ibv_post_recv");
		if (ibv_req_notify_cq(end_of(end)->rcq, 0))
			die("ibv_req_notify_cq");
	}
}

static void verbs_say(int end)
{
	struct ibv_sge sge = one_byte(end);
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1,
				  .opcode = IBV_WR_SEND }, *bad;

	if (ibv_post_send(end_of(end)->qp, &wr, &bad))
		die("ibv_post_send");
}

static void verbs_hear(int end)
{
	struct end *e = end_of(end);
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *context;

	if (ibv_get_cq_event(e->channel, &cq, &context))
		die("ibv_get_cq_event");
	ibv_ack_cq_events(cq, 1);
	if (ibv_req_notify_cq(e->rcq, 0))
		die("ibv_req_notify_cq");
	if (ibv_poll_cq(e->rcq, 1, &wc) != 1 || wc.status != IBV_WC_SUCCESS)
		die("no completion, or one with an error");
}

static const struct way {
	const char *name;
	void (*open)(void);
	void (*say)(int end);
	void (*hear)(int end);
} ways[] = {
	{ "udp", udp_open, udp_say, udp_hear },
	{ "verbs", verbs_open, verbs_say, verbs_hear },
}, *way;

static void *answer(void *arg)
{
	int i;

	receiver = gettid();
	for (i = -WARM_UP; i < count; i++) {
		way->hear(B);
		if (i >= 0)
			messages[i].got = stamp();
		way->say(B);
	}
	return NULL;
}

static void ask(void)
{
	int i;

	for (i = -WARM_UP; i < count; i++) {
		struct message m = {};

		if (i == 0)
			trace(true);
		usleep(PAUSE_US);
		m.sent = stamp();
		way->say(A);
		way->hear(A);
		if (i >= 0) {
			messages[i].sent = m.sent;
			messages[i].back = stamp();
		}
	}
	trace(false);
}

int main(int argc, char **argv)
{
	pthread_t thread;
	size_t k;
	int i;

	for (k = 0; argc == 3 && k < ARRAY_LEN(ways); k++)
		if (!strcmp(argv[1], ways[k].name))
			way = &ways[k];
	count = way ? atoi(argv[2]) : 0;
	if (count < 1 || count > MOST - WARM_UP)
		die("usage: ping_path udp|verbs COUNT");
	byte = alloc_pages(1);
	way->open();
	if (pthread_create(&thread, NULL, answer, NULL))
		die("pthread_create");
	ask();
	pthread_join(thread, NULL);
	printf("%d\n", receiver);
	for (i = 0; i < count; i++)
		printf("%llu %llu %llu\n", (unsigned long long)messages[i].sent,
		       (unsigned long long)messages[i].got,
		       (unsigned long long)messages[i].back);
	return 0;
}
