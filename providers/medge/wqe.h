/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Parts of send WQEs that ibv_post_send() and ibv_wr_*() write alike. */
#ifndef MEDGE_WQE_H
#define MEDGE_WQE_H

#include <infiniband/verbs.h>
#include <rdma/medge-abi.h>

static inline void medge_put_bind(struct medge_send_wqe *wqe, uint32_t rkey,
				  const struct ibv_mw_bind_info *info)
{
	wqe->rkey = rkey;
	wqe->remote_addr = info->addr;
	wqe->bind_length = info->length;
	wqe->bind_lkey = info->mr ? info->mr->lkey : 0;
	wqe->bind_access = info->mw_access_flags;
}

#endif /* MEDGE_WQE_H */
