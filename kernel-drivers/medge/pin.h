/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Memory of the kernel that a process has asked for, on the account of what it may pin. */
#ifndef MEDGE_PIN_H
#define MEDGE_PIN_H

#include <linux/types.h>

struct mm_struct;

/* All zeros: there is nothing on the account. */
struct medge_pin {
	struct mm_struct *mm;		/* whose account; may outlive its process */
	unsigned long pages;
};

/*
 * Put @bytes on the account of the process that asks, as ib_umem does with what
 * it pins: more than RLIMIT_MEMLOCK is refused unless it has CAP_IPC_LOCK.
 * Return: 0, or -ENOMEM.
 */
int medge_pin_charge(struct medge_pin *pin, size_t bytes);
void medge_pin_release(struct medge_pin *pin);

#endif /* MEDGE_PIN_H */
