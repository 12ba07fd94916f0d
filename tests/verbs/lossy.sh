#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The same core over rails that lose, duplicate and reorder frames, and cut what goes
# as one: everything finishes, and every byte is right.
#
#   lossy.sh [--short] [NETEM...]    in tc's words; SEED=N repeats a run
#
# lab beside: --rails 2 --mtu 1500 -- --short
# lab beside: --rails 2 --mtu 9000 --kernel debug -- --short loss 2% duplicate 1% reorder 25% delay 300us
# lab long: --rails 2 --mtu 9000 --timeout 900
# lab long: --rails 2 --mtu 1500 --timeout 900
# lab long: --rails 2 --mtu 9000 --kernel debug --timeout 1500 -- loss 2% duplicate 1% reorder 25% delay 300us
set -u
# shellcheck source=tests/verbs/lib.sh
. "$(dirname "$0")/lib.sh"

LIMIT=${LIMIT:-200}
SIZES=(-a -n 100) LAT_SIZES=(-a -n 20) COUNT=200 MS=400 SHORT=
if [ "${1:-}" = --short ]; then
	SIZES=(-s 1000000 -n 60) LAT_SIZES=(-s 70000 -n 60) COUNT=80 MS=160 SHORT=1
	shift
fi
if [ $# = 0 ]; then
	set -- loss 2% duplicate 1% reorder 25% delay 200us
fi

bench() {
	local label=$1 began=$EPOCHREALTIME
	shift
	if "$@"; then
		printf '%-46s ok   %6.1f s  %s\n' "$label" "$(since "$began")" "$(perftest_rows | tail -n 1 | tr -s ' ')"
	else
		printf '%-46s FAIL %6.1f s\n' "$label" "$(since "$began")"
		failed "$label: $BOTH_STATUS"
		tail -n 8 "$WORK/client" "$WORK/server"
	fi
}

# The peer's address comes after two tries to learn it. ib_core waits for it no longer than until the next try is due,
# and after the third nobody asks again: if rails lost all until then, a script that is late would be too late. So what
# is tried twice first is a daemon that is not there (arp(7)), and then the rails, which lose nothing yet, since there
# is but one try; but the answer they bring is too late for the second wait, too.
heard_late() {
	local began took
	impair delay 25ms
	asks 2 1
	on a ip neigh flush all && on b ip neigh flush all
	began=$EPOCHREALTIME
	run "verbs_pattern, which is heard late" "$LIMIT" "$pattern" --seed "$SEED" --rounds 1 --depth 4
	took=$(since "$began")
	asks 0 3
	((${took%.*} >= 2)) || failed "it was heard at once"
}

# asks DAEMON RAILS: so often a does before it gives up.
asks() {
	# shellcheck disable=SC2016 # for the inner shell
	on a sh -c 'cd "/proc/sys/net/ipv4/neigh/$0" && echo "$1" >app_solicit && echo "$2" >mcast_solicit' "$NETDEV_A" "$@" ||
		failed "ARP cannot be told how often to ask"
}

# What rails cut is joined again where it comes in order; a frame that somebody else has, too, is left alone. That is who
# listens, as long as he keeps up.
joined() {
	local joined skbs
	whole off
	joined=$(hw_counter "$DEV_B" rx_joined) skbs=$(hw_counter "$DEV_B" rx_skbs)
	bench "ib_write_bw, cut" perftest "$LIMIT" ib_write_bw -s 1048576 -n 100
	joined=$(($(hw_counter "$DEV_B" rx_joined) - joined)) skbs=$(($(hw_counter "$DEV_B" rx_skbs) - skbs))
	echo "of $skbs frames $joined were joined to others"
	((2 * joined > skbs)) || failed "frames that were cut are not joined"
	run "verbs_pattern, cut" "$LIMIT" "$pattern" --seed "$SEED" --rounds 20
	listened_to "verbs_pattern, cut"
	rails_set sg off
	run "verbs_pattern, cut, each in one piece" "$LIMIT" "$pattern" --seed "$((SEED + 1))" --rounds 20
	rails_set sg on
	whole on
}

# listened_to LABEL: to all that comes to b, by who has what we have.
listened_to() {
	local listener
	on b python3 -c '
import socket
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
print(flush=True)
while True:
    s.recv(65536)
' >"$WORK/listener" &
	listener=$!
	until [[ -s $WORK/listener ]]; do sleep 0.1; done
	run "$1, and somebody listens" "$LIMIT" "$pattern" --seed "$SEED" --rounds 10
	{ kill "$listener" && wait "$listener"; } 2>/dev/null
}

# Frames of small ops go through the stack together, also where somebody listens; a qdisc that may send less at once
# than what is in a bundle has it cut, which was given to it since the rail itself would take it.
bundled() {
	local skbs frames
	skbs=$(hw_counter "$DEV_A" tx_skbs) frames=$(hw_counter "$DEV_A" tx_frames)
	bench "ib_write_bw, small" perftest "$LIMIT" ib_write_bw -s "$((MTU / 5))" -l 32 -n 3200
	skbs=$(($(hw_counter "$DEV_A" tx_skbs) - skbs)) frames=$(($(hw_counter "$DEV_A" tx_frames) - frames))
	echo "$frames frames were sent as $skbs"
	((2 * skbs < frames)) || failed "frames of small ops are not bundled"
	listened_to "verbs_pattern"
	all_rails add tbf rate 2gbit burst 20kb limit 100mb
	bench "ib_write_bw, small, cut by a qdisc" perftest "$LIMIT" ib_write_bw -s "$((MTU / 5))" -l 32 -n 3200
	run "verbs_pattern, cut by a qdisc" "$LIMIT" "$pattern" --seed "$SEED" --rounds 10
	repair
}

choose_seed
pattern=$(program verbs_pattern) && order=$(program verbs_order) && errors=$(program verbs_errors) || exit
echo "each rail: $*"
joined
bundled
heard_late
impair "$@"
run verbs_pattern "$LIMIT" "$pattern" --seed "$SEED" --rounds 100
run "verbs_pattern --qps 8 --memory relaxed" "$LIMIT" "$pattern" --seed "$((SEED + 1))" --rounds 20 --qps 8 --memory relaxed
run "verbs_pattern --max 16 MiB --memory strict" "$LIMIT" "$pattern" --seed "$((SEED + 2))" --rounds 5 --max 16777216 --memory strict
run "verbs_order" "$LIMIT" "$order" --seed "$SEED" --ms "$MS"
[[ $SHORT ]] || run "verbs_errors" 400 "$errors"
for tool in ib_write_bw ib_read_bw ib_send_bw; do
	bench "$tool ${SIZES[*]}" perftest "$LIMIT" "$tool" "${SIZES[@]}"
	bench "$tool -s 65536 -b -q 8" perftest "$LIMIT" "$tool" -s 65536 -b -q 8 -n "$COUNT"
done
bench "ib_write_lat ${LAT_SIZES[*]}" perftest "$LIMIT" ib_write_lat "${LAT_SIZES[@]}"
bench ib_read_lat perftest "$LIMIT" ib_read_lat -n 300
bench ib_send_lat perftest "$LIMIT" ib_send_lat -n 300
bench "ibv_rc_pingpong -s 4097 -e" pingpong "$LIMIT" -c -e -s 4097 -n 200
verdict
