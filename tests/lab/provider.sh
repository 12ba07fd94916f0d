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

# provider_show DIR: a copy of PROVIDER in DIR for one guest, which later builds leave alone. Sets PLUGIN_DIRS to the
# directories in it that the guest is to see instead of its own, and PROVIDER_LIBRARIES to that of the library: libibverbs
# looks in the former only, while programs can be told of the latter. Made here, for a debug kernel takes seconds for it.
provider_show() {
	local to=$1 dir plugin
	PLUGIN_DIRS=()
	cp -al "$PROVIDER" "$to"
	PROVIDER_LIBRARIES=$(dirname "$(find "$to" -name libmedge.so.1)")
	while read -r dir; do
		[[ -d /$dir ]] || continue
		# A link among ours leads into the copy; and beside ours is what is there.
		for plugin in "$to/$dir"/*; do
			[[ ! -L $plugin ]] || ln -sfn "$(realpath "$plugin")" "$plugin"
		done
		cp -an "/$dir/." "$to/$dir/"
		PLUGIN_DIRS+=("$dir")
	done < <(find "$to" -type d \( -name libibverbs -o -name libibverbs.d \) -printf '%P\n')
}

# provider_parts BUILD: each component can be installed alone; together they are all there is, and no file is of two.
provider_parts() {
	local build=$1 stage=$1/stage part
	rm -rf "$stage"
	DESTDIR=$stage/all cmake --install "$build" >/dev/null
	for part in provider tools development glue glue-development; do
		DESTDIR=$stage/parts/$part cmake --install "$build" --component "$part" >/dev/null
		[[ -d $stage/parts/$part ]] || die "component $part is empty"
	done
	diff <(cd "$stage/all" && find . ! -type d | sort) <(cd "$stage/parts" && find . -mindepth 2 ! -type d | cut -d/ -f1,3- | sort) >&2 ||
		die "the components are not all that is installed, each file once; see above"
}

# Where this machine's libibverbs lives, relative to /usr.
provider_libdir() {
	local dir
	dir=$(pkg-config --variable=libdir libibverbs)
	echo "${dir#/usr/}"
}
