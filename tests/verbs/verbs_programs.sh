#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The programs of this directory: every byte, every order, every error.
#
#   verbs_programs.sh [--rounds N] [pattern|order|errors]...    default: 200 (rxe: 50), all; SEED=N repeats a run
#
# lab beside: --rails 2 --mtu 9000
# lab beside: --rails 4 --mtu 1500 -- pattern
# lab beside: --rails 2 --mtu 4000 --kernel debug -- --rounds 8
# lab long: --rails 1 --mtu 1500
# lab long: --rails 4 --mtu 4000
# lab long: --rails 2 --mtu 9000 --kernel debug
# lab long: --type rxe -- pattern order
set -u
# shellcheck source=tests/verbs/lib.sh
. "$(dirname "$0")/lib.sh"

# rxe can wait for ever at a fence after a retransmission, and takes its time.
fences=() rounds=200
[ "$TYPE" != rxe ] || fences=(--no-fences) rounds=50
usage() {
	echo "usage: verbs_programs.sh [--rounds N] [pattern|order|errors]..." >&2
	exit 2
}

if [ "${1:-}" = --rounds ]; then
	rounds=${2:-}
	[[ $rounds =~ ^[1-9][0-9]*$ ]] || usage
	shift 2
fi

pattern() {
	local p
	p=$(program verbs_pattern) || exit
	run "verbs_pattern" 120 "$p" --seed "$((SEED + 1))" --rounds "$rounds" "${fences[@]}"
	run "verbs_pattern --qps 16" 120 "$p" --seed "$((SEED + 2))" --rounds "$((rounds / 4))" --qps 16 "${fences[@]}"
	run "verbs_pattern --max 200" 120 "$p" --seed "$((SEED + 3))" --rounds "$((rounds * 4))" --max 200 "${fences[@]}"
	# Ops that share frames, in pages of their own, and in more pieces than a frame has room for.
	run "verbs_pattern --min 1 KiB --max 2 KiB" 120 "$p" --seed "$((SEED + 7))" --rounds "$rounds" --min 1024 --max 2048 \
		--no-reads "${fences[@]}"
	run "verbs_pattern --max 64 MiB" 120 "$p" --seed "$((SEED + 4))" --rounds 5 --qps 1 --max 67108864 "${fences[@]}"
	run "verbs_pattern --memory strict" 120 "$p" --seed "$((SEED + 5))" --rounds "$rounds" --memory strict "${fences[@]}"
	run "verbs_pattern --memory relaxed" 120 "$p" --seed "$((SEED + 6))" --rounds "$rounds" --memory relaxed "${fences[@]}"
}

order() {
	local p
	p=$(program verbs_order) || exit
	run verbs_order 120 "$p" --seed "$SEED" --ms 500
}

errors() {
	local p
	p=$(program verbs_errors) || exit
	run verbs_errors 400 "$p"
}

choose_seed
[ $# != 0 ] || set -- pattern order errors
for part; do
	case $part in
	pattern) pattern ;;
	order) order ;;
	errors) errors ;;
	*) usage ;;
	esac
done
verdict
