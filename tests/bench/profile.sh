#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# In the lab, while profile.py looks from outside: operations, each again and again.
#
#   profile.sh FILE OPERATION...    FILE: is told where the run's files are; the next begins when FILE is gone
set -euo pipefail
# Seconds of the machine's, which hardly go by while it is looked at.
PATIENCE=60
mark=$1
shift
cp /proc/kallsyms "$LAB_OUT/kallsyms"
for operation; do
	"$LAB_BUILD/tests/verbs/op_cost" "$operation" &
	pid=$!
	sleep 1
	echo "${LAB_OUT%/out}" >"$mark"
	waited=0
	while [[ -e $mark ]]; do
		if ((waited++ == 2 * PATIENCE)); then
			echo "nobody has looked at $operation" >&2
			exit 1
		fi
		sleep 0.5
	done
	kill "$pid"
	wait "$pid" 2>/dev/null || :
done
