#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# What share of its rails ib_write_bw of 1 MiB gets: equal rails, one of
# 100 Mbit/s, one that is 10 ms longer; by each scheduler, beside what bare
# frames reach over the same rails in the same boot, and MultiEdge's figures.
#
#   a: bond0 - rail0 .. railN, netem rate each - bond0 :b
#
#   rails_bw.sh         the default scheduler, what has a limit: 10 s, with 4 rails 30 s
#   rails_bw.sh full    each scheduler; lab figures runs it for 1, 2, 4
#                       and 8 rails, and draws the table
#
# Shares are of nominal: payload bits over rails times rate. Payload is counted
# by the receiving device while perftest runs, since perftest's own figure hangs
# on its idea of the CPU's clock. On a busy machine a run may be short of its
# limit: the best of three counts. Where it is short, and bare frames do not reach
# BARE_LEAST, or others took more than STOLEN_MOST of the CPUs' time before or after
# each of them, the machine is too busy to judge: nothing is said of the row.
#
# lab long: --rails 1 --rate 1gbit --mtu 9000
# lab long: --rails 2 --rate 1gbit --mtu 9000
# lab long: --rails 4 --rate 1gbit --mtu 9000
# lab long: --rails 8 --rate 1gbit --mtu 9000
#
# shellcheck disable=SC2317 # judge calls what its arguments name
set -u
# shellcheck source=tests/verbs/lib.sh
. "$(dirname "$0")/lib.sh"

WINDOW=1
TRIES=3
MBIT=1000
HDR=64
BARE_LEAST=970
STOLEN_MOST=10
SECONDS_MOST=60
JUDGED=0

[[ ${RATE:-} == 1gbit && $TYPE == medge ]] || {
	echo "the figures are those of medge over rails of --rate 1gbit"
	exit 77
}
SCHEDULERS=(earliest) FULL=
[ "${1:-}" != full ] || SCHEDULERS=(round-robin weighted weighted-dynamic earliest) FULL=1 WINDOW=2
SECONDS_ASKED=$((WINDOW + 3))

# shape RAIL NETEM-WORDS...: both ways.
shape() {
	local node rail=$1
	shift
	for node in a b; do
		tc -n "$node" qdisc replace dev "rail$rail" root netem limit 100000 "$@" || exit
	done
}

choose() {
	on a sh -c "echo $1 >/sys/class/infiniband/$DEV_A/scheduler" &&
		on b sh -c "echo $1 >/sys/class/infiniband/$DEV_B/scheduler"
}

received() {
	rdma statistic show link "$1/1" | tr ' ' '\n' | sed -n '/^rx_bytes$/ { n; p }'
}

# rails_received NODE...: bytes that all rails brought to these.
rails_received() {
	local node
	for node; do
		# shellcheck disable=SC2016 # for the node's shell
		on "$node" bash -c 'cat /sys/class/net/rail*/statistics/rx_bytes'
	done | awk '{ s += $1 } END { printf "%.0f", s }'
}

# per_mille BYTES SECONDS MBIT
per_mille() {
	awk -v b="$1" -v t="$2" -v r="$3" 'BEGIN { printf "%d", b * 8 / t / r / 1e3 }'
}

# write_share MBIT [PERFTEST-ARGS]: sets SHARE. Perftest may be done before the window is, by its own clock.
write_share() {
	until write_window "$@"; do
		SECONDS_ASKED=$((2 * SECONDS_ASKED))
		if ((SECONDS_ASKED > SECONDS_MOST)); then
			SHARE=0
			failed "ib_write_bw ended within $WINDOW s"
			return
		fi
	done
}

write_window() {
	local mbit=$1 t0 t1 bytes=0 pid dev devs=("$DEV_B") end status=0
	shift
	[[ ${1:-} != -b ]] || devs=("$DEV_A" "$DEV_B")
	t0=$(received "$DEV_B")
	perftest $((SECONDS_ASKED + 30)) ib_write_bw -s 1048576 -D "$SECONDS_ASKED" "$@" &
	pid=$!
	# It takes a second or two to begin, and another to be even.
	for _ in {1..200}; do
		(($(received "$DEV_B") - t0 < 20000000)) || break
		sleep 0.02
	done
	sleep 1
	t0=$EPOCHREALTIME
	for dev in "${devs[@]}"; do
		bytes=$((bytes - $(received "$dev")))
	done
	sleep "$WINDOW"
	t1=$EPOCHREALTIME
	for dev in "${devs[@]}"; do
		bytes=$((bytes + $(received "$dev")))
	done
	end=$(received "$DEV_B")
	sleep 0.1
	(($(received "$DEV_B") != end)) || status=1
	wait "$pid" || failed "ib_write_bw $*"
	SHARE=$(per_mille "$bytes" "$(awk -v a="$t0" -v b="$t1" 'BEGIN { print b - a }')" $((mbit * ${#devs[@]})))
	return "$status"
}

# bare_share MBIT [-b]: sets SHARE.
bare_share() {
	local before after t0 t1 rails from=(a) to=(b) node pid pids=()
	[[ ${2:-} != -b ]] || from=(a b) to=(a b)
	rails=$(seq -s ' ' -f 'rail%g' 0 $((RAILS - 1)))
	for node in "${from[@]}"; do
		# shellcheck disable=SC2086 # several
		on "$node" "$BARE" $((WINDOW + 1)) "$MTU" $rails &
		pids+=($!)
	done
	sleep 0.5
	t0=$EPOCHREALTIME before=$(rails_received "${to[@]}")
	sleep "$WINDOW"
	t1=$EPOCHREALTIME after=$(rails_received "${to[@]}")
	for pid in "${pids[@]}"; do
		wait "$pid" || failed "bare_frames"
	done
	# Of a superframe that was not cut, its one header is counted, and no frame's.
	SHARE=$(per_mille $(((after - before) * (MTU - HDR) / (MTU - 28))) \
		"$(awk -v a="$t0" -v b="$t1" 'BEGIN { print b - a }')" $(($1 * ${#to[@]})))
}

percent() {
	printf '%d.%d %%' $(($1 / 10)) $(($1 % 10))
}

# Does nobody else want the CPUs?
quiet() {
	local cpu
	: >"$WORK/stolen"
	for cpu in 0 1; do
		taskset -c "$cpu" "$STOLEN" 300 >>"$WORK/stolen" &
	done
	wait
	awk -v most="$STOLEN_MOST" '$1 > most { busy = 1 } END { exit busy }' "$WORK/stolen"
}

# judge LIMIT CMD...: the best of some tries, in BEST; QUIET, if one of them was undisturbed.
judge() {
	local limit=$1 try was_quiet
	shift
	BEST=0 QUIET=
	for ((try = 0; try < TRIES; try++)); do
		was_quiet=
		! quiet || was_quiet=1
		"$@"
		((SHARE <= BEST)) || BEST=$SHARE
		((BEST < limit)) || break
		[[ ! $was_quiet ]] || ! quiet || QUIET=1
	done
}

# row NAME MBIT LIMIT THESIS [PERFTEST-ARGS]: LIMIT 0: only shown.
row() {
	local name=$1 mbit=$2 limit=$3 thesis=$4 scheduler
	shift 4
	((limit)) || [[ $FULL ]] || return
	for scheduler in "${SCHEDULERS[@]}"; do
		local least=$limit bare=$((BARE_SHARE * 98 / 100))
		[ "$scheduler" = earliest ] || least=0
		# One way 98 % of what bare frames reach, too; unequal rails no more than that.
		case $name in
		"one way") ((least == 0 || least >= bare)) || least=$bare ;;
		"both ways") ;;
		*) ((least < bare)) || least=$bare ;;
		esac
		choose "$scheduler" || failed "scheduler $scheduler"
		judge "$least" write_share "$mbit" "$@"
		printf '%-26s %-17s %9s %9s %9s  %s\n' "$name" "$scheduler" "$(percent "$BEST")" \
			"$(percent "$BARE_SHARE")" "$( ((limit && least)) && percent "$least")" "$thesis"
		if ((BEST >= least)); then
			((least == 0)) || JUDGED=$((JUDGED + 1))
		elif [[ $QUIET ]] && ((BARE_SHARE >= BARE_LEAST)); then
			failed "$name, $scheduler: $(percent "$BEST")"
		else
			echo "  but the machine was busy"
		fi
	done
}

# bare MBIT [-b]: what the rails as they are shaped now carry.
bare() {
	local most=$((1000 * (MTU - HDR) / (MTU + 14)))
	judge 985 bare_share "$@"
	# Clocks and counters are not read in the same moment.
	BARE_SHARE=$((BEST < most ? BEST : most))
}

BARE=$(program bare_frames) && STOLEN=$(program stolen) || exit
all=$((RAILS * MBIT))
printf '%-26s %-17s %9s %9s %9s  %s\n' "$RAILS rails of 1 Gbit/s" scheduler reached bare limit "MultiEdge (2008)"
bare "$all"
# The lab's memory comes from the host when it is first used: not in the first row's time.
write_share "$all"
case $RAILS in
1 | 2) row "one way" "$all" 970 "99.2 %, SRR" ;;
4) row "one way" "$all" 970 "" ;;
8) row "one way" "$all" 950 "about 65 %, SRR" ;;
*) row "one way" "$all" 0 "" ;;
esac
if ((RAILS == 4)) || [[ $FULL ]]; then
	bare "$all" -b
	row "both ways" "$all" $((RAILS == 4 ? 900 : 0)) "" -b
fi
if ((RAILS == 4)); then
	sum=$((3 * MBIT + MBIT / 10))
	shape 3 rate 100mbit
	bare "$sum"
	row "one of 100 Mbit/s" "$sum" 950 "WD 11 % above WSRR"
	shape 3 delay 10ms rate 1gbit
	bare "$all"
	row "one 10 ms longer" "$all" 950 ""
	shape 3 rate 1gbit
fi
choose earliest
if ((JUDGED + FAILED == 0)); then
	echo "the machine is too busy to judge"
	exit 77
fi
verdict
