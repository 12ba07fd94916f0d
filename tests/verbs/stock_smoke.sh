#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# On a kernel as Debian ships it: every verb once, over all rails, with every
# byte checked. Emulated, so figures mean nothing here.
#
# lab beside: --kernel 6.1 --timeout 120
# lab beside: --kernel 6.12 --timeout 120
# lab beside: --kernel 7 --timeout 120
set -u
# shellcheck source=tests/verbs/lib.sh
. "$(dirname "$0")/lib.sh"

LIMIT=60

bench() {
	local began=$EPOCHREALTIME
	if perftest "$LIMIT" "$@"; then
		printf '%-46s ok   %6.1f s\n' "$*" "$(since "$began")"
	else
		failed "$*: $BOTH_STATUS"
		tail -n 8 "$WORK/client" "$WORK/server"
	fi
}

rails_carry() {
	local rail packets
	for ((rail = 0; rail < RAILS; rail++)); do
		packets=$(on a cat "/sys/class/net/rail$rail/statistics/tx_packets")
		echo "rail$rail: $packets packets"
		((packets > 100)) || failed "rail$rail of node a carried only $packets packets"
	done
}

choose_seed
uname -r
pattern=$(program verbs_pattern) || exit
bench ib_write_bw -s 65536 -n 100
bench ib_read_bw -s 65536 -n 100
bench ib_send_bw -s 65536 -n 100
bench ib_atomic_bw -n 100
bench ib_write_lat -n 100
run verbs_pattern "$LIMIT" "$pattern" --seed "$SEED" --rounds 10 --qps 2
run verbs_pattern "$LIMIT" "$pattern" --seed "$((SEED + 1))" --rounds 10 --max 200
# A frame's fragments, and what it is copied to, are larger than a page of 4 KiB.
echo 16 >/proc/sys/vm/nr_hugepages
run "verbs_pattern --huge" "$LIMIT" "$pattern" --huge --seed "$((SEED + 2))" --rounds 40
rails_carry
verdict
