/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What differs between the private ABIs of libibverbs this provider is built
 * for. Each shim says when it can go.
 */
#ifndef MEDGE_COMPAT_H
#define MEDGE_COMPAT_H

#include <infiniband/driver.h>

#if IBVERBS_PABI_VERSION >= 57
#define medge_cmd_get_context(vctx, cmd, cmd_size, resp, resp_size)            \
	ibv_cmd_get_context(vctx, cmd, cmd_size, NULL, resp, resp_size)
#else
/* No file descriptors to inherit: until rdma-core 56 is no longer served. */
#define medge_cmd_get_context ibv_cmd_get_context
#endif

#endif /* MEDGE_COMPAT_H */
