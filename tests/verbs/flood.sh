#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Garbage floods a rail of an established transfer, which keeps at least half
# of its rate: frames that are not medge's, that are nobody's, that somebody
# sends who is not the peer, or who says that he is, and probes.
#
# Flooder, transfer and receiver share the guest's CPUs, and a frame costs the
# flooder more here than on other machines: the flood is a part, a fifth, of what
# the flooder alone can send, and 300,000 frames a second at most. The same flood
# of an EtherType that nobody listens to shows what of it all is medge's.
#
# A host may move the guest's CPUs to where a cache line takes twice as long, in
# the middle of a round, and the transfer then halves with no flood at all: its
# rate is taken on both sides of each flood, and the rounds are an odd number.
#
#   flood.sh [ROUNDS [KIND...]]    default 5, all kinds of tests/verbs/flood.c; SEED=N repeats a run
#
# lab: --rails 2 --mtu 9000 --timeout 120 -- 5 garbage psn
# lab long: --rails 2 --mtu 1500 --timeout 600 -- 9
set -u
# shellcheck source=tests/verbs/lib.sh
. "$(dirname "$0")/lib.sh"

ROUNDS=${1:-5} MOST=300000
KINDS=("${@:2}")
((${#KINDS[@]})) || KINDS=(nobody garbage no-qp bad-peer psn probe)

# flood SECONDS PPS KIND: in $WORK/flood, the frames a second that it sent.
flood() {
	on a "$FLOOD" "$1" "$2" "$3" rail0 "$SEED" "$MAC_B" "$MAC_A" "$QPN" >"$WORK/flood" 2>&1 ||
		failed "flood: $(cat "$WORK/flood")"
}

# What has arrived at b in connections, in bytes.
moved() {
	rdma statistic show link "$DEV_B/1" | grep -o ' rx_bytes [0-9]*' | awk '{ print $2 }'
}

# rate SECONDS: bytes a second of the transfer, in $REPLY.
rate() {
	local from began=$EPOCHREALTIME
	from=$(moved)
	sleep "$1"
	REPLY=$(echo "$from $(moved) $began $EPOCHREALTIME" | awk '{ printf "%.0f", ($2 - $1) / ($4 - $3) }')
}

# measure KIND PPS: to $WORK/KIND, the share that is left of the rate just before and after, that rate, and
# what the flood was.
measure() {
	local before under flood alone
	rate 0.5
	before=$REPLY
	flood 2 "$2" "$1" &
	flood=$!
	sleep 0.3
	rate 1
	under=$REPLY
	wait "$flood"
	sleep 0.2
	rate 0.5
	alone=$(((before + REPLY) / 2))
	echo "$((under * 100 / alone)) $alone $(cat "$WORK/flood")" >>"$WORK/$1"
}

# Of each column.
median() {
	local column
	for column in 1 2 3; do
		cut -d' ' -f "$column" "$WORK/$1" | sort -n | awk '{ v[NR] = $1 } END { printf "%s ", v[int((NR + 1) / 2)] }'
	done
}

# What is counted says that the frames were what they are called.
counted() {
	rdma statistic show link "$DEV_B/1" | grep -qE "\b$2 [1-9]" || failed "$1: nothing was counted as $2"
}

choose_seed
FLOOD=$(program flood) || exit
MAC_A=$(on a cat "/sys/class/net/$NETDEV_A/address")
MAC_B=$(on b cat "/sys/class/net/$NETDEV_B/address")
QPN=1
flood 2 10000000 nobody
pps=$(awk -v most=$MOST '{ n = int($1 / 5); print (n > most ? most : n) }' "$WORK/flood")
echo "the flooder alone sends $(cat "$WORK/flood") frames a second; floods are of $pps"

next_port
on b ib_write_bw -d "$DEV_B" -x "$GID_B" -F -p "$PORT" -s 65536 -D 1000 >"$WORK/server" 2>&1 &
receiver=$!
disown
wait_listening b "$PORT" "$receiver"
on a ib_write_bw -d "$DEV_A" -x "$GID_A" -F -p "$PORT" -s 65536 -D 1000 "$IP_B" >"$WORK/client" 2>&1 &
client=$!
disown
# each device has a QP of the kernel's, and the server's only receives
wait_connected 3 || failed "the transfer does not run: $(tail -n 3 "$WORK/client")"
QPN=$(rdma resource show qp link "$DEV_B" | sed -n 's/.* lqpn \([0-9]*\) rqpn .*/\1/p' | head -n 1)

for ((round = 0; round < ROUNDS; round++)); do
	for kind in "${KINDS[@]}"; do
		measure "$kind" "$pps"
	done
done
for kind in "${KINDS[@]}"; do
	read -r share alone frames < <(median "$kind")
	printf '%-9s %8d frames/s leave %3d %% of %d MB/s\n' "$kind" "$frames" "$share" $((alone / 1000000))
	((share >= 50)) || failed "$kind: the transfer keeps $share % of its rate"
done
for kind in "${KINDS[@]}"; do
	case $kind in
	garbage) counted garbage drop_version ;;
	no-qp) counted no-qp rx_no_qp ;;
	bad-peer) counted bad-peer rx_bad_peer ;;
	psn) counted psn drop_window ;;
	esac
done
kill -0 "$client" 2>/dev/null || failed "the transfer ended: $(tail -n 3 "$WORK/client")"
kill -KILL "$client" "$receiver"
still_works || failed "afterwards, a new connection does not work: $BOTH_STATUS"
verdict
