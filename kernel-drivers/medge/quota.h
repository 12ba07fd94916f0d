/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * How many QPs, CQs and memory regions one process may have: what the administrator
 * says. The rdma controller has such limits for groups of processes, and this is for
 * who is in no group; RLIMIT_MEMLOCK knows of memory only.
 */
#ifndef MEDGE_QUOTA_H
#define MEDGE_QUOTA_H

#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/types.h>

struct ib_ucontext;
struct medge_process;

enum medge_quota {
	MEDGE_QUOTA_QP,
	MEDGE_QUOTA_CQ,
	MEDGE_QUOTA_MR,
	MEDGE_QUOTAS,
};

/* There is no limit; the highest there can be. */
#define MEDGE_QUOTA_NONE U32_MAX
#define MEDGE_QUOTA_MAX S32_MAX

/**
 * struct medge_quotas - of a device
 * @lock: protects @processes
 * @processes: all that have the device open, or an object of it
 * @max: of each kind, for each process; settable. Who has more keeps it
 */
struct medge_quotas {
	struct mutex lock;
	struct list_head processes;
	u32 max[MEDGE_QUOTAS];
};

void medge_quotas_init(struct medge_quotas *quotas);
void medge_quotas_destroy(struct medge_quotas *quotas);

/* The process that runs, to be put; NULL: no memory. */
struct medge_process *medge_process_get(struct medge_quotas *quotas);
void medge_process_put(struct medge_process *process);

/*
 * One more of that kind for the process that opened @uctx (NULL: the kernel, which
 * has no limit); *whose is what it is given back to.
 * Return: 0, -EAGAIN: it has as many as it may, as the rdma controller says it, or
 * -ENOMEM: nobody knows whose the context is.
 */
int medge_quota_take(struct ib_ucontext *uctx, enum medge_quota what,
		     struct medge_process **whose);
/* As above, for the process that runs; a thread of the kernel's has no limit. */
int medge_quota_take_own(struct medge_quotas *quotas, enum medge_quota what,
			 struct medge_process **whose);
/* And it is gone. *whose may be NULL, and is afterwards. */
void medge_quota_give(struct medge_process **whose, enum medge_quota what);

#endif /* MEDGE_QUOTA_H */
