#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# QPs of one host: every byte, order and error is as over the rails, but no frame
# goes; and what that is worth. Of one device, and of two in node a:
#
#        node a                                          node b
#        bond0 ----------------------------------------- bond0    medge, as ever
#        near ------ far    a device on each             far      a device with the same address
#
#   loopback.sh [--rounds N] [quick|all]    of verbs_pattern and verbs_loop, default: 40, and all;
#                                           SEED=N repeats a run
#
# lab: --rails 2 --mtu 9000 --host awake -- quick
# lab beside: --rails 1 --mtu 1500 --kernel debug -- --rounds 4 quick
# lab long: --rails 2 --mtu 9000
# lab long: --rails 1 --mtu 1500 --kernel debug
set -u
# shellcheck source=tests/verbs/lib.sh
. "$(dirname "$0")/lib.sh"

ROUNDS=40 ALL=yes
usage() {
	echo "usage: loopback.sh [--rounds N] [quick|all]" >&2
	exit 2
}

while (($#)); do
	case $1 in
	--rounds)
		[[ ${2:-} =~ ^[1-9][0-9]*$ ]] || usage
		ROUNDS=$2
		shift
		;;
	quick) ALL= ;;
	all) ALL=yes ;;
	*) usage ;;
	esac
	shift
done
if [ "$TYPE" != medge ]; then
	echo "this is about medge"
	exit 77
fi

# What the rails of the devices have carried, and what went past them.
carried() {
	local dev
	for dev in "$@"; do
		printf '%s ' $(($(hw_counter "$dev" rail0_tx_bytes) + $(hw_counter "$dev" rail0_rx_bytes) +
			$(hw_counter "$dev" rail1_tx_bytes) + $(hw_counter "$dev" rail1_rx_bytes)))
	done
}

# copied LABEL CMD...: CMD works, and nothing has gone over a rail.
copied() {
	local rails copies
	rails=$(carried "$DEV_A" "$DEV_B") copies=$(hw_counter "$DEV_A" loop_bytes)
	"${@:2}" || failed "$1: ${*:2}"
	(($(hw_counter "$DEV_A" loop_bytes) > copies)) || failed "$1: nothing was copied"
	[ "$(carried "$DEV_A" "$DEV_B")" = "$rails" ] || failed "$1: rails carried $rails bytes, and now $(carried "$DEV_A" "$DEV_B")"
}

# Datagrams, both ends in node a, each of which compares what it gets.
# shellcheck disable=SC2317 # copied calls it
send_datagrams() {
	local pid
	next_port
	timeout 30 ip netns exec a ibv_ud_pingpong -c -s 1024 -n 200 -d "$DEV_B" -g "$GID_B" -p "$PORT" &
	pid=$!
	wait_listening a "$PORT" "$pid"
	timeout 30 ip netns exec a ibv_ud_pingpong -c -s 1024 -n 200 -d "$DEV_A" -g "$GID_A" -p "$PORT" "$IP_A" &&
		wait "$pid"
}

# shellcheck disable=SC2317 # copied calls it
datagrams() {
	local status
	send_datagrams >"$WORK/out" 2>&1
	status=$?
	[ "$status" = 0 ] || sed "s/^/    status $status: /" "$WORK/out"
	return "$status"
}

programs() {
	copied "$1" run "$1: verbs_pattern" 60 "$PATTERN" --seed "$SEED" --rounds "$ROUNDS"
	copied "$1" run "$1: verbs_order" 60 "$ORDER" --seed "$SEED" --ms 20
	copied "$1" datagrams
	set_devices polling off
	run "$1: verbs_loop speed" 100 "$LOOP" --seed "$SEED" --rounds "$((ROUNDS / 8 + 1))" "${JUDGE[@]}" speed
	set_devices polling auto
	kills "$1"
	[ "$ALL" ] || return
	copied "$1" run "$1: verbs_pattern --max 16 MiB" 60 "$PATTERN" --seed "$SEED" --rounds 4 --qps 1 --max 16777216
	copied "$1" run "$1: verbs_uc" 60 "$UC"
	copied "$1" run "$1: verbs_errors" 200 "$ERRORS"
}

# In the midst of it processes are killed, and leave nothing.
kills() {
	local before
	before=$(resources)
	kill_patterns "$KILLS"
	nothing_left "$before" "$1, killed"
}

# And a device goes, to which another sends.
removal() {
	local tries
	start_pattern robbed 2
	sleep 0.2
	unharmed robbed "$PID"
	on a rdma link delete "$DEV_B" || failed "$DEV_B cannot be removed"
	for ((tries = 0; tries < 400; tries++)); do
		kill -0 "$PID" 2>/dev/null || return
		sleep 0.1
	done
	failed "verbs_pattern goes on without $DEV_B"
	end_pattern "$PID"
}

# Frames to the address that "far" has here must not end in node b.
twins() {
	local mac
	ip -n a link add near type veth peer name far && ip -n b link add far type dummy || return
	for link in near far; do
		ip -n a link set "$link" mtu "$MTU" up || return
	done
	mac=$(on a cat /sys/class/net/far/address) && ip -n b link set far address "$mac" mtu "$MTU" up &&
		rdma_link medge_twin b far && rdma_link medge_near a near && rdma_link medge_far a far || return
	ip -n a address add 10.98.0.1/24 dev near && ip -n a address add 10.98.0.2/24 dev far || return
	# Nobody asks for one's own address over a wire.
	ip -n a neighbour add 10.98.0.2 lladdr "$mac" dev near nud permanent &&
		ip -n a neighbour add 10.98.0.1 lladdr "$(on a cat /sys/class/net/near/address)" dev far nud permanent
}

twins_go() {
	on a rdma link delete medge_near && on b rdma link delete medge_twin &&
		ip -n a link del near && ip -n b link del far
}

rdma_link() {
	on "$2" rdma link add "$1" type medge netdev "$3"
}

# Figures are of sends that ring; and with every sanitizer, on a busy machine, they tell nothing.
JUDGE=(--judge) KILLS=4
[ "${KERNEL:-}" != debug ] || JUDGE=() KILLS=2
choose_seed
PATTERN=$(program verbs_pattern) && ORDER=$(program verbs_order) && ERRORS=$(program verbs_errors) &&
	UC=$(program verbs_uc) && LOOP=$(program verbs_loop) || exit

# To another namespace nothing is copied.
pingpong 60 || failed "ibv_rc_pingpong between the nodes: $BOTH_STATUS"
(($(hw_counter "$DEV_A" loop_bytes) + $(hw_counter "$DEV_B" loop_bytes) == 0)) || failed "copied from one node to the other"

export DEV_B=$DEV_A GID_B=$GID_A
run "one device: verbs_loop ring" 60 "$LOOP" ring
programs "one device"

twins || failed "there are no two devices in one node"
DEV_A=medge_near DEV_B=medge_far
GID_A=$(gid_index "$DEV_A" 10.98.0.1) || failed "$DEV_A has no GID"
GID_B=$(gid_index "$DEV_B" 10.98.0.2) || failed "$DEV_B has no GID"
export DEV_A DEV_B GID_A GID_B
programs "two devices"
removal
twins_go || failed "the two devices do not go"
verdict
