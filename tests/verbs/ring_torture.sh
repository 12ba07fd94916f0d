#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# A hostile process beside a good one: ring_torture scribbles over what it
# shares with the kernel, and all that may fail is its own.
#
#   ring_torture.sh [LIVES]    default 20; SEED=N repeats a run
#
# lab beside: --rails 2 --mtu 9000 -- 5
# lab beside: --rails 2 --mtu 9000 --kernel debug -- 4
# lab long: --rails 2 --mtu 9000 --timeout 1000 -- 100
# lab long: --rails 2 --mtu 9000 --kernel debug
set -u
# shellcheck source=tests/verbs/lib.sh
. "$(dirname "$0")/lib.sh"

LIVES=${1:-20}
choose_seed
torture=$(program ring_torture) && pattern=$(program verbs_pattern) || exit
before=$(resources)

"$pattern" --seed "$SEED" --time 100000 --max 65536 >"$WORK/good" 2>&1 &
good=$!
wait_connected 2 || failed "the good process does not run"
run ring_torture 500 "$torture" "$LIVES" "$SEED"
if kill -0 "$good" 2>/dev/null; then
	echo "the good process has not noticed"
else
	failed "the good process: $(tail -n 3 "$WORK/good")"
fi
kill -KILL "$good" 2>/dev/null
wait "$good" 2>/dev/null
resources_back_to "$before" || {
	failed "objects are left over"
	rdma resource show
}
still_works || failed "afterwards, a new connection does not work: $BOTH_STATUS"
verdict
