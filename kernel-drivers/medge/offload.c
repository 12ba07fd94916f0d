// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Have a DMA engine copy what frames bring. */
#include <linux/dmaengine.h>
#include <linux/dma-mapping.h>
#include <linux/ktime.h>
#include <linux/slab.h>

#include "device.h"
#include "offload.h"
#include "place.h"
#include "qp.h"
#include "stats.h"
#include "trace.h"

enum {
	/* Lengths that are measured, */
	MEASURED_LEAST = 1 << 10,
	MEASURED_MOST = 1 << 16,
	MEASURED_ORDER = 6,	/* in memory of this */
	MEASURED_DEPTH = 16,	/* so many copies in a round, */
	MEASURED_TIMES = 4,	/* the best of so many rounds. */
	/* An engine that takes longer for one does not work. */
	MEASURED_MS = 1000,
};

/* Memory that is one, for the CPU and for an engine. */
struct stretch {
	struct page *to;
	u32 to_off;
	const u8 *from;
	u32 len;
};

/**
 * struct medge_copies - those of one frame
 * @qp: which the copies are a user of
 * @skb: the frame
 * @piece: of it; its last bytes are the CPU's, when all else is there
 * @mr: whose memory is written, held; NULL: none is yet
 * @chan: that makes them
 * @next: not yet given to it
 * @left: those it has, and one until all are given
 * @bytes: given
 * @begun: it has some
 * @again: it failed, or memory was absent: a CPU has to place the piece, from its beginning
 * @nak: if not that: how it went but for the last bytes
 * @entry: in offload->done
 */
struct medge_copies {
	struct medge_qp *qp;
	struct sk_buff *skb;
	struct medge_piece piece;
	struct medge_mr *mr;
	struct dma_chan *chan;
	struct stretch next;
	atomic_t left;
	u32 bytes;
	bool begun;
	bool again;
	enum medge_nak nak;
	struct llist_node entry;
};

/* ---- one copy ---- */

static struct dmaengine_unmap_data *map(struct dma_chan *chan, const struct stretch *s)
{
	struct device *dev = dmaengine_get_dma_device(chan);
	struct dmaengine_unmap_data *unmap;

	unmap = dmaengine_get_unmap_data(dev, 2, GFP_ATOMIC);
	if (!unmap)
		return NULL;
	unmap->len = s->len;
	unmap->addr[0] = dma_map_page(dev, virt_to_page(s->from), offset_in_page(s->from),
				      s->len, DMA_TO_DEVICE);
	if (dma_mapping_error(dev, unmap->addr[0]))
		goto fail;
	unmap->to_cnt = 1;
	unmap->addr[1] = dma_map_page(dev, s->to, s->to_off, s->len, DMA_FROM_DEVICE);
	if (dma_mapping_error(dev, unmap->addr[1]))
		goto fail;
	unmap->from_cnt = 1;
	return unmap;

fail:
	dmaengine_unmap_put(unmap);
	return NULL;
}

/* Return: the channel has it, and calls @done with @arg. BHs may be on. */
static bool submit(struct dma_chan *chan, const struct stretch *s,
		   dma_async_tx_callback_result done, void *arg)
{
	struct dma_async_tx_descriptor *tx = NULL;
	struct dmaengine_unmap_data *unmap;
	bool ok = false;

	if (!is_dma_copy_aligned(chan->device, offset_in_page(s->from), s->to_off, s->len))
		return false;
	/* Where they do not see CPUs' caches, what shares a line with others is not theirs. */
	if (!IS_ALIGNED(s->to_off | s->len, dma_get_cache_alignment()))
		return false;
	unmap = map(chan, s);
	if (!unmap)
		return false;
	tx = dmaengine_prep_dma_memcpy(chan, unmap->addr[1], unmap->addr[0], s->len,
				       DMA_PREP_INTERRUPT | DMA_CTRL_ACK);
	if (tx) {
		dma_set_unmap(tx, unmap);
		tx->callback_result = done;
		tx->callback_param = arg;
		ok = !dma_submit_error(dmaengine_submit(tx));
	}
	dmaengine_unmap_put(unmap);
	return ok;
}

/* ---- a frame's ---- */

/* All are made. Any context. */
static void made(struct medge_copies *c)
{
	struct medge_offload *offload = &c->qp->dev->offload;

	if (llist_add(&c->entry, &offload->done))
		tasklet_schedule(&offload->finish);
}

static void copied(void *copies, const struct dmaengine_result *result)
{
	struct medge_copies *c = copies;

	if (result && result->result != DMA_TRANS_NOERROR)
		WRITE_ONCE(c->again, true);
	if (atomic_dec_and_test(&c->left))
		made(c);
}

/* The engine copies what stands in @next, or if it cannot take more, the CPU. */
static void flush(struct medge_copies *c)
{
	const struct stretch *s = &c->next;

	if (!s->len)
		return;
	atomic_inc(&c->left);
	if (submit(c->chan, s, copied, c)) {
		c->begun = true;
		c->bytes += s->len;
	} else {
		atomic_dec(&c->left);
		memmove(page_address(s->to) + s->to_off, s->from, s->len);
	}
	c->next.len = 0;
}

static bool follows(const struct stretch *s, struct page *page, u32 off, const u8 *from)
{
	u32 end = s->to_off + s->len;

	return from == s->from + s->len &&
	       virt_to_head_page(from) == virt_to_head_page(s->from) &&
	       off == offset_in_page(end) && page == s->to + (end >> PAGE_SHIFT) &&
	       page_folio(page) == page_folio(s->to);
}

bool medge_copies_add(struct medge_copies *c, struct medge_mr *mr, struct page *page,
		      u32 off, const void *from, u32 len)
{
	/* Other regions' pages may be taken away, or are not memory. */
	if (!mr->umem || (c->mr && c->mr != mr))
		return false;
	if (!c->mr) {
		refcount_inc(&mr->ref);
		c->mr = mr;
	}
	if (c->next.len && follows(&c->next, page, off, from)) {
		c->next.len += len;
		return true;
	}
	flush(c);
	c->next = (struct stretch) {
		.to = page,
		.to_off = off,
		.from = from,
		.len = len,
	};
	return true;
}

/* They count among those under way. RCU read side. Return: NULL: without them. */
static struct medge_copies *begin(struct medge_qp *qp, struct sk_buff *skb,
				  const struct medge_piece *piece)
{
	struct medge_offload *offload = &qp->dev->offload;
	struct dma_chan *chan = rcu_dereference(offload->chan);
	struct medge_copies *c;

	if (!chan || IS_ENABLED(CONFIG_HIGHMEM))
		return NULL;
	c = kmalloc(sizeof(*c), GFP_ATOMIC);
	if (!c)
		return NULL;
	if (!medge_qp_hold(qp)) {
		kfree(c);
		return NULL;
	}
	*c = (struct medge_copies) {
		.qp = qp,
		.skb = skb,
		.piece = *piece,
		.chan = chan,
		.left = ATOMIC_INIT(1),
	};
	atomic_inc(&offload->under_way);
	return c;
}

static void end(struct medge_copies *c)
{
	struct medge_offload *offload = &c->qp->dev->offload;

	if (c->mr)
		medge_mr_put(c->mr);
	/* Who waits for that goes on to free the device only when the QP has gone. */
	if (atomic_dec_and_test(&offload->under_way))
		wake_up(&offload->idle);
	medge_qp_put(c->qp);
	kfree(c);
}

/* All but the last bytes: the engine, where it can. */
static void place_body(struct medge_copies *c, struct medge_absent *absent)
{
	struct medge_piece body = c->piece;

	body.op.len -= medge_place_last(&body.op);
	c->nak = medge_place_piece(c->qp, c->skb, &body, false, c, absent);
}

/* And these, if all went well. */
static void place_last(struct medge_copies *c, struct medge_absent *absent)
{
	u32 len = medge_place_last(&c->piece.op);
	u32 before = c->piece.op.len - len;
	struct medge_piece last = c->piece;

	if (!len || c->nak != MEDGE_NAK_NONE)
		return;
	last.op.len = len;
	last.op.offset += before;
	last.op.data_off += before;
	c->nak = medge_place_piece(c->qp, c->skb, &last, false, NULL, absent);
}

/* All that can be given to the engine is. Return: it has some. */
static bool all_given(struct medge_copies *c, struct medge_absent *absent)
{
	struct medge_device *dev = c->qp->dev;

	flush(c);
	if (!c->begun)
		return false;
	if (absent->mr) {
		medge_mr_put(absent->mr);
		absent->mr = NULL;
		WRITE_ONCE(c->again, true);
	}
	local_bh_disable();
	medge_count(dev, offload_frames);
	medge_count_add(dev, offload_bytes, c->bytes);
	local_bh_enable();
	dma_async_issue_pending(c->chan);
	/* From here on it may be over. */
	if (atomic_dec_and_test(&c->left))
		made(c);
	return true;
}

bool medge_offload_piece(struct medge_qp *qp, struct sk_buff *skb,
			 const struct medge_piece *piece, enum medge_nak *nak,
			 struct medge_absent *absent)
{
	struct medge_copies *c;
	bool given;

	rcu_read_lock();
	c = begin(qp, skb, piece);
	if (!c) {
		rcu_read_unlock();
		*nak = medge_place_piece(qp, skb, piece, false, NULL, absent);
		return false;
	}
	place_body(c, absent);
	given = all_given(c, absent);
	rcu_read_unlock();
	if (given)
		return true;
	place_last(c, absent);
	*nak = c->nak;
	end(c);
	return false;
}

/* In softirq. */
static void finish(struct medge_copies *c)
{
	struct medge_qp *qp = c->qp;
	struct medge_absent absent = {};

	if (READ_ONCE(c->again)) {
		medge_count(qp->dev, offload_again);
	} else {
		place_last(c, &absent);
		if (absent.mr) {
			medge_mr_put(absent.mr);
			c->again = true;
		}
	}
	if (c->again) {
		spin_lock_bh(&qp->lock);
		medge_faults_hold(qp, c->skb);
		spin_unlock_bh(&qp->lock);
	} else {
		medge_receive_copied(qp, c->skb, &c->piece, c->nak);
	}
	end(c);
}

static void finish_all(struct tasklet_struct *tasklet)
{
	struct medge_offload *offload = container_of(tasklet, struct medge_offload, finish);
	struct llist_node *done = llist_reverse_order(llist_del_all(&offload->done));
	struct medge_copies *c, *next;

	llist_for_each_entry_safe(c, next, done, entry)
		finish(c);
}

/* ---- how fast it is ---- */

struct rounds {
	struct dma_chan *chan;
	struct page *from, *to;
	atomic_t left;
	bool failed;
	struct completion done;
};

static void round_copied(void *rounds, const struct dmaengine_result *result)
{
	struct rounds *r = rounds;

	if (result && result->result != DMA_TRANS_NOERROR)
		WRITE_ONCE(r->failed, true);
	if (atomic_dec_and_test(&r->left))
		complete(&r->done);
}

static struct stretch measured(const struct rounds *r, u32 len, u32 i)
{
	u32 at = i * len % (PAGE_SIZE << MEASURED_ORDER);

	return (struct stretch) {
		.to = r->to + (at >> PAGE_SHIFT),
		.to_off = offset_in_page(at),
		.from = page_address(r->from) + at,
		.len = len,
	};
}

/* ns of MEASURED_DEPTH copies: to give them to the engine, and until it has made them. */
struct took {
	u64 handed;
	u64 made;
};

/* The same of the CPU. */
static u64 cpu_takes(const struct rounds *r, u32 len)
{
	u64 best = U64_MAX, began;
	u32 n, i;

	for (n = 0; n < MEASURED_TIMES; n++) {
		began = ktime_get_ns();
		for (i = 0; i < MEASURED_DEPTH; i++) {
			struct stretch s = measured(r, len, i);

			memmove(page_address(s.to) + s.to_off, s.from, len);
		}
		best = min(best, ktime_get_ns() - began);
	}
	return best;
}

/* Return: the engine made all. */
static bool engine_round(struct rounds *r, u32 len, struct took *took)
{
	u64 began = ktime_get_ns();
	bool all = true;
	u32 i;

	reinit_completion(&r->done);
	atomic_set(&r->left, 1);
	for (i = 0; i < MEASURED_DEPTH && all; i++) {
		struct stretch s = measured(r, len, i);

		atomic_inc(&r->left);
		all = submit(r->chan, &s, round_copied, r);
		if (!all)
			atomic_dec(&r->left);
	}
	dma_async_issue_pending(r->chan);
	took->handed = ktime_get_ns() - began;
	if (!atomic_dec_and_test(&r->left) &&
	    !wait_for_completion_timeout(&r->done, msecs_to_jiffies(MEASURED_MS)))
		return false;
	took->made = ktime_get_ns() - began;
	return all && !READ_ONCE(r->failed);
}

static bool engine_takes(struct rounds *r, u32 len, struct took *best)
{
	struct took took;
	u32 n;

	*best = (struct took) { .handed = U64_MAX, .made = U64_MAX };
	for (n = 0; n < MEASURED_TIMES; n++) {
		if (!engine_round(r, len, &took))
			return false;
		best->handed = min(best->handed, took.handed);
		best->made = min(best->made, took.made);
	}
	return true;
}

/* Return: 0, or why it cannot be; @least: from which length on the engine is no slower. */
static int find_least(struct rounds *r, u32 *least)
{
	u32 len;

	*least = MEDGE_OFFLOAD_NEVER;
	for (len = MEASURED_LEAST; len <= MEASURED_MOST; len *= 2) {
		struct took engine;
		u64 cpu;

		if (!engine_takes(r, len, &engine))
			return -EIO;
		cpu = cpu_takes(r, len);
		trace_medge_engine(dma_chan_name(r->chan), len, cpu / MEASURED_DEPTH,
				   engine.handed / MEASURED_DEPTH, engine.made / MEASURED_DEPTH);
		if (engine.made > cpu)
			*least = MEDGE_OFFLOAD_NEVER;
		else
			*least = min(*least, len);
	}
	return 0;
}

static void free_rounds(struct rounds *r)
{
	if (r->from)
		__free_pages(r->from, MEASURED_ORDER);
	if (r->to)
		__free_pages(r->to, MEASURED_ORDER);
	kfree(r);
}

static struct rounds *alloc_rounds(struct dma_chan *chan)
{
	struct rounds *r = kzalloc(sizeof(*r), GFP_KERNEL);

	if (!r)
		return NULL;
	r->chan = chan;
	init_completion(&r->done);
	r->from = alloc_pages(GFP_KERNEL | __GFP_COMP | __GFP_ZERO, MEASURED_ORDER);
	r->to = alloc_pages(GFP_KERNEL | __GFP_COMP | __GFP_ZERO, MEASURED_ORDER);
	if (r->from && r->to)
		return r;
	free_rounds(r);
	return NULL;
}

static int measure(struct dma_chan *chan, u32 *least)
{
	struct rounds *r = alloc_rounds(chan);
	int err;

	if (!r)
		return -ENOMEM;
	err = find_least(r, least);
	/* Who cannot be stopped may write at any time. */
	if (!atomic_read(&r->left) || !dmaengine_terminate_sync(chan))
		free_rounds(r);
	return err;
}

/* ---- which ---- */

static bool is_named(struct dma_chan *chan, void *name)
{
	return !name || !strcmp(dma_chan_name(chan), name);
}

static struct dma_chan *channel(const struct medge_offload *offload)
{
	return rcu_dereference_protected(offload->chan,
					 lockdep_is_held(&offload->control));
}

/* Under offload->control. */
static void give_back(struct medge_offload *offload)
{
	struct dma_chan *chan = channel(offload);

	if (!chan)
		return;
	WRITE_ONCE(offload->least, MEDGE_OFFLOAD_NEVER);
	RCU_INIT_POINTER(offload->chan, NULL);
	synchronize_rcu();
	if (!atomic_dec_and_test(&offload->under_way))
		wait_event(offload->idle, !atomic_read(&offload->under_way));
	dmaengine_synchronize(chan);
	dma_release_channel(chan);
}

/* Under offload->control. */
static int take(struct medge_offload *offload, const char *name, u32 least)
{
	struct dma_chan *chan;
	dma_cap_mask_t mask;
	int err = 0;

	dma_cap_zero(mask);
	dma_cap_set(DMA_MEMCPY, mask);
	chan = dma_request_channel(mask, is_named, (void *)name);
	if (!chan)
		return -ENODEV;
	if (!least)
		err = measure(chan, &least);
	if (!err && !name && least == MEDGE_OFFLOAD_NEVER)
		err = -ENODEV;
	if (err) {
		dma_release_channel(chan);
		return err;
	}
	atomic_inc(&offload->under_way);
	rcu_assign_pointer(offload->chan, chan);
	WRITE_ONCE(offload->least, least);
	return 0;
}

int medge_offload_take(struct medge_offload *offload, const char *name, u32 least)
{
	int err;

	if (mutex_lock_interruptible(&offload->control))
		return -EINTR;
	give_back(offload);
	err = take(offload, name, least);
	mutex_unlock(&offload->control);
	return err;
}

void medge_offload_drop(struct medge_offload *offload)
{
	mutex_lock(&offload->control);
	give_back(offload);
	mutex_unlock(&offload->control);
}

int medge_offload_show(struct medge_offload *offload, char *buf)
{
	struct dma_chan *chan;
	int len;

	mutex_lock(&offload->control);
	chan = channel(offload);
	if (!chan)
		len = sysfs_emit(buf, "off\n");
	else if (offload->least == MEDGE_OFFLOAD_NEVER)
		len = sysfs_emit(buf, "%s never\n", dma_chan_name(chan));
	else
		len = sysfs_emit(buf, "%s %u\n", dma_chan_name(chan), offload->least);
	mutex_unlock(&offload->control);
	return len;
}

void medge_offload_init(struct medge_offload *offload)
{
	mutex_init(&offload->control);
	offload->least = MEDGE_OFFLOAD_NEVER;
	init_waitqueue_head(&offload->idle);
	init_llist_head(&offload->done);
	tasklet_setup(&offload->finish, finish_all);
}

void medge_offload_destroy(struct medge_offload *offload)
{
	medge_offload_drop(offload);
	tasklet_kill(&offload->finish);
}
