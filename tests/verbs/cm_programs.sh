#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Programs of Debian's packages that find each other by the connection manager, or send datagrams, unmodified.
# Prints a table: program, ok or FAIL, seconds, and what it had to say.
#
#   cm_programs.sh [PROGRAM]...    default: all
#
# lab beside: --rails 2 --mtu 9000
# lab beside: --rails 2 --mtu 1500 --netem 'loss 1% duplicate 1% reorder 25%' -- rping ucmatose cmtime rcopy
# lab beside: --rails 2 --mtu 9000 --bond-mode active-backup -- rping vlan
# lab beside: --rails 2 --mtu 9000 --kernel debug -- rping udaddy mckey rdma_client
# lab long: --rails 2 --mtu 9000 --kernel debug
# lab long: --rails 2 --mtu 1500 --netem 'loss 1% duplicate 1% reorder 25%'
# shellcheck disable=SC2317 # the parts are called by their names
set -u
# shellcheck source=tests/verbs/lib.sh
. "$(dirname "$0")/lib.sh"

# shellcheck disable=SC2153 # the lab sets them
: "$IP6_A" "$IP6_B"
SLOW=1
[ "${KERNEL:-}" != debug ] || SLOW=4
NETEM=$(plan NETEM)

# served LABEL SECONDS SERVER... -- CLIENT...: as both_end, but the server serves until it is killed.
served() {
	local label=$1 limit server=() began=$EPOCHREALTIME pid status
	limited "$(($2 * SLOW))"
	limit=$REPLY
	shift 2
	while [ "$1" != -- ]; do
		server+=("$1")
		shift
	done
	shift
	timeout -k 5 "$((limit + 10))" ip netns exec b "${server[@]}" >"$WORK/server" 2>&1 &
	pid=$!
	wait_listening b "$PORT" "$pid"
	timeout -k 5 "$limit" ip netns exec a "$@" >"$WORK/client" 2>&1
	status=$?
	BOTH_STATUS="client $status"
	kill "$pid" 2>/dev/null
	wait "$pid" 2>/dev/null
	ended "$label" "$status" "$began" "$WORK/client"
}

# Programs that wait for each datagram for ever can't be run where some are lost.
loses_datagrams() {
	[[ $NETEM == *loss* ]]
}

# ---- the programs ----

ud_pingpong() {
	loses_datagrams && return
	next_port
	both_end ibv_ud_pingpong 20 ibv_ud_pingpong -d "$DEV_B" -g "$GID_B" -p "$PORT" -- \
		ibv_ud_pingpong -d "$DEV_A" -g "$GID_A" -p "$PORT" "$IP_B"
}

rping() {
	next_port
	both_end "rping -v -V" 20 "$HERE/rping" -s -a "$IP_B" -p "$PORT" -v -C 20 -- \
		"$HERE/rping" -c -a "$IP_B" -p "$PORT" -v -V -C 20
	next_port
	both_end "rping -V -S 60000" 20 "$HERE/rping" -s -a "$IP_B" -p "$PORT" -C 50 -S 60000 -- \
		"$HERE/rping" -c -a "$IP_B" -p "$PORT" -V -C 50 -S 60000
	next_port
	both_end "rping -V, IPv6" 20 "$HERE/rping" -s -a "$IP6_B" -p "$PORT" -v -C 20 -- \
		"$HERE/rping" -c -a "$IP6_B" -p "$PORT" -v -V -C 20
}

ucmatose() {
	next_port
	both_end "ucmatose" 20 ucmatose -b "$IP_B" -p "$PORT" -c 10 -C 20 -S 5000 -- \
		ucmatose -s "$IP_B" -p "$PORT" -c 10 -C 20 -S 5000
	next_port
	both_end "ucmatose, IPv6" 20 ucmatose -b "$IP6_B" -f ipv6 -p "$PORT" -- \
		ucmatose -s "$IP6_B" -f ipv6 -p "$PORT"
}

# udaddy listens on a port of its own choice.
udaddy() {
	loses_datagrams && return
	PORT=7174
	both_end udaddy 20 udaddy -b "$IP_B" -c 4 -C 20 -S 1000 -- udaddy -s "$IP_B" -c 4 -C 20 -S 1000
	both_end "udaddy, IPv6" 20 udaddy -b "$IP6_B" -f ipv6 -- udaddy -s "$IP6_B" -f ipv6
}

# The receiver ends when it has all messages.
mckey_to() {
	local group=$1 label=$2 from=$3 to=$4 began=$EPOCHREALTIME pid status
	limited "$((20 * SLOW))"
	timeout -k 5 "$REPLY" ip netns exec b stdbuf -oL mckey -m "$group" -b "$to" -C 10 >"$WORK/server" 2>&1 &
	pid=$!
	wait_line "$WORK/server" 'receiving data'
	timeout -k 5 "$REPLY" ip netns exec a mckey -m "$group" -b "$from" -s -C 10 >"$WORK/client" 2>&1
	status=$?
	wait "$pid"
	BOTH_STATUS="sender $status, receiver $?"
	[ "$BOTH_STATUS" = "sender 0, receiver 0" ]
	ended "$label" "$?" "$began" "$WORK/server"
}

mckey() {
	loses_datagrams && return
	# To join an IPv6 group is what the kernel's rdma_cm refuses on any RoCE v2 device.
	mckey_to 239.1.2.3 mckey "$IP_A" "$IP_B"
}

cmtime() {
	next_port
	served "cmtime -c 100" 60 cmtime -b "$IP_B" -p "$PORT" -- cmtime -s "$IP_B" -p "$PORT" -c 100
}

rdma_client() {
	next_port
	both_end rdma_client/server 20 rdma_server -s "$IP_B" -p "$PORT" -- rdma_client -s "$IP_B" -p "$PORT"
}

# udpong is not among them: the datagrams of rsockets have no GRH, which RoCE needs (rsocket.c, ds_add_qp_dest()).
rdma_xclient() {
	local kind
	for kind in r x; do
		next_port
		both_end "rdma_xclient/xserver -c $kind" 20 rdma_xserver -p "$PORT" -c "$kind" -- \
			rdma_xclient -s "$IP_B" -p "$PORT" -c "$kind"
	done
}

streams() {
	local tool
	for tool in rstream riostream; do
		next_port
		both_end "$tool -T v" 30 "$tool" -b "$IP_B" -p "$PORT" -T v -S 100000 -C 50 -- \
			"$tool" -s "$IP_B" -p "$PORT" -T v -S 100000 -C 50
		next_port
		both_end "$tool -T v -S 2000000" 30 "$tool" -b "$IP_B" -p "$PORT" -T v -S 2000000 -C 10 -- \
			"$tool" -s "$IP_B" -p "$PORT" -T v -S 2000000 -C 10
	done
	next_port
	both_end "rstream -T n" 30 rstream -b "$IP_B" -p "$PORT" -T n -S 100000 -C 50 -- \
		rstream -s "$IP_B" -p "$PORT" -T n -S 100000 -C 50
}

rcopy() {
	next_port
	head -c 20000000 /dev/urandom >"$WORK/from"
	served "rcopy, 20 MB" 30 rcopy -p "$PORT" -- \
		rcopy "$WORK/from" "$IP_B:$WORK/to" -p "$PORT" || return
	cmp "$WORK/from" "$WORK/to" || failed "rcopy: the copy is another"
	rm -f "$WORK/from" "$WORK/to"
}

# An ordinary TCP program, over rsockets: all bytes arrive, in order.
rspreload() {
	local lib=/usr/lib/x86_64-linux-gnu/rsocket/librspreload.so
	next_port
	cat >"$WORK/sink.py" <<-'END'
		import hashlib, socket, sys
		s = socket.socket()
		s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
		s.bind((sys.argv[1], int(sys.argv[2])))
		s.listen(1)
		c, _ = s.accept()
		h, n = hashlib.sha256(), 0
		while n < 20000000:
		    data = c.recv(65536)
		    if not data: break
		    h.update(data)
		    n += len(data)
		c.sendall(h.digest())
		c.close()
	END
	cat >"$WORK/source.py" <<-'END'
		import hashlib, os, socket, sys
		s = socket.create_connection((sys.argv[1], int(sys.argv[2])))
		data = os.urandom(20000000)
		s.sendall(data)
		if s.recv(32) != hashlib.sha256(data).digest():
		    sys.exit("what arrived is not what was sent")
		print("20 MB, sha256 right")
	END
	both_end "librspreload python3" 40 env LD_PRELOAD="$lib" python3 "$WORK/sink.py" "$IP_B" "$PORT" -- \
		env LD_PRELOAD="$lib" python3 "$WORK/source.py" "$IP_B" "$PORT"
}

# qperf knows RoCE only by the connection manager. Its server tells the port, and then listens: who connects between
# the two is rejected, and tries again.
qperf() {
	local tests=(rc_bw rc_lat rc_bi_bw rc_rdma_read_bw rc_rdma_read_lat rc_rdma_write_bw rc_rdma_write_lat
		rc_rdma_write_poll_lat rc_compare_swap_mr rc_fetch_add_mr ver_rc_compare_swap ver_rc_fetch_add)
	PORT=19765
	cat >"$WORK/qperf" <<-'END'
		#!/bin/bash
		# IP TEST...
		for test in "${@:2}"; do
			for try in {1..10}; do
				said=$(qperf -t 1 -cm 1 "$1" "$test" 2>&1)
				status=$?
				[[ $status != 0 && $said == *"Event rejected"* ]] || break
			done
			printf '%s\n' "$said"
			[ "$status" = 0 ] || exit
		done
	END
	served "qperf -cm 1, ${#tests[@]} tests" 60 qperf -- bash "$WORK/qperf" "$IP_B" "${tests[@]}"
}

# Both ends on one node, over one device.
local_peers() {
	local on_a=(ip netns exec a)
	next_port
	both_end "rping -V, to itself" 20 "${on_a[@]}" "$HERE/rping" -s -a "$IP_A" -p "$PORT" -C 20 -S 20000 -- \
		"$HERE/rping" -c -a "$IP_A" -p "$PORT" -V -C 20 -S 20000
	PORT=7174
	both_end "udaddy, to itself" 20 "${on_a[@]}" udaddy -b "$IP_A" -- udaddy -s "$IP_A"
}

VLAN_A=10.77.0.1 VLAN_B=10.77.0.2

vlan_setup() {
	local node addr
	for node in a b; do
		addr=$VLAN_A
		[ "$node" = a ] || addr=$VLAN_B
		ip -n "$node" link add link bond0 name v77 type vlan id 77
		ip -n "$node" link set v77 up
		ip -n "$node" addr add "$addr/24" dev v77
	done
	if ! gid_index "$DEV_A" "$VLAN_A" >/dev/null || ! gid_index "$DEV_B" "$VLAN_B" >/dev/null; then
		failed "VLAN: no GID for its addresses"
	fi
}

# vlan_filter ACTION PROTOCOL: what b's rails do with frames that come in with that EtherType.
vlan_filter() {
	local rail
	for ((rail = 0; rail < RAILS; rail++)); do
		on b tc qdisc replace dev "rail$rail" ingress
		on b tc filter replace dev "rail$rail" ingress protocol "$2" pref 1 matchall action "$1"
	done
}

# The programs work on a VLAN, by frames that are tagged, and by no other.
vlan() {
	local rail
	vlan_setup
	next_port
	both_end "rping -V, VLAN" 20 "$HERE/rping" -s -a "$VLAN_B" -p "$PORT" -C 20 -S 20000 -- \
		"$HERE/rping" -c -a "$VLAN_B" -p "$PORT" -V -C 20 -S 20000
	if ! loses_datagrams; then
		PORT=7174
		both_end "udaddy, VLAN" 20 udaddy -b "$VLAN_B" -- udaddy -s "$VLAN_B"
		mckey_to 239.1.2.4 "mckey, VLAN" "$VLAN_A" "$VLAN_B"
	fi
	vlan_filter drop 802.1q
	if vlan_reaches "$VLAN_B"; then
		failed "VLAN: frames get through where tagged ones are dropped"
	fi
	vlan_reaches "$IP_B" || failed "VLAN: untagged frames do not get through where tagged ones are dropped"
	for ((rail = 0; rail < RAILS; rail++)); do
		on b tc qdisc del dev "rail$rail" ingress
	done
	ip -n a link del v77
	ip -n b link del v77
}

# Does a connection get to that address of b? Both know each other's MAC address.
vlan_reaches() {
	local limit=$((3 * SLOW)) pid status
	# What the connection manager loses, it sends again some seconds later.
	! loses_datagrams || limit=20
	next_port
	timeout "$((limit + 10))" ip netns exec b "$HERE/rping" -s -a "$1" -p "$PORT" -C 1 >/dev/null 2>&1 &
	pid=$!
	wait_listening b "$PORT" "$pid"
	timeout "$limit" ip netns exec a "$HERE/rping" -c -a "$1" -p "$PORT" -C 1 >/dev/null 2>&1
	status=$?
	kill "$pid" 2>/dev/null
	wait "$pid" 2>/dev/null
	return "$status"
}

# Nobody listens there (IB_CM_REJ_INVALID_SERVICE_ID): perftest's -R connects twice, and its client may come before its
# server listens again. It does so with any device.
came_too_early() {
	grep -q 'RDMA_CM_EVENT_REJECTED; error: 8' "$WORK/client"
}

# perf LABEL TOOL ARGS...
perf() {
	local label=$1 tool=$2 began=$EPOCHREALTIME status tries
	shift 2
	for tries in 1 2 3 4 5; do
		status=0
		perftest "$((30 * SLOW))" "$tool" "$@" || status=1
		[ "$status" = 0 ] && break
		came_too_early || break
		echo "$label: the client came before the server, try $tries"
	done
	perftest_rows >"$WORK/rows"
	ended "$label" "$status" "$began" "$WORK/rows"
}

perftest_cm() {
	perf "ib_write_bw -R" ib_write_bw -R -n 500
	perf "ib_read_bw -R" ib_read_bw -R -n 500
	perf "ib_send_lat -R" ib_send_lat -R -n 500
	perf "ib_atomic_bw -R" ib_atomic_bw -R -n 500
	loses_datagrams && return
	perf "ib_send_bw -c UD" ib_send_bw -c UD -n 1000 -s 2048
	perf "ib_send_lat -c UD" ib_send_lat -c UD -n 1000 -s 2048
	perf "ib_send_lat -c UD -R" ib_send_lat -c UD -R -n 1000 -s 512
}

ALL=(ud_pingpong rping ucmatose udaddy mckey cmtime rdma_client rdma_xclient streams rcopy rspreload qperf perftest_cm local_peers vlan)
[ $# != 0 ] || set -- "${ALL[@]}"
for part; do
	if [[ " ${ALL[*]} " != *" $part "* ]]; then
		echo "usage: cm_programs.sh [${ALL[*]}]..." >&2
		exit 2
	fi
	"$part"
done
verdict
