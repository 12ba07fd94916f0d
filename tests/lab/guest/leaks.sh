# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kmemleak on the debug kernel: what was allocated since the boot and is reachable no more.
# shellcheck shell=bash

KMEMLEAK=/sys/kernel/debug/kmemleak

leaks_forget() {
	[[ ! -e $KMEMLEAK ]] || echo clear >"$KMEMLEAK"
}

# A first scan marks, and an object must be some seconds old to count. Leaks of the peers are not ours to fail.
leaks_report() {
	[[ -e $KMEMLEAK ]] || return 0
	echo scan >"$KMEMLEAK"
	sleep 5
	echo scan >"$KMEMLEAK"
	cat "$KMEMLEAK" >"$LAB_OUT/kmemleak"
	[[ -s $LAB_OUT/kmemleak ]] || return 0
	if [[ $MODULE ]]; then
		tell "complaint: $(grep -c '^unreferenced object' "$LAB_OUT/kmemleak") leaked objects, in $LAB_OUT/kmemleak"
	fi
	head -n 60 "$LAB_OUT/kmemleak" >&2
}
