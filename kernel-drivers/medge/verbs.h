/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the device says of itself, and its smallest objects. */
#ifndef MEDGE_VERBS_H
#define MEDGE_VERBS_H

#include <rdma/ib_verbs.h>
#include <rdma/uverbs_ioctl.h>

struct medge_pd {
	struct ib_pd ibpd;
};

struct medge_xrcd {
	struct ib_xrcd ibxrcd;
};

struct medge_process;

struct medge_ucontext {
	struct ib_ucontext ibuc;
	struct medge_process *process;	/* who opened it; NULL: no memory */
};

/* The context that a command came from; NULL: it came from the kernel. */
static inline struct ib_ucontext *medge_udata_context(struct ib_udata *udata)
{
	struct medge_ucontext *uc =
		rdma_udata_to_drv_context(udata, struct medge_ucontext, ibuc);

	return uc ? &uc->ibuc : NULL;
}

/*
 * What a command's driver part says, @size bytes of it; a provider may know less of
 * it than we, which reads as 0, or more, which must be 0 (-EOPNOTSUPP, -EFAULT).
 */
int medge_udata_read(struct ib_udata *udata, void *req, size_t size);

/* ib_device_ops */
int medge_query_device(struct ib_device *ibdev, struct ib_device_attr *attr,
		       struct ib_udata *udata);
int medge_query_port(struct ib_device *ibdev, u32 port,
		     struct ib_port_attr *attr);
int medge_query_port_speed(struct ib_device *ibdev, u32 port, u64 *speed);
int medge_query_pkey(struct ib_device *ibdev, u32 port, u16 index, u16 *pkey);
int medge_get_port_immutable(struct ib_device *ibdev, u32 port,
			     struct ib_port_immutable *im);
enum rdma_link_layer medge_get_link_layer(struct ib_device *ibdev, u32 port);
int medge_alloc_ucontext(struct ib_ucontext *ibuc, struct ib_udata *udata);
int medge_query_ucontext(struct ib_ucontext *ibuc,
			 struct uverbs_attr_bundle *attrs);
void medge_dealloc_ucontext(struct ib_ucontext *ibuc);
void medge_disassociate_ucontext(struct ib_ucontext *ibuc);
int medge_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata);
int medge_alloc_xrcd(struct ib_xrcd *ibxrcd, struct ib_udata *udata);
int medge_dealloc_xrcd(struct ib_xrcd *ibxrcd, struct ib_udata *udata);
int medge_dealloc_pd(struct ib_pd *ibpd, struct ib_udata *udata);

/* sysfs.c */
extern const struct attribute_group medge_sysfs;

#endif /* MEDGE_VERBS_H */
