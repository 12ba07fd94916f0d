// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Datagrams: each is a frame, sent as a copy, since its buffer is the user's
 * again at once, and received behind the header of the network it would have
 * come over as RoCE v2.
 */
#include <linux/etherdevice.h>
#include <linux/if_vlan.h>
#include <linux/ip.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include <rdma/ib_cache.h>

#include "ah.h"
#include "batch.h"
#include "build.h"
#include "device.h"
#include "mcast.h"
#include "place.h"
#include "post.h"
#include "qp.h"
#include "snap.h"
#include "stats.h"
#include "turns.h"
#include "ud.h"

enum {
	/* IB's largest path MTU: what the port says it can. */
	UD_MAX_LEN = 4096,
	UD_GRH_LEN = sizeof(struct ib_grh),
	UD_MULTICAST_QPN = 0xffffff,
	/* Of a Q_Key in a work request: take the QP's own (IBTA 10.2.5). */
	UD_QKEY_OWN = 0x80000000,
};

/* ---- send ---- */

/*
 * Datagrams of one flow keep to one rail, so that they stay in order. Those of
 * QP 1 try one rail after the other: who repeats a request after a timeout
 * shall not do so on the rail that swallowed it.
 */
static u32 choose_rail(struct medge_qp *qp, const struct medge_datagram *head,
		       const struct medge_l2 *l2)
{
	u32 turn = qp->qpn;

	if (is_multicast_ether_addr(l2->dmac))
		return medge_rail_for_multicast(qp->dev, head->src_qpn);
	if (qp->qpn == 1)
		turn = qp->ud_turn++;
	else
		turn = head->src_qpn ^ head->qpn;
	return medge_rail_for_turn(qp->dev, turn);
}

static struct sk_buff *build(struct medge_qp *qp,
			     const struct medge_send_snap *snap,
			     const struct medge_av *av, bool *gone,
			     struct medge_absent *absent)
{
	struct medge_datagram head = av->head;
	struct medge_walk walk;
	struct sk_buff *skb;
	void *to;

	skb = medge_build_skb(qp, MEDGE_DATAGRAM_LEN + snap->len);
	if (!skb)
		return NULL;
	head.len = snap->len;
	head.qpn = snap->wqe.ud_qpn & UD_MULTICAST_QPN;
	head.src_qpn = qp->qpn;
	head.qkey = snap->wqe.ud_qkey & UD_QKEY_OWN ? qp->attr.qkey :
						      snap->wqe.ud_qkey;
	if (snap->wqe.flags & MEDGE_WQE_SOLICITED)
		head.flags |= MEDGE_DATAGRAM_SOLICITED;
	if (snap->wqe.opcode == MEDGE_WQE_SEND_IMM) {
		head.flags |= MEDGE_DATAGRAM_IMM;
		head.imm = snap->wqe.imm;
	}
	medge_wire_encode_datagram(skb_put(skb, MEDGE_DATAGRAM_LEN), &head);

	to = skb_put(skb, snap->len);
	if (snap->wqe.flags & MEDGE_WQE_INLINE) {
		memcpy(to, snap->data, snap->len);
	} else {
		medge_walk_start(&walk, qp, qp->ibqp.pd, 0, medge_snap_sges(snap),
				 snap->wqe.num_sge, 0, snap->len);
		walk.absent = absent;
		*gone = !medge_walk_read(&walk, to, snap->len);
		*gone |= !medge_walk_end(&walk);
	}
	skb->ip_summed = CHECKSUM_UNNECESSARY;
	*medge_tx_cb(skb) = (struct medge_tx_cb) {
		.l2 = av->l2,
		.rail = choose_rail(qp, &head, &av->l2),
	};
	return skb;
}

static enum medge_status check(struct medge_qp *qp,
			       const struct medge_send_snap *snap,
			       struct medge_av *av)
{
	u32 room = medge_rails_room(qp->dev, MEDGE_DATAGRAM_LEN);

	if (snap->wqe.opcode != MEDGE_WQE_SEND &&
	    snap->wqe.opcode != MEDGE_WQE_SEND_IMM)
		return MEDGE_LOCAL_OPERATION;
	if (snap->len > min_t(u32, room, UD_MAX_LEN))
		return MEDGE_LOCAL_LENGTH;
	if (!medge_av_get(qp->ibqp.pd, snap->wqe.ud_ah, av))
		return MEDGE_LOCAL_OPERATION;
	return MEDGE_OK;
}

/* A bad WQE stops the send queue, but not the receive queue. */
static void stop_sending(struct medge_qp *qp)
{
	qp->state = IB_QPS_SQE;
	medge_flush_sq(qp);
}

/*
 * One WQE. What there is no memory for counts as sent, and as lost: that is
 * what a datagram may be. Return: false if its payload is not there yet.
 */
static bool take(struct medge_qp *qp, struct sk_buff_head *out)
{
	struct medge_absent absent = {};
	struct sk_buff *skb = NULL;
	struct medge_send_snap *snap;
	enum medge_status status;
	struct medge_av av;
	bool gone = false;

	snap = medge_post_next(qp, &status);
	if (!snap)
		return false;
	if (!status)
		status = check(qp, snap, &av);
	if (!status)
		skb = build(qp, snap, &av, &gone, &absent);
	if (gone) {
		kfree_skb(skb);
		skb = NULL;
		status = MEDGE_LOCAL_PROTECTION;
		if (absent.mr && medge_faults_wait(qp, MEDGE_FAULT_SEND, 0,
						   qp->sq.cons - 1, &absent)) {
			qp->sq.cons--;
			return false;
		}
	}
	if (skb)
		__skb_queue_tail(out, skb);
	medge_send_done(qp, snap, status);
	if (status)
		stop_sending(qp);
	return true;
}

static void fill(struct medge_qp *qp, struct sk_buff_head *out)
{
	u32 n = min_t(u32, medge_ring_posted(&qp->sq), MEDGE_TURN_BATCH);

	while (n-- && qp->state == IB_QPS_RTS)
		if (!take(qp, out))
			break;
}

static void deliver_own(struct medge_qp *qp, struct sk_buff *skb)
{
	struct medge_ud_arrival arrival = {
		.skb = skb,
		.vlan = medge_tx_cb(skb)->l2.vlan,
	};

	medge_wire_decode_datagram(skb->data, &arrival.head);
	medge_mcast_deliver(qp->dev, &arrival, qp);
}

/* QPs of our own device hear what we say to a group. */
static void hear(struct medge_qp *qp, struct sk_buff_head *out)
{
	struct sk_buff *skb;

	skb_queue_walk(out, skb)
		if (is_multicast_ether_addr(medge_tx_cb(skb)->l2.dmac))
			deliver_own(qp, skb);
}

void medge_ud_send_unlock(struct medge_qp *qp) __releases(&qp->lock)
{
	static const struct medge_turns turns = { .fill = fill, .hear = hear };

	medge_turns_unlock(qp, &turns);
}

/* ---- receive ---- */

static void fill_ipv4(void *grh, const struct medge_datagram *head)
{
	/* IBTA RoCE annex A17.4.5.1: it stands in the last 20 of the 40 bytes. */
	struct iphdr *ip = grh + UD_GRH_LEN - sizeof(*ip);

	*ip = (struct iphdr) {
		.version = 4,
		.ihl = sizeof(*ip) / 4,
		.tos = head->class_flow >> 20,
		.tot_len = htons(sizeof(*ip) + head->len),
		.frag_off = htons(IP_DF),
		.ttl = head->hop_limit,
		.protocol = IPPROTO_UDP,
	};
	memcpy(&ip->saddr, head->sgid + 12, sizeof(ip->saddr));
	memcpy(&ip->daddr, head->dgid + 12, sizeof(ip->daddr));
	ip->check = ip_fast_csum(ip, ip->ihl);
}

static bool is_ipv4(const struct medge_datagram *head)
{
	return ipv6_addr_v4mapped((const struct in6_addr *)head->dgid);
}

static void fill_grh(struct ib_grh *grh, const struct medge_datagram *head)
{
	memset(grh, 0, sizeof(*grh));
	if (is_ipv4(head)) {
		fill_ipv4(grh, head);
		return;
	}
	grh->version_tclass_flow = cpu_to_be32(6 << 28 | head->class_flow);
	grh->paylen = cpu_to_be16(head->len);
	grh->next_hdr = IPPROTO_UDP;
	grh->hop_limit = head->hop_limit;
	memcpy(grh->sgid.raw, head->sgid, sizeof(grh->sgid));
	memcpy(grh->dgid.raw, head->dgid, sizeof(grh->dgid));
}

static void complete_recv(struct medge_qp *qp, struct medge_recv_snap *snap,
			  const struct medge_ud_arrival *arrival)
{
	const struct medge_datagram *head = &arrival->head;
	struct medge_cqe cqe = {
		.wr_id = snap->wr_id,
		.status = IB_WC_SUCCESS,
		.opcode = IB_WC_RECV,
		.wc_flags = IB_WC_GRH,
		.qp_num = qp->qpn,
		.src_qp = head->src_qpn,
		.byte_len = UD_GRH_LEN + head->len,
		.vlan = arrival->vlan,
		.sl = is_ipv4(head) ? MEDGE_CQE_SL_IPV4 : MEDGE_CQE_SL_IPV6,
		.timestamp = qp->now,
	};

	if (head->flags & MEDGE_DATAGRAM_IMM) {
		cqe.imm = head->imm;
		cqe.wc_flags |= IB_WC_WITH_IMM;
	}
	medge_recv_done(qp, snap, &cqe,
			head->flags & MEDGE_DATAGRAM_SOLICITED);
}

/*
 * A datagram that does not fit, or whose receive is of no use, is dropped and
 * leaves the receive: a stranger's mistake is not to cost the QP its life.
 */
static bool place(struct medge_qp *qp, const struct medge_recv_snap *snap,
		  const struct medge_ud_arrival *arrival)
{
	const struct medge_datagram *head = &arrival->head;
	struct medge_absent absent = {};
	struct ib_grh grh;
	bool ok;

	if (snap->status || UD_GRH_LEN + head->len > snap->len)
		return false;
	fill_grh(&grh, head);
	ok = medge_place_datagram(qp, snap, &grh, sizeof(grh), arrival->skb,
				  MEDGE_DATAGRAM_LEN, head->len, &absent);
	/* It is lost, but the next one finds the memory there. */
	if (absent.mr)
		medge_faults_wait(qp, MEDGE_FAULT_AHEAD, 0, snap->index, &absent);
	return ok;
}

/* Under qp->lock. */
static void receive(struct medge_qp *qp, const struct medge_ud_arrival *arrival)
{
	struct medge_recv_snap *snap;

	if (!medge_qp_is_ud(qp) || !medge_qp_hears(qp) ||
	    arrival->head.qkey != qp->attr.qkey) {
		medge_count(qp->dev, rx_bad_qkey);
		return;
	}
	snap = medge_recv_take(qp, qp->rq.done, 0);
	if (!snap) {
		medge_count(qp->dev, rx_no_recv);
		return;
	}
	if (!place(qp, snap, arrival)) {
		medge_count(qp->dev, rx_too_long);
		return;
	}
	complete_recv(qp, snap, arrival);
}

void medge_ud_deliver(struct medge_qp *qp,
		      const struct medge_ud_arrival *arrival)
{
	spin_lock_bh(&qp->lock);
	qp->now = ktime_get_ns();
	receive(qp, arrival);
	spin_unlock_bh(&qp->lock);
}

/* The GID if it is on @vlan, which may become known by that. */
static bool take_gid(struct medge_ud_arrival *arrival,
		     const struct ib_gid_attr *attr)
{
	u16 own;
	bool ok;

	if (IS_ERR(attr))
		return false;
	ok = !rdma_read_gid_l2_fields(attr, &own, NULL) &&
	     medge_vlan_matches(own, arrival->vlan);
	if (ok)
		arrival->vlan = own;
	rdma_put_gid_attr(attr);
	return ok;
}

/* Is it sent to one of our GIDs, on the VLAN that GID is on? RCU read side. */
static bool is_ours(struct medge_device *dev, struct medge_ud_arrival *arrival)
{
	const union ib_gid *dgid = (const union ib_gid *)arrival->head.dgid;
	struct net_device *netdev = dev->netdev;

	if (take_gid(arrival, rdma_find_gid_by_port(&dev->ibdev, dgid,
						    IB_GID_TYPE_ROCE_UDP_ENCAP,
						    1, NULL)))
		return true;
	/* The same address may be there on several VLANs. */
	if (arrival->vlan < VLAN_N_VID)
		netdev = __vlan_find_dev_deep_rcu(netdev, htons(ETH_P_8021Q),
						  arrival->vlan);
	return netdev &&
	       take_gid(arrival, rdma_find_gid_by_port(&dev->ibdev, dgid,
						       IB_GID_TYPE_ROCE_UDP_ENCAP,
						       1, netdev));
}

static void receive_unicast(struct medge_device *dev,
			    struct medge_ud_arrival *arrival)
{
	struct medge_qp *qp;

	if (!is_ours(dev, arrival)) {
		medge_count(dev, rx_not_ours);
		return;
	}
	qp = medge_qp_get(dev, arrival->head.qpn);
	if (!qp) {
		medge_count(dev, rx_no_qp);
		return;
	}
	medge_ud_deliver(qp, arrival);
	medge_qp_put(qp);
}

void medge_ud_receive(struct medge_device *dev, struct sk_buff *skb,
		      const struct medge_rx_l2 *l2)
{
	struct medge_ud_arrival arrival = { .skb = skb, .vlan = l2->vlan };

	medge_wire_decode_datagram(skb->data, &arrival.head);
	medge_count(dev, rx_datagrams);
	if (!l2->multicast)
		receive_unicast(dev, &arrival);
	else if (arrival.head.qpn == UD_MULTICAST_QPN)
		medge_mcast_deliver(dev, &arrival, NULL);
	else
		medge_count(dev, rx_not_ours);
	medge_skb_used(skb);
}
