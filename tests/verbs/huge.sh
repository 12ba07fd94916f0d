#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The largest sizes that the device offers, in use, and refusals of larger ones: see verbs_huge.c.
#
#   huge.sh [cq|depth|inline|message|qps]...    default: all
#
# Each page of a process, and each ring, is a mapping of the host's on User-Mode Linux, which has 65530 of them at
# most: messages of 2 GiB and all QPs need a kernel that is no such process.
#
# lab long: --rails 2 --mtu 9000 --timeout 1800 -- cq depth inline
# lab long: --kernel 6.12 --rails 2 --mtu 9000 --mem 8G --timeout 3600 -- message qps
set -u
# shellcheck source=tests/verbs/lib.sh
. "$(dirname "$0")/lib.sh"

# Two rings of each QP.
echo 1000000 >/proc/sys/vm/max_map_count
choose_seed
before=$(resources)
p=$(program verbs_huge) || exit
[ $# != 0 ] || set -- cq depth inline message qps
for part; do
	run "$part" 3000 "$p" "$part" "$((SEED + 1))" && cat "$WORK/out"
done
as_before "$before"
verdict
