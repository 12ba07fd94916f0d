# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Systems as users have them: a suite's own, with systemd and its stock kernel.
#
# $CACHE/machine/SUITE/ holds root/, vmlinux and initrd; it counts only once it holds .complete.
# shellcheck shell=bash

MACHINE_SUITES=(bookworm trixie sid)
MACHINE_PACKAGES=(
	build-essential dkms ibverbs-providers ibverbs-utils initramfs-tools iproute2 iputils-ping libibverbs-dev librdmacm-dev
	linux-headers-amd64 linux-image-amd64 perftest pkgconf python3-rich rdma-core systemd-sysv udev
)

# machine_root SUITE: sets MACHINE_DIR, making the system if need be.
machine_root() {
	local suite=$1 new=$CACHE/machine/new-$1 log=$CACHE/log/machine-$1 packages
	MACHINE_DIR=$CACHE/machine/$suite
	packages=$(IFS=, && echo "${MACHINE_PACKAGES[*]}")
	lock "$MACHINE_DIR.lock" "making a machine"
	if [[ ! -e $MACHINE_DIR/.complete || $(<"$MACHINE_DIR/.complete") != "$packages" ]]; then
		rm -rf "$new" "$MACHINE_DIR"
		mkdir -p "$new" "$CACHE/log"
		say "making a machine of $suite, once: some minutes"
		run_logged "$log" "making a machine of $suite" mmdebstrap --variant=important \
			--aptopt='Acquire::Check-Valid-Until "false"' "--include=$packages" \
			"$suite" "$new/root" "deb $(archive_mirror) $suite main"
		stock_vmlinux "$(newest "$new/root/boot/vmlinuz-"*)" "$new/vmlinux"
		cp "$(newest "$new/root/boot/initrd.img-"*)" "$new/initrd"
		echo "$packages" >"$new/.complete"
		mv "$new" "$MACHINE_DIR"
	fi
	unlock
}
