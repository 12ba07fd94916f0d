// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What the agents say to each other over a connection's control half. */
#include <errno.h>
#include <string.h>

#include "glue.h"

void control_send(struct glue_connection *c, const struct control *msg)
{
	uint32_t n = c->control_sends;
	struct control *slot = control_send_slot(c, n);
	struct ibv_sge sge = {
		.addr = (uintptr_t)slot,
		.length = sizeof(*slot),
		.lkey = c->memory_mr->lkey,
	};
	struct ibv_send_wr wr = {
		.wr_id = wr_id(c, WR_CONTROL_SEND, n % CONTROL_SENDS),
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
	};
	struct ibv_send_wr *bad;

	if (c->state != CONNECTION_OPEN && msg->type != CONTROL_READY)
		return;
	/* Only a peer that asks without waiting for answers gets us here. */
	if (n - c->control_done == CONTROL_SENDS) {
		connection_lost(c, EPROTO);
		return;
	}
	*slot = (struct control){
		.type = msg->type,
		.flags = msg->flags,
		.grant = htole16(msg->grant),
		.error = htole32(msg->error),
		.handle = htole64(msg->handle),
		.address = htole64(msg->address),
		.length = htole64(msg->length),
		.key = htole32(msg->key),
	};
	if (ibv_post_send(c->half[HALF_CONTROL].id->qp, &wr, &bad))
		connection_refuses_work(c);
	else
		c->control_sends++;
}

static void answer(struct glue_connection *c, const struct control *msg)
{
	pthread_mutex_lock(&c->lock);
	control_send(c, msg);
	pthread_mutex_unlock(&c->lock);
}

void control_ready(struct glue_connection *c)
{
	const struct control ready = { .type = CONTROL_READY };

	answer(c, &ready);
}

static void asked_to_map(struct glue_connection *c, const struct control *msg)
{
	struct control reply = {
		.type = CONTROL_MAPPED,
		.grant = msg->grant,
		.handle = msg->handle,
	};

	if (msg->grant >= GRANTS || c->grants[msg->grant]) {
		connection_lost(c, EPROTO);
		return;
	}
	memory_grant(c, msg, &reply);
	answer(c, &reply);
}

static void asked_to_release(struct glue_connection *c,
			     const struct control *msg)
{
	struct control reply = {
		.type = CONTROL_RELEASED,
		.grant = msg->grant,
	};

	if (msg->grant >= GRANTS || !c->grants[msg->grant]) {
		connection_lost(c, EPROTO);
		return;
	}
	ibv_dereg_mr(c->grants[msg->grant]);
	c->grants[msg->grant] = NULL;
	answer(c, &reply);
}

static void asked_to_forget(struct glue_connection *c,
			    const struct control *msg)
{
	struct control reply = { .type = CONTROL_INVALIDATED };

	pthread_mutex_lock(&c->lock);
	work_forget_keys(c, msg->address, msg->length);
	control_send(c, &reply);
	pthread_mutex_unlock(&c->lock);
}

static void mapped(struct glue_connection *c, const struct control *msg)
{
	pthread_mutex_lock(&c->lock);
	work_mapped(c, msg);
	pthread_mutex_unlock(&c->lock);
}

static void released(struct glue_connection *c, const struct control *msg)
{
	if (msg->grant >= GRANTS)
		return;
	pthread_mutex_lock(&c->lock);
	c->grants_busy &= ~(1u << msg->grant);
	work_pump(c);
	pthread_mutex_unlock(&c->lock);
}

static void received(struct glue_connection *c, const struct control *msg)
{
	const struct control pong = { .type = CONTROL_PONG };

	c->heard_ms = now_ms();
	switch (msg->type) {
	case CONTROL_READY:
		connect_ready(c);
		break;
	case CONTROL_PING:
		answer(c, &pong);
		break;
	case CONTROL_PONG:
		c->pinged_ms = 0;
		break;
	case CONTROL_MAP:
		asked_to_map(c, msg);
		break;
	case CONTROL_MAPPED:
		mapped(c, msg);
		break;
	case CONTROL_RELEASE:
		asked_to_release(c, msg);
		break;
	case CONTROL_RELEASED:
		released(c, msg);
		break;
	case CONTROL_INVALIDATE:
		asked_to_forget(c, msg);
		break;
	case CONTROL_INVALIDATED:
		c->invalidating = false;
		announce(c->glue);
		break;
	case CONTROL_BYE:
		c->heard_bye = true;
		break;
	default:
		connection_lost(c, EPROTO);
	}
}

static void take_message(struct glue_connection *c, uint32_t index,
			 uint32_t size)
{
	const struct control *slot = control_recv_slot(c, index);
	struct control msg = {
		.type = slot->type,
		.flags = slot->flags,
		.grant = le16toh(slot->grant),
		.error = le32toh(slot->error),
		.handle = le64toh(slot->handle),
		.address = le64toh(slot->address),
		.length = le64toh(slot->length),
		.key = le32toh(slot->key),
	};

	/* Posted again before the answer, which entitles the peer to ask again. */
	if (size != sizeof(msg) || post_control_recv(c, index))
		connection_lost(c, EPROTO);
	else
		received(c, &msg);
}

static void sent(struct glue_connection *c, uint32_t index)
{
	uint8_t type = control_send_slot(c, index)->type;

	pthread_mutex_lock(&c->lock);
	c->control_done++;
	pthread_mutex_unlock(&c->lock);
	if (type == CONTROL_BYE) {
		c->bye_sent = true;
		announce(c->glue);
	}
}

static void completed(struct glue *g, const struct ibv_wc *wc)
{
	struct glue_connection *c;

	/* Only the agent destroys a connection, and it is here. */
	pthread_mutex_lock(&g->lock);
	c = wr_connection(g, wc->wr_id);
	pthread_mutex_unlock(&g->lock);
	if (!c)
		return;
	if (wc->status != IBV_WC_SUCCESS)
		connection_suspect(c, status_error(wc->status));
	else if (wr_kind(wc->wr_id) == WR_CONTROL_RECV)
		take_message(c, wr_index(wc->wr_id), wc->byte_len);
	else
		sent(c, wr_index(wc->wr_id));
}

void control_poll(struct glue *g)
{
	struct ibv_wc wc[16];
	int n, i;

	while ((n = ibv_poll_cq(g->control_cq, 16, wc)) > 0) {
		for (i = 0; i < n; i++)
			completed(g, &wc[i]);
	}
}

static void look_after(struct glue_connection *c, uint64_t now)
{
	const struct control ping = { .type = CONTROL_PING };
	uint64_t patience = c->glue->options.peer_timeout_ms;

	if (c->state != CONNECTION_OPEN)
		return;
	if (c->pinged_ms && now - c->pinged_ms > patience / 8 * 5) {
		connection_lost(c, ETIMEDOUT);
	} else if (!c->pinged_ms && now - c->heard_ms >= patience / 4) {
		c->pinged_ms = now;
		answer(c, &ping);
	}
}

void control_tick(struct glue *g, uint64_t now)
{
	struct glue_connection *c;
	uint32_t i;

	/* We may have slept, and the answers are here. */
	control_poll(g);
	for (i = 0; i < g->options.max_connections; i++) {
		pthread_mutex_lock(&g->lock);
		c = g->connections[i];
		pthread_mutex_unlock(&g->lock);
		if (c)
			look_after(c, now);
	}
}
