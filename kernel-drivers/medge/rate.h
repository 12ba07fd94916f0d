/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* How much in a time. */
#ifndef MEDGE_RATE_H
#define MEDGE_RATE_H

#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/time64.h>

/* Bytes per us of @bytes in @ns. */
static inline u64 medge_rate(u64 bytes, u64 ns)
{
	return div64_u64(bytes * NSEC_PER_USEC, max_t(u64, ns, 1));
}

#endif /* MEDGE_RATE_H */
