#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Every shell script of the tree passes shellcheck.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
files=()
while IFS= read -r -d '' file; do
	case $file in
	*.sh | */shellrc) files+=("$file") ;;
	*) if head -qn1 "$file" | grep -qE '^#!.*\b(ba)?sh\b'; then files+=("$file"); fi ;;
	esac
done < <(find . -path ./.git -prune -o -type f -size -200k \( -name '*.sh' -o -perm /111 -o -name shellrc \) -print0)
shellcheck -x "${files[@]}"
echo "${#files[@]} scripts"
