# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# The options that describe a boot, shared by demo, exec and shell.
# shellcheck shell=bash

TYPES=(medge)
NODES=2
RAILS=2
MTU=9000
RATE=
NETEM=
BOND_MODE=balance-rr
KERNEL=lab
CPUS=2
MEM=3G
HOST_STATE=asleep
TIMEOUT=600
# Of lab exec alone.
SEVERAL=
ARGS=()

# parse_options ARG...: sets the variables above; what follows the options is left in ARGS.
parse_options() {
	local option value
	while (($#)); do
		case $1 in
		--)
			shift
			break
			;;
		--several)
			[[ $COMMAND == exec ]] || known_option "$1"
			SEVERAL=1
			shift
			continue
			;;
		--*=*)
			option=${1%%=*}
			value=${1#*=}
			shift
			;;
		-*)
			option=$1
			known_option "$option"
			[[ $# -gt 1 && $2 != -- ]] || die "$option needs a value; see lab help"
			value=$2
			shift 2
			;;
		*)
			break
			;;
		esac
		known_option "$option"
		set_option "$option" "$value"
	done
	ARGS=("$@")
}

known_option() {
	case $1 in
	--type | --nodes | --rails | --mtu | --rate | --netem | --bond-mode | --kernel | --cpus | --mem | --host | --timeout) ;;
	*) die "lab $COMMAND has no option '$1'; see lab help" ;;
	esac
}

set_option() {
	local option=$1 value=$2
	case $option in
	--type) set_types "$value" ;;
	--nodes) NODES=$(number "$option" "$value" 2 4) ;;
	--rails) RAILS=$(number "$option" "$value" 1 64) ;;
	--mtu) MTU=$(number "$option" "$value" 1280 65535) ;;
	--rate)
		[[ $value =~ ^[0-9]+(\.[0-9]+)?[kmgt]?(bit|bps)$ ]] ||
			die "--rate takes a rate such as 1gbit or 500mbit, not '$value'"
		RATE=$value
		;;
	--netem)
		[[ $value =~ ^(loss|duplicate|reorder|delay|corrupt|gap)(\ +[a-z0-9.%]+)+$ ]] ||
			die "--netem takes netem's words, such as 'loss 2% duplicate 1% reorder 25%', not '$value'"
		NETEM=$value
		;;
	--bond-mode)
		BOND_MODE=$(one_of "$option" "$value" balance-rr active-backup balance-xor broadcast 802.3ad \
			balance-tlb balance-alb)
		;;
	--kernel) KERNEL=$(one_of "$option" "$value" lab debug "${STOCK_KERNELS[@]}") ;;
	--cpus) CPUS=$(number "$option" "$value" 1 4) ;;
	--mem)
		[[ $value =~ ^[1-9][0-9]{0,5}[MG]$ ]] || die "--mem takes a size such as 3G or 2048M, not '$value'"
		MEM=$value
		;;
	--host) HOST_STATE=$(one_of "$option" "$value" asleep awake) ;;
	--timeout) TIMEOUT=$(number "$option" "$value" 1 86400) ;;
	esac
}

set_types() {
	local type
	IFS=, read -ra TYPES <<<"$1"
	((${#TYPES[@]})) || die "--type takes medge, rxe, siw, or several with commas, not ''"
	for type in "${TYPES[@]}"; do
		[[ $type == medge || $type == rxe || $type == siw ]] ||
			die "--type takes medge, rxe, siw, or several with commas, not '$1'"
	done
}

number() {
	local option=$1 value=$2 least=$3 most=$4
	if [[ ! $value =~ ^[0-9]{1,6}$ ]] || ((10#$value < least || 10#$value > most)); then
		die "$option takes a number from $least to $most, not '$value'"
	fi
	echo "$((10#$value))"
}

one_of() {
	local option=$1 value=$2 allowed
	shift 2
	for allowed in "$@"; do
		[[ $value != "$allowed" ]] || {
			echo "$value"
			return
		}
	done
	die "$option takes one of: $*; not '$value'"
}

has_type() {
	[[ " ${TYPES[*]} " == *" $1 "* ]]
}
