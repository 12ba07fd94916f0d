# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# lab package: build the Debian packages and have lintian look at them.
# shellcheck shell=bash

suite=${1:-$(. /etc/os-release && echo "${VERSION_CODENAME:-bookworm}")}
suite=$(one_of "lab package" "$suite" "${PACKAGE_SUITES[@]}")
install_packages
package_build "$suite"
package_lint "$suite"
say "packages: $PACKAGE_DIR"
