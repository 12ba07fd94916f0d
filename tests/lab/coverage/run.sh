#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# In the guest of lab coverage: runs tests of tests/verbs, and has the module tell what it has counted.
#   run.sh NAME[@ARGUMENT...]...
set -u
status=0
for test in "$@"; do
	IFS=@ read -ra words <<<"$test"
	began=$SECONDS
	if "$LAB_REPO/tests/verbs/${words[0]}.sh" "${words[@]:1}" >"$LAB_OUT/${words[0]}.log" 2>&1; then
		echo "ok    ${words[*]} ($((SECONDS - began)) s)"
	else
		echo "FAIL  ${words[*]} ($((SECONDS - began)) s): $(tail -n 2 "$LAB_OUT/${words[0]}.log")"
		status=1
	fi
	# Scripts that have a boot to themselves may leave the rails as they like.
	for node in a b; do
		for ((rail = 0; rail < RAILS; rail++)); do
			tc -n "$node" qdisc del dev "rail$rail" root 2>/dev/null
		done
	done
done
echo "$LAB_OUT/coverage" >/sys/module/medge/parameters/coverage || status=1
exit "$status"
