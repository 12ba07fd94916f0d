#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Take things away under traffic: the link, a rail, the bond, the module. Each
# time nothing hangs or stays behind, and what is put back works again.
#
#   link_churn.sh [ROUNDS]    default 3; SEED=N repeats a run
#
# lab beside: --rails 2 --mtu 9000 --kernel debug -- 1
# lab long: --rails 2 --mtu 9000 --timeout 900 -- 10
set -u
# shellcheck source=tests/verbs/lib.sh
. "$(dirname "$0")/lib.sh"

ROUNDS=${1:-3}
[[ $ROUNDS =~ ^[0-9]+$ ]] || {
	echo "usage: link_churn.sh [ROUNDS]" >&2
	exit 2
}
if [ "$TYPE" != medge ]; then
	echo "this is about medge"
	exit 77
fi

# --- traffic -----------------------------------------------------------------

traffic_start() {
	next_port
	on b ib_write_bw -d "$DEV_B" -x "$GID_B" -F -p "$PORT" -s 65536 -q 2 -b -D 60 >"$WORK/server" 2>&1 &
	TRAFFIC=($!)
	wait_listening b "$PORT" "${TRAFFIC[0]}"
	on a ib_write_bw -d "$DEV_A" -x "$GID_A" -F -p "$PORT" -s 65536 -q 2 -b -D 60 "$IP_B" >"$WORK/client" 2>&1 &
	TRAFFIC+=($!)
	"$PATTERN" --seed "$((SEED + PORT))" --time 60 >"$WORK/pattern" 2>&1 &
	TRAFFIC+=($!)
	wait_connected 8 || failed "the traffic does not start: $(tail -qn 2 "$WORK/client" "$WORK/pattern")"
	pause 100 600
}

traffic_kill() {
	kill -KILL "${TRAFFIC[@]}" 2>/dev/null
	wait "${TRAFFIC[@]}" 2>/dev/null
	TRAFFIC=()
}

# A random time of $1 to $1 + $2 ms.
pause() {
	random_below "$2"
	sleep "$(awk -v ms="$(($1 + REPLY))" 'BEGIN { print ms / 1000 }')"
}

# --- parts ---------------------------------------------------------------------

has_link() {
	[ -e "/sys/class/infiniband/$1" ]
}

links_ready() {
	GID_A=$(gid_index "$DEV_A" "$IP_A") && GID_B=$(gid_index "$DEV_B" "$IP_B")
}

# quick LABEL CMD...: CMD succeeds, in time.
quick() {
	local label=$1
	shift
	timeout -k 5 20 "$@" >"$WORK/quick" 2>&1 && return
	failed "$label: status $?: $*: $(cat "$WORK/quick")"
	return 1
}

# Back to what was there at first, and working.
whole_again() {
	local label=$1
	if ! links_ready; then
		failed "$label: the links do not come back"
		rdma link show
		return 1
	fi
	if ! still_works; then
		failed "$label: no traffic afterwards: $BOTH_STATUS"
		tail -n 5 "$WORK/client" "$WORK/server"
		return 1
	fi
	nothing_left "$BEFORE" "$label" || return
	echo "ok   $label"
}

# refused LABEL CMD...: a status other than 0, and a reason.
refused() {
	local label=$1
	shift
	if timeout -k 5 20 "$@" >"$WORK/refused" 2>&1; then
		failed "$label: accepted: $*"
		return
	fi
	if ! [ -s "$WORK/refused" ]; then
		failed "$label: refused without a word: $*"
		return
	fi
	echo "ok   $label: $(tail -n 1 "$WORK/refused")"
}

# --- cases -----------------------------------------------------------------------

bad_arguments() {
	on a ip link add plain0 type veth peer name plain1
	refused "a netdev that is not there" on a rdma link add x type medge netdev nosuch0
	refused "the loopback device" on a rdma link add x type medge netdev lo
	refused "a type that is not there" on a rdma link add x type medgo netdev plain0
	refused "a netdev that is taken" on a rdma link add x type medge netdev bond0
	refused "a rail that is taken" on a rdma link add x type medge netdev rail0
	refused "a name that is taken" on a rdma link add "$DEV_A" type medge netdev plain0
	refused "a name that is too long" on a rdma link add "$(printf 'x%.0s' {1..100})" type medge netdev plain0
	refused "a link that is not there" on a rdma link delete nosuch
	has_link x && failed "a refused link is there"
	quick "a plain netdev" on a rdma link add plain type medge netdev plain0
	quick "deleting it" on a rdma link delete plain
	quick "adding it again" on a rdma link add plain type medge netdev plain0
	quick "removing its netdev" on a ip link delete plain0
	for _ in {1..50}; do
		has_link plain || break
		sleep 0.1
	done
	has_link plain && failed "the link outlives its netdev"
}

delete_link() {
	local node=a dev=$DEV_A
	random_below 2
	[ "$REPLY" = 0 ] || node=b dev=$DEV_B
	traffic_start
	quick "rdma link delete" on "$node" rdma link delete "$dev"
	has_link "$dev" && failed "the deleted link $dev is there"
	pause 0 300
	traffic_kill
	quick "rdma link add" on "$node" rdma link add "$dev" type medge netdev bond0
	whole_again "link of node $node deleted"
}

rail_down() {
	traffic_start
	quick "rail1 down" on a ip link set rail1 down
	pause 200 300
	quick "rail1 up" on a ip link set rail1 up
	pause 200 300
	traffic_goes_on "rail1 down and up"
	traffic_kill
	whole_again "rail1 down and up"
}

# The pattern checks every byte: it must still be at it.
traffic_goes_on() {
	if ! kill -0 "${TRAFFIC[2]}" 2>/dev/null; then
		failed "$1: verbs_pattern has ended"
		tail -n 5 "$WORK/pattern"
	fi
}

rail_leaves() {
	traffic_start
	quick "rail1 leaves the bond" on a ip link set rail1 nomaster
	pause 100 300
	quick "rail1 goes down" on a ip link set rail1 down
	quick "rail1 joins the bond" on a ip link set rail1 master bond0
	quick "rail1 up" on a ip link set rail1 up
	pause 200 300
	traffic_goes_on "rail1 out of the bond and in again"
	traffic_kill
	whole_again "rail1 out of the bond and in again"
}

# As the lab made it.
bond_create() {
	local rail
	{
		echo "link add bond0 index $1 type bond mode $2 miimon 50"
		echo "link set bond0 mtu $MTU"
		for ((rail = 0; rail < RAILS; rail++)); do
			echo "link set rail$rail down"
			echo "link set rail$rail master bond0"
		done
		echo "link set bond0 up"
		echo "addr add $IP_A/24 dev bond0"
		echo "addr add $IP6_A/64 dev bond0 nodad"
	} | ip -n a -batch -
}

bond_removed() {
	local index mode
	index=$(ip -n a -o link show bond0 | cut -d: -f1)
	mode=$(on a cat /sys/class/net/bond0/bonding/mode | cut -d' ' -f1)
	traffic_start
	quick "ip link delete bond0" on a ip link delete bond0
	for _ in {1..100}; do
		has_link "$DEV_A" || break
		sleep 0.1
	done
	has_link "$DEV_A" && failed "the link outlives its bond"
	traffic_kill
	bond_create "$index" "$mode" || failed "the bond cannot be made again"
	quick "rdma link add" on a rdma link add "$DEV_A" type medge netdev bond0
	whole_again "bond of node a removed"
}

# With programs at it; they lose their devices, and the module goes.
module_removed() {
	local module
	module=${MODULE:-$(plan MODULE)}
	if [ -z "$module" ] || ! [ -e "$module" ]; then
		echo "skip the module's removal: the lab does not say where it is"
		return
	fi
	traffic_start
	quick "rmmod medge" rmmod medge
	[ -e /sys/module/medge ] && failed "the removed module is there"
	pause 0 300
	traffic_kill
	quick "insmod" insmod "$module"
	quick "rdma link add" on a rdma link add "$DEV_A" type medge netdev bond0
	quick "rdma link add" on b rdma link add "$DEV_B" type medge netdev bond0
	whole_again "module removed"
}

choose_seed
PATTERN=$(program verbs_pattern) || exit
BEFORE=$(resources)
TRAFFIC=()
bad_arguments
for ((round = 1; round <= ROUNDS; round++)); do
	# Frames that were cut may wait for others when their rail goes.
	if ((round % 2)); then whole off; else whole on; fi
	delete_link
	if ((RAILS > 1)); then
		rail_down
		rail_leaves
	fi
	bond_removed
	module_removed
done
verdict
