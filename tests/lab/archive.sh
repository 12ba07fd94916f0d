# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Packages of other Debian suites, through a private apt configuration that takes the mirror from
# the machine's own.
# shellcheck shell=bash

# archive_download SUITE PACKAGE DIR: the suite's newest PACKAGE into DIR; false if there is none.
archive_download() {
	local suite=$1 package=$2 dir=$3 apt=$CACHE/apt/$1
	local options=(-o "Dir::Etc::SourceList=$apt/sources.list" -o Dir::Etc::SourceParts=/dev/null
		-o "Dir::State=$apt/state" -o "Dir::State::Lists=$apt/lists" -o "Dir::Cache=$apt/cache"
		-o Dir::State::status=/var/lib/dpkg/status -o APT::Sandbox::User=root)
	mkdir -p "$apt/state" "$apt/lists/partial" "$apt/cache/archives/partial" "$dir"
	printf 'deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] %s %s main\n' \
		"$(archive_mirror)" "$suite" >"$apt/sources.list"
	run_logged "$apt/update.log" "reading the package list of $suite" apt-get -q "${options[@]}" update
	apt-cache "${options[@]}" show "$package" >/dev/null 2>&1 || return 1
	run_logged "$apt/download.log" "downloading $package from $suite" \
		env -C "$dir" apt-get -q "${options[@]}" download "$package"
}

# The mirror of the Debian archive proper that this machine uses.
archive_mirror() {
	local uri
	# shellcheck disable=SC2016 # apt's own variables
	uri=$(apt-get indextargets --format '$(REPO_URI)' | grep -E '/debian/?$' | sort -u | sed -n 1p)
	[[ $uri ]] || die "apt's sources name no Debian mirror; add one to /etc/apt/sources.list"
	echo "$uri"
}
