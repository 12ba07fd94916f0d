# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# lab exec: run a script in the lab.
# shellcheck shell=bash

parse_options "$@"
((${#ARGS[@]})) || die "lab exec needs a SCRIPT after its options; see lab help"
script=${ARGS[0]}
if [[ $script != */* ]] && ! type -P "$script" >/dev/null && [[ -f $script ]]; then
	script=./$script
fi
if [[ $script == */* ]]; then
	[[ -f $script ]] || die "there is no script $script"
	[[ -x $script ]] || die "$script is not executable; chmod +x $script"
	script=$(readlink -f "$script")
else
	[[ $script == on ]] || type -P "$script" >/dev/null || die "there is no script or command $script"
fi
boot_script "$script" "${ARGS[@]:1}"
exit "$STATUS"
