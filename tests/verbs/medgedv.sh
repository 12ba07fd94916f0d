#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Direct verbs: each function of medgedv.h, and fences over rails that reorder.
#
# lab beside: --rails 2 --mtu 9000
# lab beside: --rails 2 --mtu 1500 --kernel debug
set -u
# shellcheck source=tests/verbs/lib.sh
. "$(dirname "$0")/lib.sh"

if [ "$TYPE" != medge ]; then
	echo "direct verbs are medge's own"
	exit 77
fi

# Each function is exported, has a page, and is called by the program that the rest runs.
complete() {
	local source=$LAB_REPO/providers/medge function
	for function in $(grep -o 'medgedv_[a-z_]*(' "$source/medgedv.h" | tr -d '('); do
		grep -q "$function;" "$source/libmedge.map" || failed "$function is not exported"
		[ -f "$source/man/$function.3" ] || failed "$function has no man page"
		grep -q "$function(" "$HERE/medgedv.c" || failed "$function has no test"
	done
	[ -n "${function:-}" ] || failed "medgedv.h has no functions"
}

# What a program outside of the tree needs: the installed files, and pkg-config.
builds_outside() {
	local root flags
	root=$(plan PROVIDER)
	flags=$(PKG_CONFIG_LIBDIR=$(dirname "$(find "$root" -name libmedge.pc)"):$(pkg-config --variable pc_path pkg-config) \
		PKG_CONFIG_SYSROOT_DIR=$root pkg-config --cflags --libs libmedge) || return
	# shellcheck disable=SC2086 # several words
	cc -Wall -Werror -x c -o "$WORK/outside" - $flags <<-'END' && "$WORK/outside"
		#include <infiniband/medgedv.h>
		int main(void)
		{
			struct ibv_device **list = ibv_get_device_list(NULL);

			return !list || !medgedv_is_supported(list[0]);
		}
	END
}

p=$(program medgedv -lmedge) || exit
complete
builds_outside || failed "a program cannot be built with what is installed, or does not find its device"
on a rdma link add rxe_a type rxe netdev "$NETDEV_A" || failed "rxe cannot be set up beside medge"
run functions 60 "$p" --other rxe_a
cat "$WORK/out"
rdma link delete rxe_a
# Each frame takes its own time, so that any may overtake any.
impair delay 2ms 2ms
run order 60 "$p" --order
cat "$WORK/out"
verdict
