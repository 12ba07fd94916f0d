# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# What is QEMU's own: consoles on virtio ports, the host's files by 9p, and modules that the kernel asks for.
# shellcheck shell=bash

machine_ready() {
	local cpu
	for cpu in /sys/devices/system/cpu/cpu[1-9]*/online; do
		[[ ! -e $cpu ]] || echo 1 >"$cpu" || fail "$cpu: the CPU does not start"
	done
	mkdir -p /run/lab/bin /run/lab/host
	mount -n -t 9p -o trans=virtio,version=9p2000.L,cache=mmap,msize=262144 host /run/lab/host ||
		fail "the guest cannot mount the host's file system"
	# modprobe looks in /lib/modules, which is the host's.
	printf '#!/bin/sh\nexec /sbin/modprobe -d "%s" "$@"\n' "$MODULES" >/run/lab/bin/modprobe
	chmod +x /run/lab/bin/modprobe
	echo /run/lab/bin/modprobe >/proc/sys/kernel/modprobe
	# The kernel asks for drivers by itself; what udev would ask for, nobody does.
	/run/lab/bin/modprobe -a ib_uverbs rdma_ucm || fail "the kernel's own modules do not load"
}

open_consoles() {
	if [[ $INTERACTIVE ]]; then
		exec </dev/hvc0 >/dev/hvc0 2>&1
		return
	fi
	exec </dev/null >"$(console_port 1)" 2>"$(console_port 2)"
}

# Which number its device has depends on what else there is on the bus.
console_port() {
	local tries port
	for ((tries = 0; tries < 100; tries++)); do
		for port in /dev/vport*p"$1"; do
			if [[ -c $port ]]; then
				echo "$port"
				return
			fi
		done
		sleep 0.05
	done
	tell "complaint: there is no console $1"
	echo /dev/null
}

mount_host() {
	mkdir -p "$1" 2>/dev/null
	mount -n --bind "/run/lab/host$1" "$1" || fail "the guest cannot mount the host's $1"
}

show_cpu_clock() {
	:
}

# It is installed: creating a device loads it, by its alias.
module_load() {
	[[ ! $MODULE ]] || /run/lab/bin/modprobe --show-depends rdma-link-medge 2>/run/lab/modprobe | grep -q '/updates/medge.ko' ||
		fail "no installed module has the alias rdma-link-medge: $(</run/lab/modprobe)"
}
