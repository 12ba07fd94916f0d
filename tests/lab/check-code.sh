# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Lints of all that is in the tree, for lab check.
# shellcheck shell=bash

# check_spelling: codespell, of every file.
check_spelling() {
	tree_files | xargs -0 codespell --config "$LAB/codespell.cfg"
}

# check_style: checkpatch, of the kernel that the lab builds, on all that runs in a kernel.
check_style() {
	local files words
	kernel_source
	mapfile -d '' files < <(tree_files '*.c' '*.h' | grep -zE '^(kernel-drivers|tests/lab/misbehave)/')
	# shellcheck disable=SC2016 # for the inner shell; status 1 is that it has something to say
	words=$(printf '%s\0' "${files[@]}" | xargs -0 -n 8 -P "$(nproc)" bash -c '
		perl "$0" --no-tree --strict --terse --show-types --file "$@" || (($? == 1))' "$SOURCE_DIR/scripts/checkpatch.pl")
	words=$(awk -F'[: ]+' '
		FILENAME != "-" { if (/^[A-Z]/) may[$1, $2] = 1; next }
		/^total: / { next }
		{ file = $1; sub(/.*\//, "", file) }
		!(($4, "") in may) && !(($4, file) in may)
	' "$LAB/checkpatch.ignore" - <<<"$words")
	if [[ $words ]]; then
		echo "$words"
		die "checkpatch is not content, see above"
	fi
	echo "${#files[@]} files"
}

# check_coccinelle: the semantic rules of the kernel that the lab builds, on the module. A module and rules that have been
# found right are not looked at again.
check_coccinelle() {
	local module=$REPO/kernel-drivers/medge wrong=$LAB/coccinelle-wrong.c rules question words
	kernel_source
	# Rules that only rewrite report nothing; and the two in OCaml want its compiler. One is about a battery's driver, the
	# other finds pointers that are compared with 0, as sparse does.
	mapfile -t rules < <(grep -rlE --include='*.cocci' '^virtual( .*)?\breport\b' "$SOURCE_DIR/scripts/coccinelle" |
		xargs grep -L 'script:ocaml' | sort)
	((${#rules[@]})) || die "$SOURCE_DIR has no rules for coccinelle"
	question=$({ spatch --version && cat "${rules[@]}" "$wrong" "$LAB/check-code.sh" && tree_files kernel-drivers/medge |
		sort -z | xargs -0 sha256sum; } | sha256sum)
	question=$CACHE/analyzed/coccinelle-${question%% *}
	if [[ ! -e $question ]]; then
		words=$(coccinelle_words "$wrong" "${rules[@]}")
		cmp -s <(grep -n 'wrong \*/$' "$wrong" | cut -d: -f1) <(cut -d: -f2 <<<"$words" | sort -nu) ||
			die "coccinelle does not find what is wrong in $wrong, and that only: ${words:-nothing}"
		words=$(coccinelle_words "--dir $module" "${rules[@]}")
		if [[ $words ]]; then
			echo "$words"
			die "coccinelle is not content, see above"
		fi
		mkdir -p "${question%/*}"
		touch "$question"
	fi
	echo "${#rules[@]} rules"
}

# coccinelle_words WHERE RULE...: what the rules have to say of it.
coccinelle_words() {
	local where=$1
	shift
	# shellcheck disable=SC2016 # for the inner shell
	printf '%s\0' "$@" | xargs -0 -n 1 -P "$(nproc)" bash -c '
		mapfile -t options < <(sed -n "s|^// *Options: *||p" "$1" | xargs -rn 1)
		spatch -D report --no-show-diff --very-quiet --timeout 200 --cocci-file "$1" "${options[@]}" $0 2>&1 ||
			echo "$1: spatch has ended with status $?"
	' "$where" | grep -v '^warning: line [0-9]*: should .* be a metavariable?$' | grep . || :
}

# tree_files [PATTERN...]: what is in the working tree and not ignored, each name ended by a zero.
tree_files() {
	git -C "$REPO" ls-files -z --cached --others --exclude-standard -- "$@"
}
