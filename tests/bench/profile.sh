#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# In the lab, while profile.py looks from outside: one operation again and again.
#
#   profile.sh OPERATION FILE    FILE: is told where the run's files are; it ends when FILE is gone
set -euo pipefail
cp /proc/kallsyms "$LAB_OUT/kallsyms"
"$LAB_BUILD/tests/verbs/op_cost" "$1" &
sleep 1
echo "${LAB_OUT%/out}" >"$2"
while [[ -e $2 ]]; do
	sleep 0.5
done
kill %1
