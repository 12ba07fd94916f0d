// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Where the list that cov_first.c reads ends. */
#include <linux/compiler.h>

struct gcov_info;
extern const struct gcov_info *const medge_cov_last[0];
const struct gcov_info *const medge_cov_last[0] __section("medge_cov_infos");
