# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# lab demo: perftest over medge, on two rails; or, with --packages, on two machines that have medge from packages.
# shellcheck shell=bash

demo_lab() {
	HOST_STATE=awake
	parse_options "$@"
	((${#ARGS[@]} == 0)) || die "lab demo takes no argument '${ARGS[0]}'; see lab help"
	boot_script "$LAB/demo.sh"
	((STATUS == 0)) || exit "$STATUS"
	say "done"
	cat <<-'END'

	Where to look next:
	  tests/lab/lab shell                       the same two nodes, by hand
	  tests/lab/lab exec --type medge,rxe,siw -- tests/lab/demo.sh
	                                            the same measurements, beside the peers
	  tests/lab/lab exec --netem 'loss 2% duplicate 1% reorder 25%' -- SCRIPT
	                                            your own script, on bad rails
	  tests/lab/lab test                        every test
	  tests/lab/lab help                        all options
	END
}

demo_packages() {
	local suite
	(($# <= 1)) || die "lab demo --packages takes one suite, not '$*'"
	suite=$(one_of "lab demo --packages" "${1:-trixie}" "${MACHINE_SUITES[@]}")
	install_packages
	machine_pair "$suite"
	grep -E '^(Setting up|medge)' "$RUN/install"
	tr -d '\r' <"$RUN/a.out"
	say "done"
}

if [[ ${1:-} == --packages ]]; then
	demo_packages "${@:2}"
else
	demo_lab "$@"
fi
