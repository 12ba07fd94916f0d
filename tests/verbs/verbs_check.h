/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What must hold in a test, or it ends and says in which line. */
#ifndef VERBS_CHECK_H
#define VERBS_CHECK_H

#include "verbs_test.h"

#define check(cond, fmt, ...)                                                  \
	do {                                                                   \
		if (!(cond))                                                   \
			die("line %d: " fmt, __LINE__, ##__VA_ARGS__);         \
	} while (0)

#endif /* VERBS_CHECK_H */
