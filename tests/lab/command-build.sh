# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# lab build: only build what boots need.
# shellcheck shell=bash

if [[ $# == 1 && $1 == perftest ]]; then
	install_packages
	provider_build
	perftest_build
	say "perftest: $PERFTEST"
	exit
fi
kernels=("$@")
((${#kernels[@]})) || kernels=(lab debug)
for KERNEL in "${kernels[@]}"; do
	one_of "lab build" "$KERNEL" lab debug "${STOCK_KERNELS[@]}" >/dev/null
done
install_packages
for KERNEL in "${kernels[@]}"; do
	kernel_build "$KERNEL"
	say "kernel: $KERNEL_DIR"
	module_build
	say "module: $MODULE"
done
provider_build
say "provider: $PROVIDER"
