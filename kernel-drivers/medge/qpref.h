/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* QPs found by their numbers, and who is at work on them. */
#ifndef MEDGE_QPREF_H
#define MEDGE_QPREF_H

#include <linux/completion.h>
#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/rhashtable.h>
#include <rdma/ib_verbs.h>

struct medge_device;
struct medge_qp;

/**
 * struct medge_qps - a device's QPs
 * @table: struct medge_qp_ref by QPN; RCU read
 * @list: the same, for who goes through them all; under @lock
 * @limit: how many more there may be
 * @block: 64 numbers, from which QPs get theirs; under @lock
 * @unused: of those, which have not been given away; under @lock
 */
struct medge_qps {
	struct rhashtable table;
	struct mutex lock;
	struct list_head list;
	atomic_t limit;
	u32 block;
	u64 unused;
};

/**
 * struct medge_qp_ref - what the table holds of a QP
 * @qp: NULL: it is being reset or destroyed
 * @users: and one of the QP's own
 *
 * It lives an RCU grace period longer than its QP, which ib_core frees at once
 * when destroy returns.
 */
struct medge_qp_ref {
	struct rhash_head node;
	u32 qpn;
	refcount_t users;
	struct medge_qp *qp;
	struct ib_qp *ibqp;
	struct completion unused;
	struct list_head entry;
	struct rcu_head rcu;
};

int medge_qps_init(struct medge_qps *qps, u32 limit);
/* There are none left. */
void medge_qps_destroy(struct medge_qps *qps);

/*
 * Give @qp a number, the one of the GSI or one of a random block; it can be found
 * from now on. -ENOMEM, also if there are too many; -EBUSY: there is a GSI.
 */
int medge_qp_publish(struct medge_qp *qp);
/* It is closed. */
void medge_qp_withdraw(struct medge_qp *qp);

/* Wait until nobody is at work on the QP, and let nobody in. */
void medge_qp_close(struct medge_qp *qp);
void medge_qp_open(struct medge_qp *qp);

/* The one with this number, whoever is at work on it; NULL: none. Under RCU. */
struct medge_qp_ref *medge_qp_find(struct medge_device *dev, u32 qpn);
/* The same, and count as its user. Under RCU. */
struct medge_qp *medge_qp_get(struct medge_device *dev, u32 qpn);
/*
 * The same for who has the QP (a post, its timer): false if it is being reset
 * or destroyed and must be left alone. Its conn stays while one is a user.
 */
bool medge_qp_hold(struct medge_qp *qp);
void medge_qp_put(struct medge_qp *qp);
/* The same for who holds its ref, RCU inside. */
struct medge_qp *medge_qp_ref_get(struct medge_qp_ref *ref);

/* @visit each QP that is open, as its user. May sleep. */
void medge_qps_each(struct medge_device *dev,
		    void (*visit)(struct medge_qp *qp, void *arg), void *arg);

#endif /* MEDGE_QPREF_H */
