#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Inside the lab: distro perftest as it is, and what each rail carried meanwhile.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR
. "$LAB_REPO/tests/lab/perftest.sh"

# rail_counts NODE: a line "packets bytes" for each rail, as it was sent.
rail_counts() {
	# shellcheck disable=SC2016 # for the node's shell
	on "$1" bash -c '
		for ((rail = 0; rail < RAILS; rail++)); do
			cd "/sys/class/net/rail$rail/statistics"
			echo "$(<tx_packets) $(<tx_bytes)"
		done
	'
}

# rail_table BEFORE-A AFTER-A BEFORE-B AFTER-B
rail_table() {
	paste -d' ' <(echo "$1") <(echo "$2") <(echo "$3") <(echo "$4") | awk '
		{ pa[NR] = $3 - $1; ba[NR] = $4 - $2; pb[NR] = $7 - $5; bb[NR] = $8 - $6
		  packets += pa[NR] + pb[NR]; bytes += ba[NR] + bb[NR] }
		END {
			printf "%-8s %22s %24s %18s\n", "", "node a sent", "node b sent", "share of"
			printf "%-8s %10s %11s %12s %11s %10s %7s\n", "rail", "packets", "MB", "packets", "MB", "packets", "bytes"
			for (i = 1; i <= NR; i++)
				printf "%-8s %10d %11.1f %12d %11.1f %8.1f %% %5.1f %%\n", "rail" i - 1, pa[i], ba[i] / 1e6,
					pb[i], bb[i] / 1e6, 100 * (pa[i] + pb[i]) / packets, 100 * (ba[i] + bb[i]) / bytes
		}'
}

# What a device counted itself: the cut frames behind the packets above.
frames_sent() {
	rdma statistic show link "$1/1" | tr ' ' '\n' | sed -n '/^tx_frames$/ { n; p }'
}

a0=$(rail_counts a)
b0=$(rail_counts b)
for run in "ib_write_bw -s 65536 -n 10000" "ib_write_bw -s 1048576 -n 1000" "ib_read_bw -s 65536 -n 10000" \
	"ib_read_bw -s 1048576 -n 1000" "ib_write_lat -s 4 -n 5000" "ib_read_lat -s 4 -n 2000"; do
	printf '\n$ %s\n' "$run"
	read -ra words <<<"$run"
	perftest "${words[@]}"
done
a1=$(rail_counts a)
b1=$(rail_counts b)

printf '\nWhat each of the %s rails carried:\n' "$RAILS"
rail_table "$a0" "$a1" "$b0" "$b1"
if [[ $TYPE == medge ]]; then
	echo "A packet may be a superframe. In frames, $DEV_A sent $(frames_sent "$DEV_A"), $DEV_B sent $(frames_sent "$DEV_B")."
fi
