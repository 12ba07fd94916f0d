/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A random scenario, made from its seed alone and run to its end. */
#ifndef MEDGE_TEST_SCENARIO_H
#define MEDGE_TEST_SCENARIO_H

#include "env.h"

struct scenario_result {
	u32 ops;
	u64 frames;
	u64 retransmits;
	u64 needed;		/* data frames */
	u64 lost;
	u32 nrails;
	u64 virtual_ns;
	u64 steps;
	const char *kind;
};

void scenario_run(u64 seed, struct scenario_result *result);

#endif /* MEDGE_TEST_SCENARIO_H */
