#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# UC where frames are lost: a message comes right, or not at all; the device counts what it dropped.
#
#   uc_loss.sh [SEED]
#
# lab beside: --rails 2 --mtu 9000
# lab beside: --rails 2 --mtu 1500 --kernel debug
set -u
# shellcheck source=tests/verbs/lib.sh
. "$(dirname "$0")/lib.sh"

# Of the messages that the last run sent, those that came.
came() {
	sed -nE 's/^verbs_uc: ([0-9]+) of .*/\1/p' "$WORK/out"
}

choose_seed
[ $# = 0 ] || SEED=$1
p=$(program verbs_uc) || exit
run "UC on good rails" 60 "$p" "$SEED"
[ "$(came)" = 3000 ] || failed "only $(came) of 3000 came over good rails"
impair delay 100us loss 1%
before=$(hw_counter "$DEV_B" rx_uc_dropped)
run "UC, loss" 120 "$p" "$((SEED + 1))"
lost=$((3000 - $(came)))
((lost > 0)) || failed "1 % of the frames are lost, and no message"
(($(hw_counter "$DEV_B" rx_uc_dropped) > before)) || failed "nothing is counted as dropped"
verdict
