# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# lab test: run the suite, or the part of it whose names contain one of the arguments.
# shellcheck shell=bash

. "$LAB/suite.sh"

LIST='' LONG='' NAMES=()
# Of one test, in seconds.
LIMIT=1800
JOBS=$(nproc)
while [[ ${1:-} == -* ]]; do
	case $1 in
	--list) LIST=1 ;;
	--long) LONG=1 LIMIT=12000 ;;
	--jobs)
		JOBS=$(number --jobs "${2:-}" 1 64)
		shift
		;;
	*) die "lab test has no option '$1'; see lab help" ;;
	esac
	shift
done
FILTER=("$@")

PASSED=0 FAILED=0 SKIPPED=0
# By process: what runs now.
declare -A RUNNING=() BEGAN=()

# entry NAME COMMAND...: called by the suite for each test. As many run side by side as there are CPUs.
entry() {
	local name=$1
	shift
	wanted "$name" || return 0
	if [[ $LIST ]]; then
		NAMES+=("$name")
		return
	fi
	while ((${#RUNNING[@]} >= JOBS)); do
		entry_end
	done
	setpriv --pdeathsig TERM -- timeout --foreground -k 30 "$LIMIT" "$@" >"$(log_of "$name")" 2>&1 </dev/null &
	RUNNING[$!]=$name BEGAN[$!]=$SECONDS
}

# Nothing else runs beside it.
entry_alone() {
	entries_end
	entry "$@"
	entries_end
}

entries_end() {
	while ((${#RUNNING[@]})); do
		entry_end
	done
}

# Wait until one has ended, and tell how.
entry_end() {
	local pid='' status=0 name log
	wait -n -p pid "${!RUNNING[@]}" || status=$?
	[[ $pid ]] || return 0
	name=${RUNNING[$pid]}
	log=$(log_of "$name")
	unset "RUNNING[$pid]"
	case $status in
	0)
		PASSED=$((PASSED + 1))
		verdict PASS
		;;
	77)
		SKIPPED=$((SKIPPED + 1))
		verdict SKIP "$(tail -n1 "$log")"
		;;
	*)
		FAILED=$((FAILED + 1))
		verdict FAIL "status $status; log: $log"
		tail -n 40 "$log" | sed 's/^/    /'
		;;
	esac
}

# Of the test that entry_end is about.
verdict() {
	printf '%s  %5d s  %s%s\n' "$1" "$((SECONDS - BEGAN[$pid]))" "$name" "${2:+  ($2)}"
}

log_of() {
	printf '%s/%s.log\n' "$LOGS" "$(tr -c 'A-Za-z0-9.\n-' _ <<<"$1")"
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
	if ((${#RUNNING[@]})); then
		kill "${!RUNNING[@]}" 2>/dev/null || :
		wait "${!RUNNING[@]}" || :
	fi
	die "interrupted"
}

cd "$REPO" || exit
if [[ $LIST ]]; then
	suite
	((${#NAMES[@]} == 0)) || printf '%s\n' "${NAMES[@]}"
	exit
fi
LIST=1 suite
((${#NAMES[@]})) || die "no test has '${FILTER[*]}' in its name; see lab test --list"

LOGS=$CACHE/test/$(date +%m%d-%H%M%S)-$$
# boot.sh's once
export LAB_ONCE=$LOGS/built
mkdir -p "$LAB_ONCE"
trap interrupted INT TERM HUP
install_packages
kernel_build lab
kernel_build debug
say "${#NAMES[@]} tests, $JOBS at a time; their logs go to $LOGS"
suite
entries_end
say "took $((SECONDS / 60)) min $((SECONDS % 60)) s"
echo "$PASSED passed, $FAILED failed, $SKIPPED skipped"
((FAILED == 0))
