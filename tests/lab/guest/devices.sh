# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# The RDMA devices of one type, one on each node.
# shellcheck shell=bash

module_unload() {
	local tries
	[[ $MODULE ]] || return 0
	for ((tries = 0; tries < 50; tries++)); do
		rmmod medge 2>/run/lab/rmmod && return
		sleep 0.1
	done
	tell "complaint: the module does not unload, reference count $(</sys/module/medge/refcnt): $(</run/lab/rmmod)"
}

devices_create() {
	local node
	for node in "${NODE_NAMES[@]}"; do
		ip netns exec "$node" rdma link add "${TYPE}_$node" type "$TYPE" netdev bond0 ||
			fail "rdma link add ${TYPE}_$node type $TYPE netdev bond0 was refused"
		device_wait "${TYPE}_$node"
	done
	for node in "${NODE_NAMES[@]}"; do
		device_names "$node" "${node^^}"
	done
}

# What the script is told of a node, such as DEV_A.
device_names() {
	printf -v "DEV_$2" %s "${TYPE}_$1"
	printf -v "NETDEV_$2" %s bond0
	printf -v "IP_$2" %s "${NODE_IP[$1]}"
	printf -v "IP6_$2" %s "${NODE_IP6[$1]}"
	printf -v "GID_$2" %s "$(device_gid "${TYPE}_$1" "${NODE_IP[$1]}")"
}

device_wait() {
	local tries
	for ((tries = 0; tries < 100; tries++)); do
		[[ $(</sys/class/infiniband/"$1"/ports/1/state) == *ACTIVE* ]] && [[ $(device_gid "$1" "${NODE_IP[${1##*_}]}") ]] &&
			return
		sleep 0.05
	done
	fail "$1 has no active port with a GID after 5 s: $(</sys/class/infiniband/"$1"/ports/1/state)"
}

# The index of the RoCE v2 GID that holds the IPv4 address; iWARP has but one GID.
device_gid() {
	local dir=/sys/class/infiniband/$1/ports/1 want index
	if [[ $TYPE == siw ]]; then
		echo 0
		return
	fi
	# shellcheck disable=SC2046,SC2183 # the four bytes
	want=$(printf '0000:0000:0000:0000:0000:ffff:%02x%02x:%02x%02x' $(tr . ' ' <<<"$2"))
	for ((index = 0; index < 64; index++)); do
		[[ -e $dir/gids/$index ]] || break
		[[ $(<"$dir/gids/$index") == "$want" ]] || continue
		[[ $(cat "$dir/gid_attrs/types/$index" 2>/dev/null) == "RoCE v2" ]] || continue
		echo "$index"
		return
	done
}

devices_delete() {
	local node
	for node in "${NODE_NAMES[@]}"; do
		[[ ! -e /sys/class/infiniband/${TYPE}_$node ]] || rdma link delete "${TYPE}_$node" ||
			tell "complaint: rdma link delete ${TYPE}_$node failed"
	done
}
