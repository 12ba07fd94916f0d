#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Consumers in the kernel, its own and unmodified: NVMe over RDMA and RNBD, hosts and targets, reliable datagram
# sockets, and the streams of SMC-R. Random data is written to the remote disk, and read again past all caches; what
# the target has is compared, too. RNBD's server registers its memory in pages of 128 KiB, NVMe's host in the kernel's
# own; pages of all sizes, and what is no size of pages, are a module's of our own, fast_pages. Of datagrams, each must
# come once, whole and in order; of streams, all must come back as it was.
#
# On the debug kernel without RDS, for which lockdep has a complaint of its own as of Linux 7.2: rds_trans_sem is taken
# inside the handler mutex of rdma_cm when a connection is accepted, and the other way round when an address is checked.
#
# All but SMC-R live in the first network namespace alone, so both ends meet on one device there: its QPs talk to each
# other. SMC-R is between the nodes.
#
#   kernel_consumers.sh [fast|nvme|rnbd|rds|smc]...    default: all
#
# lab beside: --rails 1 --mtu 9000
# lab beside: --rails 1 --mtu 9000 --kernel debug -- fast nvme rnbd smc
set -u
# shellcheck source=tests/verbs/lib.sh
. "$(dirname "$0")/lib.sh"

IP=10.55.0.1 DEV=${TYPE}_t NQN=medge-test
CONFIG=/sys/kernel/config
MEGABYTES=64 STREAM_BYTES=8000000
[ "${KERNEL:-}" != debug ] || MEGABYTES=8 STREAM_BYTES=1000000

setup_device() {
	ip link add t0 mtu 9000 type veth peer name t1 mtu 9000
	ip link set t0 up
	ip link set t1 up
	ip addr add "$IP/24" dev t0
	rdma link add "$DEV" type "$TYPE" netdev t0 || failed "no device in the first namespace"
	gid_index "$DEV" "$IP" >/dev/null || failed "$DEV has no GID"
}

make_disk() {
	truncate -s "${MEGABYTES}M" "$WORK/disk"
	LOOP=$(losetup -f --show "$WORK/disk")
}

setup_target() {
	local subsystem=$CONFIG/nvmet/subsystems/$NQN port=$CONFIG/nvmet/ports/1
	mountpoint -q "$CONFIG" || mount -t configfs none "$CONFIG"
	make_disk || return
	mkdir "$subsystem" "$subsystem/namespaces/1" "$port" || return
	echo 1 >"$subsystem/attr_allow_any_host"
	echo "$LOOP" >"$subsystem/namespaces/1/device_path"
	echo 1 >"$subsystem/namespaces/1/enable"
	echo rdma >"$port/addr_trtype"
	echo ipv4 >"$port/addr_adrfam"
	echo "$IP" >"$port/addr_traddr"
	echo 4420 >"$port/addr_trsvcid"
	ln -s "$subsystem" "$port/subsystems/$NQN"
}

# The disk, in $DISK, once it is there.
connect_host() {
	local tries
	echo "transport=rdma,traddr=$IP,trsvcid=4420,nqn=$NQN,nr_io_queues=2" >/dev/nvme-fabrics || return
	for ((tries = 0; tries < 200; tries++)); do
		for DISK in /dev/nvme*n1; do
			[ -b "$DISK" ] && return
		done
		sleep 0.05
	done
	return 1
}

# copy SIZE: the whole disk, in requests of this size.
copy() {
	head -c "$((MEGABYTES << 20))" /dev/urandom >"$WORK/data"
	run "write, $1 at a time" 120 dd if="$WORK/data" of="$DISK" bs="$1" oflag=direct status=none
	run "read, $1 at a time" 120 dd if="$DISK" of="$WORK/back" bs="$1" iflag=direct status=none
	run "what came back" 60 cmp "$WORK/data" "$WORK/back"
	sync "$LOOP"
	run "what is on the disk" 60 cmp "$WORK/data" "$WORK/disk"
}

# Through the page cache: large requests, many at a time, of pages that lie scattered.
copy_cached() {
	head -c "$((MEGABYTES << 20))" /dev/urandom >"$WORK/data"
	run "write through the cache" 120 dd if="$WORK/data" of="$DISK" bs=1M conv=fsync status=none
	echo 3 >/proc/sys/vm/drop_caches
	run "read through the cache" 120 cmp "$WORK/data" "$DISK"
}

disconnect() {
	local ctrl
	for ctrl in /sys/class/nvme/nvme*; do
		run "disconnect" 60 sh -c "echo 1 >$ctrl/delete_controller"
	done
	rm -f "$CONFIG/nvmet/ports/1/subsystems/$NQN"
	rmdir "$CONFIG/nvmet/ports/1" "$CONFIG/nvmet/subsystems/$NQN/namespaces/1" \
		"$CONFIG/nvmet/subsystems/$NQN"
	losetup -d "$LOOP"
}

nvme() {
	if setup_target && connect_host; then
		copy 4k
		copy 1M
		copy_cached
	else
		failed "no disk over RDMA"
	fi
	disconnect
}

fast() {
	run "fast_pages" 60 insmod "$(test_module fast_pages)" "device=$DEV" "gid=$(gid_index "$DEV" "$IP")" "seed=$SEED" ||
		dmesg | grep fast_pages
	rmmod fast_pages
}

rnbd() {
	local before
	load drivers/infiniband/ulp/rtrs/rtrs-{core,client,server} drivers/block/rnbd/rnbd-{server,client} || return
	before=$(counter tx_bytes)
	DISK=/dev/rnbd0
	if make_disk && echo "sessname=medge path=ip:$IP device_path=$LOOP access_mode=rw" >/sys/class/rnbd-client/ctl/map_device &&
		[ -b "$DISK" ]; then
		copy 4k
		copy 1M
		copy_cached
		# Each byte came and went three times.
		(($(counter tx_bytes) - before > 5 * (MEGABYTES << 20))) || failed "rnbd: the blocks did not go over $DEV"
	else
		failed "no disk over RTRS"
	fi
	# Unloading unmaps the disk. By hand its session would go behind whoever unmaps, as the server has answered, and
	# rnbd_client does not wait for that as it is unloaded: a warning, and code that runs on where there is none
	# (Linux 7.2; once in some 20).
	run "rmmod" 60 rmmod rnbd_client rnbd_server rtrs_client rtrs_server rtrs_core
	losetup -d "$LOOP"
}

rds() {
	local p before
	before=$(counter tx_bytes)
	p=$(program rds_pattern) || exit
	run "rds_pattern" 60 "$p" "$IP" 2000 60000 "$SEED"
	run "rds_pattern, large" 60 "$p" "$IP" 200 100000 "$SEED"
	# RDS has a loopback of its own, which would prove nothing.
	(($(counter tx_bytes) - before > 5000000)) || failed "rds: the messages did not go over $DEV"
}

# Between the nodes, over the bond: where SMC would look for a device of the bond's first port, it is told which to take.
smc() {
	local tool=$HERE/smc_stream.py server before
	load drivers/dibs/dibs net/smc/smc || return
	run "a name in common" 20 "$tool" name MEDGE
	run "the network of bond a" 20 ip netns exec a "$tool" join NET netdev "$NETDEV_A"
	run "the network of bond b" 20 ip netns exec b "$tool" join NET netdev "$NETDEV_B"
	run "the network of device a" 20 "$tool" join NET device "$DEV_A"
	run "the network of device b" 20 "$tool" join NET device "$DEV_B"
	before=$(hw_counter "$DEV_A" tx_bytes)
	on b "$tool" serve "$IP_B" 7000 >"$WORK/server" 2>&1 &
	server=$!
	wait_listening b 7000 "$server" || failed "no server: $(cat "$WORK/server")"
	run "streams" 60 ip netns exec a "$tool" ask "$IP_B" 7000 "$STREAM_BYTES" "$SEED"
	# SMC is as content with TCP.
	(($(hw_counter "$DEV_A" tx_bytes) - before > 4 * STREAM_BYTES)) || failed "smc: the streams did not go over $DEV_A"
	kill "$server"
	wait "$server" 2>/dev/null
	# Its sockets close behind whoever closed them.
	run "rmmod" 60 sh -c 'until rmmod smc 2>/dev/null; do sleep 0.1; done; rmmod dibs'
}

# A counter of the device.
counter() {
	rdma statistic show link "$DEV/1" | grep -oP " $1 \K[0-9]+"
}

if ! [ -e /dev/nvme-fabrics ] || ! [ -d /proc/sys/net/rds ]; then
	echo "this kernel has no NVMe over RDMA, or no RDS"
	exit 77
fi
choose_seed
setup_device
[ $# != 0 ] || set -- fast nvme rnbd rds smc
for part; do
	case $part in
	fast) fast ;;
	nvme) nvme ;;
	rds) rds ;;
	rnbd) rnbd ;;
	smc) smc ;;
	*)
		echo "usage: kernel_consumers.sh [fast|nvme|rnbd|rds|smc]..." >&2
		exit 2
		;;
	esac
done
run "rdma link delete" 60 rdma link delete "$DEV"
ip link del t0
verdict

