#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The schedulers in sysfs: all are listed, the chosen one is in brackets, what is
# none is refused, and one takes over from the other under traffic.
#
# lab: --rails 3 --mtu 9000
set -u
# shellcheck source=tests/verbs/lib.sh
. "$(dirname "$0")/lib.sh"

[ "$TYPE" = medge ] || {
	echo "schedulers are medge's"
	exit 77
}
ALL=(round-robin weighted weighted-dynamic earliest)
FILE=/sys/class/infiniband/$DEV_A/scheduler

shows() {
	local want=" ${ALL[*]} "
	want=${want/" $1 "/" [$1] "}
	[ " $(cat "$FILE") " = "$want" ] || failed "$FILE shows '$(cat "$FILE")', not$want"
}

# So long that its shares are not those of one moment: "earliest" may take a rail
# that stood still for one for slow, and 300 messages last two milliseconds.
SIZE=65536 MESSAGES=5000

# Bytes that each rail has carried.
rails_used() {
	local rail
	for ((rail = 0; rail < RAILS; rail++)); do
		on a cat "/sys/class/net/rail$rail/statistics/tx_bytes"
	done
}

shows earliest
for name in '' none weighted-dynamicc '[weighted]' "$(printf '%5000s' weighted)"; do
	(echo "$name" >"$FILE") 2>/dev/null && failed "'${name:0:20}' is taken for a scheduler"
	shows earliest
done

for name in "${ALL[@]}"; do
	echo "$name" >"$FILE" || failed "$name is refused"
	shows "$name"
	mapfile -t before < <(rails_used)
	perftest 100 ib_write_bw -s "$SIZE" -n "$MESSAGES" || failed "$name: $BOTH_STATUS"
	mapfile -t after < <(rails_used)
	for ((i = 0; i < RAILS; i++)); do
		((after[i] - before[i] > SIZE * MESSAGES / 40)) || failed "$name: rail $i carried $((after[i] - before[i])) bytes"
	done
done

perftest 60 ib_write_bw -s 65536 -D 4 -b -q 4 &
pid=$!
switches=0
while kill -0 "$pid" 2>/dev/null; do
	echo "${ALL[switches++ % 4]}" >"$FILE"
	sleep 0.02
done
wait "$pid" || failed "ib_write_bw fails when schedulers change: $(tail -n 3 "$WORK/client")"
echo "$switches changes under traffic"
((switches >= 20)) || failed "there were only $switches changes"
echo earliest >"$FILE"
verdict
