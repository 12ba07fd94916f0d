#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Kill either side of a busy connection at a random moment, again and again:
# nothing may be left of it, and the next one must work.
#
#   verbs_kill.sh [ROUNDS]    default 25; SEED=N repeats a run
#
# lab: --rails 2 --mtu 9000 --kernel debug
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
	'ib_send_bw -s 64 -e -D 60'
	'ib_send_lat -s 30000 -D 60'
	'ib_read_lat -D 60'
	pattern
)

# The process that runs in the namespace, not the shell's wrapper around it.
start_tool() {
	local server client
	read -ra words <<<"$1"
	next_port
	on b "${words[@]}" -d "$DEV_B" -x "$GID_B" -F -p "$PORT" >"$WORK/server" 2>&1 &
	server=$!
	wait_listening b "$PORT" "$server"
	on a "${words[@]}" -d "$DEV_A" -x "$GID_A" -F -p "$PORT" "$IP_B" >"$WORK/client" 2>&1 &
	client=$!
	PIDS=("$client" "$server")
}

# Bash tells of each job that was killed, unless nobody hears it.
reap() {
	wait "$@" 2>/dev/null
}

kill_round() {
	local victim=$1 first delay gap
	if [ "$victim" = pattern ]; then
		random_below 30000
		on a "$PATTERN" --time 60 --qps 4 --seed "$REPLY" >"$WORK/client" 2>&1 &
		PIDS=($!)
	else
		start_tool "$victim"
	fi
	random_below 700
	delay=$REPLY
	random_below ${#PIDS[@]}
	first=$REPLY
	random_below 3
	gap=$((REPLY * REPLY * 80))
	sleep "$(printf '0.%03d' "$delay")"
	kill -KILL "${PIDS[first]}" 2>/dev/null
	# The other one may see its peer fail, or not live to see it.
	sleep "$(printf '0.%03d' "$gap")"
	kill -KILL "${PIDS[@]}" 2>/dev/null
	reap "${PIDS[@]}"
	LAST="$victim, killed after $delay ms, the other $gap ms later"
}

choose_seed
PATTERN=$(program verbs_pattern) || exit
before=$(resources)
for ((round = 1; round <= ROUNDS; round++)); do
	random_below ${#VICTIMS[@]}
	kill_round "${VICTIMS[REPLY]}"
	resources_back_to "$before" || {
		failed "round $round, $LAST: objects are left over"
		rdma resource show
		break
	}
	rdma link show >/dev/null || failed "round $round, $LAST: rdma link fails"
	((round % 10)) || echo "$round rounds"
done
still_works || {
	failed "after $ROUNDS rounds: a new connection does not work: $BOTH_STATUS"
	tail -n 8 "$WORK/client" "$WORK/server"
}
verdict
