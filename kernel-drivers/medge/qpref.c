// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* QPs found by their numbers, and who is at work on them. */
#include <linux/bitops.h>
#include <linux/random.h>
#include <linux/slab.h>

#include "compat.h"
#include "device.h"
#include "qp.h"
#include "qpref.h"

/* ---- the table ---- */

/* Inline, as memcmp() is not. */
static int qpn_differs(struct rhashtable_compare_arg *arg, const void *obj)
{
	const struct medge_qp_ref *ref = obj;

	return ref->qpn != *(const u32 *)arg->key;
}

/* They fill blocks, which are random: as they are, they spread well. */
static u32 qpn_hash(const void *data, u32 len, u32 seed)
{
	return *(const u32 *)data;
}

static const struct rhashtable_params qpn_params = {
	.hashfn = qpn_hash,
	.obj_cmpfn = qpn_differs,
	.key_len = sizeof_field(struct medge_qp_ref, qpn),
	.key_offset = offsetof(struct medge_qp_ref, qpn),
	.head_offset = offsetof(struct medge_qp_ref, node),
	.automatic_shrinking = true,
};

int medge_qps_init(struct medge_qps *qps, u32 limit)
{
	mutex_init(&qps->lock);
	INIT_LIST_HEAD(&qps->list);
	atomic_set(&qps->limit, limit);
	return rhashtable_init(&qps->table, &qpn_params);
}

void medge_qps_destroy(struct medge_qps *qps)
{
	WARN_ON(!list_empty(&qps->list));
	rhashtable_destroy(&qps->table);
	mutex_destroy(&qps->lock);
}

/* 0 and 1 are the special QPs' in verbs, and the last stands for all members of a group. */
static bool is_reserved(u32 qpn)
{
	return qpn < 2 || qpn == BIT(24) - 1;
}

/*
 * A number of the block that has not been had since the block was drawn, any of
 * those. ib_core keeps QPs in an xarray by number: of 64 neighbours each takes a slot
 * of one node, while one that has no neighbour takes two nodes, more than a KiB.
 */
static u32 draw_qpn(struct medge_qps *qps)
{
	u32 at;

	do {
		if (!qps->unused) {
			qps->block = round_down(get_random_u32_below(BIT(24)),
						64);
			qps->unused = ~0ULL;
		}
		at = get_random_u32_below(64);
		at = (at + __ffs64(ror64(qps->unused, at))) % 64;
		qps->unused &= ~BIT_ULL(at);
	} while (is_reserved(qps->block + at));
	return qps->block + at;
}

/* Under qps->lock. */
static int insert(struct medge_qps *qps, struct medge_qp_ref *ref, bool gsi)
{
	int err;

	do {
		ref->qpn = gsi ? 1 : draw_qpn(qps);
		err = rhashtable_lookup_insert_fast(&qps->table, &ref->node,
						    qpn_params);
	} while (err == -EEXIST && !gsi);
	return err == -EEXIST ? -EBUSY : err;
}

int medge_qp_publish(struct medge_qp *qp)
{
	struct medge_qps *qps = &qp->dev->qps;
	int err = -ENOMEM;

	if (!atomic_add_unless(&qps->limit, -1, 0))
		return -ENOMEM;
	qp->ref = kzalloc(sizeof(*qp->ref), GFP_KERNEL_ACCOUNT);
	if (!qp->ref)
		goto no_ref;
	init_completion(&qp->ref->unused);
	qp->ref->ibqp = &qp->ibqp;
	mutex_lock(&qps->lock);
	err = insert(qps, qp->ref, qp->ibqp.qp_type == IB_QPT_GSI);
	mutex_unlock(&qps->lock);
	if (err)
		goto no_number;
	qp->qpn = qp->ref->qpn;
	qp->ibqp.qp_num = qp->qpn;
	medge_qp_open(qp);
	mutex_lock(&qps->lock);
	list_add_tail(&qp->ref->entry, &qps->list);
	mutex_unlock(&qps->lock);
	return 0;

no_number:
	kfree(qp->ref);
no_ref:
	atomic_inc(&qps->limit);
	return err;
}

void medge_qp_withdraw(struct medge_qp *qp)
{
	struct medge_qps *qps = &qp->dev->qps;

	mutex_lock(&qps->lock);
	list_del(&qp->ref->entry);
	mutex_unlock(&qps->lock);
	rhashtable_remove_fast(&qps->table, &qp->ref->node, qpn_params);
	kfree_rcu(qp->ref, rcu);
	atomic_inc(&qps->limit);
}

struct medge_qp_ref *medge_qp_find(struct medge_device *dev, u32 qpn)
{
	return rhashtable_lookup(&dev->qps.table, &qpn, qpn_params);
}

/* ---- who is at work on it ---- */

static void put_ref(struct medge_qp_ref *ref)
{
	if (refcount_dec_and_test(&ref->users))
		complete(&ref->unused);
}

struct medge_qp *medge_qp_ref_get(struct medge_qp_ref *ref)
{
	struct medge_qp *qp;

	if (!refcount_inc_not_zero(&ref->users))
		return NULL;
	qp = READ_ONCE(ref->qp);
	if (!qp)
		put_ref(ref);
	return qp;
}

struct medge_qp *medge_qp_get(struct medge_device *dev, u32 qpn)
{
	struct medge_qp_ref *ref = medge_qp_find(dev, qpn);

	return ref ? medge_qp_ref_get(ref) : NULL;
}

bool medge_qp_hold(struct medge_qp *qp)
{
	return medge_qp_ref_get(qp->ref);
}

void medge_qp_put(struct medge_qp *qp)
{
	/* The QP may be gone before complete() has returned; its ref is not. */
	rcu_read_lock();
	put_ref(qp->ref);
	rcu_read_unlock();
}

void medge_qp_close(struct medge_qp *qp)
{
	WRITE_ONCE(qp->ref->qp, NULL);
	if (!refcount_dec_and_test(&qp->ref->users))
		wait_for_completion(&qp->ref->unused);
}

void medge_qp_open(struct medge_qp *qp)
{
	reinit_completion(&qp->ref->unused);
	WRITE_ONCE(qp->ref->qp, qp);
	refcount_set_release(&qp->ref->users, 1);
}

void medge_qps_each(struct medge_device *dev,
		    void (*visit)(struct medge_qp *qp, void *arg), void *arg)
{
	struct medge_qp_ref *ref;
	struct medge_qp *qp;

	mutex_lock(&dev->qps.lock);
	list_for_each_entry(ref, &dev->qps.list, entry) {
		qp = medge_qp_ref_get(ref);
		if (qp) {
			visit(qp, arg);
			medge_qp_put(qp);
		}
		cond_resched();
	}
	mutex_unlock(&dev->qps.lock);
}
