#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Frames whose bits are flipped on their way: sealed with CRC32C, they are found
# out and sent again; with the links' own check alone, which no veth has, wrong
# bytes come through. Seals can be switched on and off under traffic.
#
#   integrity.sh [PART...]    choice good corrupt switch, default: all; or cost, which measures; SEED=N repeats a run
#
# lab beside: --rails 2 --mtu 9000
# lab beside: --rails 2 --mtu 1500 --kernel debug
set -u
# shellcheck source=tests/verbs/lib.sh
. "$(dirname "$0")/lib.sh"

[ "$TYPE" = medge ] || {
	echo "seals are medge's"
	exit 77
}

file_of() {
	echo "/sys/class/infiniband/$1/integrity"
}

# seal fcs|crc32c: both nodes.
seal() {
	local dev
	for dev in "$DEV_A" "$DEV_B"; do
		echo "$1" >"$(file_of "$dev")" || failed "$1 is refused"
	done
}

shows() {
	local file
	file=$(file_of "$DEV_A")
	[ "$(cat "$file")" = "$1" ] || failed "$file shows '$(cat "$file")', not $1"
}

# counted NAME: of both devices.
counted() {
	echo $(($(hw_counter "$DEV_A" "$1") + $(hw_counter "$DEV_B" "$1")))
}

choice() {
	local name
	shows '[fcs] crc32c'
	for name in '' none crc32 '[crc32c]' "$(printf '%5000s' crc32c)"; do
		(echo "$name" >"$(file_of "$DEV_A")") 2>/dev/null && failed "'${name:0:20}' is taken for a check"
		shows '[fcs] crc32c'
	done
	seal crc32c
	shows 'fcs [crc32c]'
	seal fcs
}

# Superframes are cut where the rail does not take them whole.
whole() {
	local node rail
	for node in a b; do
		for ((rail = 0; rail < RAILS; rail++)); do
			on "$node" ethtool -K "rail$rail" tx-gso-list "$1" || failed "ethtool: tx-gso-list $1"
		done
	done
}

# Whatever is sealed is taken as long as nobody changes it; the pattern also reads what is written meanwhile.
good() {
	local bad unsealed state
	bad=$(counted rx_bad_seal) unsealed=$(counted rx_unsealed)
	seal crc32c
	for state in on off; do
		whole "$state"
		run "sealed, superframes' cutting left to rails: $state" 120 "$PATTERN" --seed "$((SEED + 1))" --rounds 40
		run "sealed datagrams" 60 "$UC" "$((SEED + 2))"
	done
	whole on
	((bad == $(counted rx_bad_seal))) || failed "$(($(counted rx_bad_seal) - bad)) good seals are called bad"
	((unsealed == $(counted rx_unsealed))) || failed "frames were not sealed"
	seal fcs
}

# The wrong address in a changed ARP would say nothing about seals.
know_each_other() {
	local mac
	mac=$(on b cat "/sys/class/net/$NETDEV_B/address")
	on a ip neigh replace "$IP_B" lladdr "$mac" dev "$NETDEV_A" nud permanent
	mac=$(on a cat "/sys/class/net/$NETDEV_A/address")
	on b ip neigh replace "$IP_A" lladdr "$mac" dev "$NETDEV_B" nud permanent
}

corrupt() {
	local bad tries
	know_each_other
	impair corrupt 1%
	bad=$(counted rx_bad_seal)
	seal crc32c
	run "every byte right in spite of flipped bits" 120 "$PATTERN" --seed "$((SEED + 3))" --rounds 60 --qps 4
	bad=$(($(counted rx_bad_seal) - bad))
	echo "$bad frames with flipped bits"
	((bad > 20)) || failed "only $bad frames were found to be changed"
	seal fcs
	# A flipped bit may as well end the connection.
	for ((tries = 0; tries < 10; tries++)); do
		timeout -k 5 60 "$PATTERN" --seed "$((SEED + 4 + tries))" --rounds 60 --no-sends >"$WORK/out" 2>&1
		grep -q 'bytes are wrong' "$WORK/out" && break
	done
	sed -n 's/^.*\(target of .* are wrong.*\)/without a seal: \1/p' "$WORK/out"
	grep -q 'bytes are wrong' "$WORK/out" || failed "without a seal, flipped bits change nothing: $(tail -n 1 "$WORK/out")"
	repair
	as_before "$BEFORE"
}

# From either to either; for a moment, one side does not take what the other sends.
switch() {
	local pid switches=0 unsealed
	unsealed=$(counted rx_unsealed)
	"$PATTERN" --seed "$((SEED + 20))" --time 8 >"$WORK/switched" 2>&1 &
	pid=$!
	while kill -0 "$pid" 2>/dev/null; do
		seal crc32c
		sleep 0.05
		echo fcs >"$(file_of "$DEV_A")"
		sleep 0.02
		seal fcs
		sleep 0.05
		switches=$((switches + 2))
	done
	wait "$pid" || failed "switching: $(tail -n 2 "$WORK/switched")"
	echo "$switches changes under traffic: $(tail -n 1 "$WORK/switched")"
	((switches >= 8)) || failed "there were only $switches changes"
	(($(counted rx_unsealed) > unsealed)) || failed "who asks for seals takes frames that have none"
	as_before "$BEFORE"
}

# What it takes, in one boot, in turn.
cost() {
	local turn how size
	for turn in 1 2 3; do
		for how in fcs crc32c; do
			seal "$how"
			for size in 64 1048576; do
				perftest 60 ib_write_bw -s "$size" -D 4 -q 1 || failed "$how, $size bytes: $BOTH_STATUS"
				printf '%d %-7s %s\n' "$turn" "$how" "$(perftest_rows | tail -n 1 | tr -s ' ')"
			done
		done
	done
	seal fcs
}

choose_seed
PATTERN=$(program verbs_pattern) && UC=$(program verbs_uc) || exit
BEFORE=$(resources)
[ $# -gt 0 ] || set -- choice good corrupt switch
for part; do
	case $part in
	choice) choice ;;
	good) good ;;
	corrupt) corrupt ;;
	switch) switch ;;
	cost) cost ;;
	*)
		echo "usage: integrity.sh [choice|good|corrupt|switch|cost...]" >&2
		exit 2
		;;
	esac
done
verdict
