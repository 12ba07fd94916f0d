// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A process is known by its address space, as its pinned memory is. It is counted
 * where it opens the device, so that what it opens twice, or leaves to a child, is
 * still its own.
 */
#include <linux/mm.h>
#include <linux/refcount.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "quota.h"
#include "verbs.h"

/**
 * struct medge_process - has the device open
 * @link: in @quotas
 * @quotas: of the device
 * @mm: only its identity; cannot become another's while we have it
 * @ref: of contexts, and of objects, which may outlive them (XRC targets)
 * @has: objects of each kind
 */
struct medge_process {
	struct list_head link;
	struct medge_quotas *quotas;
	struct mm_struct *mm;
	refcount_t ref;
	atomic_t has[MEDGE_QUOTAS];
};

void medge_quotas_init(struct medge_quotas *quotas)
{
	int i;

	mutex_init(&quotas->lock);
	INIT_LIST_HEAD(&quotas->processes);
	for (i = 0; i < MEDGE_QUOTAS; i++)
		quotas->max[i] = MEDGE_QUOTA_NONE;
}

void medge_quotas_destroy(struct medge_quotas *quotas)
{
	WARN_ON(!list_empty(&quotas->processes));
	mutex_destroy(&quotas->lock);
}

/* ---- processes ---- */

static struct medge_process *find(struct medge_quotas *quotas)
{
	struct medge_process *process;

	list_for_each_entry(process, &quotas->processes, link)
		if (process->mm == current->mm)
			return process;
	return NULL;
}

static struct medge_process *add(struct medge_quotas *quotas)
{
	struct medge_process *process;

	process = kzalloc(sizeof(*process), GFP_KERNEL_ACCOUNT);
	if (!process)
		return NULL;
	process->quotas = quotas;
	process->mm = current->mm;
	mmgrab(process->mm);
	refcount_set(&process->ref, 1);
	list_add(&process->link, &quotas->processes);
	return process;
}

struct medge_process *medge_process_get(struct medge_quotas *quotas)
{
	struct medge_process *process;

	mutex_lock(&quotas->lock);
	process = find(quotas);
	if (process)
		refcount_inc(&process->ref);
	else
		process = add(quotas);
	mutex_unlock(&quotas->lock);
	return process;
}

void medge_process_put(struct medge_process *process)
{
	struct medge_quotas *quotas;

	if (!process)
		return;
	quotas = process->quotas;
	if (!refcount_dec_and_mutex_lock(&process->ref, &quotas->lock))
		return;
	list_del(&process->link);
	mutex_unlock(&quotas->lock);
	mmdrop(process->mm);
	kfree(process);
}

/* ---- what they have ---- */

static int take(struct medge_process *process, enum medge_quota what,
		struct medge_process **whose)
{
	int has;

	if (!process)
		return -ENOMEM;
	/* Who is refused is never counted, or another thread might be for it. */
	has = atomic_read(&process->has[what]);
	do {
		if ((u32)has >= READ_ONCE(process->quotas->max[what]))
			return -EAGAIN;
	} while (!atomic_try_cmpxchg(&process->has[what], &has, has + 1));
	refcount_inc(&process->ref);
	*whose = process;
	return 0;
}

int medge_quota_take(struct ib_ucontext *uctx, enum medge_quota what,
		     struct medge_process **whose)
{
	*whose = NULL;
	if (!uctx)
		return 0;
	return take(container_of(uctx, struct medge_ucontext, ibuc)->process, what, whose);
}

int medge_quota_take_own(struct medge_quotas *quotas, enum medge_quota what,
			 struct medge_process **whose)
{
	struct medge_process *process;
	int err;

	*whose = NULL;
	if (!current->mm)
		return 0;
	process = medge_process_get(quotas);
	err = take(process, what, whose);
	medge_process_put(process);
	return err;
}

void medge_quota_give(struct medge_process **whose, enum medge_quota what)
{
	if (!*whose)
		return;
	atomic_dec(&(*whose)->has[what]);
	medge_process_put(*whose);
	*whose = NULL;
}
