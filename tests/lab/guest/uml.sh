# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# What is User-Mode Linux's own: consoles 0 and 1, the host's files by hostfs, a CPU without a clock.
# shellcheck shell=bash

machine_ready() {
	:
}

open_consoles() {
	if [[ $INTERACTIVE ]]; then
		exec </dev/tty0 >/dev/tty0 2>&1
		return
	fi
	exec </dev/null >/dev/tty0 2>/dev/tty1
	stty -F /dev/tty0 -opost
	stty -F /dev/tty1 -opost
}

mount_host() {
	mkdir -p "$1" 2>/dev/null
	mount -n -t hostfs -o "$1" hostfs "$1" || fail "the guest cannot mount the host's $1"
}

# perftest takes the CPU clock from a line that User-Mode Linux does not have, and prints zeros without it.
show_cpu_clock() {
	sed "s/^bogomips/cpu MHz\t\t: $MHZ\n&/" /proc/cpuinfo >/run/lab/cpuinfo
	mount -n --bind /run/lab/cpuinfo /proc/cpuinfo
}

module_load() {
	[[ $MODULE ]] || return 0
	insmod "$MODULE" || fail "the kernel does not take $MODULE"
}
