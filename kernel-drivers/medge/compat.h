/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * All that drifts between kernels, in one place. The code around it is written
 * for the newest; each shim names the release that retires it: the first that
 * needs it no more. What a kernel has is probed, not told from its version,
 * since distributions backport: HAVE_* comes from Kbuild, which searches the
 * kernel's headers.
 */
#ifndef MEDGE_COMPAT_H
#define MEDGE_COMPAT_H

#include <linux/dma-buf.h>
#include <linux/ethtool.h>
#include <linux/hrtimer.h>
#include <linux/kasan.h>
#include <linux/mm.h>
#include <linux/netdevice.h>
#include <linux/refcount.h>
#include <linux/skbuff.h>
#include <linux/workqueue.h>
#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>
#include <rdma/uverbs_ioctl.h>

#ifdef HAVE_linux_unaligned
#include <linux/unaligned.h>
#else	/* 6.12 */
#include <asm/unaligned.h>
#endif

#ifndef __uninitialized	/* 6.9. What is filled anyway is not to be cleared before that. */
#if __has_attribute(__uninitialized__)
#define __uninitialized __attribute__((__uninitialized__))
#else
#define __uninitialized
#endif
#endif

#ifndef HAVE_system_dfl_wq	/* 6.18 */
#define system_dfl_wq system_unbound_wq
#endif

/* 7.2. Pin user memory: the name and arguments change every few years. */
static inline struct ib_umem *medge_umem_get(struct ib_device *ibdev, u64 start,
					     u64 length, int access)
{
#ifdef HAVE_ib_umem_get_va
	return ib_umem_get_va(ibdev, start, length, access);
#else
	return ib_umem_get(ibdev, start, length, access);
#endif
}

static inline struct sg_table *medge_umem_sgt(struct ib_umem *umem)
{
	return &umem->sgt_append.sgt;
}

#ifndef HAVE_hrtimer_setup	/* 6.13 */
static inline void
hrtimer_setup(struct hrtimer *timer,
	      enum hrtimer_restart (*fn)(struct hrtimer *timer),
	      clockid_t clock, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock, mode);
	timer->function = fn;
}
#endif

#ifndef HAVE_us_to_ktime	/* 6.13 */
static inline ktime_t us_to_ktime(u64 us)
{
	return ns_to_ktime(us * NSEC_PER_USEC);
}
#endif

#ifndef HAVE_IB_ACCESS_FLUSH_GLOBAL	/* 6.2 */
#define IB_ACCESS_FLUSH_GLOBAL BIT(8)
#define IB_ACCESS_FLUSH_PERSISTENT BIT(9)
#define IB_DEVICE_FLUSH_GLOBAL BIT_ULL(38)
#define IB_DEVICE_FLUSH_PERSISTENT BIT_ULL(39)
#define IB_DEVICE_ATOMIC_WRITE BIT_ULL(40)
#define IB_WC_FLUSH 8
#define IB_WC_ATOMIC_WRITE 9
#endif

#ifndef HAVE_refcount_set_release	/* 6.15 */
static inline void refcount_set_release(refcount_t *r, int n)
{
	/* All that is written before is seen by who sees the count. */
	smp_store_release(&r->refs.counter, n);
}
#endif

#ifndef HAVE_IB_ODP_SUPPORT_FLUSH	/* 6.17 */
#define IB_ODP_SUPPORT_FLUSH BIT(6)
#define IB_ODP_SUPPORT_ATOMIC_WRITE BIT(7)
#endif

#ifndef HAVE_vm_flags_clear	/* 6.3 */
static inline void vm_flags_clear(struct vm_area_struct *vma, vm_flags_t flags)
{
	vma->vm_flags &= ~flags;
}

static inline void vm_flags_set(struct vm_area_struct *vma, vm_flags_t flags)
{
	vma->vm_flags |= flags;
}
#endif

#ifndef HAVE_is_vmalloc_or_module_addr	/* 6.12, or before: exported */
#define is_vmalloc_or_module_addr medge_is_vmalloc_or_module_addr
static inline bool medge_is_vmalloc_or_module_addr(const void *va)
{
#if defined(CONFIG_MODULES) && defined(MODULES_VADDR)
	unsigned long addr = (unsigned long)kasan_reset_tag(va);

	if (addr >= MODULES_VADDR && addr < MODULES_END)
		return true;
#endif
	return is_vmalloc_addr(va);
}
#endif

/* 6.13: MODULE_IMPORT_NS("DMA_BUF"), which before took it without quotes. */
#define MEDGE_IMPORT_DMA_BUF MODULE_INFO(import_ns, "DMA_BUF")

#ifndef HAVE_dma_buf_vmap_unlocked	/* 6.2: what is asked for takes the lock itself */
#define dma_buf_vmap_unlocked dma_buf_vmap
#define dma_buf_vunmap_unlocked dma_buf_vunmap
#endif

#ifndef HAVE_IB_SPEED_XDR	/* 6.7 */
#define IB_SPEED_XDR 256
#endif

#ifndef HAVE_ib_mark_name_assigned_by_user	/* 6.9: nobody asks who named it */
static inline void ib_mark_name_assigned_by_user(struct ib_device *ibdev) {}
#endif

#ifndef HAVE_ib_dispatch_port_state_event	/* 6.14 */
/* The same state may be told twice; who listens knows that of other devices. */
static inline void ib_dispatch_port_state_event(struct ib_device *ibdev,
						struct net_device *netdev)
{
	bool up = netif_running(netdev) && netif_carrier_ok(netdev);
	struct ib_event event = {
		.device = ibdev,
		.event = up ? IB_EVENT_PORT_ACTIVE : IB_EVENT_PORT_ERR,
		.element.port_num = 1,
	};

	ib_dispatch_event(&event);
}
#endif

#ifndef ib_alloc_device_with_net	/* 6.17: all devices begin in init_net */
#define ib_alloc_device_with_net(drv_struct, member, net) \
	((void)(net), ib_alloc_device(drv_struct, member))
#endif

/*
 * Operations whose arguments have changed: ours where its type is the
 * kernel's, else the one that adapts it.
 */
#define MEDGE_OP(op, ours, adapted)					\
	__builtin_choose_expr(						\
		__same_type(((const struct ib_device_ops *)0)->op, &(ours)),	\
		ours, adapted)

int medge_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		    struct uverbs_attr_bundle *attrs);

/* 6.11 */
static inline int medge_create_cq_udata(struct ib_cq *ibcq,
					const struct ib_cq_init_attr *attr,
					struct ib_udata *udata)
{
	struct uverbs_attr_bundle *attrs = NULL;

	if (udata)
		attrs = container_of(udata, struct uverbs_attr_bundle,
				     driver_udata);
	return medge_create_cq(ibcq, attr, attrs);
}

#define MEDGE_CREATE_CQ \
	MEDGE_OP(create_cq, medge_create_cq, medge_create_cq_udata)

struct ib_dmah;
struct ib_mr *medge_reg_user_mr(struct ib_pd *pd, u64 start, u64 length,
				u64 iova, int access, struct ib_dmah *dmah,
				struct ib_udata *udata);

/* 6.17 */
static inline struct ib_mr *medge_reg_user_mr_plain(struct ib_pd *pd, u64 start,
						    u64 length, u64 iova,
						    int access,
						    struct ib_udata *udata)
{
	return medge_reg_user_mr(pd, start, length, iova, access, NULL, udata);
}

#define MEDGE_REG_USER_MR \
	MEDGE_OP(reg_user_mr, medge_reg_user_mr, medge_reg_user_mr_plain)

struct ib_mr *medge_reg_dmabuf_mr(struct ib_pd *pd, u64 offset, u64 length,
				  u64 iova, int fd, int access,
				  struct ib_dmah *dmah,
				  struct uverbs_attr_bundle *attrs);

/* 6.17 */
static inline struct ib_mr *
medge_reg_dmabuf_mr_plain(struct ib_pd *pd, u64 offset, u64 length, u64 iova,
			  int fd, int access, struct uverbs_attr_bundle *attrs)
{
	return medge_reg_dmabuf_mr(pd, offset, length, iova, fd, access, NULL,
				   attrs);
}

/* 6.12, or before: nothing of ours is in there */
static inline struct ib_mr *
medge_reg_dmabuf_mr_udata(struct ib_pd *pd, u64 offset, u64 length, u64 iova,
			  int fd, int access, struct ib_udata *udata)
{
	return medge_reg_dmabuf_mr(pd, offset, length, iova, fd, access, NULL,
				   NULL);
}

#define MEDGE_REG_DMABUF_MR						\
	MEDGE_OP(reg_user_mr_dmabuf, medge_reg_dmabuf_mr,		\
		 MEDGE_OP(reg_user_mr_dmabuf, medge_reg_dmabuf_mr_plain,	\
			  medge_reg_dmabuf_mr_udata))

int medge_resize_cq(struct ib_cq *ibcq, unsigned int cqe,
		    struct ib_udata *udata);

#ifdef HAVE_resize_user_cq
#define MEDGE_RESIZE_CQ .resize_user_cq = medge_resize_cq,
#else	/* 7.1: one operation for user and kernel, and a signed size */
static inline int medge_resize_cq_signed(struct ib_cq *ibcq, int cqe,
					 struct ib_udata *udata)
{
	return cqe < 0 ? -EINVAL : medge_resize_cq(ibcq, cqe, udata);
}

#define MEDGE_RESIZE_CQ .resize_cq = medge_resize_cq_signed,
#endif

#ifdef HAVE_query_port_speed
#define MEDGE_QUERY_PORT_SPEED .query_port_speed = medge_query_port_speed,
#else	/* 7.0: speed and width say it as well as they can */
#define MEDGE_QUERY_PORT_SPEED
#endif

#endif /* MEDGE_COMPAT_H */
