#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# What is not plain RC: UC, XRC, shared receive queues, events, windows; our own program, and Debian's.
#
# lab beside: --rails 2 --mtu 9000
# lab beside: --rails 2 --mtu 1500 --kernel debug
set -u
# shellcheck source=tests/verbs/lib.sh
. "$(dirname "$0")/lib.sh"

# Where all takes ten times as long, less of each.
LESS=1
[ "${KERNEL:-}" != debug ] || LESS=5

# tool COUNT NAME ARGS...: an ibv_*_pingpong on both nodes.
tool() {
	local count=$1 name=$2
	shift 2
	set -- "$@" -n "$((count / LESS))"
	next_port
	both 60 "$name" -d "$DEV_B" -g "$GID_B" -p "$PORT" "$@" -- \
		"$name" -d "$DEV_A" -g "$GID_A" -p "$PORT" "$@" "$IP_B"
	report "$name $*" $?
}

bench() {
	perftest 60 "$@" -n "$((400 / LESS))"
	report "$*" $?
}

report() {
	printf '%-60s %s\n' "$1" "$(ok_or_fail "$2")"
	[ "$2" = 0 ] && return
	failed "$1: $BOTH_STATUS"
	tail -n 5 "$WORK/client" "$WORK/server"
}

if [ "$TYPE" = medge ]; then
	objects=$(program verbs_objects) || exit
	run verbs_objects 60 "$objects"
	impair delay 1ms 1ms
	run "verbs_objects, where any frame overtakes any" 60 "$objects"
	repair
fi
on a ibv_devinfo -v -d "$DEV_A" >"$WORK/client" 2>&1
report "ibv_devinfo -v" $?
tool 500 ibv_rc_pingpong -c
tool 500 ibv_rc_pingpong -e
tool 500 ibv_rc_pingpong -t
tool 500 ibv_uc_pingpong
tool 200 ibv_uc_pingpong -e -s 65536
tool 500 ibv_srq_pingpong
tool 500 ibv_srq_pingpong -e -q 8
tool 200 ibv_xsrq_pingpong
bench ib_send_bw -c UC -s 65536
bench ib_write_bw -c UC -s 65536
bench ib_send_lat -c UC
bench ib_send_bw -c XRC -s 65536
bench ib_write_bw -c XRC -s 65536
bench ib_read_bw -c XRC -s 65536
bench ib_send_bw --use-srq -s 4096
bench ib_send_bw -e -s 65536
if [ "${KERNEL:-}" != debug ]; then
	bench ib_write_lat -c XRC
	bench ib_send_lat -c XRC
	bench ib_send_bw -c UD -s 1024
	bench ib_send_bw -s 65536 -b
	bench ib_write_bw -s 65536 -q 4
	bench ib_read_bw -s 65536
	bench ib_atomic_bw
	bench ib_atomic_lat
	bench ib_atomic_bw -c XRC
	bench ib_send_lat -I 64
	bench ib_write_bw --inline_recv=64 -s 64
	bench ib_send_bw --inline_recv=64 -s 64
fi
verdict
