/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the verbs tests share. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <linux/udmabuf.h>
#include <net/if.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <rdma/ib_user_verbs.h>
#include <rdma/medge-abi.h>

#include "verbs_cm.h"
#include "verbs_test.h"

void die(const char *fmt, ...)
{
	va_list args;

	fflush(stdout);
	fputs("FAIL: ", stderr);
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

uint64_t rng_next(uint64_t *state)
{
	uint64_t x = *state;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	*state = x;
	return x * 0x2545f4914f6cdd1dULL;
}

uint64_t rng_below(uint64_t *state, uint64_t bound)
{
	return bound ? (rng_next(state) >> 11) % bound : 0;
}

void rng_fill(uint64_t *state, void *buf, size_t len)
{
	uint8_t *p = buf;
	uint64_t x;

	for (; len >= sizeof(x); len -= sizeof(x), p += sizeof(x)) {
		x = rng_next(state);
		memcpy(p, &x, sizeof(x));
	}
	x = rng_next(state);
	memcpy(p, &x, len);
}

/* From the argument, or the clock; never 0. */
uint64_t rng_seed(const char *arg)
{
	struct timespec ts;
	uint64_t seed;

	if (arg) {
		seed = strtoull(arg, NULL, 0);
	} else {
		clock_gettime(CLOCK_REALTIME, &ts);
		seed = (uint64_t)ts.tv_sec * 1000003 + ts.tv_nsec;
	}
	return seed ? seed : 1;
}

uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

uint64_t now_ms(void)
{
	return now_ns() / 1000000;
}

void side_open(struct side *side, const char *dev, const char *gid_index)
{
	struct ibv_device **list;
	int i, n;

	memset(side, 0, sizeof(*side));
	side->name = dev;
	side->gid_index = atoi(gid_index);

	list = ibv_get_device_list(&n);
	if (!list)
		die("no list of devices: %s", strerror(errno));
	for (i = 0; i < n; i++)
		if (!strcmp(ibv_get_device_name(list[i]), dev))
			break;
	if (i == n)
		die("no device %s", dev);
	side->ctx = ibv_open_device(list[i]);
	ibv_free_device_list(list);
	if (!side->ctx)
		die("%s cannot be opened: %s", dev, strerror(errno));

	if (ibv_query_device(side->ctx, &side->attr))
		die("%s: ibv_query_device failed", dev);
	if (ibv_query_port(side->ctx, 1, &side->port))
		die("%s: ibv_query_port failed", dev);
	if (ibv_query_gid(side->ctx, 1, side->gid_index, &side->gid))
		die("%s: no GID of index %d", dev, side->gid_index);
	side->pd = ibv_alloc_pd(side->ctx);
	if (!side->pd)
		die("%s: ibv_alloc_pd: %s", dev, strerror(errno));
}

static const char *must_getenv(const char *name)
{
	const char *value = getenv(name);

	if (!value)
		die("the environment has no %s: run this in the lab", name);
	return value;
}

void side_open_both(struct side *a, struct side *b)
{
	side_open(a, must_getenv("DEV_A"), must_getenv("GID_A"));
	side_open(b, must_getenv("DEV_B"), must_getenv("GID_B"));
}

uint64_t side_counter(const struct side *side, const char *name)
{
	char path[256];
	unsigned long long value;
	FILE *file;

	snprintf(path, sizeof(path),
		 "/sys/class/infiniband/%s/ports/1/hw_counters/%s",
		 ibv_get_device_name(side->ctx->device), name);
	usleep(50000);
	file = fopen(path, "r");
	if (!file || fscanf(file, "%llu", &value) != 1)
		die("%s cannot be read", path);
	fclose(file);
	return value;
}

void side_close(struct side *side)
{
	if (ibv_dealloc_pd(side->pd))
		die("%s: ibv_dealloc_pd failed: something is left in it",
		    side->name);
	if (ibv_close_device(side->ctx))
		die("%s: ibv_close_device failed", side->name);
}

/*
 * All of it at once: in User-Mode Linux each stretch of adjacent pages is a
 * mapping of the host's, whose number is limited, and pages that come one by
 * one are seldom adjacent.
 */
static void *map_pages(size_t len, int flags)
{
	void *p;

	p = mmap(NULL, len, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE | flags, -1, 0);
	if (p == MAP_FAILED)
		die("no %s for %zu bytes", flags ? "huge pages" : "memory", len);
	return p;
}

void *alloc_pages(size_t len)
{
	return map_pages(len, 0);
}

void *alloc_huge_pages(size_t len)
{
	return map_pages(len, MAP_HUGETLB);
}

int port_socket(const char *netdev, uint16_t ethertype)
{
	struct sockaddr_ll at = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(ethertype),
		.sll_ifindex = if_nametoindex(netdev),
	};
	int fd = socket(AF_PACKET, SOCK_RAW, 0);

	/* Bound to no port, it would be all ports'. */
	if (fd < 0 || !at.sll_ifindex ||
	    bind(fd, (struct sockaddr *)&at, sizeof(at)))
		die("%s: %s", netdev, strerror(errno));
	return fd;
}

struct ibv_xrcd *xrcd_open(struct side *side)
{
	struct ibv_xrcd_init_attr init = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};

	return ibv_open_xrcd(side->ctx, &init);
}

struct ibv_mr *must_reg(struct side *side, void *buf, size_t len, int access)
{
	struct ibv_mr *mr;

	mr = ibv_reg_mr(side->pd, buf, len, access);
	if (!mr)
		die("%s: ibv_reg_mr of %zu bytes, access %#x: %s", side->name,
		    len, access, strerror(errno));
	return mr;
}

int udmabuf_create(size_t len, int *file)
{
	struct udmabuf_create create = { .flags = UDMABUF_FLAGS_CLOEXEC,
					 .size = len };
	int dev = open("/dev/udmabuf", O_RDWR | O_CLOEXEC), fd;

	if (dev < 0)
		return -1;
	*file = memfd_create("verbs_test", MFD_ALLOW_SEALING | MFD_CLOEXEC);
	if (*file < 0 || ftruncate(*file, len) ||
	    fcntl(*file, F_ADD_SEALS, F_SEAL_SHRINK))
		die("memfd: %s", strerror(errno));
	create.memfd = *file;
	fd = ioctl(dev, UDMABUF_CREATE, &create);
	if (fd < 0)
		die("udmabuf: %s", strerror(errno));
	close(dev);
	return fd;
}

#define OR(value, otherwise) ((value) ? (value) : (otherwise))

int end_create(struct end *end, struct side *side,
	       const struct pair_options *opt)
{
	struct ibv_qp_init_attr init = {};
	uint32_t cqe = OR(opt->cqe, 1024);

	memset(end, 0, sizeof(*end));
	end->side = side;
	if (opt->events) {
		end->channel = ibv_create_comp_channel(side->ctx);
		if (!end->channel)
			die("%s: ibv_create_comp_channel: %s", side->name,
			    strerror(errno));
	}
	end->other_cq = opt->cq;
	end->scq = opt->cq ?: ibv_create_cq(side->ctx, cqe, NULL, end->channel, 0);
	end->rcq = opt->cq ?: ibv_create_cq(side->ctx, cqe, NULL, end->channel, 0);
	if (!end->scq || !end->rcq)
		die("%s: ibv_create_cq: %s", side->name, strerror(errno));

	init.send_cq = end->scq;
	init.recv_cq = end->rcq;
	init.qp_type = OR(opt->type, IBV_QPT_RC);
	init.sq_sig_all = opt->sig_all;
	init.cap.max_send_wr = OR(opt->send_wr, 64);
	init.cap.max_recv_wr = OR(opt->recv_wr, 64);
	init.cap.max_send_sge = OR(opt->send_sge, 1);
	init.cap.max_recv_sge = OR(opt->recv_sge, 1);
	init.cap.max_inline_data = opt->inline_data;
	end->qp = opt->create_qp ? opt->create_qp(side, &init) :
				   ibv_create_qp(side->pd, &init);
	if (!end->qp)
		return errno;
	end->cap = init.cap;
	end->psn = 0xfffff0 + (end->qp->qp_num & 0xf);	/* wraps early */
	return 0;
}

void end_destroy(struct end *end)
{
	int ret;

	cm_disconnect(end);
	if (end->qp) {
		ret = ibv_destroy_qp(end->qp);
		if (ret)
			die("%s: ibv_destroy_qp: %s", end->side->name,
			    strerror(ret));
	}
	ret = end->other_cq ? 0 : ibv_destroy_cq(end->scq);
	if (!ret && !end->other_cq)
		ret = ibv_destroy_cq(end->rcq);
	if (ret)
		die("%s: ibv_destroy_cq: %s", end->side->name, strerror(ret));
	if (end->channel && ibv_destroy_comp_channel(end->channel))
		die("%s: ibv_destroy_comp_channel failed", end->side->name);
	memset(end, 0, sizeof(*end));
}

int end_to_state(struct end *end, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };

	return ibv_modify_qp(end->qp, &attr, IBV_QP_STATE);
}

int end_to_init(struct end *end, const struct pair_options *opt)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.pkey_index = 0,
		.port_num = 1,
		.qp_access_flags = OR(opt->access, FULL_ACCESS),
	};

	return ibv_modify_qp(end->qp, &attr,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				     IBV_QP_ACCESS_FLAGS);
}

/* What a QP must be given that acknowledges. */
static int if_reliable(const struct end *end, int mask)
{
	return end->qp->qp_type == IBV_QPT_UC ? 0 : mask;
}

int end_to_rtr(struct end *end, const struct end *peer,
	       const struct pair_options *opt)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = OR(opt->path_mtu, end->side->port.active_mtu),
		.dest_qp_num = peer->qp->qp_num,
		.rq_psn = peer->psn,
		.max_dest_rd_atomic = 16,
		.min_rnr_timer = OR(opt->min_rnr_timer, 12),
		.ah_attr = {
			.is_global = 1,
			.port_num = 1,
			.grh = {
				.dgid = peer->side->gid,
				.sgid_index = end->side->gid_index,
				.hop_limit = 64,
			},
		},
	};

	if (attr.max_dest_rd_atomic > end->side->attr.max_qp_rd_atom)
		attr.max_dest_rd_atomic = end->side->attr.max_qp_rd_atom;
	return ibv_modify_qp(end->qp, &attr,
			     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				     IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				     if_reliable(end, IBV_QP_MAX_DEST_RD_ATOMIC |
						      IBV_QP_MIN_RNR_TIMER));
}

int end_to_rts(struct end *end, const struct pair_options *opt)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.timeout = OR(opt->timeout, 16),
		.retry_cnt = OR(opt->retry_cnt, 7),
		.rnr_retry = opt->rnr_retry < 0 ? 0 : OR(opt->rnr_retry, 7),
		.sq_psn = end->psn,
		.max_rd_atomic = 16,
	};

	if (attr.max_rd_atomic > end->side->attr.max_qp_init_rd_atom)
		attr.max_rd_atomic = end->side->attr.max_qp_init_rd_atom;
	return ibv_modify_qp(end->qp, &attr,
			     IBV_QP_STATE | IBV_QP_SQ_PSN |
				     if_reliable(end, IBV_QP_TIMEOUT |
						      IBV_QP_RETRY_CNT |
						      IBV_QP_RNR_RETRY |
						      IBV_QP_MAX_QP_RD_ATOMIC));
}

static void must_init(struct end *end, const struct pair_options *opt)
{
	int ret = end_to_init(end, opt);

	if (ret)
		die("%s: modify to INIT: %s", end->side->name, strerror(ret));
}

static void end_connect(struct end *end, const struct end *peer,
			const struct pair_options *opt)
{
	int ret;

	ret = end_to_rtr(end, peer, opt);
	if (ret)
		die("%s: modify to RTR: %s", end->side->name, strerror(ret));
	ret = end_to_rts(end, opt);
	if (ret)
		die("%s: modify to RTS: %s", end->side->name, strerror(ret));
}

void pair_connect(struct pair *pair, const struct pair_options *opt)
{
	must_init(&pair->a, opt);
	must_init(&pair->b, opt);
	if (pair->a.side->ctx->device->transport_type == IBV_TRANSPORT_IWARP) {
		cm_connect(&pair->a, &pair->b);
		return;
	}
	end_connect(&pair->a, &pair->b, opt);
	end_connect(&pair->b, &pair->a, opt);
}

void pair_create(struct pair *pair, struct side *a, struct side *b,
		 const struct pair_options *opt)
{
	int ret;

	ret = end_create(&pair->a, a, opt);
	if (ret)
		die("%s: ibv_create_qp: %s", a->name, strerror(ret));
	ret = end_create(&pair->b, b, opt);
	if (ret)
		die("%s: ibv_create_qp: %s", b->name, strerror(ret));
	pair_connect(pair, opt);
}

void pair_destroy(struct pair *pair)
{
	end_destroy(&pair->a);
	end_destroy(&pair->b);
}

int post_write(struct ibv_qp *qp, const struct ibv_mr *from,
	       const struct ibv_mr *to, uint64_t offset, uint32_t len,
	       unsigned int flags)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)from->addr + offset,
		.length = len,
		.lkey = from->lkey,
	};
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = flags,
		.wr.rdma.remote_addr = (uintptr_t)to->addr + offset,
		.wr.rdma.rkey = to->rkey,
	}, *bad;

	return ibv_post_send(qp, &wr, &bad);
}

int ring_qp(const struct side *side, uint32_t qpn)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct medge_ring_qp qp;
	} cmd = {
		.hdr.command = MEDGE_CMD_RING_QP,
		.hdr.in_words = sizeof(cmd) / 4,
		.qp.qpn = qpn,
	};
	ssize_t len = write(side->ctx->cmd_fd, &cmd, sizeof(cmd));

	return len < 0 ? errno : len == sizeof(cmd) ? 0 : -1;
}

bool wait_wc(struct ibv_cq *cq, struct ibv_wc *wc, int ms)
{
	uint64_t until = now_ms() + ms;
	int n, spins = 0;

	for (;;) {
		n = ibv_poll_cq(cq, 1, wc);
		if (n < 0)
			die("ibv_poll_cq failed");
		if (n)
			return true;
		if (++spins % 64)
			continue;
		if (now_ms() > until)
			return false;
		sched_yield();
	}
}
