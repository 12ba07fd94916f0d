/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Nodes: the remote ones a device's QPs are connected with, and their paths. */
#ifndef MEDGE_NODE_H
#define MEDGE_NODE_H

#include <linux/hashtable.h>
#include <linux/hrtimer.h>
#include <linux/refcount.h>
#include <linux/spinlock.h>

#include "rail.h"
#include "transport/peer.h"

struct medge_device;
struct medge_qp;
struct medge_qp_ref;

/**
 * struct medge_node - a remote node
 * @link: in medge_nodes.table, RCU
 * @l2: its address; in each VLAN it is another node
 * @qps: connections with it
 * @members: those, as struct medge_node_member; changed under @lock, RCU
 * @timer: the peer's deadline; softirq mode
 * @lock: BHs off, inside a QP's lock; guards all that follows it
 * @peer: its paths; their generation is read without @lock
 * @timer_at: what @timer is set to; MEDGE_NEVER: off
 * @told: as many changes of paths all QPs have been told of
 * @traced: as many changes of each path the tracepoint has told
 * @dead: @timer is not to be set any more
 */
struct medge_node {
	struct medge_device *dev;
	struct hlist_node link;
	struct medge_l2 l2;
	refcount_t qps;
	struct hlist_head members;
	struct hrtimer timer;
	struct rcu_head rcu;

	spinlock_t lock;
	struct medge_peer *peer;
	u64 timer_at;
	u32 told;
	u32 traced[MEDGE_MAX_PATHS];
	bool dead;
};

/*
 * A QP among a node's. It is not the QP's own, since who walks the list may still
 * look at it when the QP has another node.
 */
struct medge_node_member {
	struct hlist_node link;
	struct medge_node *node;
	struct medge_qp_ref *ref;
	struct rcu_head rcu;
};

/**
 * struct medge_nodes - a device's remote nodes, and the node that it is itself
 * @lock: BHs off, outside of the nodes' locks; guards all that follows it
 * @local: own rails, as others are told of them
 */
struct medge_nodes {
	spinlock_t lock;
	DECLARE_HASHTABLE(table, 8);
	struct medge_local local;
};

void medge_nodes_init(struct medge_device *dev);
/* There are no QPs, and no rails. */
void medge_nodes_destroy(struct medge_device *dev);

/* The own address, or rail @rail, is this now; NULL: there is none. BHs on or off. */
void medge_nodes_address(struct medge_device *dev, const u8 *mac);
void medge_nodes_rail(struct medge_device *dev, u32 rail,
		      const struct medge_rail_attr *attr);

/*
 * Make the QP one of the node's that has the address qp->l2: from then on it is
 * told when paths change. NULL: no memory. May sleep.
 */
struct medge_node_member *medge_node_join(struct medge_qp *qp);
void medge_node_leave(struct medge_node_member *member);

/* Exchange with the node what is known of paths, if it is time. Under qp->lock. */
void medge_node_sync(struct medge_qp *qp);

/* A probe or reply came; skb->data is linear for it. In softirq. */
void medge_node_receive(struct medge_rail *rail, struct sk_buff *skb,
			const struct medge_rx_l2 *l2);

/* All paths to all nodes, one a line, into a page. */
ssize_t medge_nodes_show(struct medge_device *dev, char *buf);

#endif /* MEDGE_NODE_H */
