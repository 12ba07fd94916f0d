/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Locks that the application can promise not to need. */
#ifndef MEDGE_LOCK_H
#define MEDGE_LOCK_H

#include <pthread.h>
#include <stdbool.h>

/*
 * @single: only one thread at a time comes here, as the application said when
 *          it gave a thread domain or IBV_CREATE_CQ_ATTR_SINGLE_THREADED
 */
struct medge_lock {
	pthread_spinlock_t spin;
	bool single;
};

static inline void medge_lock_init(struct medge_lock *lock, bool single)
{
	pthread_spin_init(&lock->spin, PTHREAD_PROCESS_PRIVATE);
	lock->single = single;
}

static inline void medge_lock_destroy(struct medge_lock *lock)
{
	pthread_spin_destroy(&lock->spin);
}

static inline void medge_lock(struct medge_lock *lock)
{
	if (!lock->single)
		pthread_spin_lock(&lock->spin);
}

/* False: somebody has it, or nobody ever takes it. */
static inline bool medge_try_lock(struct medge_lock *lock)
{
	return !lock->single && !pthread_spin_trylock(&lock->spin);
}

static inline void medge_unlock(struct medge_lock *lock)
{
	if (!lock->single)
		pthread_spin_unlock(&lock->spin);
}

#endif /* MEDGE_LOCK_H */
