# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Systems as users have them: a suite's own, with systemd and its stock kernel.
#
# $CACHE/machine/SUITE/ holds root/, vmlinux and initrd; it counts only once it holds .complete.
# shellcheck shell=bash

MACHINE_SUITES=(bookworm trixie sid)
MACHINE_PACKAGES=(
	build-essential dkms ibverbs-providers ibverbs-utils initramfs-tools iproute2 iputils-ping libibverbs-dev librdmacm-dev
	linux-headers-amd64 linux-image-amd64 openssl perftest pkgconf python3-rich rdma-core systemd-sysv udev
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

# machine_headers SUITE: what a new kernel comes with, in MACHINE_DIR/headers. It is the same release for real time: there
# is always one.
machine_headers() {
	local new=$MACHINE_DIR/new-headers
	lock "$MACHINE_DIR.lock" "fetching headers"
	if [[ ! -d $MACHINE_DIR/headers ]]; then
		rm -rf "$new"
		mkdir -p "$new"/{lists,cache/archives}/partial
		# shellcheck disable=SC2016 # for the inner shell
		root_run "$MACHINE_DIR/root" "$new" "$CACHE/log/headers-$1" "fetching headers of $1" sh -c '
			apt="apt-get -qy -o Dir::State::Lists=/build/lists -o Dir::Cache=/build/cache -o APT::Sandbox::User=root
				-o Acquire::Check-Valid-Until=false"
			$apt update && $apt install --download-only --no-install-recommends linux-headers-rt-amd64'
		rmdir "$MACHINE_DIR/root/build"
		mv "$new/cache/archives" "$MACHINE_DIR/headers"
		rm -rf "$new" "$MACHINE_DIR/headers"/{lock,partial}
	fi
	unlock
}
