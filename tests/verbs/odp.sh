#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# On-demand paging: see verbs_odp.c. With swap, so that memory of a process's own can go, too.
#
#   odp.sh [--ms N] [NAME...]    default: races of 700 ms, all tests; SEED=N repeats a run
#
# lab beside: --rails 2 --mtu 9000
# lab beside: --rails 2 --mtu 9000 --kernel debug -- --ms 100 implicit_region holes races_with_reclaim destroy_with_faults
# lab long: --rails 2 --mtu 1500 --kernel debug
# lab long: --rails 2 --mtu 9000 --netem 'loss 1% reorder 10%' -- --ms 3000
# lab long: --rails 4 --mtu 1500 --netem 'loss 2% duplicate 1% reorder 25%' --kernel debug -- --ms 10000
set -u
# shellcheck source=tests/verbs/lib.sh
. "$(dirname "$0")/lib.sh"

choose_seed
dd if=/dev/zero of="$WORK/swap" bs=1M count=64 status=none
chmod 600 "$WORK/swap"
mkswap "$WORK/swap" >/dev/null
SWAP=$(losetup -f --show "$WORK/swap") || exit
swapon "$SWAP" || failed "there is no swap"
p=$(program verbs_odp) || exit
run verbs_odp 120 "$p" --seed "$((SEED + 1))" "$@" && cat "$WORK/out"
swapoff "$SWAP"
losetup -d "$SWAP"
verdict
