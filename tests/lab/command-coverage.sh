# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# lab coverage: which lines the tests go through, of the transport in user space, or of the module in the lab. The
# kernels are built without gcov; the module brings the little of it that it needs, see coverage/cov_first.c.
# shellcheck shell=bash

# What is run in one boot each: kernel, and scripts with their arguments. Those that unload the module, and
# with it what it has counted, are not among them.
COVERAGE_BOOTS=(
	'lab: transports lossy@--short verbs_programs kernel_consumers medgedv observe polling scheduler limits cm_programs
		integrity odp dmabuf uc_loss wire_liar@2 ring_torture@3 rails@follow@drain@port verbs_history@8
		uverbs_fuzz@8'
	'debug: verbs_faults uverbs_fuzz@8'
)

# Replaces module.sh's: an instrumented copy, with all that gcov needs left beside it.
module_build() {
	local source
	COVERAGE_DIR=$(tree_cache)/coverage/$KERNEL
	source=$COVERAGE_DIR/source
	rm -rf "$source" "$COVERAGE_DIR/objects"
	mkdir -p "$COVERAGE_DIR/objects"
	cp -r "$REPO/kernel-drivers/medge" "$source"
	cp "$LAB"/coverage/cov_*.c "$source/"
	cat "$LAB/coverage/Kbuild.add" >>"$source/Kbuild"
	run_logged "$COVERAGE_DIR/log" "building an instrumented module" \
		make -C "$KERNEL_DIR" ARCH=um "M=$source" "MO=$COVERAGE_DIR/objects" "-j$(nproc)" modules
	MODULE=$COVERAGE_DIR/objects/medge.ko
}

coverage_boot() {
	local words
	KERNEL=${1%%:*}
	read -rd '' -a words <<<"${1#*:}" || :
	parse_options --kernel "$KERNEL" --rails 2 --mtu 9000 --timeout 1500
	boot_script "$LAB/coverage/run.sh" "${words[@]}"
	((STATUS == 0)) || complain "the tests ended with status $STATUS"
	"$LAB/coverage/gcda.py" "$RUN/out/coverage"
}

coverage_module() {
	local boot
	rm -rf "$(tree_cache)/coverage"
	for boot in "${COVERAGE_BOOTS[@]}"; do
		coverage_boot "$boot"
	done
	"$LAB/coverage/report.py" --root "$(tree_cache)/coverage" --strip 2 --least 85 \
		--why "$LAB/coverage/module.why" "$(tree_cache)/coverage"
}

case ${1:-} in
transport | '')
	install_packages
	make -s -C "$REPO/tests/transport" coverage "BUILD=$(tree_cache)/transport"
	;;&
module | '')
	coverage_module
	;;
transport) ;;
*)
	die "lab coverage takes transport, module, or nothing for both"
	;;
esac
