#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Hostile processes lie to the kernel about verbs; a good one beside them
# notices nothing, and nothing is left of them.
#
#   uverbs_fuzz.sh [SECONDS]    default 10; SEED=N repeats a run
#
# lab beside: --rails 2 --mtu 9000 --kernel debug -- 6
# lab long: --rails 2 --mtu 9000 --kernel debug --timeout 3900 -- 3600
set -u
# shellcheck source=tests/verbs/lib.sh
. "$(dirname "$0")/lib.sh"

SECONDS_LONG=${1:-10}
choose_seed
fuzz=$(program uverbs_fuzz) && PATTERN=$(program verbs_pattern) || exit
before=$(resources)
start_pattern good 4
# What the lives end with is their own business, and may be a lot.
ulimit -c 0
if timeout $((SECONDS_LONG + 60)) "$fuzz" "$SECONDS_LONG" "$SEED" >"$WORK/fuzz" 2>/dev/null; then
	cat "$WORK/fuzz"
else
	failed "uverbs_fuzz: status $?: $(cat "$WORK/fuzz")"
fi
unharmed good "$PID"
end_pattern "$PID"
as_before "$before"
verdict
