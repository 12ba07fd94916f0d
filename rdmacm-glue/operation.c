// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Operations, from the call to the completion.
 *
 * A connection's work is a ring of three parts, in the order of the handles:
 *
 *     completed < ... in flight ... <= posted < ... waiting ... <= issued
 *
 * Work waits while it, or what is before it, has no key for the remote memory;
 * keys are asked for ahead, and whoever brings one posts what may go.
 */
#include <errno.h>
#include <string.h>

#include "glue.h"

static struct work *work_at(struct glue_connection *c, uint64_t handle)
{
	return &c->work[handle & (c->glue->options.queue_depth - 1)];
}

bool work_has_room(struct glue_connection *c, uint32_t num, bool sends)
{
	uint32_t credits;

	if (c->issued + num - c->completed > c->glue->options.queue_depth)
		return false;
	/* The mailbox is a page of its own. */
	if (!sends)
		return true;
	credits = c->credits + le32toh(c->mailbox->consumed) - c->sends;
	return credits <= c->credits && credits >= num;
}

struct work *work_new(struct glue_connection *c, uint64_t *handle)
{
	struct work *w;

	*handle = ++c->issued;
	w = work_at(c, *handle);
	*w = (struct work){ .slot = -1, .grant = -1 };
	return w;
}

static bool find_key(struct glue_connection *c, struct work *w)
{
	const struct remote_key *k;
	size_t i, n;

	/* Most often the one that fitted the last time. */
	for (n = 0; n < c->num_keys; n++) {
		i = n + c->last_key;
		if (i >= c->num_keys)
			i -= c->num_keys;
		k = &c->keys[i];
		if (w->remote < k->start || w->size > k->length ||
		    w->remote - k->start > k->length - w->size)
			continue;
		c->last_key = i;
		w->remote_key = k->key;
		return true;
	}
	return false;
}

static bool needs_key(const struct work *w)
{
	return w->kind != WORK_SEND && w->size;
}

static void ask(struct glue_connection *c, struct work *w, uint64_t handle)
{
	struct control msg = {
		.type = CONTROL_MAP,
		.flags = w->kind == WORK_WRITE ? CONTROL_FOR_WRITE : 0,
		.handle = handle,
		.address = w->remote,
		.length = w->size,
	};
	int grant = __builtin_ffs(~c->grants_busy) - 1;

	if (grant >= GRANTS)
		return;
	c->grants_busy |= 1u << grant;
	w->grant = grant;
	w->state = WORK_ASKED;
	msg.grant = grant;
	control_send(c, &msg);
}

/* Does it have all that it needs? If not, somebody is asked. */
static bool prepare(struct glue_connection *c, struct work *w, uint64_t handle)
{
	if (w->state == WORK_HAS_KEY || w->state == WORK_FAILED)
		return true;
	if (!needs_key(w) || find_key(c, w)) {
		/* An answer that is still on its way gives the grant back. */
		w->grant = -1;
		w->state = WORK_HAS_KEY;
		return true;
	}
	if (w->state == WORK_WAITS)
		ask(c, w, handle);
	return false;
}

static enum ibv_wr_opcode opcode(const struct work *w)
{
	if (w->kind == WORK_READ)
		return IBV_WR_RDMA_READ;
	if (w->kind == WORK_SEND)
		return IBV_WR_SEND;
	return w->flags & GLUE_NOTIFY_FLAG ? IBV_WR_RDMA_WRITE_WITH_IMM :
					     IBV_WR_RDMA_WRITE;
}

/*
 * A device that performs operations in the order of posting has only reads to
 * wait for: what follows one may overtake its data, if it has no fence.
 */
static uint32_t ordered_fences(struct glue_connection *c, const struct work *w,
			       uint64_t handle)
{
	uint32_t flags = 0;

	if (w->flags & GLUE_FENCE_BACKWARD && c->read_posted > c->completed)
		flags = IBV_SEND_FENCE;
	if (c->forward_read > c->completed)
		flags = IBV_SEND_FENCE;
	if (w->kind == WORK_READ) {
		c->read_posted = handle;
		if (w->flags & GLUE_FENCE_FORWARD)
			c->forward_read = handle;
	}
	return flags;
}

static uint32_t fences(struct glue_connection *c, const struct work *w,
		       uint64_t handle)
{
	return c->glue->relaxed ? medge_fences(w->flags) :
				  ordered_fences(c, w, handle);
}

static int post(struct glue_connection *c, struct work *w, uint64_t handle)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)(w->slot >= 0 ? send_slot(c, w->slot) :
						   w->local),
		.length = w->size,
		.lkey = w->local_key,
	};
	struct ibv_send_wr wr = {
		.wr_id = wr_id(c, WR_WORK,
			       handle & (c->glue->options.queue_depth - 1)),
		.sg_list = &sge,
		.num_sge = w->size ? 1 : 0,
		.opcode = opcode(w),
		.send_flags = fences(c, w, handle) |
			      (w->inlined ? IBV_SEND_INLINE : 0),
		.imm_data = htobe32(w->tag),
		.wr.rdma = {
			.remote_addr = w->remote,
			.rkey = w->remote_key,
		},
	};
	struct ibv_send_wr *bad;

	return ibv_post_send(c->half[HALF_DATA].id->qp, &wr, &bad);
}

static void settle(struct glue_connection *c);

void work_pump(struct glue_connection *c)
{
	struct work *w;
	uint64_t h;

	while (c->posted < c->issued && c->state == CONNECTION_OPEN) {
		h = c->posted + 1;
		w = work_at(c, h);
		if (!prepare(c, w, h))
			break;
		if (w->state != WORK_FAILED) {
			if (post(c, w, h)) {
				connection_refuses_work(c);
				return;
			}
			w->state = WORK_POSTED;
		}
		c->posted = h;
		/* Its failure is told before what follows can be answered. */
		if (w->state == WORK_FAILED)
			settle(c);
	}
	for (h = c->posted + 2; h <= c->issued && c->grants_busy != 0xff; h++)
		prepare(c, work_at(c, h), h);
}

static void fail_one(struct glue_connection *c, struct work *w, int error)
{
	w->state = WORK_FAILED;
	w->error = error;
	/* It uses no receive of the peer after all. */
	if (w->kind == WORK_SEND || w->flags & GLUE_NOTIFY_FLAG)
		c->sends--;
}

static void fail(struct glue_connection *c, struct work *w, uint64_t handle,
		 int error)
{
	struct work *next = work_at(c, handle + 1);

	fail_one(c, w, error);
	if (handle + 1 <= c->issued && next->tied)
		fail_one(c, next, error);
}

static void release_grant(struct glue_connection *c, int grant, bool lent)
{
	struct control msg = { .type = CONTROL_RELEASE, .grant = grant };

	if (lent)
		control_send(c, &msg);
	else
		c->grants_busy &= ~(1u << grant);
}

static void keep_key(struct glue_connection *c, const struct control *msg)
{
	struct remote_key key = {
		.start = msg->address,
		.length = msg->length,
		.key = msg->key,
	};
	size_t i;

	for (i = 0; i < c->num_keys; i++) {
		if (c->keys[i].start == key.start &&
		    c->keys[i].length == key.length)
			break;
	}
	/* They can all be asked for again. */
	if (i == REMOTE_KEYS)
		i = c->num_keys = 0;
	c->keys[i] = key;
	c->last_key = i;
	if (i == c->num_keys)
		c->num_keys++;
}

void work_mapped(struct glue_connection *c, const struct control *msg)
{
	bool lasting = msg->flags & CONTROL_LASTING;
	uint64_t handle = msg->handle;
	struct work *w = work_at(c, handle);
	bool asked;

	if (msg->grant >= GRANTS || !(c->grants_busy & 1u << msg->grant)) {
		connection_lost(c, EPROTO);
		return;
	}
	asked = handle > c->posted && handle <= c->issued &&
		w->state == WORK_ASKED && w->grant == msg->grant;
	if (!msg->error && lasting)
		keep_key(c, msg);
	if (!asked || msg->error || lasting) {
		release_grant(c, msg->grant, !msg->error && !lasting);
		if (asked) {
			w->grant = -1;
			w->state = WORK_WAITS;
		}
	} else {
		w->remote_key = msg->key;
		w->state = WORK_HAS_KEY;
	}
	if (asked && msg->error)
		fail(c, w, handle, msg->error);
	else if (asked && lasting && !find_key(c, w))
		connection_lost(c, EPROTO);
	work_pump(c);
}

void work_forget_keys(struct glue_connection *c, uint64_t start,
		      uint64_t length)
{
	size_t i, kept = 0;

	for (i = 0; i < c->num_keys; i++) {
		if (c->keys[i].start - start < length)
			continue;
		c->keys[kept++] = c->keys[i];
	}
	c->num_keys = kept;
	c->last_key = 0;
}

/* What is done has its effects, in the order of the handles. */
static void finish(struct glue_connection *c, struct work *w, uint64_t handle)
{
	struct glue_event event = {
		.type = w->error ? GLUE_EVENT_FAILED : GLUE_EVENT_COMPLETED,
		.connection = c,
		.handle = handle,
		.error = w->error,
	};

	if (w->slot >= 0) {
		if (w->kind == WORK_READ && !w->error)
			memcpy(w->local, send_slot(c, w->slot), w->size);
		c->free_slots[c->num_free_slots++] = w->slot;
		w->slot = -1;
	}
	if (w->once) {
		ibv_dereg_mr(w->once);
		w->once = NULL;
	}
	if (w->grant >= 0) {
		release_grant(c, w->grant, true);
		w->grant = -1;
	}
	if (w->error) {
		c->failures[c->num_failures % FAILURES] =
			(struct failure){ handle, w->error };
		c->num_failures++;
	}
	if ((w->error || w->flags & GLUE_EVENT) && !w->quiet)
		event_put(c->glue, &event);
}

static void settle(struct glue_connection *c)
{
	uint64_t handle = c->completed;
	struct work *w;

	while (handle < c->posted) {
		w = work_at(c, handle + 1);
		if (w->state != WORK_DONE && w->state != WORK_FAILED)
			break;
		finish(c, w, ++handle);
		/* For those who do not lock; and a failure is told before. */
		atomic_store_explicit(&c->completed, handle,
				      memory_order_release);
	}
}

void work_complete(struct glue_connection *c, const struct ibv_wc *wc, int n)
{
	int i;

	pthread_mutex_lock(&c->lock);
	for (i = 0; i < n; i++)
		c->work[wr_index(wc[i].wr_id)].state = WORK_DONE;
	settle(c);
	pthread_mutex_unlock(&c->lock);
}

bool work_is_all_done(struct glue_connection *c)
{
	bool all;

	pthread_mutex_lock(&c->lock);
	all = c->completed == c->issued;
	pthread_mutex_unlock(&c->lock);
	return all;
}

void work_read_mailbox(struct glue_connection *c)
{
	uint64_t handle;
	struct work *w;

	pthread_mutex_lock(&c->lock);
	w = work_new(c, &handle);
	w->kind = WORK_READ;
	w->state = WORK_HAS_KEY;
	w->size = sizeof(c->mailbox->last_read);
	w->local = &c->mailbox->last_read;
	w->local_key = c->mailbox_mr->lkey;
	w->remote = c->peer_mailbox;
	w->remote_key = c->peer_mailbox_key;
	work_pump(c);
	pthread_mutex_unlock(&c->lock);
}

/* Where the device finds, or leaves, the local data. */
static int prepare_local(struct glue_connection *c, struct work *w)
{
	int access = w->kind == WORK_READ ? IBV_ACCESS_LOCAL_WRITE : 0;

	if (!w->size)
		return 0;
	if (w->kind == WORK_WRITE && w->size <= c->max_inline) {
		w->inlined = true;
		return 0;
	}
	if (memory_local_key(c, (uintptr_t)w->local, w->size, &w->local_key))
		return 0;
	if (w->size <= SLOT_SIZE) {
		if (!c->num_free_slots)
			return EAGAIN;
		w->slot = c->free_slots[--c->num_free_slots];
		w->local_key = c->memory_mr->lkey;
		if (w->kind == WORK_WRITE)
			memcpy(send_slot(c, w->slot), w->local, w->size);
		return 0;
	}
	w->once = ibv_reg_mr(c->glue->pd, w->local, w->size, access);
	if (!w->once)
		return errno;
	w->local_key = w->once->lkey;
	return 0;
}

/* Devices without immediate data send a message after the write. */
static int issue_notification(struct glue_connection *c, uint32_t flags,
			      uint32_t tag, uint64_t *handle)
{
	struct work *w;

	if (!c->num_free_slots)
		return EAGAIN;
	w = work_new(c, handle);
	w->kind = WORK_SEND;
	w->flags = flags & (GLUE_EVENT | GLUE_FENCE_FORWARD);
	w->tied = true;
	w->slot = c->free_slots[--c->num_free_slots];
	w->local_key = c->memory_mr->lkey;
	w->size = call_fill_notification(c, w->slot, tag);
	return 0;
}

/* Without data it asks nobody, but some devices still want a key that exists. */
static void point_at_mailbox(const struct glue_connection *c, struct work *w)
{
	w->kind = WORK_WRITE;
	w->remote = c->peer_mailbox;
	w->remote_key = c->peer_mailbox_key;
}

static int issue(struct glue_connection *c, const struct work *wanted,
		 uint64_t *handle)
{
	bool notify = wanted->flags & GLUE_NOTIFY_FLAG;
	bool message = notify && c->glue->iwarp;
	struct work *w;
	int error;

	if (c->state != CONNECTION_OPEN)
		return ENOTCONN;
	if (!work_has_room(c, 1 + message, false) ||
	    (notify && !work_has_room(c, 1, true)))
		return EAGAIN;
	w = work_new(c, handle);
	w->kind = wanted->kind;
	w->flags = wanted->flags;
	w->tag = wanted->tag;
	w->remote = wanted->remote;
	w->local = wanted->local;
	w->size = wanted->size;
	if (!w->size)
		point_at_mailbox(c, w);
	error = prepare_local(c, w);
	if (!error && message) {
		w->flags &= ~(GLUE_NOTIFY_FLAG | GLUE_EVENT);
		w->quiet = true;
		error = issue_notification(c, wanted->flags, wanted->tag,
					   handle);
	}
	if (error) {
		if (w->slot >= 0)
			c->free_slots[c->num_free_slots++] = w->slot;
		if (w->once)
			ibv_dereg_mr(w->once);
		w->once = NULL;
		c->issued--;
		return error;
	}
	c->sends += notify;
	work_pump(c);
	return 0;
}

int glue_rdma_operation(struct glue_connection *c, uint64_t remote_address,
			void *local_address, size_t size,
			enum glue_operation operation, uint64_t flags,
			uint64_t *handle)
{
	const uint32_t known = GLUE_FENCE_BACKWARD | GLUE_FENCE_FORWARD |
			       GLUE_EVENT | GLUE_NOTIFY_FLAG;
	struct work wanted = {
		.kind = operation == GLUE_READ ? WORK_READ : WORK_WRITE,
		.flags = (uint32_t)flags,
		.tag = flags >> 32,
		.remote = remote_address,
		.local = local_address,
		.size = size,
	};
	uint64_t taken;
	int error;

	if (!node_is_ours(c->glue))
		return -ECHILD;
	if ((operation != GLUE_READ && operation != GLUE_WRITE) ||
	    (uint32_t)flags & ~known ||
	    (operation == GLUE_READ && flags & GLUE_NOTIFY_FLAG))
		return -EINVAL;
	if (size > GLUE_MAX_OPERATION)
		return -EMSGSIZE;
	pthread_mutex_lock(&c->lock);
	error = issue(c, &wanted, &taken);
	pthread_mutex_unlock(&c->lock);
	if (!error && handle)
		*handle = taken;
	return -error;
}

int glue_notify(struct glue_connection *c, uint32_t tag)
{
	return glue_rdma_operation(c, 0, NULL, 0, GLUE_WRITE, GLUE_NOTIFY(tag),
				   NULL);
}

static int find_failure(const struct glue_connection *c, uint64_t handle)
{
	int i;

	for (i = 0; i < FAILURES; i++) {
		if (c->failures[i].handle == handle)
			return -c->failures[i].error;
	}
	return 1;
}

int glue_query_operation(struct glue_connection *c, uint64_t handle)
{
	int result = 0;

	if (!node_is_ours(c->glue))
		return -ECHILD;
	/* Most often it has been completed, and nothing has ever failed. */
	if (handle && handle <= c->completed && !c->num_failures)
		return 1;
	pthread_mutex_lock(&c->lock);
	if (!handle || handle > c->issued)
		result = -EINVAL;
	else if (handle <= c->completed)
		result = find_failure(c, handle);
	else if (c->state != CONNECTION_OPEN)
		result = -ENOTCONN;
	pthread_mutex_unlock(&c->lock);
	return result;
}
