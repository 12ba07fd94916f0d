# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kmemleak on the debug kernel: what was allocated since the boot and is reachable no more.
# shellcheck shell=bash

KMEMLEAK=/sys/kernel/debug/kmemleak

leaks_forget() {
	[[ ! -e $KMEMLEAK ]] || echo clear >"$KMEMLEAK"
}

# While the module is there its functions have names. A first scan marks, and an object must be some seconds old.
leaks_find() {
	[[ -e $KMEMLEAK ]] || return 0
	echo scan >"$KMEMLEAK"
	sleep 5
	echo scan >"$KMEMLEAK"
	cat "$KMEMLEAK" >"$LAB_OUT/kmemleak"
}

# What the module has left behind itself comes to that. The peers' leaks are told, and do not fail the run.
leaks_report() {
	local found
	[[ -e $KMEMLEAK ]] || return 0
	if [[ $MODULE ]]; then
		echo scan >"$KMEMLEAK"
		echo scan >"$KMEMLEAK"
		cat "$KMEMLEAK" >"$LAB_OUT/kmemleak.unloaded"
		(($(leaks_in kmemleak.unloaded) == $(leaks_in kmemleak))) ||
			cp "$LAB_OUT/kmemleak.unloaded" "$LAB_OUT/kmemleak"
	fi
	found=$(leaks_in kmemleak)
	((found)) || return 0
	[[ ! $MODULE ]] || tell "complaint: $found leaked objects, in $LAB_OUT/kmemleak"
	head -n 60 "$LAB_OUT/kmemleak" >&2
}

leaks_in() {
	grep -c '^unreferenced object' "$LAB_OUT/$1"
}
