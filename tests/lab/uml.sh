# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# The command line of User-Mode Linux. File descriptors: 1 and 6 the script's output, 5 the kernel log.
# shellcheck shell=bash

# uml_command: sets GUEST_COMMAND.
uml_command() {
	GUEST_COMMAND=(
		"$KERNEL_DIR/linux" quiet rootfstype=hostfs ro "mem=$MEM" "ncpus=$CPUS" seccomp=on
		"init=$LAB/guest/init" "lab_run=$RUN" con=null ssl=null "ssl0=null,fd:5" console=ttyS0 loglevel=8 printk.time=1
		kmemleak=on "con1=null,fd:6"
	)
	if [[ ${INTERACTIVE:-} ]]; then
		GUEST_COMMAND+=("con0=fd:0,fd:1")
	else
		GUEST_COMMAND+=("con0=null,fd:1")
	fi
}
