# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# lab figures: measure what schedulers, fences and congestion control are worth, and draw it beside the papers' figures.
# shellcheck shell=bash

(($# <= 1)) || die "lab figures takes one directory, not '$*'; see lab help"
DIR=${1:-figures}
[[ $DIR != -* ]] || die "lab figures has no option '$DIR'; see lab help"
mkdir -p "$DIR" || die "cannot make the directory '$DIR'"
DIR=$(readlink -f "$DIR")
PACKAGES+=(python3-matplotlib)
install_packages

# measure FILE COMMAND...: what it prints is kept, and shown. A limit that is missed is told by it, and drawn all the same.
FAILED=0
measure() {
	local file=$DIR/$1 status=0
	shift
	say "measuring $(basename "$file" .txt)"
	"$@" 2>&1 | tee "$file" || status=$?
	case $status in
	0 | 77) ;;
	1) FAILED=$((FAILED + 1)) ;;
	*) exit "$status" ;;
	esac
}

cd "$REPO" || exit
for rails in 1 2 4 8; do
	measure "rails-$rails.txt" "$LAB/lab" exec --rails "$rails" --rate 1gbit --mtu 9000 --timeout 900 -- \
		tests/verbs/rails_bw.sh full
done
measure fences.txt "$LAB/lab" exec --rails 2 --mtu 9000 -- tests/verbs/fence_bench.sh
measure congestion.txt make -s -C tests/transport sim "BUILD=$(tree_cache)/transport"
{
	uname -sr
	sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo | head -n 1
	date -u +%F
	git -C "$REPO" describe --always --dirty 2>/dev/null
} >"$DIR/machine.txt"
/usr/bin/python3 -B "$LAB/figures.py" "$DIR"
say "the figures are in $DIR/figures.html"
((FAILED == 0)) || die "$FAILED of the measurements missed a limit"
