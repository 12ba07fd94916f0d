#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Frames whose bits are flipped on their way: sealed with CRC32C, or encrypted, they
# are found out and sent again; with the links' own check alone, which no veth
# has, wrong bytes come through. Seals can be switched on and off under traffic.
# What is encrypted says nothing to who listens, who has another secret is not
# talked to, and what is repeated is refused.
#
#   integrity.sh [PART...]    choice good corrupt switch secret wire lossy, default: all; or rekey, which takes long,
#                             or cost, which measures; SEED=N repeats a run
#
# lab beside: --rails 2 --mtu 9000
# lab beside: --rails 2 --mtu 1500 --kernel debug -- secret wire
# lab long: --rails 2 --mtu 1500 --kernel debug
# lab long: --rails 2 --mtu 1500 -- rekey
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

SECRET='what both nodes have in common'

# share SECRET DEVICE...: they have it.
share() {
	local dev
	for dev in "${@:2}"; do
		echo "$1" >"/sys/class/infiniband/$dev/secret" || failed "$dev takes no secret"
	done
}

# seal fcs|crc32c|aead: both nodes.
seal() {
	set_devices integrity "$1"
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
	shows '[fcs] crc32c aead'
	for name in '' none crc32 '[crc32c]' "$(printf '%5000s' crc32c)"; do
		(echo "$name" >"$(file_of "$DEV_A")") 2>/dev/null && failed "'${name:0:20}' is taken for a check"
		shows '[fcs] crc32c aead'
	done
	seal crc32c
	shows 'fcs [crc32c] aead'
	seal fcs
	share '' "$DEV_A"
	(echo aead >"$(file_of "$DEV_A")") 2>/dev/null && failed "frames are encrypted without a secret"
	(echo 'too short' >"/sys/class/infiniband/$DEV_A/secret") 2>/dev/null && failed "nine letters are a secret"
	cat "/sys/class/infiniband/$DEV_A/secret" >/dev/null 2>&1 && failed "the secret can be read"
	share "$SECRET" "$DEV_A"
	seal aead
	shows 'fcs crc32c [aead]'
	(echo >"/sys/class/infiniband/$DEV_A/secret") 2>/dev/null && failed "a secret in use is taken away"
	seal fcs
}

# Whatever is sealed is taken as long as nobody changes it; the pattern also reads what is written meanwhile.
good() {
	local how bad unsealed state
	for how in crc32c aead; do
		bad=$(counted rx_bad_seal) unsealed=$(counted rx_unsealed)
		seal "$how"
		for state in on off; do
			whole "$state"
			run "$how, superframes' cutting left to rails: $state" 120 "$PATTERN" --seed "$((SEED + 1))" --rounds "$ROUNDS"
			run "$how, datagrams" 60 "$UC" "$((SEED + 2))"
		done
		whole on
		((bad == $(counted rx_bad_seal))) || failed "$(($(counted rx_bad_seal) - bad)) good seals are called bad"
		((unsealed == $(counted rx_unsealed))) || failed "frames were not sealed"
		seal fcs
	done
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
	local how bad tries
	know_each_other
	impair corrupt 1%
	for how in crc32c aead; do
		bad=$(counted rx_bad_seal)
		seal "$how"
		run "$how: every byte right in spite of flipped bits" 120 "$PATTERN" --seed "$((SEED + 3))" --rounds "$((2 * ROUNDS))" --qps 4
		bad=$(($(counted rx_bad_seal) - bad))
		echo "$bad frames with flipped bits"
		((bad > ROUNDS / 2)) || failed "only $bad frames were found to be changed"
		seal fcs
	done
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

# From either to either, for 8 s, and until enough has been seen; for a moment, one side does not take what the other sends.
switch() {
	local how pid switches=0 unsealed keys began=$SECONDS
	unsealed=$(counted rx_unsealed) keys=$(counted keys_agreed)
	"$PATTERN" --seed "$((SEED + 20))" --time 100000 >"$WORK/switched" 2>&1 &
	pid=$!
	while kill -0 "$pid" 2>/dev/null && ((SECONDS < began + 60)); do
		((SECONDS < began + 8 || switches < 8 || $(counted keys_agreed) < keys + 4)) || break
		for how in crc32c aead; do
			seal "$how"
			sleep 0.05
			echo fcs >"$(file_of "$DEV_A")"
			sleep 0.02
			seal fcs
			sleep 0.05
			switches=$((switches + 2))
		done
		# Nobody has a key any more.
		share "$SECRET" "$DEV_A" "$DEV_B"
	done
	kill -INT "$pid" 2>/dev/null
	wait "$pid" || failed "switching: $(tail -n 2 "$WORK/switched")"
	echo "$switches changes, $(($(counted keys_agreed) - keys)) keys under traffic: $(tail -n 1 "$WORK/switched")"
	((switches >= 8)) || failed "there were only $switches changes"
	(($(counted rx_unsealed) > unsealed)) || failed "who asks for seals takes frames that have none"
	(($(counted keys_agreed) >= keys + 4)) || failed "there were only $(($(counted keys_agreed) - keys)) keys"
	as_before "$BEFORE"
}

# grew NAME BEFORE WHY: a counter, of both devices, that must have grown.
grew() {
	(($(counted "$1") > $2)) || failed "$3, but $1 has not grown"
}

# refused COUNTER WHY CMD: CMD connects the nodes in vain, and has tried: the counter grows. On a busy machine a
# program may not come so far in the first seconds.
refused() {
	local before limit
	before=$(counted "$1")
	for limit in 4 20 100; do
		"$3" "$limit" && failed "$3 connects nodes, but $2"
		(($(counted "$1") == before)) || return 0
	done
	grew "$1" "$before" "$2"
}

# shellcheck disable=SC2317 # refused calls it
hundred_pings() {
	pingpong "$1" -n 100
}

# With another secret, or none, there is nothing between them; with the same again, there is.
secret() {
	local keys placed
	seal aead
	share 'what only one of them has' "$DEV_B"
	keys=$(counted keys_agreed) placed=$(counted rx_datagrams)
	refused rx_bad_keys "one has another secret" hundred_pings
	refused rx_bad_keys "one has another secret" cm_ping
	((keys == $(counted keys_agreed))) || failed "nodes with different secrets have agreed on keys"
	((placed == $(counted rx_datagrams))) || failed "datagrams came from who has another secret"

	echo fcs >"$(file_of "$DEV_B")"
	share '' "$DEV_B"
	refused rx_unsealed "one has no secret" hundred_pings

	share "$SECRET" "$DEV_B"
	seal aead
	still_works || failed "with one secret again, a connection does not work: $BOTH_STATUS"
	# The CM waits seconds before it says again what was lost.
	cm_ping 100 || failed "nor with the CM: $BOTH_STATUS, $(tail -n 2 "$WORK/client")"
	seal fcs
	as_before "$BEFORE"
}

# listen HOW: somebody does, on a, to a traffic of bytes that are all 0x7b, and repeats it, until there is no more. Sets
# what he has counted.
listen() {
	local pid
	on a "$HERE/secret_wire.py" "$RAILS" 0x7b "$SECRET" >"$WORK/heard" 2>&1 &
	pid=$!
	wait_line "$WORK/heard" ready || failed "nobody listens: $(tail -n 2 "$WORK/heard")"
	seal "$1"
	pingpong 100 -s 60000 -n 60 || failed "$1: with somebody on the wire, a pingpong fails: $BOTH_STATUS"
	pingpong 100 -s 64 -n 400 || failed "$1: with somebody on the wire, a pingpong fails: $BOTH_STATUS"
	kill -TERM "$pid"
	wait "$pid" || failed "who listens: $(tail -n 2 "$WORK/heard")"
	echo "$1: $(tail -n 1 "$WORK/heard")"
	# shellcheck disable=SC2034 # heard, for people
	local -g heard=0 marked=0 other=0 keys=0 keys_wrong=0 replayed=0 forged=0
	# shellcheck source=/dev/null
	. <(tail -n 1 "$WORK/heard")
}

wire() {
	local replays bad tries
	share "$SECRET" "$DEV_A" "$DEV_B"
	listen crc32c
	((marked > 50)) || failed "who listens does not even understand what is not encrypted"
	# Nobody has a key.
	share "$SECRET" "$DEV_A" "$DEV_B"
	replays=$(counted rx_replayed) bad=$(counted rx_bad_seal)
	listen aead
	# The last of them may still be in a queue.
	for ((tries = 0; tries < 40; tries++)); do
		(($(counted rx_replayed) < replays + replayed || $(counted rx_bad_seal) < bad + forged)) || break
		sleep 0.05
	done
	replays=$(($(counted rx_replayed) - replays)) bad=$(($(counted rx_bad_seal) - bad))
	echo "$replays refused as repeated, $bad as forged"
	((marked == 0)) || failed "$marked frames show what they carry"
	((other <= 20)) || failed "$other frames are neither encrypted nor about keys"
	((keys > 0 && keys_wrong == 0)) || failed "of $keys frames about keys, $keys_wrong have no right tag"
	((replayed > 200 && forged > 10)) || failed "too little was repeated"
	((replays >= replayed)) || failed "$replayed frames were repeated, $replays refused"
	((bad >= forged)) || failed "$forged frames were forged, $bad refused"
	seal fcs
	as_before "$BEFORE"
}

# What netem repeats is refused, too, and what it delays is not.
lossy() {
	local replays
	seal aead
	impair delay 1ms reorder 25% loss 2% duplicate 2%
	replays=$(counted rx_replayed)
	run "encrypted, lost, repeated, out of order" 120 "$PATTERN" --seed "$((SEED + 30))" --rounds "$ROUNDS"
	grew rx_replayed "$replays" "frames were repeated"
	repair
	seal fcs
	as_before "$BEFORE"
}

# A key that was used for long enough is replaced, and nobody notices.
rekey() {
	local keys tries
	seal aead
	still_works || failed "a connection does not work: $BOTH_STATUS"
	keys=$(counted keys_agreed)
	for ((tries = 0; tries < 40; tries++)); do
		perftest 60 ib_send_bw -s 1024 -n 20000 || failed "try $tries: $BOTH_STATUS"
		(($(counted keys_agreed) > keys)) && break
	done
	echo "another key after $tries tries"
	grew keys_agreed "$keys" "frames were many"
	seal fcs
	as_before "$BEFORE"
}

# What it takes, in one boot, in turn.
cost() {
	local turn how size
	for turn in 1 2 3; do
		for how in fcs crc32c aead; do
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
# A cipher in C under every sanitizer takes its time.
ROUNDS=20
[ "${KERNEL:-}" != debug ] || ROUNDS=5
share "$SECRET" "$DEV_A" "$DEV_B"
[ $# -gt 0 ] || set -- choice good corrupt switch secret wire lossy
for part; do
	case $part in
	choice) choice ;;
	good) good ;;
	corrupt) corrupt ;;
	switch) switch ;;
	secret) secret ;;
	wire) wire ;;
	lossy) lossy ;;
	rekey) rekey ;;
	cost) cost ;;
	*)
		echo "usage: integrity.sh [choice|good|corrupt|switch|secret|wire|lossy|rekey|cost...]" >&2
		exit 2
		;;
	esac
done
verdict
