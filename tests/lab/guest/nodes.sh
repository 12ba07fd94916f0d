# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# The nodes: network namespaces a and b, joined by rails that each side's bond0 has as slaves. With c and d, the
# nodes' ends of a rail are the ports of a switch, a bridge outside of all of them.
# shellcheck shell=bash

NODE_NAMES=(a b c d)
declare -A NODE_IP=([a]=10.99.0.1 [b]=10.99.0.2 [c]=10.99.0.3 [d]=10.99.0.4)
declare -A NODE_IP6=([a]=fd00:99::1 [b]=fd00:99::2 [c]=fd00:99::3 [d]=fd00:99::4)
declare -A NODE_BOND_INDEX=([a]=100 [b]=200 [c]=300 [d]=400)

nodes_create() {
	local node rail
	NODE_NAMES=("${NODE_NAMES[@]:0:NODES}")
	ip link set lo up
	for node in "${NODE_NAMES[@]}"; do
		ip netns add "$node" || fail "the guest cannot make network namespaces"
		ip netns exec "$node" sh -c '
			echo 0 >/proc/sys/net/ipv6/conf/all/accept_dad
			echo 0 >/proc/sys/net/ipv6/conf/default/accept_dad
		'
	done
	for ((rail = 0; rail < RAILS; rail++)); do
		rail_create "$rail"
	done
	for node in "${NODE_NAMES[@]}"; do
		node_bond "$node" || fail "the guest cannot bond $RAILS rails in mode $BOND_MODE with MTU $MTU"
	done
	nodes_wait_for_carrier
}

# A node's rails have addresses that say whose they are: 02:00:00:00:0a:<rail>. No interface index occurs on
# both nodes: siw, whose devices every namespace sees, listens by index and would find its port taken.
rail_create() {
	local rail=$1 node
	if ((NODES > 2)); then
		switch_create "$rail"
	else
		wire_create "$rail"
	fi || fail "the guest cannot make rail $rail with MTU $MTU"
	[[ $RATE || $NETEM ]] || return 0
	for node in "${NODE_NAMES[@]}"; do
		rail_shape "$node" "$rail"
	done
}

wire_create() {
	local rail=$1
	ip link add "rail$rail" index "$((101 + rail))" address "02:00:00:00:0a:$(printf %02x "$rail")" mtu "$MTU" netns a \
		type veth peer name "rail$rail" index "$((201 + rail))" address "02:00:00:00:0b:$(printf %02x "$rail")" \
		mtu "$MTU" netns b
}

switch_create() {
	local rail=$1 node
	ip link add "rail$rail" mtu "$MTU" type bridge || return
	for node in "${NODE_NAMES[@]}"; do
		ip link add "rail$rail" index "$((NODE_BOND_INDEX[$node] + 1 + rail))" \
			address "02:00:00:00:0$node:$(printf %02x "$rail")" mtu "$MTU" netns "$node" \
			type veth peer name "rail$rail$node" mtu "$MTU" || return
		ip link set "rail$rail$node" master "rail$rail" up || return
	done
	ip link set "rail$rail" up
}

# netem reorders by letting some frames overtake a delay, so reordering without a delay is given a short one.
rail_shape() {
	local node=$1 rail=$2 spec=$NETEM words
	[[ $spec != *reorder* || $spec == *delay* ]] || spec+=" delay 200us"
	read -ra words <<<"$spec ${RATE:+rate $RATE}"
	tc -n "$node" qdisc add dev "rail$rail" root netem limit 100000 "${words[@]}" ||
		fail "tc does not take 'netem ${words[*]}'"
}

node_bond() {
	local node=$1 rail
	{
		echo "link set lo up"
		echo "link add bond0 index ${NODE_BOND_INDEX[$node]} type bond mode $BOND_MODE miimon 50"
		echo "link set bond0 mtu $MTU"
		for ((rail = 0; rail < RAILS; rail++)); do
			echo "link set rail$rail master bond0"
		done
		echo "link set bond0 up"
		echo "addr add ${NODE_IP[$node]}/24 dev bond0"
		echo "addr add ${NODE_IP6[$node]}/64 dev bond0 nodad"
	} | ip -n "$node" -batch -
}

nodes_wait_for_carrier() {
	local node tries
	for node in "${NODE_NAMES[@]}"; do
		for ((tries = 0; tries < 100; tries++)); do
			[[ $(ip -n "$node" link show bond0) == *LOWER_UP* ]] && continue 2
			sleep 0.05
		done
		fail "bond0 of node $node has no carrier after 5 s"
	done
}
