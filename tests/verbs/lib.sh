# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# What the scripts beside this one share. They run in the lab, which sets
# DEV_A DEV_B IP_A IP_B GID_A GID_B TYPE RAILS MTU and offers `on a`, `on b`.
# shellcheck shell=bash

if [ -z "${DEV_A:-}" ]; then
	echo "${0##*/} runs in the lab: tests/lab/lab exec -- $0" >&2
	exit 2
fi

# shellcheck disable=SC2153 # the lab sets them
: "$DEV_B" "$GID_A" "$GID_B" "$IP_A" "$IP_B" "$TYPE" "$RAILS" "$MTU"
HERE=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
WORK=$(mktemp -d /dev/shm/verbs.XXXXXX)
FAILED=0 PORT=20000 IMPAIRED='' WHOLE=on

# The scripts' own end: nothing of them is left running.
finish() {
	local status=$?
	trap - EXIT
	set +e
	jobs -p | xargs -r kill -KILL 2>/dev/null
	wait 2>/dev/null
	# Other scripts of this boot find the rails as we did.
	[ -z "$IMPAIRED" ] || repair
	[ "$WHOLE" = on ] || whole on
	rm -rf "$WORK"
	exit "$status"
}
trap finish EXIT
trap 'exit 130' INT TERM

# What the lab knows of this boot but does not tell its script.
plan() {
	(
		# shellcheck source=/dev/null
		. "${LAB_OUT:-/nonexistent}/../plan" >/dev/null 2>&1
		printf '%s\n' "${!1:-}"
	)
}

# program NAME [LIBRARY...]: the path of one of our programs: as CMake built it beside the provider, or built here.
program() {
	local dir
	dir=$(plan PROVIDER)
	dir=${VERBS_BIN:-${dir%/stage}/build/tests/verbs}
	if ! [ -x "$dir/$1" ]; then
		dir=$WORK
		[ -x "$dir/$1" ] || cc -O2 -D_GNU_SOURCE -o "$dir/$1" "$HERE/$1.c" \
			"$HERE/verbs_test.c" "${@:2}" -libverbs -lpthread >&2 || exit
	fi
	printf '%s\n' "$dir/$1"
}

# load MODULE...: of the kernel, by their paths in its source. They are built, but not installed.
load() {
	local module
	for module; do
		run "insmod ${module##*/}" 20 insmod "$(plan KERNEL_DIR)/$module.ko" || return
	done
}

# test_module NAME: the path of one of our modules: as the lab built it from the directory of that name.
test_module() {
	echo "${LAB_BUILD%/provider/build}/$1/$(basename "$(plan KERNEL_DIR)")/$1.ko"
}

# The seed of everything random in a script: from the environment, else new. It is printed.
choose_seed() {
	SEED=${SEED:-$((($(date +%s) ^ $$) % 32768))}
	RANDOM=$SEED
	echo "${0##*/}: seed $SEED"
}

# A random number of 0 to $1 - 1, in $REPLY.
random_below() {
	REPLY=$(((RANDOM * 32768 + RANDOM) % $1))
}

failed() {
	echo "FAIL: $*"
	FAILED=$((FAILED + 1))
}

# Ends the script with the verdict.
verdict() {
	if [ "$FAILED" -gt 0 ]; then
		echo "${0##*/}: $FAILED failed"
		exit 1
	fi
	echo "${0##*/}: all passed"
	exit 0
}

# run LABEL SECONDS CMD...: run CMD, print one line with what it took; its output only if it fails.
run() {
	local label=$1 limit=$2 status began=$EPOCHREALTIME
	shift 2
	timeout -k 5 "$limit" "$@" >"$WORK/out" 2>&1
	status=$?
	printf '%-46s %-4s %6.1f s  %s\n' "$label" "$(ok_or_fail "$status")" \
		"$(since "$began")" "$(tail -n 1 "$WORK/out")"
	[ "$status" = 0 ] && return
	failed "$label: status $status$([ "$status" != 124 ] || echo ', out of time'): $*"
	tail -n 15 "$WORK/out"
	return 1
}

ok_or_fail() {
	[ "$1" = 0 ] && echo ok || echo FAIL
}

since() {
	echo "$1 $EPOCHREALTIME" | awk '{ print $2 - $1 }'
}

# A port that no earlier run may still hold, in $PORT.
next_port() {
	PORT=$((PORT + 1))
}

# Does the server listen, by either of the port spaces? At most half a minute: two debug kernels at once are slow, to
# begin programs above all; ss alone, which would say it better, takes them half a second each time.
wait_listening() {
	local node=$1 port=$2 pid=$3 until=$((SECONDS + 30))
	while ((SECONDS < until)); do
		# Of TCP in state LISTEN, of UDP with no peer.
		# shellcheck disable=SC2016 # for the inner shell
		on "$node" sh -c '
			grep -qsE ":$1 0+:0000 (0A|07) " /proc/net/tcp /proc/net/tcp6 /proc/net/udp /proc/net/udp6 ||
			rdma resource show cm_id | grep -q "LISTEN.*:$0 "
		' "$port" "$(printf %04X "$port")" && return
		kill -0 "$pid" 2>/dev/null || return
		sleep 0.05
	done
	return 1
}

# wait_line FILE PATTERN [SECONDS]: until a line of the file matches; at most 20 s.
wait_line() {
	local tries
	for ((tries = 0; tries < ${3:-20} * 20; tries++)); do
		grep -q "$2" "$1" && return
		sleep 0.05
	done
	return 1
}

# Seconds that a program may take, of the $1 it needs at most, in $REPLY: no more than $PROGRAM_LIMIT, if there is one.
limited() {
	REPLY=$1
	[ -z "${PROGRAM_LIMIT:-}" ] || ((REPLY <= PROGRAM_LIMIT)) || REPLY=$PROGRAM_LIMIT
}

# both SECONDS SERVER-CMD -- CLIENT-CMD: one program on b and its partner
# on a. The client's output is left in $WORK/client, the server's in $WORK/server.
# Returns 0 if both ended well; $BOTH_STATUS says how.
both() {
	local limit server=() pid s c
	limited "$1"
	limit=$REPLY
	shift
	while [ "$1" != -- ]; do
		server+=("$1")
		shift
	done
	shift
	timeout -k 5 "$limit" ip netns exec b taskset -c 1 "${server[@]}" >"$WORK/server" 2>&1 &
	pid=$!
	wait_listening b "$PORT" "$pid"
	timeout -k 5 "$limit" ip netns exec a taskset -c 0 "$@" >"$WORK/client" 2>&1
	c=$?
	# The server has nothing more to do but to say goodbye.
	[ "$c" = 0 ] || kill "$pid" 2>/dev/null
	wait "$pid"
	s=$?
	# shellcheck disable=SC2034 # for the caller
	BOTH_STATUS="client $c, server $s"
	[ "$s$c" = 00 ]
}

# cm_ping SECONDS: by the connection manager. perftest's -R connects twice, and may come before its server does again.
cm_ping() {
	next_port
	both "$1" "$HERE/rping" -s -V -C 20 -p "$PORT" -- "$HERE/rping" -c -V -C 20 -p "$PORT" -a "$IP_B"
}

# ended LABEL STATUS BEGAN FILE: one line of a program that began then, with the last one of what it said.
ended() {
	printf '%-46s %-4s %6.1f s  %s\n' "$1" "$(ok_or_fail "$2")" "$(since "$3")" \
		"$(grep -v '^[-+[:space:]]*$' "$4" | tail -n 1 | tr -s ' ')"
	[ "$2" = 0 ] && return
	failed "$1: $BOTH_STATUS"
	# What went wrong may stand before what a program printed at its end.
	tail -n 40 "$WORK/server" "$WORK/client"
	return 1
}

# both_end LABEL SECONDS SERVER-CMD -- CLIENT-CMD: as both, on a machine that is $SLOW times as slow; and says how it went.
both_end() {
	local label=$1 limit=$2 began=$EPOCHREALTIME status=0
	shift 2
	both "$((limit * ${SLOW:-1}))" "$@" || status=1
	ended "$label" "$status" "$began" "$WORK/client"
}

# How the peers want to be connected: iWARP has only the CM.
perftest_mode() {
	[ "$TYPE" != siw ] || echo -R
}

# perftest SECONDS TOOL ARGS...: both ends of one perftest run.
perftest() {
	local limit=$1 tool=$2 mode
	shift 2
	next_port
	mode=$(perftest_mode)
	# Under every sanitizer, on a busy machine, either side may stand still for
	# longer than the half second in which perftest's QPs lose patience.
	[ "${KERNEL:-}" != debug ] || set -- -u 18 "$@"
	# shellcheck disable=SC2086 # an option or nothing
	both "$limit" "$tool" -d "$DEV_B" -x "$GID_B" -F $mode -p "$PORT" "$@" -- \
		"$tool" -d "$DEV_A" -x "$GID_A" -F $mode -p "$PORT" "$@" "$IP_B"
}

# The rows of figures of the last perftest.
perftest_rows() {
	grep -E '^ *[0-9]+ +[0-9]+ +[0-9.]' "$WORK/client"
}

# pingpong SECONDS ARGS...: both ends of ibv_rc_pingpong.
pingpong() {
	local limit=$1
	shift
	next_port
	both "$limit" ibv_rc_pingpong -d "$DEV_B" -g "$GID_B" -p "$PORT" "$@" -- \
		ibv_rc_pingpong -d "$DEV_A" -g "$GID_A" -p "$PORT" "$@" "$IP_B"
}

# The number of objects of both devices, by kind.
resources() {
	rdma resource show | sed 's/^[0-9]*: //' | sort
}

# Wait until the objects are those of $1 again.
resources_back_to() {
	local tries
	for ((tries = 0; tries < 100; tries++)); do
		[ "$(resources)" = "$1" ] && return
		sleep 0.1
	done
	return 1
}

# nothing_left BEFORE [LABEL]: the objects are those of BEFORE, or that is a failure.
nothing_left() {
	resources_back_to "$1" && return
	failed "${2:+$2: }objects are left over"
	rdma resource show
	return 1
}

# as_before BEFORE: whatever was done to the devices, nothing is left of it, and they serve the next.
as_before() {
	nothing_left "$1"
	still_works || {
		failed "afterwards, a new connection does not work: $BOTH_STATUS"
		tail -n 8 "$WORK/client" "$WORK/server"
	}
}

# hw_counter DEVICE NAME: as of now.
hw_counter() {
	cat "/sys/class/infiniband/$1/ports/1/hw_counters/$2"
}

# rails_set FEATURE on|off: of all rails, both ways.
rails_set() {
	local node rail
	for node in a b; do
		for ((rail = 0; rail < RAILS; rail++)); do
			on "$node" ethtool -K "rail$rail" "$1" "$2" || failed "ethtool: $1 $2"
		done
	done
}

# whole on|off: superframes are cut where rails do not take them whole.
whole() {
	WHOLE=$1
	rails_set tx-gso-list "$1"
}

# The root qdiscs of all rails, both ways: tc qdisc VERB ... WORDS.
all_rails() {
	local node rail
	for node in a b; do
		for ((rail = 0; rail < RAILS; rail++)); do
			tc -n "$node" qdisc "$1" dev "rail$rail" root "${@:2}" || exit
		done
	done
}

# impair NETEM...: all rails, from here on, in tc's words.
impair() {
	IMPAIRED=1
	all_rails replace netem limit 100000 "$@"
}

# And no more.
repair() {
	IMPAIRED=''
	all_rails del
}

# start_pattern NAME QPS: $PATTERN, which is verbs_pattern, until it is killed; once so many QPs can send. Its process
# is $PID.
start_pattern() {
	random_below 30000
	"$PATTERN" --seed "$REPLY" --time 100000 --max 30000 >"$WORK/$1" 2>&1 &
	PID=$!
	disown
	wait_connected "$2" || failed "$1 does not run: $(tail -n 2 "$WORK/$1")"
}

# unharmed NAME PID: it goes on.
unharmed() {
	kill -0 "$2" 2>/dev/null && return
	failed "$1: $(tail -n 4 "$WORK/$1")"
	return 1
}

end_pattern() {
	kill -KILL "$1" 2>/dev/null
	while kill -0 "$1" 2>/dev/null; do
		sleep 0.05
	done
}

# kill_patterns N: so many times it is killed in the midst of its traffic.
kill_patterns() {
	local i
	for ((i = 0; i < $1; i++)); do
		start_pattern killed 2
		random_below 300
		sleep "0.$((REPLY + 100))"
		unharmed killed "$PID"
		end_pattern "$PID"
	done
}

# set_devices FILE WORDS [DEVICE...]: a device's file in sysfs; default: both devices.
set_devices() {
	local device file=$1 words=$2
	shift 2
	(($#)) || set -- "$DEV_A" "$DEV_B"
	for device; do
		echo "$words" >"/sys/class/infiniband/$device/$file" || failed "$device: $file '$words' is refused"
	done
}

# The index of the RoCE v2 GID of address $2 of device $1, once there is one.
gid_index() {
	local dir=/sys/class/infiniband/$1/ports/1 want i tries
	# shellcheck disable=SC2046,SC2183 # the four bytes
	want=$(printf '0000:0000:0000:0000:0000:ffff:%02x%02x:%02x%02x' $(tr . ' ' <<<"$2"))
	for ((tries = 0; tries < 100; tries++)); do
		for ((i = 0; i < 16; i++)); do
			[ "$(cat "$dir/gids/$i" 2>/dev/null)" = "$want" ] || continue
			[ "$(cat "$dir/gid_attrs/types/$i" 2>/dev/null)" = "RoCE v2" ] || continue
			[[ $(cat "$dir/state") == *ACTIVE* ]] || continue
			echo "$i"
			return
		done
		sleep 0.05
	done
	return 1
}

# Wait until there are $1 QPs that can send.
wait_connected() {
	local tries
	for ((tries = 0; tries < 100; tries++)); do
		(($(rdma resource show qp | grep -c 'state RTS') < $1)) || return 0
		sleep 0.05
	done
	return 1
}

# A perftest that only has to work.
still_works() {
	perftest 100 ib_write_bw -s 65536 -n 300
}
