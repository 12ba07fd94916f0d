// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Build frames from the sender's own memory. */
#include <linux/net.h>
#include <linux/percpu.h>
#include <linux/skbuff.h>
#include <net/sock.h>

#include "batch.h"
#include "build.h"
#include "compat.h"
#include "device.h"
#include "place.h"
#include "qp.h"
#include "seal.h"
#include "snap.h"
#include "stats.h"

enum {
	/* Ethernet header, and what devices below commonly want in front. */
	TX_HEADROOM = 64,
	/* Payload up to this is copied beside the header: cheaper than a page. */
	TX_COPY = 256,
	/* Where ops share a frame, and so its skb, that of each below this is. */
	TX_ATTACH = 1024,
	/* Of larger heads, too few have room in the pages that are shared. */
	TX_SHARED = 16 << 10,
};

/* Where a frame's payload comes from. */
struct payload {
	struct medge_walk walk;
	struct medge_sge one;		/* a response's only SGE */
	struct medge_absent absent;	/* found so on the way */
	const u8 *copy;			/* not NULL: from here instead */
	u8 atomic[MEDGE_ATOMIC_LEN];
};

static void payload_response(struct medge_qp *qp, const struct medge_op *op,
			     struct payload *p)
{
	p->one = (struct medge_sge) {
		.addr = op->addr + op->offset,
		.length = op->len,
		.lkey = op->rkey,
	};
	medge_walk_start(&p->walk, qp, medge_op_pd(qp, op),
			 IB_ACCESS_REMOTE_READ, &p->one, 1, 0, op->len);
}

static void payload_request(struct medge_qp *qp, const struct medge_op *op,
			    struct payload *p)
{
	const struct medge_send_snap *snap = medge_snap_send(qp, op->op_no);

	if (medge_snap_is_atomic(snap)) {
		put_unaligned_be64(snap->wqe.compare_add, p->atomic);
		put_unaligned_be64(snap->wqe.swap, p->atomic + 8);
		p->copy = p->atomic;
	} else if (snap->wqe.flags & MEDGE_WQE_INLINE) {
		p->copy = snap->data + op->offset;
	} else {
		medge_walk_start(&p->walk, qp, qp->ibqp.pd, 0,
				 medge_snap_sges(snap), snap->wqe.num_sge,
				 op->offset, op->len);
	}
}

static void memory_find(struct medge_qp *qp, const struct medge_op *op,
			struct payload *p)
{
	p->copy = NULL;
	p->absent.mr = NULL;
	if (op->opcode == MEDGE_OP_RESPONSE)
		payload_response(qp, op, p);
	else
		payload_request(qp, op, p);
	p->walk.absent = &p->absent;
	p->walk.locked = true;
}

static void payload_find(struct medge_qp *qp, const struct medge_tx *tx,
			 const struct medge_op *op, struct payload *p)
{
	if (tx->is_atomic) {
		put_unaligned_be64(tx->atomic, p->atomic);
		p->copy = p->atomic;
		p->absent.mr = NULL;
		return;
	}
	memory_find(qp, op, p);
}

bool medge_build_present(struct medge_conn *c, const struct medge_op *op)
{
	struct medge_qp *qp = medge_conn_user(c);
	struct payload p;
	struct page *page;
	u32 off;

	memory_find(qp, op, &p);
	if (p.copy)
		return true;
	while (medge_walk_next(&p.walk, U32_MAX, &page, &off))
		;
	medge_walk_end(&p.walk);
	/* If it cannot be had, it is no use to wait: the op is to fail. */
	return !p.absent.mr ||
	       !medge_faults_wait(qp, MEDGE_FAULT_SEND, op->opcode,
				  op->op_no, &p.absent);
}

static bool payload_read(struct payload *p, void *to, u32 len)
{
	bool ok;

	if (p->copy) {
		memcpy(to, p->copy, len);
		return true;
	}
	ok = medge_walk_read(&p->walk, to, len);
	return medge_walk_end(&p->walk) && ok;
}

/* The memory of @op is gone: it, or the peer's request, cannot go on. */
static void payload_gone(struct medge_qp *qp, const struct medge_op *op)
{
	if (op->opcode == MEDGE_OP_RESPONSE)
		medge_conn_fail_response(qp->conn, op->op_no);
	else
		medge_conn_fail_op(qp->conn, op->op_no, MEDGE_LOCAL_PROTECTION);
}

/*
 * What is larger than a page finds no room in the network stack's fragments; as a page
 * of its own, each would be counted and freed for much of what the frame takes.
 */
static DEFINE_PER_CPU(struct page_frag, large_heads);

static void *large_head(u32 size)
{
	struct page_frag *frag = this_cpu_ptr(&large_heads);
	void *head;

	if (size > TX_SHARED ||
	    !skb_page_frag_refill(size, frag, GFP_ATOMIC | __GFP_NOWARN))
		return NULL;
	/* It gives less than was asked for where memory is in pieces. */
	if (size > frag->size - frag->offset)
		return NULL;
	head = page_address(frag->page) + frag->offset;
	get_page(frag->page);
	frag->offset += size;
	return head;
}

void medge_build_stop(void)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		struct page_frag *frag = per_cpu_ptr(&large_heads, cpu);

		if (frag->page)
			put_page(frag->page);
	}
}

/* NULL: there are none. */
static struct sk_buff *skb_in_pages(u32 room)
{
	u32 size = SKB_DATA_ALIGN(room) +
		   SKB_DATA_ALIGN(sizeof(struct skb_shared_info));
	void *head = size <= PAGE_SIZE ? napi_alloc_frag(size) :
					 large_head(size);
	struct sk_buff *skb = head ? napi_build_skb(head, size) : NULL;

	if (head && !skb)
		skb_free_frag(head);
	return skb;
}

struct sk_buff *medge_skb_alloc(u32 room)
{
	return skb_in_pages(room) ?: alloc_skb(room, GFP_ATOMIC);
}

struct sk_buff *medge_build_skb(struct medge_qp *qp, u32 len)
{
	struct sk_buff *skb = medge_skb_alloc(TX_HEADROOM + len);

	if (!skb) {
		medge_count(qp->dev, tx_errors);
		return NULL;
	}
	skb_reserve(skb, TX_HEADROOM);
	skb_reset_network_header(skb);
	return skb;
}

static void add_len(struct sk_buff *skb, u32 len, u32 truesize)
{
	skb->len += len;
	skb->data_len += len;
	skb->truesize += truesize;
}

/*
 * A kernel consumer's pages may be such as know no references; a dma-buf's may become
 * somebody else's in spite of them.
 */
static bool may_attach(const struct medge_mr *mr, struct page *page)
{
	return mr->umem || (!mr->dmabuf && sendpage_ok(page));
}

/* An skb's fragments, as they are added; @end is where the last one's last page is used to. */
struct attached {
	struct skb_shared_info *si;
	u32 frags;
	struct page *last;
	u32 end;
};

/* Return: of @len bytes from @off in the first of @pages, those that are fragments now. */
static u32 attach(struct attached *a, const struct medge_mr *mr,
		  struct page **pages, u32 off, u32 len)
{
	u32 left = len;

	while (left) {
		u32 n = min_t(u32, left, PAGE_SIZE - off);
		struct page *page = *pages++;

		if (!may_attach(mr, page))
			break;
		/* A folio's page, other than the first, is behind one of the same. */
		if (PageTail(page) && !off && a->end == PAGE_SIZE &&
		    page == a->last + 1) {
			skb_frag_size_add(&a->si->frags[a->frags - 1], n);
		} else {
			if (a->frags == MAX_SKB_FRAGS)
				break;
			get_page(page);
			__skb_fill_page_desc_noacc(a->si, a->frags++, page, off,
						   n);
		}
		a->last = page;
		a->end = off + n;
		off = 0;
		left -= n;
	}
	return len - left;
}

/* The pages themselves, behind what is there. Return: they cannot be used, or are too many. */
static bool attach_pages(struct sk_buff *skb, struct medge_walk *w)
{
	struct attached a = {
		.si = skb_shinfo(skb),
		.frags = skb_shinfo(skb)->nr_frags,
	};
	u32 off, len, n, sum = 0;
	struct page **pages;

	/* Whoever wants them unchanged must copy them: they are the user's. */
	a.si->flags |= SKBFL_SHARED_FRAG;
	do {
		len = medge_walk_pages(w, U32_MAX, &pages, &off);
		n = attach(&a, w->mr, pages, off, len);
		medge_walk_back(w, len - n);
		sum += n;
	} while (n && n == len);
	a.si->nr_frags = a.frags;
	add_len(skb, sum, sum);
	return w->left && !w->fault;
}

/* Copies of them. Return: there was memory for that. */
static bool add_copies(struct sk_buff *skb, struct medge_walk *w)
{
	struct skb_shared_info *si = skb_shinfo(skb);

	while (w->left && !w->fault) {
		u32 len = min_t(u32, w->left, PAGE_SIZE);
		struct page *page = NULL;

		if (si->nr_frags < MAX_SKB_FRAGS)
			page = alloc_page(GFP_ATOMIC);
		if (!page)
			return false;
		skb_fill_page_desc(skb, si->nr_frags, page, 0, len);
		add_len(skb, len, PAGE_SIZE);
		if (!medge_walk_read(w, page_address(page), len))
			break;
	}
	return true;
}

static void drop_frags(struct sk_buff *skb)
{
	u32 i;

	for (i = 0; i < skb_shinfo(skb)->nr_frags; i++)
		put_page(skb_frag_page(&skb_shinfo(skb)->frags[i]));
	skb_shinfo(skb)->nr_frags = 0;
	skb->truesize -= skb->data_len;
	skb->len -= skb->data_len;
	skb->data_len = 0;
}

/*
 * LEFT: what it is made of has, since it was seen to be there, and is waited for.
 * NO_PAGES: it has to be copied.
 */
enum build { BUILT, NO_MEMORY, NO_PAGES, LEFT, GONE };

static enum build payload_end(struct medge_qp *qp, const struct medge_op *op,
			      struct payload *p, bool ok)
{
	if (ok)
		return BUILT;
	if (p->absent.mr && medge_faults_wait(qp, MEDGE_FAULT_SEND, op->opcode,
					      op->op_no, &p->absent))
		return LEFT;
	return GONE;
}

static enum build add_payload(struct medge_qp *qp, const struct medge_tx *tx,
			      struct sk_buff *skb)
{
	/* Memory that is READ may change at any time; what is sealed may not. */
	bool copy = medge_seals(qp->dev);
	struct payload p __uninitialized;

	payload_find(qp, tx, &tx->op, &p);
	if (!copy && attach_pages(skb, &p.walk)) {
		medge_walk_end(&p.walk);
		drop_frags(skb);
		payload_find(qp, tx, &tx->op, &p);
		copy = true;
	}
	if (unlikely(copy) && !add_copies(skb, &p.walk)) {
		medge_walk_end(&p.walk);
		return NO_MEMORY;
	}
	return payload_end(qp, &tx->op, &p, medge_walk_end(&p.walk));
}

static bool is_copied(struct medge_qp *qp, const struct medge_op *op)
{
	return op->len <= TX_COPY ||
	       (op->opcode != MEDGE_OP_RESPONSE &&
		medge_snap_send(qp, op->op_no)->wqe.flags & MEDGE_WQE_INLINE);
}

static void mark_superframe(struct sk_buff *skb, const struct medge_tx *tx,
			    u32 seg_len)
{
	struct skb_shared_info *si = skb_shinfo(skb);

	si->gso_size = seg_len;
	si->gso_segs = tx->nframes;
	si->gso_type = SKB_GSO_FRAGLIST;
}

/* The payload of @op, in the same piece as the headers. */
static enum build add_copied(struct medge_qp *qp, const struct medge_tx *tx,
			     const struct medge_op *op, struct sk_buff *skb)
{
	struct payload p __uninitialized;

	if (!op->len)
		return BUILT;
	payload_find(qp, tx, op, &p);
	return payload_end(qp, op, &p,
			   payload_read(&p, skb_put(skb, op->len), op->len));
}

/* One op's frame, or a run of them. */
static enum build build_run(struct medge_qp *qp, const struct medge_tx *tx,
			    struct sk_buff **skbp)
{
	bool copied = tx->is_atomic || is_copied(qp, &tx->op);
	struct sk_buff *skb;
	void *hdr;

	skb = medge_build_skb(qp, MEDGE_HDR_LEN + (copied ? tx->op.len : 0));
	*skbp = skb;
	if (!skb)
		return NO_MEMORY;
	hdr = skb_put(skb, MEDGE_HDR_LEN);
	medge_tx_header(qp->conn, tx, hdr);
	if (tx->nframes > 1)
		mark_superframe(skb, tx, medge_wire_seg_len(hdr));
	return copied ? add_copied(qp, tx, &tx->op, skb) :
			add_payload(qp, tx, skb);
}

/*
 * The payload of one of several ops, in pages of its own. Where those cannot be used, the
 * frame is built anew: NO_PAGES.
 */
static enum build add_attached(struct medge_qp *qp, const struct medge_tx *tx,
			       const struct medge_op *op, struct sk_buff *skb)
{
	struct payload p __uninitialized;
	bool ok, fit;

	payload_find(qp, tx, op, &p);
	fit = !attach_pages(skb, &p.walk);
	ok = medge_walk_end(&p.walk);
	return fit ? payload_end(qp, op, &p, ok) : NO_PAGES;
}

/* Several ops in one frame. @op: the first; then the one that was added last. */
static enum build build_packed(struct medge_qp *qp, const struct medge_tx *tx,
			       bool copied, struct medge_op *op,
			       struct sk_buff **skbp)
{
	u32 headers = medge_wire_headers(tx->nops), at;
	struct sk_buff *skb;
	enum build result;
	u8 *buf;

	skb = medge_build_skb(qp, copied ? tx->len : headers);
	*skbp = skb;
	if (!skb)
		return NO_MEMORY;
	buf = skb_put(skb, headers);
	at = medge_tx_header(qp->conn, tx, buf);
	for (;;) {
		if (WARN_ON_ONCE(at > headers || skb->len + op->len > tx->len))
			return NO_MEMORY;
		result = copied ? add_copied(qp, tx, op, skb) :
				  add_attached(qp, tx, op, skb);
		if (result != BUILT || !medge_tx_next_op(qp->conn, tx, op))
			return result;
		medge_wire_encode_op(buf + at, op);
		at += sizeof(struct medge_op_hdr);
	}
}

/* Is each of them worth pages of its own? */
static bool are_attached(struct medge_qp *qp, const struct medge_tx *tx)
{
	struct medge_op op = tx->op;

	if (medge_seals(qp->dev))
		return false;
	do {
		if (op.len < TX_ATTACH || is_copied(qp, &op))
			return false;
	} while (medge_tx_next_op(qp->conn, tx, &op));
	return true;
}

static enum build build_several(struct medge_qp *qp, const struct medge_tx *tx,
				struct medge_op *op, struct sk_buff **skbp)
{
	bool copied = !are_attached(qp, tx);
	enum build result = build_packed(qp, tx, copied, op, skbp);

	if (likely(result != NO_PAGES))
		return result;
	kfree_skb(*skbp);
	*op = tx->op;
	return build_packed(qp, tx, true, op, skbp);
}

static enum build build_ack(struct medge_qp *qp, const struct medge_tx *tx,
			    struct sk_buff **skbp)
{
	struct sk_buff *skb = medge_build_skb(qp, tx->len);

	*skbp = skb;
	if (!skb)
		return NO_MEMORY;
	medge_tx_header(qp->conn, tx, skb_put(skb, tx->len));
	return BUILT;
}

/* If @op ends what has been submitted so far, no ack is needed to send it. */
static void note_sent(struct medge_qp *qp, const struct medge_op *op)
{
	if (op->opcode == MEDGE_OP_RESPONSE ||
	    op->op_no != qp->op_base + qp->sq.cons - 1)
		return;
	if (medge_opcode_bare(op->opcode) || op->offset + op->len >= op->op_len)
		qp->unsent = false;
}

struct sk_buff *medge_build(struct medge_qp *qp, const struct medge_tx *tx)
{
	struct medge_op op = tx->op;
	struct medge_tx_cb *cb;
	struct sk_buff *skb;
	enum build result;

	if (tx->type == MEDGE_FRAME_ACK)
		result = build_ack(qp, tx, &skb);
	else if (tx->nops > 1)
		result = build_several(qp, tx, &op, &skb);
	else
		result = build_run(qp, tx, &skb);
	/* A frame that there is no memory for counts as sent, and as lost. */
	if (tx->type != MEDGE_FRAME_ACK)
		note_sent(qp, &op);
	if (result == BUILT) {
		skb->ip_summed = CHECKSUM_UNNECESSARY;
		cb = medge_tx_cb(skb);
		ether_addr_copy(cb->l2.dmac, tx->mac);
		cb->l2.vlan = qp->l2.vlan;
		cb->rail = tx->rail;
		cb->again = tx->again;
		return skb;
	}
	kfree_skb(skb);
	if (result == LEFT)
		medge_conn_memory_left(qp->conn, tx);
	if (result == GONE)
		payload_gone(qp, &op);
	return NULL;
}
