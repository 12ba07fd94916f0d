#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Kill either side of a busy connection at a random moment, again and again:
# nothing may be left of it, and the next one must work.
#
#   verbs_kill.sh [ROUNDS]    default 25; SEED=N repeats a run
#
# lab beside: --rails 2 --mtu 9000 --kernel debug -- 10
# lab long: --rails 2 --mtu 9000 --kernel debug --timeout 1800 -- 200
set -u
# shellcheck source=tests/verbs/lib.sh
. "$(dirname "$0")/lib.sh"

ROUNDS=${1:-25}
[[ $ROUNDS =~ ^[0-9]+$ ]] || {
	echo "usage: verbs_kill.sh [ROUNDS]" >&2
	exit 2
}

# What is killed: perftest's two ends, or one process with both.
VICTIMS=(
	'ib_write_bw -s 65536 -D 60'
	'ib_write_bw -s 1048576 -q 4 -b -D 60'
	'ib_write_bw -s 2 -l 16 -D 60'
	'ib_read_bw -s 1048576 -D 60'
	'ib_read_bw -s 4096 -q 8 -b -D 60'
	'ib_send_bw -s 100000 -b -D 60'
	'ib_send_bw -s 64 -e -n 10000000'
	'ib_send_lat -s 30000 -D 60'
	'ib_read_lat -D 60'
	pattern
)

# "$!" is the program itself, since on is replaced by it. Disowned, so that
# bash does not tell of each that is killed.
start() {
	on "$@" >"$WORK/output.$1" 2>&1 &
	PIDS+=($!)
	disown
}

start_victim() {
	local words
	PIDS=()
	rm -f "$WORK"/output.*
	if [ "$1" = pattern ]; then
		random_below 30000
		start a "$PATTERN" --time 60 --qps 4 --seed "$REPLY"
		return
	fi
	read -ra words <<<"$1"
	next_port
	start b "${words[@]}" -d "$DEV_B" -x "$GID_B" -F -p "$PORT"
	wait_listening b "$PORT" "${PIDS[0]}"
	start a "${words[@]}" -d "$DEV_A" -x "$GID_A" -F -p "$PORT" "$IP_B"
}

kill_all() {
	local pid tries
	kill -KILL "$@" 2>/dev/null
	for pid; do
		for ((tries = 0; tries < 500; tries++)); do
			kill -0 "$pid" 2>/dev/null || break
			sleep 0.02
		done
		((tries < 500)) || failed "round $round, $LAST: process $pid cannot be killed"
	done
}

# At any time from the start on, or once there is traffic.
kill_round() {
	local first delay gap from=start
	start_victim "$1"
	random_below 2
	if [ "$REPLY" = 1 ]; then
		wait_connected 1 || failed "round $round, $1 does not run: $(tail -qn 2 "$WORK"/output.*)"
		from=connection
	fi
	random_below 600
	delay=$REPLY
	random_below ${#PIDS[@]}
	first=$REPLY
	# The other one may see its peer fail, or not live to see it.
	random_below 3
	gap=$((REPLY * REPLY * 80))
	LAST="$1, killed $delay ms after its $from, the other $gap ms later"
	sleep "$(printf '0.%03d' "$delay")"
	kill -KILL "${PIDS[first]}" 2>/dev/null
	sleep "$(printf '0.%03d' "$gap")"
	kill_all "${PIDS[@]}"
}

choose_seed
PATTERN=$(program verbs_pattern) || exit
before=$(resources)
for ((round = 1; round <= ROUNDS; round++)); do
	random_below ${#VICTIMS[@]}
	kill_round "${VICTIMS[REPLY]}"
	nothing_left "$before" "round $round, $LAST" || break
	rdma link show >/dev/null || failed "round $round, $LAST: rdma link fails"
	((round % 10)) || echo "$round rounds"
done
still_works || {
	failed "after $ROUNDS rounds: a new connection does not work: $BOTH_STATUS"
	tail -n 8 "$WORK/client" "$WORK/server"
}
verdict
