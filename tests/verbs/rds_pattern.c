// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Reliable datagram sockets over RDMA: each message arrives once, whole, and in the order of its sender.
 *
 *   rds_pattern ADDRESS [MESSAGES [MAX-BYTES [SEED]]]
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/rds.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#ifndef AF_RDS
#define AF_RDS 21
#endif
#ifndef SOL_RDS
#define SOL_RDS 276
#endif

static struct sockaddr_in address(const char *ip, int port)
{
	struct sockaddr_in sin = {
		.sin_family = AF_INET,
		.sin_port = htons(port),
	};

	if (inet_pton(AF_INET, ip, &sin.sin_addr) != 1) {
		fprintf(stderr, "%s is no address\n", ip);
		exit(2);
	}
	return sin;
}

static int open_socket(const struct sockaddr_in *own)
{
	int transport = RDS_TRANS_IB, fd = socket(AF_RDS, SOCK_SEQPACKET, 0);

	if (fd < 0 || setsockopt(fd, SOL_RDS, SO_RDS_TRANSPORT, &transport,
				 sizeof(transport)) ||
	    bind(fd, (const struct sockaddr *)own, sizeof(*own))) {
		perror("no RDS socket over RDMA");
		exit(1);
	}
	return fd;
}

/* What message @number is made of: its length first, then its bytes. */
static uint32_t fill(uint8_t *buf, uint32_t max, uint64_t seed, uint32_t number)
{
	uint64_t x = (seed << 32 | number) * 0x9e3779b97f4a7c15ULL + 1;
	uint32_t len, i;

	x ^= x >> 29;
	len = 8 + (x % 4 ? x % 2000 : x % max) % (max - 8);
	for (i = 0; i < len; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		buf[i] = x;
	}
	return len;
}

static void wait_for(int fd, short events)
{
	struct pollfd p = { .fd = fd, .events = events };

	if (poll(&p, 1, 20000) != 1) {
		fprintf(stderr, "nothing happens for 20 s\n");
		exit(1);
	}
}

static int try_send(int fd, const struct sockaddr_in *to, const uint8_t *buf,
		    uint32_t len)
{
	ssize_t n = sendto(fd, buf, len, MSG_DONTWAIT,
			   (const struct sockaddr *)to, sizeof(*to));

	if (n == (ssize_t)len)
		return 1;
	if (n < 0 && (errno == EAGAIN || errno == ENOBUFS))
		return 0;
	perror("sendto");
	exit(1);
}

static int try_receive(int fd, uint8_t *got, uint8_t *want, uint32_t max,
		       uint64_t seed, uint32_t number)
{
	ssize_t n = recv(fd, got, max, MSG_DONTWAIT);
	uint32_t len;

	if (n < 0 && errno == EAGAIN)
		return 0;
	if (n < 0) {
		perror("recv");
		exit(1);
	}
	len = fill(want, max, seed, number);
	if (n != (ssize_t)len || memcmp(got, want, len)) {
		fprintf(stderr, "message %u is not what was sent: %zd bytes, not %u\n",
			number, n, len);
		exit(1);
	}
	return 1;
}

int main(int argc, char **argv)
{
	uint32_t count = argc > 2 ? strtoul(argv[2], NULL, 0) : 2000;
	uint32_t max = argc > 3 ? strtoul(argv[3], NULL, 0) : 60000;
	uint64_t seed = argc > 4 ? strtoull(argv[4], NULL, 0) : 1;
	uint32_t sent = 0, received = 0, len = 0;
	struct sockaddr_in from, to;
	uint8_t *out, *got, *want;
	int tx, rx;

	if (argc < 2 || max < 16) {
		fprintf(stderr, "usage: rds_pattern ADDRESS [MESSAGES [MAX-BYTES [SEED]]]\n");
		return 2;
	}
	from = address(argv[1], 20001);
	to = address(argv[1], 20002);
	tx = open_socket(&from);
	rx = open_socket(&to);
	out = malloc(max);
	got = malloc(max);
	want = malloc(max);
	if (!out || !got || !want)
		return 1;
	while (received < count) {
		int progress = 0;

		if (sent < count) {
			if (!len)
				len = fill(out, max, seed, sent);
			if (try_send(tx, &to, out, len)) {
				sent++;
				len = 0;
				progress = 1;
			}
		}
		while (received < sent &&
		       try_receive(rx, got, want, max, seed, received)) {
			received++;
			progress = 1;
		}
		if (!progress)
			wait_for(rx, POLLIN);
	}
	printf("%u messages of up to %u bytes\n", count, max);
	return 0;
}
