# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# lab coverage: which lines the tests go through.
# shellcheck shell=bash

what=${1:-transport}
case $what in
transport)
	install_packages
	make -s -C "$REPO/tests/transport" coverage "BUILD=$(tree_cache)/transport"
	;;
*)
	die "lab coverage takes transport"
	;;
esac
