# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Measuring speed beside the peers: which boots there are, what each measures, and the page that is made of it.
# shellcheck shell=bash

BENCH=$REPO/tests/bench

# bench_speed [quick|tiny|path] [DIR]
bench_speed() {
	local level=full
	case ${1:-} in
	quick | tiny | full | path)
		level=$1
		shift
		;;
	esac
	(($# <= 1)) || die "lab bench takes one directory, not '$*'; see lab help"
	BENCH_DIR=${1:-bench}
	[[ $BENCH_DIR != -* ]] || die "lab bench has no option '$BENCH_DIR'; see lab help"
	mkdir -p "$BENCH_DIR" 2>/dev/null || die "cannot make the directory '$BENCH_DIR'"
	BENCH_DIR=$(readlink -f "$BENCH_DIR")
	[[ -w $BENCH_DIR ]] || die "cannot write to the directory '$BENCH_DIR'"
	PACKAGES+=(iperf3 python3-matplotlib)
	install_packages
	BENCH_BOOTS=0 BENCH_FAILED=0
	rm -f "$BENCH_DIR"/{path,breakdown}.json
	# Alone, it leaves on the page what else there is.
	if [[ $level != path || ! -e $BENCH_DIR/machine.json ]]; then
		rm -f "$BENCH_DIR"/boot-*.json
		bench_machine >"$BENCH_DIR/machine.json"
	fi
	"bench_$level"
	/usr/bin/python3 -B "$BENCH/report.py" "$BENCH_DIR"
	((BENCH_FAILED == 0)) || die "$BENCH_FAILED boots could not measure all, see above"
}

# What is built of this tree for boots.
bench_build() {
	kernel_build lab
	module_make "$BENCH/bare" bare
	BENCH_BARE=$MODULE
	module_make "$REPO/tests/verbs/soft_dma" soft_dma
	export BENCH_ENGINE=$MODULE
	"$LAB/lab" build perftest
}

# bench_boot SET REPETITIONS SECONDS OPTION...: one configuration.
bench_boot() {
	local set=$1 repetitions=$2 seconds=$3 bare
	shift 3
	[[ ${BENCH_BARE:-} ]] || bench_build
	bare=("$BENCH_BARE")
	[[ " $* " != *" --kernel "* ]] || bare=()
	BENCH_BOOTS=$((BENCH_BOOTS + 1))
	say "boot $BENCH_BOOTS: $set, $*"
	(cd "$BENCH_DIR" && "$LAB/lab" exec --host awake --timeout 2000 "$@" -- \
		"$BENCH/measure.py" "$set" "$repetitions" "$seconds" "boot-$(printf %02d "$BENCH_BOOTS").json" "${bare[@]}") ||
		BENCH_FAILED=$((BENCH_FAILED + 1))
}

bench_tiny() {
	BENCH_PEERS=medge bench_boot tiny 1 0.05 --rails 1 --mtu 9000
}

bench_quick() {
	bench_boot floors 3 0.25 --rails 1 --mtu 9000
	bench_boot mtu 3 0.25 --rails 1 --mtu 1500
	BENCH_PEERS=medge bench_boot shaped 3 1.5 --rails 2 --mtu 9000 --rate 10gbit
	BENCH_PEERS="medge rxe siw" bench_boot latency 3 0.3 --rails 1 --mtu 9000 --kernel 7
}

bench_full() {
	local rails
	bench_boot full 3 0.25 --rails 1 --mtu 9000
	bench_boot sizes 3 0.25 --rails 1 --mtu 1500
	for rails in 2 4 8; do
		bench_boot rails 2 0.25 --rails "$rails" --mtu 9000
	done
	for rails in 1 2 4 8; do
		BENCH_PEERS=medge bench_boot shaped 3 0.4 --rails "$rails" --mtu 9000 --rate 1gbit
	done
	BENCH_PEERS=medge bench_boot shaped 5 1.5 --rails 2 --mtu 9000 --rate 10gbit
	bench_boot lossy 3 0.25 --rails 2 --mtu 9000 --netem 'loss 1%'
	bench_boot papers 3 0.25 --rails 1 --mtu 9000
	BENCH_PEERS="medge rxe siw" bench_boot latency 3 0.5 --rails 1 --mtu 9000 --kernel 7
	bench_path
}

# The way of one message, and what writes are made of: once, since instructions repeat.
bench_path() {
	say "the way of one message"
	(cd "$BENCH_DIR" && bench_counted -- "$BENCH/path.py" path.json) || BENCH_FAILED=$((BENCH_FAILED + 1))
	say "what writes are made of"
	bench_look "$BENCH_DIR/breakdown.json" write_64 write_4096 write_65536 || BENCH_FAILED=$((BENCH_FAILED + 1))
}

# What it was measured on.
bench_machine() {
	local model commit
	model=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)
	commit=$(git -C "$REPO" describe --always --dirty 2>/dev/null) || commit=unknown
	/usr/bin/python3 -c 'import json, sys; print(json.dumps(dict(zip(sys.argv[1::2], sys.argv[2::2]))))' \
		cpu "$model" cpus "$(nproc)" host "$(uname -sr)" date "$(date -u '+%F %H:%M UTC')" commit "$commit"
}
