#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# A provider and a module that do not fit together do not work together, and
# say why: that of an older release, that of a newer one; and ours does.
#
# lab beside: --rails 1
set -u
# shellcheck source=tests/verbs/lib.sh
. "$(dirname "$0")/lib.sh"

if [ "$TYPE" != medge ]; then
	echo "this is about medge"
	exit 77
fi

# with_provider FILE CMD...: run CMD where libibverbs knows of no other provider.
with_provider() {
	local file=$1 dir=$WORK/drivers
	shift
	mkdir -p "$dir"
	ln -sf "$file" "$WORK/libmedge$SUFFIX"
	echo "driver $WORK/libmedge" >"$dir/medge.driver"
	# shellcheck disable=SC2016 # for the inner shell
	on a unshare --mount sh -c 'mount --bind "$0" /etc/libibverbs.d && exec "$@"' "$dir" "$@" 2>&1
}

# refused VERSION: the provider that supports just this one.
refused() {
	local said
	said=$(with_provider "$(program "libmedge-abi$1.so")" ibv_devices)
	grep -q "^libibverbs: Warning: Driver medge does not support the kernel ABI of 1 (supports $1 to $1) for device" <<<"$said" ||
		failed "nobody says that ABI $1 is not the module's: $said"
	! grep -qE "^ *$DEV_A\b" <<<"$said" || failed "a provider of ABI $1 has the device: $said"
	with_provider "$(program "libmedge-abi$1.so")" ibv_devinfo -d "$DEV_A" >/dev/null && failed "a provider of ABI $1 opens the device"
	grep Warning <<<"$said"
}

ours=$(find /usr/lib*/ -name 'libmedge-rdmav*.so' | sed -n 1p)
SUFFIX=-${ours##*/libmedge-}
with_provider "$ours" ibv_devinfo -d "$DEV_A" | grep -q "hca_id:.*$DEV_A" || failed "ours is refused, too"
refused 0
refused 2
verdict
