#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# The lab's tests of itself: selftest.sh --list, selftest.sh CASE, or all cases without an argument.
#
# They use rxe, so that a fault of medge's is not taken for one of the lab's.
# shellcheck disable=SC2016,SC2317 # scripts for the guest; functions that replace the lab's
set -euo pipefail

LAB=$(dirname "$(readlink -f "$0")")
REPO=$(dirname "$(dirname "$LAB")")
CACHE=${MEDGE_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/medge}
COMMAND=selftest
for part in say kernel stock module; do
	. "$LAB/$part.sh"
done
# Whether builds are right is tested here.
unset LAB_ONCE
WORK=$(mktemp -d /tmp/lab-selftest-XXXXXX)
trap 'rm -rf "$WORK"' EXIT

CASES=(wrong_arguments racing_builds partial_build status environment output writable_places
	several_types several_scripts options out_of_time hang panic fault warning interrupt killed closed_pipe reboot shell bench
	provider_in_place debug_notices debug_leak debug_clean)

fail() {
	echo "FAIL: $*"
	exit 1
}

# lab ARG...: its status in STATUS, its output in $WORK/out and $WORK/err.
lab() {
	STATUS=0
	"$LAB/lab" "$@" >"$WORK/out" 2>"$WORK/err" </dev/null || STATUS=$?
}

in_lab() {
	lab exec --type rxe "$@"
}

expect_status() {
	((STATUS == $1)) || {
		tail -n 30 "$WORK/out" "$WORK/err"
		fail "status $STATUS instead of $1"
	}
}

expect() {
	grep -qE -- "$2" "$WORK/$1" || {
		tail -n 30 "$WORK/$1"
		fail "'$2' is not in std$1"
	}
}

no_guest_left() {
	! pgrep -f "lab_run=$(run_dir)( |$)" >/dev/null || fail "a guest is left running"
	! grep -q "$(run_dir)" /proc/mounts || fail "its memory is still mounted"
}

# The directory of the last run, from what the lab said of it.
run_dir() {
	sed -n 's/.*kernel log: \(.*\)\/kernel.log$/\1/p' "$WORK/err" | tail -n 1
}

# misbehaving KERNEL: sets MODULE to a module that does what the lab must notice.
misbehaving() {
	KERNEL=$1
	kernel_build "$KERNEL"
	module_make "$LAB/misbehave" misbehave
}

case_wrong_arguments() {
	local line
	for line in help --help; do
		lab bench "$line"
		((STATUS == 0)) || fail "'lab bench $line' ended with status $STATUS"
		expect out 'lab bench \['
	done
	touch "$WORK/plain"
	while read -r line; do
		read -ra words <<<"$line"
		lab "${words[@]//_/ }"
		((STATUS == 125)) || fail "'lab $line' ended with status $STATUS"
		(($(wc -l <"$WORK/err") == 1)) || fail "'lab $line' said: $(<"$WORK/err")"
		[[ ! -s $WORK/out ]] || fail "'lab $line' wrote to its standard output"
		echo "$line: $(<"$WORK/err")"
	done <<-END

		frobnicate
		--rails 2
		exec
		exec --
		exec --rails 2
		exec --rails
		exec --rails -- true
		exec --rails 0 -- true
		exec --rails 65 -- true
		exec --rails two -- true
		exec --rails=-1 -- true
		exec --mtu 100 -- true
		exec --mtu 9000000 -- true
		exec --mtu jumbo -- true
		exec --rate fast -- true
		exec --rate 10 -- true
		exec --netem nonsense -- true
		exec --netem loss -- true
		exec --bond-mode 7 -- true
		exec --kernel 5.4 -- true
		exec --cpus 0 -- true
		soak --hours
		soak --minutes none
		soak --rails 0
		exec --cpus 5 -- true
		exec --mem 3 -- true
		exec --mem lots -- true
		exec --timeout 0 -- true
		exec --timeout 5m -- true
		exec --type mlx5 -- true
		exec --type medge,,rxe -- true
		exec --type= -- true
		exec --frobnicate 1 -- true
		exec -x -- true
		exec -- /nonexistent/script
		exec -- no-such-command
		exec -- $WORK/plain
		exec -- $WORK
		shell --type rxe
		shell --type rxe now
		shell --type rxe,siw
		demo now
		demo --rails none
		test --frobnicate
		test no-such-test-at-all
		build mainline
		bench slow here
		bench --slow
		bench path here there
		bench /dev/null/here
		bench cost mlx5
		bench cost --frobnicate
		bench cost medge rxe
		bench cost --profile
		bench cost --profile nothing
		check
		check module mainline
	END
}

# Two runs that find no kernel build it once; the second waits and takes the first one's.
case_racing_builds() {
	CACHE=$WORK/cache
	kernel_make() {
		local dir=$CACHE/kernel/$1-7.2.0-$2
		mkdir -p "$dir"
		echo built >>"$WORK/builds"
		sleep 1
		touch "$dir/.complete"
		KERNEL_DIR=$dir
	}
	(kernel_build lab && echo "$KERNEL_DIR" >"$WORK/first") &
	sleep 0.2
	kernel_build lab 2>"$WORK/err"
	wait
	expect err 'waiting for another run'
	(($(wc -l <"$WORK/builds") == 1)) || fail "built $(wc -l <"$WORK/builds") times"
	[[ $KERNEL_DIR == "$(<"$WORK/first")" ]] || fail "the two runs have different kernels"
}

case_partial_build() {
	CACHE=$WORK/cache
	kernel_make() {
		echo "$2" >"$WORK/hash"
		KERNEL_DIR=new
	}
	kernel_build lab
	mkdir -p "$CACHE/kernel/lab-7.2.0-$(<"$WORK/hash")"
	touch "$CACHE/kernel/lab-7.2.0-$(<"$WORK/hash")/linux"
	kernel_build lab
	[[ $KERNEL_DIR == new ]] || fail "a build that never ended was used"
	touch "$CACHE/kernel/lab-7.2.0-$(<"$WORK/hash")/.complete"
	kernel_build lab
	[[ $KERNEL_DIR == */lab-7.2.0-* ]] || fail "a complete build was not used"
}

case_status() {
	in_lab -- bash -c 'exit 42'
	expect_status 42
	in_lab -- bash -c 'echo "kernel log: ${LAB_OUT%/out}/kernel.log" >&2'
	expect_status 0
	no_guest_left
}

case_environment() {
	local name
	FROM_HOST="two  words
and a line" in_lab --rails 3 --mtu 4000 -- bash -c '
		for name in DEV_A DEV_B IP_A IP_B GID_A GID_B TYPE RAILS MTU NETDEV_A NETDEV_B KERNEL LAB_OUT FROM_HOST; do
			echo "$name=${!name}"
		done
		pwd
		echo "args: $# $2"
		on a cat /sys/class/net/bond0/bonding/slaves /sys/class/net/rail2/mtu
		on b ip -br addr show bond0
		on c true
		echo "on: $?"
		cat "/sys/class/infiniband/$DEV_A/ports/1/gids/$GID_A"
		grep MHz /proc/cpuinfo
	' first 'with  spaces' '$HOME;'
	expect_status 0
	for name in DEV_A=rxe_a DEV_B=rxe_b IP_A=10.99.0.1 IP_B=10.99.0.2 'GID_A=[0-9]' 'GID_B=[0-9]' TYPE=rxe RAILS=3 MTU=4000 \
		NETDEV_A=bond0 KERNEL=lab 'LAB_OUT=/.*' 'FROM_HOST=two  words' 'and a line' "$PWD" 'args: 2 \$HOME;' \
		'rail0 rail1 rail2' 4000 'bond0 .*10.99.0.2/24.*' 'on: 125' '0000:.*:ffff:0a63:0001' 'cpu MHz.*[1-9]'; do
		expect out "^$name ?\$|cpu MHz"
	done
}

# Every byte, in order, on the stream it was written to.
case_output() {
	in_lab -- bash -c 'seq 300000; seq 300000 350000 >&2; printf "a\tb\r\001\n"'
	expect_status 0
	cmp "$WORK/out" <(seq 300000; printf 'a\tb\r\001\n') || fail "the standard output is not what was written"
	cmp <(grep -v '^lab: ' "$WORK/err") <(seq 300000 350000) || fail "the standard error is not what was written"
}

# A script may lie in the guest's own directories, write where it may, and nowhere else.
case_writable_places() {
	local script
	script=$(mktemp /dev/shm/lab-selftest-XXXXXX)
	printf '%s\n' '#!/bin/bash' 'touch here "$1/there" "$LAB_OUT/out" /run/x /var/tmp/x || exit 3' \
		'! touch /etc/x /usr/x "$HOME/x" 2>/dev/null' >"$script"
	chmod +x "$script"
	mkdir "$WORK/there" "$WORK/here"
	STATUS=0
	(cd "$WORK/here" && HOME=/root "$LAB/lab" exec --type rxe -- "$script" "$WORK/there") >"$WORK/out" 2>"$WORK/err" || STATUS=$?
	rm -f "$script"
	expect_status 0
	[[ -e $WORK/here/here && -e $WORK/there/there ]] || fail "what the script wrote is not there"
}

case_several_types() {
	lab exec --type rxe,siw -- bash -c 'rdma link | grep -c LINK_UP; echo "type $TYPE"; [[ $TYPE == rxe ]] || exit 5; exit 4'
	expect_status 4
	[[ $(tr '\n' ' ' <"$WORK/out") == '2 type rxe 2 type siw ' ]] || fail "$(<"$WORK/out")"
	expect err 'status 5 for siw'
}

# Each in its turn, whatever became of the one before, of which nothing runs any more.
case_several_scripts() {
	in_lab --several -- bash -c 'echo one; sleep 1000 & exit 3' --next bash -c 'echo two; pgrep -xf "sleep 1000"' --next bash -c \
		'[[ $1 == --not-next ]]' '' --not-next
	expect_status 3
	diff - <(sed "s/^\(<<<.*\) [0-9]*$/\1 S/" "$WORK/out") <<-'END' || fail "that is not how several scripts are told from each other"
		>>> 1
		one
		<<< 1 3 S
		>>> 2
		two
		<<< 2 1 S
		>>> 3
		<<< 3 0 S
	END
}

# What the options ask for is there: rates, impairments, bond modes, CPUs, one rail, many rails.
case_options() {
	local mode
	in_lab --rails 1 --rate 1gbit --netem 'loss 2% duplicate 1% reorder 25%' --cpus 1 --mem 1G -- \
		bash -c 'on b tc qdisc show dev rail0; nproc; free -m'
	expect_status 0
	expect out 'netem .*delay 200us +loss 2% duplicate 1% reorder 25%.* rate 1Gbit'
	expect out '^1$'
	expect out '^Mem: +(8|9)[0-9][0-9] '
	in_lab --rails 8 -- on a ip -br link
	expect_status 0
	expect out 'rail7'
	for mode in active-backup balance-xor 802.3ad balance-tlb; do
		in_lab --bond-mode "$mode" -- on a cat /sys/class/net/bond0/bonding/mode
		expect_status 0
		expect out "^$mode"
	done
	in_lab --netem 'loss 200%' -- true
	expect_status 125
	expect err 'tc does not take'
}

case_out_of_time() {
	in_lab --timeout 2 -- sleep 100
	expect_status 124
	expect err 'out of time'
	grep -q 'sysrq: Show State' "$(run_dir)/kernel.log" || fail "the tasks were not shown in the kernel log"
	no_guest_left
}

case_hang() {
	misbehaving lab
	in_lab --timeout 2 --cpus 1 -- insmod "$MODULE" what=hang
	expect_status 124
	no_guest_left
}

case_panic() {
	misbehaving lab
	in_lab -- insmod "$MODULE" what=die
	expect_status 126
	expect err 'Kernel panic - not syncing: misbehave'
	expect err 'the guest died'
	no_guest_left
}

case_fault() {
	misbehaving lab
	in_lab -- insmod "$MODULE" what=fault
	expect_status 126
	expect err 'Kernel mode fault at addr 0x8'
	no_guest_left
}

case_warning() {
	misbehaving lab
	in_lab -- insmod "$MODULE" what=warn
	expect_status 123
	expect err 'WARNING: .*misbehave.c'
	expect err 'the kernel complained'
}

# SIGTERM as from a service manager; Ctrl-C is the same handler.
case_interrupt() {
	local signal
	for signal in INT TERM HUP; do
		start_long_run
		kill "-$signal" "$PID"
		STATUS=0
		wait "$PID" || STATUS=$?
		expect_status "$([[ $signal == INT ]] && echo 130 || echo 143)"
		expect err 'interrupted'
		! pgrep -f "$MARK" >/dev/null || fail "a guest is left running after SIG$signal"
	done
}

# Nobody can catch SIGKILL: the kernel ends the guest.
case_killed() {
	local i
	start_long_run
	kill -KILL "$PID"
	for ((i = 0; i < 100; i++)); do
		pgrep -f "$MARK" >/dev/null || return 0
		sleep 0.1
	done
	fail "a guest is left running"
}

# Sets PID to a lab that runs a script for long, and MARK to what its guest's command line holds.
start_long_run() {
	# What the last one said must not be taken for this one's: a background command opens its files when it likes.
	rm -f "$WORK/out"
	# A shell starts background commands deaf to SIGINT.
	perl -e '$SIG{INT} = "DEFAULT"; exec @ARGV' "$LAB/lab" exec --type rxe -- bash -c 'echo started; sleep 1000' \
		>"$WORK/out" 2>"$WORK/err" </dev/null &
	PID=$!
	while ! grep -qs started "$WORK/out"; do
		kill -0 "$PID" || fail "$(<"$WORK/err")"
		sleep 0.1
	done
	MARK=$(pgrep -P "$PID" -a -f linux | grep -o -m 1 'lab_run=[^ ]*') || fail "no guest of $PID's is to be seen: $(ps -ef)"
}

case_closed_pipe() {
	local began=$SECONDS
	timeout 60 "$LAB/lab" exec --type rxe -- yes 2>"$WORK/err" </dev/null | head -n 2 >"$WORK/out" || :
	((SECONDS - began < 30)) || fail "went on for $((SECONDS - began)) s with nobody reading"
	[[ $(<"$WORK/out") == $'y\ny' ]] || fail "$(<"$WORK/out")"
}

case_reboot() {
	in_lab --timeout 20 -- perl -e 'syscall(169, 0xfee1dead, 672274793, 0x1234567, 0)'
	expect_status 126
	no_guest_left
}

case_shell() {
	"$LAB/selftest-shell.py"
}

# All that the bench writes is there after its shortest run, and says something.
case_bench() {
	lab bench tiny "$WORK/bench"
	expect_status 0
	expect out '^write 1 MiB, MTU 9000 .* one TCP stream .* (pass|SHORT)$'
	expect out '^write 1 MiB, MTU 9000, cut .* bare frames .* (pass|SHORT)$'
	expect out '^a cache line from CPU to CPU and back: [1-9][0-9]* .. [1-9][0-9]* ns$'
	python3 -c 'import json, sys; assert json.load(open(sys.argv[1]))["floors"]' "$WORK/bench/bench.json" ||
		fail "bench.json is not what it should be"
	grep -q '<svg' "$WORK/bench/bench.html" || fail "bench.html has no plot"
	! grep -qE '(src|href)="http' "$WORK/bench/bench.html" || fail "bench.html needs other files"
}

# Installed as by a package, for the guest alone.
case_provider_in_place() {
	lab exec --type medge -- bash -c 'ls -1 /etc/libibverbs.d; ibv_devices'
	expect_status 0
	expect out '^medge.driver$'
	expect out 'medge_a'
	expect out 'medge_b'
	[[ ! -e /etc/libibverbs.d/medge.driver ]] || fail "the provider was installed on the host"
}

# In one boot, each in a phase of its own, in which it has to be told. After a use of what was freed nobody looks for locks
# in the wrong order any more.
case_debug_notices() {
	local what command=()
	misbehaving debug
	for what in invert_locks sleep_atomic use_after_free; do
		# shellcheck disable=SC2016 # for the guest's shell
		command+=(--next bash -c 'insmod "$0" "what=$1" && rmmod misbehave' "$MODULE" "$what")
	done
	in_lab --kernel debug --several -- "${command[@]:1}"
	expect_status 123
	expect err 'possible circular locking dependency detected'
	expect err 'BUG: sleeping function called from invalid context'
	expect err 'BUG: KASAN: slab-use-after-free in .*misbehave'
}

case_debug_leak() {
	misbehaving debug
	in_lab --kernel debug -- insmod "$MODULE" what=leak
	expect_status 0
	expect err 'unreferenced object 0x[0-9a-f]* \(size (200|208|256)\)'
}

case_debug_clean() {
	misbehaving debug
	# shellcheck disable=SC2016 # for the guest's shell
	in_lab --kernel debug -- bash -c 'on a rdma link && insmod "$0" what=free_neighbours' "$MODULE"
	expect_status 0
	! grep -q 'unreferenced object' "$WORK/err" || fail "$(<"$WORK/err")"
}

# In one piece, so that editing this file does not disturb a run.
main() {
	if [[ ${1:-} == --list ]]; then
		printf '%s\n' "${CASES[@]}"
		exit
	fi
	(($#)) || set -- "${CASES[@]}"
	for one in "$@"; do
		declare -F "case_$one" >/dev/null || fail "there is no case $one"
		"case_$one"
	done
	exit 0
}
main "$@"
