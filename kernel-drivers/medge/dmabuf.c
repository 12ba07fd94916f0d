// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Regions of another device's memory. What places frames is a CPU, so it must be
 * memory that one can copy to: the exporter maps it for the kernel, and keeps it
 * where it is until it is unmapped.
 */
#include <linux/dma-buf.h>
#include <linux/module.h>

#include "compat.h"
#include "dmabuf.h"
#include "mr.h"

/* Mapped, and what devices and CPUs see of it in step. */
static int map(struct dma_buf *buf, struct iosys_map *at)
{
	int err;

	if (!buf->ops->vmap)
		return -EOPNOTSUPP;
	err = dma_buf_begin_cpu_access(buf, DMA_BIDIRECTIONAL);
	if (err)
		return err;
	err = dma_buf_vmap_unlocked(buf, at);
	if (err)
		dma_buf_end_cpu_access(buf, DMA_BIDIRECTIONAL);
	return err;
}

static void unmap(struct dma_buf *buf, struct iosys_map *at)
{
	dma_buf_vunmap_unlocked(buf, at);
	dma_buf_end_cpu_access(buf, DMA_BIDIRECTIONAL);
}

static int find_pages(struct medge_mr *mr, const struct iosys_map *at)
{
	/* That of a bus has no pages, or none to be copied to like memory. */
	if (at->is_iomem)
		return -EOPNOTSUPP;
	return medge_mr_fill_mapped(mr, at->vaddr + mr->start);
}

int medge_dmabuf_map(struct medge_mr *mr, struct dma_buf *buf)
{
	struct iosys_map at;
	int err;

	if (!mr->length || mr->start > buf->size ||
	    mr->length > buf->size - mr->start)
		return -EINVAL;
	err = map(buf, &at);
	if (err)
		return err;
	err = find_pages(mr, &at);
	if (err) {
		kvfree(mr->pages);
		unmap(buf, &at);
		return err;
	}
	get_dma_buf(buf);
	mr->dmabuf = buf;
	mr->dmabuf_at = at;
	return 0;
}

void medge_dmabuf_unmap(struct medge_mr *mr)
{
	if (!mr->dmabuf)
		return;
	unmap(mr->dmabuf, &mr->dmabuf_at);
	dma_buf_put(mr->dmabuf);
}

struct ib_mr *medge_reg_dmabuf_mr(struct ib_pd *pd, u64 offset, u64 length,
				  u64 iova, int fd, int access,
				  struct ib_dmah *dmah,
				  struct uverbs_attr_bundle *attrs)
{
	struct dma_buf *buf;
	struct ib_mr *ibmr;

	if (dmah)
		return ERR_PTR(-EOPNOTSUPP);
	buf = dma_buf_get(fd);
	if (IS_ERR(buf))
		return ERR_CAST(buf);
	ibmr = medge_mr_of_user(pd, buf, offset, length, iova, access);
	dma_buf_put(buf);
	return ibmr;
}

MEDGE_IMPORT_DMA_BUF;
