#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The poller: posts without system calls while there is traffic, sleep when there is none, and nothing lost when it
# is switched on and off under traffic, or lied to.
#
#   polling.sh [SECONDS]    under traffic; default 5
#
# Streams are those for which system calls matter, and not what a host takes to wake up for each: so it stays awake.
#
# lab: --rails 2 --mtu 9000 --host awake
# lab beside: --rails 2 --mtu 1500 --kernel debug
set -u
# shellcheck source=tests/verbs/lib.sh
. "$(dirname "$0")/lib.sh"

if [ "$TYPE" != medge ]; then
	echo "the poller is medge's own"
	exit 77
fi
LIMIT=${1:-5}
choose_seed
SYS=/sys/class/infiniband

# polling MODE [DEVICE...]
polling() {
	set_devices polling "$@"
}

idle_us() {
	set_devices polling_idle_us "$1"
}

# Of node a's device, once what was just done has been counted.
counter() {
	sleep 0.05
	hw_counter "$DEV_A" "$1"
}

# The process ids of the pollers.
pollers() {
	pgrep '^medge_poll'
}

# Ticks of CPU that the pollers have used.
used() {
	local pid
	for pid in $(pollers); do
		awk '{ print $14 + $15 }' "/proc/$pid/stat"
	done | paste -sd+ | bc
}

# Nothing that cannot be meant is taken.
words() {
	local word
	[ "$(cat "$SYS/$DEV_A/polling")" = "off [auto] asked all" ] || failed "it does not begin with auto: $(cat "$SYS/$DEV_A/polling")"
	[ "$(cat "$SYS/$DEV_A/polling_idle_us")" = 1000 ] || failed "polling_idle_us: $(cat "$SYS/$DEV_A/polling_idle_us")"
	for word in on '' allll 1 au; do
		! { echo "$word" >"$SYS/$DEV_A/polling"; } 2>/dev/null || failed "polling takes '$word'"
	done
	for word in -1 10000001 x ''; do
		! { echo "$word" >"$SYS/$DEV_A/polling_idle_us"; } 2>/dev/null || failed "polling_idle_us takes '$word'"
	done
	polling off
	[ -z "$(pollers)" ] || failed "a thread, though nobody polls"
}

# auto: a stream is taken over while a CPU idles, and who waits for each of his ops is let alone. Of 64 QPs, of which
# each has 128 of its 200 posts before the next one's turn comes, it is seen in the first round. Idle is what others leave
# so: one of several tries counts.
streams() {
	# Hundreds for each QP: perftest counts completions by the hundred, and with other numbers takes many QPs for
	# done that are not, and waits for ever.
	local try size=4096 posts=19200 rang wakes woke qps many=(1 16 64)
	# Where all takes ten times as long, no CPU idles beside 16 QPs, and small posts are found late by the kernel,
	# which is in no doorbell then.
	[ "${KERNEL:-}" != debug ] || size=65536 posts=2400 many=(1)
	polling auto
	for qps in "${many[@]}"; do
		((qps < 64)) || posts=12800
		for try in {1..5}; do
			rang=$(counter doorbells)
			woke=$(counter poller_wakes)
			perftest 100 ib_write_bw -s "$size" -q "$qps" -n "$((posts / qps))" || failed "ib_write_bw: $BOTH_STATUS"
			rang=$(($(counter doorbells) - rang))
			woke=$(($(counter poller_wakes) - woke))
			echo "polling auto, try $try: $rang doorbells for $posts posts on $qps QPs   $(perftest_rows | xargs)"
			((woke == 0 || rang > posts / 2)) || break
		done
		((woke > 0 && rang <= posts / 2)) || failed "no stream is taken of $qps QPs"
	done
	wakes=$(counter poller_wakes)
	((wakes > 0)) || failed "the poller was never awake"
	perftest 100 ib_read_lat -n 1000 || failed "ib_read_lat: $BOTH_STATUS"
	[ "$(counter poller_wakes)" = "$wakes" ] || failed "the poller was awake for ib_read_lat"
	polling off
}

# rated: a stream that is as fast as its rails is let alone; another CPU could only be late. With all sanitizers it is
# not. What it sends while it begins may be taken for all that it can, and the poller for what makes it more, for longer
# than this takes: one of several tries counts.
rated() {
	local try wakes tried rang
	impair rate 10gbit
	polling auto
	for try in {1..4}; do
		wakes=$(counter poller_wakes)
		tried=$(counter poller_tried)
		rang=$(counter doorbells)
		perftest 100 ib_write_bw -s 1048576 -n 6000 || failed "ib_write_bw: $BOTH_STATUS"
		wakes=$(($(counter poller_wakes) - wakes))
		tried=$(($(counter poller_tried) - tried))
		rang=$(($(counter doorbells) - rang))
		echo "polling auto, rails of 10 Gbit/s, try $try: tried $tried times, $wakes wakes, $rang doorbells   $(perftest_rows | xargs)"
		((tried <= 8)) || failed "a stream is tried again and again, in vain"
		# What was not tried was not taken; what was is let go, or it would not be tried again.
		((wakes > 0 && tried < 2)) || break
	done
	((wakes == 0 || tried >= 2)) || failed "a stream is taken that its rails hold back"
	polling off
	repair
}

# late: where nobody polls, streams of RC and UC ring for many posts at once, and who posts receives that messages wait
# for rings for many of them; unless polling is off.
late() {
	local p name slow=()
	[ "${KERNEL:-}" != debug ] || slow=(--slow)
	for name in late_posts late_receives; do
		p=$(program "$name") || exit
		polling off
		run "$name, polling off" 60 "$p" --never
		polling auto
		run "$name, polling auto" 60 "$p" "${slow[@]}" && grep doorbells "$WORK/out"
	done
	polling off
}

# shared: of a stream of long ops the poster sends as well, at least to find out whether that does more; not where all
# are polled, who need no system call. With all sanitizers, what is cut comes so slowly that there are few trials.
shared() {
	local p on
	local -A wanted=([on]=20 [off]=20)
	[ "${KERNEL:-}" != debug ] || wanted=([on]=5 [off]=any)
	p=$(program long_stream) || exit
	for on in on off; do
		whole "$on"
		polling auto
		run "long_stream, superframes $on" 120 "$p" "${wanted[$on]}" 4000 "$SEED"
	done
	whole on
	polling all
	run "long_stream, polling all" 60 "$p" none 500 "$SEED"
	polling off
}

# helped: of many streams of short ops he sends some in the poller's place, at least to find out, in the same way.
helped() {
	local p doorbells=100
	[ "${KERNEL:-}" != debug ] || doorbells=20
	p=$(program short_streams) || exit
	polling auto
	run "short_streams" 120 "$p" "$doorbells" 4000 "$SEED"
	polling all
	run "short_streams, polling all" 60 "$p" none 500 "$SEED"
	polling off
}

# lent: where no CPU idles, who spins for completions stands in for the poller; he may stop at any time, by being killed,
# too; and nobody does where others say who polls.
lent() {
	local p try mode lends=1000
	[ "${KERNEL:-}" != debug ] || lends=100
	p=$(program long_stream) || exit
	polling auto
	run "long_stream beside who spins" 120 "$p" any 4000 "$SEED" "$lends" && tail -n 1 "$WORK/out"
	for try in {1..6}; do
		random_below 900
		timeout -s KILL "0.$((REPLY + 100))" "$p" any 4000 "$SEED" any >"$WORK/out" 2>&1
		[ $? = 137 ] || failed "long_stream that is killed, try $try: $(tail -n 1 "$WORK/out")"
	done
	for mode in off asked all; do
		polling "$mode"
		run "long_stream beside who spins, polling $mode" 60 "$p" any 500 "$SEED" none
	done
	polling off
}

# asked: only who asked is polled. Ratios are those of a machine with two virtual CPUs that the poller shares.
asked() {
	local p
	p=$(program polled_posts -lmedge) || exit
	run "polled_posts, polling off" 60 taskset -c 0 "$p" --unpolled --ms 20
	idle_us 1000000
	polling asked
	run "polled_posts, polling asked" 60 taskset -c 0 "$p" && tail -n 3 "$WORK/out"
	polling off
	idle_us 1000
	[ -z "$(pollers)" ] || failed "a thread is left, though nobody polls"
}

# all: programs that know nothing of it ring no more once the poller is awake, which may take milliseconds where all
# CPUs are taken, and as long again whenever the host stops one of them: one of several tries counts.
steady() {
	local mode tool before rang
	idle_us 10000000
	for tool in "ib_write_bw -s 64 -n 20000" "ib_send_bw -c UD -s 1024 -n 2000 -r 2000"; do
		for mode in off all all all all all; do
			polling "$mode" "$DEV_A"
			before=$(counter doorbells)
			# shellcheck disable=SC2086 # several words
			perftest 60 $tool || {
				failed "$tool, polling $mode: $BOTH_STATUS"
				tail -n 3 "$WORK/client" "$WORK/server"
			}
			rang=$(($(counter doorbells) - before))
			printf '%-40s polling %-4s %7d doorbells   %s\n' "$tool" "$mode" "$rang" "$(perftest_rows | xargs)"
			# Receives ring, and what the program does before its stream.
			[ "$mode" = off ] || ((rang >= 100)) || break
		done
		((rang < 100)) || failed "$tool rings $rang times, though it is polled"
	done
	polling off
	idle_us 1000
}

# kept: of long ops none is taken for as long as it takes to send one, and who polls in vain rings; the poller has its
# own CPU and goes on alone. Others may have that CPU, or the host: one of several tries counts.
kept() {
	local try rang kept messages=4000
	polling all "$DEV_A"
	for try in {1..5}; do
		rang=$(counter doorbells)
		kept=$(counter poller_kept)
		perftest 100 ib_write_bw -s 1048576 -n "$messages" || failed "ib_write_bw: $BOTH_STATUS"
		rang=$(($(counter doorbells) - rang))
		kept=$(($(counter poller_kept) - kept))
		echo "polling all, 1 MiB, try $try: $rang doorbells for $messages posts, $kept of them kept   $(perftest_rows | xargs)"
		((kept == 0 || rang - kept >= 20 + rang / 4)) || break
	done
	((kept > 0)) || failed "whoever rings beside the poller sends"
	((rang - kept < 20 + rang / 4)) || failed "of $rang doorbells, $kept are left to the poller"
	polling off
}

# rails_napi GRO TSO DEFER TIMEOUT: whether veths have NAPI instances, for all skbs, and how those put off interrupts.
rails_napi() {
	local node rail
	for node in a b; do
		for ((rail = 0; rail < RAILS; rail++)); do
			# shellcheck disable=SC2016 # for the inner shell
			on "$node" sh -c '
				ethtool -K "$0" gro "$1" tso "$2" && cd "/sys/class/net/$0" &&
				echo "$3" >napi_defer_hard_irqs && echo "$4" >gro_flush_timeout
			' "rail$rail" "$@" || failed "rail$rail of $node: gro $1"
		done
	done
}

# interrupts: rails with NAPI put off interrupts while somebody looks, and the poller takes the frames. All but a few in
# steady state; but where others have the CPUs for longer than a rail waits, it asks for an interrupt, as it should: one
# of several tries counts. Programs that wait for events leave the pollers a CPU.
interrupts() {
	local tool try all polled rang
	rails_napi on off 100000 20000000
	idle_us 1000000
	polling all
	for tool in "ib_read_bw -e -s 4096 -n 5000" "ib_send_lat -e -n 2000"; do
		for try in {1..5}; do
			all=$(counter rx_skbs)
			polled=$(counter rx_polled)
			rang=$(counter doorbells)
			# shellcheck disable=SC2086 # several words
			perftest 60 $tool || failed "$tool: $BOTH_STATUS"
			all=$(($(counter rx_skbs) - all))
			polled=$(($(counter rx_polled) - polled))
			rang=$(($(counter doorbells) - rang))
			echo "$tool, try $try: of $all skbs, the poller took $polled without an interrupt; $rang doorbells"
			((polled < all * 95 / 100 || rang > 200)) || break
		done
		((all > 0)) || failed "$tool: no skb came"
		((polled >= all * 95 / 100)) || failed "$tool: the poller took $polled of $all skbs"
		# The first posts ring: the poller sleeps.
		((rang <= 200)) || failed "$tool rings $rang times, though it is polled"
	done
	polling off
	idle_us 1000
	rails_napi off on 0 0
	polled=$(counter rx_polled)
	perftest 60 ib_read_bw -s 4096 -n 500 || failed "ib_read_bw: $BOTH_STATUS"
	[ "$(counter rx_polled)" = "$polled" ] || failed "it takes frames though it is off"
}

# starved: the poller may only run on the poster's CPU, when he leaves it to anybody, which who spins does not: then he
# rings. Without that, a batch of posts waits for seconds.
starved() {
	local pid rang posts=4000 began=$EPOCHREALTIME
	[ "${KERNEL:-}" != debug ] || posts=2000
	polling all
	for pid in $(pollers); do
		taskset -p -c 0 "$pid" >/dev/null || failed "cannot bind the poller"
		chrt -i -p 0 "$pid" || failed "cannot make the poller idle"
	done
	rang=$(counter doorbells)
	next_port
	both 60 taskset -c 1 ib_write_bw -F -d "$DEV_B" -x "$GID_B" -p "$PORT" -s 4096 -n "$posts" -- \
		taskset -c 0 ib_write_bw -F -d "$DEV_A" -x "$GID_A" -p "$PORT" -s 4096 -n "$posts" "$IP_B" ||
		failed "ib_write_bw beside a poller without a CPU: $BOTH_STATUS"
	rang=$(($(counter doorbells) - rang))
	echo "a poller without a CPU: $rang doorbells for $posts posts, $(since "$began") s   $(perftest_rows | xargs)"
	((rang > 10 && rang < posts)) || failed "beside a poller without a CPU, $rang doorbells"
	polling off
}

# idle: the poller sleeps, and nothing happens.
idle() {
	local wakes before
	polling all
	perftest 60 ib_write_bw -s 4096 -n 500 || failed "ib_write_bw: $BOTH_STATUS"
	sleep 0.2
	wakes=$(counter poller_wakes)
	before=$(used)
	((wakes > 0)) || failed "the poller was never awake"
	sleep 1
	[ "$(pollers | wc -l)" = 2 ] || failed "there are not two pollers: $(pollers | xargs)"
	[ "$(used)" = "$before" ] || failed "idle, the pollers used $(($(used) - before)) ticks in a second"
	[ "$(counter poller_wakes)" = "$wakes" ] || failed "idle, the poller woke up $(($(counter poller_wakes) - wakes)) times"
	echo "idle: no tick used, none of $wakes wakes in a second"
	polling off
}

# under_traffic LABEL CMD...: switch at random while CMD runs.
under_traffic() {
	local label=$1 modes=(off auto asked all) pid
	shift
	"$@" >"$WORK/traffic" 2>&1 &
	pid=$!
	switches=0
	while kill -0 "$pid" 2>/dev/null; do
		random_below 4
		polling "${modes[REPLY]}" "$DEV_A"
		random_below 4
		polling "${modes[REPLY]}" "$DEV_B"
		random_below 4
		idle_us $((10 ** (REPLY + 1)))
		random_below 60
		sleep "0.$(printf %03d "$REPLY")"
		switches=$((switches + 1))
	done
	if wait "$pid"; then
		echo "$label, $switches switches: $(tail -n 1 "$WORK/traffic")"
	else
		failed "$label, after $switches switches: $(tail -n 5 "$WORK/traffic")"
	fi
	((switches > 5)) || failed "$label: only $switches switches"
	idle_us 1000
	polling off
}

switched() {
	local pattern objects times=4
	[ "${KERNEL:-}" != debug ] || times=1
	pattern=$(program verbs_pattern) && objects=$(program verbs_objects) || exit
	under_traffic verbs_pattern timeout 200 "$pattern" --seed "$SEED" --time "$LIMIT" --qps 4 --max 100000
	under_traffic "verbs_objects, twice" timeout 200 bash -c "'$objects' && '$objects'"
	# What is posted there must count before a poller has looked: with SQD one of eight times it did not.
	polling all
	run "verbs_objects, $times times, polling all" 200 bash -c "for ((i = 0; i < $times; i++)); do '$objects' || exit; done"
	polling off
}

# Liars may keep the poller awake, at their own QPs.
lied_to() {
	local torture
	torture=$(program ring_torture) || exit
	polling all
	run "ring_torture, polling all" 200 "$torture" 2 "$SEED"
	still_works || failed "afterwards, a new connection does not work: $BOTH_STATUS"
}

before=$(resources)
words
late
[ "${KERNEL:-}" = debug ] || {
	asked
	steady
	kept
	rated
}
streams
shared
helped
lent
starved
interrupts
idle
switched
lied_to
nothing_left "$before"
# The devices go while they are polled.
polling all
verdict
