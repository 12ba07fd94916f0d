# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# What the guest sees of the host's files: all of it, read-only, and a few places to write.
# shellcheck shell=bash

mount_basics() {
	mount -n -t proc proc /proc
	mount -n -t sysfs sys /sys
	mountpoint -q /dev || mount -n -t devtmpfs dev /dev
	mount -n -t tmpfs -o mode=755 run /run
	mount -n -t tmpfs -o mode=1777 tmp /var/tmp
	mkdir -p /dev/pts /dev/shm
	mount -n -t devpts -o ptmxmode=666 devpts /dev/pts
	mount -n -t tmpfs -o mode=1777 shm /dev/shm
	mount -n -t debugfs debugfs /sys/kernel/debug
	mount -n -t tracefs tracefs /sys/kernel/tracing
	mount -n -t configfs configfs /sys/kernel/config 2>/dev/null
	[[ -e /dev/fd ]] || ln -s /proc/self/fd /dev/fd
}

mount_files() {
	local dir
	mkdir -p /run/lab/bin /run/lab/out
	LAB_OUT=$RUN/out
	for dir in /tmp "$DIRECTORY" "$LAB_OUT"; do
		mount_writable "$dir"
	done
	case ${SCRIPT[0]} in
	/run/* | /dev/* | /var/tmp/*) mount_host "$(dirname "${SCRIPT[0]}")" ;;
	esac
	show_cpu_clock
	show_provider
	ln -s "$LAB/guest/on" /run/lab/bin/on
}

# Directories that the guest has its own of stay its own, and the root stays read-only.
mount_writable() {
	case $1/ in
	// | /proc/* | /sys/* | /dev/* | /run/* | /etc/* | /usr/* | /var/tmp/*) ;;
	*) [[ ! -d $1 ]] || mount_host "$1" ;;
	esac
}

# Where libibverbs looks for plugins it finds the provider's, as if a package had put them there.
show_provider() {
	local dir
	for dir in "${PLUGIN_DIRS[@]}"; do
		mount -n --bind "$RUN/provider/$dir" "/$dir"
	done
}
