/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Kernel memory of a connected RC QP that has nothing to do, beside the rings
 * it shares with its process.
 *
 *	qp_memory [--qps N] [--limit BYTES]
 *
 * What N QPs more take from the machine's free memory, less what they take as
 * this process's own, as its page tables and as rings. The first QPs are not
 * counted: what all share is there by then.
 */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "verbs_test.h"

enum { WARM_UP = 16, MOST = 4096 };

static struct pair pairs[MOST];

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

/* QPs that complete into one CQ of each side, so that only they are counted. */
static void connect_qps(struct pair *pair, struct side *a, struct side *b,
			struct ibv_cq *const cqs[2])
{
	struct pair_options po = { .send_wr = 4, .recv_wr = 4, .cq = cqs[0] };
	struct pair_options peer = po;

	peer.cq = cqs[1];
	if (end_create(&pair->a, a, &po) || end_create(&pair->b, b, &peer) ||
	    end_to_init(&pair->a, &po) || end_to_init(&pair->b, &po) ||
	    end_to_rtr(&pair->a, &pair->b, &po) ||
	    end_to_rtr(&pair->b, &pair->a, &po) || end_to_rts(&pair->a, &po) ||
	    end_to_rts(&pair->b, &po))
		die("cannot connect");
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "qps", required_argument, NULL, 'q' },
		{ "limit", required_argument, NULL, 'l' },
		{ }
	};
	long before, after, each, rings, limit = 0;
	int qps = 4000, c, i, n;
	struct ibv_cq *cqs[2];
	struct side a, b;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 'q': qps = atoi(optarg); break;
		case 'l': limit = atol(optarg); break;
		default: exit(2);
		}
	}
	n = qps / 2;
	if (n < 1 || n + WARM_UP > MOST)
		die("--qps takes 2 to %d", 2 * (MOST - WARM_UP));
	side_open_both(&a, &b);
	cqs[0] = ibv_create_cq(a.ctx, 64, NULL, NULL, 0);
	cqs[1] = ibv_create_cq(b.ctx, 64, NULL, NULL, 0);
	if (!cqs[0] || !cqs[1])
		die("ibv_create_cq");
	for (i = 0; i < WARM_UP; i++)
		connect_qps(&pairs[i], &a, &b, cqs);
	rings = mapped_rings();
	before = kernel_bytes();
	for (; i < WARM_UP + n; i++)
		connect_qps(&pairs[i], &a, &b, cqs);
	after = kernel_bytes();
	rings = mapped_rings() - rings;
	each = (after - before) / (2 * n);
	printf("%d idle QPs: %ld bytes each in the kernel, beside %ld of rings\n",
	       2 * n, each, rings / (2 * n));
	for (i = 0; i < WARM_UP + n; i++)
		pair_destroy(&pairs[i]);
	ibv_destroy_cq(cqs[0]);
	ibv_destroy_cq(cqs[1]);
	side_close(&a);
	side_close(&b);
	return limit && each > limit;
}
