#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# What fences are worth: small relaxed writes, each with a fenced flag behind it,
# run at no less than 90 % of their rate without a fence; waiting for each write
# before its flag is posted is seen to cost a multiple.
#
#   fence_bench.sh [OPTIONS OF fence_bench]
#
# lab: --rails 2 --mtu 9000
set -u
# shellcheck source=tests/verbs/lib.sh
. "$(dirname "$0")/lib.sh"

if [ "$TYPE" != medge ]; then
	echo "fences are medge's own"
	exit 77
fi
[ $# != 0 ] || set -- --fenced 90 --drained 50
p=$(program fence_bench -lmedge) || exit
if run fence_bench 60 taskset -c 0 "$p" "$@"; then
	cat "$WORK/out"
fi
verdict
