#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# What an idle, connected RC QP costs in kernel memory, beside its rings: no more
# than 8 KiB, however deep its queues, with an SRQ too, and when it has been used.
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
p=$(program qp_memory) || exit
cases=('--depth 4' '--depth 128 --sends 20' '--depth 128 --sge 4 --sends 20' '--depth 512' '--depth 512 --srq --sends 20')
[ $# = 0 ] || cases=("$*")
for options in "${cases[@]}"; do
	[ "$TYPE" != medge ] || [ $# != 0 ] || options+=" --limit 8192"
	# shellcheck disable=SC2086 # several words
	run qp_memory 60 "$p" $options
done
verdict
