# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# The User-Mode Linux kernels: built once for each version, flavour, and set of fragments and patches.
#
# $CACHE/kernel/FLAVOUR-VERSION-HASH/ is an object directory; it counts only once it holds .complete.
# A cached kernel with the same fragments and patches is used whatever its 7.2 version, without asking the network.
# shellcheck shell=bash

KERNEL_SOURCE=linux-source-7.2
KERNEL_SUITES=(trixie-backports sid)

# kernel_build FLAVOUR: sets KERNEL_DIR, building the kernel if need be.
kernel_build() {
	local flavour=$1 hash
	if is_stock "$flavour"; then
		stock_build "$flavour"
		return
	fi
	hash=$({ kernel_fragments "$flavour" && kernel_patches; } | xargs cat | sha256sum | cut -c1-12)
	kernel_find "$flavour" "$hash" && return
	lock "$CACHE/kernel/$flavour-$hash.lock" "building the $flavour kernel"
	kernel_find "$flavour" "$hash" || kernel_make "$flavour" "$hash"
	unlock
}

kernel_fragments() {
	echo "$LAB/kernel/lab.config"
	[[ $1 == lab ]] || echo "$LAB/kernel/$1.config"
}

kernel_patches() {
	printf '%s\n' "$LAB"/kernel/*.patch
}

kernel_find() {
	local stamp
	stamp=$(newest "$CACHE/kernel/$1-"*"-$2/.complete")
	[[ $stamp ]] && KERNEL_DIR=${stamp%/.complete}
}

newest() {
	local file best=
	for file; do
		[[ -e $file && (! $best || $file -nt $best) ]] && best=$file
	done
	echo "$best"
}

kernel_make() {
	local flavour=$1 hash=$2 fragments began=$SECONDS log dir
	mapfile -t fragments < <(kernel_fragments "$flavour")
	kernel_source
	dir=$CACHE/kernel/$flavour-$SOURCE_VERSION-$hash
	log=$CACHE/log/kernel-$flavour
	mkdir -p "$dir" "$CACHE/log"
	say "building the $flavour kernel $SOURCE_VERSION, once: some minutes on $(nproc) CPUs; log in $log"
	local make=(make -C "$SOURCE_DIR" "O=$dir" ARCH=um -s)
	run_logged "$log.config" "configuring the kernel" "${make[@]}" defconfig
	(cd "$SOURCE_DIR" && scripts/kconfig/merge_config.sh -m -O "$dir" "$dir/.config" "${fragments[@]}") \
		>>"$log.config" 2>&1
	run_logged "$log.config" "configuring the kernel" "${make[@]}" olddefconfig
	kernel_check_config "$dir/.config" "${fragments[@]}"
	run_logged "$log" "building the $flavour kernel" \
		make -C "$SOURCE_DIR" "O=$dir" ARCH=um "-j$(nproc)" linux modules
	touch "$dir/.complete"
	KERNEL_DIR=$dir
	say "built the $flavour kernel in $((SECONDS - began)) s"
}

# kernel_check_config CONFIG FRAGMENT...: every line of the fragments must have survived; of two
# fragments that set one option, the later counts.
kernel_check_config() {
	local config=$1 lost
	shift
	lost=$(cat "$@" | awk -F= '
		FNR == NR && FILENAME != "-" { if (/^CONFIG/) is[$1] = $2; next }
		/^CONFIG/ { want[$1] = $2 }
		END { for (o in want) if ((want[o] == "n" ? "" : want[o]) != is[o]) print o "=" want[o] }
	' "$config" -)
	[[ ! $lost ]] || die "the kernel's configuration did not keep: ${lost//$'\n'/ }"
}

# kernel_source: sets SOURCE_DIR, with our patches, and SOURCE_VERSION, fetching Debian's source if need be.
kernel_source() {
	local deb patches
	mkdir -p "$CACHE/src"
	exec {SOURCE_LOCK}>>"$CACHE/src/lock"
	flock "$SOURCE_LOCK"
	deb=$(newest "$CACHE/src/$KERNEL_SOURCE"_*.deb)
	[[ $deb ]] || kernel_source_fetch
	[[ $deb ]] || deb=$(newest "$CACHE/src/$KERNEL_SOURCE"_*.deb)
	SOURCE_VERSION=$(dpkg-deb -f "$deb" Version)
	patches=$(kernel_patches | xargs cat | sha256sum | cut -c1-12)
	SOURCE_DIR=$CACHE/src/$KERNEL_SOURCE-$SOURCE_VERSION-$patches
	[[ -e $SOURCE_DIR/.complete ]] || kernel_source_unpack "$deb"
	exec {SOURCE_LOCK}>&-
}

kernel_source_fetch() {
	local suite deb download=$CACHE/src/download
	rm -rf "$download"
	say "fetching Debian's $KERNEL_SOURCE (about 150 MB)"
	for suite in "${KERNEL_SUITES[@]}"; do
		archive_download "$suite" "$KERNEL_SOURCE" "$download" && break
	done
	deb=$(newest "$download"/*.deb)
	[[ $deb ]] || die "none of ${KERNEL_SUITES[*]} has $KERNEL_SOURCE; a newer one must be named in $LAB/kernel.sh"
	mv "$deb" "$CACHE/src/"
	rm -rf "$download"
}

kernel_source_unpack() {
	local patch
	say "unpacking $KERNEL_SOURCE $SOURCE_VERSION"
	rm -rf "$SOURCE_DIR"
	mkdir -p "$SOURCE_DIR"
	source_extract "$1" -C "$SOURCE_DIR" --strip-components=1
	while read -r patch; do
		patch -s -p1 -d "$SOURCE_DIR" <"$patch" >&2 || die "$patch does not apply to $KERNEL_SOURCE $SOURCE_VERSION"
	done < <(kernel_patches)
	touch "$SOURCE_DIR/.complete"
}

# source_extract DEB TAR-ARG...: from a package of Debian's that holds a kernel's source.
source_extract() {
	local deb=$1
	shift
	dpkg-deb --fsys-tarfile "$deb" | tar -xOf - "./usr/src/$(dpkg-deb -f "$deb" Package).tar.xz" | tar -xJf - "$@"
}
