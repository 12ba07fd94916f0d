#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Unmodified perftest and ibv_rc_pingpong, in all their ways.
#
#   perftest_matrix.sh [--short|--full]    --short: less of what takes long; --full: perftest's own iteration counts
#
# lab beside: --rails 2 --mtu 9000 -- --short
# lab long: --rails 2 --mtu 9000 --timeout 1800
# lab long: --rails 1 --mtu 1500 --timeout 1800
# lab long: --rails 2 --mtu 9000 --timeout 3600 -- --full
# lab long: --rails 2 --mtu 9000 --kernel debug --timeout 1800
# lab long: --rails 2 --mtu 1500 --netem 'loss 1% duplicate 1% reorder 25%' --timeout 1800
set -u
# shellcheck source=tests/verbs/lib.sh
. "$(dirname "$0")/lib.sh"

LIMIT=${LIMIT:-120}
# Of one size, and of each of all.
COUNT=(-n 100) EACH=(-n 100) SHORT='' FULL=''
case ${1:-} in
--short) EACH=(-n 30) SHORT=1 ;;
--full) COUNT=() EACH=() FULL=1 ;;
'') ;;
*)
	echo "usage: perftest_matrix.sh [--short|--full]" >&2
	exit 2
	;;
esac

# bench LABEL CMD...: run and tell: the first and the last row, or what went wrong.
bench() {
	local label=$1 began=$EPOCHREALTIME rows column=4
	shift
	if ! "$@"; then
		printf '%-46s FAIL %6.1f s\n' "$label" "$(since "$began")"
		failed "$label: $BOTH_STATUS"
		tail -n 8 "$WORK/client" "$WORK/server"
		return
	fi
	# Bandwidth on average, the typical latency.
	[[ $label == *_lat* ]] && column=5
	rows=$(perftest_rows | sed -n '1p;$p' | awk -v column="$column" '{ print $1 " B: " $column }' | uniq | paste -sd,)
	[ -n "$rows" ] || rows=$(grep -E 'per.?iter|Mbit/sec' "$WORK/client" | tr '\n' ' ')
	printf '%-46s ok   %6.1f s  %s\n' "$label" "$(since "$began")" "$rows"
}

# The most that the device takes, and perftest.
max_inline() {
	local max
	max=$("$(program verbs_errors)" --max-inline)
	echo $((max < 912 ? max : 912))
}

bandwidths() {
	local tool
	for tool in ib_write_bw ib_read_bw ib_send_bw; do
		bench "$tool -a" perftest "$LIMIT" "$tool" -a "${EACH[@]}"
		[[ ! $FULL && $tool != ib_write_bw ]] || bench "$tool -a -b" perftest "$LIMIT" "$tool" -a -b "${EACH[@]}"
		bench "$tool -q 8" perftest "$LIMIT" "$tool" -q 8 "${COUNT[@]}"
		[[ ! $FULL && $tool != ib_read_bw ]] || bench "$tool -q 8 -a" perftest "$LIMIT" "$tool" -q 8 -a -n 30
		bench "$tool -l 16" perftest "$LIMIT" "$tool" -l 16 -s 64 -n 4800
		bench "$tool -s 67108864" perftest "$LIMIT" "$tool" -s 67108864 -n 20
	done
	bench "ib_send_bw -e" perftest "$LIMIT" ib_send_bw -e -s 8192 "${COUNT[@]}"
	bench "ib_write_bw -l 16 -b" perftest "$LIMIT" ib_write_bw -l 16 -b -s 64 -n 4800
	bench "ib_send_bw -r 600 -b -q 8" perftest "$LIMIT" ib_send_bw -r 600 -b -q 8 "${COUNT[@]}"
}

latencies() {
	local tool
	for tool in ib_write_lat ib_read_lat ib_send_lat; do
		bench "$tool" perftest "$LIMIT" "$tool" "${COUNT[@]}"
		[[ ! $FULL && $tool == ib_read_lat || $SHORT && $tool == ib_write_lat ]] ||
			bench "$tool -a" perftest "$LIMIT" "$tool" -a "${EACH[@]}"
		[[ $SHORT ]] || bench "$tool -s 67108864" perftest "$LIMIT" "$tool" -s 67108864 -n 10
	done
	bench "ib_send_lat -e" perftest "$LIMIT" ib_send_lat -e "${COUNT[@]}"
}

inlines() {
	local max size sizes
	max=$(max_inline)
	sizes=(0 1 "$max")
	[[ $SHORT ]] || sizes+=(64 $((max / 2)))
	for size in "${sizes[@]}"; do
		bench "ib_write_lat -I $size" perftest "$LIMIT" ib_write_lat -I "$size" -s "$((size ? size : 64))" "${COUNT[@]}"
		bench "ib_send_lat -I $size" perftest "$LIMIT" ib_send_lat -I "$size" -s "$((size ? size : 64))" "${COUNT[@]}"
		bench "ib_write_bw -I $size" perftest "$LIMIT" ib_write_bw -I "$size" -s "$((size ? size : 64))" -n 2000
	done
}

pingpongs() {
	local size
	for size in 1 3 63 4095 4097 8961 65537 1000003; do
		bench "ibv_rc_pingpong -s $size" pingpong "$LIMIT" -c -s "$size" -n 200
		bench "ibv_rc_pingpong -s $size -e" pingpong "$LIMIT" -c -e -s "$size" -n 200
	done
}

before=$(resources)
bandwidths
latencies
[ "$TYPE" = siw ] || {
	inlines
	pingpongs
}
nothing_left "$before"
verdict
