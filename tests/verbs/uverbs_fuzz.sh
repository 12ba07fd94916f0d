#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Hostile processes lie to the kernel about verbs; a good one beside them
# notices nothing, and nothing is left of them.
#
#   uverbs_fuzz.sh [SECONDS]          default 10; SEED=N repeats a run, where it is blind
#   uverbs_fuzz.sh --compare SECONDS  how far one comes blindly, and guided, from nothing, in so many each
#   uverbs_fuzz.sh --replay FILE      the lives of a file, once
#
# Where the module is built for KCOV, as on the debug kernel, the lives that go where none has gone before are
# kept, and others made of them, to begin with those of uverbs_fuzz.lives. All that are needed to go as far are
# in $LAB_OUT/uverbs_fuzz.lives afterwards, if it is a long run: who goes farther than the file in the tree is to
# replace it.
#
# lab beside: --rails 2 --mtu 9000 --kernel debug -- 6
# lab long: --rails 2 --mtu 9000 --kernel debug --timeout 7200 -- 3600
set -u
# shellcheck source=tests/verbs/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/lab/report.sh
. "$LAB_REPO/tests/lab/report.sh"
# The life that the kernel complains of is told.
export REPORT_PATTERN

LONG_S=60

# fuzz LABEL LIMIT ARGS...: its last words are left in $WORK/fuzz.
fuzz() {
	local label=$1
	if timeout $(($2 + 60)) "$FUZZ" "${@:3}" >"$WORK/fuzz" 2>/dev/null; then
		echo "$label: $(cat "$WORK/fuzz")"
	else
		failed "$label: status $?: $(cat "$WORK/fuzz")"
		return
	fi
	# It must not go blind where it could see.
	if [ -e "$KCOV" ] && ! grep -q '[1-9][0-9]* places' "$WORK/fuzz"; then
		failed "$label: the module is not built for KCOV"
	fi
}

explore() {
	local args=(--seeds "$HERE/uverbs_fuzz.lives") limit=$1
	if (($1 >= LONG_S)); then
		args+=(--keep "$LAB_OUT/uverbs_fuzz.lives")
		limit=$(($1 + 1800))
	fi
	fuzz lives "$limit" "${args[@]}" "$1" "$SEED"
}

choose_seed
FUZZ=$(program uverbs_fuzz) && PATTERN=$(program verbs_pattern) || exit
mountpoint -q /sys/kernel/debug || mount -t debugfs none /sys/kernel/debug
KCOV=/sys/kernel/debug/kcov
before=$(resources)
start_pattern good 4
# What the lives end with is their own business, and may be a lot.
ulimit -c 0
case ${1:-} in
--compare)
	fuzz blind "$2" --blind "$2" "$SEED"
	fuzz guided "$2" "$2" "$SEED"
	;;
--replay) fuzz replay 600 --replay "$2" ;;
*) explore "${1:-10}" ;;
esac
unharmed good "$PID"
end_pattern "$PID"
as_before "$before"
verdict
