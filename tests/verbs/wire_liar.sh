#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Somebody on the wire lies. From outside, who does not know the connections,
# nobody notices. Inside a connection it may fail, and nothing else does; what
# becomes of one lie exactly, same_receive.c says.
#
#   wire_liar.sh [SECONDS]    default 8, for each kind of lie; SEED=N repeats a run
#
# lab beside: --rails 2 --mtu 1500
# lab beside: --rails 2 --mtu 9000 --kernel debug -- 2
set -u
# shellcheck source=tests/verbs/lib.sh
. "$(dirname "$0")/lib.sh"

SECONDS_EACH=${1:-8}

qpns_of() {
	rdma resource show qp | sed -n "s/.* lqpn \([0-9]*\) .* pid $1 .*/\1/p"
}

# lie KIND SECONDS PID: both ways, about the connections of process PID.
lie() {
	local node pids=()
	for node in a b; do
		random_below 30000
		# shellcheck disable=SC2046 # several
		on "$node" "$LIAR" "$1" "$2" "$REPLY" "$RAILS" $(qpns_of "$3") \
			>"$WORK/liar.$node" 2>&1 &
		pids+=($!)
	done
	for pid in "${pids[@]}"; do
		wait "$pid" || failed "the liar: $(tail -qn 2 "$WORK"/liar.?)"
	done
	echo "$1: $(tail -qn 1 "$WORK"/liar.? | tr '\n' ' ')"
}

# A counter, of both devices.
count() {
	rdma statistic | grep -o "\b$1 [0-9]*" | awk '{ n += $2 } END { print n + 0 }'
}

choose_seed
PATTERN=$(program verbs_pattern) && LIAR=$(program wire_liar) && SAME=$(program same_receive) || exit
before=$(resources)
# While there is nothing else to hear.
run same_receive 60 on a "$SAME" "$RAILS"
start_pattern good 4
good=$PID

start_pattern victim 8
lie outside "$SECONDS_EACH" "$PID"
unharmed victim "$PID"
end_pattern "$PID"
for counter in dups rx_no_qp rx_bad_peer drop_runt; do
	(($(count "$counter"))) || failed "nothing was counted as $counter"
done

for ((round = 0; round < SECONDS_EACH; round++)); do
	start_pattern victim 8
	lie inside 1 "$PID"
	unharmed good "$good" || break
	end_pattern "$PID"
done
for counter in drop_offset drop_window drop_mismatch drop_ack; do
	(($(count "$counter"))) || failed "nothing was counted as $counter"
done
end_pattern "$good"
as_before "$before"
rdma statistic | grep -o "drop_[a-z]* [1-9][0-9]*\|rx_[a-z_]* [1-9][0-9]*" | sort | uniq | paste -sd' '
verdict
