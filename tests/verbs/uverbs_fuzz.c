/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Lies to the kernel about verbs: lives of random verbs calls, of which each
 * command on its way to the kernel may be changed: its header, its attributes, what
 * they point at (medge's own structures, too), and the pointers themselves. And
 * commands and mappings that nobody would make.
 *
 *   uverbs_fuzz [--blind] [--seeds FILE] [--keep FILE] SECONDS SEED
 *   uverbs_fuzz --replay FILE
 *
 * Each life is a process of its own; it may come to any end, which is its own
 * business. The kernel must say nothing, and all must be gone afterwards.
 *
 * Where there is KCOV (see fuzz_cover.h), lives that go where none has gone before
 * are kept, and others made of them, except if --blind. --seeds: those of a file come
 * first. --keep: all that are needed to go as far are written to one. --replay: those
 * of a file, once. What REPORT_PATTERN, from the environment, finds in the kernel's
 * log ends it, with the life that is to blame.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <net/if.h>
#include <regex.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <infiniband/medgedv.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>

#include "fuzz_cover.h"
#include "fuzz_kept.h"
#include "fuzz_life.h"
#include "verbs_test.h"

enum {
	LIFE_S = 3,
	POOL = 8,
	MAX_ATTRS = 32,
	SCRATCH = 1 << 16,
};

static struct side side;
static bool lying;
static uint8_t *scratch_end;	/* behind it, there is no memory */
static uint8_t *scratch_at;
static int dmabuf;		/* of half of what is asked for; -1: none */
/* Of the lives and of who starts them. */
static struct {
	unsigned long commands;
	unsigned long changed;
	unsigned long taken;			/* of those */
	uint64_t ends[1 + LIFE_CALLS];		/* cover_count(): at first, and after each call */
	unsigned int num_ends;
} *shared;

/* ---- lies ---- */

static uint64_t odd(void)
{
	static const uint64_t values[] = {
		0, 1, 2, 7, 8, 63, 64, 255, 4095, 4096, 65535, 65536, 1 << 20,
		0x7fffffff, 0x80000000, 0xffffffff, 1ull << 32, 1ull << 62,
		0x7fffffffffffffff, 0x8000000000000000, 0xffffffff80000000,
		0xffff888000000000, ~0ull, ~4095ull,
	};

	return draw_below(2) ? values[draw_below(ARRAY_LEN(values))] :
				    draw() >> draw_below(64);
}

static void change_bytes(void *bytes, size_t len)
{
	uint64_t value = odd();
	size_t size = 1 << draw_below(4), at;

	if (!len)
		return;
	if (size > len)
		size = 1;
	/* Mostly as the fields are aligned. */
	at = draw_below(len - size + 1);
	if (draw_below(4))
		at -= at % size;
	if (draw_below(3))
		memcpy((uint8_t *)bytes + at, &value, size);
	else
		((uint8_t *)bytes)[at] ^= 1 << draw_below(8);
}

/* A copy in front of memory that is not there; NULL: no room. */
static void *scratch_copy(const void *from, size_t len)
{
	if (len > (size_t)(scratch_at - (scratch_end - SCRATCH)))
		return NULL;
	scratch_at -= len;
	return memcpy(scratch_at, from, len);
}

static uint64_t lie_of_pointer(uint64_t was)
{
	switch (draw_below(6)) {
	case 0: return 0;
	case 1: return odd();
	case 2: return was + 1;
	case 3: return (uintptr_t)scratch_end;
	case 4: return (uintptr_t)scratch_end - draw_below(16);
	default: return (uintptr_t)&lie_of_pointer;	/* not to be written */
	}
}

static void lie_of_attr(struct ib_uverbs_attr *attr)
{
	switch (draw_below(8)) {
	case 0: attr->attr_id = odd(); break;
	case 1: attr->len = odd(); break;
	case 2: attr->flags = odd(); break;
	case 3: attr->attr_data.reserved = odd(); break;
	case 4: attr->data = attr->len > 8 ? lie_of_pointer(attr->data) : odd(); break;
	default:
		if (attr->len > 8)
			change_bytes((void *)(uintptr_t)attr->data, attr->len);
		else
			change_bytes(&attr->data, sizeof(attr->data));
	}
}

static void lie_of_header(struct ib_uverbs_ioctl_hdr *hdr)
{
	switch (draw_below(7)) {
	case 0: hdr->object_id = draw_below(20); break;
	case 1: hdr->method_id = draw_below(8) | draw_below(2) << 12; break;
	case 2: hdr->num_attrs = draw_below(hdr->num_attrs + 3); break;
	case 3: hdr->length = odd(); break;
	case 4: hdr->reserved1 = odd(); break;
	case 5: hdr->driver_id = odd(); break;
	default:	/* the same attribute twice, or in another order */
		if (hdr->num_attrs > 1)
			hdr->attrs[draw_below(hdr->num_attrs)] =
				hdr->attrs[draw_below(hdr->num_attrs)];
	}
}

/* Answers of what was taken go where they were asked for. */
static void copy_back(const struct ib_uverbs_ioctl_hdr *from,
		      struct ib_uverbs_ioctl_hdr *to, void *const copies[])
{
	for (int i = 0; i < to->num_attrs; i++) {
		if (copies[i])
			memcpy((void *)(uintptr_t)to->attrs[i].data, copies[i],
			       to->attrs[i].len);
		else
			to->attrs[i].data = from->attrs[i].data;
	}
}

static int lie(int fd, struct ib_uverbs_ioctl_hdr *hdr)
{
	void *copies[MAX_ATTRS] = {};
	struct {
		struct ib_uverbs_ioctl_hdr hdr;
		struct ib_uverbs_attr attrs[MAX_ATTRS];
	} cmd;
	int ret;

	scratch_at = scratch_end;
	memcpy(&cmd, hdr, hdr->length);
	for (int i = 0; i < hdr->num_attrs; i++) {
		struct ib_uverbs_attr *attr = &cmd.hdr.attrs[i];

		/* Not of lists of what the library has itself. */
		if (attr->len <= 8)
			continue;
		copies[i] = scratch_copy((void *)(uintptr_t)attr->data, attr->len);
		if (copies[i])
			attr->data = (uintptr_t)copies[i];
	}
	for (int n = 1 + draw_below(3); n; n--) {
		if (hdr->num_attrs && draw_below(5))
			lie_of_attr(&cmd.hdr.attrs[draw_below(hdr->num_attrs)]);
		else
			lie_of_header(&cmd.hdr);
	}
	shared->changed++;
	ret = syscall(SYS_ioctl, fd, RDMA_VERBS_IOCTL, &cmd.hdr);
	if (ret)
		return ret;
	shared->taken++;
	copy_back(&cmd.hdr, hdr, copies);
	return 0;
}

/* The library's own way to the kernel: it finds this one first. */
int ioctl(int fd, unsigned long request, ...)
{
	struct ib_uverbs_ioctl_hdr *hdr;
	va_list args;

	va_start(args, request);
	hdr = va_arg(args, void *);
	va_end(args);
	if (request != RDMA_VERBS_IOCTL)
		return syscall(SYS_ioctl, fd, request, hdr);
	shared->commands++;
	if (lying && hdr->num_attrs <= MAX_ATTRS && !draw_below(2)) {
		if (!lie(fd, hdr))
			return 0;
		/* Or nothing would be left to be lied of. */
		if (!draw_below(4))
			return -1;
	}
	return syscall(SYS_ioctl, fd, RDMA_VERBS_IOCTL, hdr);
}

/* ---- verbs ---- */

static struct ibv_pd *pds[POOL];
static struct ibv_cq *cqs[POOL];
static struct ibv_qp *qps[POOL];
static struct ibv_srq *srqs[POOL];
static struct ibv_mr *mrs[POOL];
static struct ibv_mw *mws[POOL];
static struct ibv_ah *ahs[POOL];
static struct ibv_dm *dms[POOL];
static struct ibv_comp_channel *channels[POOL];
static uint8_t *memory;

#define ANY(pool) ((pool)[draw_below(POOL)])
/* A place in the pool: free, or made so. */
#define PLACE(pool, destroy) ({						\
	typeof(&(pool)[0]) at_ = &ANY(pool);				\
	if (*at_ && !destroy(*at_))					\
		*at_ = NULL;						\
	*at_ ? NULL : at_; })

static void call_pd(void)
{
	struct ibv_pd **at = PLACE(pds, ibv_dealloc_pd);

	if (at)
		*at = ibv_alloc_pd(side.ctx);
}

static void call_cq(void)
{
	struct ibv_cq **at = &ANY(cqs);

	if (*at && draw_below(2)) {
		struct ibv_modify_cq_attr attr = {
			.attr_mask = IBV_CQ_ATTR_MODERATE,
			.moderate = { 4, 10 },
		};

		if (draw_below(2))
			ibv_resize_cq(*at, 1 + draw_below(300));
		else
			ibv_modify_cq(*at, &attr);
		return;
	}
	at = PLACE(cqs, ibv_destroy_cq);
	if (at)
		*at = ibv_create_cq(side.ctx, 1 + draw_below(200), NULL,
				    ANY(channels), draw_below(3));
}

static void call_channel(void)
{
	struct ibv_comp_channel **at = PLACE(channels, ibv_destroy_comp_channel);

	if (at)
		*at = ibv_create_comp_channel(side.ctx);
}

static void call_mr(void)
{
	int access = draw_below(2) ? FULL_ACCESS : (int)odd();
	struct ibv_mr **at = &ANY(mrs);
	struct ibv_pd *pd = ANY(pds);
	size_t off = draw_below(1 << 16), len = draw_below(1 << 16);

	if (*at && !draw_below(3)) {
		ibv_rereg_mr(*at, draw_below(8), ANY(pds), memory + off, len,
			     access);
		return;
	}
	at = PLACE(mrs, ibv_dereg_mr);
	if (!at || !pd)
		return;
	if (!draw_below(4) && ANY(dms))
		*at = ibv_reg_dm_mr(pd, ANY(dms) ?: dms[0], 0, 64,
				    access | IBV_ACCESS_ZERO_BASED);
	else if (!draw_below(4))
		*at = ibv_reg_dmabuf_mr(pd, off, len,
					(odd() & ~4095ull) | off % 4096,
					draw_below(8) ? dmabuf : (int)odd(),
					access);
	else if (!draw_below(8))
		*at = ibv_alloc_null_mr(pd);
	else
		*at = ibv_reg_mr_iova(pd, memory + off, len, odd(), access);
}

static void call_mw(void)
{
	struct ibv_mw **at = PLACE(mws, ibv_dealloc_mw);
	struct ibv_pd *pd = ANY(pds);

	if (at && pd)
		*at = ibv_alloc_mw(pd, 1 + draw_below(2));
}

static void call_dm(void)
{
	struct ibv_alloc_dm_attr attr = {
		.length = 1 + draw_below(9000),
		.log_align_req = draw_below(8),
	};
	struct ibv_dm **at = PLACE(dms, ibv_free_dm);

	if (at)
		*at = ibv_alloc_dm(side.ctx, &attr);
}

static void call_srq(void)
{
	struct ibv_srq_init_attr init = { .attr = {
		.max_wr = 1 + draw_below(100), .max_sge = 1 + draw_below(4),
	} };
	struct ibv_srq_attr attr = { .srq_limit = draw_below(120) };
	struct ibv_srq **at = &ANY(srqs);
	struct ibv_pd *pd = ANY(pds);

	if (*at && draw_below(2)) {
		ibv_modify_srq(*at, &attr, 1 + draw_below(3));
		ibv_query_srq(*at, &attr);
		return;
	}
	at = PLACE(srqs, ibv_destroy_srq);
	if (at && pd)
		*at = ibv_create_srq(pd, &init);
}

static void make_qp(struct ibv_qp **at)
{
	static const enum ibv_qp_type types[] = {
		IBV_QPT_RC, IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD,
		IBV_QPT_XRC_SEND, IBV_QPT_RAW_PACKET,
	};
	struct ibv_qp_init_attr_ex init = {
		.send_cq = ANY(cqs), .recv_cq = ANY(cqs), .srq = ANY(srqs),
		.cap = { 1 + draw_below(60), 1 + draw_below(60),
			 1 + draw_below(4), 1 + draw_below(4),
			 draw_below(200) },
		.qp_type = types[draw_below(ARRAY_LEN(types))],
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = ANY(pds),
	};
	struct medgedv_qp_init_attr medge = {
		.create_flags = draw_below(4),
	};

	if (init.pd && init.send_cq && init.recv_cq)
		*at = medgedv_create_qp(side.ctx, &init, &medge, sizeof(medge));
}

/* Somewhat further: to itself, or to nobody. */
static void move_qp(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {
		.qp_state = draw_below(3) ? qp->state + 1 : draw_below(8),
		.port_num = 1,
		.qp_access_flags = FULL_ACCESS,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = draw_below(2) ? qp->qp_num : odd() & 0xffffff,
		.max_dest_rd_atomic = 4, .max_rd_atomic = 4,
		.min_rnr_timer = 1, .timeout = 8, .retry_cnt = 1,
		.ah_attr = { .is_global = 1, .port_num = 1, .grh = {
			.dgid = side.gid, .sgid_index = side.gid_index,
			.hop_limit = 1,
		} },
	};
	static const int masks[] = {
		[IBV_QPS_RESET] = 0,
		[IBV_QPS_INIT] = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
		[IBV_QPS_RTR] = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				IBV_QP_MIN_RNR_TIMER,
		[IBV_QPS_RTS] = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				IBV_QP_MAX_QP_RD_ATOMIC,
	};
	int mask = IBV_QP_STATE;

	if (attr.qp_state < ARRAY_LEN(masks))
		mask |= masks[attr.qp_state];
	if (!draw_below(8))
		mask ^= 1 << draw_below(26);
	ibv_modify_qp(qp, &attr, mask);
}

static void call_qp(void)
{
	struct medgedv_qp_attr medge;
	struct ibv_qp_init_attr init;
	struct ibv_qp **at = &ANY(qps);
	struct ibv_qp_attr attr;

	if (*at && draw_below(5)) {
		move_qp(*at);
		if (!draw_below(3))
			ibv_query_qp(*at, &attr, odd(), &init);
		if (!draw_below(3))
			medgedv_query_qp(*at, &medge, sizeof(medge));
		return;
	}
	at = PLACE(qps, ibv_destroy_qp);
	if (at)
		make_qp(at);
}

/* What is sent goes its way while its objects are lied about. */
static void call_post(void)
{
	struct ibv_mr *mr = ANY(mrs);
	struct ibv_sge sge = {
		.addr = (uintptr_t)memory, .length = draw_below(9000),
		.lkey = mr ? mr->lkey : 0,
	};
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge, .num_sge = 1,
		.opcode = draw_below(7), .send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { (uintptr_t)memory, mr ? mr->rkey : 0 },
	};
	struct ibv_recv_wr *bad_recv, recv = { .sg_list = &sge, .num_sge = 1 };
	struct ibv_qp *qp = ANY(qps);

	if (!qp || qp->qp_type == IBV_QPT_UD || qp->qp_type == IBV_QPT_RAW_PACKET)
		return;
	if (draw_below(2))
		ibv_post_send(qp, &wr, &bad);
	else if (!qp->srq && qp->qp_type != IBV_QPT_XRC_SEND)
		ibv_post_recv(qp, &recv, &bad_recv);
}

static void call_ah(void)
{
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1, .grh = {
		.dgid = side.gid, .sgid_index = side.gid_index, .hop_limit = 1,
	} };
	struct ibv_ah **at = PLACE(ahs, ibv_destroy_ah);
	struct ibv_pd *pd = ANY(pds);

	if (at && pd)
		*at = ibv_create_ah(pd, &attr);
}

static void call_group(void)
{
	union ibv_gid group = { .raw = { 0xff, 0x0e, [15] = draw_below(4) } };
	struct ibv_qp *qp = ANY(qps);

	if (!qp)
		return;
	if (draw_below(2))
		ibv_attach_mcast(qp, &group, 0);
	else
		ibv_detach_mcast(qp, &group, 0);
}

static void call_query(void)
{
	struct medgedv_device_attr medge;
	struct medgedv_rail_attr rails[4];
	struct ibv_device_attr_ex attr;
	struct ibv_port_attr port;
	union ibv_gid gid;
	__be16 pkey;

	switch (draw_below(6)) {
	case 0: ibv_query_device_ex(side.ctx, NULL, &attr); break;
	case 1: ibv_query_port(side.ctx, 1, &port); break;
	case 2: ibv_query_gid(side.ctx, 1, odd(), &gid); break;
	case 3: ibv_query_pkey(side.ctx, 1, 0, &pkey); break;
	case 4: medgedv_query_device(side.ctx, &medge, sizeof(medge)); break;
	default:
		medgedv_query_rails(side.ctx, rails, 1 + draw_below(4),
				    sizeof(rails[0]));
	}
}

/* ---- what nobody would do ---- */

static void call_write(void)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		uint32_t body[64];
	} cmd;
	uint64_t answer, rng;

	cmd.hdr.command = draw_below(80);
	if (!draw_below(3))
		cmd.hdr.command |= IB_USER_VERBS_CMD_FLAG_EXTENDED;
	cmd.hdr.in_words = 2 + draw_below(40);
	cmd.hdr.out_words = draw_below(40);
	rng = draw() | 1;
	rng_fill(&rng, cmd.body, sizeof(cmd.body));
	for (int i = 0; i < (int)ARRAY_LEN(cmd.body); i++)
		if (draw_below(4))
			cmd.body[i] = draw_below(2) ? draw_below(12) : odd();
	answer = draw_below(8) ? (uintptr_t)scratch_end - 1024 : odd();
	memcpy(cmd.body, &answer, sizeof(answer));
	shared->commands++;
	shared->changed++;
	if (write(side.ctx->cmd_fd, &cmd, 4 * cmd.hdr.in_words) > 0)
		shared->taken++;
}

static void call_doorbell(void)
{
	const struct ibv_qp *qp = ANY(qps);

	shared->commands++;
	ring_qp(&side, qp && draw_below(4) ? qp->qp_num : odd());
}

static void call_mmap(void)
{
	size_t len = 4096 * (1 + draw_below(20));
	uint64_t offset = draw_below(3) ? 4096 * draw_below(256) :
					       odd() & ~4095ull & INT64_MAX;
	uint64_t rng = draw() | 1;
	uint8_t *at = mmap(NULL, len, 1 + draw_below(7),
			   draw_below(4) ? MAP_SHARED : MAP_PRIVATE,
			   side.ctx->cmd_fd, offset);

	if (at == MAP_FAILED)
		return;
	switch (draw_below(4)) {
	case 0:		/* over what the kernel reads */
		if (!mprotect(at, len, PROT_READ | PROT_WRITE))
			rng_fill(&rng, at, len);
		break;
	case 1:
		mremap(at, len, len + 4096, MREMAP_MAYMOVE);
		return;
	case 2:		/* stays */
		return;
	}
	munmap(at, len);
}

const struct fuzz_kind fuzz_kinds[] = {
	{ "pd", 1, call_pd },
	{ "cq", 2, call_cq },
	{ "channel", 1, call_channel },
	{ "mr", 2, call_mr },
	{ "mw", 1, call_mw },
	{ "dm", 1, call_dm },
	{ "srq", 1, call_srq },
	{ "qp", 4, call_qp },
	{ "post", 2, call_post },
	{ "ah", 1, call_ah },
	{ "group", 1, call_group },
	{ "query", 1, call_query },
	{ "write", 2, call_write },
	{ "mmap", 1, call_mmap },
	{ "doorbell", 1, call_doorbell },
};
const size_t fuzz_num_kinds = ARRAY_LEN(fuzz_kinds);

/* ---- lives ---- */

static struct ibv_device *device;
static bool covering;
static unsigned int lives, killed, late;

static void mark_end(void)
{
	if (covering)
		shared->ends[shared->num_ends++] = cover_count();
}

static void live(const struct fuzz_life *life)
{
	int file;

	alarm(LIFE_S);
	if (covering)
		cover_begin();
	side.ctx = ibv_open_device(device);
	if (!side.ctx)
		die("the device cannot be opened: %s", strerror(errno));
	memory = alloc_pages(1 << 17);
	dmabuf = udmabuf_create(1 << 16, &file);
	pds[0] = ibv_alloc_pd(side.ctx);
	cqs[0] = ibv_create_cq(side.ctx, 64, NULL, NULL, 0);
	mark_end();
	lying = true;
	for (unsigned int i = 0; i < life->num_calls; i++) {
		draw_from(&life->calls[i]);
		fuzz_kinds[life->calls[i].kind].call();
		mark_end();
	}
	/* Whoever ends without a word leaves it all to the kernel. */
	_exit(0);
}

/* The kernel's log, from when the lives began. */
static int kmsg = -1;
static regex_t complaint;

static void watch_kernel(void)
{
	const char *pattern = getenv("REPORT_PATTERN");

	if (!pattern)
		return;
	if (regcomp(&complaint, pattern, REG_EXTENDED | REG_NOSUB))
		die("REPORT_PATTERN cannot be read");
	kmsg = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (kmsg < 0 || lseek(kmsg, 0, SEEK_END) < 0)
		die("/dev/kmsg: %s", strerror(errno));
}

/* The life after which the kernel complains is the one to be told of. */
static void stop_if_complaint(const struct fuzz_life *life)
{
	char record[8192];
	ssize_t len;

	if (kmsg < 0)
		return;
	for (;;) {
		len = read(kmsg, record, sizeof(record) - 1);
		if (len < 0 && errno == EPIPE)
			continue;	/* some were lost */
		if (len <= 0)
			return;
		record[len] = 0;
		if (regexec(&complaint, record, 0, NULL, 0))
			continue;
		printf("the kernel complains: %sto be replayed:\n", record);
		life_print(stdout, life);
		exit(1);
	}
}

/*
 * A process lives @life; how many of its calls it took to go wherever nobody had
 * been before, and where it went.
 */
static unsigned int have_lived(const struct fuzz_life *life,
			       struct cover_ways *went)
{
	unsigned int last;
	int status;
	pid_t pid;

	shared->num_ends = 0;
	if (covering)
		cover_forget();
	pid = fork();
	if (!pid)
		live(life);
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		die("fork: %s", strerror(errno));
	lives++;
	killed += WIFSIGNALED(status);
	late += WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM;
	stop_if_complaint(life);
	if (!covering)
		return 0;
	/* It has died in a call. */
	if (shared->num_ends <= life->num_calls)
		mark_end();
	last = cover_learn(shared->ends, shared->num_ends, went);
	return last ? last - 1 : 0;
}

/* @life without what is not needed to go where @need says. */
static void trim(struct fuzz_life *life, const struct cover_ways *need)
{
	struct cover_ways went;

	for (unsigned int num = life->num_calls / 2; num; num /= 2) {
		for (unsigned int at = 0; at + num < life->num_calls;) {
			struct fuzz_life less = *life;

			life_cut(&less, at, num);
			have_lived(&less, &went);
			if (ways_beyond(need, &went))
				at += num;
			else
				*life = less;
		}
	}
}

/* What is new of @life is kept. */
static void try_life(struct fuzz_life *life)
{
	struct cover_ways went;
	unsigned int calls = have_lived(life, &went);

	if (!calls)
		return;
	life->num_calls = calls;
	kept_add(life, &went);
}

static void make_life(struct fuzz_life *life, uint64_t *rng)
{
	life->num_calls = 0;
	if (!kept_num() || !rng_below(rng, 4)) {
		life_append(life, LIFE_CALLS, rng);
		return;
	}
	*life = *kept_any(rng);
	life_change(life, kept_any(rng), rng);
	/* To begin a life takes longer than most of its calls. */
	if (rng_below(rng, 4))
		life_append(life, LIFE_CALLS, rng);
}

/* The lives of a file; false: that was the last. */
static bool read_life(FILE *file, struct fuzz_life *life)
{
	static char *line;
	static size_t size;

	if (getline(&line, &size, file) < 0)
		return false;
	if (!life_parse(life, line))
		die("this is no life: %s", line);
	return true;
}

static FILE *must_open(const char *path)
{
	FILE *file = fopen(path, "r");

	if (!file)
		die("%s: %s", path, strerror(errno));
	return file;
}

static void prepare(void)
{
	const char *why = cover_open();

	covering = !why;
	if (why)
		printf("uverbs_fuzz: blind, since there is no KCOV: %s\n", why);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	scratch_end = mmap(NULL, SCRATCH + 4096, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED || scratch_end == MAP_FAILED)
		die("no memory");
	scratch_end += SCRATCH;
	if (mprotect(scratch_end, 4096, PROT_NONE))
		die("mprotect: %s", strerror(errno));
	watch_kernel();
	/* What each life would find out again takes longer than most lives. */
	side_open(&side, getenv("DEV_A"), getenv("GID_A"));
	device = side.ctx->device;
}

static void say(void)
{
	struct cover_seen seen = cover_seen();

	printf("uverbs_fuzz: %u lives, %u ended by a signal, %u of them late; %lu commands, %lu changed, of those %lu taken",
	       lives, killed, late, shared->commands, shared->changed, shared->taken);
	if (covering)
		printf("; %u places, %u ways, %u lives kept", seen.num_places,
		       seen.num_ways, kept_num());
	printf("\n");
}

static void replay(const char *path)
{
	struct cover_ways went;
	struct fuzz_life life;
	FILE *file = must_open(path);

	while (read_life(file, &life))
		have_lived(&life, &went);
}

static void explore(const char *seeds, bool blind, uint64_t ms, uint64_t *rng)
{
	uint64_t half = now_ms() + ms / 2, end = now_ms() + ms;
	FILE *file = seeds ? must_open(seeds) : NULL;
	struct cover_ways went;
	struct fuzz_life life;

	/* Something new is to be tried in a short run, too. */
	while (file && now_ms() < half && read_life(file, &life))
		try_life(&life);
	while (now_ms() < end) {
		if (blind) {
			life.num_calls = 0;
			life_append(&life, LIFE_CALLS, rng);
			have_lived(&life, &went);
		} else {
			make_life(&life, rng);
			try_life(&life);
		}
	}
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "blind", no_argument, NULL, 'b' },
		{ "seeds", required_argument, NULL, 's' },
		{ "keep", required_argument, NULL, 'k' },
		{ "replay", required_argument, NULL, 'r' },
		{}
	};
	const char *seeds = NULL, *keep = NULL, *again = NULL;
	bool blind = false;
	uint64_t rng;
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 'b': blind = true; break;
		case 's': seeds = optarg; break;
		case 'k': keep = optarg; break;
		case 'r': again = optarg; break;
		default: return 2;
		}
	}
	if (argc - optind != (again ? 0 : 2))
		die("usage: uverbs_fuzz [--blind] [--seeds FILE] [--keep FILE] SECONDS SEED\n"
		    "       uverbs_fuzz --replay FILE");
	prepare();
	if (again) {
		replay(again);
	} else {
		rng = rng_seed(argv[optind + 1]);
		explore(seeds, blind || !covering,
			1000 * strtoull(argv[optind], NULL, 10), &rng);
	}
	say();
	if (keep && covering)
		kept_write(keep, trim);
	return !again && (!shared->taken || late == lives);
}
