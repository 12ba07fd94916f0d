/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Memory regions: pinned user pages, or the kernel's own memory, found by key. */
#ifndef MEDGE_MR_H
#define MEDGE_MR_H

#include <linux/completion.h>
#include <linux/iosys-map.h>
#include <linux/refcount.h>
#include <linux/rhashtable.h>
#include <rdma/ib_verbs.h>

#include "compat.h"
#include "odp.h"

struct dma_buf;
struct medge_device;
struct medge_qp;

/*
 * What the table of keys holds. A key has an index, by which it is found, and a
 * tag in its low 8 bits, which a window's user chooses anew each time.
 */
struct medge_key {
	struct rhash_head node;
	u32 index;			/* random, never 0 */
	bool is_mw;
};

enum { MEDGE_KEY_TAG_BITS = 8 };

struct medge_mr {
	struct ib_mr ibmr;		/* lkey == rkey */
	struct medge_key key;
	bool replaced;			/* another has its key */
	bool invalid;			/* of those below: may not be used now */
	u32 max_pages;			/* that fast registration fills; 0: not of its kind */
	atomic_t windows;		/* bound to it; negative: no more can be */
	int access;			/* enum ib_access_flags */
	u64 iova;			/* no pages: the address of kernel memory */
	u64 length;
	u32 page_off;			/* of iova in pages[0] */
	struct page **pages;		/* kvmalloc'd; NULL: kernel memory, or see @fast */
	u32 npages;
	unsigned long *fast;		/* of max_pages: pages[], or where larger ones are */
	struct ib_umem *umem;
	struct dma_buf *dmabuf;		/* whose pages they are: not to be kept */
	struct iosys_map dmabuf_at;
	struct medge_odp *odp;		/* paged on demand: has no pages[] */
	struct medge_process *process;	/* that has it */
	struct page *sink;		/* a null region: what is written to it ends here */
	u64 start;			/* of a user's: what iova stands for; in @dmabuf */
	refcount_t ref;			/* users of pages[] */
	struct completion gone;		/* last of them has left */
	struct rcu_head rcu;
};

static inline struct medge_mr *to_medge_mr(struct ib_mr *ibmr)
{
	return container_of(ibmr, struct medge_mr, ibmr);
}

/* Rights that make a key a remote one, which a window can have. */
enum {
	MEDGE_WRITE_RIGHTS = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE |
			     IB_ACCESS_REMOTE_ATOMIC,
};

enum {
	MEDGE_REMOTE_RIGHTS = IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ |
			      IB_ACCESS_REMOTE_ATOMIC | IB_ACCESS_FLUSH_GLOBAL |
			      IB_ACCESS_FLUSH_PERSISTENT,
};

/**
 * medge_mr_get() - find memory and check that it may be used so
 * @qp: QP that asks; a window may be for it alone
 * @pd: whose memory it must be: the QP's PD, or that of its SRQ
 * @key: an MR's; or a memory window's, if @access is remote
 * @access: IB_ACCESS_* that the use needs (0: local read)
 *
 * Key, PD, rights and bounds are checked. A length of 0 is right with any
 * address of a valid key. Dereg waits for the reference to be put.
 * Return: MR, or NULL. Put it with medge_mr_put(). Any context.
 */
struct medge_mr *medge_mr_get(const struct medge_qp *qp,
			      const struct ib_pd *pd, u32 key, u64 addr,
			      u64 len, int access);
void medge_mr_put(struct medge_mr *mr);
/*
 * The same under qp->lock, which ends with medge_qp_forget_mr(): what was found last
 * is at hand until then, as the next use is mostly of the same region.
 */
struct medge_mr *medge_mr_get_locked(struct medge_qp *qp, const struct ib_pd *pd,
				     u32 key, u64 addr, u64 len, int access);

/* The same for a region, not a window, and without a QP; an ERR_PTR says what is wrong. */
struct medge_mr *medge_mr_get_local(const struct ib_pd *pd, u32 lkey, u64 addr,
				    u64 len, int access);

/* What memory is that may be used so. */
enum {
	MEDGE_MR_USABLE = BIT(0),
	MEDGE_MR_ODP = BIT(1),
	MEDGE_MR_RELAXED = BIT(2),	/* IB_ACCESS_RELAXED_ORDERING */
};

/*
 * As medge_mr_get_locked(), for who does not use it yet: no reference, which would be two
 * atomic operations. Return: MEDGE_MR_*; 0: it may not be used so.
 */
u32 medge_mr_check_locked(struct medge_qp *qp, const struct ib_pd *pd, u32 key,
			  u64 addr, u64 len, int access);

/* From here to medge_mr_leave(), what medge_mr_page() finds is there. BHs may be on. */
static inline void medge_mr_enter(struct medge_mr *mr)
{
	if (unlikely(mr->odp))
		medge_odp_enter(mr->odp);
}

static inline void medge_mr_leave(struct medge_mr *mr)
{
	if (unlikely(mr->odp))
		medge_odp_leave(mr->odp);
}

/* The page of kernel memory at @addr; NULL: there is none. */
struct page *medge_mr_kernel_page(u64 addr);

/* The page of a region that has no list of them; NULL: there is none. */
struct page *medge_mr_find_page(const struct medge_mr *mr, u64 addr, int access);

/*
 * The page that holds @addr, and in @off where. @addr is within @mr. NULL: it
 * is not there for @access now, if @mr is paged; else a kernel consumer gave an
 * address that is not memory.
 */
static inline struct page *medge_mr_page(const struct medge_mr *mr, u64 addr,
					 int access, u32 *off)
{
	u64 pos = addr - mr->iova + mr->page_off;

	*off = pos & ~PAGE_MASK;
	if (!mr->pages)
		return medge_mr_find_page(mr, addr, access);
	return mr->pages[pos >> PAGE_SHIFT];
}

/* Give @key an index, and let it be found. Return: 0 or a negative errno. */
int medge_key_publish(struct medge_device *dev, struct medge_key *key);
/* @new, a key of the same index, is found instead of @old from here on. */
int medge_key_replace(struct medge_device *dev, struct medge_key *old, struct medge_key *new);
void medge_key_remove(struct medge_device *dev, struct medge_key *key);
/* RCU read side held; NULL: none. The tag has yet to be checked. */
struct medge_key *medge_key_find(struct medge_device *dev, u32 key);
/* A full key of this index, its tag random. */
u32 medge_key_make(const struct medge_key *key);

/* LOCAL_INV, or a peer's SEND_INV: @key is valid no more; false: it cannot be so. */
bool medge_key_invalidate(const struct medge_qp *qp, u32 key);

/* An invalid region that fast registration can give @max_pages pages. */
struct ib_mr *medge_mr_to_fill(struct ib_pd *pd, u32 max_pages);

int medge_mr_table_init(struct medge_device *dev);
void medge_mr_table_destroy(struct medge_device *dev);

/* A region of vmalloc()ed memory, which outlives it; its addresses start at 0. */
struct ib_mr *medge_mr_of_pages(struct ib_pd *pd, void *mem, u64 length,
				int access);

/* Such memory is what @mr is for. -EOPNOTSUPP: some of it has no pages. */
int medge_mr_fill_mapped(struct medge_mr *mr, void *mem);

/* A region that user space asks for: of its own memory, or if there is @buf, of that. */
struct ib_mr *medge_mr_of_user(struct ib_pd *pd, struct dma_buf *buf, u64 start,
			       u64 length, u64 iova, int access);

struct ib_dmah;

/* ib_device_ops, as the newest kernel has them */
struct ib_mr *medge_reg_user_mr(struct ib_pd *pd, u64 start, u64 length,
				u64 iova, int access, struct ib_dmah *dmah,
				struct ib_udata *udata);
struct ib_mr *medge_get_dma_mr(struct ib_pd *pd, int access);
struct ib_mr *medge_rereg_user_mr(struct ib_mr *ibmr, int flags, u64 start,
				  u64 length, u64 iova, int access,
				  struct ib_pd *pd, struct ib_udata *udata);
int medge_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata);

#endif /* MEDGE_MR_H */
