#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# What one may have, and no more: memory of a process (RLIMIT_MEMLOCK), its objects of each kind,
# objects of a control group (rdma), frames that wait for others.
#
# lab beside: --rails 2 --mtu 9000
# lab beside: --rails 2 --mtu 1500 --kernel debug
set -u
# shellcheck source=tests/verbs/lib.sh
. "$(dirname "$0")/lib.sh"

GROUPS_AT=/run/medge-groups OBJECTS=9

# A control group may have $OBJECTS objects of a device: a PD, a CQ, an XRC domain, and QPs.
objects_of_a_group() {
	local group=$GROUPS_AT/few pid tries
	mkdir -p "$GROUPS_AT"
	mount -t cgroup2 none "$GROUPS_AT"
	echo +rdma >"$GROUPS_AT/cgroup.subtree_control"
	mkdir "$group"
	if ! echo "$DEV_A hca_object=$OBJECTS" >"$group/rdma.max"; then
		failed "there is no rdma control group"
		return
	fi
	sh -c 'echo $$ >"$1/cgroup.procs"; shift; exec "$@"' sh "$group" "$LIMITS" objects >"$WORK/group" 2>&1 &
	pid=$!
	for ((tries = 0; tries < 100; tries++)); do
		[ -s "$WORK/group" ] && break
		sleep 0.05
	done
	echo "in the group: $(cat "$WORK/group"); $(cat "$group/rdma.current")"
	grep -qx "$((OBJECTS - 3)) QPs, then: EAGAIN" "$WORK/group" || failed "the group has other limits"
	grep -q "$DEV_A .*hca_object=$OBJECTS\b" "$group/rdma.current" || failed "the group's objects are not counted"
	still_works || failed "beside the group: $BOTH_STATUS"
	{ kill -KILL "$pid" && wait "$pid"; } 2>/dev/null
	! grep -q "hca_object=[1-9]" "$group/rdma.current" || failed "the group still has objects"
	rmdir "$group" && umount "$GROUPS_AT"
}

# QPs, CQs and regions of a process, as the device's files say.
objects_of_a_process() {
	local kind at=/sys/class/infiniband/$DEV_A
	for kind in qp cq mr; do
		[ "$(cat "$at/process_max_$kind")" = max ] || failed "process_max_$kind at first"
		if echo 4294967296 >"$at/process_max_$kind" || echo -1 >"$at/process_max_$kind" ||
			echo many >"$at/process_max_$kind"; then
			failed "process_max_$kind takes anything"
		fi 2>/dev/null
		echo 3 >"$at/process_max_$kind" || failed "process_max_$kind"
		[ "$(cat "$at/process_max_$kind")" = 3 ] || failed "process_max_$kind"
	done
	run "objects of a process" 60 "$LIMITS" quota 3
	cat "$WORK/out"
	for kind in qp cq mr; do
		echo max >"$at/process_max_$kind" || failed "process_max_$kind"
	done
	still_works || failed "after its limits: $BOTH_STATUS"
}

# Frames that come out of order, and may not be held: they are sent again, and all is as it should be.
frames_held() {
	local node dev tries
	for dev in "$DEV_A" "$DEV_B"; do
		echo 0 >"/sys/class/infiniband/$dev/held_max_kib" || failed "$dev: held_max_kib"
	done
	for node in a b; do
		on "$node" tc qdisc replace dev rail0 root netem delay 2ms loss 1% || failed "netem"
	done
	# A slow kernel may need some time until so much is under way.
	for ((tries = 0; tries < 8; tries++)); do
		run "little may be held" 60 "$PATTERN" --seed "$((SEED + tries))" --time 2 --max 1000000 || break
		rdma statistic | grep -o 'rx_held_full [1-9][0-9]*' && break
	done
	((tries < 8)) || failed "no frame was dropped"
	for node in a b; do
		on "$node" tc qdisc del dev rail0 root
	done
	for dev in "$DEV_A" "$DEV_B"; do
		echo 100000 >"/sys/class/infiniband/$dev/held_max_kib"
	done
}

choose_seed
LIMITS=$(program limits) && PATTERN=$(program verbs_pattern) || exit
before=$(resources)
run "memory of a process" 60 "$LIMITS" pinned
cat "$WORK/out"
objects_of_a_process
objects_of_a_group
frames_held
as_before "$before"
verdict
