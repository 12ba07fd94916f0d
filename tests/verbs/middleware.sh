#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# What applications use instead of verbs: UCX, libfabric, and MPI over UCX, as Debian has them, unmodified.
# ucx_perftest looks at no byte; fi_pingpong -c and our MPI program look at all of them.
#
#   middleware.sh [ucx|libfabric|mpi]...    default: all
#
# lab beside: --rails 2 --mtu 9000
# lab beside: --rails 3 --mtu 1500 --netem 'loss 1% duplicate 1% reorder 25%' -- mpi
# lab long: --rails 3 --mtu 1500 --netem 'loss 1% duplicate 1% reorder 25%' -- libfabric mpi
# lab long: --rails 2 --mtu 9000 --kernel debug --timeout 900 -- libfabric mpi
# shellcheck disable=SC2317 # the parts are called by their names
set -u
# shellcheck source=tests/verbs/lib.sh
. "$(dirname "$0")/lib.sh"

SLOW=1 PINGS=50
[ "${KERNEL:-}" != debug ] || SLOW=4 PINGS=8
export UCX_WARN_UNUSED_ENV_VARS=n UCX_LOG_LEVEL=info

# carried LABEL TRANSPORT: UCX has chosen that one, of all that it might have.
carried() {
	grep -q "ep_cfg.*$2/$DEV_A:1" "$WORK/client" || failed "$1: not by $2: $(grep ep_cfg "$WORK/client")"
}

# ucx_test TRANSPORTS EXPECTED TEST SIZE COUNT
ucx_test() {
	local transports=$1 expected=$2 label="ucx_perftest $1 $3 $4"
	next_port
	both_end "$label" 60 env "UCX_TLS=$transports,self" "UCX_NET_DEVICES=$DEV_B:1" ucx_perftest -p "$PORT" -- \
		env "UCX_TLS=$transports,self" "UCX_NET_DEVICES=$DEV_A:1" \
		ucx_perftest -p "$PORT" "$IP_B" -t "$3" -s "$4" -n "$5" && carried "$label" "$expected"
}

# RC's connections are made over UD.
ucx() {
	local transports expected
	while read -r transports expected; do
		ucx_test "$transports" "$expected" tag_lat 8 1000
		ucx_test "$transports" "$expected" tag_bw 65536 1000
		ucx_test "$transports" "$expected" stream_bw 100000 200
		ucx_test "$transports" "$expected" ucp_am_bw 4000 1000
		ucx_test "$transports" "$expected" ucp_put_bw 1000000 50
		ucx_test "$transports" "$expected" ucp_get 1000000 50
		ucx_test "$transports" "$expected" ucp_fadd 8 500
		ucx_test "$transports" "$expected" ucp_cswap 8 500
	done <<-END
		rc,ud rc_verbs
		ud ud_verbs
	END
}

# fabric ENDPOINT PROVIDER DOMAIN-SUFFIX SIZES
fabric() {
	next_port
	both_end "fi_pingpong $1 $2" 60 \
		fi_pingpong -B "$PORT" -e "$1" -p "$2" -d "$DEV_B$3" -c -I "$PINGS" -S "$4" -- \
		fi_pingpong -P "$PORT" -e "$1" -p "$2" -d "$DEV_A$3" -c -I "$PINGS" -S "$4" "$IP_B"
}

libfabric() {
	fabric msg verbs '' all
	fabric rdm 'verbs;ofi_rxm' '' all
	# Nobody sends such a datagram again.
	[ -n "${NETEM:-}" ] || fabric dgram verbs -dgram 1024
	fabric rdm 'verbs;ofi_rxd' -dgram 4096
}

# As if by ssh: mpirun's daemon on the other node, which has a name and temporary files of its own.
mpi_node() {
	cat >"$WORK/node" <<-END
		#!/bin/bash
		case \$1 in
		$IP_A | a) node=a device=$DEV_A ;;
		$IP_B) node=b device=$DEV_B ;;
		*) exit 1 ;;
		esac
		shift
		mkdir -p "$WORK/tmp.\$node"
		exec ip netns exec "\$node" unshare --uts env TMPDIR="$WORK/tmp.\$node" UCX_NET_DEVICES="\$device:1" \\
			bash -c "hostname node\$node; \$*"
	END
	chmod +x "$WORK/node"
}

# mpi_run LABEL TRANSPORTS RANKS-OF-A-NODE ROUNDS
mpi_run() {
	run "$1" "$((200 * SLOW))" "$WORK/node" a mpirun --allow-run-as-root --oversubscribe \
		--mca plm_rsh_agent "$WORK/node" --mca orte_keep_fqdn_hostnames 1 \
		--mca oob_tcp_if_include bond0 --mca pml ucx --mca osc ucx -x "UCX_TLS=$2,self" \
		--host "$IP_A:$3,$IP_B:$3" -np "$((2 * $3))" "$WORK/mpi_check" "$SEED" "$4"
}

# Datagrams that ROUNDS of mpi_check between two ranks bring to one of them at least, be they as large as may be: of the
# 3 << i words of round i all come five times.
least_datagrams() {
	local mtu
	mtu=$(ibv_devinfo -d "$DEV_B" | sed -n 's/.*active_mtu:[[:space:]]*\([0-9]*\).*/\1/p')
	echo $((5 * 3 * 4 * ((1 << $1) - 1) / mtu))
}

mpi() {
	local before ud_rounds=15 got least
	mpicc -O2 -Wall -o "$WORK/mpi_check" "$HERE/mpi_check.c" || {
		failed "mpi_check does not compile"
		return
	}
	mpi_node
	before=$(hw_counter "$DEV_A" tx_bytes)
	mpi_run "MPI, by UCX's RC" rc,ud 1 30
	(($(hw_counter "$DEV_A" tx_bytes) - before > 1000000)) || failed "MPI did not go by RC"
	before=$(hw_counter "$DEV_B" rx_datagrams)
	# UCX's own acknowledgments are slow to find what was lost.
	[ -z "${NETEM:-}" ] || ud_rounds=12
	mpi_run "MPI, by UCX's UD" ud 1 "$ud_rounds"
	got=$(($(hw_counter "$DEV_B" rx_datagrams) - before))
	least=$(least_datagrams "$ud_rounds")
	((got >= least)) || failed "MPI did not go by UD: $got datagrams, at least $least make its data"
	mpi_run "MPI, four ranks" rc,ud 2 8
}

choose_seed
[ "$TYPE" = medge ] || {
	echo "UCX takes no datagrams of rxe's, and siw has none"
	exit 77
}
[ $# != 0 ] || set -- ucx libfabric mpi
for part; do
	case $part in
	ucx | libfabric | mpi) "$part" ;;
	*)
		echo "usage: middleware.sh [ucx|libfabric|mpi]..." >&2
		exit 2
		;;
	esac
done
verdict
