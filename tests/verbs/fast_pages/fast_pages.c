// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Fast registration with pages of all sizes, as a consumer in the kernel does it: what is written to a region lands
 * where its pages are and nowhere else, what is read is what is there, and what cannot be is refused.
 *
 *	insmod fast_pages.ko device=medge_t gid=1 seed=7
 *
 * Two QPs of the device are joined. It stays loaded if all went well; else the kernel's log says what did not.
 */
#include <linux/etherdevice.h>
#include <linux/module.h>
#include <linux/prandom.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_verbs.h>

enum {
	BLOCKS = 4,		/* pages of a region, the first and the last used in part */
	ROUNDS = 30,		/* of each size */
	WAIT_MS = 10000,
	FILLED = 0x5a,		/* what nobody has written to */
};

static const u32 sizes[] = { PAGE_SIZE, 2 * PAGE_SIZE, SZ_64K, SZ_128K, SZ_1M };
static const u32 wrong[] = { 0, 1, PAGE_SIZE / 2, PAGE_SIZE + 1, 3 * PAGE_SIZE, U32_MAX };

static char *device = "";
module_param(device, charp, 0444);
static int gid;
module_param(gid, int, 0444);
static ullong seed = 1;
module_param(seed, ullong, 0444);

static struct ib_device *dev;
static struct ib_pd *pd;
static struct ib_cq *cq;
static struct ib_qp *qps[2];
static struct rnd_state rnd;

/* One region, and what is written to it and read from it. */
static struct {
	u32 size, len;
	u8 *block[BLOCKS];
	struct scatterlist sg[BLOCKS];
	struct ib_mr *mr;
	u8 *there, *back;	/* as long as all blocks */
} job;

#define CHECK(cond, fmt, ...) ({						\
	bool holds = (cond);							\
	if (!holds)								\
		pr_err("fast_pages: line %d, size %u: " fmt "\n", __LINE__,	\
		       job.size, ##__VA_ARGS__);				\
	holds;									\
})

static u32 below(u32 n)
{
	return prandom_u32_state(&rnd) % n;
}

/* ---- two QPs ---- */

static int found(struct ib_device *ibdev)
{
	if (!strcmp(dev_name(&ibdev->dev), device))
		dev = ibdev;
	return 0;
}

static void lost(struct ib_device *ibdev, void *data)
{
}

static struct ib_client client = {
	.name = "fast_pages",
	.add = found,
	.remove = lost,
};

static struct ib_qp *make_qp(void)
{
	struct ib_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { .max_send_wr = 8, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
		.sq_sig_type = IB_SIGNAL_ALL_WR,
		.qp_type = IB_QPT_RC,
	};

	return ib_create_qp(pd, &init);
}

static int join(struct ib_qp *qp, struct ib_qp *peer)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE,
	};
	const struct ib_gid_attr *own = rdma_get_gid_attr(dev, 1, gid);
	u8 mac[ETH_ALEN];
	int err;

	if (IS_ERR(own))
		return PTR_ERR(own);
	err = rdma_read_gid_l2_fields(own, NULL, mac);
	if (!err)
		err = ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS);
	attr = (struct ib_qp_attr) {
		.qp_state = IB_QPS_RTR,
		.path_mtu = IB_MTU_1024,
		.dest_qp_num = peer->qp_num,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr.type = RDMA_AH_ATTR_TYPE_ROCE,
	};
	rdma_ah_set_port_num(&attr.ah_attr, 1);
	rdma_ah_set_grh(&attr.ah_attr, (union ib_gid *)&own->gid, 0, gid, 64, 0);
	ether_addr_copy(attr.ah_attr.roce.dmac, mac);
	rdma_put_gid_attr(own);
	if (!err)
		err = ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN |
				   IB_QP_RQ_PSN | IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER);
	attr = (struct ib_qp_attr) {
		.qp_state = IB_QPS_RTS,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 1,
	};
	if (!err)
		err = ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_TIMEOUT | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY |
				   IB_QP_SQ_PSN | IB_QP_MAX_QP_RD_ATOMIC);
	return err;
}

/* How a request of QP @qp ends. */
static int ended(struct ib_qp *qp, const struct ib_send_wr *wr)
{
	unsigned long until = jiffies + msecs_to_jiffies(WAIT_MS);
	struct ib_wc wc;
	int err = ib_post_send(qp, wr, NULL);

	if (err)
		return err;
	while (!ib_poll_cq(cq, 1, &wc)) {
		if (time_after(jiffies, until))
			return -ETIMEDOUT;
		usleep_range(20, 50);
	}
	return wc.status;
}

/* ---- one region ---- */

static void free_job(void)
{
	int i;

	if (!IS_ERR_OR_NULL(job.mr))
		ib_dereg_mr(job.mr);
	for (i = 0; i < BLOCKS; i++)
		if (job.block[i])
			free_pages_exact(job.block[i], job.size);
	kfree(job.there);
	kfree(job.back);
	memset(&job, 0, sizeof(job));
}

static bool make_job(u32 size)
{
	int i;

	job.size = size;
	job.mr = ib_alloc_mr(pd, IB_MR_TYPE_MEM_REG, BLOCKS);
	job.there = kmalloc(BLOCKS * size, GFP_KERNEL);
	job.back = kmalloc(BLOCKS * size, GFP_KERNEL);
	for (i = 0; i < BLOCKS; i++) {
		job.block[i] = alloc_pages_exact(size, GFP_KERNEL);
		if (!CHECK(job.block[i], "no memory"))
			return false;
	}
	return CHECK(!IS_ERR(job.mr) && job.there && job.back, "no region");
}

/* From somewhere in the first block to somewhere in the last. */
static void choose_memory(void)
{
	u32 from = below(job.size), to = 1 + below(job.size);
	int i;

	for (i = 0; i < BLOCKS; i++)
		memset(job.block[i], FILLED, job.size);
	prandom_bytes_state(&rnd, job.there, BLOCKS * job.size);
	sg_init_table(job.sg, BLOCKS);
	sg_set_buf(&job.sg[0], job.block[0] + from, job.size - from);
	for (i = 1; i < BLOCKS - 1; i++)
		sg_set_buf(&job.sg[i], job.block[i], job.size);
	sg_set_buf(&job.sg[BLOCKS - 1], job.block[BLOCKS - 1], to);
	job.len = (BLOCKS - 1) * job.size - from + to;
}

static bool is_refused(void)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(wrong); i++) {
		int n = ib_map_mr_sg(job.mr, job.sg, BLOCKS, NULL, wrong[i]);

		if (!CHECK(n == -EINVAL, "pages of %u: %d", wrong[i], n))
			return false;
	}
	return true;
}

/* A block ends early: the region ends with it. */
static bool stops_at_gap(void)
{
	int n;

	job.sg[1].length -= 8;
	sg_dma_len(&job.sg[1]) = job.sg[1].length;
	n = ib_map_mr_sg(job.mr, job.sg, BLOCKS, NULL, job.size);
	job.sg[1].length += 8;
	sg_dma_len(&job.sg[1]) = job.sg[1].length;
	return CHECK(n == 2, "a gap after 2: %d", n);
}

static int register_job(void)
{
	struct ib_reg_wr wr = {
		.wr.opcode = IB_WR_REG_MR,
		.mr = job.mr,
		.access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ,
	};

	ib_update_fast_reg_key(job.mr, ib_inc_rkey(job.mr->rkey));
	wr.key = job.mr->rkey;
	return ended(qps[1], &wr.wr);
}

static int invalidate_job(void)
{
	struct ib_send_wr wr = { .opcode = IB_WR_LOCAL_INV, .ex.invalidate_rkey = job.mr->rkey };

	return ended(qps[1], &wr);
}

static int move(enum ib_wr_opcode opcode, u8 *own, u32 at, u32 len)
{
	struct ib_sge sge = {
		.addr = ib_dma_map_single(dev, own, len, DMA_BIDIRECTIONAL),
		.length = len,
		.lkey = pd->local_dma_lkey,
	};
	struct ib_rdma_wr wr = {
		.wr = { .opcode = opcode, .sg_list = &sge, .num_sge = 1 },
		.remote_addr = job.mr->iova + at,
		.rkey = job.mr->rkey,
	};
	int status = ended(qps[0], &wr.wr);

	ib_dma_unmap_single(dev, sge.addr, len, DMA_BIDIRECTIONAL);
	return status;
}

/* Byte for byte, and nothing beside it. */
static bool is_there(void)
{
	u8 *want = job.there;
	int i;

	for (i = 0; i < BLOCKS; i++) {
		u8 *part = sg_virt(&job.sg[i]), *end = job.block[i] + job.size;
		u32 len = job.sg[i].length;

		if (!CHECK(!memcmp(part, want, len), "block %d has something else", i) ||
		    !CHECK(!memchr_inv(job.block[i], FILLED, part - job.block[i]), "written before block %d", i) ||
		    !CHECK(!memchr_inv(part + len, FILLED, end - part - len), "written after block %d", i))
			return false;
		want += len;
	}
	return true;
}

static bool one_round(bool moved)
{
	u32 at, len;
	int n;

	choose_memory();
	n = ib_dma_map_sg(dev, job.sg, BLOCKS, DMA_BIDIRECTIONAL);
	if (!CHECK(n == BLOCKS, "%d mapped", n) || !is_refused() || !stops_at_gap())
		return false;
	n = ib_map_mr_sg(job.mr, job.sg, BLOCKS, NULL, job.size);
	if (!CHECK(n == BLOCKS && job.mr->length == job.len, "%d parts, %llu bytes", n, job.mr->length))
		return false;
	/* Consumers may name the region's addresses as they like, but for the place in a page. */
	if (moved)
		job.mr->iova = ((u64)prandom_u32_state(&rnd) << 32) | (job.mr->iova & (job.size - 1));
	n = register_job();
	if (!CHECK(!n, "registering: %d", n))
		return false;
	at = below(job.len);
	n = move(IB_WR_RDMA_WRITE, job.there, 0, at);
	n = n ?: move(IB_WR_RDMA_WRITE, job.there + at, at, job.len - at);
	if (!CHECK(!n, "writing: %d", n) || !is_there())
		return false;
	at = below(job.len);
	len = 1 + below(job.len - at);
	memset(job.back, 0, len);
	n = move(IB_WR_RDMA_READ, job.back, at, len);
	if (!CHECK(!n, "reading: %d", n) ||
	    !CHECK(!memcmp(job.back, job.there + at, len), "read something else, %u bytes at %u", len, at))
		return false;
	n = invalidate_job();
	ib_dma_unmap_sg(dev, job.sg, BLOCKS, DMA_BIDIRECTIONAL);
	return CHECK(!n, "invalidating: %d", n);
}

static bool all_sizes(void)
{
	bool good = true;
	int i, r;

	for (i = 0; good && i < ARRAY_SIZE(sizes); i++) {
		good = make_job(sizes[i]);
		for (r = 0; good && r < ROUNDS; r++)
			good = one_round(r % 2);
		free_job();
	}
	return good;
}

/* It ends the QPs. */
static bool past_the_end(void)
{
	bool good = make_job(SZ_128K);
	int n = 0;

	if (!good)
		goto out;
	choose_memory();
	ib_dma_map_sg(dev, job.sg, BLOCKS, DMA_BIDIRECTIONAL);
	n = ib_map_mr_sg(job.mr, job.sg, BLOCKS, NULL, job.size);
	n = n == BLOCKS ? register_job() : -EINVAL;
	n = n ?: move(IB_WR_RDMA_WRITE, job.there, job.len - 1, 2);
	good = CHECK(n == IB_WC_REM_ACCESS_ERR, "a byte past the end: %d", n);
	ib_dma_unmap_sg(dev, job.sg, BLOCKS, DMA_BIDIRECTIONAL);
out:
	free_job();
	return good;
}

static int try(void)
{
	int err;

	pd = ib_alloc_pd(dev, 0);
	if (IS_ERR(pd))
		return PTR_ERR(pd);
	cq = ib_alloc_cq(dev, NULL, 32, 0, IB_POLL_DIRECT);
	err = PTR_ERR_OR_ZERO(cq);
	if (err)
		goto no_cq;
	qps[0] = make_qp();
	err = PTR_ERR_OR_ZERO(qps[0]);
	if (err)
		goto no_qp;
	qps[1] = make_qp();
	err = PTR_ERR_OR_ZERO(qps[1]);
	if (err)
		goto no_peer;
	err = join(qps[0], qps[1]);
	err = err ?: join(qps[1], qps[0]);
	if (!err && !(all_sizes() && past_the_end()))
		err = -EIO;
	ib_destroy_qp(qps[1]);
no_peer:
	ib_destroy_qp(qps[0]);
no_qp:
	ib_free_cq(cq);
no_cq:
	ib_dealloc_pd(pd);
	return err;
}

static int __init fast_pages_init(void)
{
	int err;

	prandom_seed_state(&rnd, seed);
	err = ib_register_client(&client);
	if (err)
		return err;
	err = dev ? try() : -ENODEV;
	ib_unregister_client(&client);
	return err;
}

static void __exit fast_pages_exit(void)
{
}

module_init(fast_pages_init);
module_exit(fast_pages_exit);
MODULE_DESCRIPTION("Fast registration with pages of all sizes");
MODULE_LICENSE("Dual BSD/GPL");
