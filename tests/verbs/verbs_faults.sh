#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Each allocation that a verb needs fails once, and each copy from and to user space: see verbs_faults.c.
#
#   verbs_faults.sh [NAME...]    default: all verbs
#
# lab beside: --rails 2 --mtu 9000 --kernel debug
set -u
# shellcheck source=tests/verbs/lib.sh
. "$(dirname "$0")/lib.sh"

FAULTS=/sys/kernel/debug
mountpoint -q "$FAULTS" || mount -t debugfs none "$FAULTS"
if ! [ -e "$FAULTS/failslab" ]; then
	echo "this kernel injects no faults: lab exec --kernel debug"
	exit 77
fi
# All kinds of allocations, and no word of each.
for kind in failslab fail_page_alloc fail_usercopy; do
	[ "$kind" = fail_usercopy ] || echo N >"$FAULTS/$kind/ignore-gfp-wait"
	echo 0 >"$FAULTS/$kind/verbose" || exit
done
echo 0 >"$FAULTS/fail_page_alloc/min-order"

before=$(resources)
p=$(program verbs_faults) || exit
run verbs_faults 400 "$p" "$@" && cat "$WORK/out"
as_before "$before"
verdict
