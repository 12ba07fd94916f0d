# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Messages: what the lab is doing, how long it has taken, and the one sentence it ends with.
# shellcheck shell=bash

LAB_FAILED=125

# say TEXT...: one progress line; standard output belongs to the script.
say() {
	printf 'lab: %4d s  %s\n' "$SECONDS" "$*" >&2
}

complain() {
	printf 'lab: %s\n' "$*" >&2
}

die() {
	complain "$*"
	exit "$LAB_FAILED"
}

# run_logged LOG WHAT CMD...: run CMD with its output in LOG, and say every 20 s that it still goes
# on. CMD ends with the lab, whatever ends the lab.
run_logged() {
	local log=$1 what=$2 began=$SECONDS next=$((SECONDS + 20)) pid
	shift 2
	setpriv --pdeathsig TERM -- "$@" >"$log" 2>&1 </dev/null &
	pid=$!
	while kill -0 "$pid" 2>/dev/null; do
		pause 0.2
		if ((SECONDS >= next)); then
			say "$what: $((SECONDS - began)) s, $(wc -l <"$log") lines so far"
			next=$((SECONDS + 20))
		fi
	done
	if ! wait "$pid"; then
		tail -n 25 "$log" >&2
		die "$what failed; the whole log is $log"
	fi
}

# pause SECONDS: sleep without a process, by waiting for a pipe that stays silent.
exec {SILENCE}<> <(:)
pause() {
	read -rt "$1" -u "$SILENCE" || :
}

# lock FILE WHAT: hold FILE's lock until unlock, which is of the lock taken last; WHAT says what another run may be doing.
LOCKS=()
lock() {
	local fd
	mkdir -p "$(dirname "$1")"
	exec {fd}>>"$1"
	if ! flock -n "$fd"; then
		say "waiting for another run that is $2"
		flock "$fd"
	fi
	LOCKS+=("$fd")
}

unlock() {
	local fd=${LOCKS[-1]}
	exec {fd}>&-
	unset 'LOCKS[-1]'
}
