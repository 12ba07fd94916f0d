# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# The Debian packages on a system of their suite: in a copy of a machine's root, that nobody has started.
# shellcheck shell=bash

# install_check SUITE [KERNEL]: those in PACKAGE_DIR are installed, see their kernel's headers come, and are removed again.
# With KERNEL, they see another kernel come, too, which takes as long again.
install_check() {
	machine_root "$1"
	rm -rf "$PACKAGE_DIR"/{tests,installed,headers}
	cp -r "$REPO/debian/tests" "$LAB/guest/installed" "$PACKAGE_DIR/"
	if [[ ${2:-} ]]; then
		machine_headers "$1"
		cp -r "$MACHINE_DIR/headers" "$PACKAGE_DIR/"
	fi
	# shellcheck disable=SC2016 # for the inner shell
	copy_run "$PACKAGE_DIR/install" "installing and removing the packages" bash -c '
		exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
			chroot "$ROOT" bash /mnt/installed'
	rm -rf "$PACKAGE_DIR"/{tests,installed,headers}
}

# autopkgtest_check SUITE: Debian's own runner, of the source package's tests. Its status is 2 if it leaves one out: that of
# dkms asks for a whole system of its own.
autopkgtest_check() {
	local debs
	machine_root "$1"
	mapfile -t debs < <(printf '%s\n' "$PACKAGE_DIR"/*.deb | grep -v -- -dbgsym)
	# shellcheck disable=SC2016 # for the inner shell
	copy_run "$PACKAGE_DIR/autopkgtest" "autopkgtest" bash -c 'autopkgtest "$@" -- chroot "$ROOT" || (($? == 2))' bash \
		"${debs[@]}" "$PACKAGE_DIR"/*.dsc
}

# copy_run LOG WHAT CMD...: run CMD, for which ROOT is a copy of MACHINE_DIR's root, with PACKAGE_DIR at its /mnt.
copy_run() {
	local log=$1 what=$2 dir=$PACKAGE_DIR/copy
	shift 2
	rm -rf "$dir"
	mkdir -p "$dir"/{upper,work,root}
	# shellcheck disable=SC2016 # for the inner shell
	run_logged "$log" "$what" unshare --mount --fork bash -c '
		export ROOT=$1/root
		mount -t overlay -o "lowerdir=$2,upperdir=$1/upper,workdir=$1/work" overlay "$ROOT" &&
			mount --bind "$3" "$ROOT/mnt" && mount -t proc proc "$ROOT/proc" && mount --rbind /dev "$ROOT/dev" &&
			mount -t sysfs -o ro sysfs "$ROOT/sys" || exit
		exec "${@:4}"
	' bash "$dir" "$MACHINE_DIR/root" "$PACKAGE_DIR" "$@"
	rm -rf "$dir"
}
