/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What rails carry without any protocol: full frames, as fast as they take them.
 *
 *	bare_frames SECONDS FRAME-BYTES NETDEV...
 *
 * FRAME-BYTES are counted behind the Ethernet header. Who receives them counts
 * bytes at the other end; nobody there listens to this EtherType.
 */
#include <arpa/inet.h>
#include <err.h>
#include <net/if.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <unistd.h>

enum {
	ETHERTYPE = 0x88b5,	/* IEEE 802 local experimental 1 */
	RAILS_MAX = 64,
	BATCH = 16,
	QUEUE = 1 << 20,	/* bytes a rail has to do meanwhile */
};

static int open_rail(const char *name)
{
	struct sockaddr_ll addr = {
		.sll_family = AF_PACKET,
		.sll_protocol = 0,
		.sll_ifindex = if_nametoindex(name),
	};
	int queue = QUEUE, fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK, 0);

	if (fd < 0 || !addr.sll_ifindex ||
	    bind(fd, (struct sockaddr *)&addr, sizeof(addr)) ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &queue, sizeof(queue)))
		err(2, "%s", name);
	return fd;
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

static void send_batch(int fd, void *frame, size_t len)
{
	struct iovec iov = { frame, len };
	struct mmsghdr msgs[BATCH];
	int i;

	memset(msgs, 0, sizeof(msgs));
	for (i = 0; i < BATCH; i++) {
		msgs[i].msg_hdr.msg_iov = &iov;
		msgs[i].msg_hdr.msg_iovlen = 1;
	}
	sendmmsg(fd, msgs, BATCH, 0);
}

int main(int argc, char **argv)
{
	int n = argc - 3, i;
	struct pollfd rails[RAILS_MAX];
	struct ethhdr *eth;
	size_t len;
	double end;

	if (n < 1 || n > RAILS_MAX)
		errx(2, "usage: bare_frames SECONDS FRAME-BYTES NETDEV...");
	len = sizeof(*eth) + atoi(argv[2]);
	eth = calloc(1, len);
	memset(eth->h_dest, 2, ETH_ALEN);
	memset(eth->h_source, 6, ETH_ALEN);
	eth->h_proto = htons(ETHERTYPE);
	for (i = 0; i < n; i++)
		rails[i] = (struct pollfd){ open_rail(argv[3 + i]), POLLOUT, 0 };
	end = now() + atof(argv[1]);
	while (now() < end) {
		poll(rails, n, 10);
		for (i = 0; i < n; i++)
			if (rails[i].revents & POLLOUT)
				send_batch(rails[i].fd, eth, len);
	}
	return 0;
}
