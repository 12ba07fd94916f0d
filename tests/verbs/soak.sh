#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# All that is hard on a device, in an order that only the seed knows, for as long as one likes. A round is some acts, each a
# test of its own that looks at every byte, order and count; after it nothing is left over, nothing has leaked, and the
# kernel has not complained. The first round that fails is the last, and its seed repeats it.
#
#   soak.sh [--minutes N] [--rounds N] [ACT...]    default: 10 minutes, all acts; SEED=N repeats a run
#
# CPUs are not taken away: User-Mode Linux has no hotplug. Nor are processes killed for want of memory in a control
# group of their own: the lab's kernels have none for memory.
#
# lab long: --rails 3 --mtu 9000 --kernel debug --mem 1G --timeout 5400 -- --minutes 60
# shellcheck disable=SC2317 # acts are called by their names
set -u
# shellcheck source=tests/verbs/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/lab/report.sh
. "$LAB_REPO/tests/lab/report.sh"
# shellcheck source=tests/lab/guest/leaks.sh
. "$LAB_REPO/tests/lab/guest/leaks.sh"

MINUTES=10 ROUNDS=1000000 ACTS_EACH=3
ACTS=(programs loss rails kills lies seals paging churn starved pressure)
# What has been seen, of all rounds.
OPERATIONS=0 KILLS=0 LIES=0

usage() {
	echo "usage: soak.sh [--minutes N] [--rounds N] [${ACTS[*]}]..." >&2
	exit 2
}

while (($#)); do
	case $1 in
	--minutes | --rounds)
		[[ ${2:-} =~ ^[1-9][0-9]*$ ]] || usage
		if [ "$1" = --minutes ]; then MINUTES=$2; else ROUNDS=$2; fi
		shift 2
		;;
	-*) usage ;;
	*) break ;;
	esac
done
for act; do
	[[ " ${ACTS[*]} " == *" $act "* ]] || usage
done
[ $# = 0 ] || ACTS=("$@")
[ "$TYPE" = medge ] || {
	echo "this is about medge"
	exit 77
}

# The numbers in front of or behind a word, in what the last act said, all together.
sum_of() {
	grep -oE "$1" "$WORK/out" | grep -oE '[0-9]+' | awk '{ n += $1 } END { print n + 0 }'
}

count_out() {
	OPERATIONS=$((OPERATIONS + $(sum_of '[0-9]+ operations')))
	LIES=$((LIES + $(sum_of 'told [0-9]+ lies')))
}

# script LABEL SECONDS NAME ARGS...: one of the tests beside this, with a seed of ours.
script() {
	random_below 30000
	run "$1" "$2" env "SEED=$REPLY" "$HERE/$3.sh" "${@:4}"
	count_out
}

# watched SECONDS CMD ARGS...: what CMD does to the traffic meanwhile must not harm it.
watched() {
	local pid seconds=$1
	random_below 30000
	"$PATTERN" --seed "$REPLY" --time "$seconds" --max 100000 >"$WORK/watched" 2>&1 &
	pid=$!
	wait_connected 4 || failed "the traffic does not start: $(tail -n 2 "$WORK/watched")"
	"${@:2}"
	# Nothing lasts: who hangs fails.
	timeout -k 1 90 tail --pid "$pid" -f /dev/null || kill -KILL "$pid"
	wait "$pid" || failed "under ${*:2}: $(tail -n 2 "$WORK/watched")"
	cp "$WORK/watched" "$WORK/out"
	count_out
}

# told LABEL BEGAN: as run does, how it went with what was watched.
told() {
	printf '%-46s      %6.1f s  %s\n' "$1" "$(since "$2")" "$(tail -n 1 "$WORK/out")"
}

# --- acts ----------------------------------------------------------------------

programs() {
	script "every opcode, order and error" 300 verbs_programs --rounds 8
}

loss() {
	local spec
	random_below 4
	case $REPLY in
	0) spec="loss 3%" ;;
	1) spec="loss 1% duplicate 2% reorder 25% delay 300us" ;;
	2) spec="delay 2ms 2ms" ;;
	3) spec="loss gemodel 1% 20%" ;;
	esac
	# shellcheck disable=SC2086 # words
	impair $spec
	random_below 30000
	run "rails with $spec" 200 "$PATTERN" --seed "$REPLY" --time 12
	count_out
	repair
}

rails() {
	script "rails come and go" 150 rails --chaos 15 chaos
}

kills() {
	script "processes are killed" 200 verbs_kill 5
	KILLS=$((KILLS + 5))
}

lies() {
	script "garbage, and a liar in a connection" 150 wire_liar 2
}

seals() {
	script "bits are flipped; seals come and go" 250 integrity corrupt switch
}

paging() {
	script "memory paged on demand" 250 odp --ms 50 implicit_region holes races_with_reclaim destroy_with_faults
}

# The links may have other GIDs then.
churn() {
	script "links, bonds and the module leave" 300 link_churn 1
	if ! GID_A=$(gid_index "$DEV_A" "$IP_A") || ! GID_B=$(gid_index "$DEV_B" "$IP_B"); then
		failed "the links are not back"
	fi
}

# fail_some PERCENT: of the allocations that cannot wait, whoever asks.
fail_some() {
	local kind dir
	for kind in failslab fail_page_alloc; do
		dir=/sys/kernel/debug/$kind
		echo 0 >"$dir/verbose"
		echo Y >"$dir/ignore-gfp-wait"
		echo N >"$dir/task-filter"
		echo 1 >"$dir/interval"
		echo -1 >"$dir/times"
		echo "$1" >"$dir/probability" || failed "$dir"
	done
	echo 0 >/sys/kernel/debug/fail_page_alloc/min-order
}

# Frames that there was no memory for, of both devices.
unsent() {
	echo $(($(hw_counter "$DEV_A" tx_errors) + $(hw_counter "$DEV_B" tx_errors)))
}

starve() {
	fail_some 1
	sleep 8
	fail_some 0
}

starved() {
	local began=$EPOCHREALTIME unsent
	if ! [ -e /sys/kernel/debug/failslab ]; then
		echo "this kernel injects no faults"
		return
	fi
	unsent=$(unsent)
	watched 12 starve
	(($(unsent) > unsent)) || failed "no frame had to do without memory"
	told "allocations fail" "$began"
}

available() {
	awk '/^MemAvailable/ { print int($2 / 1024) }' /proc/meminfo
}

# All but 96 MiB, for some seconds, in a file system of its own.
press() {
	mkdir -p "$WORK/full"
	mount -t tmpfs -o size=100% none "$WORK/full"
	timeout 40 fallocate -l "$(($(available) - 96))M" "$WORK/full/file"
	LEAST=$(available)
	sleep 2
	umount "$WORK/full"
}

pressure() {
	local began=$EPOCHREALTIME LEAST
	watched 15 press
	told "no memory but $LEAST MiB" "$began"
	((LEAST < 200)) || failed "there was no want of memory"
}

# --- rounds --------------------------------------------------------------------

no_complaint() {
	dmesg | grep -E "$REPORT_PATTERN" >"$WORK/complaints" || return 0
	failed "the kernel complains: $(head -n 1 "$WORK/complaints")"
}

no_leak() {
	[ -e "$KMEMLEAK" ] || return 0
	leaks_find
	[ "$(leaks_in kmemleak)" = 0 ] || failed "$(leaks_in kmemleak) objects have leaked: $(sed -n 1,12p "$LAB_OUT/kmemleak")"
}

choose_seed
PATTERN=$(program verbs_pattern) || exit
mountpoint -q /sys/kernel/debug || mount -t debugfs none /sys/kernel/debug
leaks_forget
dmesg -C
BEFORE=$(resources)
UNTIL=$((SECONDS + MINUTES * 60))
for ((round = 1; round <= ROUNDS && SECONDS < UNTIL && FAILED == 0; round++)); do
	RANDOM=$((SEED + round - 1))
	echo "round $round, seed $((SEED + round - 1)), $((SECONDS / 60)) minutes"
	for ((i = 0; i < ACTS_EACH && FAILED == 0; i++)); do
		random_below ${#ACTS[@]}
		"${ACTS[REPLY]}"
	done
	as_before "$BEFORE"
	no_leak
	no_complaint
done
((FAILED == 0)) || echo "again: lab soak --seed $((SEED + round - 2)) --rounds 1"
echo "$((round - 1)) rounds, $KILLS kills, $LIES lies told, $OPERATIONS operations with every byte right"
verdict
