#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Ops, fences, kinds of memory and bad rails as Hypothesis makes them up, judged
# by what was seen of memory, and when.
#
#   verbs_history.sh [SECONDS]    default 20; SEED=N repeats a run
#
# lab beside: --rails 2 --mtu 9000
# lab beside: --rails 3 --mtu 1500 --kernel debug -- 10
set -u
# shellcheck source=tests/verbs/lib.sh
. "$(dirname "$0")/lib.sh"

if [ "$TYPE" != medge ]; then
	echo "fences are medge's own"
	exit 77
fi
# Rails that lose frames lose those that ask for addresses, too.
know_addresses() {
	ip -n a neigh replace "$IP_B" lladdr "$(on b cat "/sys/class/net/$NETDEV_B/address")" dev "$NETDEV_A" nud permanent &&
		ip -n b neigh replace "$IP_A" lladdr "$(on a cat "/sys/class/net/$NETDEV_A/address")" dev "$NETDEV_B" nud permanent
}

# A refusal must not swallow the answers to what was asked before: the asker would wait for ever.
refused_behind_atomics() {
	local i
	impair delay 100us loss 20%
	for ((i = 0; i < 100; i++)); do
		printf 'case 1 0\nop 5 0 0 8 0 1\nop 0 0 0 64 0 1\nop 0 8 0 64 0 1\nrun\n'
	done >"$WORK/cases"
	# shellcheck disable=SC2016 # that shell's arguments
	run "refused behind atomics" 60 sh -c '"$1" <"$2"' sh "$1" "$WORK/cases"
}

choose_seed
p=$(program verbs_history -lmedge) || exit
know_addresses || exit
refused_behind_atomics "$p"
run verbs_history "$((${1:-20} + 60))" /usr/bin/python3 -B "$HERE/verbs_history.py" "$p" \
	--seconds "${1:-20}" --seed "$SEED" || tail -n 60 "$WORK/out"
verdict
