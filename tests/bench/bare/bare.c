// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What the machine itself can do: frames that reference pages, sent on one port and copied once where they
 * arrive, with no protocol between.
 *
 *	insmod bare.ko netdev=rail0,rail1 seg=8900 frames=7 cpus=2 ms=300
 *
 * sends superframes of @frames frames of @seg bytes from each of @cpus CPUs for @ms milliseconds, over the ports in
 * turn. Of those on their way, each port has no more than @queue, where that is not 0: a port with a rate. What is sent
 * and where it goes is a MiB for each CPU, from end to end, as it is for who writes messages of that size. What came is
 * then found in the parameters: bytes and packets copied, and ns; and the rate of memcpy of pages that size. With two
 * CPUs or more, line_ns is how long a cache line takes from the first to the second and back: what two CPUs that share
 * something have to pay, which differs by where a host lets them run.
 */
#include <linux/delay.h>
#include <linux/etherdevice.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/nsproxy.h>
#include <linux/skbuff.h>
#include <linux/vmalloc.h>
#include <net/net_namespace.h>

enum {
	ETHERTYPE = 0x88b5,	/* for local experiments, and not medge's */
	HEADROOM = 64,
	HDR = 64,		/* of each frame, as a protocol would have it */
	MEMORY = 1 << 20,	/* of a sender, and of a receiver */
	SUPERFRAME_MAX = 65000,
	CPUS_MAX = 4,
	PORTS_MAX = 8,
	/* Who finds all ports full looks again then. */
	NAP_US = 20,
	LAST_MS = 1000,
	/* skbs between two looks at what has arrived; what is cut of them fits in a CPU's backlog. */
	BATCH = 8,
	/* Of a line from CPU to CPU: the best of so many goes of so many rounds, since others want the CPUs, too. */
	LINE_GOES = 32,
	LINE_ROUNDS = 500,
};

static char *netdev[PORTS_MAX] = { "rail0" };
static uint ports = 1;
module_param_array(netdev, charp, &ports, 0444);
static uint seg = 8900;
module_param(seg, uint, 0444);
static uint frames = 7;
module_param(frames, uint, 0444);
static uint cpus = 1;
module_param(cpus, uint, 0444);
static uint ms = 300;
module_param(ms, uint, 0444);
static uint queue;
module_param(queue, uint, 0444);

static ulong bytes, packets, ns, memcpy_bytes, memcpy_ns, line_ns;
module_param(bytes, ulong, 0444);
module_param(packets, ulong, 0444);
module_param(ns, ulong, 0444);
module_param(memcpy_bytes, ulong, 0444);
module_param(memcpy_ns, ulong, 0444);
module_param(line_ns, ulong, 0444);

struct port {
	struct net_device *dev;
	atomic_long_t queued;	/* bytes sent that have not arrived: a qdisc with a rate may disown skbs at once */
};

static struct port all_ports[PORTS_MAX];

/* One for each CPU that sends or receives. */
struct side {
	struct task_struct *task;
	u32 turn;		/* which port is next */
	u8 *from, *to;
	u32 next;		/* where in @from the next superframe begins: at a page */
	u32 at;			/* where in @to the next frame is copied */
	u64 bytes, packets;
	struct completion done;
};

static struct side sides[CPUS_MAX];
static u64 end;

static int receive(struct sk_buff *skb, struct net_device *dev, struct packet_type *type, struct net_device *orig)
{
	struct side *side = &sides[smp_processor_id()];
	u32 len = skb->len > HDR ? skb->len - HDR : 0;

	/* Each frame says by which port it was sent. */
	if (queue && skb_headlen(skb) >= HDR && skb->data[0] < ports)
		atomic_long_sub(len, &all_ports[skb->data[0]].queued);
	if (!side->to)
		goto out;
	if (side->at + len > MEMORY)
		side->at = 0;
	if (!skb_copy_bits(skb, HDR, side->to + side->at, len)) {
		side->at += len;
		side->bytes += len;
		side->packets++;
	}
out:
	consume_skb(skb);
	return NET_RX_SUCCESS;
}

static struct packet_type handler __read_mostly = {
	.type = cpu_to_be16(ETHERTYPE),
	.func = receive,
};

static struct sk_buff *cut(struct sk_buff *skb, netdev_features_t features)
{
	if (!pskb_may_pull(skb, HDR))
		return ERR_PTR(-EINVAL);
	__skb_pull(skb, HDR);
	return skb_segment(skb, (features | NETIF_F_HW_CSUM) & ~NETIF_F_GSO_PARTIAL);
}

static struct packet_offload offload __read_mostly = {
	.type = cpu_to_be16(ETHERTYPE),
	.priority = 15,
	.callbacks = { .gso_segment = cut },
};

static void add_pages(struct sk_buff *skb, struct side *side, u32 len)
{
	u32 done, n, i = 0;

	if (side->next + PAGE_ALIGN(len) > MEMORY)
		side->next = 0;
	for (done = 0; done < len; done += n) {
		struct page *page = vmalloc_to_page(side->from + side->next + done);

		n = min_t(u32, len - done, PAGE_SIZE);
		get_page(page);
		skb_fill_page_desc(skb, i++, page, 0, n);
	}
	side->next += PAGE_ALIGN(len);
	skb->len += len;
	skb->data_len += len;
	skb->truesize += len;
}

static struct sk_buff *build(struct side *side, struct port *port)
{
	struct sk_buff *skb = alloc_skb(HEADROOM + HDR, GFP_KERNEL);
	struct ethhdr *eth;

	if (!skb)
		return NULL;
	skb_reserve(skb, HEADROOM);
	skb_reset_network_header(skb);
	memset(skb_put(skb, HDR), 0, HDR);
	skb->data[0] = port - all_ports;
	add_pages(skb, side, seg * frames);
	if (frames > 1) {
		skb_shinfo(skb)->gso_size = seg;
		skb_shinfo(skb)->gso_segs = frames;
		skb_shinfo(skb)->gso_type = SKB_GSO_FRAGLIST;
	}
	skb->ip_summed = CHECKSUM_UNNECESSARY;
	skb->protocol = cpu_to_be16(ETHERTYPE);
	skb->dev = port->dev;
	atomic_long_add(seg * frames, &port->queued);
	eth = skb_push(skb, ETH_HLEN);
	skb_reset_mac_header(skb);
	eth_broadcast_addr(eth->h_dest);
	ether_addr_copy(eth->h_source, port->dev->dev_addr);
	eth->h_proto = cpu_to_be16(ETHERTYPE);
	return skb;
}

/* Return: that with room whose turn it is, or NULL. */
static struct port *next_port(struct side *side)
{
	u32 i;

	for (i = 0; i < ports; i++) {
		struct port *port = &all_ports[side->turn++ % ports];

		if (!queue || atomic_long_read(&port->queued) < (long)queue * seg * frames)
			return port;
	}
	return NULL;
}

static int send(void *arg)
{
	struct side *side = arg;
	struct port *port;
	int i;

	while (ktime_get_ns() < end) {
		local_bh_disable();
		for (i = 0; i < BATCH && (port = next_port(side)); i++) {
			struct sk_buff *skb = build(side, port);

			if (skb)
				dev_queue_xmit(skb);
		}
		/* Here they arrive. */
		local_bh_enable();
		if (i < BATCH)
			usleep_range(NAP_US, 2 * NAP_US);
		cond_resched();
	}
	complete(&side->done);
	return 0;
}

static void measure_memcpy(struct side *side)
{
	u64 began = ktime_get_ns();

	do {
		memcpy(side->to, side->from, MEMORY);
		memcpy_bytes += MEMORY;
		memcpy_ns = ktime_get_ns() - began;
	} while (memcpy_ns < 50 * NSEC_PER_MSEC);
}

/* Whose it is to take the next turn: even, the first CPU's. */
static struct {
	unsigned int turn ____cacheline_aligned_in_smp;
} line;

static int take_turns(void *arg)
{
	struct side *side = arg;
	unsigned int first = side - sides, turn;
	u64 began = 0, now;

	for (turn = first; turn < 2 * LINE_GOES * LINE_ROUNDS; turn += 2) {
		while (smp_load_acquire(&line.turn) != turn)
			cpu_relax();
		if (turn % (2 * LINE_ROUNDS) == 0) {
			now = ktime_get_ns();
			if (turn)
				line_ns = min_not_zero(line_ns, (ulong)div_u64(now - began, LINE_ROUNDS));
			began = now;
		}
		smp_store_release(&line.turn, turn + 1);
	}
	complete(&side->done);
	return 0;
}

static void free_sides(void)
{
	int i;

	for (i = 0; i < CPUS_MAX; i++) {
		vfree(sides[i].from);
		vfree(sides[i].to);
	}
}

static int alloc_sides(void)
{
	int i;

	for (i = 0; i < CPUS_MAX; i++) {
		sides[i].turn = i;
		sides[i].from = vzalloc(MEMORY);
		sides[i].to = vzalloc(MEMORY);
		init_completion(&sides[i].done);
		if (!sides[i].from || !sides[i].to)
			return -ENOMEM;
	}
	return 0;
}

/* @n threads, each on its CPU, until all have ended. */
static int on_cpus(u32 n, int (*run)(void *))
{
	u32 i;

	for (i = 0; i < n; i++) {
		struct side *side = &sides[i];

		side->task = kthread_create(run, side, "bare/%u", i);
		if (IS_ERR(side->task)) {
			int err = PTR_ERR(side->task);

			while (i--)
				kthread_stop(sides[i].task);
			return err;
		}
		kthread_bind(side->task, i);
	}
	for (i = 0; i < n; i++)
		wake_up_process(sides[i].task);
	for (i = 0; i < n; i++)
		wait_for_completion(&sides[i].done);
	return 0;
}

static int measure(void)
{
	u64 began;
	int i, err;

	if (cpus > 1) {
		err = on_cpus(2, take_turns);
		if (err)
			return err;
	}
	began = ktime_get_ns();
	end = began + ms * NSEC_PER_MSEC;
	err = on_cpus(cpus, send);
	ns = ktime_get_ns() - began;
	for (i = 0; i < CPUS_MAX; i++) {
		bytes += sides[i].bytes;
		packets += sides[i].packets;
	}
	return err;
}

static void put_ports(void)
{
	u32 i;

	for (i = 0; i < ports; i++)
		dev_put(all_ports[i].dev);
}

static int get_ports(void)
{
	u32 i;

	for (i = 0; i < ports; i++) {
		all_ports[i].dev = dev_get_by_name(current->nsproxy->net_ns, netdev[i]);
		if (!all_ports[i].dev) {
			put_ports();
			return -ENODEV;
		}
	}
	return 0;
}

/* Who measures next is to find the ports empty; what is lost is not waited for. */
static void wait_until_arrived(void)
{
	u64 until = ktime_get_ns() + LAST_MS * NSEC_PER_MSEC;
	u32 i;

	for (i = 0; queue && i < ports; i++)
		while (atomic_long_read(&all_ports[i].queued) > 0 && ktime_get_ns() < until)
			usleep_range(NAP_US, 2 * NAP_US);
}

static int __init bare_init(void)
{
	int err;

	if (!cpus || cpus > min_t(u32, CPUS_MAX, num_online_cpus()) || !seg || seg > MEMORY || !frames ||
	    (u64)seg * frames > SUPERFRAME_MAX)
		return -EINVAL;
	err = get_ports();
	if (err)
		return err;
	err = alloc_sides();
	if (!err) {
		measure_memcpy(&sides[0]);
		dev_add_offload(&offload);
		dev_add_pack(&handler);
		err = measure();
		wait_until_arrived();
		dev_remove_pack(&handler);
		dev_remove_offload(&offload);
	}
	put_ports();
	free_sides();
	return err;
}

static void __exit bare_exit(void)
{
}

module_init(bare_init);
module_exit(bare_exit);
MODULE_DESCRIPTION("Frames without a protocol, for a limit to compare with");
MODULE_LICENSE("Dual BSD/GPL");
