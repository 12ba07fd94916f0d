# The User-Mode Linux kernels: built once for each version, flavour and set of configuration fragments.
#
# $CACHE/kernel/FLAVOUR-VERSION-HASH/ is an object directory; it counts only once it holds .complete.
# A cached kernel with the same fragments is used whatever its 7.2 version, without asking the network.
# shellcheck shell=bash

KERNEL_SOURCE=linux-source-7.2
KERNEL_SUITES=(trixie-backports sid)

# kernel_build FLAVOUR: sets KERNEL_DIR, building the kernel if need be.
kernel_build() {
	local flavour=$1 hash
	hash=$(kernel_fragments "$flavour" | xargs cat | sha256sum | cut -c1-12)
	kernel_find "$flavour" "$hash" && return
	lock "$CACHE/kernel/$flavour-$hash.lock" "building the $flavour kernel"
	kernel_find "$flavour" "$hash" || kernel_make "$flavour" "$hash"
	unlock
}

kernel_fragments() {
	echo "$LAB/kernel/lab.config"
	[[ $1 == lab ]] || echo "$LAB/kernel/$1.config"
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

# kernel_source: sets SOURCE_DIR and SOURCE_VERSION, fetching Debian's kernel source if need be.
kernel_source() {
	local stamp
	mkdir -p "$CACHE/src"
	exec {SOURCE_LOCK}>>"$CACHE/src/lock"
	flock "$SOURCE_LOCK"
	stamp=$(newest "$CACHE/src/$KERNEL_SOURCE-"*/.complete)
	[[ $stamp ]] || kernel_source_fetch
	[[ $stamp ]] || stamp=$(newest "$CACHE/src/$KERNEL_SOURCE-"*/.complete)
	exec {SOURCE_LOCK}>&-
	SOURCE_DIR=${stamp%/.complete}
	SOURCE_VERSION=${SOURCE_DIR##*"$KERNEL_SOURCE-"}
}

kernel_source_fetch() {
	local suite deb version dir download=$CACHE/src/download
	rm -rf "$download"
	say "fetching Debian's $KERNEL_SOURCE (about 150 MB)"
	for suite in "${KERNEL_SUITES[@]}"; do
		archive_download "$suite" "$KERNEL_SOURCE" "$download" && break
	done
	deb=$(newest "$download"/*.deb)
	[[ $deb ]] || die "none of ${KERNEL_SUITES[*]} has $KERNEL_SOURCE; a newer one must be named in $LAB/kernel.sh"
	version=$(dpkg-deb -f "$deb" Version)
	dir=$CACHE/src/$KERNEL_SOURCE-$version
	rm -rf "$dir"
	mkdir -p "$dir"
	say "unpacking $KERNEL_SOURCE $version"
	dpkg-deb --fsys-tarfile "$deb" | tar -xOf - "./usr/src/$KERNEL_SOURCE.tar.xz" |
		tar -xJf - -C "$dir" --strip-components=1
	touch "$dir/.complete"
	rm -rf "$download"
}
