// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory for operations, without registrations in the program.
 *
 * A registration is kept only where it cannot become wrong behind our back:
 *
 *  - memory of glue_alloc(), whose life we know;
 *  - on devices with on-demand paging: the kernel's MMU notifiers make the
 *    device follow munmap(), mremap(), fork() and whatever else the program
 *    does, so whole blocks of address space are registered, once.
 *
 * All other memory is copied if it is little, or registered for one operation.
 * A cache of pinned registrations would need to learn of every munmap() before
 * it returns. Interposing libc's functions misses libc's own calls and the raw
 * system calls; userfaultfd tells everything, but is missing in many kernels,
 * does not take every mapping, and the peer's keys would still have to be called
 * back before munmap() returns, for which it gives no hand.
 *
 * Pinned pages stay the parent's in a fork(): since Linux 5.12 the child gets a
 * copy at once. ibv_fork_init() is not for us, it would keep the memory, and
 * what shares its pages, from the child.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "glue.h"

enum {
	BLOCK = 16 << 20,		/* of on-demand paging */
	MAX_BLOCKS = 4096,		/* registrations of blocks */
	SHARED_ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			IBV_ACCESS_REMOTE_READ,
};

bool memory_has_odp(struct ibv_context *verbs)
{
	const uint32_t needed = IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ;
	struct ibv_device_attr_ex attr = {};

	if (ibv_query_device_ex(verbs, NULL, &attr))
		return false;
	return attr.odp_caps.general_caps & IBV_ODP_SUPPORT &&
	       (attr.odp_caps.per_transport_caps.rc_odp_caps & needed) == needed;
}

/* The number of regions that are before (@start, @length). */
static size_t regions_before(const struct regions *t, uint64_t start,
			     uint64_t length)
{
	size_t low = 0, high = t->count, mid;

	while (low < high) {
		mid = (low + high) / 2;
		if (t->regions[mid].start < start ||
		    (t->regions[mid].start == start &&
		     t->regions[mid].length < length))
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static bool regions_add(struct regions *t, const struct region *region)
{
	size_t at = regions_before(t, region->start, region->length);
	size_t room = t->room ? t->room * 2 : 16;
	struct region *grown;

	if (t->count == t->room) {
		grown = realloc(t->regions, room * sizeof(*grown));
		if (!grown)
			return false;
		t->regions = grown;
		t->room = room;
	}
	memmove(&t->regions[at + 1], &t->regions[at],
		(t->count - at) * sizeof(*t->regions));
	t->regions[at] = *region;
	t->count++;
	return true;
}

static void regions_remove(struct regions *t, size_t at)
{
	t->count--;
	memmove(&t->regions[at], &t->regions[at + 1],
		(t->count - at) * sizeof(*t->regions));
}

static bool region_has(const struct region *r, uint64_t address, uint64_t size)
{
	return address >= r->start && size <= r->length &&
	       address - r->start <= r->length - size;
}

/* Regions of glue_alloc() are disjoint. */
static bool find_allocated(struct glue *g, uint64_t address, uint64_t size,
			   struct region *found)
{
	size_t at = regions_before(&g->allocated, address, UINT64_MAX);

	if (!at || !region_has(&g->allocated.regions[at - 1], address, size))
		return false;
	*found = g->allocated.regions[at - 1];
	return true;
}

/* The blocks that hold the memory, registered now if they are not yet. */
static bool find_paged(struct glue *g, uint64_t address, uint64_t size,
		       struct region *found)
{
	uint64_t start = address & ~(uint64_t)(BLOCK - 1);
	uint64_t length;
	size_t at;

	if (!g->odp || address + size > UINT64_MAX - BLOCK)
		return false;
	length = ((address + size + BLOCK - 1) & ~(uint64_t)(BLOCK - 1)) - start;
	at = regions_before(&g->paged, start, length);
	if (at < g->paged.count && g->paged.regions[at].start == start &&
	    g->paged.regions[at].length == length) {
		*found = g->paged.regions[at];
		return true;
	}
	if (g->paged.count >= MAX_BLOCKS)
		return false;
	*found = (struct region){ .start = start, .length = length };
	found->mr = ibv_reg_mr(g->pd, (void *)(uintptr_t)start, length,
			       SHARED_ACCESS | IBV_ACCESS_ON_DEMAND);
	if (!found->mr)
		return false;
	if (!regions_add(&g->paged, found)) {
		ibv_dereg_mr(found->mr);
		return false;
	}
	return true;
}

bool memory_local_key(struct glue_connection *c, uint64_t address, size_t size,
		      uint32_t *key)
{
	struct glue *g = c->glue;
	bool found = c->last_regions_change == g->regions_change &&
		     c->last_region.mr &&
		     region_has(&c->last_region, address, size);

	if (!found) {
		pthread_mutex_lock(&g->region_lock);
		found = find_allocated(g, address, size, &c->last_region) ||
			find_paged(g, address, size, &c->last_region);
		c->last_regions_change = g->regions_change;
		pthread_mutex_unlock(&g->region_lock);
	}
	if (!found) {
		c->last_region.mr = NULL;
		return false;
	}
	*key = c->last_region.mr->lkey;
	return true;
}

bool memory_is_mapped(uint64_t address, uint64_t length)
{
	uint64_t page = sysconf(_SC_PAGESIZE), step = 4096 * page, end, n;
	unsigned char pages[4096];

	if (address + length < address)
		return false;
	end = address + length;
	for (address &= ~(page - 1); address < end; address += n) {
		n = end - address < step ? end - address : step;
		if (mincore((void *)(uintptr_t)address, n, pages))
			return false;
	}
	return true;
}

static void lend_region(const struct region *r, struct control *answer)
{
	answer->address = r->start;
	answer->length = r->length;
	answer->key = r->mr->rkey;
	answer->flags = CONTROL_LASTING;
}

/* For one operation. Memory that can only be read can still be read. */
static void lend_once(struct glue_connection *c, const struct control *ask,
		      struct control *answer)
{
	void *address = (void *)(uintptr_t)ask->address;
	struct ibv_mr *mr = ibv_reg_mr(c->glue->pd, address, ask->length,
				       SHARED_ACCESS);

	if (!mr && !(ask->flags & CONTROL_FOR_WRITE))
		mr = ibv_reg_mr(c->glue->pd, address, ask->length,
				IBV_ACCESS_REMOTE_READ);
	if (!mr) {
		answer->error = errno;
		return;
	}
	c->grants[ask->grant] = mr;
	answer->address = ask->address;
	answer->length = ask->length;
	answer->key = mr->rkey;
}

void memory_grant(struct glue_connection *c, const struct control *ask,
		  struct control *answer)
{
	struct glue *g = c->glue;
	struct region found;
	bool lasting;

	if (ask->length > GLUE_MAX_OPERATION ||
	    !memory_is_mapped(ask->address, ask->length)) {
		answer->error = EFAULT;
		return;
	}
	pthread_mutex_lock(&g->region_lock);
	lasting = find_allocated(g, ask->address, ask->length, &found);
	if (lasting)
		c->lent = true;
	else if (!(g->options.flags & GLUE_SHARED_ONLY))
		lasting = find_paged(g, ask->address, ask->length, &found);
	if (lasting)
		lend_region(&found, answer);
	pthread_mutex_unlock(&g->region_lock);
	if (lasting)
		return;
	if (g->options.flags & GLUE_SHARED_ONLY)
		answer->error = EACCES;
	else
		lend_once(c, ask, answer);
}

void *glue_alloc(struct glue *g, size_t size)
{
	size_t page = sysconf(_SC_PAGESIZE);
	struct region r = { .length = (size + page - 1) & ~(page - 1) };
	bool added = false;
	void *p;

	errno = node_is_ours(g) ? EINVAL : ECHILD;
	if (errno == ECHILD || !size || r.length < size)
		return NULL;
	p = mmap(NULL, r.length, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	r.start = (uintptr_t)p;
	r.mr = ibv_reg_mr(g->pd, p, r.length, SHARED_ACCESS);
	if (r.mr) {
		pthread_mutex_lock(&g->region_lock);
		added = regions_add(&g->allocated, &r);
		pthread_mutex_unlock(&g->region_lock);
		if (!added)
			ibv_dereg_mr(r.mr);
	}
	if (!added) {
		munmap(p, r.length);
		errno = ENOMEM;
		return NULL;
	}
	return p;
}

static bool take_allocated(struct glue *g, const void *memory,
			   struct region *taken)
{
	bool found;
	size_t at;

	pthread_mutex_lock(&g->region_lock);
	found = find_allocated(g, (uintptr_t)memory, 0, taken) &&
		taken->start == (uintptr_t)memory;
	if (found) {
		at = regions_before(&g->allocated, taken->start, taken->length);
		regions_remove(&g->allocated, at);
		g->regions_change++;
	}
	pthread_mutex_unlock(&g->region_lock);
	return found;
}

static void start_invalidation(struct glue_connection *c,
			       const struct region *r)
{
	struct control msg = {
		.type = CONTROL_INVALIDATE,
		.address = r->start,
		.length = r->length,
	};

	if (c->state != CONNECTION_OPEN || !c->lent)
		return;
	c->invalidating = true;
	pthread_mutex_lock(&c->lock);
	control_send(c, &msg);
	pthread_mutex_unlock(&c->lock);
}

static bool any_invalidating(struct glue *g, bool give_up)
{
	struct glue_connection *c;
	bool any = false;
	uint32_t i;

	pthread_mutex_lock(&g->lock);
	for (i = 0; i < g->options.max_connections; i++) {
		c = g->connections[i];
		if (!c || !c->invalidating || c->state != CONNECTION_OPEN)
			continue;
		any = true;
		if (give_up)
			connection_lost(c, ETIMEDOUT);
	}
	pthread_mutex_unlock(&g->lock);
	return any;
}

/* No peer may use a key of it from here on, or his connection is lost. */
static void call_back(struct glue *g, const struct region *r)
{
	struct timespec deadline = deadline_in(g->options.peer_timeout_ms);
	uint32_t seen, i;

	pthread_mutex_lock(&g->lock);
	for (i = 0; i < g->options.max_connections; i++) {
		if (g->connections[i])
			start_invalidation(g->connections[i], r);
	}
	pthread_mutex_unlock(&g->lock);
	for (;;) {
		seen = g->changes;
		if (!any_invalidating(g, false))
			return;
		if (!wait_changed(g, seen, &deadline)) {
			any_invalidating(g, true);
			return;
		}
	}
}

int glue_free(struct glue *g, void *memory)
{
	struct region r;

	if (!node_is_ours(g))
		return -ECHILD;
	if (!take_allocated(g, memory, &r))
		return -EINVAL;
	pthread_mutex_lock(&g->free_lock);
	call_back(g, &r);
	pthread_mutex_unlock(&g->free_lock);
	ibv_dereg_mr(r.mr);
	munmap(memory, r.length);
	return 0;
}

static void free_regions(struct regions *t, bool unmap)
{
	size_t i;

	for (i = 0; i < t->count; i++) {
		ibv_dereg_mr(t->regions[i].mr);
		if (unmap)
			munmap((void *)(uintptr_t)t->regions[i].start,
			       t->regions[i].length);
	}
	free(t->regions);
}

void memory_free_all(struct glue *g)
{
	free_regions(&g->allocated, true);
	free_regions(&g->paged, false);
}
