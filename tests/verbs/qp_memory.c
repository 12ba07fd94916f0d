/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Kernel memory of a connected RC QP that has nothing to do, beside the rings
 * it shares with its process.
 *
 *	qp_memory [--qps N] [--depth WQES] [--sge SGES] [--srq] [--sends N] [--limit BYTES]
 *
 * What N QPs more take from the machine's free memory, less what they take as
 * this process's own, as its page tables and as rings. The first QPs are not
 * counted: what all share is there by then. WQES is the depth of each queue,
 * and SGES is how many each of its entries may have. Each QP may have sent some
 * messages, and received as many, before it is idle.
 */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "verbs_test.h"

enum { WARM_UP = 16, MOST = 4096 };

static struct pair pairs[MOST];
static struct ibv_srq *srqs[2];	/* of sides a and b, if there is to be one */

/* The sum of what lines of a file in /proc say of @name. */
static long field(const char *path, const char *name)
{
	char line[256];
	long value = 0;
	FILE *f = fopen(path, "r");

	if (!f)
		die("%s", path);
	while (fgets(line, sizeof(line), f)) {
		const char *at = line + strspn(line, " ");

		if (!strncmp(at, name, strlen(name)))
			value += strtol(at + strlen(name), NULL, 10);
	}
	fclose(f);
	return value;
}

/* Bytes that are mapped of the devices: rings. */
static long mapped_rings(void)
{
	char line[512];
	unsigned long from, to;
	long bytes = 0;
	FILE *f = fopen("/proc/self/maps", "r");

	if (!f)
		die("/proc/self/maps");
	while (fgets(line, sizeof(line), f))
		if (strstr(line, "/uverbs") &&
		    sscanf(line, "%lx-%lx", &from, &to) == 2)
			bytes += to - from;
	fclose(f);
	return bytes;
}

/*
 * Bytes the kernel has in use that are neither this process's own nor rings. Free
 * pages that CPUs keep for themselves are not in MemFree.
 */
static long kernel_bytes(void)
{
	sync();
	return (field("/proc/meminfo", "MemTotal:") -
		field("/proc/meminfo", "MemFree:") -
		field("/proc/zoneinfo", "count:") *
			(sysconf(_SC_PAGESIZE) / 1024) -
		field("/proc/meminfo", "Cached:") -
		field("/proc/meminfo", "Buffers:") -
		field("/proc/meminfo", "AnonPages:") -
		field("/proc/meminfo", "PageTables:")) * 1024L - mapped_rings();
}

static struct ibv_qp *with_srq(struct side *side, struct ibv_qp_init_attr *init)
{
	init->srq = srqs[srqs[0]->context != side->ctx];
	return ibv_create_qp(side->pd, init);
}

static struct ibv_srq *create_srq(struct side *side, const struct pair_options *po)
{
	struct ibv_srq_init_attr init = {
		.attr = { .max_wr = po->recv_wr, .max_sge = po->recv_sge },
	};
	struct ibv_srq *srq = ibv_create_srq(side->pd, &init);

	if (!srq)
		die("ibv_create_srq");
	return srq;
}

/* Completions go into one CQ of each side, so that only QPs are counted. */
static void connect_qps(struct pair *pair, struct side *a, struct side *b,
			struct pair_options po, struct ibv_cq *const cqs[2])
{
	struct pair_options peer = po;

	po.cq = cqs[0];
	peer.cq = cqs[1];
	if (end_create(&pair->a, a, &po) || end_create(&pair->b, b, &peer))
		die("cannot create a pair");
	pair_connect(pair, &po);
}

static void post_recv(struct end *end)
{
	struct ibv_recv_wr wr = {}, *bad;
	int err = end->qp->srq ? ibv_post_srq_recv(end->qp->srq, &wr, &bad) :
				 ibv_post_recv(end->qp, &wr, &bad);

	if (err)
		die("a receive: %s", strerror(err));
}

static void post_send(struct end *end)
{
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	}, *bad;
	int err = ibv_post_send(end->qp, &wr, &bad);

	if (err)
		die("a send: %s", strerror(err));
}

/* One message each way, of no bytes. */
static void exchange(struct pair *pair)
{
	struct ibv_wc wc;
	int i;

	post_recv(&pair->a);
	post_recv(&pair->b);
	post_send(&pair->a);
	post_send(&pair->b);
	for (i = 0; i < 2; i++)
		if (!wait_wc(pair->a.scq, &wc, 5000) || wc.status ||
		    !wait_wc(pair->b.scq, &wc, 5000) || wc.status)
			die("a message does not come");
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "qps", required_argument, NULL, 'q' },
		{ "depth", required_argument, NULL, 'd' },
		{ "sge", required_argument, NULL, 's' },
		{ "srq", no_argument, NULL, 'r' },
		{ "sends", required_argument, NULL, 'm' },
		{ "limit", required_argument, NULL, 'l' },
		{ }
	};
	struct pair_options po = { .send_wr = 4, .send_sge = 1 };
	long before, after, each, rings, limit = 0;
	bool srq = false;
	int qps = 4000, sends = 0, c, i, k, n;
	struct ibv_cq *cqs[2];
	struct side a, b;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 'q': qps = atoi(optarg); break;
		case 'd': po.send_wr = atoi(optarg); break;
		case 's': po.send_sge = atoi(optarg); break;
		case 'r': srq = true; break;
		case 'm': sends = atoi(optarg); break;
		case 'l': limit = atol(optarg); break;
		default: exit(2);
		}
	}
	n = qps / 2;
	if (n < 1 || n + WARM_UP > MOST)
		die("--qps takes 2 to %d", 2 * (MOST - WARM_UP));
	po.recv_wr = po.send_wr;
	po.recv_sge = po.send_sge;
	side_open_both(&a, &b);
	if (srq) {
		srqs[0] = create_srq(&a, &po);
		srqs[1] = create_srq(&b, &po);
		po.create_qp = with_srq;
	}
	cqs[0] = ibv_create_cq(a.ctx, 64, NULL, NULL, 0);
	cqs[1] = ibv_create_cq(b.ctx, 64, NULL, NULL, 0);
	if (!cqs[0] || !cqs[1])
		die("ibv_create_cq");
	for (i = 0; i < WARM_UP; i++)
		connect_qps(&pairs[i], &a, &b, po, cqs);
	rings = mapped_rings();
	before = kernel_bytes();
	for (; i < WARM_UP + n; i++) {
		connect_qps(&pairs[i], &a, &b, po, cqs);
		for (k = 0; k < sends; k++)
			exchange(&pairs[i]);
	}
	after = kernel_bytes();
	rings = mapped_rings() - rings;
	each = (after - before) / (2 * n);
	printf("%d idle QPs of %u WQEs of %u SGEs%s, after %d sends: %ld bytes each in the kernel, beside %ld of rings\n",
	       2 * n, po.send_wr, po.send_sge, srq ? ", with an SRQ" : "", sends,
	       each, rings / (2 * n));
	for (i = 0; i < WARM_UP + n; i++)
		pair_destroy(&pairs[i]);
	if (srq && (ibv_destroy_srq(srqs[0]) || ibv_destroy_srq(srqs[1])))
		die("ibv_destroy_srq");
	ibv_destroy_cq(cqs[0]);
	ibv_destroy_cq(cqs[1]);
	side_close(&a);
	side_close(&b);
	return limit && each > limit;
}
