# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Debian's own kernels, unmodified, for QEMU: fetched once, each with a small root of its suite that holds its
# headers and a compiler that they like.
#
# $CACHE/stock/KERNEL-RELEASE/ holds vmlinux, initramfs, modules/ and root/; it counts only once it holds
# .complete. What is there is used whatever its release, without asking the network.
# shellcheck shell=bash

STOCK_KERNELS=(6.1 6.12 7)
# The newest for which Debian's sparse is new enough: with its module, sparse looks at the source.
SPARSE_KERNEL=6.12

is_stock() {
	[[ " ${STOCK_KERNELS[*]} " == *" $1 "* ]]
}

stock_suite() {
	case $1 in
	6.1) echo bookworm ;;
	6.12) echo trixie ;;
	7) echo trixie-backports ;;
	esac
}

# stock_build KERNEL: sets KERNEL_DIR, fetching the kernel if need be.
stock_build() {
	stock_find "$1" && return
	lock "$CACHE/stock/$1.lock" "fetching kernel $1"
	stock_find "$1" || stock_make "$1"
	unlock
}

stock_find() {
	local stamp
	stamp=$(newest "$CACHE/stock/$1-"*/.complete)
	[[ $stamp ]] && KERNEL_DIR=${stamp%/.complete}
}

stock_make() {
	local suite new=$CACHE/stock/new-$1 release
	suite=$(stock_suite "$1")
	rm -rf "$new"
	mkdir -p "$new/modules" "$CACHE/log"
	say "fetching Debian's kernel $1 ($suite) and its headers, once: some minutes"
	root_make "$suite" "$new/root" "linux-headers-amd64/$suite"
	release=$(basename "$new/root/lib/modules/"*)
	stock_unpack "$suite" "$release" "$new"
	stock_vmlinux "$new/vmlinuz" "$new/vmlinux"
	depmod -b "$new/modules" "$release"
	stock_initramfs "$release" "$new"
	echo "$release" >"$new/release"
	KERNEL_DIR=$CACHE/stock/$1-$release
	rm -rf "$KERNEL_DIR"
	mv "$new" "$KERNEL_DIR"
	touch "$KERNEL_DIR/.complete"
}

# The kernel, and those of its modules that a lab of two nodes can have use for. Newer suites split the package
# and have the kernel among its modules.
stock_unpack() {
	local suite=$1 release=$2 new=$3 package deb
	local parts=({arch,crypto,lib,net,fs/9p,fs/configfs,fs/fscache,fs/netfs,fs/overlayfs} drivers/{infiniband,virtio,block,char}
		drivers/net/{bonding,team} 'drivers/net/veth.ko*' 'drivers/net/dummy.ko*')
	for package in image base modules binary; do
		archive_download "$suite" "linux-$package-$release" "$new/download" ||
			[[ $package != image ]] || die "$suite has no linux-image-$release any more; run it again"
	done
	for deb in "$new/download/"*.deb; do
		# Not every package has all of these.
		dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$new/modules" --transform 's,^\./usr/lib/,./lib/,' --wildcards \
			'*/vmlinuz*' "*/modules/$release/modules.*" "${parts[@]/#/*/kernel/}" 2>/dev/null || :
	done
	rm -r "$new/download"
	mv "$new/modules/boot/vmlinuz-$release" "$new/modules/lib/modules/$release/vmlinuz" "$new/" 2>/dev/null || :
	mv "$new/vmlinuz-$release" "$new/vmlinuz" 2>/dev/null || :
	[[ -e $new/vmlinuz ]] || die "no package of $suite holds the kernel $release"
}

# stock_vmlinux VMLINUZ OUT: the ELF file within, which QEMU starts without a BIOS. Where it lies is told by the
# header that Documentation/arch/x86/boot.rst describes.
stock_vmlinux() {
	local file=$1 sectors offset length
	local decompress
	sectors=$(stock_number "$file" $((0x1f1)) 1)
	offset=$(((sectors + 1) * 512 + $(stock_number "$file" $((0x248)) 4)))
	# The last four bytes are the size of what is compressed.
	length=$(($(stock_number "$file" $((0x24c)) 4) - 4))
	case $(od -An -tx1 -j "$offset" -N 4 "$file" | tr -d ' ') in
	fd377a58) decompress=(xz -dc) ;;
	28b52ffd) decompress=(zstd -dcq) ;;
	1f8b*) decompress=(gzip -dc) ;;
	*) die "the lab does not know how $file is compressed" ;;
	esac
	dd "if=$file" "skip=$offset" "count=$length" iflag=skip_bytes,count_bytes bs=1M status=none | "${decompress[@]}" >"$2"
	[[ $(head -c 4 "$2" | tail -c 3) == ELF ]] || die "there is no ELF file in $file"
}

stock_number() {
	od -An "-tu$3" -j "$2" -N "$3" "$1" | tr -d ' '
}

# What mounts the host's file system and starts the lab's init from it.
stock_initramfs() {
	local release=$1 new=$2 tree=$2/tree module path
	mkdir -p "$tree"/{bin,dev,host,modules}
	cp "$(type -P busybox)" "$tree/bin/busybox"
	cp "$LAB/guest/initramfs" "$tree/init"
	for module in virtio_pci virtio_console 9pnet_virtio 9p; do
		modprobe -d "$new/modules" -S "$release" --show-depends "$module"
	done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }' >"$new/order"
	while read -r path; do
		module=$(basename "$path")
		module=${module%.ko*}.ko
		case $path in
		*.xz) xz -dc "$path" ;;
		*.zst) zstd -dcq "$path" ;;
		*) cat "$path" ;;
		esac >"$tree/modules/$module"
		echo "$module" >>"$tree/modules/order"
	done <"$new/order"
	(cd "$tree" && find . | cpio --quiet -o -H newc | gzip -1) >"$new/initramfs"
	rm -r "$tree" "$new/order"
}

# Builds of the module that are kept for each kernel, those that were wanted last.
STOCK_BUILDS=6

# stock_module: sets MODULE to medge.ko, MODULES to a tree in which it is installed beside the kernel's own modules, and
# MODULE_LOG to what the compiler said. It is built from a copy, so that what was built of the same source for another
# clone will do.
stock_module() {
	local builds=$CACHE/module/${KERNEL_DIR##*/} dir release key
	release=$(<"$KERNEL_DIR/release")
	key=$({ module_key && cat "$LAB/stock.sh"; } | sha256sum)
	dir=$builds/${key:0:16}
	MODULE=$dir/source/medge.ko MODULES=$dir/modules MODULE_LOG=$dir/log
	lock "$builds.lock" "building the module"
	if [[ ! -e $dir/complete ]]; then
		rm -rf "$dir"
		mkdir -p "$dir"
		stock_compile "$dir/source" "$MODULE_LOG" "$release"
		cp -al "$KERNEL_DIR/modules" "$MODULES"
		stock_install "$MODULE"
	fi
	touch "$dir/complete"
	# shellcheck disable=SC2012 # their names are the lab's own
	ls -t "$builds"/*/complete | tail -n "+$((STOCK_BUILDS + 1))" | xargs -rn 1 dirname | xargs -r rm -rf
	unlock
	grep -iE -A12 '(warning|error):' "$MODULE_LOG" >&2 || :
}

# stock_install MODULE.ko: into the tree in MODULES, beside the kernel's own modules. Its lists may be links.
stock_install() {
	local release lib
	release=$(<"$KERNEL_DIR/release")
	lib=$MODULES/lib/modules/$release
	mkdir -p "$lib/updates"
	cp "$1" "$lib/updates/"
	rm -f "$lib/modules."{alias,dep,devname,softdep,symbols,weakdep,builtin.alias,builtin}*.bin \
		"$lib/modules."{alias,dep,devname,softdep,symbols,weakdep}
	depmod -b "$MODULES" "$release"
}

# stock_siw: siw, too, is in the tree in MODULES. No kernel of Debian's has it, but the source of each.
stock_siw() {
	local dir=$KERNEL_DIR/siw release
	release=$(<"$KERNEL_DIR/release")
	lock "$dir.lock" "building siw"
	if [[ ! -e $dir/siw.ko ]]; then
		stock_siw_source "$dir"
		root_run "$KERNEL_DIR/root" "$dir" "$dir.log" "building siw.ko for $release" \
			make -C "/lib/modules/$release/build" M=/build CONFIG_RDMA_SIW=m "-j$(nproc)" modules
		[[ -e $dir/siw.ko ]] || die "there is no siw.ko; see $dir.log"
	fi
	[[ -e $MODULES/lib/modules/$release/updates/siw.ko ]] || stock_install "$dir/siw.ko"
	unlock
}

# stock_siw_source DIR: of the kernel's own version, while the archive has it, or else of the newest of its series.
stock_siw_source() {
	local dir=$1 suite version source deb
	suite=$(stock_suite "$KERNEL")
	# shellcheck disable=SC2016 # dpkg's own variables
	version=$(dpkg-query --admindir="$KERNEL_DIR/root/var/lib/dpkg" -W -f '${Version}' "linux-headers-$(<"$KERNEL_DIR/release")")
	source=linux-source-$(cut -d. -f1-2 <<<"$version")
	rm -rf "$dir"
	mkdir "$dir"
	say "fetching Debian's $source for siw, once (about 150 MB)"
	archive_download "$suite" "$source=$version" "$dir" || archive_download "$suite" "$source" "$dir" ||
		die "$suite has no $source"
	deb=$(newest "$dir"/*.deb)
	source_extract "$deb" -C "$dir" --strip-components=5 --wildcards '*/drivers/infiniband/sw/siw/*'
	rm "$deb"
}

# stock_compile DIR LOG RELEASE: a copy of the module's source, built in the kernel's own root.
stock_compile() {
	local dir=$1 log=$2 release=$3 check=()
	rm -rf "$dir"
	cp -r "$REPO/kernel-drivers/medge" "$dir"
	if [[ ${KERNEL_DIR##*/} == "$SPARSE_KERNEL"-* ]]; then
		cp "$(type -P sparse)" "$dir/"
		check=(C=2 CHECK=/build/sparse)
	fi
	root_run "$KERNEL_DIR/root" "$dir" "$log" "building medge.ko for $release" \
		make -C "/lib/modules/$release/build" M=/build "-j$(nproc)" W=1 "${check[@]}" modules
	[[ -e $dir/medge.ko ]] || die "there is no medge.ko; see $log"
}

# As module_check: stock_module always builds from nothing. What sparse says is a warning, too.
stock_check() {
	stock_module
	module_silent "$MODULE_LOG"
	if [[ ${KERNEL_DIR##*/} == "$SPARSE_KERNEL"-* ]]; then
		grep -q '^ *CHECK ' "$MODULE_LOG" || die "sparse has not looked at the source; log: $MODULE_LOG"
	fi
}
