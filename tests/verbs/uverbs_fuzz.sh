#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Hostile processes lie to the kernel about verbs; a good one beside them
# notices nothing, and nothing is left of them.
#
#   uverbs_fuzz.sh [SECONDS]    default 10; SEED=N repeats a run
#
# lab: --rails 2 --mtu 9000 --kernel debug -- 6
# lab long: --rails 2 --mtu 9000 --kernel debug --timeout 3900 -- 3600
set -u
# shellcheck source=tests/verbs/lib.sh
. "$(dirname "$0")/lib.sh"

SECONDS_LONG=${1:-10}
choose_seed
fuzz=$(program uverbs_fuzz) && pattern=$(program verbs_pattern) || exit
before=$(resources)
"$pattern" --seed "$SEED" --time 100000 --max 65536 >"$WORK/good" 2>&1 &
good=$!
wait_connected 4 || failed "the good process does not run"
# What the lives end with is their own business, and may be a lot.
ulimit -c 0
if timeout $((SECONDS_LONG + 60)) "$fuzz" "$SECONDS_LONG" "$SEED" >"$WORK/fuzz" 2>/dev/null; then
	cat "$WORK/fuzz"
else
	failed "uverbs_fuzz: status $?: $(cat "$WORK/fuzz")"
fi
kill -0 "$good" 2>/dev/null || failed "the good process: $(tail -n 3 "$WORK/good")"
kill -KILL "$good" 2>/dev/null
wait "$good" 2>/dev/null
resources_back_to "$before" || {
	failed "objects are left over"
	rdma resource show
}
still_works || failed "afterwards, a new connection does not work: $BOTH_STATUS"
verdict
