# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# lab bench: medge, its peers, TCP and the machine's limits, side by side; and what operations cost in instructions.
# shellcheck shell=bash

. "$LAB/bench.sh"
. "$LAB/bench-cost.sh"

case ${1:-} in
cost)
	shift
	bench_cost "$@"
	;;
*)
	bench_speed "$@"
	;;
esac
