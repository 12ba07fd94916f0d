# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# lab exec: run a script in the lab, or several.
# shellcheck shell=bash

# find_script NAME: sets SCRIPT to what is run for that, or dies.
find_script() {
	SCRIPT=$1
	if [[ $SCRIPT != */* ]] && ! type -P "$SCRIPT" >/dev/null && [[ -f $SCRIPT ]]; then
		SCRIPT=./$SCRIPT
	fi
	if [[ $SCRIPT == */* ]]; then
		[[ -f $SCRIPT ]] || die "there is no script $SCRIPT"
		[[ -x $SCRIPT ]] || die "$SCRIPT is not executable; chmod +x $SCRIPT"
		SCRIPT=$(readlink -f "$SCRIPT")
	else
		[[ $SCRIPT == on ]] || type -P "$SCRIPT" >/dev/null || die "there is no script or command $SCRIPT"
	fi
}

parse_options "$@"
commands=() first=1
for word in "${ARGS[@]}"; do
	if [[ $first ]]; then
		find_script "$word"
		word=$SCRIPT first=
	elif [[ $SEVERAL && $word == --next ]]; then
		first=1
	fi
	commands+=("$word")
done
[[ ! $first ]] || die "lab exec needs a SCRIPT after its options${SEVERAL:+, and after each --next}; see lab help"
boot_script "${commands[@]}"
exit "$STATUS"
