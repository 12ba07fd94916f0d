#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# rdmacm-glue: every call and its errors, memory that changes, active messages,
# peers that die and rails that break.
#
#   glue.sh [--calls N] [--rounds N] [calls|fuzz|lies|messages|death|rails|examples|bench]...
#
#   --calls    so many active messages between four nodes, default 20000
#   --rounds   so many rounds of changing memory, default 40; with every sanitizer, a tenth of both
#
# Without a part: all but bench. SEED=N repeats a run.
#
# lab beside: --rails 2 --mtu 9000 -- calls fuzz lies messages death rails
# lab beside: --rails 2 --mtu 1500 --kernel debug -- fuzz lies messages
# lab beside: --rails 2 --mtu 9000 --netem 'delay 1ms loss 1%' -- calls
# lab beside: --type rxe,siw --rails 2 --mtu 9000 -- calls fuzz messages death
# lab beside: --nodes 4 --rails 2 --mtu 9000 --netem 'loss 1%' -- messages examples
# lab: --rails 2 --mtu 9000 -- bench
# lab long: --nodes 4 --rails 2 --mtu 9000 --timeout 900 -- --calls 1000000 --rounds 400 messages fuzz
# shellcheck disable=SC2317 # called by the name given as an argument
set -u
# shellcheck source=tests/verbs/lib.sh
. "$(dirname "$0")/../verbs/lib.sh"

BIN=$LAB_BUILD/tests/glue
SLOWER=1
[ "${KERNEL:-}" != debug ] || SLOWER=10
CALLS=$((20000 / SLOWER))
ROUNDS=$((40 / SLOWER))
NOWHERE=10.99.0.77

# pair LABEL SECONDS PROGRAM B-ARGS... -- A-ARGS...: the program on b, and its partner on a.
pair() {
	local label=$1 limit=$2 program=$BIN/$3 server=() pid
	shift 3
	while [ "$1" != -- ]; do
		server+=("$1")
		shift
	done
	shift
	timeout -k 5 "$limit" ip netns exec b "$program" "${server[@]}" >"$WORK/server" 2>&1 &
	pid=$!
	run "$label" "$limit" ip netns exec a "$program" "$@" || kill "$pid" 2>/dev/null
	wait "$pid" || {
		failed "$label: the server's status is $?"
		tail -n 5 "$WORK/server"
	}
}

calls() {
	pair "every call" 120 glue_calls serve "$IP_B" -- "$IP_A" "$IP_B" "$NOWHERE"
	# Other providers leave what a queue pair flushed for who polls.
	[ "$TYPE" != medge ] || pair "connections that nobody polls" 60 glue_calls serve "$IP_B" -- "$IP_A" "$IP_B"
}

fuzz() {
	pair "changing memory" 200 glue_fuzz serve "$IP_B" -- "$IP_A" "$IP_B" "$SEED" "$ROUNDS"
	# Others have it, too, but are not sound (glue_alloc(3)).
	[ "$TYPE" != medge ] || pair "changing memory, on demand" 200 glue_fuzz serve "$IP_B" odp -- \
		"$IP_A" "$IP_B" "$SEED" "$ROUNDS" odp
}

# A peer that breaks the protocol loses the connection, and no more.
lies() {
	pair "lies" 60 glue_liar "$IP_B" -- "$IP_A" "$IP_B"
}

# Four nodes, or two processes on each of two, in $WHERE and $ADDRESSES.
four() {
	if [ "${NODES:-2}" = 4 ]; then
		WHERE=(a b c d) ADDRESSES=("$IP_A" "$IP_B" "$IP_C" "$IP_D")
	else
		WHERE=(a a b b) ADDRESSES=("$IP_A" "$IP_A" "$IP_B" "$IP_B")
	fi
}

messages() {
	local rank pids=() began=$EPOCHREALTIME status=0
	four
	for rank in 0 1 2 3; do
		timeout -k 5 900 ip netns exec "${WHERE[rank]}" "$BIN/glue_am" "$SEED" "$CALLS" "$rank" "${ADDRESSES[@]}" \
			>"$WORK/am$rank" 2>&1 &
		pids+=($!)
	done
	for rank in 0 1 2 3; do
		wait "${pids[rank]}" || status=$?
	done
	printf '%-46s %-4s %6.1f s\n' "$CALLS active messages" "$(ok_or_fail "$status")" "$(since "$began")"
	cat "$WORK"/am?
	[ "$status" = 0 ] || failed "active messages: status $status"
}

start_pair() {
	truncate -s 0 "$WORK/server" "$WORK/client"
	ip netns exec b "$BIN/glue_death" "$IP_B" >"$WORK/server" 2>&1 &
	SERVER=$!
	ip netns exec a "$BIN/glue_death" "$IP_A" "$IP_B" "$@" >"$WORK/client" 2>&1 &
	CLIENT=$!
	wait_line "$WORK/client" connected && wait_line "$WORK/server" connected && return
	failed "glue_death does not connect"
	cat "$WORK/client" "$WORK/server"
	return 1
}

# told LABEL FILE PID ERRORS LIMIT: that process is told of the loss, and ends well.
told() {
	local label=$1 file=$2 pid=$3 errors=$4 limit=$5 took status
	if ! wait_line "$file" DISCONNECTED; then
		failed "$label: never told"
		cat "$file"
		kill -KILL "$pid"
		return
	fi
	wait "$pid"
	status=$?
	took=$(($(awk '/DISCONNECTED/ { print $3 }' "$file") - BEGAN))
	printf '%-46s %s after %s ms\n' "$label" "$(awk '/DISCONNECTED/ { print $2 }' "$file")" "$took"
	grep -qE "DISCONNECTED ($errors) " "$file" || failed "$label: not $errors"
	((took <= limit)) || failed "$label: more than $limit ms"
	((status == 0)) || failed "$label: status $status: $(tail -n 1 "$file")"
}

now() {
	BEGAN=$((${EPOCHREALTIME/./} / 1000))
}

# A process that is killed, and one that only stands still: its kernel goes on.
# The kernel may end what is killed in any order: its memory before its queue pairs.
KILLED='ECONNRESET|ETIMEDOUT|EREMOTEIO|EFAULT'

death() {
	local how
	for how in '' busy; do
		# shellcheck disable=SC2086 # an argument or nothing
		start_pair $how || return
		now
		kill -KILL "$SERVER"
		wait "$SERVER" 2>/dev/null
		told "peer killed${how:+, $how}" "$WORK/client" "$CLIENT" "$KILLED" 5000
		# shellcheck disable=SC2086 # an argument or nothing
		start_pair $how || return
		now
		kill -STOP "$SERVER"
		told "peer frozen${how:+, $how}" "$WORK/client" "$CLIENT" ETIMEDOUT 5000
		kill -KILL "$SERVER"
		wait "$SERVER" 2>/dev/null
	done
	refusals
}

# A device may refuse work before it tells why, as siw's does while a queue pair ends.
refusals() {
	start_pair busy || return
	now
	kill -USR1 "$CLIENT"
	sleep 0.1
	kill -KILL "$SERVER" 2>/dev/null
	wait "$SERVER" 2>/dev/null
	told "work refused, then peer killed" "$WORK/client" "$CLIENT" "$KILLED" 5000
	start_pair busy || return
	now
	kill -USR1 "$CLIENT"
	told "work refused" "$WORK/client" "$CLIENT" EIO 5000
	kill -KILL "$SERVER" 2>/dev/null
	wait "$SERVER" 2>/dev/null
}

# nodes PROGRAM SECONDS: an example on four nodes, or the two that it takes.
nodes() {
	local program=$1 limit=$2 rank pids=() began=$EPOCHREALTIME status=0
	four
	if [ "$program" = pingpong ]; then
		WHERE=(a b) ADDRESSES=("$IP_A" "$IP_B")
	fi
	for rank in "${!WHERE[@]}"; do
		timeout -k 5 "$limit" ip netns exec "${WHERE[rank]}" "$WORK/examples/$program" "$rank" "${ADDRESSES[@]}" \
			>"$WORK/node$rank" 2>&1 &
		pids+=($!)
	done
	for rank in "${!WHERE[@]}"; do
		wait "${pids[rank]}" || status=$?
	done
	printf '%-46s %-4s %6.1f s\n' "example $program" "$(ok_or_fail "$status")" "$(since "$began")"
	cat "$WORK"/node?
	rm "$WORK"/node?
	[ "$status" = 0 ] || failed "example $program: status $status"
}

# The examples, as somebody builds them who has the installed package and pkg-config.
examples() {
	local stage=${LAB_BUILD%/build}/stage program library
	library=$(dirname "$(find "$stage" -name librdmacm-glue.so)")
	cp -r "$(find "$stage" -path '*/rdmacm-glue/examples')" "$WORK/examples"
	# The stage stands for /, whose directories pkg-config would leave out.
	PKG_CONFIG_SYSROOT_DIR=$stage PKG_CONFIG_PATH=$library/pkgconfig \
		PKG_CONFIG_ALLOW_SYSTEM_CFLAGS=1 PKG_CONFIG_ALLOW_SYSTEM_LIBS=1 make -s -C "$WORK/examples" CFLAGS='-Wall -Werror' || {
		failed "the examples do not build"
		return
	}
	export LD_LIBRARY_PATH=$library
	pages_there "$library" "$stage"
	for program in pingpong pages halo; do
		nodes "$program" 120
	done
	hello
	unset LD_LIBRARY_PATH
}

hello() {
	local pid
	timeout 60 ip netns exec b "$WORK/examples/hello" "$IP_B" >"$WORK/server" 2>&1 &
	pid=$!
	# It does not try again, so it must not be early.
	wait_listening b 7471 "$pid" || failed "hello: nobody listens"
	timeout 60 ip netns exec a "$WORK/examples/hello" "$IP_A" "$IP_B" || failed "hello: status $?"
	wait "$pid" || failed "hello's server: status $?"
	cat "$WORK/server"
	grep -qx 'GLUE_EVENT_NOTIFICATION 42: Hello from far away!' "$WORK/server" || failed "hello: nothing was said"
}

# Each function that is exported has its page, and nothing else is exported.
pages_there() {
	local function
	for function in $(nm -D --defined-only "$1/librdmacm-glue.so" | awk '$2 == "T" { sub("@.*", "", $3); print $3 }'); do
		[[ $function == glue_* ]] || failed "$function is exported"
		[ -e "$2/usr/share/man/man3/$function.3" ] || failed "$function has no man page"
	done
}

# bench_of POLLING PART
bench_of() {
	local pid device
	for device in a b; do
		echo "$1" >"/sys/class/infiniband/medge_$device/polling" || exit
	done
	timeout -k 5 180 ip netns exec b taskset -c 1 "$BIN/glue_bench" "$IP_B" >"$WORK/server" 2>&1 &
	pid=$!
	timeout -k 5 180 ip netns exec a taskset -c 0 "$BIN/glue_bench" "$IP_A" "$IP_B" "$2" ||
		failed "bench: $2: status $?: $(tail -n 1 "$WORK/server")"
	kill "$pid" 2>/dev/null
	wait "$pid"
}

# What the library costs over raw verbs.
bench() {
	bench_of all bandwidth
	bench_of auto latency
}

all_rails() {
	local rail
	for ((rail = 0; rail < RAILS; rail++)); do
		ip -n a link set "rail$rail" "$1" || exit
	done
}

# One rail goes and comes, and all is well; then all go.
rails() {
	start_pair busy || return
	ip -n a link set rail1 down
	wait_line "$WORK/client" 'RAIL_DOWN rail1' || failed "nobody is told that rail1 is down"
	sleep 0.5
	ip -n a link set rail1 up
	wait_line "$WORK/client" 'RAIL_UP rail1' || failed "nobody is told that rail1 is up"
	if grep -q DISCONNECTED "$WORK/client" "$WORK/server"; then
		failed "the loss of one rail lost the connection"
	fi
	now
	all_rails down
	told "all rails lost, here" "$WORK/client" "$CLIENT" ETIMEDOUT 10000
	told "all rails lost, there" "$WORK/server" "$SERVER" ETIMEDOUT 10000
	all_rails up
	sleep 0.5
	pair "rails back" 120 glue_fuzz serve "$IP_B" -- "$IP_A" "$IP_B" "$SEED" 3
}

usage() {
	echo "usage: glue.sh [--calls N] [--rounds N] [calls|fuzz|lies|messages|death|rails|examples|bench]..." >&2
	exit 2
}

while [[ ${1:-} == --* ]]; do
	[[ ${2:-} =~ ^[1-9][0-9]*$ ]] || usage
	case $1 in
	--calls) CALLS=$2 ;;
	--rounds) ROUNDS=$2 ;;
	*) usage ;;
	esac
	shift 2
done
choose_seed
[ $# != 0 ] || set -- calls fuzz lies messages death rails examples
for part; do
	case $part in
	calls | fuzz | lies | messages | death | rails | examples | bench) "$part" ;;
	*) usage ;;
	esac
done
verdict
