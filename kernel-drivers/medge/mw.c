// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Memory windows: bound to a region, checked on use, invalidated. */
#include <linux/rcupdate.h>

#include "device.h"
#include "mw.h"
#include "qp.h"

enum {
	MW_ACCESS = IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ |
		    IB_ACCESS_REMOTE_ATOMIC | IB_ACCESS_LOCAL_WRITE |
		    IB_ACCESS_MW_BIND,
};

int medge_alloc_mw(struct ib_mw *ibmw, struct ib_udata *udata)
{
	struct medge_mw *mw = to_medge_mw(ibmw);
	int err;

	if (ibmw->type != IB_MW_TYPE_1 && ibmw->type != IB_MW_TYPE_2)
		return -EINVAL;
	spin_lock_init(&mw->lock);
	mw->pd = ibmw->pd;
	mw->key.is_mw = true;
	err = medge_key_publish(to_medge_device(ibmw->device), &mw->key);
	if (err)
		return err;
	mw->rkey = medge_key_make(&mw->key);
	ibmw->rkey = mw->rkey;
	return 0;
}

/* Under mw->lock. */
static void unbind(struct medge_mw *mw)
{
	if (!mw->mr)
		return;
	atomic_dec(&mw->mr->windows);
	mw->mr = NULL;
}

int medge_dealloc_mw(struct ib_mw *ibmw)
{
	struct medge_mw *mw = to_medge_mw(ibmw);

	medge_key_remove(to_medge_device(ibmw->device), &mw->key);
	spin_lock_bh(&mw->lock);
	unbind(mw);
	spin_unlock_bh(&mw->lock);
	/* ib_core frees it at once, and some may have found it just before. */
	synchronize_rcu();
	return 0;
}

static bool within(u64 addr, u64 len, u64 start, u64 length)
{
	return addr >= start && len <= length && addr - start <= length - len;
}

/* Under mw->lock. */
static bool mw_allows(const struct medge_mw *mw, const struct medge_qp *qp,
		      const struct ib_pd *pd, u32 key, u64 addr, u64 len,
		      int access)
{
	if (!mw->mr || mw->rkey != key || (mw->access & access) != access)
		return false;
	if (mw->pd != pd)
		return false;
	if (mw->ibmw.type == IB_MW_TYPE_2 && mw->qpn != qp->qpn)
		return false;
	return !len || within(addr, len, mw->addr, mw->length);
}

struct medge_mr *medge_mw_get(struct medge_key *found,
			      const struct medge_qp *qp,
			      const struct ib_pd *pd, u32 key, u64 addr,
			      u64 len, int access)
{
	struct medge_mw *mw = container_of(found, struct medge_mw, key);
	struct medge_mr *mr = NULL;

	spin_lock_bh(&mw->lock);
	if (mw_allows(mw, qp, pd, key, addr, len, access) &&
	    refcount_inc_not_zero(&mw->mr->ref))
		mr = mw->mr;
	spin_unlock_bh(&mw->lock);
	return mr;
}

/* ---- binding ---- */

static struct medge_mw *find_mw(const struct medge_qp *qp, u32 key)
{
	struct medge_key *found = medge_key_find(qp->dev, key);
	struct medge_mw *mw;

	if (!found || !found->is_mw)
		return NULL;
	mw = container_of(found, struct medge_mw, key);
	return mw->pd == qp->ibqp.pd ? mw : NULL;
}

/*
 * The region that @wqe wants to put a window on, held; NULL: it may not. Type 1
 * is bound to nothing by a length of 0, but that is the caller's business.
 */
static struct medge_mr *get_region(const struct medge_qp *qp,
				   const struct medge_send_wqe *wqe)
{
	int need = IB_ACCESS_MW_BIND;

	if (wqe->bind_access & ~(u32)MW_ACCESS)
		return NULL;
	if (wqe->bind_access & (IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC))
		need |= IB_ACCESS_LOCAL_WRITE;
	return medge_mr_get(qp, qp->ibqp.pd, wqe->bind_lkey, wqe->remote_addr,
			    wqe->bind_length, need);
}

/* Under mw->lock: a type 2 window is bound while it is free, and chooses its tag. */
static bool may_bind(const struct medge_mw *mw, const struct medge_send_wqe *wqe)
{
	if (mw->ibmw.type == IB_MW_TYPE_1)
		return true;
	return !mw->mr && wqe->bind_length && wqe->rkey != mw->rkey;
}

static bool bind(struct medge_mw *mw, const struct medge_qp *qp,
		 const struct medge_send_wqe *wqe, struct medge_mr *mr)
{
	bool ok;

	spin_lock_bh(&mw->lock);
	/* A region that is being deregistered takes no more windows. */
	ok = may_bind(mw, wqe) &&
	     (!mr || atomic_inc_unless_negative(&mr->windows));
	if (ok) {
		unbind(mw);
		mw->rkey = wqe->rkey;
		mw->addr = wqe->remote_addr;
		mw->length = wqe->bind_length;
		mw->access = wqe->bind_access;
		mw->qpn = qp->qpn;
		mw->mr = mr;
	}
	spin_unlock_bh(&mw->lock);
	return ok;
}

bool medge_mw_bind(const struct medge_qp *qp, const struct medge_send_wqe *wqe)
{
	struct medge_mr *mr = NULL;
	struct medge_mw *mw;
	bool ok = false;

	if (wqe->bind_length) {
		mr = get_region(qp, wqe);
		if (!mr)
			return false;
	}
	rcu_read_lock();
	mw = find_mw(qp, wqe->rkey);
	if (mw)
		ok = bind(mw, qp, wqe, mr);
	rcu_read_unlock();
	if (mr)
		medge_mr_put(mr);
	return ok;
}

bool medge_mw_invalidate(const struct medge_qp *qp, u32 key)
{
	struct medge_mw *mw;
	bool ok = false;

	rcu_read_lock();
	mw = find_mw(qp, key);
	if (mw) {
		spin_lock_bh(&mw->lock);
		ok = mw->ibmw.type == IB_MW_TYPE_2 && mw->mr &&
		     mw->rkey == key && mw->qpn == qp->qpn;
		if (ok)
			unbind(mw);
		spin_unlock_bh(&mw->lock);
	}
	rcu_read_unlock();
	return ok;
}
