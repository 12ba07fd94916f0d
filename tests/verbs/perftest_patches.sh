#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# perftest with the series in perftest-patches/, as `lab build perftest` has built it: a clock without /proc/cpuinfo's
# help, every test over every type of device, what each rail carried, and what fences cost.
#
#   perftest_patches.sh [--full]    --full: every tool over every type, and more of the fences' figures
#
# lab long: --type medge,rxe,siw --rails 2 --mtu 9000
#
set -u
# shellcheck source=tests/verbs/lib.sh
. "$(dirname "$0")/lib.sh"

ROUNDS=1 SIZES=(64) TOOLS=(ib_write_bw ib_read_lat)
case ${1:-} in
--full) ROUNDS=5 SIZES=(64 4096 65536) TOOLS=(ib_{write,read,send}_{bw,lat}) ;;
'') [ "$TYPE" != medge ] || TOOLS+=(ib_send_bw) ;;
*)
	echo "usage: perftest_patches.sh [--full]" >&2
	exit 2
	;;
esac
PATCHED=${LAB_BUILD%/provider/build}/perftest
if ! [ -e "$PATCHED/.complete" ]; then
	echo "perftest is not built: run tests/lab/lab build perftest"
	exit 77
fi

# must LABEL PERFTEST-ARGS...: a perftest that ends well.
must() {
	local label=$1 tool=$2
	shift 2
	if perftest 60 "$PATCHED/$tool" "$@"; then
		echo "ok   $label: $(perftest_rows | tail -n 1 | xargs)"
		return
	fi
	failed "$label: $BOTH_STATUS"
	tail -n 8 "$WORK/client" "$WORK/server"
	return 1
}

# refuses LABEL REASON PERFTEST-ARGS...: one that ends by itself, with the reason.
refuses() {
	local label=$1 reason=$2 tool=$3 out
	shift 3
	if out=$(on a timeout 10 "$PATCHED/$tool" -d "$DEV_A" -x "$GID_A" -F "$@" 2>&1); then
		failed "$label: it was not refused"
	elif [[ $out != *"$reason"* ]]; then
		failed "$label: refused without the reason '$reason': $out"
	else
		echo "ok   $label: $(grep -F "$reason" <<<"$out" | xargs)"
	fi
}

# The lab lends its guests the host's "cpu MHz". This runs a program that does not see it.
clockless() {
	cat >"$WORK/clockless" <<END
#!/bin/sh
exec unshare -m sh -c 'umount /proc/cpuinfo; ! grep -q "^cpu MHz" /proc/cpuinfo && exec "\$@"' sh "$1" "\$@"
END
	chmod +x "$WORK/clockless"
	perftest 60 "$WORK/clockless" -s 65536 -n 300
}

# The distribution's own shows that the clock matters.
clock() {
	grep -q '^cpu MHz' /proc/cpuinfo || failed "the lab lends no clock any more"
	clockless ib_write_bw
	if perftest_rows | awk '$4 > 0 { found = 1 } END { exit !found }'; then
		failed "perftest without the series has a figure: this test shows nothing"
		cat "$WORK/client"
	fi
	if clockless "$PATCHED/ib_write_bw" && ! grep -q Correlation "$WORK/client" &&
		perftest_rows | awk '$4 > 0 { found = 1 } END { exit !found }'; then
		echo "ok   a figure without a clock in /proc/cpuinfo: $(perftest_rows | xargs)"
		return
	fi
	failed "no figure without a clock in /proc/cpuinfo: $BOTH_STATUS"
	cat "$WORK/client" "$WORK/server"
}

every_test() {
	local tool
	for tool in "${TOOLS[@]}"; do
		must "$tool" "$tool" -s 4096 -n 200
	done
	# siw has none.
	[ "$TYPE" = siw ] || must ib_atomic_bw ib_atomic_bw -n 200
	# With one report for each size, finding the clock for each would take 5 seconds.
	[ "$TYPE" != medge ] || must "ib_write_bw -a" ib_write_bw -a -n 20
}

rails() {
	local payload=$((65536 * 2000))
	if [ "$TYPE" != medge ]; then
		refuses "--rails" "has no rails to report" ib_write_bw --rails
		return
	fi
	must "--rails" ib_write_bw --rails -s 65536 -n 2000 || return
	sed -n '/#rail/,$p' "$WORK/client" | head -n "$((RAILS + 1))"
	awk -v rails="$RAILS" -v payload="$payload" '
		/#rail/ { table = 1; next }
		table && NF == 5 { n++; sum += $2; share += $3 }
		END { exit !(n == rails && sum > payload && sum < 1.2 * payload && share > 99 && share < 101) }
	' "$WORK/client" || failed "the split over the rails is not that of $payload bytes"
}

# The best of some rounds, in messages a second, of each way to keep order.
fence_rate() {
	local size=$1 n=$2
	shift 2
	perftest 60 "$PATCHED/ib_write_bw" -s "$size" -n "$n" "$@" || return
	perftest_rows | awk '{ printf "%d\n", $5 * 1e6 }'
}

fence_modes() {
	cat <<'END'
relaxed, no fence|-l 16 --relaxed_qp
relaxed, --fence=backward|-l 16 --relaxed_qp --fence=backward
relaxed, --fence=forward|-l 16 --relaxed_qp --fence=forward
relaxed, --fence=both|-l 16 --relaxed_qp --fence=both
ordinary QP, relaxed memory|-l 16
ordinary QP, strict memory|-l 16 --disable_pcie_relaxed
drained at the sender|-t 1
END
}

# fence_figures SIZE N: prints a table; leaves the percentages of no fence in PERCENT.
fence_figures() {
	local size=$1 n=$2 round name options rate i
	local names=() best=()
	for ((round = 0; round < ROUNDS; round++)); do
		i=0
		while IFS='|' read -r name options; do
			# shellcheck disable=SC2086 # several words
			rate=$(fence_rate "$size" "$n" $options) || {
				failed "$name, $size bytes: no figure"
				tail -n 5 "$WORK/client" "$WORK/server"
				return 1
			}
			names[i]=$name
			((rate <= ${best[i]:-0})) || best[i]=$rate
			i=$((i + 1))
		done < <(fence_modes)
	done
	PERCENT=()
	printf '%-30s %14s %8s\n' "writes of $size bytes" "messages/s" "rate"
	for ((i = 0; i < ${#names[@]}; i++)); do
		PERCENT[i]=$((100 * best[i] / best[0]))
		printf '%-30s %14d %6d %%\n' "${names[i]}" "${best[i]}" "${PERCENT[i]}"
	done
}

fences() {
	local i size
	if [ "$TYPE" != medge ]; then
		refuses "--fence" "has no relaxed QPs and no fences" ib_write_bw --fence=backward
		refuses "--relaxed_qp" "has no relaxed QPs and no fences" ib_write_bw --relaxed_qp
		must "--fence=none" ib_write_bw --fence=none -s 4096 -n 200
		return
	fi
	refuses "--fence=sideways" "Invalid fence" ib_write_bw --fence=sideways
	refuses "--fence on UD" "Only RC QPs" ib_send_bw -c UD --fence=both
	refuses "--relaxed_qp with rdma_cm" "rdma_cm does not create relaxed QPs" ib_write_bw -R --relaxed_qp
	for i in ib_write_lat ib_read_bw; do
		must "$i --fence=both" "$i" --relaxed_qp --fence=both -s 4096 -n 200
	done
	must "--fence over rdma_cm" ib_write_bw -R --fence=backward -s 4096 -n 200
	for size in "${SIZES[@]}"; do
		fence_figures "$size" $((size < 65536 ? 40000 : 2000)) || return
		judge_fences
	done
	echo "The thesis defines these fences, and has no figure of their cost; see fence_bench."
}

# Others are at work on this machine; fence_bench is the exact judge, over many small slices of time. Here a fence is
# only to be worth its while: a small part of what draining costs.
judge_fences() {
	local i
	for i in 1 2 3; do
		((PERCENT[i] >= 3 * PERCENT[6])) || failed "a fence costs as much as draining at the sender, or nearly"
	done
}

[ "$TYPE" != medge ] || clock
every_test
rails
fences
verdict
