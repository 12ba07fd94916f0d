# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# lab demo: perftest over medge, on two rails.
# shellcheck shell=bash

HOST_STATE=awake
parse_options "$@"
((${#ARGS[@]} == 0)) || die "lab demo takes no argument '${ARGS[0]}'; see lab help"
boot_script "$LAB/demo.sh"
((STATUS == 0)) || exit "$STATUS"
say "done"
cat <<'EOF'

Where to look next:
  tests/lab/lab shell                       the same two nodes, by hand
  tests/lab/lab exec --type medge,rxe,siw -- tests/lab/demo.sh
                                            the same measurements, beside the peers
  tests/lab/lab exec --netem 'loss 2% duplicate 1% reorder 25%' -- SCRIPT
                                            your own script, on bad rails
  tests/lab/lab test                        every test
  tests/lab/lab help                        all options
EOF
