# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# The Debian packages that the lab needs, installed when missing.
# shellcheck shell=bash

PACKAGES=(
	# to build the kernel and the module
	bc bison cpio flex gcc kmod libc6-dev libelf-dev libssl-dev make patch perl xz-utils
	# to build the provider and the tests
	cmake cython3 clang clang-tidy libclang-rt-dev pkg-config libibverbs-dev librdmacm-dev libnl-3-dev libnl-route-3-dev python3-dev
	# to build perftest
	autoconf automake libibumad-dev libpci-dev libtool
	# to run stock kernels
	busybox-static mmdebstrap qemu-system-x86 zstd
	# to run what the tests run
	ethtool ibverbs-utils iproute2 libfabric-bin libopenmpi-dev openmpi-bin perftest procps python3 python3-hypothesis
	python3-pyverbs qperf rdma-core rdmacm-utils ucx-utils util-linux
	# to look at the code
	coccinelle codespell shellcheck sparse
	# to build packages
	autodep8 autopkgtest dpkg-dev git rpm rpmlint
)

install_packages() {
	local missing=() package
	while read -r package; do
		missing+=("$package")
	done < <(missing_packages)
	((${#missing[@]})) || return 0
	command -v apt-get >/dev/null || die "the lab needs Debian's apt-get to install: ${missing[*]}"
	((EUID == 0)) || die "as root, run: apt-get install --no-install-recommends ${missing[*]}"
	mkdir -p "$CACHE/log"
	say "installing ${#missing[@]} packages: ${missing[*]}"
	export DEBIAN_FRONTEND=noninteractive
	run_logged "$CACHE/log/apt-update" "apt-get update" apt-get -q update
	run_logged "$CACHE/log/apt-install" "installing packages" \
		apt-get -qy -o DPkg::Lock::Timeout=600 install --no-install-recommends "${missing[@]}"
}

# A name counts as present when a package of that name, or one that provides it, is installed.
missing_packages() {
	local installed
	# shellcheck disable=SC2016 # dpkg's own variables
	installed=$(dpkg-query -W -f '${db:Status-Abbrev} ${Package}, ${Provides},\n' | sed -n 's/^ii  *//p' |
		sed 's/ *([^)]*)//g; s/, */\n/g')
	printf '%s\n' "${PACKAGES[@]}" | grep -vxF -f <(printf '%s\n' "$installed" | grep .) || :
}
