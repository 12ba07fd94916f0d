#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# In the lab, where time is counted in instructions: what each operation takes.
set -euo pipefail
release=$(uname -r)
# What the kernel and the device do once after they began must not be counted.
sleep 1
"$LAB_BUILD/tests/verbs/op_cost" | sed "s/^/$release $TYPE /"
