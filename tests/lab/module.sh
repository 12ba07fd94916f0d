# medge.ko, built against the lab's kernel in the cache, beside the tree and not in it.
# shellcheck shell=bash

# module_build: sets MODULE to the module for KERNEL_DIR. Warnings of the compiler are shown.
module_build() {
	local source=$REPO/kernel-drivers/medge dir log began=$SECONDS
	[[ -e $source/Makefile || -e $source/Kbuild ]] || die "there is no module to build: $source has no Makefile"
	dir=$(tree_cache)/module/${KERNEL_DIR##*/}
	log=$dir.log
	mkdir -p "$dir"
	lock "$dir.lock" "building the module"
	run_logged "$log" "building the module" make -C "$KERNEL_DIR" ARCH=um "M=$source" "MO=$dir" "-j$(nproc)" modules
	unlock
	grep -iE -A12 '(warning|error):' "$log" >&2 || :
	MODULE=$dir/medge.ko
	[[ -e $MODULE ]] || die "the module's Makefile made no medge.ko; see $log"
	say "module for the $KERNEL kernel is up to date ($((SECONDS - began)) s)"
}

# What is built from the tree is cached for each tree, so that two clones do not mix.
tree_cache() {
	echo "$CACHE/tree/$(sha256sum <<<"$REPO" | cut -c1-12)"
}
