/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Fast registration: kernel consumers' regions, made and unmade by work requests. */
#ifndef MEDGE_FRWR_H
#define MEDGE_FRWR_H

#include <rdma/medge-abi.h>

#include "mr.h"

/* Pages that a region of this kind can have. */
enum { MEDGE_MAX_FAST_PAGES = 512 };

/* A REG_MR work request of @qp. False: it may not. Under qp->lock. */
bool medge_frwr_register(const struct medge_qp *qp,
			 const struct medge_send_wqe *wqe);
/*
 * LOCAL_INV, or a peer's SEND_INV: nobody uses the region's memory any more when
 * this returns. False: it is not such a region, or is not valid. Under qp->lock.
 */
bool medge_frwr_invalidate(const struct medge_qp *qp, u32 key);

/* Where in the kernel's memory @addr of @mr is, whose pages are larger than the kernel's. */
unsigned long medge_frwr_address(const struct medge_mr *mr, u64 addr);

/* ib_device_ops */
struct ib_mr *medge_alloc_mr(struct ib_pd *pd, enum ib_mr_type type,
			     u32 max_num_sg);
int medge_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sg, int nents,
		    unsigned int *offset);

#endif /* MEDGE_FRWR_H */
