#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# A hostile process beside a good one: ring_torture scribbles over what it
# shares with the kernel, and all that may fail is its own.
#
#   ring_torture.sh [LIVES]    default 20; SEED=N repeats a run
#
# lab beside: --rails 2 --mtu 9000 --kernel debug -- 4
# lab long: --rails 2 --mtu 9000 --timeout 1000 -- 100
# lab long: --rails 2 --mtu 9000 --kernel debug
set -u
# shellcheck source=tests/verbs/lib.sh
. "$(dirname "$0")/lib.sh"

LIVES=${1:-20}
choose_seed
torture=$(program ring_torture) && PATTERN=$(program verbs_pattern) || exit
before=$(resources)

start_pattern good 4
run ring_torture 500 "$torture" "$LIVES" "$SEED"
unharmed good "$PID" && echo "the good process has not noticed"
end_pattern "$PID"
as_before "$before"
verdict
