/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A peer that lies: it names one receive for two of its messages, and one of them is
 * complete while the other is still coming. The receive is that of the first; the
 * second is refused, and changes no byte.
 *
 *   same_receive RAILS    in the network namespace of A, whose frames it forges
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "verbs_check.h"
#include "wire.h"

enum {
	RECEIVES = 4,
	APART = 1000,		/* where receives begin in memory */
	PART = 100,		/* bytes of a frame */
};

/* A frame that brings all of a message, or one of two parts. */
struct message {
	uint8_t eth[ETH_HLEN];
	struct medge_frame_hdr hdr;
	struct medge_op_hdr op;
	uint8_t bytes[PART];
} __attribute__((packed));

static struct pollfd rails[MEDGE_MAX_RAILS];
static int nrails;

static void open_rail(int i)
{
	char name[16];

	snprintf(name, sizeof(name), "rail%d", i);
	rails[i].fd = port_socket(name, ETH_P_ALL);
	rails[i].events = POLLIN;
}

/* The message that was sent to that QP, and the rail that took it. */
static int hear(struct message *m, uint32_t qpn)
{
	uint64_t until = now_ms() + PATIENCE_MS;

	for (;;) {
		if (now_ms() > until || poll(rails, nrails, PATIENCE_MS) <= 0)
			die("the message was not heard");
		for (int i = 0; i < nrails; i++) {
			if (recv(rails[i].fd, m, sizeof(*m), MSG_DONTWAIT) ==
				    sizeof(*m) &&
			    ((struct ethhdr *)m->eth)->h_proto ==
				    htons(MEDGE_ETHERTYPE) &&
			    (m->hdr.ver_type & 15) == MEDGE_FRAME_DATA &&
			    m->hdr.nops_qpn == htonl(1 << 24 | qpn) &&
			    m->op.opcode == MEDGE_OP_SEND)
				return i;
		}
	}
}

/* As @m, but so many frames, messages, and receives later. */
static void forge(int rail, const struct message *m, int frames, int ops,
		  int receives, uint32_t len, uint32_t offset)
{
	struct message lie = *m;

	lie.hdr.seg_len = htons(PART);
	lie.hdr.psn = htonl(ntohl(m->hdr.psn) + frames);
	lie.op.op_no = htonl(ntohl(m->op.op_no) + ops);
	lie.op.op_len = htonl(len);
	lie.op.offset = htonl(offset);
	lie.op.addr = htobe64(be64toh(m->op.addr) + receives);
	memset(lie.bytes, 0x10 + frames, PART);
	if (send(rails[rail].fd, &lie, sizeof(lie), 0) != sizeof(lie))
		die("send: %s", strerror(errno));
}

/* The receive has brought @len bytes; 0: it has failed, or was flushed. */
static void must_complete(struct ibv_cq *cq, uint64_t wr_id, uint32_t len)
{
	struct ibv_wc wc;

	check(wait_wc(cq, &wc, PATIENCE_MS), "no completion of receive %d",
	      (int)wr_id);
	check(wc.wr_id == wr_id, "receive %d completes instead of %d",
	      (int)wc.wr_id, (int)wr_id);
	if (len)
		check(wc.status == IBV_WC_SUCCESS && wc.byte_len == len,
		      "receive %d: %s, %u bytes", (int)wr_id,
		      ibv_wc_status_str(wc.status), wc.byte_len);
	else
		check(wc.status != IBV_WC_SUCCESS, "receive %d succeeds",
		      (int)wr_id);
}

static void must_be(const uint8_t *at, uint8_t want, size_t len)
{
	for (size_t i = 0; i < len; i++)
		check(at[i] == want, "byte %zu is %02x, not %02x", i, at[i],
		      want);
}

static void post_receives(struct end *end, uint8_t *mem, struct ibv_mr *mr)
{
	for (int i = 0; i < RECEIVES; i++) {
		struct ibv_sge sge = { (uintptr_t)mem + i * APART, APART,
				       mr->lkey };
		struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &sge,
					  .num_sge = 1 }, *bad;

		check(!ibv_post_recv(end->qp, &wr, &bad), "ibv_post_recv");
	}
}

static void send_truth(struct end *end, uint8_t *mem, struct ibv_mr *mr)
{
	struct ibv_sge sge = { (uintptr_t)mem, PART, mr->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	}, *bad;

	check(!ibv_post_send(end->qp, &wr, &bad), "ibv_post_send");
}

int main(int argc, char **argv)
{
	uint8_t *from = alloc_pages(APART), *to = alloc_pages(RECEIVES * APART);
	struct pair_options options = {};
	struct side a, b;
	struct message m;
	struct pair p;
	int rail;

	nrails = argc == 2 ? atoi(argv[1]) : 0;
	if (nrails < 1 || nrails > MEDGE_MAX_RAILS) {
		fputs("usage: same_receive RAILS\n", stderr);
		return 2;
	}
	for (int i = 0; i < nrails; i++)
		open_rail(i);
	side_open_both(&a, &b);
	memset(to, 0x77, RECEIVES * APART);
	pair_create(&p, &a, &b, &options);
	post_receives(&p.b, to, must_reg(&b, to, RECEIVES * APART, FULL_ACCESS));
	send_truth(&p.a, from, must_reg(&a, from, APART, FULL_ACCESS));
	must_complete(p.b.rcq, 0, PART);
	rail = hear(&m, p.b.qp->qp_num);

	/* Half a message, all of another that names its receive, and the other half. */
	forge(rail, &m, 1, 1, 1, 2 * PART, 0);
	forge(rail, &m, 2, 2, 1, PART, 0);
	forge(rail, &m, 3, 1, 1, 2 * PART, PART);
	must_complete(p.b.rcq, 1, 2 * PART);
	for (int i = 2; i < RECEIVES; i++)
		must_complete(p.b.rcq, i, 0);
	must_be(to + APART, 0x11, PART);
	must_be(to + APART + PART, 0x13, PART);
	must_be(to + APART + 2 * PART, 0x77, (RECEIVES - 1) * APART - 2 * PART);
	puts("one receive, one message");
	return 0;
}
