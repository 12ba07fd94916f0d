// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Remote nodes: found by address, shared by QPs, asked whether their paths work. */
#include <linux/etherdevice.h>
#include <linux/random.h>
#include <linux/skbuff.h>
#include <linux/slab.h>
#include <linux/sysfs.h>

#include "compat.h"
#include "device.h"
#include "node.h"
#include "qp.h"
#include "rail.h"
#include "trace.h"

enum { PROBE_HEADROOM = 64 };

/* ---- probes ---- */

/* Errors are losses: who asked asks again. */
static void send_probe(struct medge_device *dev, u32 rail, const u8 *mac,
		       u16 vlan, const struct medge_probe *probe)
{
	struct medge_l2 to = { .vlan = vlan };
	struct sk_buff *skb = alloc_skb(PROBE_HEADROOM + MEDGE_PROBE_LEN,
					GFP_ATOMIC);

	if (!skb) {
		medge_count(dev, tx_errors);
		return;
	}
	skb_reserve(skb, PROBE_HEADROOM);
	medge_wire_encode_probe(skb_put(skb, MEDGE_PROBE_LEN), probe);
	ether_addr_copy(to.dmac, mac);
	medge_rail_xmit(dev, rail, &to, skb, false);
}

/* Under node->lock. */
static void trace_paths(struct medge_node *node)
{
	struct medge_path_info info;
	u32 i;

	for (i = 0; i < MEDGE_MAX_PATHS; i++) {
		if (!medge_peer_path(node->peer, i, &info) ||
		    node->traced[i] == (u32)info.changes)
			continue;
		node->traced[i] = info.changes;
		trace_medge_path(node, &info);
	}
}

/* Ends each use of the peer. Under node->lock. */
static void set_timer(struct medge_node *node)
{
	u64 at = medge_peer_deadline(node->peer);

	if (trace_medge_path_enabled())
		trace_paths(node);

	/* Then the QPs must be told. */
	if (medge_peer_changes(node->peer) != node->told)
		at = 0;
	if (at >= node->timer_at || node->dead)
		return;
	node->timer_at = at;
	hrtimer_start(&node->timer, ns_to_ktime(at), HRTIMER_MODE_ABS_SOFT);
}

static bool next_probe(struct medge_node *node, u64 now, struct medge_peer_tx *tx)
{
	bool any;

	spin_lock_bh(&node->lock);
	any = medge_peer_poll_tx(node->peer, now, tx);
	spin_unlock_bh(&node->lock);
	return any;
}

static void tell_members(struct medge_node *node)
{
	struct medge_node_member *member;
	struct medge_qp *qp;

	rcu_read_lock();
	hlist_for_each_entry_rcu(member, &node->members, link) {
		qp = medge_qp_ref_get(member->ref);
		if (!qp)
			continue;
		medge_qp_sync(qp);
		medge_qp_put(qp);
	}
	rcu_read_unlock();
}

static enum hrtimer_restart node_timer(struct hrtimer *timer)
{
	struct medge_node *node = container_of(timer, struct medge_node, timer);
	u64 now = ktime_get_ns();
	struct medge_peer_tx tx;
	bool tell;

	spin_lock_bh(&node->lock);
	node->timer_at = MEDGE_NEVER;
	medge_peer_timeout(node->peer, now);
	tell = medge_peer_changes(node->peer) != node->told;
	node->told = medge_peer_changes(node->peer);
	spin_unlock_bh(&node->lock);

	while (next_probe(node, now, &tx))
		send_probe(node->dev, tx.rail, tx.mac, node->l2.vlan,
			   &tx.probe);
	if (tell)
		tell_members(node);

	spin_lock_bh(&node->lock);
	set_timer(node);
	spin_unlock_bh(&node->lock);
	return HRTIMER_NORESTART;
}

/* ---- found by address ---- */

/* RCU read side, or under nodes.lock. */
static struct medge_node *find(struct medge_device *dev, const u8 *mac, u16 vlan)
{
	struct medge_node *node;

	hash_for_each_possible_rcu(dev->nodes.table, node, link,
				   medge_mac_hash(mac),
				   lockdep_is_held(&dev->nodes.lock))
		if (medge_l2_matches(&node->l2, mac, vlan))
			return node;
	return NULL;
}

static struct medge_node *new_node(struct medge_device *dev,
				   const struct medge_l2 *l2)
{
	struct medge_node *node = kzalloc(sizeof(*node), GFP_KERNEL);

	if (!node)
		return NULL;
	node->peer = kvzalloc(medge_peer_size(), GFP_KERNEL);
	if (!node->peer) {
		kfree(node);
		return NULL;
	}
	node->dev = dev;
	node->l2 = *l2;
	refcount_set(&node->qps, 1);
	INIT_HLIST_HEAD(&node->members);
	spin_lock_init(&node->lock);
	node->timer_at = MEDGE_NEVER;
	hrtimer_setup(&node->timer, node_timer, CLOCK_MONOTONIC,
		      HRTIMER_MODE_ABS_SOFT);
	return node;
}

static void free_node(struct rcu_head *rcu)
{
	struct medge_node *node = container_of(rcu, struct medge_node, rcu);

	kvfree(node->peer);
	kfree(node);
}

static struct medge_node *add_node(struct medge_device *dev,
				   struct medge_node *node)
{
	struct medge_node *other;

	spin_lock_bh(&dev->nodes.lock);
	other = find(dev, node->l2.dmac, node->l2.vlan);
	if (!other || !refcount_inc_not_zero(&other->qps)) {
		medge_peer_init(node->peer, node->l2.dmac, &dev->nodes.local,
				get_random_u64(), ktime_get_ns());
		hash_add_rcu(dev->nodes.table, &node->link,
			     medge_mac_hash(node->l2.dmac));
		other = node;
	}
	spin_unlock_bh(&dev->nodes.lock);
	return other;
}

static struct medge_node *node_get(struct medge_device *dev,
				   const struct medge_l2 *l2)
{
	struct medge_node *node = new_node(dev, l2), *used;

	if (!node)
		return NULL;
	used = add_node(dev, node);
	if (used != node)
		free_node(&node->rcu);
	return used;
}

static void node_put(struct medge_node *node)
{
	struct medge_device *dev = node->dev;

	if (!refcount_dec_and_test(&node->qps))
		return;
	spin_lock_bh(&dev->nodes.lock);
	hash_del_rcu(&node->link);
	spin_unlock_bh(&dev->nodes.lock);
	spin_lock_bh(&node->lock);
	node->dead = true;
	spin_unlock_bh(&node->lock);
	hrtimer_cancel(&node->timer);
	call_rcu(&node->rcu, free_node);
}

/* ---- its QPs ---- */

struct medge_node_member *medge_node_join(struct medge_qp *qp)
{
	struct medge_node_member *member = kmalloc(sizeof(*member), GFP_KERNEL);
	struct medge_node *node;

	if (!member)
		return NULL;
	node = node_get(qp->dev, &qp->l2);
	if (!node) {
		kfree(member);
		return NULL;
	}
	member->node = node;
	member->ref = qp->ref;
	spin_lock_bh(&node->lock);
	hlist_add_head_rcu(&member->link, &node->members);
	/* The first thing to know of it is whether its paths work. */
	set_timer(node);
	spin_unlock_bh(&node->lock);
	return member;
}

void medge_node_leave(struct medge_node_member *member)
{
	struct medge_node *node = member->node;

	spin_lock_bh(&node->lock);
	hlist_del_rcu(&member->link);
	spin_unlock_bh(&node->lock);
	kfree_rcu(member, rcu);
	node_put(node);
}

/* ---- what others do with it ---- */

void medge_node_sync(struct medge_qp *qp)
{
	struct medge_node *node = qp->member->node;

	if (!medge_conn_sync_due(qp->conn, medge_peer_generation(node->peer),
				 qp->now))
		return;
	spin_lock(&node->lock);
	medge_conn_sync(qp->conn, node->peer, qp->now);
	set_timer(node);
	spin_unlock(&node->lock);
}

/* Also on other rails than that on which the probe came, if need be. */
static void answer_detour(struct medge_rail *rail, struct medge_node *node,
			  const struct medge_probe *q,
			  struct medge_probe *reply)
{
	u8 other, mac[ETH_ALEN];
	u32 next = 0;
	bool more;

	for (;;) {
		spin_lock(&node->lock);
		more = medge_peer_detour(node->peer, q, rail->index, &next,
					 &other, mac);
		spin_unlock(&node->lock);
		if (!more)
			return;
		reply->rail = other;
		send_probe(rail->dev, other, mac, node->l2.vlan, reply);
	}
}

static void answer(struct medge_rail *rail, struct medge_node *node,
		   const struct medge_probe *q, const struct medge_rx_l2 *l2)
{
	struct medge_device *dev = rail->dev;
	u16 vlan = node ? node->l2.vlan : l2->vlan;
	struct medge_probe reply;

	/* Who has no QP for us will ask those who have. */
	if (vlan == MEDGE_VLAN_UNKNOWN)
		return;
	spin_lock(&dev->nodes.lock);
	medge_probe_answer(&dev->nodes.local, q, rail->index, &reply);
	spin_unlock(&dev->nodes.lock);
	if (node) {
		spin_lock(&node->lock);
		reply.known = medge_peer_known(node->peer);
		spin_unlock(&node->lock);
	}
	send_probe(dev, rail->index, l2->smac, vlan, &reply);
	if (node)
		answer_detour(rail, node, q, &reply);
}

void medge_node_receive(struct medge_rail *rail, struct sk_buff *skb,
			const struct medge_rx_l2 *l2)
{
	struct medge_device *dev = rail->dev;
	u64 now = ktime_get_ns();
	struct medge_probe probe;
	struct medge_node *node;

	medge_wire_decode_probe(skb->data, &probe);
	if (!ether_addr_equal(probe.to, dev->netdev->dev_addr) ||
	    l2->multicast) {
		medge_count(dev, rx_not_ours);
		return;
	}
	rcu_read_lock();
	node = find(dev, probe.node, l2->vlan);
	if (probe.type == MEDGE_FRAME_PROBE)
		answer(rail, node, &probe, l2);
	if (node) {
		spin_lock(&node->lock);
		if (probe.type == MEDGE_FRAME_PROBE)
			medge_peer_probed(node->peer, now, rail->index, &probe);
		else
			medge_peer_replied(node->peer, now, &probe);
		set_timer(node);
		spin_unlock(&node->lock);
	}
	rcu_read_unlock();
}

/* ---- the own node ---- */

/*
 * At once: who notices in its turn that a rail is down is not to use it in that turn.
 * Under nodes.lock.
 */
static void tell_nodes(struct medge_device *dev)
{
	u64 now = ktime_get_ns();
	struct medge_node *node;
	int i;

	hash_for_each(dev->nodes.table, i, node, link) {
		spin_lock(&node->lock);
		medge_peer_local(node->peer, &dev->nodes.local, now);
		set_timer(node);
		spin_unlock(&node->lock);
	}
}

void medge_nodes_address(struct medge_device *dev, const u8 *mac)
{
	struct medge_local *me = &dev->nodes.local;

	spin_lock_bh(&dev->nodes.lock);
	if (!ether_addr_equal(me->node, mac)) {
		ether_addr_copy(me->node, mac);
		tell_nodes(dev);
	}
	spin_unlock_bh(&dev->nodes.lock);
}

void medge_nodes_rail(struct medge_device *dev, u32 rail,
		      const struct medge_rail_attr *attr)
{
	spin_lock_bh(&dev->nodes.lock);
	if (medge_local_set(&dev->nodes.local, rail, attr))
		tell_nodes(dev);
	spin_unlock_bh(&dev->nodes.lock);
}

static int show_path(const struct medge_node *node, u32 i, char *buf, int at)
{
	struct medge_path_info info;

	if (!medge_peer_path(node->peer, i, &info))
		return 0;
	return sysfs_emit_at(buf, at,
			     "%pM rail %u peer_rail %d %s (%s) weight %u loss_ppm %u srtt_us %llu frames %llu retransmits %llu probes %llu replies %llu changes %llu\n",
			     node->l2.dmac, info.rail,
			     info.peer_rail == MEDGE_RAIL_ANY ? -1 : info.peer_rail,
			     medge_path_state_name(info.state),
			     medge_path_why_name(info.why), info.weight,
			     info.loss_ppm, info.srtt / NSEC_PER_USEC,
			     info.frames, info.retransmits, info.probes,
			     info.replies, info.changes);
}

ssize_t medge_nodes_show(struct medge_device *dev, char *buf)
{
	struct medge_node *node;
	int bucket, at = 0;
	u32 i;

	rcu_read_lock();
	hash_for_each_rcu(dev->nodes.table, bucket, node, link) {
		spin_lock_bh(&node->lock);
		for (i = 0; i < MEDGE_MAX_PATHS; i++)
			at += show_path(node, i, buf, at);
		spin_unlock_bh(&node->lock);
	}
	rcu_read_unlock();
	return at;
}

void medge_nodes_init(struct medge_device *dev)
{
	spin_lock_init(&dev->nodes.lock);
	hash_init(dev->nodes.table);
	dev->nodes.local.generation = get_random_u32() | 1;
}

void medge_nodes_destroy(struct medge_device *dev)
{
	WARN_ON(!hash_empty(dev->nodes.table));
}
