# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# medge.ko, built against the lab's kernel in the cache, beside the tree and not in it.
# shellcheck shell=bash

# module_build: sets MODULE to the module for KERNEL_DIR. Warnings of the compiler are shown.
module_build() {
	local source=$REPO/kernel-drivers/medge began=$SECONDS
	[[ -e $source/Makefile || -e $source/Kbuild ]] || die "there is no module to build: $source has no Makefile"
	if is_stock "$KERNEL"; then
		stock_module
	elif module_is_checked "$(module_key)"; then
		MODULE=$(module_dir)/medge.ko
	else
		rm -f "$(module_dir)/checked"
		module_make "$source" medge
	fi
	say "module for the $KERNEL kernel is up to date ($((SECONDS - began)) s)"
}

# module_make SOURCE NAME [MAKE-ARG...]: builds NAME.ko from SOURCE for KERNEL_DIR, and sets MODULE to it.
module_make() {
	local source=$1 name=$2 dir log
	shift 2
	dir=$(tree_cache)/$name/${KERNEL_DIR##*/}
	log=$dir.log
	mkdir -p "$dir"
	lock "$dir.lock" "building the module"
	run_logged "$log" "building $name.ko" \
		make -C "$KERNEL_DIR" ARCH=um "M=$source" "MO=$dir" "-j$(nproc)" "$@" modules
	unlock
	grep -iE -A12 '(warning|error):' "$log" >&2 || :
	MODULE=$dir/$name.ko
	[[ -e $MODULE ]] || die "the Makefile in $source made no $name.ko; see $log"
}

# test_modules_build: the modules that tests bring, which they find by lib.sh's test_module. Most boots want none, and
# make takes two seconds to see that there is nothing to do.
test_modules_build() {
	local kbuild source name MODULE
	for kbuild in "$REPO"/tests/verbs/*/Kbuild; do
		source=${kbuild%/*} name=$(basename "${kbuild%/*}")
		[[ $(find "$source" "$KERNEL_DIR/.complete" -newer "$(tree_cache)/$name/${KERNEL_DIR##*/}/$name.ko" 2>&1) ]] || continue
		module_make "$source" "$name"
	done
}

# As lab check module: what the kernel's boots then find up to date is built from nothing, so that the log holds every
# warning, unless it was for the same source, in this tree or in another.
module_check() {
	local dir key
	dir=$(module_dir) key=$(module_key)
	module_is_checked "$key" || module_take_over "$key"
	if ! module_is_checked "$key"; then
		lock "$dir.lock" "building the module"
		rm -rf "$dir"
		unlock
		module_build
		module_silent "$dir.log"
		echo "$key" >"$dir/checked"
	fi
}

module_dir() {
	echo "$(tree_cache)/medge/${KERNEL_DIR##*/}"
}

# module_is_checked KEY: is what is there built from nothing, without a warning, from the source of that key?
module_is_checked() {
	local checked
	checked=$(module_dir)/checked
	[[ -e $checked && $(<"$checked") == "$1" ]]
}

# module_take_over KEY: the module of another tree, if it is checked and of that source. A tree that is at work itself just
# now is left alone; if it was before, what is taken has another key.
module_take_over() {
	local key=$1 dir checked other
	dir=$(module_dir)
	for checked in "$CACHE"/tree/*/medge/"${KERNEL_DIR##*/}/checked"; do
		other=${checked%/checked}
		[[ $other != "$dir" && -e $checked && $(<"$checked") == "$key" ]] || continue
		lock "$dir.lock" "building the module"
		rm -rf "$dir"
		mkdir -p "$dir"
		if flock -n "$other.lock" cp "$other/medge.ko" "$checked" "$dir/" 2>/dev/null; then
			unlock
			say "the module is that of another tree with the same source"
			return
		fi
		rm -f "$dir/checked"
		unlock
	done
}

# module_silent LOG: dies if a build warned of more than of a compiler that has been upgraded since the kernel was built.
module_silent() {
	! grep -iE '(warning|error):' "$1" | grep -vq 'warning: the compiler differs' || die "the compiler warned, see above; log: $1"
}

# Of the module's source and the kernel.
module_key() {
	(cd "$REPO/kernel-drivers/medge" && find . -type f \( -name '*.[ch]' -o -name Kbuild -o -name Makefile \) -print0 |
		sort -z | xargs -0 sha256sum) | cat - <(stat -c '%n %y' "$KERNEL_DIR/.complete") | sha256sum
}

# What is built from the tree is cached for each tree, so that two clones do not mix.
tree_cache() {
	echo "$CACHE/tree/$(sha256sum <<<"$REPO" | cut -c1-12)"
}
