// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Memory regions: found by random key, and checked on each use. */
#include <linux/hash.h>
#include <linux/random.h>

#include "device.h"
#include "mr.h"
#include "mw.h"
#include "qp.h"

/* ---- keys ---- */

/* Inline, as memcmp() is not. */
static int key_differs(struct rhashtable_compare_arg *arg, const void *obj)
{
	const struct medge_key *key = obj;

	return key->index != *(const u32 *)arg->key;
}

/* They are random as they are. */
static u32 key_hash(const void *data, u32 len, u32 seed)
{
	return hash_32(*(const u32 *)data, 32);
}

static const struct rhashtable_params key_params = {
	.hashfn = key_hash,
	.obj_cmpfn = key_differs,
	.key_len = sizeof_field(struct medge_key, index),
	.key_offset = offsetof(struct medge_key, index),
	.head_offset = offsetof(struct medge_key, node),
	.automatic_shrinking = true,
};

int medge_mr_table_init(struct medge_device *dev)
{
	return rhashtable_init(&dev->mrs, &key_params);
}

void medge_mr_table_destroy(struct medge_device *dev)
{
	rhashtable_destroy(&dev->mrs);
}

/* Random keys: who does not know one cannot find one by counting. */
int medge_key_publish(struct medge_device *dev, struct medge_key *key)
{
	int err;

	do {
		do {
			key->index = get_random_u32() >> MEDGE_KEY_TAG_BITS;
		} while (!key->index);
		err = rhashtable_lookup_insert_fast(&dev->mrs, &key->node,
						    key_params);
	} while (err == -EEXIST);
	return err;
}

int medge_key_replace(struct medge_device *dev, struct medge_key *old, struct medge_key *new)
{
	return rhashtable_replace_fast(&dev->mrs, &old->node, &new->node, key_params);
}

void medge_key_remove(struct medge_device *dev, struct medge_key *key)
{
	rhashtable_remove_fast(&dev->mrs, &key->node, key_params);
}

struct medge_key *medge_key_find(struct medge_device *dev, u32 key)
{
	u32 index = key >> MEDGE_KEY_TAG_BITS;

	return rhashtable_lookup(&dev->mrs, &index, key_params);
}

u32 medge_key_make(const struct medge_key *key)
{
	return key->index << MEDGE_KEY_TAG_BITS | get_random_u8();
}

/* ---- regions ---- */

/* Four times an op: a call would be a good part of what it takes. */
static __always_inline bool mr_allows(const struct medge_mr *mr,
				      const struct ib_pd *pd,
				      u64 addr, u64 len, int access)
{
	/*
	 * Pairs with its release: what else is looked at is of this registration. Other
	 * regions have but one, and an acquire is a full barrier on some machines.
	 */
	if (mr->max_pages && smp_load_acquire(&mr->invalid))
		return false;
	if (mr->ibmr.pd != pd || (mr->access & access) != access)
		return false;
	if (!len)
		return true;
	return addr >= mr->iova && len <= mr->length &&
	       addr - mr->iova <= mr->length - len;
}

/* Its last reference has gone since it was found. Was it for another, which has its key? */
static bool has_successor(const struct medge_mr *mr)
{
	/* That it was replaced was said before. */
	smp_rmb();
	return READ_ONCE(mr->replaced);
}

/*
 * The region that was found under @key, or who has followed it, with a reference; NULL:
 * there is none. What it allows is looked at after that: until then, a fast
 * registration may be made void and be made anew, with other bounds. RCU.
 */
static __always_inline struct medge_mr *get_region(struct medge_device *dev,
						   struct medge_key *found,
						   u32 key)
{
	struct medge_mr *mr;

	for (; found && !found->is_mw; found = medge_key_find(dev, key)) {
		mr = container_of(found, struct medge_mr, key);
		if (mr->ibmr.rkey != key)
			break;
		if (refcount_inc_not_zero(&mr->ref)) {
			if (mr->max_pages) {
				/* Who invalidates looks at the users after that. */
				smp_mb__after_atomic();
			}
			return mr;
		}
		if (!has_successor(mr))
			break;
	}
	return NULL;
}

struct medge_mr *medge_mr_get(const struct medge_qp *qp,
			      const struct ib_pd *pd, u32 key, u64 addr,
			      u64 len, int access)
{
	struct medge_key *found;
	struct medge_mr *mr = NULL;

	rcu_read_lock();
	found = medge_key_find(qp->dev, key);
	if (found && found->is_mw) {
		if (access & MEDGE_REMOTE_RIGHTS)
			mr = medge_mw_get(found, qp, pd, key, addr, len, access);
	} else {
		mr = get_region(qp->dev, found, key);
		if (mr && !mr_allows(mr, pd, addr, len, access)) {
			medge_mr_put(mr);
			mr = NULL;
		}
	}
	rcu_read_unlock();
	return mr;
}

/* Under @qp's lock. What is found is the region at hand, without a reference; NULL: it is not. */
static __always_inline struct medge_mr *at_hand(const struct medge_qp *qp,
						const struct ib_pd *pd, u32 key,
						u64 addr, u64 len, int access)
{
	struct medge_mr *mr = qp->mr;

	return mr && mr->ibmr.rkey == key &&
	       mr_allows(mr, pd, addr, len, access) ? mr : NULL;
}

/* As medge_mr_get(); and it is at hand from here on, if it may be. */
static struct medge_mr *get_at_hand(struct medge_qp *qp, const struct ib_pd *pd,
				    u32 key, u64 addr, u64 len, int access)
{
	struct medge_mr *mr = medge_mr_get(qp, pd, key, addr, len, access);

	/*
	 * Who invalidates one spins until it has no users, and UC and UD give up
	 * their lock elsewhere.
	 */
	if (mr && !mr->max_pages && !mr->odp && qp->conn) {
		medge_qp_forget_mr(qp);
		refcount_inc(&mr->ref);
		qp->mr = mr;
	}
	return mr;
}

struct medge_mr *medge_mr_get_locked(struct medge_qp *qp, const struct ib_pd *pd,
				     u32 key, u64 addr, u64 len, int access)
{
	struct medge_mr *mr = at_hand(qp, pd, key, addr, len, access);

	if (!mr)
		return get_at_hand(qp, pd, key, addr, len, access);
	refcount_inc(&mr->ref);
	return mr;
}

static u32 what_it_is(const struct medge_mr *mr)
{
	return MEDGE_MR_USABLE | (mr->odp ? MEDGE_MR_ODP : 0) |
	       (mr->access & IB_ACCESS_RELAXED_ORDERING ? MEDGE_MR_RELAXED : 0);
}

u32 medge_mr_check_locked(struct medge_qp *qp, const struct ib_pd *pd, u32 key,
			  u64 addr, u64 len, int access)
{
	struct medge_mr *mr = at_hand(qp, pd, key, addr, len, access);
	u32 what;

	if (mr)
		return what_it_is(mr);
	mr = get_at_hand(qp, pd, key, addr, len, access);
	if (!mr)
		return 0;
	what = what_it_is(mr);
	medge_mr_put(mr);
	return what;
}

struct medge_mr *medge_mr_get_local(const struct ib_pd *pd, u32 lkey, u64 addr,
				    u64 len, int access)
{
	struct medge_device *dev = to_medge_device(pd->device);
	struct medge_mr *mr;
	int err = 0;

	rcu_read_lock();
	mr = get_region(dev, medge_key_find(dev, lkey), lkey);
	rcu_read_unlock();
	if (!mr)
		return ERR_PTR(-ENOENT);
	if (mr->ibmr.pd != pd || (mr->access & access) != access)
		err = -EPERM;
	else if (!mr_allows(mr, pd, addr, len, access))
		err = -EFAULT;
	if (!err)
		return mr;
	medge_mr_put(mr);
	return ERR_PTR(err);
}

void medge_mr_put(struct medge_mr *mr)
{
	if (refcount_dec_and_test(&mr->ref))
		complete(&mr->gone);
}
