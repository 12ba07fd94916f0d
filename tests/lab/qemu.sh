# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# The command line of QEMU, which emulates a machine for a stock kernel: there is no need of a CPU that can
# virtualize. File descriptors: 1 and 6 the script's output, 5 the kernel log.
# shellcheck shell=bash

# qemu_command: sets GUEST_COMMAND.
qemu_command() {
	local cmdline="quiet console=ttyS0 loglevel=8 printk.time=1 panic=-1 lab_init=$LAB/guest/init lab_run=$RUN"
	local accel
	if [[ ${LAB_ICOUNT:-} ]]; then
		# For lab bench cost: the guest's clock counts its instructions, and its one CPU runs as fast as it can.
		accel=(-accel "tcg,thread=single" -icount "shift=0,sleep=off" -qmp "unix:$RUN/qmp,server=on,wait=off")
	else
		accel=(-accel "tcg,thread=multi")
		# A CPU that runs code while another patches it may keep a breakpoint that is gone ("Oops: int3"). The likely
		# place is sched_clock(), which each interrupt calls: it is patched when the TSC is found stable, hence one CPU
		# until init, and when it is found unstable by a watchdog that the emulation does not know.
		cmdline+=" maxcpus=1 tsc=reliable"
	fi
	GUEST_COMMAND=(
		qemu-system-x86_64 -nodefaults -no-user-config -no-reboot -nic none -display none -M pc
		# Some kernels' copying by "erms" is slow to emulate.
		"${accel[@]}" -cpu "max,-erms" -smp "$CPUS" -m "$MEM"
		-kernel "$KERNEL_DIR/vmlinux" -initrd "$KERNEL_DIR/initramfs" -append "$cmdline"
		-chardev "file,id=log,path=/dev/fd/5" -serial chardev:log
		-fsdev "local,id=root,path=/,security_model=none,readonly=on,multidevs=remap"
		-device "virtio-9p-pci,fsdev=root,mount_tag=root"
		-fsdev "local,id=host,path=/,security_model=none,multidevs=remap"
		-device "virtio-9p-pci,fsdev=host,mount_tag=host"
		-device virtio-serial-pci
	)
	if [[ ${INTERACTIVE:-} ]]; then
		GUEST_COMMAND+=(-chardev "stdio,id=out,signal=off" -device "virtconsole,chardev=out")
	else
		GUEST_COMMAND+=(-chardev "file,id=out,path=/dev/fd/1" -device "virtserialport,chardev=out,nr=1"
			-chardev "file,id=err,path=/dev/fd/6" -device "virtserialport,chardev=err,nr=2")
	fi
}
