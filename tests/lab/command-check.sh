# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# lab check: build something from nothing with warnings as errors, or lint the tree; for lab test.
# shellcheck shell=bash

what=${1:-}
KERNEL=${2:-lab}
case $what in
provider)
	dir=$(tree_cache)/check-provider
	rm -rf "$dir"
	env "MEDGE_CACHE=$CACHE" cmake -S "$REPO" -B "$dir" -DCMAKE_BUILD_TYPE=RelWithDebInfo \
		-DCMAKE_C_FLAGS=-Werror -DCMAKE_INSTALL_LIBDIR="$(provider_libdir)"
	cmake --build "$dir" -j "$(nproc)"
	provider_parts "$dir"
	;;
module)
	KERNEL=$(one_of "lab check module" "$KERNEL" lab debug "${STOCK_KERNELS[@]}")
	kernel_build "$KERNEL"
	if is_stock "$KERNEL"; then
		stock_check
	else
		module_check
	fi
	;;
analyze)
	install_packages
	dir=$(tree_cache)/check-analyze
	env "MEDGE_CACHE=$CACHE" cmake -S "$REPO" -B "$dir" -DCMAKE_EXPORT_COMPILE_COMMANDS=1 \
		-DCMAKE_BUILD_TYPE=RelWithDebInfo
	"$LAB/analyze.py" "$dir/compile_commands.json" "$REPO" "$CACHE/analyzed"
	;;
bench)
	PACKAGES+=(python3-matplotlib)
	install_packages
	/usr/bin/python3 -B "$REPO/tests/bench/selftest.py"
	;;
in-tree)
	. "$LAB/in-tree.sh"
	install_packages
	in_tree_check
	;;
autopkgtest)
	suite=$(one_of "lab check autopkgtest" "${2:-bookworm}" "${MACHINE_SUITES[@]}")
	install_packages
	package_build "$suite"
	autopkgtest_check "$suite"
	sed -n '/@@@@@@.*summary/,$p' "$PACKAGE_DIR/autopkgtest"
	;;
upgrade)
	suite=$(one_of "lab check upgrade" "${2:-trixie}" "${MACHINE_SUITES[@]}")
	install_packages
	machine_pair "$suite" "$(package_version).1"
	tr -d '\r' <"$RUN/b.out" | grep -E '^(b# |Setting up|medge)'
	;;
spelling | style | shell | coccinelle)
	. "$LAB/check-code.sh"
	install_packages
	cd "$REPO" || exit
	"check_$what"
	;;
*)
	die "lab check takes provider, analyze, bench, coccinelle, in-tree, spelling, style, shell, autopkgtest, upgrade, or module and a kernel"
	;;
esac
