/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Floods a rail with frames, so many a second.
 *
 *   flood SECONDS PPS KIND NETDEV SEED DMAC [SMAC QPN]
 *
 * KIND: nobody    of an EtherType nobody listens to: what the flood itself costs
 *       garbage   random bytes behind medge's EtherType
 *       no-qp     well-formed data frames to QPs that do not exist
 *       bad-peer  to QPN, but not from its peer SMAC
 *       psn       to QPN, as from SMAC, any frame number
 *       probe     probes that ask for an answer, from nodes that do not exist
 *
 * Prints the frames a second that it sent.
 */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <netinet/ether.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "verbs_test.h"
#include "wire.h"

enum {
	FRAME_LEN = 256,
	BATCH = 64,
	NOBODYS_ETHERTYPE = 0x88b5,	/* IEEE 802 local experimental EtherType 1 */
};

struct flood {
	uint64_t rng;
	struct ether_addr dmac, smac;
	uint32_t qpn;
};

struct frame {
	struct ethhdr eth;
	uint8_t bytes[FRAME_LEN - sizeof(struct ethhdr)];
} __attribute__((packed));

static void make_garbage(struct flood *f, struct frame *frame)
{
	rng_fill(&f->rng, frame->bytes, sizeof(frame->bytes));
}

static void make_nobodys(struct flood *f, struct frame *frame)
{
	make_garbage(f, frame);
	frame->eth.h_proto = htons(NOBODYS_ETHERTYPE);
}

/* A write of one frame. */
static void make_data(struct flood *f, struct frame *frame, uint32_t qpn)
{
	struct medge_frame_hdr hdr = {
		.ver_type = MEDGE_WIRE_VERSION << 4 | MEDGE_FRAME_DATA,
		.seg_len = htons(1024),
		.nops_qpn = htonl(1 << 24 | qpn),
		.psn = rng_next(&f->rng),
		.ack_psn = rng_next(&f->rng),
		.ack_op = rng_next(&f->rng),
	};
	struct medge_op_hdr op = {
		.opcode = MEDGE_OP_WRITE,
		.len = htons(128),
		.op_no = rng_next(&f->rng),
		.op_len = htonl(128),
		.addr = rng_next(&f->rng),
		.rkey = rng_next(&f->rng),
	};

	memset(frame->bytes, 0, sizeof(frame->bytes));
	memcpy(frame->bytes, &hdr, sizeof(hdr));
	memcpy(frame->bytes + sizeof(hdr), &op, sizeof(op));
}

static void make_no_qp(struct flood *f, struct frame *frame)
{
	make_data(f, frame, 0);
}

static void make_bad_peer(struct flood *f, struct frame *frame)
{
	make_data(f, frame, f->qpn);
}

static void make_psn(struct flood *f, struct frame *frame)
{
	make_data(f, frame, f->qpn);
	memcpy(frame->eth.h_source, &f->smac, ETH_ALEN);
}

static void make_probe(struct flood *f, struct frame *frame)
{
	struct medge_probe_hdr probe = {
		.ver_type = MEDGE_WIRE_VERSION << 4 | MEDGE_FRAME_PROBE,
		.peer_rail = MEDGE_RAIL_ANY,
		.nonce = rng_next(&f->rng),
		.generation = htonl(1),
	};

	memcpy(probe.node, frame->eth.h_source, ETH_ALEN);
	memcpy(probe.to, &f->dmac, ETH_ALEN);
	memset(frame->bytes, 0, sizeof(frame->bytes));
	memcpy(frame->bytes, &probe, sizeof(probe));
}

static const struct {
	const char *name;
	void (*make)(struct flood *f, struct frame *frame);
	bool connection;	/* needs to know it */
} kinds[] = {
	{ "nobody", make_nobodys, false },
	{ "garbage", make_garbage, false },
	{ "no-qp", make_no_qp, false },
	{ "bad-peer", make_bad_peer, true },
	{ "psn", make_psn, true },
	{ "probe", make_probe, false },
};

static int open_rail(const char *name)
{
	int fd = port_socket(name, 0), yes = 1;

	if (setsockopt(fd, SOL_PACKET, PACKET_QDISC_BYPASS, &yes, sizeof(yes)))
		err(2, "%s", name);
	return fd;
}

static void make_batch(struct flood *f, int kind, struct frame *frames)
{
	/* Locally administered, and no rail's. */
	static const uint8_t nobody[ETH_ALEN] = { 0x06, 0xff, 0xff };

	for (int i = 0; i < BATCH; i++) {
		memcpy(frames[i].eth.h_dest, &f->dmac, ETH_ALEN);
		memcpy(frames[i].eth.h_source, nobody, ETH_ALEN);
		frames[i].eth.h_source[5] = rng_next(&f->rng);
		frames[i].eth.h_proto = htons(MEDGE_ETHERTYPE);
		kinds[kind].make(f, &frames[i]);
	}
}

/* Return: frames sent. */
static unsigned long send_batch(int fd, struct frame *frames)
{
	struct mmsghdr msgs[BATCH] = {};
	struct iovec iov[BATCH];
	int n;

	for (int i = 0; i < BATCH; i++) {
		iov[i].iov_base = &frames[i];
		iov[i].iov_len = sizeof(frames[i]);
		msgs[i].msg_hdr.msg_iov = &iov[i];
		msgs[i].msg_hdr.msg_iovlen = 1;
	}
	n = sendmmsg(fd, msgs, BATCH, MSG_DONTWAIT);
	if (n < 0 && errno != ENOBUFS && errno != EAGAIN)
		err(2, "send");
	return n > 0 ? n : 0;
}

int main(int argc, char **argv)
{
	/* Made once: the receiver's work is to be measured, not ours. */
	enum { BATCHES = 64 };
	static struct frame frames[BATCHES][BATCH];
	uint64_t began, end, pps, due, sent = 0;
	struct flood f = {};
	int fd, kind, turn = 0;

	for (kind = 0; argc > 6 && kind < (int)ARRAY_LEN(kinds); kind++)
		if (!strcmp(argv[3], kinds[kind].name))
			break;
	if (argc < 7 || kind == ARRAY_LEN(kinds) ||
	    !ether_aton_r(argv[6], &f.dmac) ||
	    (kinds[kind].connection &&
	     (argc < 9 || !ether_aton_r(argv[7], &f.smac))))
		errx(2, "usage: flood SECONDS PPS KIND NETDEV SEED DMAC [SMAC QPN]");
	pps = atoll(argv[2]);
	f.rng = rng_seed(argv[5]);
	f.qpn = argc > 8 ? atoi(argv[8]) : 0;
	fd = open_rail(argv[4]);
	for (int i = 0; i < BATCHES; i++)
		make_batch(&f, kind, frames[i]);

	began = now_ns();
	end = began + 1000000000ull * atoi(argv[1]);
	while (now_ns() < end) {
		due = (now_ns() - began) * pps / 1000000000;
		if (sent < due)
			sent += send_batch(fd, frames[turn++ % BATCHES]);
		else
			usleep(50);
	}
	printf("%.0f\n", sent * 1e9 / (now_ns() - began));
	return 0;
}
