// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What the kernel keeps for a process cannot be swapped out, and is as good as
 * pinned: rings, device memory, the state of connections. Were it not on the
 * same account as regions are, a process could have as much as there is.
 */
#include <linux/capability.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>

#include "pin.h"

int medge_pin_charge(struct medge_pin *pin, size_t bytes)
{
	unsigned long pages = PFN_UP(bytes), limit = PFN_DOWN(rlimit(RLIMIT_MEMLOCK));
	struct mm_struct *mm = current->mm;

	if (atomic64_add_return(pages, &mm->pinned_vm) > limit &&
	    !capable(CAP_IPC_LOCK)) {
		atomic64_sub(pages, &mm->pinned_vm);
		return -ENOMEM;
	}
	mmgrab(mm);
	*pin = (struct medge_pin) { .mm = mm, .pages = pages };
	return 0;
}

void medge_pin_release(struct medge_pin *pin)
{
	if (!pin->mm)
		return;
	atomic64_sub(pin->pages, &pin->mm->pinned_vm);
	mmdrop(pin->mm);
	*pin = (struct medge_pin) {};
}
