// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Join frames that were cut, see join.h. */
#include <linux/etherdevice.h>
#include <linux/percpu.h>
#include <linux/skbuff.h>

#include "device.h"
#include "join.h"
#include "rail.h"
#include "stats.h"

/* Only what has no padding behind it can be in front of another. */
static bool is_all_payload(const struct sk_buff *skb, const struct medge_frame *f)
{
	return skb->len == f->op.data_off + f->op.len;
}

static bool same_way(const struct medge_rx_l2 *a, const struct medge_rx_l2 *b)
{
	return ether_addr_equal(a->smac, b->smac) && a->vlan == b->vlan &&
	       a->multicast == b->multicast;
}

/* May others be joined to it? It was cut; and its list of skbs must be ours alone. */
static bool may_begin(const struct sk_buff *skb, const struct medge_frame *f)
{
	return f->nframes == 1 && medge_wire_goes_on(f) &&
	       is_all_payload(skb, f) && !skb_cloned(skb);
}

static void begin(struct medge_join *j, struct sk_buff *skb,
		  const struct medge_frame *f, const struct medge_rx_l2 *l2)
{
	WRITE_ONCE(j->skb, skb);
	j->last = NULL;
	j->frame = *f;
	j->l2 = *l2;
	tasklet_schedule(&j->end);
}

/* Return: the frame follows those that wait, and is one of them now. */
static bool add(struct medge_join *j, struct sk_buff *skb,
		const struct medge_frame *f, const struct medge_rx_l2 *l2)
{
	if (!j->skb || !is_all_payload(skb, f) || !same_way(&j->l2, l2) ||
	    !medge_wire_join(&j->frame, f))
		return false;
	__skb_pull(skb, f->op.data_off);
	skb_mark_not_on_list(skb);
	if (j->last)
		j->last->next = skb;
	else
		skb_shinfo(j->skb)->frag_list = skb;
	j->last = skb;
	j->skb->len += skb->len;
	j->skb->data_len += skb->len;
	j->skb->truesize += skb->truesize;
	medge_count(j->rail->dev, rx_joined);
	return true;
}

/* Frames on their way from here to their connection. */
struct group {
	struct sk_buff *skb;
	struct medge_frame frame;
	struct medge_rx_l2 l2;
};

/* What waits, if anything does; it waits no more. */
static void take(struct medge_join *j, struct group *g)
{
	g->skb = j->skb;
	if (!g->skb)
		return;
	g->frame = j->frame;
	g->l2 = j->l2;
	WRITE_ONCE(j->skb, NULL);
}

static void go_on(struct medge_rail *rail, struct group *g)
{
	if (g->skb)
		medge_receive_decoded(rail, g->skb, &g->frame, &g->l2);
}

/* Return: the frame, if it does not wait; those before it went on. */
static struct sk_buff *join(struct medge_join *j, struct sk_buff *skb,
			    const struct medge_frame *f,
			    const struct medge_rx_l2 *l2)
{
	struct group before;

	before.skb = NULL;
	spin_lock(&j->lock);
	if (add(j, skb, f, l2)) {
		skb = NULL;
		if (!medge_wire_goes_on(&j->frame))
			take(j, &before);
	} else {
		take(j, &before);
		if (may_begin(skb, f)) {
			begin(j, skb, f, l2);
			skb = NULL;
		}
	}
	spin_unlock(&j->lock);
	go_on(j->rail, &before);
	return skb;
}

void medge_join_receive(struct medge_rail *rail, struct sk_buff *skb,
			const struct medge_rx_l2 *l2)
{
	struct medge_join *j = this_cpu_ptr(rail->join);
	struct medge_frame f;

	if (!medge_receive_decode(rail->dev, skb, &f))
		return;
	if (READ_ONCE(j->skb) || may_begin(skb, &f))
		skb = join(j, skb, &f, l2);
	if (skb)
		medge_receive_decoded(rail, skb, &f, l2);
}

static void end(struct tasklet_struct *t)
{
	struct medge_join *j = from_tasklet(j, t, end);
	struct group g;

	spin_lock(&j->lock);
	take(j, &g);
	spin_unlock(&j->lock);
	rcu_read_lock();
	go_on(j->rail, &g);
	rcu_read_unlock();
}

int medge_join_init(struct medge_rail *rail)
{
	int cpu;

	rail->join = alloc_percpu(struct medge_join);
	if (!rail->join)
		return -ENOMEM;
	for_each_possible_cpu(cpu) {
		struct medge_join *j = per_cpu_ptr(rail->join, cpu);

		spin_lock_init(&j->lock);
		tasklet_setup(&j->end, end);
		j->rail = rail;
	}
	return 0;
}

void medge_join_destroy(struct medge_rail *rail)
{
	int cpu;

	/* Whatever waits has its tasklet scheduled, which is waited for. */
	for_each_possible_cpu(cpu)
		tasklet_kill(&per_cpu_ptr(rail->join, cpu)->end);
	free_percpu(rail->join);
}
