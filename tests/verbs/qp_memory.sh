#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# What an idle, connected RC QP costs in kernel memory, beside its rings: no more
# than 8 KiB.
#
#   qp_memory.sh [OPTIONS OF qp_memory]
#
# lab beside: --rails 2 --mtu 9000 --timeout 100
set -u
# shellcheck source=tests/verbs/lib.sh
. "$(dirname "$0")/lib.sh"

if [ "$TYPE" = siw ]; then
	echo "siw's QPs are connected by a CM, whose own memory would count"
	exit 77
fi
[ "$TYPE" != medge ] || [ $# != 0 ] || set -- --limit 8192
p=$(program qp_memory) || exit
run qp_memory 60 "$p" "$@"
verdict
