/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Regions of memory that another device exports: what udmabuf makes of a file's
 * pages, and what the system heap has. Ends with status 77 if there is neither.
 *
 *   verbs_dmabuf [SEED]
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/dma-heap.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/ib_user_verbs.h>

#include "verbs_check.h"

enum {
	PAGE = 4096,
	BUF = 256 * PAGE,
	ACCESS = FULL_ACCESS | IBV_ACCESS_REMOTE_ATOMIC,
	REREGS = 500,
};

static struct side A, B;
static uint64_t seed;

/* ---- exporters ---- */

/* A dma-buf of BUF bytes, and where this process sees them. */
struct buffer {
	int fd;
	uint8_t *mem;
};

/* Return: there is such an exporter. */
typedef bool make_fn(struct buffer *b);

static void map_shared(struct buffer *b, int fd)
{
	b->mem = mmap(NULL, BUF, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	check(b->mem != MAP_FAILED, "mmap: %s", strerror(errno));
}

static bool make_udmabuf(struct buffer *b)
{
	int file;

	b->fd = udmabuf_create(BUF, &file);
	if (b->fd < 0)
		return false;
	/* The file's pages: what it exports is seen without its help. */
	map_shared(b, file);
	close(file);
	return true;
}

static bool make_heap(struct buffer *b)
{
	struct dma_heap_allocation_data data = {
		.len = BUF, .fd_flags = O_RDWR | O_CLOEXEC,
	};
	int dev = open("/dev/dma_heap/system", O_RDWR | O_CLOEXEC);

	if (dev < 0)
		return false;
	check(!ioctl(dev, DMA_HEAP_IOCTL_ALLOC, &data), "heap: %s",
	      strerror(errno));
	b->fd = data.fd;
	map_shared(b, data.fd);
	close(dev);
	return true;
}

static void drop(struct buffer *b)
{
	close(b->fd);
	munmap(b->mem, BUF);
}

static struct ibv_mr *reg(struct side *side, const struct buffer *b,
			  uint64_t offset, size_t len, uint64_t iova)
{
	struct ibv_mr *mr = ibv_reg_dmabuf_mr(side->pd, offset, len, iova,
					      b->fd, ACCESS);

	check(mr, "reg_dmabuf_mr: %s", strerror(errno));
	return mr;
}

/* ---- operations ---- */

/* From @from of @local to @to of @remote, or the other way. */
struct job {
	enum ibv_wr_opcode opcode;
	struct ibv_mr *local, *remote;
	uint64_t from, to;
	uint32_t len;
};

static enum ibv_wc_status do_job(struct pair *p, const struct job *job)
{
	struct ibv_sge sge = { job->from, job->len, job->local->lkey };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = job->opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = job->to, .rkey = job->remote->rkey },
	};
	struct ibv_wc wc;

	if (job->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = job->to;
		wr.wr.atomic.rkey = job->remote->rkey;
		wr.wr.atomic.compare_add = 5;
	}
	check(!ibv_post_send(p->a.qp, &wr, &bad), "a request was refused");
	check(wait_wc(p->a.scq, &wc, PATIENCE_MS), "no completion");
	return wc.status;
}

static void must_do(struct pair *p, const struct job *job, const char *what)
{
	enum ibv_wc_status status = do_job(p, job);

	check(status == IBV_WC_SUCCESS, "%s: %s", what,
	      ibv_wc_status_str(status));
}

static void must_equal(const uint8_t *got, const uint8_t *want, size_t len,
		       const char *what)
{
	size_t i;

	for (i = 0; i < len && got[i] == want[i]; i++)
		;
	check(i == len, "%s: byte %zu of %zu is %02x, not %02x", what, i, len,
	      got[i], want[i]);
}

static void pair_make(struct pair *p)
{
	const struct pair_options options = { .access = ACCESS };

	pair_create(p, &A, &B, &options);
}

/* One of what frames of several kinds carry: a few bytes, a frame's, a run's. */
static const uint32_t lengths[] = { 1, 8, 200, 3000, 20000, 200 * PAGE };

/* ---- what there must be ---- */

/* Into a part of a dma-buf, under addresses of its own, and out of it again. */
static void remote_part(const struct buffer *b, const char *what)
{
	enum { AT = 3 * PAGE + 512, LEN = BUF - 8 * PAGE };
	const uint64_t iova = 0x12345000 + AT % PAGE;
	struct ibv_mr *far = reg(&B, b, AT, LEN, iova), *mr;
	uint8_t *own = alloc_pages(2 * BUF), *at = b->mem + AT;
	struct pair p;
	size_t i;

	mr = must_reg(&A, own, 2 * BUF, ACCESS);
	pair_make(&p);
	for (i = 0; i < ARRAY_LEN(lengths); i++) {
		struct job job = {
			.opcode = IBV_WR_RDMA_WRITE, .local = mr,
			.remote = far, .len = lengths[i],
			.from = (uintptr_t)own, .to = iova,
		};

		/* All of it, but for once: where it ends is checked as well. */
		if (i + 1 == ARRAY_LEN(lengths))
			job.len = LEN;
		memset(b->mem, 0, BUF);
		rng_fill(&seed, own, job.len);
		must_do(&p, &job, what);
		must_equal(at, own, job.len, what);
		check(!at[-1] && !at[job.len], "%s: written beside it", what);
		job.opcode = IBV_WR_RDMA_READ;
		job.from += BUF;
		must_do(&p, &job, what);
		must_equal(own + BUF, own, job.len, what);
	}
	*(uint64_t *)(at + 64) = 37;
	must_do(&p, &(struct job){ IBV_WR_ATOMIC_FETCH_AND_ADD, mr, far,
				   (uintptr_t)own, iova + 64, 8 }, what);
	check(*(uint64_t *)(at + 64) == 42 && *(uint64_t *)own == 37, "%s: add",
	      what);
	check(do_job(&p, &(struct job){ IBV_WR_RDMA_WRITE, mr, far,
					(uintptr_t)own, iova + LEN - 7, 8 }) ==
	      IBV_WC_REM_ACCESS_ERR, "%s: beyond the region", what);
	pair_destroy(&p);
	ibv_dereg_mr(far);
	ibv_dereg_mr(mr);
	munmap(own, 2 * BUF);
}

/* Sent from one, received in the same buffer: by another region, of its other half. */
static void both_halves(const struct buffer *b, const char *what)
{
	struct ibv_mr *src = reg(&A, b, 0, BUF / 2, 0);
	struct ibv_mr *dst = reg(&B, b, BUF / 2, BUF / 2, 0);
	struct pair p;
	size_t i;

	pair_make(&p);
	for (i = 0; i < ARRAY_LEN(lengths); i++) {
		uint32_t len = lengths[i] < BUF / 2 ? lengths[i] : BUF / 2;
		struct ibv_sge sge = { 0, len, dst->lkey };
		struct ibv_recv_wr *bad, wr = { .sg_list = &sge, .num_sge = 1 };
		struct job job = { IBV_WR_SEND, src, dst, 0, 0, len };
		struct ibv_wc wc;

		memset(b->mem + BUF / 2, 0, BUF / 2);
		rng_fill(&seed, b->mem, len);
		check(!ibv_post_recv(p.b.qp, &wr, &bad), "receive");
		must_do(&p, &job, what);
		check(wait_wc(p.b.rcq, &wc, PATIENCE_MS) &&
		      wc.status == IBV_WC_SUCCESS, "%s: received", what);
		must_equal(b->mem + BUF / 2, b->mem, len, what);
	}
	pair_destroy(&p);
	ibv_dereg_mr(src);
	ibv_dereg_mr(dst);
}

/* The region holds the buffer; nobody has a descriptor or a mapping of it any more. */
static void held_by_region(make_fn *make, const char *what)
{
	uint8_t *own = alloc_pages(2 * BUF);
	struct ibv_mr *mr = must_reg(&A, own, 2 * BUF, ACCESS), *far;
	struct job job = { .local = mr, .len = BUF };
	struct buffer b;
	struct pair p;

	make(&b);
	far = reg(&B, &b, 0, BUF, 0);
	drop(&b);
	job.remote = far;
	pair_make(&p);
	rng_fill(&seed, own, BUF);
	job.opcode = IBV_WR_RDMA_WRITE;
	job.from = (uintptr_t)own;
	must_do(&p, &job, what);
	job.opcode = IBV_WR_RDMA_READ;
	job.from += BUF;
	must_do(&p, &job, what);
	must_equal(own + BUF, own, BUF, what);
	pair_destroy(&p);
	ibv_dereg_mr(far);
	ibv_dereg_mr(mr);
	munmap(own, 2 * BUF);
}

/* ---- regions that go while they are used ---- */

/* Who writes the same to a region, again and again, until that fails or it is told. */
struct writer {
	struct job job;
	struct pair pair;
	pthread_t thread;
	atomic_bool stop;
	atomic_ulong done;
	_Atomic enum ibv_wc_status status;
};

static void *write_on(void *arg)
{
	struct writer *w = arg;

	do {
		w->status = do_job(&w->pair, &w->job);
		atomic_fetch_add(&w->done, 1);
	} while (w->status == IBV_WC_SUCCESS && !atomic_load(&w->stop));
	return NULL;
}

static void writer_start(struct writer *w)
{
	pair_make(&w->pair);
	atomic_store(&w->stop, false);
	atomic_store(&w->done, 0);
	check(!pthread_create(&w->thread, NULL, write_on, w), "no thread");
	while (!atomic_load(&w->done))
		usleep(1000);
}

static void writer_end(struct writer *w, enum ibv_wc_status want,
		       const char *what)
{
	pthread_join(w->thread, NULL);
	check(w->status == want, "%s: %s instead of %s", what,
	      ibv_wc_status_str(w->status), ibv_wc_status_str(want));
	pair_destroy(&w->pair);
}

/* Two more of its writes begin, and end well. */
static void must_go_on(struct writer *w)
{
	unsigned long before = atomic_load(&w->done);

	while (atomic_load(&w->done) - before < 2 &&
	       w->status == IBV_WC_SUCCESS)
		usleep(1000);
	check(w->status == IBV_WC_SUCCESS, "it does not go on: %s",
	      ibv_wc_status_str(w->status));
}

/* From here on, nobody writes it. */
static void must_rest(uint8_t *mem, const char *what)
{
	size_t i;

	memset(mem, 0, BUF);
	usleep(20000);
	for (i = 0; i < BUF; i++)
		check(!mem[i], "%s: byte %zu was written since", what, i);
}

static void dereg_in_use(const struct buffer *b, const char *what)
{
	uint8_t *own = alloc_pages(BUF);
	struct writer w = { .job = { .opcode = IBV_WR_RDMA_WRITE,
				     .from = (uintptr_t)own, .len = BUF } };
	int i;

	rng_fill(&seed, own, BUF);
	w.job.local = must_reg(&A, own, BUF, ACCESS);
	for (i = 0; i < 5; i++) {
		struct ibv_mr *far = reg(&B, b, 0, BUF, 0);

		w.job.remote = far;
		w.job.remote = &(struct ibv_mr){ .rkey = far->rkey };
		writer_start(&w);
		usleep(rng_below(&seed, 3000));
		check(!ibv_dereg_mr(far), "dereg");
		must_rest(b->mem, what);
		writer_end(&w, IBV_WC_REM_ACCESS_ERR, what);
	}
	ibv_dereg_mr(w.job.local);
	munmap(own, BUF);
}

/* The command itself: libibverbs refuses it for such regions, the kernel does not. */
static void rereg(struct ibv_mr *mr, uint32_t flags, struct ibv_pd *pd,
		  void *addr, int access)
{
	struct ib_uverbs_rereg_mr_resp resp = {};
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_rereg_mr rereg;
	} cmd = {
		.hdr = { IB_USER_VERBS_CMD_REREG_MR, sizeof(cmd) / 4,
			 sizeof(resp) / 4 },
		.rereg = {
			.response = (uintptr_t)&resp,
			.mr_handle = mr->handle,
			.flags = flags,
			.start = (uintptr_t)addr,
			.length = BUF,
			.hca_va = (uintptr_t)addr,
			.pd_handle = pd->handle,
			.access_flags = access,
		},
	};

	check(write(mr->context->cmd_fd, &cmd, sizeof(cmd)) == sizeof(cmd),
	      "rereg, flags %x: %s", flags, strerror(errno));
	check(resp.rkey == mr->rkey, "rereg, flags %x: another key", flags);
}

/* Other rights, another PD, and other memory: what is not used any more rests. */
static void rereg_in_use(const struct buffer *b, const char *what)
{
	uint8_t *own = alloc_pages(2 * BUF), *other = own + BUF;
	struct writer w = { .job = { .opcode = IBV_WR_RDMA_WRITE,
				     .from = (uintptr_t)own, .len = BUF } };
	struct ibv_mr *far = reg(&B, b, 0, BUF, (uintptr_t)other);
	struct ibv_pd *pd = ibv_alloc_pd(B.ctx);
	int i;

	check(pd, "no PD");
	w.job.to = (uintptr_t)other;
	w.job.remote = far;
	rng_fill(&seed, own, BUF);
	w.job.local = must_reg(&A, own, BUF, ACCESS);
	writer_start(&w);
	/* Who has found the old region as it goes is to find the new one. */
	for (i = 0; i < REREGS; i++)
		rereg(far, IBV_REREG_MR_CHANGE_ACCESS, B.pd, NULL, i & 1 ?
		      ACCESS | IBV_ACCESS_RELAXED_ORDERING : ACCESS);
	memset(b->mem, 0, BUF);
	must_go_on(&w);
	must_equal(b->mem, own, BUF, what);
	rereg(far, IBV_REREG_MR_CHANGE_TRANSLATION, B.pd, other, 0);
	must_rest(b->mem, what);
	must_go_on(&w);
	must_equal(other, own, BUF, what);
	atomic_store(&w.stop, true);
	writer_end(&w, IBV_WC_SUCCESS, what);
	ibv_dereg_mr(far);

	far = reg(&B, b, 0, BUF, (uintptr_t)other);
	w.job.remote = far;
	writer_start(&w);
	rereg(far, IBV_REREG_MR_CHANGE_PD, pd, NULL, 0);
	must_rest(b->mem, what);
	writer_end(&w, IBV_WC_REM_ACCESS_ERR, what);
	ibv_dereg_mr(far);
	check(!ibv_dealloc_pd(pd), "dealloc_pd");
	ibv_dereg_mr(w.job.local);
	munmap(own, 2 * BUF);
}

/* ---- processes ---- */

/* What the child has written is there for the peer; its end does no harm. */
static void forked(const struct buffer *b, const char *what)
{
	uint8_t *own = alloc_pages(BUF);
	struct ibv_mr *mr = must_reg(&A, own, BUF, ACCESS);
	struct ibv_mr *far = reg(&B, b, 0, BUF, 0);
	struct job job = { IBV_WR_RDMA_READ, mr, far, (uintptr_t)own, 0, BUF };
	struct pair p;
	int status;
	pid_t child;

	pair_make(&p);
	memset(b->mem, 0, BUF);
	child = fork();
	check(child >= 0, "fork: %s", strerror(errno));
	if (!child) {
		close(b->fd);
		memset(b->mem, 0x5a, BUF);
		_exit(0);
	}
	check(waitpid(child, &status, 0) == child && !status, "child");
	must_do(&p, &job, what);
	must_equal(own, b->mem, BUF, what);
	check(own[BUF - 1] == 0x5a, "%s: not what the child wrote", what);
	job.opcode = IBV_WR_RDMA_WRITE;
	rng_fill(&seed, own, BUF);
	must_do(&p, &job, what);
	must_equal(b->mem, own, BUF, what);
	pair_destroy(&p);
	ibv_dereg_mr(far);
	ibv_dereg_mr(mr);
	munmap(own, BUF);
}

/* Is never done; its buffer is its own, and nobody else holds it. */
static void child_writes(make_fn *make, int ready)
{
	struct writer w = { .job = { .opcode = IBV_WR_RDMA_WRITE, .len = BUF } };
	struct buffer b;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	side_open_both(&A, &B);
	make(&b);
	w.job.local = reg(&A, &b, 0, BUF, 0);
	w.job.remote = reg(&B, &b, 0, BUF, 0);
	writer_start(&w);
	check(write(ready, "", 1) == 1, "pipe");
	pthread_join(w.thread, NULL);
	die("a child cannot write: %s", ibv_wc_status_str(w.status));
}

static void killed(make_fn *make, const char *what)
{
	int ready[2], status, i;
	char byte;

	for (i = 0; i < 3; i++) {
		pid_t child;

		check(!pipe(ready), "pipe");
		child = fork();
		check(child >= 0, "fork: %s", strerror(errno));
		if (!child) {
			close(ready[0]);
			child_writes(make, ready[1]);
		}
		close(ready[1]);
		check(read(ready[0], &byte, 1) == 1, "%s: no writing child", what);
		close(ready[0]);
		usleep(rng_below(&seed, 3000));
		kill(child, SIGKILL);
		check(waitpid(child, &status, 0) == child &&
		      WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL,
		      "%s: the child ended by itself", what);
	}
}

/* ---- what there must not be ---- */

static void must_refuse(int fd, uint64_t offset, size_t len, uint64_t iova,
			int access, int err, int line)
{
	struct ibv_mr *mr = ibv_reg_dmabuf_mr(B.pd, offset, len, iova, fd, access);

	check(!mr, "line %d: a bad region was registered", line);
	check(errno == err, "line %d: %s instead of %s", line, strerror(errno),
	      strerror(err));
}

#define must_refuse(...) must_refuse(__VA_ARGS__, __LINE__)

static void refusals(const struct buffer *b)
{
	int closed = dup(b->fd);

	close(closed);
	must_refuse(closed, 0, PAGE, 0, ACCESS, EBADF);
	must_refuse(-1, 0, PAGE, 0, ACCESS, EBADF);
	must_refuse(STDERR_FILENO, 0, PAGE, 0, ACCESS, EINVAL);
	must_refuse(b->fd, 0, BUF + 1, 0, ACCESS, EINVAL);
	must_refuse(b->fd, PAGE, BUF, 0, ACCESS, EINVAL);
	must_refuse(b->fd, BUF, 1, 0, ACCESS, EINVAL);
	must_refuse(b->fd, 16ULL * BUF, 1, 0, ACCESS, EINVAL);
	must_refuse(b->fd, -PAGE, 2 * PAGE, 0, ACCESS, EINVAL);
	must_refuse(b->fd, 0, 0, 0, ACCESS, EINVAL);
	must_refuse(b->fd, 0, 2 * PAGE, -PAGE, ACCESS, EINVAL);
	must_refuse(b->fd, 8, PAGE, 0, ACCESS, EINVAL);
	must_refuse(b->fd, 0, PAGE, 0, IBV_ACCESS_REMOTE_WRITE, EINVAL);
	must_refuse(b->fd, 0, PAGE, 0, ACCESS | IBV_ACCESS_ON_DEMAND, EINVAL);
	must_refuse(b->fd, 0, PAGE, 0, ACCESS | IBV_ACCESS_MW_BIND, EINVAL);
}

/* A region to read is to be read only. */
static void read_only(const struct buffer *b)
{
	uint8_t *own = alloc_pages(PAGE);
	struct ibv_mr *mr = must_reg(&A, own, PAGE, ACCESS), *far;
	struct job job = { IBV_WR_RDMA_READ, mr, NULL, (uintptr_t)own, 0, PAGE };
	struct pair p;

	far = ibv_reg_dmabuf_mr(B.pd, 0, PAGE, 0, b->fd, IBV_ACCESS_REMOTE_READ);
	check(far, "to read: %s", strerror(errno));
	job.remote = far;
	pair_make(&p);
	rng_fill(&seed, b->mem, PAGE);
	must_do(&p, &job, "to read");
	must_equal(own, b->mem, PAGE, "to read");
	job.opcode = IBV_WR_RDMA_WRITE;
	check(do_job(&p, &job) == IBV_WC_REM_ACCESS_ERR, "written all the same");
	pair_destroy(&p);
	ibv_dereg_mr(far);
	ibv_dereg_mr(mr);
	munmap(own, PAGE);
}

/* An exporter that maps nothing for CPUs: udmabuf before Linux 6.2. */
static bool maps_nothing(const struct buffer *b)
{
	struct ibv_mr *mr = ibv_reg_dmabuf_mr(B.pd, 0, BUF, 0, b->fd, ACCESS);

	if (!mr && errno == EOPNOTSUPP)
		return true;
	check(mr, "reg_dmabuf_mr: %s", strerror(errno));
	ibv_dereg_mr(mr);
	return false;
}

static bool try_exporter(make_fn *make, const char *what)
{
	struct buffer b;

	/* Without anything of ours that a child would have, too. */
	if (!make(&b))
		return false;
	side_open_both(&A, &B);
	if (maps_nothing(&b)) {
		printf("%s: EOPNOTSUPP\n", what);
		drop(&b);
		side_close(&A);
		side_close(&B);
		return true;
	}
	refusals(&b);
	read_only(&b);
	remote_part(&b, what);
	both_halves(&b, what);
	held_by_region(make, what);
	dereg_in_use(&b, what);
	rereg_in_use(&b, what);
	forked(&b, what);
	drop(&b);
	side_close(&A);
	side_close(&B);
	killed(make, what);
	printf("%s: good\n", what);
	return true;
}

int main(int argc, char **argv)
{
	bool any;

	seed = rng_seed(argc > 1 ? argv[1] : NULL);
	any = try_exporter(make_udmabuf, "udmabuf");
	any |= try_exporter(make_heap, "system heap");
	return any ? 0 : 77;
}
