# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# The provider, built with CMake and installed into the cache, from where the guest mounts it.
# shellcheck shell=bash

# provider_build [CMAKE-OPTION...]: sets PROVIDER to the directory that stands for /.
provider_build() {
	local dir began=$SECONDS log
	[[ -e $REPO/CMakeLists.txt ]] || die "there is no provider to build: $REPO has no CMakeLists.txt"
	dir=$(tree_cache)/provider
	log=$dir/log
	mkdir -p "$dir"
	lock "$dir/lock" "building the provider"
	run_logged "$log.configure" "configuring the provider" env "MEDGE_CACHE=$CACHE" \
		cmake -S "$REPO" -B "$dir/build" -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_INSTALL_PREFIX=/usr \
		-DCMAKE_INSTALL_SYSCONFDIR=/etc -DCMAKE_INSTALL_LIBDIR="$(provider_libdir)" "$@"
	run_logged "$log" "building the provider" env "MEDGE_CACHE=$CACHE" cmake --build "$dir/build" -j "$(nproc)"
	rm -rf "$dir/stage.new"
	run_logged "$log.install" "installing the provider" env "DESTDIR=$dir/stage.new" cmake --install "$dir/build"
	# Other guests may be reading what is there.
	if ! diff -rq "$dir/stage.new" "$dir/stage" >/dev/null 2>&1; then
		rm -rf "$dir/stage"
		mv "$dir/stage.new" "$dir/stage"
	fi
	unlock
	grep -iE -A12 '(warning|error):' "$log" >&2 || :
	PROVIDER=$dir/stage
	say "provider is up to date ($((SECONDS - began)) s)"
}

# Where this machine's libibverbs lives, relative to /usr.
provider_libdir() {
	local dir
	dir=$(pkg-config --variable=libdir libibverbs)
	echo "${dir#/usr/}"
}
