# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# lab test: run the suite, or the part of it whose names contain one of the arguments.
# shellcheck shell=bash

. "$LAB/suite.sh"

LIST='' NAMES=()
FILTER=("$@")
for word in "$@"; do
	[[ $word != -* || $word == --list ]] || die "lab test has no option '$word'; see lab help"
done

PASSED=0 FAILED=0 SKIPPED=0 CHILD=

# entry NAME COMMAND...: called by the suite for each test.
entry() {
	local name=$1 log status=0 began=$SECONDS
	shift
	wanted "$name" || return 0
	if [[ $LIST ]]; then
		NAMES+=("$name")
		return
	fi
	log=$LOGS/$(tr -c 'A-Za-z0-9.\n-' _ <<<"$name").log
	setpriv --pdeathsig TERM -- timeout --foreground -k 30 1800 "$@" >"$log" 2>&1 </dev/null &
	CHILD=$!
	wait "$CHILD" || status=$?
	CHILD=
	case $status in
	0)
		PASSED=$((PASSED + 1))
		verdict PASS "$name"
		;;
	77)
		SKIPPED=$((SKIPPED + 1))
		verdict SKIP "$name" "$(tail -n1 "$log")"
		;;
	*)
		FAILED=$((FAILED + 1))
		verdict FAIL "$name" "status $status; log: $log"
		tail -n 40 "$log" | sed 's/^/    /'
		;;
	esac
}

verdict() {
	printf '%s  %5d s  %s%s\n' "$1" "$((SECONDS - began))" "$2" "${3:+  ($3)}"
}

wanted() {
	local word
	((${#FILTER[@]})) || return 0
	for word in "${FILTER[@]}"; do
		[[ $1 != *"$word"* ]] || return 0
	done
	return 1
}

interrupted() {
	trap '' INT TERM HUP
	if [[ $CHILD ]]; then
		kill "$CHILD" 2>/dev/null || :
		wait "$CHILD" || :
	fi
	die "interrupted"
}

cd "$REPO" || exit
if [[ ${1:-} == --list ]]; then
	LIST=1 FILTER=("${@:2}")
	suite
	((${#NAMES[@]} == 0)) || printf '%s\n' "${NAMES[@]}"
	exit
fi
LIST=1 suite
((${#NAMES[@]})) || die "no test has '${FILTER[*]}' in its name; see lab test --list"

LOGS=$CACHE/test/$(date +%m%d-%H%M%S)-$$
mkdir -p "$LOGS"
trap interrupted INT TERM HUP
install_packages
kernel_build lab
kernel_build debug
say "${#NAMES[@]} tests; their logs go to $LOGS"
suite
say "took $((SECONDS / 60)) min $((SECONDS % 60)) s"
echo "$PASSED passed, $FAILED failed, $SKIPPED skipped"
((FAILED == 0))
