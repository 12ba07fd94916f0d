/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* medge's ABI under another number, as of a release that has changed it. */
#ifndef OTHER_ABI_H
#define OTHER_ABI_H

#include <rdma/medge-abi.h>

#undef MEDGE_ABI_VERSION
#define MEDGE_ABI_VERSION OTHER_ABI

#endif /* OTHER_ABI_H */
