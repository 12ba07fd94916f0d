# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# lab shell: an interactive shell in the lab.
# shellcheck shell=bash

parse_options "$@"
((${#ARGS[@]} == 0)) || die "lab shell takes no argument '${ARGS[0]}'; lab exec runs scripts"
((${#TYPES[@]} == 1)) || die "lab shell takes one type"
[[ -t 0 && -t 1 ]] || die "lab shell needs a terminal; lab exec runs scripts"
# shellcheck disable=SC2034 # for boot.sh
INTERACTIVE=1
boot_script bash --rcfile "$LAB/guest/shellrc" -i
exit "$STATUS"
