/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Memory windows: keys for part of a region, bound and unbound by work requests. */
#ifndef MEDGE_MW_H
#define MEDGE_MW_H

#include <rdma/medge-abi.h>

#include "mr.h"

/**
 * struct medge_mw - a memory window
 * @pd: as ib_mw's, which is set only after it can be found
 * @rkey: the key bound last, tag and all; guarded, as all below it, by @lock
 * @mr: what it is bound to, counted there; NULL: it is not
 * @qpn: type 2: the QP that bound it, and alone may use it
 */
struct medge_mw {
	struct ib_mw ibmw;
	struct medge_key key;
	struct ib_pd *pd;
	spinlock_t lock;		/* BHs off; inside QP locks */
	u32 rkey;
	struct medge_mr *mr;
	u64 addr;
	u64 length;
	int access;
	u32 qpn;
};

static inline struct medge_mw *to_medge_mw(struct ib_mw *ibmw)
{
	return container_of(ibmw, struct medge_mw, ibmw);
}

/* The region behind a window's key, as medge_mr_get(), which calls it. RCU. */
struct medge_mr *medge_mw_get(struct medge_key *found,
			      const struct medge_qp *qp,
			      const struct ib_pd *pd, u32 key, u64 addr,
			      u64 len, int access);

/* A BIND_MW work request of @qp. False: it may not. Under qp->lock. */
bool medge_mw_bind(const struct medge_qp *qp, const struct medge_send_wqe *wqe);

/*
 * LOCAL_INV, or a peer's SEND_INV: the key is valid no more. False: it is not
 * one that can be invalidated, or not by @qp. Under qp->lock.
 */
bool medge_mw_invalidate(const struct medge_qp *qp, u32 key);

/* ib_device_ops */
int medge_alloc_mw(struct ib_mw *ibmw, struct ib_udata *udata);
int medge_dealloc_mw(struct ib_mw *ibmw);

#endif /* MEDGE_MW_H */
