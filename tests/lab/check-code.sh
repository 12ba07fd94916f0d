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

# tree_files [PATTERN...]: what is in the working tree and not ignored, each name ended by a zero.
tree_files() {
	git -C "$REPO" ls-files -z --cached --others --exclude-standard -- "$@"
}
