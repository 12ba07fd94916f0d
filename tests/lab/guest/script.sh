# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Running the script, and nothing of it left afterwards.
# shellcheck shell=bash

# script_next: sets SCRIPT to the first of those in WORDS, and takes it away; false: there is none. Where there may be
# several, what each says is between lines that number it, and tell how it ended after how many seconds.
script_next() {
	((${#WORDS[@]})) || return
	SCRIPT=() SCRIPT_STATUS=0 SCRIPT_BEGAN=$SECONDS
	while ((${#WORDS[@]})); do
		[[ ! $SEVERAL || ${WORDS[0]} != --next ]] || break
		SCRIPT+=("${WORDS[0]}")
		WORDS=("${WORDS[@]:1}")
	done
	WORDS=("${WORDS[@]:1}")
	SCRIPT_NUMBER=$((SCRIPT_NUMBER + 1))
	[[ ! $SEVERAL ]] || echo ">>> $SCRIPT_NUMBER"
}

script_end() {
	[[ ! $SEVERAL ]] || echo "<<< $SCRIPT_NUMBER $SCRIPT_STATUS $((SECONDS - SCRIPT_BEGAN))"
}

script_run() {
	local pid watch status
	(
		export DEV_C DEV_D IP_C IP_D IP6_C IP6_D GID_C GID_D NETDEV_C NETDEV_D NODES
		export DEV_A DEV_B IP_A IP_B IP6_A IP6_B GID_A GID_B NETDEV_A NETDEV_B TYPE RAILS MTU KERNEL LAB_OUT
		export RATE NETEM BOND_MODE CPUS LAB_REPO=$REPO LAB_BUILD=${PROVIDER%/stage}/build PATH="/run/lab/bin:${PATH:-/usr/bin:/bin}:/usr/local/sbin:/usr/sbin:/sbin"
		export LD_LIBRARY_PATH=$PROVIDER_LIBRARIES${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
		[[ $INTERACTIVE ]] || export TERM=dumb
		ulimit -l unlimited
		ulimit -n 65536
		cd "$DIRECTORY" 2>/dev/null || cd /
		if [[ $INTERACTIVE ]]; then
			# A background command's standard input is not the terminal unless told so.
			exec </dev/tty0
			stty rows "${TTY_SIZE% *}" cols "${TTY_SIZE#* }"
			exec setsid -w -c "${SCRIPT[@]}"
		fi
		exec "${SCRIPT[@]}"
	) &
	pid=$!
	[[ $INTERACTIVE ]] || {
		script_watch &
		watch=$!
		disown
	}
	wait "$pid" 2>/dev/null
	status=$?
	[[ $INTERACTIVE ]] || kill -KILL "$watch" 2>/dev/null
	sync
	((SCRIPT_STATUS)) || SCRIPT_STATUS=$status
	tell status "$TYPE" "$status"
}

# Out of time: leave in the kernel log what every task and CPU was doing.
script_watch() {
	sleep "$TIMEOUT"
	echo 8 >/proc/sys/kernel/printk
	echo 1 >/proc/sys/kernel/sysrq
	echo w >/proc/sysrq-trigger
	echo t >/proc/sysrq-trigger
	sync
	tell timeout
}

# Whatever the script left running; the devices must be free of users when they are deleted.
processes_end() {
	kill -KILL -1 2>/dev/null
	wait
}
