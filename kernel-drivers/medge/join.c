// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Join frames of one op, see join.h. */
#include <linux/etherdevice.h>
#include <linux/percpu.h>
#include <linux/skbuff.h>

#include "device.h"
#include "join.h"
#include "rail.h"
#include "receive.h"
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

/* May others be joined to it? Its list of skbs must be ours alone. */
static bool may_begin(const struct sk_buff *skb, const struct medge_frame *f)
{
	return medge_wire_goes_on(f) && is_all_payload(skb, f) &&
	       !skb_cloned(skb);
}

/* Of a run that was cut, nearly all headers are known from the first. */
static void expect(struct medge_join *j)
{
	u32 len = MEDGE_HDR_LEN + j->wait.frame.seg_len;

	WRITE_ONCE(j->next_len,
		   medge_wire_follow(&j->wait.frame, j->next) ? len : 0);
}

static void begin(struct medge_join *j, struct sk_buff *skb,
		  const struct medge_frame *f, const struct medge_rx_l2 *l2)
{
	j->wait.frame = *f;
	j->wait.l2 = *l2;
	WRITE_ONCE(j->wait.skb, skb);
	j->last = NULL;
	WRITE_ONCE(j->next_len, 0);
	if (f->nframes == 1 && f->op.len == f->seg_len) {
		memcpy(j->next, skb->data, MEDGE_HDR_LEN);
		expect(j);
	}
	tasklet_schedule(&j->end);
}

/* Its payload goes behind those that wait. */
static void append(struct medge_join *j, struct sk_buff *skb, u32 data_off)
{
	struct sk_buff *first = j->wait.skb;

	__skb_pull(skb, data_off);
	skb_mark_not_on_list(skb);
	if (j->last)
		j->last->next = skb;
	else
		skb_shinfo(first)->frag_list = skb;
	j->last = skb;
	first->len += skb->len;
	first->data_len += skb->len;
	first->truesize += skb->truesize;
	medge_count(j->rail->dev, rx_joined);
}

/* Return: it is the expected frame, and is one of those that wait now. */
static bool add_expected(struct medge_join *j, struct sk_buff *skb,
			 const struct medge_rx_l2 *l2)
{
	struct medge_joined *w = &j->wait;
	bool is;

	if (skb->len != READ_ONCE(j->next_len) ||
	    skb_headlen(skb) < MEDGE_HDR_LEN)
		return false;
	spin_lock(&j->lock);
	is = w->skb && skb->len == j->next_len &&
	     medge_wire_same_header(skb->data, j->next) &&
	     same_way(&w->l2, l2);
	if (is) {
		medge_wire_join_full(&w->frame);
		append(j, skb, MEDGE_HDR_LEN);
		expect(j);
	}
	spin_unlock(&j->lock);
	return is;
}

/* Return: the frame follows those that wait, and is one of them now. */
static bool add(struct medge_join *j, struct sk_buff *skb,
		const struct medge_frame *f, const struct medge_rx_l2 *l2)
{
	struct medge_joined *w = &j->wait;

	if (!w->skb || !is_all_payload(skb, f) || !same_way(&w->l2, l2) ||
	    !medge_wire_join(&w->frame, f))
		return false;
	append(j, skb, f->op.data_off);
	WRITE_ONCE(j->next_len, 0);
	return true;
}

/* What waits, if anything does; it waits no more. */
static void take(struct medge_join *j, struct medge_joined *g)
{
	g->skb = j->wait.skb;
	if (!g->skb)
		return;
	*g = j->wait;
	WRITE_ONCE(j->wait.skb, NULL);
}

static void go_on(struct medge_arrivals *in, struct medge_joined *g)
{
	if (g->skb)
		medge_receive_decoded(in, g->skb, &g->frame, &g->l2);
}

/*
 * Return: the frame, if it does not wait; those before it went on.
 * @begins: others may be joined to it
 */
static struct sk_buff *join(struct medge_join *j, struct medge_arrivals *in,
			    struct sk_buff *skb, const struct medge_frame *f,
			    const struct medge_rx_l2 *l2, bool begins)
{
	struct medge_joined before;

	before.skb = NULL;
	spin_lock(&j->lock);
	if (add(j, skb, f, l2)) {
		skb = NULL;
		if (!medge_wire_goes_on(&j->wait.frame))
			take(j, &before);
	} else {
		take(j, &before);
		if (begins) {
			begin(j, skb, f, l2);
			skb = NULL;
		}
	}
	spin_unlock(&j->lock);
	go_on(in, &before);
	return skb;
}

void medge_join_receive(struct medge_arrivals *in, struct sk_buff *skb,
			const struct medge_rx_l2 *l2)
{
	struct medge_rail *rail = in->rail;
	struct medge_join *j = this_cpu_ptr(rail->join);
	struct medge_frame f __uninitialized;
	bool begins;

	if (READ_ONCE(j->wait.skb) && add_expected(j, skb, l2))
		return;
	if (!medge_receive_decode(rail->dev, skb, &f))
		return;
	begins = may_begin(skb, &f);
	if (begins || READ_ONCE(j->wait.skb))
		skb = join(j, in, skb, &f, l2, begins);
	if (skb)
		medge_receive_decoded(in, skb, &f, l2);
}

static void end(struct tasklet_struct *t)
{
	struct medge_join *j = from_tasklet(j, t, end);
	struct medge_arrivals in __uninitialized;
	struct medge_joined g;

	spin_lock(&j->lock);
	take(j, &g);
	spin_unlock(&j->lock);
	medge_arrivals_init(&in, j->rail);
	rcu_read_lock();
	go_on(&in, &g);
	medge_arrivals_end(&in);
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
