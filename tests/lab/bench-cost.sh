# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# What operations cost in instructions, on a stock kernel under an emulator that counts them: figures that repeat,
# whatever else the machine does. They are kept in the tree, and may not grow unnoticed.
# shellcheck shell=bash

COST_KERNEL=7

# bench_cost [--record] [TYPES], bench_cost --profile OPERATION
bench_cost() {
	local record='' types=medge result
	if [[ ${1:-} == --profile ]]; then
		shift
		bench_profile "$@"
		return
	fi
	if [[ ${1:-} == --record ]]; then
		record=--record
		shift
	fi
	(($# <= 1)) || die "lab bench cost takes types such as medge,rxe,siw, not '$*'; see lab help"
	if (($#)); then
		types=$1
		set_types "$types"
	fi
	result=$(mktemp)
	bench_counted --type "$types" -- "$BENCH/cost.sh" >"$result" || die "what operations cost could not be measured"
	/usr/bin/python3 -B "$BENCH/cost.py" $record "$BENCH/cost-history.csv" "$result"
}

# bench_counted OPTION... -- SCRIPT ARG...: where time is instructions. The variable is the lab's own, see qemu.sh.
bench_counted() {
	LAB_ICOUNT=1 "$LAB/lab" exec --kernel "$COST_KERNEL" --cpus 1 --rails 1 --mtu 9000 --timeout 300 "$@"
}

# bench_profile OPERATION: where its instructions go, by function.
bench_profile() {
	(($# == 1)) || die "lab bench cost --profile takes one operation, such as write_64; see lab help"
	grep -q "{ \"$1\"," "$REPO/tests/verbs/op_cost.c" || die "there is no operation '$1' in tests/verbs/op_cost.c"
	bench_look '' "$1" || die "what $1 costs could not be seen"
}

# bench_look OUT.json|'' OPERATION...: they run in the lab, and are looked at from outside.
bench_look() {
	local out=$1 mark looker status=0
	shift
	mark=$(mktemp /tmp/lab-profile-XXXXXX)
	setpriv --pdeathsig TERM -- /usr/bin/python3 -B "$BENCH/profile.py" "$mark" ${out:+"$out" "$@"} &
	looker=$!
	bench_counted -- "$BENCH/profile.sh" "$mark" "$@" || {
		status=1
		kill "$looker" 2>/dev/null
	}
	wait "$looker" || status=1
	rm -f "$mark"
	return "$status"
}
