/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Registered memory, part by part: what frames are made of and placed in. */
#ifndef MEDGE_PLACE_H
#define MEDGE_PLACE_H

#include "qp.h"

struct medge_copies;

/**
 * struct medge_walk - a way through the memory of a list of SGEs
 * @qp: who goes it
 * @pd: the PD their keys must belong to
 * @access: IB_ACCESS_* needed; 0: local read
 * @sge: the one we are in
 * @num_sge: how many are left, it included
 * @skip: bytes of @sge that we are past
 * @left: bytes of the way left
 * @mr: of @sge, held; NULL: not looked up yet
 * @pages: its pages; NULL: it has no list of them, or @mr is NULL
 * @page: the one that medge_walk_on() found last, and
 * @page_at: where in it
 * @base: where @sge begins in them, in bytes
 * @locked: under @qp's lock
 * @fault: an SGE may not be used so, or is not there; the way ends there
 * @copies: what is written is to be copied by them, where they can; NULL: there are none
 * @absent: if it is not there: what; NULL: of no interest
 */
struct medge_walk {
	struct medge_qp *qp;
	const struct ib_pd *pd;
	int access;
	const struct medge_sge *sge;
	u32 num_sge;
	u32 skip;
	u32 left;
	struct medge_mr *mr;
	struct page **pages;
	struct page *page;
	u32 page_at;
	u64 base;
	bool locked;
	bool fault;
	struct medge_copies *copies;
	struct medge_absent *absent;
};

/* Start at @offset bytes into the list, for @len bytes. */
void medge_walk_start(struct medge_walk *w, struct medge_qp *qp,
		      const struct ib_pd *pd, int access,
		      const struct medge_sge *sge, u32 num_sge, u32 offset,
		      u32 len);
/*
 * What medge_walk_pages() does where there is more to do than to go on in a list of pages:
 * a part of one page, w->page.
 */
u32 medge_walk_on(struct medge_walk *w, u32 max);

/* Take the last step back, or @len bytes of it. */
static inline void medge_walk_back(struct medge_walk *w, u32 len)
{
	w->skip -= len;
	w->left += len;
}

/*
 * The next part of at most @max bytes: it begins at @off in the first of @pages, and goes on
 * at the beginning of each next one. 0: the end, or a fault.
 */
static inline u32 medge_walk_pages(struct medge_walk *w, u32 max,
				   struct page ***pages, u32 *off)
{
	u64 pos = w->base + w->skip;
	u32 len;

	if (!w->pages || !w->left || w->skip == w->sge->length) {
		len = medge_walk_on(w, max);
		*pages = &w->page;
		*off = w->page_at;
		return len;
	}
	*off = offset_in_page(pos);
	*pages = &w->pages[pos >> PAGE_SHIFT];
	len = min3(max, w->left, w->sge->length - w->skip);
	w->skip += len;
	w->left -= len;
	return len;
}

/* The same, but within one page. */
static inline u32 medge_walk_next(struct medge_walk *w, u32 max,
				  struct page **page, u32 *off)
{
	struct page **pages;
	u32 len = medge_walk_pages(w, max, &pages, off), beyond;

	*page = *pages;
	beyond = *off + len - min_t(u32, *off + len, PAGE_SIZE);
	medge_walk_back(w, beyond);
	return len - beyond;
}

/* Return: false if the way had a fault or the list was too short. */
bool medge_walk_end(struct medge_walk *w);

/* Copy the next @len bytes of the way to @to. */
bool medge_walk_read(struct medge_walk *w, void *to, u32 len);

/* Bytes of a message that become visible after all others. */
enum { MEDGE_LAST_BYTES = 8 };

/* How many of a piece are such. */
static inline u32 medge_place_last(const struct medge_op *op)
{
	return op->offset + op->len == op->op_len ?
	       min_t(u32, op->len, MEDGE_LAST_BYTES) : 0;
}

/*
 * Copy a piece of a received frame to where it belongs, or have @copies do so, if
 * that is not NULL. The key, its rights and bounds are checked here and now. Any
 * context, @locked or without qp->lock; if without, qp->placing keeps the snapshots
 * as they are.
 *
 * If memory is not there, @absent says what, and the caller has to put the
 * region it holds; the piece can be placed again, from its beginning.
 */
enum medge_nak medge_place_piece(struct medge_qp *qp, struct sk_buff *skb,
				 const struct medge_piece *piece, bool locked,
				 struct medge_copies *copies,
				 struct medge_absent *absent);

/*
 * Copy a datagram's GRH, and @len bytes of its skb that are @from there, to
 * the receive's memory; @absent as above. Under qp->lock.
 */
bool medge_place_datagram(struct medge_qp *qp,
			  const struct medge_recv_snap *snap, const void *grh,
			  u32 grh_len, struct sk_buff *skb, u32 from, u32 len,
			  struct medge_absent *absent);

#endif /* MEDGE_PLACE_H */
