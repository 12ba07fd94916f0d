// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Find the pages that keys and addresses stand for, and copy to and from them. */
#include <linux/highmem.h>
#include <linux/skbuff.h>

#include "compat.h"
#include "offload.h"
#include "place.h"
#include "snap.h"

void medge_walk_start(struct medge_walk *w, struct medge_qp *qp,
		      const struct ib_pd *pd, int access,
		      const struct medge_sge *sge, u32 num_sge, u32 offset,
		      u32 len)
{
	while (num_sge && offset >= sge->length) {
		offset -= sge->length;
		sge++;
		num_sge--;
	}
	*w = (struct medge_walk) {
		.qp = qp,
		.pd = pd,
		.access = access,
		.sge = sge,
		.num_sge = num_sge,
		.skip = offset,
		.left = len,
	};
}

static void walk_put_mr(struct medge_walk *w)
{
	if (!w->mr)
		return;
	medge_mr_leave(w->mr);
	medge_mr_put(w->mr);
	w->mr = NULL;
	w->pages = NULL;
}

static void walk_leave(struct medge_walk *w)
{
	walk_put_mr(w);
	w->skip = 0;
	w->sge++;
	w->num_sge--;
}

/* Be in an SGE with bytes left, its memory held. */
static bool walk_enter(struct medge_walk *w)
{
	u32 len;

	while (w->num_sge && w->skip == w->sge->length)
		walk_leave(w);
	if (!w->num_sge)
		return false;
	if (w->mr)
		return true;
	len = min(w->left, w->sge->length - w->skip);
	if (w->locked)
		w->mr = medge_mr_get_locked(w->qp, w->pd, w->sge->lkey,
					    w->sge->addr + w->skip, len, w->access);
	else
		w->mr = medge_mr_get(w->qp, w->pd, w->sge->lkey,
				     w->sge->addr + w->skip, len, w->access);
	w->fault = !w->mr;
	if (!w->mr)
		return false;
	medge_mr_enter(w->mr);
	w->pages = w->mr->pages;
	w->base = w->sge->addr - w->mr->iova + w->mr->page_off;
	return true;
}

/* There is no page where we are. The rest of the SGE may be as absent. */
static void walk_miss(struct medge_walk *w)
{
	w->fault = true;
	if (!w->absent || !w->mr->odp)
		return;
	refcount_inc(&w->mr->ref);
	*w->absent = (struct medge_absent) {
		.mr = w->mr,
		.addr = w->sge->addr + w->skip,
		.len = w->sge->length - w->skip,
		.write = w->access & MEDGE_WRITE_RIGHTS,
	};
}

u32 medge_walk_on(struct medge_walk *w, u32 max)
{
	u32 len = min(max, w->left);

	if (!len || w->fault || !walk_enter(w))
		return 0;
	w->page = medge_mr_page(w->mr, w->sge->addr + w->skip, w->access,
				&w->page_at);
	if (!w->page) {
		walk_miss(w);
		return 0;
	}
	len = min3(len, w->sge->length - w->skip, (u32)PAGE_SIZE - w->page_at);
	w->skip += len;
	w->left -= len;
	return len;
}

bool medge_walk_end(struct medge_walk *w)
{
	walk_put_mr(w);
	return !w->left && !w->fault;
}

bool medge_walk_read(struct medge_walk *w, void *to, u32 len)
{
	while (len) {
		struct page *page;
		u32 off, n = medge_walk_next(w, len, &page, &off);

		if (!n)
			return false;
		memcpy_from_page(to, page, off, n);
		to += n;
		len -= n;
	}
	return true;
}

static bool walk_put(struct medge_walk *w, const void *from, u32 len)
{
	while (len) {
		struct page *page;
		u32 off, n = medge_walk_next(w, len, &page, &off);

		if (!n)
			return false;
		memcpy_to_page(page, off, from, n);
		from += n;
		len -= n;
	}
	return true;
}

/* The bytes of an skb, and of those that were joined to it, in order. */
struct source {
	const skb_frag_t *frag, *end;	/* the fragments that are left */
	const struct sk_buff *joined;	/* the next, after these */
	const u8 *data;
	u32 have;			/* at @data */
};

static inline void source_skb(struct source *src, const struct sk_buff *skb)
{
	const struct skb_shared_info *si = skb_shinfo(skb);

	src->frag = si->frags;
	src->end = si->frags + si->nr_frags;
	src->data = skb->data;
	src->have = skb_headlen(skb);
}

static inline bool source_next(struct source *src)
{
	if (src->frag != src->end) {
		src->have = skb_frag_size(src->frag);
		src->data = skb_frag_address(src->frag);
		src->frag++;
		/* Memory of a device's, perhaps: the CPU cannot read it. */
		return src->data;
	}
	if (!src->joined)
		return false;
	source_skb(src, src->joined);
	src->joined = src->joined->next;
	return true;
}

static inline bool source_more(struct source *src)
{
	while (!src->have)
		if (!source_next(src))
			return false;
	return true;
}

static inline void source_use(struct source *src, u32 len)
{
	src->data += len;
	src->have -= len;
}

static void source_start(struct source *src, const struct sk_buff *skb, u32 from)
{
	source_skb(src, skb);
	src->joined = skb_shinfo(skb)->frag_list;
	while (from && source_more(src)) {
		u32 n = min(from, src->have);

		source_use(src, n);
		from -= n;
	}
}

/* The @len bytes of @skb at @from, where they lie together; NULL: they do not. */
static const u8 *source_at(const struct sk_buff *skb, u32 from, u32 len)
{
	const struct skb_shared_info *si = skb_shinfo(skb);
	const u8 *frag;

	if (from + len <= skb_headlen(skb))
		return skb->data + from;
	if (from < skb_headlen(skb) || !si->nr_frags)
		return NULL;
	from -= skb_headlen(skb);
	frag = from + len <= skb_frag_size(&si->frags[0]) ?
	       skb_frag_address(&si->frags[0]) : NULL;
	return frag ? frag + from : NULL;
}

static bool source_read(struct source *src, u8 *to, u32 len)
{
	while (len) {
		u32 n;

		if (!source_more(src))
			return false;
		n = min(len, src->have);
		memcpy(to, src->data, n);
		source_use(src, n);
		to += n;
		len -= n;
	}
	return true;
}

/*
 * Where there is no microcode for it, memmove() has a better instruction than memcpy() for
 * what lies alike in its pages, as long messages between aligned buffers do.
 */
static void put_in_page(struct page *page, u32 off, const u8 *from, u32 len)
{
	void *to = kmap_local_page(page);

	memmove(to + off, from, len);
	flush_dcache_page(page);
	kunmap_local(to);
}

/* Of @len bytes from @off in the first of @pages, those that the kernel has side by side. */
static u32 side_by_side(struct page **pages, u32 off, u32 len)
{
	u32 n = PAGE_SIZE - off;

	while (n < len &&
	       page_address(pages[1]) == page_address(pages[0]) + PAGE_SIZE) {
		pages++;
		n += PAGE_SIZE;
	}
	return min(n, len);
}

/* All of these in one go: a huge page is copied to as it is, not in pieces. */
static void put_side_by_side(struct page **pages, u32 off, const u8 *from, u32 len)
{
	u32 i;

	memmove(page_address(*pages) + off, from, len);
	for (i = 0; ARCH_IMPLEMENTS_FLUSH_DCACHE_PAGE &&
	     i << PAGE_SHIFT < off + len; i++)
		flush_dcache_page(pages[i]);
}

/* By @w->copies, if there are any and they can. Return: how much of it, something at least. */
static u32 put_some(struct medge_walk *w, struct page **pages, u32 off,
		    const u8 *from, u32 len)
{
	u32 n = min_t(u32, len, PAGE_SIZE - off);

	if (unlikely(w->copies) &&
	    medge_copies_add(w->copies, w->mr, *pages, off, from, n))
		return n;
	if (n == len || IS_ENABLED(CONFIG_HIGHMEM)) {
		put_in_page(*pages, off, from, n);
		return n;
	}
	n = side_by_side(pages, off, len);
	put_side_by_side(pages, off, from, n);
	return n;
}

/* The next @len bytes of @from. Return: there were so many. */
static bool put_pages(struct medge_walk *w, struct page **pages, u32 off,
		      struct source *from, u32 len)
{
	/* Our own: nobody else's pointer leads to it, so that it can be in registers. */
	struct source src = *from;

	while (len) {
		u32 n;

		if (!source_more(&src))
			return false;
		n = put_some(w, pages, off, src.data, min(len, src.have));
		pages += (off + n) >> PAGE_SHIFT;
		off = offset_in_page(off + n);
		source_use(&src, n);
		len -= n;
	}
	*from = src;
	return true;
}

/* From low to high addresses: an application may look at the last byte. */
static bool walk_write(struct medge_walk *w, struct source *src, u32 len)
{
	while (len) {
		struct page **pages;
		u32 off, n = medge_walk_pages(w, len, &pages, &off);

		if (!n || !put_pages(w, pages, off, src, n))
			return false;
		len -= n;
	}
	return true;
}

bool medge_place_datagram(struct medge_qp *qp,
			  const struct medge_recv_snap *snap, const void *grh,
			  u32 grh_len, struct sk_buff *skb, u32 from, u32 len,
			  struct medge_absent *absent)
{
	struct medge_walk w;
	struct source src;
	bool ok;

	medge_walk_start(&w, qp, snap->pd, IB_ACCESS_LOCAL_WRITE, snap->sge,
			 snap->num_sge, 0, grh_len + len);
	w.absent = absent;
	ok = walk_put(&w, grh, grh_len);
	source_start(&src, skb, from);
	ok = ok && walk_write(&w, &src, len);
	return medge_walk_end(&w) && ok;
}

enum {
	/* Pieces up to this are small: what they cost is not the copy. */
	SMALL = 512,
};

/*
 * They are one store, where the memory allows, and after all else: memcpy() may
 * go backward, but the message's last byte tells those who poll it that all
 * others are there.
 */
static void store_last(u8 *to, const u8 *last, u32 len)
{
	if (len == sizeof(u64))
		put_unaligned(get_unaligned((u64 *)last), (u64 *)to);
	else
		memcpy(to, last, len);
}

static bool write_last(struct medge_walk *w, const u8 *last, u32 len)
{
	/* Not before the rest, see store_last(). */
	smp_wmb();
	while (len) {
		struct page *page;
		u32 off, n = medge_walk_next(w, len, &page, &off);
		u8 *to;

		if (!n)
			return false;
		to = kmap_local_page(page);
		store_last(to + off, last, n);
		flush_dcache_page(page);
		kunmap_local(to);
		last += n;
		len -= n;
	}
	return true;
}

/*
 * A small piece that lies in one place and goes to one page: what most of a
 * list's are. Return: it was that, and is there; else nothing has happened.
 */
static bool write_small(struct medge_walk *w, struct sk_buff *skb,
			const struct medge_op *op, u32 last)
{
	const u8 *from = source_at(skb, op->data_off, op->len);
	u32 n, off, most = op->len - last;
	struct page *page;
	u8 *to;

	if (!from)
		return false;
	n = medge_walk_next(w, op->len, &page, &off);
	if (n != op->len) {
		medge_walk_back(w, n);
		return false;
	}
	to = kmap_local_page(page);
	memcpy(to + off, from, most);
	/* See store_last(). */
	smp_wmb();
	store_last(to + off + most, from + most, last);
	flush_dcache_page(page);
	kunmap_local(to);
	return true;
}

static bool write_piece(struct medge_walk *w, struct sk_buff *skb,
			const struct medge_op *op)
{
	u32 len = op->len, last = medge_place_last(op);
	struct source src;
	u8 tail[MEDGE_LAST_BYTES];
	bool ok;

	if (len <= SMALL && write_small(w, skb, op, last))
		return medge_walk_end(w);
	source_start(&src, skb, op->data_off);
	ok = walk_write(w, &src, len - last);
	if (ok && last)
		ok = source_read(&src, tail, last) && write_last(w, tail, last);
	return medge_walk_end(w) && ok;
}

/* The original value comes in network order, and is stored in ours. */
static bool place_atomic(struct medge_walk *w, struct sk_buff *skb,
			 const struct medge_op *op)
{
	__be64 wire;
	u64 value;
	bool ok;

	if (op->len != sizeof(wire) ||
	    skb_copy_bits(skb, op->data_off, &wire, sizeof(wire)))
		return medge_walk_end(w) && false;
	value = be64_to_cpu(wire);
	ok = write_last(w, (u8 *)&value, sizeof(value));
	return medge_walk_end(w) && ok;
}

static bool place_write(struct medge_qp *qp, struct sk_buff *skb,
			const struct medge_op *op, bool locked,
			struct medge_copies *copies, struct medge_absent *absent)
{
	struct medge_sge sge = {
		.addr = op->addr + op->offset,
		.length = op->len,
		.lkey = op->rkey,
	};
	struct medge_walk w;

	medge_walk_start(&w, qp, medge_op_pd(qp, op), IB_ACCESS_REMOTE_WRITE,
			 &sge, 1, 0, op->len);
	w.locked = locked;
	w.copies = copies;
	w.absent = absent;
	if (write_piece(&w, skb, op))
		return true;
	/* What the op writes next is likely to be absent, too. */
	if (absent->mr)
		absent->len += op->op_len - op->offset - op->len;
	return false;
}

static bool place_send(struct medge_qp *qp, struct sk_buff *skb,
		       const struct medge_piece *piece, bool locked,
		       struct medge_copies *copies, struct medge_absent *absent)
{
	const struct medge_op *op = &piece->op;
	const struct medge_recv_snap *snap;
	struct medge_walk w;

	snap = medge_snap_recv(qp, qp->recv_base + piece->recv_index);
	medge_walk_start(&w, qp, snap->pd, IB_ACCESS_LOCAL_WRITE, snap->sge,
			 snap->num_sge, op->offset, op->len);
	w.locked = locked;
	w.copies = copies;
	w.absent = absent;
	return write_piece(&w, skb, op);
}

static bool place_response(struct medge_qp *qp, struct sk_buff *skb,
			   const struct medge_op *op, bool locked,
			   struct medge_copies *copies, struct medge_absent *absent)
{
	const struct medge_send_snap *snap = medge_snap_send(qp, op->op_no);
	struct medge_walk w;

	medge_walk_start(&w, qp, qp->ibqp.pd, IB_ACCESS_LOCAL_WRITE,
			 medge_snap_sges(snap), snap->wqe.num_sge, op->offset,
			 op->len);
	w.locked = locked;
	w.copies = copies;
	w.absent = absent;
	if (medge_snap_is_atomic(snap))
		return place_atomic(&w, skb, op);
	return write_piece(&w, skb, op);
}

enum medge_nak medge_place_piece(struct medge_qp *qp, struct sk_buff *skb,
				 const struct medge_piece *piece, bool locked,
				 struct medge_copies *copies,
				 struct medge_absent *absent)
{
	const struct medge_op *op = &piece->op;

	if (!op->len)
		return MEDGE_NAK_NONE;
	switch (op->opcode) {
	case MEDGE_OP_WRITE:
	case MEDGE_OP_WRITE_IMM:
	case MEDGE_OP_ATOMIC_WRITE:
		return place_write(qp, skb, op, locked, copies, absent) ?
		       MEDGE_NAK_NONE : MEDGE_NAK_ACCESS;
	case MEDGE_OP_SEND:
	case MEDGE_OP_SEND_IMM:
	case MEDGE_OP_SEND_INV:
		/* The receiver's own fault (IBTA 9.9.3.1). */
		return place_send(qp, skb, piece, locked, copies, absent) ?
		       MEDGE_NAK_NONE : MEDGE_NAK_OPERATION;
	case MEDGE_OP_RESPONSE:
		return place_response(qp, skb, op, locked, copies, absent) ?
		       MEDGE_NAK_NONE : MEDGE_NAK_ACCESS;
	default:
		return MEDGE_NAK_INVALID_REQUEST;
	}
}
