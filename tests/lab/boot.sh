# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# One boot of the guest: start it, follow its phases, end it whatever happens, and say how it went.
#
# The guest's standard output and standard error are two of its consoles; its kernel log is a third, which
# goes to a file, and tells the phases ("medge-lab: phase script rxe"), results and complaints as it goes.
# Everything runs in a process-id namespace of its own, which dies with the lab.
# shellcheck shell=bash

BOOT_LIMIT=90 SETUP_LIMIT=60 TEARDOWN_LIMIT=120
RUNS_KEPT=40

# boot_script COMMAND ARG...: boot with the options of options.sh, run COMMAND for each type in the guest, and
# leave the exit status in STATUS. With SEVERAL, the word --next stands before another command, which has devices of its own.
boot_script() {
	boot_prepare
	boot_plan "$@" >"$RUN/plan"
	boot_guest
	boot_judge
}

# What the options ask for: packages, kernel, module, provider.
boot_prepare() {
	install_packages
	kernel_build "$KERNEL"
	MACHINE=uml MODULE='' MODULES='' PROVIDER=''
	if is_stock "$KERNEL"; then
		MACHINE=qemu MODULES=$KERNEL_DIR/modules
	fi
	! has_type medge || once "module-$KERNEL" MODULE MODULES -- module_build
	! is_stock "$KERNEL" || ! wants_siw || stock_siw
	is_stock "$KERNEL" || once "test-modules-$KERNEL" -- test_modules_build
	# Its build has the tests' programs, too, which run on the peers.
	once provider PROVIDER -- provider_build
	boot_run_dir
	provider_show "$RUN/provider"
}

# once NAME [VARIABLE...] -- COMMAND: COMMAND builds something, and sets the variables. The boots of one lab test believe
# the first of them, for to see that there is nothing to do takes seconds each time; so they test one state of the tree.
once() {
	local name=$1 variables=()
	shift
	while [[ $1 != -- ]]; do
		variables+=("$1")
		shift
	done
	if [[ ${LAB_ONCE:-} && -e $LAB_ONCE/$name ]]; then
		# shellcheck source=/dev/null
		. "$LAB_ONCE/$name"
		return
	fi
	"${@:2}"
	[[ ${LAB_ONCE:-} ]] || return 0
	{
		((${#variables[@]} == 0)) || declare -p "${variables[@]}" | sed 's/^declare -[^ ]*/declare -g/'
	} >"$LAB_ONCE/$name.$$"
	mv "$LAB_ONCE/$name.$$" "$LAB_ONCE/$name"
}

# Devices of siw's may also be measured beside medge's, in one run of the script.
wants_siw() {
	has_type siw || [[ " ${BENCH_PEERS:-} " == *" siw "* ]]
}

# A directory for this boot's files; those of old boots go.
boot_run_dir() {
	local old
	mkdir -p "$CACHE/run"
	RUN=$(mktemp -d "$CACHE/run/$(date +%m%d-%H%M%S)-XXXX")
	chmod 755 "$RUN"
	mkdir "$RUN/memory" "$RUN/out"
	mkfifo "$RUN/stdout" "$RUN/stderr" "$RUN/alive"
	: >"$RUN/kernel.log"
	find "$CACHE/run" -mindepth 1 -maxdepth 1 -type d -mmin +120 -printf '%T@ %p\n' | sort -rn |
		tail -n "+$RUNS_KEPT" | cut -d' ' -f2- |
		while read -r old; do rm -rf "$old"; done
}

# The guest's orders, as shell variables; and the caller's environment, so that SCRIPT finds it.
boot_plan() {
	local SCRIPT=("$@") DIRECTORY=$PWD INTERACTIVE=${INTERACTIVE:-} TTY_SIZE='' MHZ
	[[ ! $INTERACTIVE ]] || TTY_SIZE=$(stty size)
	MHZ=$(awk -F: '/^cpu MHz/ { sum += $2; n++ } END { printf "%.3f", n ? sum / n : 1000 }' /proc/cpuinfo)
	export -p | grep -vE '^declare -x (BASH[A-Z_]*|SHELLOPTS|PWD|OLDPWD|SHLVL|TMPDIR)(=|$)' | boot_whole_declarations
	declare -p SCRIPT DIRECTORY LAB REPO RUN TYPES NODES RAILS MTU RATE NETEM BOND_MODE CPUS KERNEL KERNEL_DIR TIMEOUT MACHINE \
		MODULE MODULES PROVIDER PROVIDER_LIBRARIES PLUGIN_DIRS INTERACTIVE SEVERAL TTY_SIZE MHZ COMMAND
}

# Without the variables above, a value of several lines may have lost its first one.
boot_whole_declarations() {
	awk '/^declare -x / { whole = 1 } whole'
}

boot_guest() {
	local GUEST_COMMAND
	"${MACHINE}_command"
	say "booting the $KERNEL kernel: $NODES nodes, $RAILS rails, MTU $MTU${RATE:+, $RATE each}${NETEM:+, $NETEM}"
	# Only noted: bash does not survive a trap that leaves a read that has a timeout.
	INTERRUPTED=
	trap 'INTERRUPTED=130' INT
	trap 'INTERRUPTED=143' TERM HUP
	trap boot_stop EXIT
	if [[ ${INTERACTIVE:-} ]]; then
		TTY_STATE=$(stty -g)
		boot_launch "${GUEST_COMMAND[@]}" <&0 6>/dev/null 2>"$RUN/launch.log" &
		GUEST=$!
	else
		cat <"$RUN/stdout" &
		READERS=($!)
		cat <"$RUN/stderr" >&2 &
		READERS+=($!)
		boot_launch "${GUEST_COMMAND[@]}" </dev/null >"$RUN/stdout" 6>"$RUN/stderr" 2>"$RUN/launch.log" &
		GUEST=$!
	fi
	boot_watch
	boot_stop
}

# The guest's memory is a file; the machine's own /dev/shm may be small, so it gets a file system of its own.
# Its files and core dumps must not outlive it, and what it inherits must not keep a lock of ours.
#
# For --host awake, a process of the lowest priority on each of its CPUs: it keeps a CPU from halting, which on a
# virtual machine makes each of the guest's switches between user space and kernel two or three times as dear. Where the
# host shares its CPUs among sessions first, priorities count within one only, and it had half of each CPU: so it is a
# session of its own, of the least share. And each CPU of a User-Mode Linux is one of the host's, and stays that.
boot_launch() {
	local spinners=0
	[[ $HOST_STATE != awake ]] || spinners=$(nproc)
	ulimit -c 0
	# shellcheck disable=SC2016 # for the inner shell
	exec setpriv --pdeathsig KILL unshare --fork --pid --kill-child --mount-proc bash -c '
		mount -t tmpfs -o "size=$1,mode=700" medge-lab "$2/memory" || exit
		for ((cpu = 0; cpu < $3; cpu++)); do
			setsid chrt -i 0 taskset -c "$cpu" bash -c "
				echo 19 >/proc/self/autogroup
				while :; do :; done
			" </dev/null >/dev/null 2>&1 5>&- 6>&- 8>&- &
		done
		shift 3
		exec "$@"
	' bash "$((${MEM%[MG]} * ($([[ $MEM == *G ]] && echo 1024 || echo 1) + 4)))M" "$RUN" "$spinners" \
		env "TMPDIR=$RUN/memory" "UML_HOST_CPUS=$spinners" "$@" 5>>"$RUN/kernel.log" 8>"$RUN/alive"
}

# Follow the phases in the kernel log until the guest has gone, and end it when a phase takes too long.
boot_watch() {
	local line alive log deadline=$((SECONDS + BOOT_LIMIT))
	PHASE=boot END='' RESULTS=() VERDICT=
	exec {alive}<"$RUN/alive" {log}<"$RUN/kernel.log"
	while :; do
		while IFS= read -r -u "$log" line; do
			boot_follow "$line"
		done
		[[ ! $INTERRUPTED ]] || VERDICT=interrupted
		[[ ! $VERDICT || ($VERDICT == panic && $SECONDS -lt $deadline) ]] || return 0
		if read -rt 0.1 -u "$alive"; then :; elif (($? <= 128)); then
			break
		fi
		if ((SECONDS >= deadline)); then
			VERDICT=${VERDICT:-timeout}
		elif [[ ! ${INTERACTIVE:-} ]] && boot_output_refused; then
			VERDICT=closed
		fi
	done
	while IFS= read -r -u "$log" line; do
		boot_follow "$line"
	done
	exec {alive}<&- {log}<&-
}

# Nobody reads what the guest says any more? A reader also ends, but without an error, when the guest closes its
# output on the way out.
boot_output_refused() {
	[[ ${READERS[0]:-} ]] && ! kill -0 "${READERS[0]}" 2>/dev/null || return 1
	local refused=
	wait "${READERS[0]}" || refused=1
	READERS=("${READERS[@]:1}")
	[[ $refused ]]
}

boot_follow() {
	if [[ $1 == *'Kernel panic - not syncing'* ]]; then
		# The kernel tells the rest of its last words, and may then never exit by itself.
		VERDICT=panic
		deadline=$((SECONDS + 2))
	fi
	[[ $1 == *medge-lab:* ]] || return 0
	local words
	read -ra words <<<"$(tr -d '\r' <<<"${1#*medge-lab: }")"
	case ${words[0]} in
	phase)
		[[ ${words[*]:1} != setup || $PHASE == boot ]] || VERDICT=rebooted
		PHASE=${words[*]:1:2}
		case ${words[1]} in
		setup) deadline=$((SECONDS + SETUP_LIMIT)) ;;
		script) deadline=$((SECONDS + TIMEOUT + 3)) ;;
		*) deadline=$((SECONDS + TEARDOWN_LIMIT)) ;;
		esac
		[[ ! ${INTERACTIVE:-} || ${words[1]} != script ]] || deadline=$((SECONDS + 10000000))
		;;
	status) RESULTS+=("${words[1]}:${words[2]}") ;;
	timeout) VERDICT=timeout ;;
	failed) VERDICT=failed ;;
	end) END=1 ;;
	esac
}

# End the guest, and return only when none of its processes is left: the first process of the namespace
# can be waited for only after all others are gone.
boot_stop() {
	local first
	[[ ${GUEST:-} ]] || return 0
	trap '' INT TERM HUP
	if first=$(pgrep -P "$GUEST"); then
		[[ ! $VERDICT ]] || kill -KILL "$first" 2>/dev/null || :
	fi
	wait "$GUEST" 2>/dev/null || :
	GUEST=
	wait "${READERS[@]}" 2>/dev/null || :
	[[ ! ${TTY_STATE:-} ]] || stty "$TTY_STATE" || :
	rm -f "$RUN/stdout" "$RUN/stderr" "$RUN/alive"
	rmdir "$RUN/memory" 2>/dev/null || :
	trap - INT TERM HUP
}

# Say how it went; sets STATUS.
boot_judge() {
	local result complaint='' log="kernel log: $RUN/kernel.log"
	STATUS=0
	trap - EXIT
	if report_print "$RUN/kernel.log"; then
		complaint=1
	fi
	for result in "${RESULTS[@]}"; do
		((STATUS)) || STATUS=${result##*:}
		((${result##*:} == 0)) || complain "the script ended with status ${result##*:} for ${result%:*}"
	done
	if [[ $VERDICT == interrupted ]]; then
		complain "interrupted; the guest was ended"
		STATUS=$INTERRUPTED
	elif [[ $VERDICT == closed ]]; then
		STATUS=141
	elif [[ $VERDICT == failed ]]; then
		complain "the lab could not set up the nodes; $log"
		STATUS=$LAB_FAILED
	elif [[ $VERDICT == timeout && $PHASE == script* ]]; then
		complain "out of time: ${PHASE/script/the script for} took more than $TIMEOUT s and was ended; $log"
		STATUS=124
	elif [[ $VERDICT == timeout ]]; then
		complain "the guest hung (phase: $PHASE) and was ended; $log"
		STATUS=126
	elif [[ ! $END ]]; then
		[[ $complaint ]] || tail -qn 15 "$RUN/launch.log" "$RUN/kernel.log" >&2
		complain "the guest died (phase: $PHASE); $log"
		STATUS=126
	elif [[ $complaint ]]; then
		complain "the kernel complained, see above; $log"
		STATUS=123
	fi
}
