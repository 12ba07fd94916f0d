/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Regions of memory that another device exports as a dma-buf. */
#ifndef MEDGE_DMABUF_H
#define MEDGE_DMABUF_H

#include <rdma/ib_verbs.h>

struct dma_buf;
struct ib_dmah;
struct medge_mr;

/*
 * Make @mr, whose start (in @buf) and length are set, a region of @buf, and hold
 * that. Return: 0, or a negative errno: -EOPNOTSUPP, no CPU can copy to it.
 */
int medge_dmabuf_map(struct medge_mr *mr, struct dma_buf *buf);
/* Nobody uses the region any more, if it is one. */
void medge_dmabuf_unmap(struct medge_mr *mr);

/* ib_device_ops, as the newest kernel has them */
struct ib_mr *medge_reg_dmabuf_mr(struct ib_pd *pd, u64 offset, u64 length,
				  u64 iova, int fd, int access,
				  struct ib_dmah *dmah,
				  struct uverbs_attr_bundle *attrs);

#endif /* MEDGE_DMABUF_H */
