#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Network namespaces that have RDMA devices for themselves (rdma system set
# netns exclusive): who sees and uses which, and where devices go when their
# netdev or their namespace does. The other tests run where all see all.
#
#   netns.sh
#
# lab beside: --rails 2 --mtu 9000
# lab long: --rails 2 --mtu 1500 --kernel debug
set -u
# shellcheck source=tests/verbs/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/lab/guest/nodes.sh
. "$HERE/../lab/guest/nodes.sh"

if [ "$TYPE" != medge ]; then
	echo "where devices go is their driver's business"
	exit 77
fi

# For nodes.sh.
fail() {
	failed "$*"
	verdict
}

# The devices that the node sees, or, if it is "", the namespace that all began in: by netlink, and by libibverbs.
by_netlink() {
	${1:+on "$1"} rdma dev | awk '{ sub(":", "", $2); print $2 }' | sort | xargs
}

by_verbs() {
	${1:+on "$1"} ibv_devices | awk 'NR > 2 { print $1 }' | sort | xargs
}

# sees NODE DEVICES: those and no other, now or soon.
sees() {
	local tries
	for ((tries = 0; tries < 50; tries++)); do
		[[ $(by_netlink "$1") == "$2" && $(by_verbs "$1") == "$2" ]] && return
		sleep 0.1
	done
	failed "${1:-nobody} sees '$(by_netlink "$1")' by netlink, '$(by_verbs "$1")' by libibverbs, not '$2'"
}

refused() {
	local label=$1
	shift
	! "$@" >/dev/null 2>&1 || failed "$label"
}

add() {
	on "$1" rdma link add "$2" type medge netdev bond0 || failed "node $1: rdma link add $2"
}

# Without nodes, for the rule can be changed only then; then with nodes again, but no devices.
rule() {
	local tries
	{ ip netns delete a && ip netns delete b; } || fail "the nodes do not go"
	for ((tries = 0; tries < 100; tries++)); do
		rdma system set netns "$1" 2>/dev/null && break
		sleep 0.1
	done
	[[ $(rdma system) == *"netns $1"* ]] || fail "the namespaces' rule does not become $1: $(rdma system)"
	NODES=2
	nodes_create
}

traffic() {
	pingpong 30 -c -s 10000 -n 500 || failed "$1: ibv_rc_pingpong: $BOTH_STATUS"
	still_works || failed "$1: ib_write_bw: $BOTH_STATUS"
	cm_ping 30 || failed "$1: rping: $BOTH_STATUS: $(tail -n 3 "$WORK/server")"
}

own_devices() {
	sees "" ""
	sees a ""
	sees b ""
	add a "$DEV_A"
	sees "" ""
	sees a "$DEV_A"
	sees b ""
	add b "$DEV_B"
	sees a "$DEV_A"
	sees b "$DEV_B"
	sees "" ""
	traffic "devices of one namespace each"
	echo "each node sees its own device, and they work"
}

others_devices() {
	refused "b opens a's device" on b ibv_devinfo -d "$DEV_A"
	refused "b deletes a's device" on b rdma link delete "$DEV_A"
	refused "all may delete a's device" rdma link delete "$DEV_A"
	refused "b has a second device of that name" on b rdma link add "$DEV_A" type medge netdev bond0
	[[ $(on b rdma resource show) != *"$DEV_A"* ]] || failed "b is told of the objects of a's device"
	[[ $(on b rdma statistic show) != *"$DEV_A"* ]] || failed "b is told of the counters of a's device"
	sees a "$DEV_A"
	echo "neither can reach the other's"
}

# qps NODE DEVICE: the number that programs have.
qps() {
	on "$1" rdma resource show qp link "$2/1" | grep -c ibv_rc_pingpong
}

# The administrator gives it away: who had it open loses it, and its rails stay where they are.
given_away() {
	local pid
	next_port
	on a ibv_rc_pingpong -d "$DEV_A" -g "$GID_A" -p "$PORT" >"$WORK/waits" 2>&1 &
	pid=$!
	wait_listening a "$PORT" "$pid"
	[ "$(qps a "$DEV_A")" = 1 ] || failed "ibv_rc_pingpong has $(qps a "$DEV_A") QPs"
	on a rdma dev set "$DEV_A" netns b || failed "a's device cannot be given to b"
	[ "$(qps b "$DEV_A")" = 0 ] || failed "a's program still has a QP of what is b's now"
	sees a ""
	sees b "$DEV_A $DEV_B"
	on b rdma dev set "$DEV_A" netns a || failed "b cannot give a's device back"
	sees a "$DEV_A"
	sees b "$DEV_B"
	kill -KILL "$pid" 2>/dev/null
	wait "$pid" 2>/dev/null
	traffic "given away and back"
	echo "given away and taken back"
}

# Its netdev leaves the namespace: as if that were deleted. (A bond cannot leave.)
netdev_leaves() {
	{
		on a ip link add port0 type veth peer name port1 && on a ip link set port0 up && on a ip link set port1 up &&
			on a rdma link add medge_port type medge netdev port0
	} || failed "no device on a plain port"
	sees a "$DEV_A medge_port"
	on a ip link set port0 netns b
	sees a "$DEV_A"
	sees b "$DEV_B"
	on b ip link delete port0
	echo "a port that leaves takes no device along"
}

# A namespace ends with programs in it, and its device with it.
namespace_ends() {
	local tries
	next_port
	on b ib_write_bw -d "$DEV_B" -x "$GID_B" -F -D 20 -p "$PORT" >"$WORK/server" 2>&1 &
	wait_listening b "$PORT" $!
	on a ib_write_bw -d "$DEV_A" -x "$GID_A" -F -D 20 -p "$PORT" "$IP_B" >"$WORK/client" 2>&1 &
	for ((tries = 0; tries < 200; tries++)); do
		on a rdma resource show qp link "$DEV_A" | grep -q 'type RC state RTS' && break
		sleep 0.05
	done
	((tries < 200)) || failed "no traffic when the namespaces end"
	ip netns pids a | xargs -r kill -KILL
	ip netns pids b | xargs -r kill -KILL
	wait 2>/dev/null
	rule shared
	sees "" ""
	sees a ""
	sees b ""
	echo "namespaces end, with their devices"
}

before=$(resources)
{ on a rdma link delete "$DEV_A" && on b rdma link delete "$DEV_B"; } || fail "the devices do not go"
rule exclusive
own_devices
others_devices
given_away
netdev_leaves
namespace_ends
add a "$DEV_A"
add b "$DEV_B"
sees "" "$DEV_A $DEV_B"
as_before "$before"
verdict
