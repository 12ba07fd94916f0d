#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# UC where frames are lost, or overtake each other: a message comes right, or not at all; the device
# counts what it dropped.
#
#   uc_loss.sh [SEED]
#
# lab: --rails 2 --mtu 9000
# lab: --rails 2 --mtu 1500 --kernel debug
set -u
# shellcheck source=tests/verbs/lib.sh
. "$(dirname "$0")/lib.sh"

# Of the messages that the last run sent, those that came.
came() {
	sed -nE 's/^verbs_uc: ([0-9]+) of .*/\1/p' "$WORK/out"
}

frames_sent() {
	cat "/sys/class/infiniband/$DEV_A/ports/1/hw_counters/rail"[0-9]*_tx_frames | awk '{ sum += $1 } END { print sum }'
}

choose_seed
[ $# = 0 ] || SEED=$1
p=$(program verbs_uc) || exit
skbs=$(hw_counter "$DEV_A" tx_skbs) frames=$(frames_sent)
run "UC on good rails" 60 "$p" "$SEED"
[ "$(came)" = 3000 ] || failed "only $(came) of 3000 came over good rails"
skbs=$(($(hw_counter "$DEV_A" tx_skbs) - skbs)) frames=$(($(frames_sent) - frames))
echo "$frames frames were sent as $skbs"
((2 * skbs < frames)) || failed "frames of a message are not bundled"
impair delay 300us reorder 25%
before=$(hw_counter "$DEV_B" rx_uc_early)
run "UC, frames that overtake others" 60 "$p" "$((SEED + 2))"
[ "$(came)" = 3000 ] || failed "only $(came) of 3000 came where none is lost"
(($(hw_counter "$DEV_B" rx_uc_early) > before)) || failed "none has overtaken another"
repair
# Else what is lost is a bundle, and often all of a message, of which nobody knows.
whole off
impair delay 100us loss 1%
before=$(hw_counter "$DEV_B" rx_uc_dropped)
run "UC, loss" 120 "$p" "$((SEED + 1))"
lost=$((3000 - $(came)))
((lost > 0)) || failed "1 % of the frames are lost, and no message"
(($(hw_counter "$DEV_B" rx_uc_dropped) > before)) || failed "nothing is counted as dropped"
verdict
