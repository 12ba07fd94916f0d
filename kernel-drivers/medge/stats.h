/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Counters of a device, shown by `rdma statistic`.
 *
 * What a connection counts (struct medge_conn_stats: frames, acks,
 * retransmits, holds, its drops) is summed over the device's QPs, dead and
 * alive, when somebody asks: do not count it here again. Counted here is what
 * happens outside of a connection, on the CPU it happens on.
 */
#ifndef MEDGE_STATS_H
#define MEDGE_STATS_H

#include <linux/percpu.h>
#include <linux/types.h>

#include "transport/wire.h"

struct ib_device;
struct medge_conn_stats;
struct medge_device;
struct rdma_hw_stats;

/* X(field): the field's name is also the name shown. */
#define MEDGE_DEVICE_COUNTERS(X)					\
	X(tx_skbs)		/* handed to a rail; a superframe or bundle is one */ \
	X(tx_errors)		/* a rail is gone, full, or refused the skb */	\
	X(rx_skbs)		/* taken from a rail */			\
	X(rx_polled)		/* of rx_skbs: by the poller, without a softirq */ \
	X(rx_joined)		/* of rx_skbs: made one with the frame before, as one of its op */ \
	X(rx_not_ours)		/* to another MAC address */		\
	X(rx_no_qp)		/* no such QP */			\
	X(rx_bad_peer)		/* QP's peer is another */		\
	X(rx_bad_seal)		/* changed on its way, or forged: not what was sealed */ \
	X(rx_unsealed)		/* no seal, and the device asks for one */ \
	X(rx_no_key)		/* encrypted, and there is no such key here */ \
	X(rx_bad_keys)		/* to agree on keys; of another secret, or nobody's */ \
	X(rx_replayed)		/* encrypted, and had before, or is too old */ \
	X(tx_no_key)		/* not sent, since there was no key yet */ \
	X(keys_agreed)		/* sessions with peers that began */	\
	X(rx_no_memory)		/* dropped for want of memory */	\
	X(rx_held_full)		/* dropped: the device holds all it may */ \
	X(rx_datagrams)							\
	X(rx_bad_qkey)		/* datagram its QP does not take */	\
	X(rx_uc_dropped)	/* UC: of a message that is not whole, or not allowed */ \
	X(rx_uc_early)		/* UC: overtook others, and waited for them */ \
	X(rx_no_recv)		/* datagram finds no receive posted */	\
	X(rx_too_long)		/* datagram does not fit its receive */	\
	X(doorbells)		/* post calls that entered the kernel */ \
	X(late_looks)		/* posts found that were to be told of late */ \
	X(poller_wakes)		/* times the poller ended its sleep */	\
	X(poller_tried)		/* streams it took to see whether more is sent so */ \
	X(poller_shared)	/* of doorbells: for QPs that it looks at, to send beside it */ \
	X(poller_kept)		/* of doorbells: for QPs that it was at, and went on with */ \
	X(poller_lent)		/* times that who spins for completions stood in for it */ \
	X(page_faults)		/* waits for memory that is paged on demand */ \
	X(offload_frames)	/* copied by a DMA engine */	\
	X(offload_bytes)	/* of them, that were */	\
	X(offload_again)	/* of the frames: by a CPU then, as it could not */ \
	X(loop_skbs)		/* given to a device of this host by a copy */ \
	X(loop_bytes)		/* of them, headers included */

struct medge_device_stats {
#define X(field) u64 field;
	MEDGE_DEVICE_COUNTERS(X)
#undef X
	u64 drops[MEDGE_DROPS];		/* by enum medge_drop, before a QP was known */
};

/*
 * BHs are off, so nobody else counts here. Where the CPU cannot add to its own
 * memory in one instruction, anything safer would have to turn interrupts off.
 */
#define medge_count_add(dev, field, n) __this_cpu_add((dev)->stats->field, n)
#define medge_count(dev, field) medge_count_add(dev, field, 1)
#define medge_count_drop(dev, reason) medge_count(dev, drops[reason])

/*
 * What went over a rail, by its index: frames and bytes from the Ethernet header
 * on, a superframe's as its frames are on the wire. They outlive the rail.
 */
struct medge_rail_stats {
	u64 tx_frames;
	u64 tx_bytes;
	u64 tx_retransmits;	/* of tx_frames */
	u64 tx_errors;		/* skbs that the rail refused */
	u64 rx_frames;
	u64 rx_bytes;
	u64 weight;		/* not counted: as medge_rail_stats_read() finds it */
};

/* BHs are off. */
#define medge_rail_count_add(dev, rail, field, n) \
	__this_cpu_add((dev)->rail_stats[rail].field, n)
#define medge_rail_count(dev, rail, field) \
	medge_rail_count_add(dev, rail, field, 1)

/* What the port as a whole did, in the words of the standard counters. */
struct medge_port_stats {
	u64 tx_frames;
	u64 tx_bytes;
	u64 tx_errors;
	u64 rx_frames;
	u64 rx_bytes;
	u64 rx_errors;		/* frames that were none */
};

/* What has been sent on all rails that there are, in bytes. */
u64 medge_stats_tx_bytes(struct medge_device *dev);
void medge_port_stats_read(struct medge_device *dev,
			   struct medge_port_stats *sum);
/* Sums over all CPUs, and the weight the rail has now. */
void medge_rail_stats_read(struct medge_device *dev, u32 rail,
			   struct medge_rail_stats *sum);

int medge_stats_init(struct medge_device *dev);
void medge_stats_destroy(struct medge_device *dev);

/* A connection ends: keep what it counted. Under qp->lock. */
void medge_stats_retire(struct medge_device *dev,
			const struct medge_conn_stats *st);

/* ib_device_ops */
struct rdma_hw_stats *medge_alloc_hw_port_stats(struct ib_device *ibdev,
						u32 port);
int medge_get_hw_stats(struct ib_device *ibdev, struct rdma_hw_stats *stats,
		       u32 port, int index);

#endif /* MEDGE_STATS_H */
