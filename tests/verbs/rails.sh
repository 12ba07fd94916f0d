#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# What may happen to rails while traffic runs, every byte of it checked:
#
#        node a                         node b
#        bond0 = rail0 ------------- rail0 = bond0
#                rail1 ------------- rail1
#                ...   (RAILS of them)  ...
#
#   unequal   the bonds have other rails, and not as many; some are cabled nowhere
#   switched  the same, with all rails on one switch (--nodes 3): each leads to each
#   follow    rails leave the bonds and join them
#   drain     the administrator takes one out of use
#   port      the port's state, and its events, follow the device as a whole
#   speed     what the port says of its speed is what those rails together have that are up
#   gap       a rail is cut in three ways: the longest wait around each cut
#   chaos     all of it at random, for a while
#
#   rails.sh [--cuts N] [--chaos SECONDS] [PART...]
#                            default: 4 of each kind, 20, all but switched; SEED=N repeats a run
#
# lab long: --rails 4 --mtu 9000 --timeout 3600 -- --cuts 100 gap
# lab long: --rails 4 --mtu 9000 --timeout 4000 -- --chaos 3600 chaos
# lab: --rails 4 --mtu 9000 -- --cuts 4 gap
# lab beside: --rails 4 --mtu 9000 -- unequal follow drain port speed
# lab beside: --rails 4 --mtu 9000 -- --chaos 40 chaos
# lab beside: --nodes 3 --rails 3 --mtu 9000 -- unequal switched
# lab beside: --rails 3 --mtu 1500 --kernel debug -- follow drain chaos
set -u
# shellcheck source=tests/verbs/lib.sh
. "$(dirname "$0")/lib.sh"

CUTS=6 CHAOS=20
usage() {
	echo "usage: rails.sh [--cuts N] [--chaos SECONDS] [unequal|switched|follow|drain|port|speed|gap|chaos]..." >&2
	exit 2
}

while [[ ${1:-} == --* ]]; do
	[[ ${2:-} =~ ^[1-9][0-9]*$ ]] || usage
	case $1 in
	--cuts) CUTS=$2 ;;
	--chaos) CHAOS=$2 ;;
	*) usage ;;
	esac
	shift 2
done
if [ "$TYPE" != medge ]; then
	echo "this is about medge"
	exit 77
fi

# --- rails -------------------------------------------------------------------

# With an address of its own: bonding warns of one that a port keeps from its bond. What the port sends, be it only IPv6's
# own frames, would bring a switch to lead to it what is for the bond, until the bond sends again.
leave() {
	on "$1" ip link set "rail$2" nomaster &&
		on "$1" ip link set "rail$2" address "$(printf '02:00:00:01:0%s:%02x' "$1" "$2")" up
}

join() {
	on "$1" ip link set "rail$2" down && on "$1" ip link set "rail$2" master bond0 &&
		on "$1" ip link set "rail$2" up
}

drop() {
	tc -n "$1" qdisc replace dev "rail$2" root netem loss 100%
}

mend() {
	tc -n "$1" qdisc del dev "rail$2" root 2>/dev/null
	on "$1" ip link set "rail$2" up
}

# Frames that node $1 has sent on rail $2.
sent_on() {
	on "$1" cat "/sys/class/net/rail$2/statistics/tx_packets"
}

dev_of() {
	[ "$1" = a ] && echo "$DEV_A" || echo "$DEV_B"
}

# Wait until $3 paths of node $1 are in state $2.
wait_paths() {
	local node=$1 state=$2 count=$3 tries
	for ((tries = 0; tries < 200; tries++)); do
		[ "$(grep -c " $state (" "/sys/class/infiniband/$(dev_of "$node")/paths")" = "$count" ] && return
		sleep 0.05
	done
	echo "node $node has not $count paths that are $state:"
	cat "/sys/class/infiniband/$(dev_of "$node")/paths"
	return 1
}

# --- traffic -----------------------------------------------------------------

# Traffic, until load_end.
load_start() {
	"$PATTERN" --seed "$((SEED + ++LOADS))" --time 100000 --qps 2 >"$WORK/load" 2>&1 &
	LOAD=$!
	wait_connected 4 || failed "the traffic does not start: $(tail -n 3 "$WORK/load")"
}

# load_end LABEL: it has been right all the time, and is at its end.
load_end() {
	local label=$1
	kill -INT "$LOAD" 2>/dev/null
	if wait "$LOAD"; then
		echo "ok   $label: $(tail -n 1 "$WORK/load")"
		return
	fi
	failed "$label"
	tail -n 5 "$WORK/load"
	cat /sys/class/infiniband/*/paths
}

# --- parts -------------------------------------------------------------------

# only NODE RAILS: the others leave its bond.
only() {
	local rail
	for ((rail = 0; rail < RAILS; rail++)); do
		[[ " $2 " == *" $rail "* ]] || leave "$1" "$rail"
	done
}

# all_but NODE RAILS: those others join it again.
all_but() {
	local rail
	for ((rail = 0; rail < RAILS; rail++)); do
		[[ " $2 " == *" $rail "* ]] || join "$1" "$rail"
	done
}

# unequal_case LABEL A-RAILS B-RAILS: those, of RAILS, that are in each bond.
unequal_case() {
	local label=$1 in_a=$2 in_b=$3 rail both=0 before after
	only a "$in_a"
	only b "$in_b"
	for rail in $in_a; do
		[[ " $in_b " != *" $rail "* ]] || both=$((both + 1))
	done
	load_start
	wait_paths a up "$both" || failed "$label"
	wait_paths b up "$both" || failed "$label"
	sleep 1
	# What leads nowhere gets a probe now and then, and no data.
	for ((rail = 0; rail < RAILS; rail++)); do
		[[ " $in_a " == *" $rail "* && " $in_b " != *" $rail "* ]] || continue
		before=$(sent_on a "$rail")
		sleep 1
		after=$(sent_on a "$rail")
		((after - before < 100)) || failed "$label: $((after - before)) frames on rail $rail, which leads nowhere"
	done
	load_end "$label"
	all_but a "$in_a"
	all_but b "$in_b"
}

unequal() {
	unequal_case "1 rail, and 2" "0" "0 1"
	unequal_case "3 rails, and 2" "0 1 2" "1 2"
	((RAILS < 4)) || unequal_case "4 rails, and 2" "0 1 2 3" "0 2"
}

switched_case() {
	local label="one switch: $1" in_a=$2 in_b=$3
	only a "$in_a"
	only b "$in_b"
	load_start
	wait_paths a up "$(wc -w <<<"$in_a")" || failed "$label"
	wait_paths b up "$(wc -w <<<"$in_b")" || failed "$label"
	all_carry a "$in_a" || failed "$label"
	all_carry b "$in_b" || failed "$label"
	load_end "$label"
	all_but a "$in_a"
	all_but b "$in_b"
}

# all_carry NODE RAILS: none of them has less than a tenth of the frames of another that the node sends in a second.
all_carry() {
	local rail most=0 least="" sent before=()
	for rail in $2; do
		before[rail]=$(sent_on "$1" "$rail")
	done
	sleep 1
	for rail in $2; do
		sent=$(($(sent_on "$1" "$rail") - before[rail]))
		((sent <= most)) || most=$sent
		((${least:-$sent} < sent)) || least=$sent
	done
	((10 * least >= most)) && return
	echo "rails $2 of node $1 sent between $least and $most frames"
	return 1
}

# Port RAIL of each node's to switch TO.
plug() {
	local node
	for node in a b c d; do
		[ ! -e "/sys/class/net/rail$1$node" ] || ip link set "rail$1$node" master "rail$2" || exit
	done
}

switched() {
	local rail
	if ((${NODES:-2} < 3)); then
		failed "switched: two nodes have no switch"
		return
	fi
	for ((rail = 1; rail < RAILS; rail++)); do
		plug "$rail" 0
	done
	switched_case "1 rail, and $RAILS" "1" "$(seq -s ' ' 0 $((RAILS - 1)))"
	switched_case "2 rails, and 1" "0 1" "2"
	switched_case "$RAILS rails, and 2" "$(seq -s ' ' 0 $((RAILS - 1)))" "0 1"
	for ((rail = 1; rail < RAILS; rail++)); do
		plug "$rail" "$rail"
	done
}

follow() {
	local rail
	load_start
	for ((rail = RAILS - 1; rail > 0; rail--)); do
		leave a "$rail"
		sleep 0.2
	done
	wait_paths a up 1 || failed "follow: one rail is left"
	for ((rail = 1; rail < RAILS; rail++)); do
		join a "$rail"
	done
	wait_paths a up "$RAILS" || failed "follow: the rails are back"
	sleep 1
	load_end "rails leave and join"
}

drain() {
	local file=/sys/class/infiniband/$DEV_A/drain before after
	load_start
	wait_paths a up "$RAILS" || failed "drain: before"
	echo rail1 >"$file" || failed "drain: refused"
	[ "$(cat "$file")" = rail1 ] || failed "drain: $(cat "$file")"
	wait_paths a draining 1 || failed "drain: here"
	wait_paths b draining 1 || failed "drain: there"
	sleep 0.2
	before=$(($(sent_on a 1) + $(sent_on b 1)))
	sleep 1
	after=$(($(sent_on a 1) + $(sent_on b 1)))
	((after - before < 50)) || failed "drain: $((after - before)) frames on a drained rail"
	echo -rail1 >"$file" || failed "drain: cannot be ended"
	wait_paths a up "$RAILS" || failed "drain: afterwards"
	sleep 1
	load_end "a rail drained and used again"
	echo nosuch 2>/dev/null >"$file" && failed "drain: a rail that is not there"
}

port_state() {
	local tries
	for ((tries = 0; tries < 60; tries++)); do
		[[ $(cat "/sys/class/infiniband/$DEV_A/ports/1/state") == *$1* ]] && return
		sleep 0.05
	done
	failed "port: not $1"
}

port() {
	local rail watch
	stdbuf -oL ibv_asyncwatch -d "$DEV_A" >"$WORK/events" 2>&1 &
	watch=$!
	sleep 0.5
	for ((rail = 1; rail < RAILS; rail++)); do
		on a ip link set "rail$rail" down
	done
	sleep 0.3
	port_state ACTIVE
	grep -qi 'port' <(grep -i 'event' "$WORK/events") && failed "port: an event while a rail is up: $(cat "$WORK/events")"
	on a ip link set rail0 down
	port_state DOWN
	on a ip link set rail1 up
	port_state ACTIVE
	sleep 0.2
	kill "$watch"
	grep -qi 'port error\|PORT_ERR' "$WORK/events" || failed "port: no error event: $(cat "$WORK/events")"
	grep -qi 'port active\|PORT_ACTIVE' "$WORK/events" || failed "port: no active event: $(cat "$WORK/events")"
	for ((rail = 0; rail < RAILS; rail++)); do
		on a ip link set "rail$rail" up
	done
	echo "ok   the port follows its rails"
}

# speed_is LABEL NETDEV...: the port's speed soon is that of these, all together. Speed and width, which have steps,
# say no more than that; what they say, in whole Gbit/s, is $LANES.
speed_is() {
	local label=$1 netdev sum=0 said tries
	shift
	for netdev; do
		sum=$((sum + $(on a cat "/sys/class/net/$netdev/speed")))
	done
	for ((tries = 0; tries < 60; tries++)); do
		said=$("$PORT_SPEED" "$DEV_A")
		[ "$said" != "$((sum / 100))" ] || break
		sleep 0.05
	done
	LANES=$(grep -oE '^[0-9]+' "/sys/class/infiniband/$DEV_A/ports/1/rate")
	echo "speed: $label: $sum Mbit/s; the port says $((said * 100)), and by its lanes $LANES Gb/s"
	[ "$said" = "$((sum / 100))" ] || failed "speed: $label"
	# Less than one slow lane can't be said.
	((LANES * 1000 <= (sum ? sum : 2500))) || failed "speed: $label: more lanes than there is speed"
}

# rail_of MBPS: a rail of that speed, which leads nowhere: tap_MBPS, as long as the process $PID lives.
rail_of() {
	local name=tap_$1
	on a python3 -c '
import fcntl, struct, sys, time
tap = open("/dev/net/tun", "r+b", buffering=0)
fcntl.ioctl(tap, 0x400454ca, struct.pack("16sH22x", sys.argv[1].encode(), 0x1002))
time.sleep(1000)
' "$name" &
	PID=$!
	disown
	wait_netdev "$name" || failed "speed: no $name"
	on a ethtool -s "$name" speed "$1" duplex full || failed "speed: $name has another"
	on a ip link set "$name" master bond0
	on a ip link set "$name" up
}

wait_netdev() {
	local tries
	for ((tries = 0; tries < 100; tries++)); do
		on a test -e "/sys/class/net/$1" && return
		sleep 0.05
	done
	return 1
}

speed() {
	local rail rails=() taps=()
	for ((rail = 0; rail < RAILS; rail++)); do
		rails+=("rail$rail")
	done
	speed_is "all rails" "${rails[@]}"
	# A veth says 10 Gbit/s.
	[ "$LANES" = "$((RAILS * 10))" ] || failed "speed: $LANES Gb/s by lanes"
	on a ip link set rail1 down
	speed_is "one is down" rail0 "${rails[@]:2}"
	on a ip link set rail1 up
	speed_is "it is up again" "${rails[@]}"
	on b ip link set rail1 down
	speed_is "one has no carrier" rail0 "${rails[@]:2}"
	on b ip link set rail1 up
	leave a 1
	speed_is "one has left" rail0 "${rails[@]:2}"
	join a 1
	load drivers/net/tun || failed "speed: no tap"
	rail_of 25000
	taps+=("$PID")
	speed_is "unequal ones" "${rails[@]}" tap_25000
	rail_of 100
	taps+=("$PID")
	speed_is "more unequal ones" "${rails[@]}" tap_25000 tap_100
	kill "${taps[0]}"
	speed_is "unequal ones, the fast one gone" "${rails[@]}" tap_100
	kill "${taps[1]}"
	speed_is "all rails, as before" "${rails[@]}"
	for rail in "${rails[@]}"; do
		on a ip link set "$rail" down
	done
	speed_is "none"
	for rail in "${rails[@]}"; do
		on a ip link set "$rail" up
	done
	speed_is "all rails, again" "${rails[@]}"
	run "rmmod tun" 20 sh -c "until rmmod tun; do sleep 0.1; done"
}

# What a line that does no harm makes one wait is allowed on top of the limits: the machine
# may be busy. tests/transport/test_gap judges the limits themselves, in virtual time.
gap_case() {
	local label=$1 limit=$2 control=$3 cut=$4 mend=$5
	echo "cut: $label"
	echo >"$TRACE/trace"
	"$GAP" --count "$CUTS" --seed "$SEED" --limit-us "$limit" --tool "ip -n b -batch - >/dev/null" \
		--tool "tc -n a -batch - >/dev/null" --tool "tc -n b -batch - >/dev/null" \
		--control "$control" --cut "$cut" --mend "$mend" --trace "$TRACE/tracing_on" >"$WORK/gap" 2>&1 ||
		failed "gap: $label"
	cat "$WORK/gap"
	"$HERE/gap_moved.py" "$TRACE/trace" "$limit" || failed "gap: $label: frames are moved late"
}

# trace_on EVENTS...: what is seen of them later, while tracing_on says so.
trace_on() {
	local event
	echo 0 >"$TRACE/tracing_on"
	# A jiffy is too long here.
	echo mono >"$TRACE/trace_clock"
	echo $((CUTS * OFTEN * 400)) >"$TRACE/buffer_size_kb"
	for event; do
		echo 1 >"$TRACE/events/medge/$event/enable" || failed "no tracepoint $event"
	done
}

trace_off() {
	echo 0 >"$TRACE/events/medge/enable"
	echo 1 >"$TRACE/buffer_size_kb"
	echo >"$TRACE/trace"
}

gap() {
	# At this rate all of them are used, and have frames on their way at any time.
	local shape="limit 100000 rate 1gbit"
	local lose="qdisc change dev rail1 root netem $shape loss 100%" find="qdisc change dev rail1 root netem $shape"
	local look="qdisc show dev rail1"
	# shellcheck disable=SC2086 # words
	all_rails add netem $shape
	trace_on medge_send medge_rail
	# Here every millisecond counts that something else takes from a guest's CPUs, and not each
	# cut has frames to move: more of them, so that one had its time.
	CUTS=$((CUTS * OFTEN)) gap_case carrier 1000 "0 link show rail1" "0 link set rail1 down" "0 link set rail1 up"
	gap_case "drop both ways" 10000 "1 $look; 2 $look" "1 $lose; 2 $lose" "1 $find; 2 $find"
	gap_case "drop one way, out" 10000 "1 $look" "1 $lose" "1 $find"
	gap_case "drop one way, back" 10000 "2 $look" "2 $lose" "2 $find"
	trace_off
	all_rails del
}

# Another rule for the node's frames, from now on.
reschedule() {
	local file schedulers
	file=/sys/class/infiniband/$(dev_of "$1")/scheduler
	read -ra schedulers < <(tr -d '[]' <"$file")
	random_below "${#schedulers[@]}"
	echo "${schedulers[REPLY]}" >"$file" || failed "chaos: no scheduler ${schedulers[REPLY]}"
}

# harm NODE RAIL: one of many things.
harm() {
	random_below 8
	case $REPLY in
	0) on "$1" ip link set "rail$2" down ;;
	1) leave "$1" "$2" ;;
	2) drop "$1" "$2" ;;
	3) drop a "$2" && drop b "$2" ;;
	4) tc -n "$1" qdisc replace dev "rail$2" root netem loss 30% ;;
	5) tc -n "$1" qdisc replace dev "rail$2" root netem delay 5ms rate 200mbit limit 10000 ;;
	# Unless it has left.
	6) echo "rail$2" >"/sys/class/infiniband/$(dev_of "$1")/drain" 2>/dev/null ;;
	7) reschedule "$1" ;;
	esac
}

heal() {
	local node
	for node in a b; do
		[[ $(on "$node" ip -o link show "rail$1") == *"master bond0"* ]] || join "$node" "$1"
		mend "$node" "$1"
		[ "$(cat "/sys/class/infiniband/$(dev_of "$node")/drain")" = "" ] ||
			echo "-rail$1" >"/sys/class/infiniband/$(dev_of "$node")/drain" 2>/dev/null
	done
}

# All rails but one may be harmed at any time; which one is spared changes.
chaos() {
	local until rail node steps=0 spared=0
	load_start
	until=$((SECONDS + CHAOS))
	while ((SECONDS < until)) && kill -0 "$LOAD" 2>/dev/null; do
		random_below "$RAILS"
		rail=$REPLY
		random_below 2
		node=$([ "$REPLY" = 0 ] && echo a || echo b)
		random_below 8
		if [ "$REPLY" = 0 ]; then
			for ((rail = 0; rail < RAILS; rail++)); do
				heal "$rail"
			done
			sleep 0.5
			random_below "$RAILS"
			spared=$REPLY
		elif [ "$rail" != "$spared" ]; then
			random_below 2
			if [ "$REPLY" = 0 ]; then harm "$node" "$rail"; else heal "$rail"; fi
		fi
		steps=$((steps + 1))
		random_below 200
		sleep "$(awk -v ms="$REPLY" 'BEGIN { print ms / 1000 }')"
	done
	load_end "chaos, $steps steps"
	for node in a b; do
		echo earliest >"/sys/class/infiniband/$(dev_of "$node")/scheduler"
	done
	for ((rail = 0; rail < RAILS; rail++)); do
		heal "$rail"
	done
}

choose_seed
PATTERN=$(program verbs_pattern) && GAP=$(program verbs_gap) && PORT_SPEED=$(program port_speed) || exit
LOADS=0 TRACE=/sys/kernel/tracing OFTEN=3
[ $# -gt 0 ] || set -- unequal follow drain port speed gap chaos
for part; do
	began=$EPOCHREALTIME
	case $part in
	unequal) unequal ;;
	switched) switched ;;
	follow) follow ;;
	drain) drain ;;
	port) port ;;
	speed) speed ;;
	gap) gap ;;
	chaos) chaos ;;
	*) usage ;;
	esac
	printf '%-10s %6.1f s\n' "$part" "$(since "$began")"
done
verdict
