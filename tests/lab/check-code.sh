# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Lints of all that is in the tree, for lab check.
# shellcheck shell=bash

# check_spelling: codespell, of every file.
check_spelling() {
	tree_files | xargs -0 codespell --config "$LAB/codespell.cfg"
}

# check_style: checkpatch, of the kernel that the lab builds, on all that runs in a kernel.
check_style() {
	local files
	kernel_source
	mapfile -d '' files < <(tree_files '*.c' '*.h' | grep -zE '^(kernel-drivers|tests/lab/misbehave)/')
	{ cat "$SOURCE_DIR/scripts/checkpatch.pl" "$LAB/checkpatch.ignore" && sha256sum "${files[@]}"; } |
		right_once style style_is_right
	echo "${#files[@]} files"
}

style_is_right() {
	local words
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
}

# check_shell: shellcheck, of every shell script.
check_shell() {
	local file scripts=()
	while IFS= read -rd '' file; do
		[[ $file == *.sh || $file == */shellrc ]] || head -qn1 "$file" | grep -aqE '^#!.*\b(ba)?sh\b' || continue
		scripts+=("$file")
	done < <(tree_files)
	{ shellcheck --version && sha256sum "${scripts[@]}"; } | right_once shell shellcheck -x "${scripts[@]}"
	echo "${#scripts[@]} scripts"
}

# check_coccinelle: the semantic rules of the kernel that the lab builds, on the module.
check_coccinelle() {
	local module=$REPO/kernel-drivers/medge wrong=$LAB/coccinelle-wrong.c rules
	kernel_source
	# Rules that only rewrite report nothing; and the two in OCaml want its compiler. One is about a battery's driver, the
	# other finds pointers that are compared with 0, as sparse does.
	mapfile -t rules < <(grep -rlE --include='*.cocci' '^virtual( .*)?\breport\b' "$SOURCE_DIR/scripts/coccinelle" |
		xargs grep -L 'script:ocaml' | sort)
	((${#rules[@]})) || die "$SOURCE_DIR has no rules for coccinelle"
	{ spatch --version && cat "${rules[@]}" "$wrong" && tree_files kernel-drivers/medge | sort -z | xargs -0 sha256sum; } |
		right_once coccinelle coccinelle_is_right
	echo "${#rules[@]} rules"
}

coccinelle_is_right() {
	local words
	words=$(coccinelle_words "$wrong" "${rules[@]}")
	cmp -s <(grep -n 'wrong \*/$' "$wrong" | cut -d: -f1) <(cut -d: -f2 <<<"$words" | sort -nu) ||
		die "coccinelle does not find what is wrong in $wrong, and that only: ${words:-nothing}"
	words=$(coccinelle_words "--dir $module" "${rules[@]}")
	if [[ $words ]]; then
		echo "$words"
		die "coccinelle is not content, see above"
	fi
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

# right_once NAME COMMAND...: what the command has found right, by this script and all that is on standard input, is not
# looked at again.
right_once() {
	local known
	known=$(cat "$LAB/check-code.sh" - | sha256sum)
	known=$CACHE/analyzed/$1-${known%% *}
	shift
	[[ ! -e $known ]] || return 0
	"$@" </dev/null
	mkdir -p "${known%/*}"
	touch "$known"
}
