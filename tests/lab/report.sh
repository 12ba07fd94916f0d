# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Judging a boot by its kernel log.
# shellcheck shell=bash

# What a kernel says when something is wrong with it, and nothing that it says otherwise.
REPORT_PATTERN='WARNING:|BUG:|Oops|Kernel panic|KASAN:|UBSAN:|Kernel mode (fault|signal)|Segfault with no mm'
REPORT_PATTERN+='|general protection fault|Unable to handle kernel|possible .* detected|lock held when returning'
REPORT_PATTERN+='|inconsistent lock state|bad unlock balance|suspicious RCU usage|sleeping function called'
REPORT_PATTERN+='|scheduling while atomic|INFO: task .* blocked|rcu: INFO: .*(stall|self-detected)|soft lockup'
REPORT_PATTERN+='|refcount_t:|ODEBUG:|list_(add|del) corruption|DEBUG_LOCKS_WARN_ON|unregister_netdevice: waiting'
REPORT_PATTERN+='|medge-lab: complaint'

# report_print LOG: print what LOG holds against the kernel since the nodes were set up; true if there is any.
# A report runs until 40 lines after its last tell-tale line, and at most 200 lines are printed.
report_print() {
	local found
	found=$(sed -n '/medge-lab: phase setup/,$p' "$1" |
		awk -v pattern="$REPORT_PATTERN" '
			/medge-lab: phase/ { left = 0; next }
			$0 ~ pattern { left = 40; if (!any++ && held != "") print held }
			left > 0 { print; left-- }
			{ held = $0 }
		' | sed -n 1,200p)
	[[ $found ]] || return 1
	printf '%s\n' "$found" >&2
}
