/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A liar on the wire: it listens on the rails of its network namespace, and
 * sends what it heard again, changed or not, and what nobody ever sent.
 *
 *   wire_liar outside|inside SECONDS SEED RAILS QPN...
 *
 * outside: what somebody can send who does not know the connections: other
 *          QPNs, other source addresses, garbage, runts, and all that was once
 *          heard, again. Nobody may come to harm.
 * inside:  what a compromised peer can: frames of the connections to the given
 *          QPNs, with any field changed. These connections may fail, but
 *          nothing else may.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "verbs_test.h"
#include "wire.h"

enum {
	MAX_FRAME = 9014,
	MAX_HEARD = 512,
	MAX_QPNS = 64,
};

struct heard {
	uint32_t len;
	int rail;
	uint8_t bytes[MAX_FRAME];
};

static struct heard heard[MAX_HEARD];
static unsigned int nheard;	/* ever */
static uint32_t qpns[MAX_QPNS];
static int nqpns, nrails;
static struct {
	int fd;
	int mtu;
} rails[MEDGE_MAX_RAILS];
static uint64_t rng;

static void open_rail(int i)
{
	struct ifreq ifr;
	char name[16];

	snprintf(name, sizeof(name), "rail%d", i);
	rails[i].fd = port_socket(name, ETH_P_ALL);
	memset(&ifr, 0, sizeof(ifr));
	memcpy(ifr.ifr_name, name, sizeof(name));
	if (ioctl(rails[i].fd, SIOCGIFMTU, &ifr))
		die("%s: %s", name, strerror(errno));
	rails[i].mtu = ifr.ifr_mtu;
}

static struct medge_frame_hdr *header(uint8_t *frame)
{
	return (struct medge_frame_hdr *)(frame + ETH_HLEN);
}

static bool for_us(uint8_t *frame)
{
	uint32_t qpn = ntohl(header(frame)->nops_qpn) & 0xffffff;

	for (int i = 0; i < nqpns; i++)
		if (qpns[i] == qpn)
			return true;
	return false;
}

/* Keep what was sent from here to the QPs of interest. */
static void listen_to(int rail)
{
	static uint8_t frame[1 << 16];
	struct sockaddr_ll from;
	socklen_t from_len = sizeof(from);
	ssize_t len;

	while ((len = recvfrom(rails[rail].fd, frame, sizeof(frame),
			       MSG_DONTWAIT, (struct sockaddr *)&from,
			       &from_len)) > 0) {
		struct heard *h = &heard[nheard % MAX_HEARD];

		if (from.sll_pkttype != PACKET_OUTGOING ||
		    len < ETH_HLEN + (ssize_t)sizeof(struct medge_frame_hdr) ||
		    len > rails[rail].mtu + ETH_HLEN ||
		    ((struct ethhdr *)frame)->h_proto != htons(MEDGE_ETHERTYPE) ||
		    !for_us(frame))
			continue;
		memcpy(h->bytes, frame, len);
		h->len = len;
		h->rail = rail;
		nheard++;
	}
}

static const struct heard *any_heard(void)
{
	unsigned int n = nheard < MAX_HEARD ? nheard : MAX_HEARD;

	return &heard[rng_below(&rng, n)];
}

static uint32_t any32(void)
{
	return rng_next(&rng) >> rng_below(&rng, 32);
}

/* Near what it was, or far: as windows, wraps and bounds have it. */
static uint32_t shift32(uint32_t value)
{
	static const uint32_t steps[] = {
		1, 2, 63, 64, 511, 512, 513, 1024, 65536, 1u << 31,
	};
	uint32_t step = steps[rng_below(&rng, ARRAY_LEN(steps))];

	return rng_below(&rng, 2) ? value + step : value - step;
}

static void lie32(__be32 *field)
{
	*field = htonl(rng_below(&rng, 2) ? shift32(ntohl(*field)) : any32());
}

static void lie_of_frame(struct medge_frame_hdr *hdr)
{
	switch (rng_below(&rng, 9)) {
	case 0: hdr->ver_type ^= 1 << rng_below(&rng, 8); break;
	case 1: hdr->flags = rng_next(&rng); break;
	case 2: hdr->seg_len = htons(any32()); break;
	case 3: hdr->nops_qpn ^= htonl(rng_below(&rng, 256) << 24); break;
	case 4: lie32(&hdr->psn); break;
	case 5: lie32(&hdr->ack_psn); break;
	case 6: lie32(&hdr->ack_op); break;
	case 7: hdr->sack_base = htons(any32()); break;
	default: hdr->sack = rng_next(&rng); hdr->fence_dist = htons(any32());
	}
}

static void lie_of_op(struct medge_op_hdr *op)
{
	switch (rng_below(&rng, 9)) {
	case 0: op->opcode = rng_below(&rng, MEDGE_OPCODES + 2); break;
	case 1: op->flags = rng_next(&rng); break;
	case 2: op->len = htons(any32()); break;
	case 3: lie32(&op->op_no); break;
	case 4: lie32(&op->op_len); break;
	case 5: lie32(&op->offset); break;
	case 6: op->addr ^= rng_next(&rng); break;
	case 7: op->rkey = any32(); break;
	default: op->imm = any32();
	}
}

static void lie_of_ack(struct medge_ack_hdr *ack)
{
	switch (rng_below(&rng, 4)) {
	case 0: ack->nak = rng_below(&rng, MEDGE_NAKS + 1); break;
	case 1: lie32(&ack->nak_op); break;
	case 2: lie32(&ack->dups); break;
	default: ack->nak_seq = any32(); ack->rnr_timer = any32();
	}
}

/*
 * A run of an op to come, a byte in each frame, that reaches over the point
 * where numbers turn from far ahead to long ago.
 */
static void lie_half_way(struct medge_frame_hdr *hdr, uint32_t len)
{
	struct medge_op_hdr *op = (void *)(hdr + 1);
	uint32_t nframes = len - ETH_HLEN - MEDGE_HDR_LEN, half = 1u << 31;

	hdr->seg_len = htons(1);
	hdr->nops_qpn = htonl((ntohl(hdr->nops_qpn) & 0xffffff) | 1 << 24);
	hdr->psn = htonl(ntohl(hdr->psn) + half - rng_below(&rng, nframes));
	op->opcode = MEDGE_OP_WRITE;
	op->len = htons(nframes);
	op->op_no = htonl(ntohl(op->op_no) + 1 + rng_below(&rng, 64));
	op->op_len = htonl(nframes);
	op->offset = 0;
}

static void flip(uint8_t *frame, uint32_t len)
{
	for (int n = 1 + rng_below(&rng, 8); n; n--)
		frame[rng_below(&rng, len)] ^= 1 << rng_below(&rng, 8);
}

/* Another length: cut anywhere, or with something behind. */
static uint32_t stretch(uint8_t *frame, uint32_t len, uint32_t most)
{
	uint32_t to = rng_below(&rng, 2) ? rng_below(&rng, len) :
					   len + rng_below(&rng, most - len + 1);

	if (to < ETH_HLEN)
		to = ETH_HLEN;
	if (to > len)
		rng_fill(&rng, frame + len, to - len);
	return to;
}

/* Words of its bitmap: others than there were, with what they say, or without. */
static uint32_t lie_of_words(uint8_t *frame, uint32_t len, uint32_t most)
{
	struct medge_ack_hdr *ack = (void *)(header(frame) + 1);
	uint32_t to;

	ack->words = rng_below(&rng, 8) ? rng_below(&rng, MEDGE_ACK_WORDS + 1) :
					  any32();
	to = ETH_HLEN + medge_wire_ack_len(ack->words);
	if (to > most || !rng_below(&rng, 8))
		return len;
	if (to > len)
		rng_fill(&rng, frame + len, to - len);
	return to;
}

static uint32_t lie_inside(uint8_t *frame, uint32_t len, uint32_t most)
{
	struct medge_frame_hdr *hdr = header(frame);
	bool ack = (hdr->ver_type & 15) == MEDGE_FRAME_ACK;

	if (!ack && len > ETH_HLEN + MEDGE_HDR_LEN && !rng_below(&rng, 16)) {
		lie_half_way(hdr, len);
		return len;
	}
	for (int n = 1 + rng_below(&rng, 3); n; n--) {
		switch (rng_below(&rng, 6)) {
		case 0:
			return stretch(frame, len, most);
		case 1:
			flip((uint8_t *)hdr, len - ETH_HLEN < 96 ?
			     len - ETH_HLEN : 96);
			break;
		case 2:
		case 3:
			lie_of_frame(hdr);
			break;
		default:
			if (ack && !rng_below(&rng, 4))
				len = lie_of_words(frame, len, most);
			else if (ack)
				lie_of_ack((void *)(hdr + 1));
			else if (len >= ETH_HLEN + MEDGE_HDR_LEN)
				lie_of_op((void *)(hdr + 1));
		}
	}
	return len;
}

static uint32_t lie_outside(uint8_t *frame, uint32_t len, uint32_t most)
{
	struct medge_frame_hdr *hdr = header(frame);

	switch (rng_below(&rng, 5)) {
	case 0:		/* again, as it was */
		return len;
	case 1:		/* to somebody else, who does not exist */
		hdr->nops_qpn ^= htonl(1 + rng_below(&rng, 0xffffff));
		return for_us(frame) ? 0 : lie_inside(frame, len, most);
	case 2:		/* from somebody else */
		frame[ETH_ALEN + 1 + rng_below(&rng, 5)] ^=
			1 + rng_below(&rng, 255);
		return lie_inside(frame, len, most);
	case 3:		/* garbage behind the type */
		rng_fill(&rng, hdr, len - ETH_HLEN);
		if (rng_below(&rng, 2))
			hdr->ver_type = MEDGE_WIRE_VERSION << 4 |
					rng_below(&rng, 2);
		return for_us(frame) ? 0 : len;
	default:	/* less than a header */
		return ETH_HLEN + rng_below(&rng, sizeof(*hdr));
	}
}

static bool tell(bool inside)
{
	uint8_t frame[MAX_FRAME];
	const struct heard *h = any_heard();
	uint32_t len = h->len, most = rails[h->rail].mtu + ETH_HLEN;

	if (most > MAX_FRAME)
		most = MAX_FRAME;
	memcpy(frame, h->bytes, len);
	len = inside ? lie_inside(frame, len, most) :
		       lie_outside(frame, len, most);
	return len && send(rails[rng_below(&rng, nrails)].fd, frame, len,
			   MSG_DONTWAIT) > 0;
}

int main(int argc, char **argv)
{
	unsigned long told = 0;
	uint64_t end;
	bool inside;
	int i;

	if (argc < 6 || argc - 5 > MAX_QPNS ||
	    (strcmp(argv[1], "inside") && strcmp(argv[1], "outside"))) {
		fputs("usage: wire_liar inside|outside SECONDS SEED RAILS QPN...\n",
		      stderr);
		return 2;
	}
	inside = !strcmp(argv[1], "inside");
	end = now_ms() + 1000 * atoi(argv[2]);
	rng = rng_seed(argv[3]);
	nrails = atoi(argv[4]);
	if (nrails < 1 || nrails > MEDGE_MAX_RAILS)
		die("%s rails", argv[4]);
	for (i = 0; i < nrails; i++)
		open_rail(i);
	for (i = 5; i < argc; i++)
		qpns[nqpns++] = atoi(argv[i]);
	while (now_ms() < end) {
		for (i = 0; i < nrails; i++)
			listen_to(i);
		for (i = rng_below(&rng, 32); i && nheard; i--)
			told += tell(inside);
		usleep(200);
	}
	printf("wire_liar: heard %u frames, told %lu lies\n", nheard, told);
	return 0;
}
