#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The least speed medge may have, beside its peers in the same boot: ib_write_bw
# of 64 KiB and 1 MiB at least 4 times siw's and 10 times rxe's, ib_write_lat no
# worse than siw's. The three take turns on the same ports, and the medians count.
# And 64 QPs of 4 KiB do at least half as much as one: where the host's CPUs may
# halt, system calls are dear, and streams on many QPs hard to see.
#
# All is measured once more if something is below its floor.
#
# Each has the ports for itself in its turn: librdmacm, without which nothing
# connects over siw, takes the first device that has the address, and would
# measure another one.
#
#   speed_floor.sh [RUNS]    default 5
#
# lab: --rails 2 --mtu 9000 -- 3
#
set -u
# shellcheck source=tests/verbs/lib.sh
. "$(dirname "$0")/lib.sh"

RUNS=${1:-5}
[[ $RUNS =~ ^[0-9]+$ ]] || {
	echo "usage: speed_floor.sh [RUNS]" >&2
	exit 2
}
if [ "$TYPE" != medge ]; then
	echo "the comparison is made in a boot of --type medge"
	exit 77
fi

RESULTS=${LAB_OUT:-$WORK}/speed_floor

# use TYPE: its devices, named as the lab names them, and no others.
use() {
	local dev node netdev
	for dev in "$DEV_A" "$DEV_B"; do
		rdma link delete "$dev" || return
	done
	TYPE=$1 DEV_A=$1_a DEV_B=$1_b GID_A=0 GID_B=0
	for node in a b; do
		netdev=NETDEV_${node^^}
		on "$node" rdma link add "$1_$node" type "$1" netdev "${!netdev}" || return
	done
	[ "$TYPE" = siw ] && return
	GID_A=$(gid_index "$DEV_A" "$IP_A") && GID_B=$(gid_index "$DEV_B" "$IP_B")
}

# Iterations that take each of them some tenths of a second.
iterations() {
	case $TYPE:$1 in
	medge:65536) echo 16000 ;;
	medge:1048576) echo 1500 ;;
	siw:65536) echo 3000 ;;
	siw:1048576) echo 300 ;;
	rxe:65536) echo 1000 ;;
	medge:4096) echo 64000 ;;
	*) echo 300 ;;
	esac
}

# measure NAME TOOL SIZE COLUMN ITERATIONS [OPTION...]. On a busy machine perftest now and
# then fails to measure the CPU's clock, and then prints 0 or nothing; and a
# peer may fail to connect, which is not what is measured here.
measure() {
	local value
	for _ in {1..10}; do
		if ! perftest 60 "$2" -s "$3" -n "$5" "${@:6}"; then
			[ "$TYPE" = medge ] || continue
			failed "$TYPE $2 -s $3: $BOTH_STATUS"
			tail -n 5 "$WORK/client" "$WORK/server"
			return
		fi
		value=$(perftest_rows | awk -v column="$4" '{ print $column }')
		if [[ $value =~ [1-9] ]] && ! grep -q Correlation "$WORK/client"; then
			echo "$TYPE $1 $value" >>"$RESULTS"
			return
		fi
	done
	failed "$TYPE $2 -s $3: perftest fails, or cannot measure the clock"
	tail -n 5 "$WORK/client" "$WORK/server"
}

median() {
	awk -v type="$1" -v name="$2" '$1 == type && $2 == name { print $3 }' "$RESULTS" |
		sort -n | awk '{ v[NR] = $1 } END { print NR ? v[int((NR + 1) / 2)] : 0 }'
}

# at_least NAME PEER FACTOR
at_least() {
	local ours theirs
	ours=$(median medge "$1") theirs=$(median "$2" "$1")
	judge "$1: $ours MB/s is %.1f times $2's $theirs, floor $3" \
		"$(ratio "$ours" "$theirs")" "$3"
}

# ratio A B: 0 if there is no B
ratio() {
	awk -v a="$1" -v b="$2" 'BEGIN { print (b > 0 ? a / b : 0) }'
}

# judge FORMAT IS FLOOR
judge() {
	local text
	# shellcheck disable=SC2059 # the format is ours
	text=$(printf "$1" "$2")
	if awk -v is="$2" -v floor="$3" 'BEGIN { exit !(is >= floor) }'; then
		echo "ok   $text"
	else
		SHORT+=("$text")
	fi
}

# All of them, RUNS times by turns.
measure_all() {
	local i type size
	: >"$RESULTS"
	for ((i = 0; i < RUNS; i++)); do
		for type in medge rxe siw; do
			use "$type" || {
				failed "no devices of type $type"
				verdict
			}
			for size in 65536 1048576; do
				measure "write_bw_$size" ib_write_bw "$size" 4 "$(iterations "$size")"
			done
			if [ "$type" = medge ]; then
				measure one_qp ib_write_bw 4096 4 "$(iterations 4096)"
				measure many_qps ib_write_bw 4096 4 "$(($(iterations 4096) / 64))" -q 64
			fi
			# It is short, and the two are close to each other on some machines.
			for _ in 1 2 3; do
				measure write_lat ib_write_lat 4 5 3000
			done
		done
	done
	use medge || failed "no devices of type medge"
}

judge_all() {
	local size ours theirs
	SHORT=()
	for size in 65536 1048576; do
		at_least "write_bw_$size" siw 4
		at_least "write_bw_$size" rxe 10
	done
	ours=$(median medge many_qps) theirs=$(median medge one_qp)
	judge "4 KiB: $ours MB/s of 64 QPs are %.2f of one's $theirs, floor 0.5" \
		"$(ratio "$ours" "$theirs")" 0.5
	ours=$(median medge write_lat) theirs=$(median siw write_lat)
	judge "write_lat: siw's $theirs us is %.2f times medge's $ours, floor 1 (rxe: $(median rxe write_lat))" \
		"$(ratio "$theirs" "$ours")" 1
}

# The machine may have been busy with other things for a while: then once more.
for try in 1 2; do
	measure_all
	judge_all
	((${#SHORT[@]})) || break
	printf "short, try $try: %s\n" "${SHORT[@]}"
done
for text in "${SHORT[@]}"; do
	failed "$text"
done
verdict
