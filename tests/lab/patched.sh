# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# perftest with the series in perftest-patches/, built in the cache.
# shellcheck shell=bash

PERFTEST_BASE=perftest_25.01.0+0.80.orig.tar.gz
PERFTEST_SHA256=54e86b131f0b06862b8b9cd692739737295463cfef467bdda5f5aa3dae8c5b05

# perftest_build: sets PERFTEST to the directory of the programs. Needs the PROVIDER, whose direct verbs they use.
perftest_build() {
	local dir began=$SECONDS key
	dir=$(tree_cache)/perftest
	lock "$dir.lock" "building perftest"
	key=$(cat "$REPO"/perftest-patches/*.patch "$REPO"/providers/medge/{medgedv.h,libmedge.map} | sha256sum)
	if [[ ! -e $dir/.complete || $(<"$dir/.complete") != "$key" ]]; then
		rm -rf "$dir"
		mkdir -p "$dir"
		perftest_source "$dir"
		# shellcheck disable=SC2016 # for the inner shell
		run_logged "$dir.log" "building perftest (half a minute)" env -C "$dir" bash -c '
			./autogen.sh && ./configure "CPPFLAGS=-I$0" "LDFLAGS=-L$1" && make -j "$(nproc)"
		' "$PROVIDER/usr/include" "$PROVIDER/usr/$(provider_libdir)"
		if grep -E '^(src/|man/).*warning:' "$dir.log" >&2; then
			die "the series for perftest does not compile without warnings; see $dir.log"
		fi
		echo "$key" >"$dir/.complete"
	fi
	unlock
	PERFTEST=$dir
	say "perftest is up to date ($((SECONDS - began)) s)"
}

# perftest_source DIR: the base, with the series applied.
perftest_source() {
	perftest_base
	tar -xf "$PERFTEST_TARBALL" -C "$1" --strip-components=1
	"$REPO/perftest-patches/apply" "$1" || die "the series for perftest does not apply to $PERFTEST_BASE"
}

# perftest_base: sets PERFTEST_TARBALL to the release, which comes from the archive's pool, by its checksum.
perftest_base() {
	local mirror
	PERFTEST_TARBALL=$CACHE/perftest/$PERFTEST_BASE
	mkdir -p "$CACHE/perftest" "$CACHE/log"
	if ! sha256sum --check --status <<<"$PERFTEST_SHA256  $PERFTEST_TARBALL" 2>/dev/null; then
		rm -f "$PERFTEST_TARBALL"
		mirror=$(archive_mirror)
		run_logged "$CACHE/log/perftest" "downloading $PERFTEST_BASE" \
			/usr/lib/apt/apt-helper -o APT::Sandbox::User=root download-file \
			"${mirror%/}/pool/main/p/perftest/$PERFTEST_BASE" "$PERFTEST_TARBALL" "SHA256:$PERFTEST_SHA256"
	fi
}
