// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Counters: summed over CPUs and connections when `rdma statistic` asks. */
#include <linux/slab.h>

#include "device.h"
#include "qp.h"
#include "stats.h"

/* Members of struct medge_conn_stats, all u64, and the names shown. */
#define CONN_COUNTERS(X)						\
	X(tx_frames) X(tx_bytes) X(rx_frames) X(rx_bytes)		\
	X(tx_acks) X(rx_acks) X(tx_nacks) X(rx_nacks)			\
	X(retransmits) X(lost_rail) X(lost_rto) X(lost_down) X(probes)	\
	X(dups) X(held) X(rnr_naks_sent) X(rnr_naks_received)

/*
 * What is shown of a rail, by its index. The names are fixed when the port is
 * registered, whatever rails it gets, and all of them must fit one netlink message:
 * the first few rails have counters; medgedv_query_rails() tells of all.
 */
#define RAIL_COUNTERS(X, n)						\
	X(n, tx_frames) X(n, tx_bytes) X(n, tx_retransmits)		\
	X(n, rx_bytes) X(n, weight)
#define SHOWN_RAILS(R)							\
	R(0) R(1) R(2) R(3) R(4) R(5) R(6) R(7)

static const struct rdma_stat_desc descs[] = {
#define X(field) { .name = #field },
	CONN_COUNTERS(X)
	MEDGE_DEVICE_COUNTERS(X)
#undef X
	/* enum medge_drop without NONE, in its order */
	{ .name = "drop_runt" },
	{ .name = "drop_version" },
	{ .name = "drop_type" },
	{ .name = "drop_flags" },
	{ .name = "drop_opcode" },
	{ .name = "drop_length" },
	{ .name = "drop_offset" },
	{ .name = "drop_window" },
	{ .name = "drop_mismatch" },
	{ .name = "drop_ack" },
	{ .name = "drop_hold" },
	{ .name = "drop_state" },
	{ .name = "drop_probe" },
#define X(n, field) { .name = "rail" #n "_" #field },
#define R(n) RAIL_COUNTERS(X, n)
	SHOWN_RAILS(R)
#undef R
#undef X
};

/*
 * Enumerators count the counters, and say where each stands in descs[].
 */
enum {
#define X(field) AT_##field,
	CONN_COUNTERS(X)
	MEDGE_DEVICE_COUNTERS(X)
#undef X
	AT_DROPS,
	AT_RAILS = AT_DROPS + MEDGE_DROPS - 1,
	BEFORE_RAILS = AT_RAILS - 1,
#define X(n, field) AT_rail##n##_##field,
#define R(n) RAIL_COUNTERS(X, n)
	SHOWN_RAILS(R)
#undef R
#undef X
	NUM_COUNTERS,
};

static_assert(ARRAY_SIZE(descs) == NUM_COUNTERS);

int medge_stats_init(struct medge_device *dev)
{
	spin_lock_init(&dev->retired_lock);
	dev->retired = kzalloc(sizeof(*dev->retired), GFP_KERNEL);
	dev->stats = alloc_percpu(struct medge_device_stats);
	dev->rail_stats = __alloc_percpu(MEDGE_MAX_RAILS *
					 sizeof(*dev->rail_stats),
					 __alignof__(*dev->rail_stats));
	return dev->retired && dev->stats && dev->rail_stats ? 0 : -ENOMEM;
}

void medge_stats_destroy(struct medge_device *dev)
{
	free_percpu(dev->rail_stats);
	free_percpu(dev->stats);
	kfree(dev->retired);
}

static void add_conn_stats(struct medge_conn_stats *to,
			   const struct medge_conn_stats *st)
{
	int i;

#define X(field) to->field += st->field;
	CONN_COUNTERS(X)
#undef X
	for (i = 0; i < MEDGE_DROPS; i++)
		to->drops[i] += st->drops[i];
}

void medge_stats_retire(struct medge_device *dev,
			const struct medge_conn_stats *st)
{
	spin_lock_bh(&dev->retired_lock);
	add_conn_stats(dev->retired, st);
	spin_unlock_bh(&dev->retired_lock);
}

static void add_conn(struct medge_qp *qp, void *sum)
{
	spin_lock_bh(&qp->lock);
	if (qp->conn)
		add_conn_stats(sum, medge_conn_stats(qp->conn));
	spin_unlock_bh(&qp->lock);
}

static void sum_conns(struct medge_device *dev, struct medge_conn_stats *sum)
{
	medge_qps_each(dev, add_conn, sum);
	spin_lock_bh(&dev->retired_lock);
	add_conn_stats(sum, dev->retired);
	spin_unlock_bh(&dev->retired_lock);
}

static void sum_cpus(struct medge_device *dev, struct medge_device_stats *sum)
{
	int cpu, i;

	for_each_possible_cpu(cpu) {
		const struct medge_device_stats *st =
			per_cpu_ptr(dev->stats, cpu);

#define X(field) sum->field += READ_ONCE(st->field);
		MEDGE_DEVICE_COUNTERS(X)
#undef X
		for (i = 0; i < MEDGE_DROPS; i++)
			sum->drops[i] += READ_ONCE(st->drops[i]);
	}
}

void medge_rail_stats_read(struct medge_device *dev, u32 rail,
			   struct medge_rail_stats *sum)
{
	int cpu;

	*sum = (struct medge_rail_stats) {
		.weight = medge_rail_weight(dev, rail),
	};
	for_each_possible_cpu(cpu) {
		const struct medge_rail_stats *st =
			&per_cpu_ptr(dev->rail_stats, cpu)[rail];

		sum->tx_frames += READ_ONCE(st->tx_frames);
		sum->tx_bytes += READ_ONCE(st->tx_bytes);
		sum->tx_retransmits += READ_ONCE(st->tx_retransmits);
		sum->tx_errors += READ_ONCE(st->tx_errors);
		sum->rx_frames += READ_ONCE(st->rx_frames);
		sum->rx_bytes += READ_ONCE(st->rx_bytes);
	}
}

u64 medge_stats_tx_bytes(struct medge_device *dev)
{
	u32 rails = READ_ONCE(dev->rails.end), i;
	u64 bytes = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		for (i = 0; i < rails; i++)
			bytes += READ_ONCE(per_cpu_ptr(dev->rail_stats, cpu)[i].tx_bytes);
	return bytes;
}

void medge_port_stats_read(struct medge_device *dev,
			   struct medge_port_stats *sum)
{
	struct medge_device_stats own = {};
	struct medge_rail_stats rail;
	int i;

	*sum = (struct medge_port_stats) {};
	for (i = 0; i < MEDGE_MAX_RAILS; i++) {
		medge_rail_stats_read(dev, i, &rail);
		sum->tx_frames += rail.tx_frames;
		sum->tx_bytes += rail.tx_bytes;
		sum->tx_errors += rail.tx_errors;
		sum->rx_frames += rail.rx_frames;
		sum->rx_bytes += rail.rx_bytes;
	}
	sum_cpus(dev, &own);
	sum->rx_errors = own.rx_bad_seal;
	for (i = 1; i < MEDGE_DROPS; i++)
		sum->rx_errors += own.drops[i];
}

static void tell_rails(struct medge_device *dev, struct rdma_hw_stats *stats)
{
	struct medge_rail_stats rail;

#define X(n, field) stats->value[AT_rail##n##_##field] = rail.field;
#define R(n)								\
	medge_rail_stats_read(dev, n, &rail);				\
	RAIL_COUNTERS(X, n)
	SHOWN_RAILS(R)
#undef R
#undef X
}

struct rdma_hw_stats *medge_alloc_hw_port_stats(struct ib_device *ibdev,
						u32 port)
{
	return rdma_alloc_hw_stats_struct(descs, NUM_COUNTERS,
					  RDMA_HW_STATS_DEFAULT_LIFESPAN);
}

int medge_get_hw_stats(struct ib_device *ibdev, struct rdma_hw_stats *stats,
		       u32 port, int index)
{
	struct medge_device *dev = to_medge_device(ibdev);
	struct medge_conn_stats *conns;
	struct medge_device_stats own = {};
	int i;

	if (!port)
		return -EINVAL;
	conns = kzalloc(sizeof(*conns), GFP_KERNEL);
	if (!conns)
		return -ENOMEM;
	sum_conns(dev, conns);
	sum_cpus(dev, &own);

#define X(field) stats->value[AT_##field] = conns->field;
	CONN_COUNTERS(X)
#undef X
#define X(field) stats->value[AT_##field] = own.field;
	MEDGE_DEVICE_COUNTERS(X)
#undef X
	for (i = 1; i < MEDGE_DROPS; i++)
		stats->value[AT_DROPS + i - 1] = conns->drops[i] + own.drops[i];
	tell_rails(dev, stats);
	kfree(conns);
	return NUM_COUNTERS;
}
