# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# RPM packages of this tree, built on this machine, which is no Fedora: redhat/README says what that leaves open.
# shellcheck shell=bash

RPM_MACROS=(/usr/lib/rpm/{macros,'macros.d/macros.*','platform/%{_target}/macros','fileattrs/*.attr'} "$LAB/rpm.macros")

# Directories of the system, and of packages that ours require.
RPM_SYSTEM_DIRS=(usr/{bin,sbin,src,libexec,lib/systemd/system,share/{doc,licenses,man/man{1,3,7,8}}} etc/libibverbs.d usr/lib64/libibverbs
	usr/include/infiniband usr/lib64/pkgconfig usr/lib64/cmake)

# rpm_build: sets PACKAGE_DIR to where the source package and the packages are.
rpm_build() {
	local abi
	PACKAGE_DIR=$(tree_cache)/package/rpm
	lock "$PACKAGE_DIR.lock" "building packages"
	rm -rf "$PACKAGE_DIR"
	mkdir -p "$PACKAGE_DIR/SOURCES"
	package_tarball_tree "$PACKAGE_DIR/SOURCES/medge-$(package_version).tar.xz"
	for abi in "${PACKAGE_ABIS[@]}"; do
		package_component "$abi"
		cp "$COMPONENT" "$PACKAGE_DIR/SOURCES/"
	done
	perftest_base
	cp "$PERFTEST_TARBALL" "$PACKAGE_DIR/SOURCES/$(sed -n 's/^%global perftest  *//p' "$REPO/redhat/medge.spec").tar.gz"
	rpm_run "$PACKAGE_DIR/log" "building the RPM packages" rpmbuild -ba --nodeps \
		--define "_topdir $PACKAGE_DIR" "$REPO/redhat/medge.spec"
	rm -rf "$PACKAGE_DIR"/{BUILD,BUILDROOT,SOURCES,SPECS}
	unlock
}

# rpm_run LOG WHAT TOOL ARG...: with the macros that Fedora has and Debian has not, and none of the user's own.
rpm_run() {
	local log=$1 what=$2 tool=$3 macros
	shift 3
	macros=$(IFS=: && echo "${RPM_MACROS[*]}")
	run_logged "$log" "$what" "$tool" --macros "$macros" "$@"
}

# The private ABI of this machine's libibverbs.
rpm_abi() {
	grep -ao 'IBVERBS_PRIVATE_[0-9]*' "/usr/$(provider_libdir)/libibverbs.so" | sed -n '1s/.*_//p'
}

# rpmlint, of which every word counts; redhat/rpmlint.toml says which ones do not, and why.
rpm_lint() {
	local log=$PACKAGE_DIR/rpmlint
	run_logged "$log" "rpmlint" rpmlint --config "$REPO/redhat/rpmlint.toml" "$REPO/redhat/medge.spec" "$PACKAGE_DIR/SRPMS" "$PACKAGE_DIR/RPMS"
	if ! grep -q ' 0 errors, 0 warnings' "$log"; then
		cat "$log" >&2
		die "rpmlint is not content; log: $log"
	fi
}

# Installed and removed again, the packages leave nothing; and DKMS hears of the module and of its end. The root is
# empty but for a shell and a dkms that notes what it is asked.
rpm_install() {
	local root=$PACKAGE_DIR/root before rpms tool=(rpm --root "$PACKAGE_DIR/root")
	rm -rf "$root"
	mkdir -p "$root"/{bin,dev,var/{lib/rpm,tmp}} "${RPM_SYSTEM_DIRS[@]/#/$root/}"
	cp "$(type -P busybox)" "$root/bin/busybox"
	ln -s busybox "$root/bin/sh"
	printf '#!/bin/sh\necho "$*" >>/asked\n' >"$root/bin/dkms"
	chmod +x "$root/bin/dkms"
	: >"$root/asked"
	mapfile -t rpms < <(find "$PACKAGE_DIR/RPMS" -name '*.rpm')
	"${tool[@]}" --initdb
	before=$(rpm_files "$root")
	run_logged "$PACKAGE_DIR/install" "installing the packages" "${tool[@]}" --install --nodeps "${rpms[@]}"
	rpm_installed "$root"
	mapfile -t rpms < <("${tool[@]}" --query --all)
	run_logged "$PACKAGE_DIR/erase" "removing the packages" "${tool[@]}" --erase --nodeps "${rpms[@]}"
	diff <(echo "$before") <(rpm_files "$root") >&2 || die "the packages leave something behind, see above"
	diff - "$root/asked" >&2 <<-END || die "DKMS was not asked what it should be, see above"
		add -m medge -v $(package_version)-1 -q
		build -m medge -v $(package_version)-1 -q
		install -m medge -v $(package_version)-1 -q --force
		remove -m medge -v $(package_version)-1 -q --all
	END
	rm -rf "$root"
}

# Without the directories of build IDs: where files of two packages share one, rpm gives it to but one of them, which may go
# first.
rpm_files() {
	(cd "$1" && find . -path ./var/lib/rpm -prune -o -path './usr/lib/.build-id*' -type d -o -print | sort)
}

rpm_installed() {
	local root=$1
	[[ -e $root/usr/lib64/libibverbs/libmedge-rdmav$(rpm_abi).so ]] || die "the plugin is a link to nothing"
	grep -qx "PACKAGE_VERSION=\"$(package_version)-1\"" "$root/usr/src/medge-$(package_version)-1/dkms.conf" ||
		die "dkms.conf is of another version than the package"
}
