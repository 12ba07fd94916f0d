/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Never compiled: lab check coccinelle must find what is wrong here, or it would find nothing elsewhere, either. */
#include <linux/mutex.h>
#include <linux/slab.h>

struct wrong {
	struct mutex lock;
	int count;
};

int wrong_use_after_free(struct wrong *w)
{
	kfree(w);
	return w->count; /* wrong */
}

int wrong_unlock_forgotten(struct wrong *w)
{
	mutex_lock(&w->lock);
	if (w->count)
		return -EBUSY; /* wrong */
	mutex_unlock(&w->lock);
	return 0;
}

int wrong_null(struct wrong *w)
{
	if (!w)
		pr_info("%d\n", w->count); /* wrong */
	return 0;
}
