/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What rails carry without any protocol: superframes, as fast as they take them.
 *
 *	bare_frames SECONDS MTU NETDEV...
 *
 * Each is some frames of MTU bytes behind the Ethernet header, given to the rail
 * in one piece of up to FRAMES_BYTES, as medge does. So that they stay in one piece, and each of them
 * counts by the length of its frames, they are dressed as UDP's; to an address
 * that nobody has. Who receives them counts them at the other end.
 *
 * A queueing discipline may take frames from the socket's account, and then as
 * many as there is memory. So that no queue is left behind that would be in the
 * way of what comes next, a rail gets no more than QUEUE beyond what its netdev
 * says it has sent.
 */
#include <arpa/inet.h>
#include <err.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <unistd.h>

enum {
	RAILS_MAX = 64,
	FRAMES_BYTES = 65000,	/* of a superframe, at most */
	QUEUE = 1 << 21,	/* bytes a rail has to do meanwhile */
	NAP_US = 500,
	GSO_UDP_L4 = 5,		/* newer than some headers */
};

struct superframe {
	struct virtio_net_hdr vnet;
	struct ethhdr eth;
	struct iphdr ip;
	struct udphdr udp;
	uint8_t payload[FRAMES_BYTES];
} __attribute__((packed));

struct rail {
	int fd;
	int counter;		/* bytes the netdev has sent */
	uint64_t sent;		/* bytes given to it, as the counter counts */
};

static uint64_t netdev_sent(const struct rail *rail)
{
	char text[32] = "";

	if (pread(rail->counter, text, sizeof(text) - 1, 0) <= 0)
		err(2, "counter");
	return strtoull(text, NULL, 10);
}

static int open_socket(const char *name)
{
	struct sockaddr_ll addr = {
		.sll_family = AF_PACKET,
		.sll_protocol = 0,
		.sll_ifindex = if_nametoindex(name),
	};
	int queue = 2 * QUEUE, yes = 1;
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK, 0);

	if (fd < 0 || !addr.sll_ifindex ||
	    setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &yes, sizeof(yes)) ||
	    bind(fd, (struct sockaddr *)&addr, sizeof(addr)) ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &queue, sizeof(queue)))
		err(2, "%s", name);
	return fd;
}

static void open_rail(struct rail *rail, const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/class/net/%s/statistics/tx_bytes", name);
	rail->fd = open_socket(name);
	rail->counter = open(path, O_RDONLY);
	if (rail->counter < 0)
		err(2, "%s", path);
	rail->sent = netdev_sent(rail);
}

/* Return: bytes of it. */
static size_t dress(struct superframe *s, uint32_t mtu)
{
	uint32_t seg = mtu - sizeof(s->ip) - sizeof(s->udp);
	uint32_t len = FRAMES_BYTES / seg * seg;

	if (!len)
		errx(2, "MTU %u", mtu);
	memset(s, 0, sizeof(*s));
	s->vnet.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM;
	s->vnet.gso_type = GSO_UDP_L4;
	s->vnet.gso_size = seg;
	s->vnet.hdr_len = sizeof(s->eth) + sizeof(s->ip) + sizeof(s->udp);
	s->vnet.csum_start = sizeof(s->eth) + sizeof(s->ip);
	s->vnet.csum_offset = offsetof(struct udphdr, check);
	memset(s->eth.h_dest, 2, ETH_ALEN);
	memset(s->eth.h_source, 6, ETH_ALEN);
	s->eth.h_proto = htons(ETH_P_IP);
	s->ip.version = 4;
	s->ip.ihl = sizeof(s->ip) / 4;
	s->ip.tot_len = htons(sizeof(s->ip) + sizeof(s->udp) + len);
	s->ip.ttl = 1;
	s->ip.protocol = IPPROTO_UDP;
	s->udp.len = htons(sizeof(s->udp) + len);
	return offsetof(struct superframe, payload) + len;
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

static void fill(struct rail *rail, const struct superframe *s, size_t len)
{
	uint64_t room = netdev_sent(rail) + QUEUE;

	while (rail->sent + len <= room &&
	       send(rail->fd, s, len, 0) == (ssize_t)len)
		rail->sent += len - sizeof(s->vnet);
}

int main(int argc, char **argv)
{
	static struct superframe frame;
	struct rail rails[RAILS_MAX];
	int n = argc - 3, i;
	size_t len;
	double end;

	if (n < 1 || n > RAILS_MAX)
		errx(2, "usage: bare_frames SECONDS MTU NETDEV...");
	len = dress(&frame, atoi(argv[2]));
	for (i = 0; i < n; i++)
		open_rail(&rails[i], argv[3 + i]);
	end = now() + atof(argv[1]);
	while (now() < end) {
		for (i = 0; i < n; i++)
			fill(&rails[i], &frame, len);
		usleep(NAP_US);
	}
	return 0;
}
