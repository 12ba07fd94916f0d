#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Regions of dma-bufs: see verbs_dmabuf.c. Afterwards there is no buffer left that a region could still hold.
# On kernels that have exporters of such.
#
# lab beside: --rails 2 --mtu 9000
# lab beside: --rails 2 --mtu 9000 --kernel debug
# lab long: --kernel 6.12 --timeout 240
# lab long: --kernel 7 --timeout 240
set -u
# shellcheck source=tests/verbs/lib.sh
. "$(dirname "$0")/lib.sh"

BUFFERS=/sys/kernel/debug/dma_buf/bufinfo
[ -d /sys/kernel/debug/dma_buf ] || mount -t debugfs none /sys/kernel/debug

# The last reference to a buffer is dropped when its holder is gone for good, which may be a moment later.
no_buffers() {
	wait_line "$BUFFERS" '^Total 0 objects' 5 && return
	cat "$BUFFERS"
	failed "buffers are left over"
}

choose_seed
before=$(resources)
p=$(program verbs_dmabuf) || exit
"$p" "$((SEED + 1))"
STATUS=$?
if [ "$STATUS" = 77 ]; then
	echo "this kernel has no exporter of dma-bufs"
	exit 77
fi
[ "$STATUS" = 0 ] || failed "verbs_dmabuf: status $STATUS"
no_buffers
as_before "$before"
verdict
