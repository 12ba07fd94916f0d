# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# The list of all tests: one line each, in the order they begin. Quick ones first.
# shellcheck shell=bash

# entry NAME COMMAND...: COMMAND runs in the repository's root; its status 77 is a skip, whose reason is the
# last line of its output. A name of several lines is that of as many tests, for which it runs lab exec --several.
suite() {
	local name case
	entry shellcheck "$LAB/lab" check shell
	entry spelling "$LAB/lab" check spelling
	entry checkpatch "$LAB/lab" check style
	entry transport make -s -C tests/transport check "BUILD=$(tree_cache)/transport"
	entry transport-fuzz make -s -C tests/transport fuzz "FUZZ_TIME=$([[ $LONG ]] && echo 900 || echo 5)" \
		"BUILD=$(tree_cache)/transport"
	entry provider-warnings "$LAB/lab" check provider
	entry analyze "$LAB/lab" check analyze
	entry coccinelle "$LAB/lab" check coccinelle
	entry provider-in-tree "$LAB/lab" check in-tree
	entry module-warnings-lab "$LAB/lab" check module lab
	for name in debug 6.1 6.12 7; do
		entry "module-warnings-$name" "$LAB/lab" check module "$name"
	done
	while read -r case; do
		entry "lab/$case" "$LAB/selftest.sh" "$case"
	done < <("$LAB/selftest.sh" --list)
	entry bench-page "$LAB/lab" check bench
	entry demo "$LAB/lab" demo
	entry pyverbs-build tests/verbs/get-pyverbs
	[[ ! $LONG ]] || entry pyverbs-build-65 tests/verbs/get-pyverbs 65.0
	entry perftest-build "$LAB/lab" build perftest
	entry cost "$LAB/lab" bench cost
	entry package "$LAB/lab" package
	entry package-rpm "$LAB/lab" package rpm
	if [[ $LONG ]]; then
		for name in "${MACHINE_SUITES[@]}"; do
			entry "package-$name" "$LAB/lab" package --new-kernel "$name"
			entry "autopkgtest-$name" "$LAB/lab" check autopkgtest "$name"
			# Two emulated machines take both CPUs.
			entry_alone "upgrade-$name" "$LAB/lab" check upgrade "$name"
		done
	fi
	# Every run that a script in these directories asks for in its head, one a line:
	#   # lab: --type rxe -- ARGS FOR THE SCRIPT
	#   # lab beside: --rails 2 --mtu 9000 --kernel debug
	#   # lab long: only with lab test --long
	# One boot at a time: what they wait for comes late where two guests share two CPUs, and some measure;
	# but those that only compare and count may run beside each other.
	scripts entry ' beside'
	scripts entry_alone ''
	[[ ! $LONG ]] || scripts entry_alone ' long'
}

# Of one boot: with more, one would go on for long after the others have ended.
BOOT_RUNS=4

# scripts ENTRY KIND: the runs of that kind. Those that ask for the same machine share boots, for to boot a debug kernel,
# and to look for its leaks, takes 20 seconds.
scripts() {
	local machine run last='' runs=()
	while IFS='|' read -r machine run; do
		if [[ $machine != "$last" ]] || ((${#runs[@]} == BOOT_RUNS)); then
			scripts_boot "$1" "${runs[@]}"
			runs=()
		fi
		last=$machine
		runs+=("$run")
	done < <(scripts_runs "$2" | sort -st '|' -k 1,1)
	scripts_boot "$1" "${runs[@]}"
}

# scripts_runs KIND: those that are wanted: OPTIONS OF THE BOOT|SCRIPT OPTIONS -- ARGS.
scripts_runs() {
	local script line run machine
	for script in tests/verbs/*.sh tests/glue/*.sh; do
		[[ -x $script ]] || continue
		run=${script#tests/}
		run=${run%.sh}
		while read -r line; do
			machine=${line%%-- *}
			! wanted "$run${line:+ $line}" || printf '%s|%s\n' "${machine% }" "$run${line:+ $line}"
		done < <(sed -n "s/^# lab$1: *//p" "$script")
	done
}

# scripts_boot ENTRY RUN...: a boot for all of them.
scripts_boot() {
	local entry=$1 run options args command=()
	shift
	(($#)) || return 0
	for run; do
		options=() args=()
		split_line "${run#"${run%% *}"}"
		((${#command[@]} == 0)) || command+=(--next)
		command+=("$REPO/tests/${run%% *}.sh" "${args[@]}")
	done
	(($# == 1)) || options=(--several "${options[@]}")
	"$entry" "$(printf '%s\n' "$@")" "$LAB/lab" exec "${options[@]}" -- "${command[@]}"
}

# split_line LINE: options before --, and args that follow it, for quotes as a shell has them.
split_line() {
	local word
	while read -r word; do
		if [[ ! ${after:-} && $word == -- ]]; then
			local after=1
		elif [[ ${after:-} ]]; then
			args+=("$word")
		else
			options+=("$word")
		fi
	done < <(xargs -rn1 printf '%s\n' <<<"$1")
}
