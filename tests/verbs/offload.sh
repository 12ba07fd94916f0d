#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Copies that a DMA engine makes: one in software (soft_dma/), which is slow, unordered, full or broken as it is told.
# Every byte, and the order in which they can be seen, is as if the CPU copied; what an engine cannot do, the CPU does.
#
#   offload.sh [PART...]    choice data broken endings switch gone, default: all; SEED=N repeats a run
#
# lab beside: --rails 2 --mtu 9000
# lab beside: --rails 2 --mtu 1500 --kernel debug -- data endings switch gone
# lab long: --rails 2 --mtu 1500 --kernel debug
set -u
# shellcheck source=tests/verbs/lib.sh
. "$(dirname "$0")/lib.sh"

[ "$TYPE" = medge ] || {
	echo "offloaded copies are medge's"
	exit 77
}
SOFT=/sys/module/soft_dma/parameters

file_of() {
	echo "/sys/class/infiniband/$1/offload"
}

# offload WORDS: both devices.
offload() {
	set_devices offload "$1"
}

# engine NAME=VALUE...: all that is not named is as an engine would like it.
engine() {
	local set
	for set in depth=512 delay_us=0 fail_every=0 scribble=1 shuffle=0 "$@"; do
		echo "${set#*=}" >"$SOFT/${set%=*}" || failed "no $set"
	done
}

# counted NAME: of both devices.
counted() {
	echo $(($(hw_counter "$DEV_A" "$1") + $(hw_counter "$DEV_B" "$1")))
}

shows() {
	[[ $(cat "$(file_of "$DEV_A")") =~ ^$1$ ]] || failed "$(file_of "$DEV_A") shows '$(cat "$(file_of "$DEV_A")")', not $1"
}

# refused WORDS ERROR: and nothing has changed.
refused() {
	local before said
	before=$(cat "$(file_of "$DEV_A")")
	said=$( (echo "$1" >"$(file_of "$DEV_A")") 2>&1) && failed "'$1' is taken"
	[[ $said == *"$2"* ]] || failed "'$1': ${said##*: }, not $2"
	[ "$(cat "$(file_of "$DEV_A")")" = "${3:-$before}" ] || failed "'$1' was refused, and '$before' became '$(cat "$(file_of "$DEV_A")")'"
}

choice() {
	local word channel
	offload off
	shows off
	for word in '' ' ' 'auto x' 'auto 0' 'auto -1' 'auto 4294967297' 'off 5' 'auto 5 5' "$(printf '%80s' x)"; do
		refused "$word" Invalid
	done
	refused dma7chan7 'No such device'
	# All channels fail, so none can be measured.
	engine fail_every=1
	refused auto 'Input/output error'
	channel=$(basename "$(find /sys/class/dma -name 'dma*chan0' | head -n 1)")
	refused "$channel" 'Input/output error'
	# None is as fast as a CPU.
	engine delay_us=3000
	refused auto 'No such device'
	echo "$channel" >"$(file_of "$DEV_A")" || failed "a slow engine is refused, though it is named"
	shows "$channel never"
	engine
	echo "$channel 2000" >"$(file_of "$DEV_A")" || failed "$channel is refused"
	shows "$channel 2000"
	# Another's; and who asks for what he cannot have has none.
	(echo "$channel 2000" >"$(file_of "$DEV_B")") 2>/dev/null && failed "both devices have $channel"
	refused dma7chan7 'No such device' off
	echo "$channel" >"$(file_of "$DEV_A")" || failed "$channel is refused"
	shows "$channel ([0-9]+|never)"
	echo "measured: $(cat "$(file_of "$DEV_A")")"
	offload off
}

# As many frames have been copied by the engine; of those, again by a CPU.
copied() {
	local frames=$1 again=$2
	frames=$(($(counted offload_frames) - frames)) again=$(($(counted offload_again) - again))
	echo "    $frames frames, $again of them again"
	((frames >= $3)) || failed "$4: the engine has copied $frames frames"
	case $5 in
	none) ((again == 0)) || failed "$4: $again frames were copied again" ;;
	some) ((again > 0)) || failed "$4: no copy has failed" ;;
	esac
}

# with LABEL AGAIN ENGINE...: programs that know every byte, through such an engine.
with() {
	local label=$1 again=$2 frames before
	shift 2
	engine "$@"
	frames=$(counted offload_frames) before=$(counted offload_again)
	run "$label: verbs_pattern" 120 "$PATTERN" --seed "$SEED" --rounds "$ROUNDS"
	run "$label: verbs_pattern --max 4 MiB" 120 "$PATTERN" --seed "$SEED" --rounds 3 --qps 1 --max 4194304
	# Who polls memory would see what a broken engine leaves there until the CPU has copied.
	engine "$@" scribble=0
	run "$label: verbs_order" 120 "$ORDER" --seed "$SEED" --ms "$MS"
	copied "$frames" "$before" 100 "$label" "$again"
}

data() {
	local refused
	offload 'auto 1500'
	with "in order" none
	with "in any order" none shuffle=1
	with "late, in any order" none shuffle=1 delay_us=200
	refused=$(<"$SOFT/refused")
	with "full" none depth=3 delay_us=100
	(($(<"$SOFT/refused") > refused)) || failed "the engine was never full"
	impair loss 1% duplicate 1% reorder 20% delay 500us
	with "in any order, frames lost and twice" none shuffle=1
	repair
	engine
	run "late copies: verbs_odp" 300 "$ODP" || failed "verbs_odp"
	offload off
	engine
}

broken() {
	offload 'auto 1500'
	with "one of 20 fails" some fail_every=20
	with "one of 3 fails, late, in any order" some fail_every=3 delay_us=100 shuffle=1
	with "all fail" some fail_every=1
	offload off
	engine
}

# What has been given up is not written to; and nothing is left of who is killed.
endings() {
	local before
	offload 'auto 1500'
	engine delay_us=400 shuffle=1
	before=$(resources)
	run "given up in the midst of it" 200 "$OFFLOAD" --seed "$SEED" --rounds "$ENDINGS"
	# What it leaves to the CPU then, nobody does any more.
	engine delay_us=400 shuffle=1 fail_every=2
	run "given up, as the engine fails" 200 "$OFFLOAD" --seed "$SEED" --rounds "$ENDINGS"
	kill_patterns "$KILLS"
	offload off
	engine
	as_before "$before"
}

# Engines come and go under traffic.
switch() {
	local i frames again
	engine delay_us=50 shuffle=1
	frames=$(counted offload_frames) again=$(counted offload_again)
	start_pattern switched 2
	for ((i = 0; i < 20; i++)); do
		offload 'auto 1500'
		sleep 0.05
		[ $((i % 2)) = 0 ] && offload off
		sleep 0.02
	done
	unharmed switched "$PID"
	end_pattern "$PID"
	offload off
	engine
	copied "$frames" "$again" 20 "switched" any
}

# A device goes with copies under way; an engine does not before it is given back.
gone() {
	offload 'auto 1500'
	rmmod soft_dma 2>/dev/null && failed "an engine that is in use can be removed"
	engine delay_us=2000
	start_pattern robbed 2
	sleep 0.3
	unharmed robbed "$PID"
	on b rdma link delete "$DEV_B" || failed "$DEV_B cannot be removed"
	sleep 0.2
	end_pattern "$PID"
	on b rdma link add "$DEV_B" type medge netdev "$NETDEV_B" || failed "$DEV_B does not come back"
	gid_index "$DEV_B" "$IP_B" >/dev/null
	# It has taken a channel, if it is a fast one.
	echo "a new device has $(cat "$(file_of "$DEV_B")")"
	offload off
	rmmod soft_dma || failed "an engine that nobody has cannot be removed"
	insmod "$(test_module soft_dma)" || exit
}

ROUNDS=40 MS=60 KILLS=6 ENDINGS=20
[ "${KERNEL:-}" != debug ] || ROUNDS=6 MS=15 KILLS=3 ENDINGS=5
choose_seed
PATTERN=$(program verbs_pattern) && ORDER=$(program verbs_order) && OFFLOAD=$(program verbs_offload) &&
	ODP=$(program verbs_odp) || exit
shows off
insmod "$(test_module soft_dma)" || exit
(($#)) || set -- choice data broken endings switch gone
for part; do
	case $part in
	choice) choice ;;
	data) data ;;
	broken) broken ;;
	endings) endings ;;
	switch) switch ;;
	gone) gone ;;
	*)
		echo "usage: offload.sh [choice|data|broken|endings|switch|gone...]" >&2
		exit 2
		;;
	esac
done
offload off
rmmod soft_dma || failed "the engine cannot be removed"
verdict
