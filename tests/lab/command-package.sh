# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# lab package: build the packages and have the lint of their kind look at them.
# shellcheck shell=bash

kernel=
if [[ ${1:-} == --new-kernel ]]; then
	kernel=1
	shift
fi
suite=${1:-$(. /etc/os-release && echo "${VERSION_CODENAME:-bookworm}")}
suite=$(one_of "lab package" "$suite" "${PACKAGE_SUITES[@]}" rpm)
install_packages
if [[ $suite == rpm ]]; then
	rpm_build
	rpm_lint
	rpm_install
else
	package_build "$suite"
	package_lint "$suite"
	install_check "$suite" "$kernel"
fi
say "packages: $PACKAGE_DIR"
