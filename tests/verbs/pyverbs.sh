#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# rdma-core's own python suite, on the device of node a, whose QPs talk to each other.
#
#   pyverbs.sh [RELEASE]    default: the distribution's; others as get-pyverbs has built them
#
# Prints a line for each type of device. medge must pass all but what pyverbs.skips lists with its reason.
#
# lab long: --type medge,rxe,siw -- 56.1
# lab beside:
# lab beside: --kernel debug
# lab long: --type medge,rxe,siw -- 65.0
set -u
# shellcheck source=tests/verbs/lib.sh
. "$(dirname "$0")/lib.sh"

RELEASE=${1:-}
OUT=$LAB_OUT/pyverbs${RELEASE:+-$RELEASE}.$TYPE
LIBRARIES='' MODULES='' PROVIDERS=''

# Debian packs the suite's files among a package's documents, the longer ones compressed.
unpack_distribution() {
	local from=/usr/share/doc/rdma-core/tests
	RELEASE=$(dpkg-query -W -f '${Version}' python3-pyverbs)
	TESTS=$WORK/tests
	cp -r "$from" "$TESTS" && find "$TESTS" -name '*.gz' -exec gunzip {} +
}

find_built() {
	local dir=${LAB_BUILD%/tree/*}/rdma-core/$RELEASE name
	if ! [ -e "$dir/pyverbs/complete" ]; then
		echo "rdma-core $RELEASE is not built: run $HERE/get-pyverbs $RELEASE"
		exit 77
	fi
	TESTS=$dir/source/tests LIBRARIES=$dir/pyverbs/lib MODULES=$dir/pyverbs/python
	PROVIDERS=$WORK/providers
	mkdir "$PROVIDERS"
	cp "$LIBRARIES"/lib{rxe,siw}-rdmav*.so "$PROVIDERS"
	name=$(cd "$LIBRARIES" && echo librxe-rdmav*.so)
	find_ours "libmedge${name#librxe}"
}

# The plugin of that release's private ABI: as it is packaged, or as a part of rdma-core.
find_ours() {
	local file
	for file in "${LAB_BUILD%/build}"/stage/usr/lib/*/libibverbs/"$1" "${LAB_BUILD%/provider/build}/in-tree/build/lib/$1"; do
		[ -e "$file" ] || continue
		cp -L "$file" "$PROVIDERS"
		return
	done
	echo "there is no $1: run tests/lab/lab check in-tree"
	exit 77
}

# on_release COMMAND...: with the libraries of that release; its providers stand where libibverbs looks for them.
on_release() {
	# shellcheck disable=SC2016 # the inner shell's
	timeout -k 5 300 ip netns exec a env LD_LIBRARY_PATH="$LIBRARIES" PYTHONPATH="$MODULES" PYTHONDONTWRITEBYTECODE=1 \
		unshare -m sh -c '
		[ -z "$0" ] || mount --bind "$0" "$(pkg-config --variable=libdir libibverbs)/libibverbs"
		exec "$@"
	' "$PROVIDERS" "$@"
}

suite() {
	local gid=()
	[ "$TYPE" = siw ] || gid=(--gid "$GID_A")
	on_release /usr/bin/python3 "$HERE/pyverbs_run.py" "$TESTS" "$OUT.results" --dev "$DEV_A" "${gid[@]}"
}

# The suite only calls ibv_query_port_speed(), where there is one: a veth's is 10 Gbit/s. rails.sh has the rest.
port_speed() {
	local said
	said=$(on_release /usr/bin/python3 -c '
import sys
from pyverbs.device import Context
ask = getattr(Context(name=sys.argv[1]), "query_port_speed", None)
print(ask(1) if ask else "none")
' "$DEV_A" 2>>"$OUT.log")
	[ "$said" = none ] || [ "$said" = "$((RAILS * 100))" ] || failed "ibv_query_port_speed: $said"
}

count() {
	grep -c "^$1" "$OUT.results"
}

if [ -z "$RELEASE" ]; then
	unpack_distribution || exit
else
	find_built
fi
suite >"$OUT.log" 2>&1
[ "${TYPE}" != medge ] || printf '%-24s%8s%8s%8s%8s\n' "rdma-core $RELEASE" passed failed errors skipped
printf '%-24s%8d%8d%8d%8d\n' "  $TYPE" "$(count pass)" "$(count fail)" "$(count error)" "$(count skip)"
[ "$TYPE" = medge ] || exit 0
/usr/bin/python3 "$HERE/pyverbs_judge.py" "$OUT.results" "$HERE/pyverbs.skips" "$RELEASE" || {
	failed "the suite on medge"
	grep -A30 -E '^(FAIL|ERROR): ' "$OUT.log" | head -n 100
}
port_speed
verdict
