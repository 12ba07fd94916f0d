# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# lab soak: everything that is hard on a device, for as long as one likes, on the debug kernel.
# shellcheck shell=bash

# Beyond the time: the round that is under way.
SOAK_LAST_ROUND=1800

soak_minutes=10 soak_args=() options=()
while (($#)); do
	case $1 in
	--hours | --minutes | --rounds | --seed)
		(($# > 1)) || die "$1 needs a value; see lab help"
		value=$(number "$1" "$2" 1 100000)
		case $1 in
		--hours) soak_minutes=$((value * 60)) ;;
		--minutes) soak_minutes=$value ;;
		--rounds) soak_args+=(--rounds "$value") ;;
		--seed) export SEED=$value ;;
		esac
		shift 2
		;;
	--)
		options+=("$@")
		break
		;;
	*)
		options+=("$1")
		shift
		;;
	esac
done
# There is less memory to fill then.
KERNEL=debug RAILS=3 MEM=1G
parse_options "${options[@]}"
TIMEOUT=$((soak_minutes * 60 + SOAK_LAST_ROUND))
boot_script "$REPO/tests/verbs/soak.sh" --minutes "$soak_minutes" "${soak_args[@]}" "${ARGS[@]}"
exit "$STATUS"
