# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Roots of Debian suites to build in.
# shellcheck shell=bash

# root_make SUITE DIR PACKAGE...: a minimal SUITE with a compiler and PACKAGEs.
root_make() {
	local suite=$1 dir=$2 mirror packages
	local sources=()
	shift 2
	mirror=$(archive_mirror)
	sources=("deb $mirror ${suite%-backports} main")
	[[ $suite != *-backports ]] || sources+=("deb $mirror $suite main")
	packages=$(IFS=, && echo "kmod,$*")
	# An archive that is a snapshot, or unstable on a quiet day, may have a release file that has expired.
	run_logged "$CACHE/log/root-$suite" "making a root of $suite" \
		mmdebstrap --variant=buildd --aptopt='Acquire::Check-Valid-Until "false"' "--include=$packages" \
		--skip=cleanup/apt/lists "${suite%-backports}" "$dir" "${sources[@]}"
}

# root_run ROOT DIR LOG WHAT CMD...: run CMD in ROOT, with DIR at /build.
root_run() {
	local root=$1 dir=$2 log=$3 what=$4
	shift 4
	mkdir -p "$root/build"
	# shellcheck disable=SC2016 # for the inner shell
	run_logged "$log" "$what" unshare --mount --fork bash -c '
		root=$1 dir=$2
		shift 2
		mount --bind "$dir" "$root/build" && mount -t proc proc "$root/proc" && mount --rbind /dev "$root/dev" || exit
		exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 chroot "$root" env -C /build "$@"
	' bash "$root" "$dir" "$@"
}
