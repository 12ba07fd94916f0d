/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What user space may ask beyond verbs: our own ioctl methods, for medgedv. */
#ifndef MEDGE_QUERY_H
#define MEDGE_QUERY_H

#include <rdma/uverbs_ioctl.h>

/* ib_device.driver_def */
extern const struct uapi_definition medge_query_methods[];

#endif /* MEDGE_QUERY_H */
