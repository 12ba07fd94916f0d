# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# For scripts that run in the lab: perftest's two ends, the server on node b and the client on node a.
#
#   . "$LAB_REPO/tests/lab/perftest.sh"
#   perftest ib_write_bw -s 65536
#
# Prints what the client prints; false when either end fails, with the server's output.
# shellcheck shell=bash

perftest() {
	local tries out status
	out=$(mktemp /run/perftest-XXXXXX)
	for ((tries = 0; tries < 10; tries++)); do
		status=0
		perftest_once "$out" "$@" || status=$?
		# On a busy machine perftest sometimes fails to measure the CPU's clock, and then prints zeros.
		grep -q '^Correlation coefficient' "$out" || break
	done
	cat "$out"
	return "$status"
}

# perftest_once OUTPUT TOOL ARG...
perftest_once() {
	local out=$1 tool=$2 log server end=0
	local way=(-F)
	shift 2
	# iWARP has no other way to connect than its connection manager.
	[[ $TYPE != siw ]] || way+=(-R)
	log=$(mktemp /run/perftest-XXXXXX)
	on b taskset -c "$(($(nproc) - 1))" "$tool" -d "$DEV_B" -x "$GID_B" "${way[@]}" "$@" >"$log" 2>&1 &
	server=$!
	perftest_listens "$server"
	on a taskset -c 0 "$tool" -d "$DEV_A" -x "$GID_A" "${way[@]}" "$@" "$IP_B" >"$out" 2>&1 || end=$?
	# A client that failed may leave its server waiting for ever.
	((end == 0)) || kill "$server" 2>/dev/null
	if ! wait "$server" || ((end)); then
		echo "the server of $tool $* said:" >&2
		cat "$log" >&2
		return 1
	fi
}

perftest_listens() {
	local tries
	for ((tries = 0; tries < 200; tries++)); do
		kill -0 "$1" 2>/dev/null || return 0
		if [[ $TYPE == siw ]]; then
			! on b rdma resource show cm_id | grep -q 'state LISTEN' || return 0
		else
			[[ ! $(on b ss -Hltn 'sport = :18515') ]] || return 0
		fi
		sleep 0.05
	done
}
