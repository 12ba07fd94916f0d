# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# The provider inside of rdma-core, where it is to live one day: the newest release that Debian has, built with our
# directory among its providers, as it is. Only what medge needs of rdma-core is built, and is kept for the next time.
# shellcheck shell=bash

# What get-private-headers knows of as the newest.
IN_TREE_ABI=65

in_tree_check() {
	local headers dir log stage
	headers=$(package_headers "$IN_TREE_ABI")
	dir=$(tree_cache)/in-tree
	log=$dir/log
	stage=$dir/stage
	mkdir -p "$dir"
	lock "$dir.lock" "building rdma-core"
	in_tree_source "$(readlink -f "$headers/../../source")" "$dir/source"
	[[ -e $dir/build/Makefile ]] || run_logged "$log.configure" "configuring rdma-core" \
		cmake -S "$dir/source" -B "$dir/build" -G 'Unix Makefiles' -DNO_PYVERBS=1 -DENABLE_RESOLVE_NEIGH=0
	# From nothing, so that its log holds every warning.
	rm -rf "$dir/build/providers/medge/CMakeFiles/medge.dir"/*.o "$stage"
	run_logged "$log" "building the provider in rdma-core" cmake --build "$dir/build" -j "$(nproc)" --target medge
	! grep -i 'warning:' "$log" >&2 || die "the compiler warned, see above; log: $log"
	run_logged "$log.install" "installing the provider of rdma-core" \
		env "DESTDIR=$stage" cmake -P "$dir/build/providers/medge/cmake_install.cmake"
	in_tree_installed "$dir" "$stage"
	unlock
}

# in_tree_source RELEASE DIR: the release with medge in it.
in_tree_source() {
	local release=$1 dir=$2
	if [[ ! -e $dir/.complete ]]; then
		rm -rf "$dir"
		cp -a "$release" "$dir"
		sed -i 's,^add_subdirectory(providers/mlx4)$,add_subdirectory(providers/medge)\n&,' "$dir/CMakeLists.txt"
		sed -i 's,^  rdma/mlx4-abi.h$,  rdma/medge-abi.h\n&,' "$dir/kernel-headers/CMakeLists.txt"
		[[ $(grep -l medge "$dir/CMakeLists.txt" "$dir/kernel-headers/CMakeLists.txt" | wc -l) == 2 ]] ||
			die "rdma-core's lists of providers and headers are not what they were"
		touch "$dir/.complete"
	fi
	rm -rf "$dir/providers/medge"
	cp -a "$REPO/providers/medge" "$dir/providers/medge"
	cp -a "$REPO/kernel-drivers/medge/uapi/rdma/medge-abi.h" "$dir/kernel-headers/rdma/medge-abi.h"
}

# What rdma-core makes of it is the library, the plugin, the header and every page.
in_tree_installed() {
	local dir=$1 stage=$2 library page pages
	library=$(find "$stage" -name 'libmedge.so.1.0.*' -type f)
	[[ $library ]] || die "rdma-core installs no libmedge"
	readelf -V --wide "$library" | grep -q "IBVERBS_PRIVATE_$IN_TREE_ABI" || die "$library is not for the private ABI $IN_TREE_ABI"
	[[ $(nm -D --defined-only "$library") == *medgedv_query_device@@MEDGE_1.0* ]] || die "$library exports no direct verbs"
	[[ $(find "$dir/build/lib" "$stage" -name "libmedge-rdmav$IN_TREE_ABI.so" -print -quit) ]] || die "rdma-core makes no plugin"
	[[ $(find "$stage" "$dir/build/include" -name medgedv.h -print -quit) ]] || die "rdma-core does not publish medgedv.h"
	mapfile -t pages < <(cd "$REPO/providers/medge/man" && printf '%s\n' *.[1-9])
	for page in "${pages[@]}"; do
		[[ $(find "$stage" -name "$page*" -print -quit) ]] || die "rdma-core does not install $page"
	done
}
