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

# entry NAME COMMAND...: called by the suite for each test, or for those that one boot runs, a line each. As many run side by
# side as there are CPUs.
entry() {
	local name=$1
	shift
	wanted "$name" || return 0
	if [[ $LIST ]]; then
		mapfile -tO "${#NAMES[@]}" NAMES <<<"$name"
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
	local pid='' status=0 took tests log
	wait -n -p pid "${!RUNNING[@]}" || status=$?
	[[ $pid ]] || return 0
	took=$((SECONDS - BEGAN[$pid]))
	log=$(log_of "${RUNNING[$pid]}")
	mapfile -t tests <<<"${RUNNING[$pid]}"
	unset "RUNNING[$pid]"
	if ((${#tests[@]} == 1)); then
		verdict "$status" "$took" "${tests[0]}" "$log"
	else
		boot_end "$status" "$took" "$log" "${tests[@]}"
	fi
}

# boot_end STATUS SECONDS LOG TEST...: each has a log of its own, with what the lab says of their boot. One that did not
# come to its end ended as the boot did; and if all is well but the boot, that is one more that failed.
boot_end() {
	local status=$1 took=$2 log=$3 test own number=0 ended seconds well=1
	shift 3
	for test; do
		number=$((number + 1))
		own=$(log_of "$test")
		awk -v number="$number" '
			$1 == ">>>" { of = $2; next }
			$1 == "<<<" { of = ""; next }
			of == "" || of == number
		' "$log" >"$own"
		read -r ended seconds < <(sed -n "s/^<<< $number //p" "$log") || ended=$((status ? status : 126)) seconds=$took
		[[ $ended == 0 || $ended == 77 ]] || well=
		verdict "$ended" "$seconds" "$test" "$own"
	done
	[[ ! $well ]] || ((status == 0 || status == 77)) || verdict "$status" "$took" "the boot of ${*%% *}" "$log"
}

# verdict STATUS SECONDS TEST LOG
verdict() {
	case $1 in
	0)
		PASSED=$((PASSED + 1))
		printf 'PASS  %5d s  %s\n' "$2" "$3"
		;;
	77)
		SKIPPED=$((SKIPPED + 1))
		printf 'SKIP  %5d s  %s  (%s)\n' "$2" "$3" "$(tail -n1 "$4")"
		;;
	*)
		FAILED=$((FAILED + 1))
		printf 'FAIL  %5d s  %s  (status %s; log: %s)\n' "$2" "$3" "$1" "$4"
		tail -n 40 "$4" | sed 's/^/    /'
		;;
	esac
}

log_of() {
	local first=${1%%$'\n'*} boot=
	[[ $1 == "$first" ]] || boot=boot_
	printf '%s/%s.log\n' "$LOGS" "$boot$(tr -c 'A-Za-z0-9.\n-' _ <<<"$first")"
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
