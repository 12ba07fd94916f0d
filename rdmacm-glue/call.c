// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Active messages and notifications, and the accounts of the receives they use.
 *
 * Each side posts SLOTS receives and writes to the other one's mailbox how many
 * it has used up and posted again; nobody sends what would find none. The
 * report is on its way only once at a time, so the last one written is the
 * newest.
 */
#include <errno.h>
#include <string.h>

#include "glue.h"

enum { REPORT_AFTER = SLOTS / 4 };

size_t call_fill_notification(struct glue_connection *c, int slot,
			      uint32_t tag)
{
	struct call_header *h = (struct call_header *)send_slot(c, slot);

	*h = (struct call_header){
		.type = CALL_NOTIFICATION,
		.total = htole32(tag),
	};
	return sizeof(*h);
}

static void post_report(struct glue_connection *c)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)&c->mailbox->report,
		.length = sizeof(c->mailbox->report),
		.lkey = c->mailbox_mr->lkey,
	};
	struct ibv_send_wr wr = {
		.wr_id = wr_id(c, WR_REPORT, 0),
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.wr.rdma = {
			.remote_addr = c->peer_mailbox,
			.rkey = c->peer_mailbox_key,
		},
	};
	struct ibv_send_wr *bad;

	if (c->state != CONNECTION_OPEN)
		return;
	c->mailbox->report = htole32(c->consumed);
	c->reported = c->consumed;
	c->reporting = true;
	pthread_mutex_lock(&c->lock);
	if (ibv_post_send(c->half[HALF_DATA].id->qp, &wr, &bad))
		connection_refuses_work(c);
	pthread_mutex_unlock(&c->lock);
}

static void report(struct glue_connection *c)
{
	if (!c->reporting && c->consumed - c->reported >= REPORT_AFTER)
		post_report(c);
}

void call_reported(struct glue_connection *c)
{
	c->reporting = false;
	report(c);
}

/* Returns false if the handler has given up the connection. */
static bool run_handler(struct glue_connection *c, uint32_t index,
			const uint64_t *le_args, const void *payload,
			size_t size)
{
	struct glue *g = c->glue;
	struct handler h = g->handlers[index];
	struct glue *outer;
	uint64_t id = wr_id(c, WR_RECV, 0);
	uint64_t args[GLUE_ARGS];
	int i;

	for (i = 0; i < GLUE_ARGS; i++)
		args[i] = le64toh(le_args[i]);
	if (!h.run)
		return true;
	outer = event_enter_handler(g);
	h.run(c, args, payload, size, h.context);
	event_leave_handler(outer);
	return wr_connection(g, id) == c;
}

/* All parts say the same of their call: the peer may not think better of it. */
static bool continues(const struct glue_connection *c,
		      const struct call_header *h)
{
	if (h->offset != c->assembled)
		return false;
	return !h->offset || (h->total == c->assembled_total &&
			      h->handler == c->assembled_handler);
}

/* Parts come one after another: what does not continue is no call. */
static bool part_fits(const struct glue_connection *c,
		      const struct call_header *h, uint32_t received)
{
	return h->handler < GLUE_HANDLERS && h->total <= GLUE_MAX_PAYLOAD &&
	       received == sizeof(*h) + h->size && h->size <= PART_SIZE &&
	       continues(c, h) && h->offset <= h->total &&
	       h->size <= h->total - h->offset && (h->size || !h->total);
}

static bool take_part(struct glue_connection *c, const struct call_header *h,
		      const char *data, uint32_t received)
{
	if (!part_fits(c, h, received)) {
		connection_lost(c, EPROTO);
		return true;
	}
	if (h->size == h->total)
		return run_handler(c, h->handler, h->args, data, h->size);
	memcpy(c->assembly + h->offset, data, h->size);
	c->assembled += h->size;
	c->assembled_total = h->total;
	c->assembled_handler = h->handler;
	if (c->assembled < h->total)
		return true;
	c->assembled = 0;
	return run_handler(c, h->handler, h->args, c->assembly, h->total);
}

static void notified(struct glue_connection *c, uint32_t tag)
{
	struct glue_event event = {
		.type = GLUE_EVENT_NOTIFICATION,
		.connection = c,
		.tag = tag,
	};

	event_put(c->glue, &event);
}

/* Returns false if the connection is gone. */
static bool take_message(struct glue_connection *c, const struct arrival *a)
{
	const char *data = recv_slot(c, a->slot);
	struct call_header h;

	if (a->size < sizeof(h)) {
		connection_lost(c, EPROTO);
		return true;
	}
	memcpy(&h, data, sizeof(h));
	h.handler = le16toh(h.handler);
	h.size = le32toh(h.size);
	h.total = le32toh(h.total);
	h.offset = le32toh(h.offset);
	if (h.type == CALL_PART)
		return take_part(c, &h, data + sizeof(h), a->size);
	if (h.type == CALL_NOTIFICATION)
		notified(c, h.total);
	else
		connection_lost(c, EPROTO);
	return true;
}

static void take(struct glue_connection *c, const struct arrival *a)
{
	if (a->notification)
		notified(c, a->tag);
	else if (!take_message(c, a))
		return;
	if (c->state != CONNECTION_OPEN)
		return;
	if (post_recv(c, a->slot)) {
		connection_refuses_work(c);
		return;
	}
	c->consumed++;
	report(c);
}

void call_arrived(struct glue_connection *c, const struct arrival *a)
{
	if (c->given && !c->num_early && !c->glue->later) {
		take(c, a);
		return;
	}
	if (!c->num_early)
		c->glue->early++;
	c->early[c->num_early++] = *a;
}

static void take_early(struct glue_connection *c)
{
	struct arrival early[SLOTS];
	uint32_t num = c->num_early, i;
	uint64_t id = wr_id(c, WR_RECV, 0);
	struct glue *g = c->glue;

	memcpy(early, c->early, sizeof(early));
	c->num_early = 0;
	g->early--;
	for (i = 0; i < num && wr_connection(g, id) == c; i++)
		take(c, &early[i]);
}

void call_early(struct glue *g)
{
	struct glue_connection *c;
	uint32_t i;

	for (i = 0; g->early && i < g->options.max_connections; i++) {
		c = g->connections[i];
		if (c && c->given && c->num_early)
			take_early(c);
	}
}

int glue_set_handler(struct glue *g, uint32_t index, glue_handler handler,
		     void *context)
{
	bool polls = event_in_handler() == g;

	if (!node_is_ours(g))
		return -ECHILD;
	if (index >= GLUE_HANDLERS)
		return -EINVAL;
	if (!polls)
		pthread_mutex_lock(&g->polling);
	g->handlers[index] = (struct handler){ handler, context };
	if (!polls)
		pthread_mutex_unlock(&g->polling);
	return 0;
}

static void issue_part(struct glue_connection *c, const struct call_header *h,
		       const char *data)
{
	uint64_t handle;
	struct work *w = work_new(c, &handle);
	char *slot;

	w->kind = WORK_SEND;
	w->slot = c->free_slots[--c->num_free_slots];
	w->local_key = c->memory_mr->lkey;
	w->size = sizeof(*h) + le32toh(h->size);
	slot = send_slot(c, w->slot);
	memcpy(slot, h, sizeof(*h));
	if (le32toh(h->size))
		memcpy(slot + sizeof(*h), data, le32toh(h->size));
	c->sends++;
}

/* All parts of a call, or none. */
static int issue_call(struct glue_connection *c, struct call_header *h,
		      const char *payload, uint32_t size)
{
	uint32_t parts = size ? (size + PART_SIZE - 1) / PART_SIZE : 1;
	uint32_t offset = 0, part;

	if (c->state != CONNECTION_OPEN)
		return ENOTCONN;
	if (c->num_free_slots < (int)parts || !work_has_room(c, parts, true))
		return EAGAIN;
	do {
		part = size - offset < PART_SIZE ? size - offset : PART_SIZE;
		h->size = htole32(part);
		h->offset = htole32(offset);
		issue_part(c, h, payload + offset);
		offset += part;
	} while (offset < size);
	work_pump(c);
	return 0;
}

int glue_call(struct glue_connection *c, uint32_t index,
	      const uint64_t args[GLUE_ARGS], const void *payload, size_t size)
{
	struct call_header h = {
		.type = CALL_PART,
		.handler = htole16(index),
		.total = htole32(size),
	};
	int error, i;

	if (!node_is_ours(c->glue))
		return -ECHILD;
	if (index >= GLUE_HANDLERS)
		return -EINVAL;
	if (size > GLUE_MAX_PAYLOAD)
		return -EMSGSIZE;
	for (i = 0; args && i < GLUE_ARGS; i++)
		h.args[i] = htole64(args[i]);
	pthread_mutex_lock(&c->lock);
	error = issue_call(c, &h, payload, size);
	pthread_mutex_unlock(&c->lock);
	return -error;
}
