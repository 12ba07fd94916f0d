# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Two machines with medge from packages, emulated: one disk, which each starts from and neither changes. Nothing of the
# lab is on it but one unit, which does what a user would and switches the machine off.
#
#      machine a                              machine b
#   bond0 --- rail0 ------- a socket ------- rail0 --- bond0     192.0.2.1/24, 192.0.2.2/24, by systemd-networkd
#         \-- rail1 ------- a socket ------- rail1 --/
#
# shellcheck shell=bash

# Seconds that a job may take, its boot included.
MACHINE_LIMIT=2400

# machine_pair SUITE [NEWER]: packages of this tree, installed on a system of SUITE, which is then started twice; and the
# two find each other. With a version NEWER, one of them is upgraded to it meanwhile. What they say is in $RUN.
machine_pair() {
	local suite=$1 newer=${2:-}
	machine_root "$suite"
	machine_run_dir "$suite"
	package_build "$suite"
	package_files "$RUN/packages"
	unlock
	if [[ $newer ]]; then
		package_build "$suite" "$newer"
		package_files "$RUN/newer"
		unlock
	fi
	machine_disk "$RUN/disk"
	say "starting two machines of $suite"
	machine_start a
	machine_start b
	machine_wait "two machines"
	rm "$RUN/disk"
}

# machine_disk IMAGE: the system, configured as its user would, on a disk. The packages are installed before the first
# start, as by an installer: DKMS's compiler takes long to emulate.
machine_disk() {
	local image=$1 tree=$1.tree
	rm -rf "$tree" "$image"
	mkdir "$tree"
	cp -a --reflink=auto "$MACHINE_DIR/root/." "$tree/"
	cp -r "$RUN/packages" "$tree/root/"
	[[ ! -d $RUN/newer ]] || cp -r "$RUN/newer" "$tree/root/"
	# shellcheck disable=SC2016 # for the inner shell
	run_logged "$RUN/install" "installing the packages" unshare --mount --fork bash -c '
		mount -t proc proc "$1/proc" && mount --rbind /dev "$1/dev" || exit
		exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
			chroot "$1" sh -c "apt-get -qy install /root/packages/*.deb && dkms status"
	' bash "$tree"
	echo 'medge0 bond0' >>"$tree/etc/medge/devices"
	cp -r "$LAB/machine/." "$tree/"
	ln -sf /lib/systemd/system/systemd-networkd.service "$tree/etc/systemd/system/multi-user.target.wants/"
	ln -sf ../lab-job.service "$tree/etc/systemd/system/multi-user.target.wants/"
	# Slow to emulate, and nobody logs in.
	ln -sf /dev/null "$tree/etc/systemd/system/getty.target"
	: >"$tree/etc/machine-id"
	truncate -s 4G "$image"
	run_logged "$image.log" "making a disk" mke2fs -q -t ext4 -F -L root -d "$tree" "$image"
	rm -rf "$tree"
}

# machine_start NAME: a, and then b; what its job says goes to $RUN/NAME.out.
machine_start() {
	local name=$1
	machine_rails "$name"
	local options=(root=/dev/vda rw quiet console=ttyS0 panic=-1 "systemd.hostname=$name" systemd.show_status=no
		# sched_clock() is never patched while the other CPU runs it: see qemu_command.
		tsc=unstable
		# Others may want this machine's CPUs, too.
		"systemd.default_timeout_start_sec=$MACHINE_LIMIT" "systemd.default_device_timeout_sec=$MACHINE_LIMIT")
	setpriv --pdeathsig KILL qemu-system-x86_64 -nodefaults -no-user-config -no-reboot -display none -M pc \
		-accel "tcg,thread=multi" -cpu "max,-erms" -smp 2 -m 2G -kernel "$MACHINE_DIR/vmlinux" -initrd "$MACHINE_DIR/initrd" \
		-append "${options[*]}" \
		-drive "file=$RUN/disk,format=raw,if=virtio,snapshot=on" "${RAIL_OPTIONS[@]}" \
		-serial "file:$RUN/$name.console" -serial "file:$RUN/$name.out" </dev/null >"$RUN/$name.qemu" 2>&1 &
	MACHINES+=($!)
	# The other one finds no rails before they are there, and does not look again.
	while [[ $name == a && ! -S $RUN/rail1.socket ]] && kill -0 "$!" 2>/dev/null; do
		pause 0.1
	done
}

# machine_wait WHAT: for all that was started; dies if one of them did not end its job well.
machine_wait() {
	local what=$1 began=$SECONDS next=$((SECONDS + 20)) pid out
	for pid in "${MACHINES[@]}"; do
		while kill -0 "$pid" 2>/dev/null; do
			pause 0.5
			if ((SECONDS >= next)); then
				say "$what: $((SECONDS - began)) s"
				next=$((SECONDS + 20))
			fi
			((SECONDS - began < MACHINE_LIMIT)) || kill "${MACHINES[@]}" 2>/dev/null || :
		done
	done
	wait "${MACHINES[@]}" || :
	MACHINES=()
	for out in "$RUN"/*.out; do
		if ! tr -d '\r' <"$out" | grep -qx 'lab-job: status 0'; then
			tail -n 40 "$out" "${out%.out}.console" "${out%.out}.qemu" >&2
			die "$what failed; see $out and what is beside it"
		fi
	done
}

# machine_rails NAME: QEMU's options for two rails, which are sockets; b is who connects to them.
machine_rails() {
	local rail server=off node=2
	[[ $1 == b ]] || server=on node=1
	RAIL_OPTIONS=()
	for rail in 0 1; do
		RAIL_OPTIONS+=(-netdev "stream,id=rail$rail,server=$server,addr.type=unix,addr.path=$RUN/rail$rail.socket"
			-device "virtio-net-pci,netdev=rail$rail,mac=52:54:00:00:0$rail:0$node,host_mtu=9000")
	done
}

# A directory for the disk and what the machines say; that of the last time goes.
machine_run_dir() {
	RUN=$(tree_cache)/machine/$1
	rm -rf "$RUN"
	mkdir -p "$RUN"
	MACHINES=()
	trap 'kill "${MACHINES[@]}" 2>/dev/null || :' EXIT
}
