#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# What medge(7) says can be seen: counters of the port and of its rails, the
# standard counters that collectors read, and the tracepoints.
#
# lab beside: --rails 2 --mtu 9000
# lab beside: --rails 2 --mtu 1500 --kernel debug
set -u
# shellcheck source=tests/verbs/lib.sh
. "$(dirname "$0")/lib.sh"

if [ "$TYPE" != medge ]; then
	echo "these are medge's own counters and tracepoints"
	exit 77
fi

TRACE=/sys/kernel/tracing
PORT_A=/sys/class/infiniband/$DEV_A/ports/1
SIZE=65536 COUNT=400

# A counter of `rdma statistic`, or of sysfs; fails if there is none of that name.
statistic() {
	rdma statistic show link "$1/1" | tr ' ' '\n' | grep -A1 -x "$2" | sed -n 2p | grep .
}

standard_counter() {
	cat "$PORT_A/counters/$1"
}

expect() {
	local what=$1
	shift
	if [ "$@" ]; then
		echo "ok   $what: ${*}"
	else
		failed "$what: ${*}"
	fi
}

rail_bytes() {
	local rail
	for ((rail = 0; rail < RAILS; rail++)); do
		statistic "$DEV_A" "rail${rail}_tx_bytes" || failed "rail$rail has no counter"
	done
}

# Sends SIZE * COUNT bytes; CARRIED: what each rail carried.
transfer() {
	local before after rail
	mapfile -t before < <(rail_bytes)
	perftest 60 ib_write_bw -s "$SIZE" -n "$COUNT" || failed "ib_write_bw: $BOTH_STATUS"
	# What sysfs tells may be as old as this.
	sleep 0.05
	mapfile -t after < <(rail_bytes)
	CARRIED=()
	for ((rail = 0; rail < RAILS; rail++)); do
		CARRIED+=($((after[rail] - before[rail])))
	done
}

# CARRIED: did each rail carry half of its share at least?
shared() {
	local carried
	for carried in "${CARRIED[@]}"; do
		[ "$carried" -gt $((SIZE * COUNT / RAILS / 2)) ] || return
	done
}

rails_add_up() {
	local rail sum=0 try
	# A host that stands still while one rail is served makes that rail a slow one, for longer than a transfer takes.
	for try in {1..10}; do
		transfer
		if shared; then
			break
		fi
		echo "     transfer $try was carried like this: ${CARRIED[*]}"
	done
	for ((rail = 0; rail < RAILS; rail++)); do
		expect "rail $rail carries its share" "${CARRIED[rail]}" -gt $((SIZE * COUNT / RAILS / 2))
		expect "rail $rail weighs something" "$(statistic "$DEV_A" "rail${rail}_weight")" -gt 0
		sum=$((sum + CARRIED[rail]))
	done
	expect "rails carry all of it" "$sum" -ge $((SIZE * COUNT))
	expect "and little more" "$sum" -le $((SIZE * COUNT * 12 / 10))
	expect "the port's data counts it in four bytes" "$(standard_counter port_xmit_data)" -ge $((sum / 4))
}

counters() {
	local name
	for name in port_xmit_data port_rcv_data port_xmit_packets port_rcv_packets port_rcv_errors \
		port_xmit_discards unicast_xmit_packets; do
		standard_counter "$name" >/dev/null || failed "no standard counter $name"
	done
	rails_add_up
	expect "frames" "$(standard_counter port_xmit_packets)" -ge "$((COUNT * SIZE / MTU))"
	expect "acks come back" "$(standard_counter port_rcv_packets)" -gt 0
	expect "no errors" "$(standard_counter port_rcv_errors)" -eq 0
	# A rail without a carrier carries nothing, and says so.
	ip -n a link set rail0 down
	expect "a rail that is down weighs nothing" "$(statistic "$DEV_A" rail0_weight)" -eq 0
	ip -n a link set rail0 up
	for _ in {1..50}; do
		[ "$(statistic "$DEV_A" rail0_weight)" = 0 ] || break
		sleep 0.1
	done
	expect "and again when it is up" "$(statistic "$DEV_A" rail0_weight)" -gt 0
	expect "all of them fit a message" "$(rdma statistic show link "$DEV_A/1" | wc -w)" -gt 100
}

# Each tracepoint that the documentation names, and none that it does not.
documented() {
	local name
	for name in "$TRACE"/events/medge/medge_*; do
		name=${name##*/}
		grep -q "$name" "$LAB_REPO/providers/medge/man/medge-statistics.7" || failed "medge-statistics(7) does not name $name"
	done
	for name in $(rdma statistic show link "$DEV_A/1" | tr ' ' '\n' | grep '_' | grep -v -e '^rail' -e "$DEV_A"); do
		grep -q "$name" "$LAB_REPO/providers/medge/man/medge-statistics.7" || failed "medge-statistics(7) does not name $name"
	done
}

traces() {
	local name
	echo 0 >"$TRACE/tracing_on"
	echo 8192 >"$TRACE/buffer_size_kb"
	echo 1 >"$TRACE/events/medge/enable"
	echo 1 >"$TRACE/tracing_on"
	# Frames that overtake others, a SEND that comes before its receive, a refusal, a rail that goes, a DMA engine that
	# comes.
	tc -n a qdisc replace dev rail1 root netem limit 100000 delay 2ms 2ms
	printf 'case 0 0\n%srun\n' "$(for _ in {1..20}; do echo 'op 0 0 0 8000 0 1'; done)
" | "$3" >/dev/null || failed "verbs_history under trace"
	tc -n a qdisc del dev rail1 root
	"$1" --other "$2" >"$WORK/out" 2>&1 || failed "medgedv under trace: $(tail -n 1 "$WORK/out")"
	printf 'case 1 0\nop 0 8 0 64 0 1\nrun\n' | "$3" >/dev/null || failed "verbs_history under trace"
	ip -n a link set rail0 down
	ip -n a link set rail0 up
	insmod "$(test_module soft_dma)" || failed "there is no engine"
	# Whether it is fast enough or not.
	(echo auto >"/sys/class/infiniband/$DEV_A/offload") 2>/dev/null
	echo off >"/sys/class/infiniband/$DEV_A/offload"
	rmmod soft_dma || failed "the engine stays"
	echo 0 >"$TRACE/tracing_on"
	echo 0 >"$TRACE/events/medge/enable"
	for name in "$TRACE"/events/medge/medge_*; do
		name=${name##*/}
		expect "$name" "$(grep -c " $name: " "$TRACE/trace")" -gt 0
		grep -m 1 " $name: " "$TRACE/trace" | sed 's/^.*: medge_/     medge_/'
	done
	echo >"$TRACE/trace"
}

p=$(program medgedv -lmedge) && h=$(program verbs_history -lmedge) || exit
counters
documented
on a rdma link add rxe_b type rxe netdev "$NETDEV_A"
traces "$p" rxe_b "$h"
rdma link delete rxe_b
verdict
