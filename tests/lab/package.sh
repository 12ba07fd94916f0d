# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Debian packages of this tree, built from a source package in a minimal root of a suite.
# shellcheck shell=bash

PACKAGE_SUITES=(bookworm trixie sid)
# The releases of rdma-core whose private headers the source package brings along, by private ABI.
PACKAGE_ABIS=(34 65)

# package_build SUITE [VERSION]: sets PACKAGE_DIR to where the source package and the packages are, built anew if the tree
# has changed. With VERSION, the same under another number. The directory is ours until it is unlocked, or the lab ends.
package_build() {
	local suite=$1 version=${2:-} root=$CACHE/root/$1 key
	PACKAGE_DIR=$(tree_cache)/package/$suite${version:+-$version}
	lock "$PACKAGE_DIR.lock" "using packages"
	lock "$root.lock" "building packages"
	package_root "$suite"
	key="$(package_tree) $(stat -c %y "$root/.complete")"
	if [[ ! -e $PACKAGE_DIR/.complete || $(<"$PACKAGE_DIR/.complete") != "$key" ]]; then
		rm -rf "$PACKAGE_DIR"
		mkdir -p "$PACKAGE_DIR"
		package_source "$PACKAGE_DIR" "${version:-$(package_version)}"
		root_run "$root" "$PACKAGE_DIR" "$PACKAGE_DIR/log" "building the packages for $suite" bash -c '
			dpkg-source -x *.dsc source && cd source && dpkg-buildpackage -us -uc && rm -rf ../source'
		echo "$key" >"$PACKAGE_DIR/.complete"
	fi
	unlock
}

# The tree as it is committed, and what of rdma-core and perftest it needs, as a source package of format 3.0 (quilt).
package_source() {
	local dir=$1 version=$2 abi
	mkdir "$dir/source"
	git -C "$REPO" archive "$(package_tree)" | tar -x -C "$dir/source"
	sed -i "1s/(.*-/($version-/" "$dir/source/debian/changelog"
	package_tarball "$dir/source" "medge-$version" "$dir/medge_$version.orig.tar.xz" --exclude=./debian
	for abi in "${PACKAGE_ABIS[@]}"; do
		package_component "$abi"
		cp "$COMPONENT" "$dir/medge_$version.orig-rdmacore$abi.tar.xz"
		tar -xJf "$COMPONENT" -C "$dir/source"
	done
	perftest_base
	cp "$PERFTEST_TARBALL" "$dir/medge_$version.orig-perftest.tar.gz"
	mkdir "$dir/source/perftest"
	tar -xf "$PERFTEST_TARBALL" -C "$dir/source/perftest" --strip-components=1
	(cd "$dir" && dpkg-source -b source) >"$dir/source.log" 2>&1 || die "there is no source package; see $dir/source.log"
	rm -rf "$dir/source"
}

package_version() {
	sed -n '1s/.*(\(.*\)-.*/\1/p' "$REPO/debian/changelog"
}

# package_files DIR: those that a user of medge installs, into DIR.
package_files() {
	local file
	mkdir -p "$1"
	for file in "$PACKAGE_DIR"/medge*.deb; do
		[[ $file == *-dbgsym_* ]] || cp "$file" "$1/"
	done
}

# package_component ABI: sets COMPONENT to the tarball rdmacoreABI, which is made once: of rdma-core, its headers as its
# build lays them out, and its licenses. Nothing in them is this machine's own but the size of a word.
package_component() {
	local abi=$1 headers source stage
	headers=$(package_headers "$abi")
	source=$(readlink -f "$headers/../../source")
	stage=$(readlink -f "$headers/../..")/component
	COMPONENT=$stage/rdmacore$abi.tar.xz
	lock "$stage.lock" "packing rdma-core"
	if [[ ! -e $COMPONENT ]]; then
		rm -rf "$stage"
		mkdir -p "$stage/tree/include"
		cp -rL "$headers"/{ccan,config.h,infiniband,kernel-abi,linux,rdma,util} "$stage/tree/include/"
		cp "$source"/COPYING.* "$source"/ccan/LICENSE.* "$stage/tree/"
		sed -i 's/^\(#define SIZEOF_LONG\) .*/\1 __SIZEOF_LONG__/' "$stage/tree/include/config.h"
		package_tarball "$stage/tree" "rdmacore$abi" "$COMPONENT.new"
		mv "$COMPONENT.new" "$COMPONENT"
	fi
	unlock
}

package_date() {
	sed -n 's/^ -- .*>  //p' "$REPO/debian/changelog" | sed -n 1p
}

package_headers() {
	MEDGE_CACHE=$CACHE "$REPO/providers/medge/get-private-headers" --abi "$1" || die "no private headers"
}

# package_tarball_tree FILE: the tree as it is.
package_tarball_tree() {
	local tree
	tree=$(mktemp -d)
	git -C "$REPO" archive "$(package_tree)" | tar -x -C "$tree"
	package_tarball "$tree" "medge-$(package_version)" "$1"
	rm -rf "$tree"
}

# What is in the working tree and not ignored, committed or not.
package_tree() {
	local index
	index=$(mktemp)
	cp "$(git -C "$REPO" rev-parse --git-path index)" "$index"
	GIT_INDEX_FILE=$index git -C "$REPO" add -A
	GIT_INDEX_FILE=$index git -C "$REPO" write-tree
	rm -f "$index"
}

# package_tarball DIR NAME FILE [TAR-OPTION...]: DIR as NAME/, the same bytes each time for the same release.
package_tarball() {
	local dir=$1 name=$2 file=$3
	shift 3
	tar -C "$dir" --sort=name --owner=0 --group=0 --numeric-owner "--mtime=$(package_date)" --transform "s,^\.,$name," \
		"$@" -cf - . | xz -T0 -1 >"$file"
}

# A minimal root of the suite with nothing but the build dependencies.
package_root() {
	local suite=$1 root=$CACHE/root/$1 packages
	packages=$(sed -n '/^Build-Depends:/,/^[A-Z]/{ /^Build-Depends/s/.*: *//; /^[A-Z]/d; s/([^)]*)//; s/:any//; p }' "$REPO/debian/control" |
		tr -d ' \n' | sed 's/debhelper-compat/debhelper/')
	[[ ! -e $root/.complete || $(<"$root/.complete") != "$packages" ]] || return 0
	rm -rf "$root"
	mkdir -p "$CACHE/root" "$CACHE/log"
	root_make "$suite" "$root" "${packages%,}" dpkg-dev lintian
	echo "$packages" >"$root/.complete"
}

# Lintian, of the suite; whatever it says fails, but that it misses a bug number of Debian's: nobody asked there.
package_lint() {
	local suite=$1
	root_run "$CACHE/root/$suite" "$PACKAGE_DIR" "$PACKAGE_DIR/lintian" "lintian" \
		bash -c '
			lintian --fail-on error,warning --allow-root --suppress-tags initial-upload-closes-no-bugs *.changes'
}
