/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * RC QPs connected by the connection manager, which iWARP wants: between the two
 * nodes of the lab, in one process.
 */
#ifndef VERBS_CM_H
#define VERBS_CM_H

#include "verbs_test.h"

/*
 * From @a to @b, whose QPs are in INIT, and in RTS afterwards; @a is who may send
 * first (RFC 5044 7.1). Dies if that fails.
 */
void cm_connect(struct end *a, struct end *b);
void cm_disconnect(struct end *end);

#endif /* VERBS_CM_H */
