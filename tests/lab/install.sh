# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# The Debian packages, installed on a system of their suite and removed again: in a copy of a machine's root, that
# nobody has started.
# shellcheck shell=bash

# install_check SUITE: the packages in PACKAGE_DIR.
install_check() {
	local suite=$1 dir=$PACKAGE_DIR/install
	machine_root "$suite"
	rm -rf "$dir"
	mkdir -p "$dir"/{upper,work,root}
	cp -r "$REPO/debian/tests" "$LAB/guest/installed" "$PACKAGE_DIR/"
	# shellcheck disable=SC2016 # for the inner shell
	run_logged "$dir/log" "installing and removing the packages" unshare --mount --fork bash -c '
		root=$1/root
		mount -t overlay -o "lowerdir=$2,upperdir=$1/upper,workdir=$1/work" overlay "$root" &&
			mount --bind "$3" "$root/mnt" && mount -t proc proc "$root/proc" && mount --rbind /dev "$root/dev" &&
			mount -t sysfs -o ro sysfs "$root/sys" || exit
		exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
			chroot "$root" bash /mnt/installed
	' bash "$dir" "$MACHINE_DIR/root" "$PACKAGE_DIR"
	rm -rf "$dir"/{upper,work,root} "$PACKAGE_DIR"/{tests,installed}
}
