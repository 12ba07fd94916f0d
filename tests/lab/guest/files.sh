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
	[[ ! $PROVIDER ]] || show_provider
	ln -s "$LAB/guest/on" /run/lab/bin/on
}

# Directories that the guest has its own of stay its own, and the root stays read-only.
mount_writable() {
	case $1/ in
	// | /proc/* | /sys/* | /dev/* | /run/* | /etc/* | /usr/* | /var/tmp/*) ;;
	*) [[ ! -d $1 ]] || mount_host "$1" ;;
	esac
}

# Install the provider: libibverbs finds it where a package would have put it. The library's own directory is the
# host's and read-only: the script is told where the library is instead.
show_provider() {
	local to=/run/lab/provider dir
	mkdir -p "$to"
	cp -a "$PROVIDER/." "$to/"
	PROVIDER_LIBRARIES=$(dirname "$(find "$to" -name libmedge.so.1)")
	while read -r dir; do
		[[ ! -d /$dir ]] || show_plugins "$to/$dir" "/$dir"
	done < <(find "$to" -type d \( -name libibverbs -o -name libibverbs.d \) -printf '%P\n')
}

# show_plugins COPY DIRECTORY: ours beside what is there. A link among ours leads into the copy.
show_plugins() {
	local plugin
	for plugin in "$1"/*; do
		[[ ! -L $plugin ]] || ln -sfn "$(realpath "$plugin")" "$plugin"
	done
	cp -an "$2/." "$1/"
	mount -n --bind "$1" "$2"
}
