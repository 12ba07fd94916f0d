// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* A connection's memory, its QPs, and how a completion finds it again. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "glue.h"

/* Offsets in glue_connection.memory. */
enum {
	SEND_SLOTS = 0,
	RECV_SLOTS = SEND_SLOTS + SLOTS * SLOT_SIZE,
	CONTROL_SEND_SLOTS = RECV_SLOTS + SLOTS * SLOT_SIZE,
	CONTROL_RECV_SLOTS = CONTROL_SEND_SLOTS +
			     CONTROL_SENDS * (int)sizeof(struct control),
	MEMORY_SIZE = CONTROL_RECV_SLOTS +
		      CONTROL_RECVS * (int)sizeof(struct control),
};

/* A completion's wr_id: slot 12 bits, generation 20, kind 4, index 28. */
uint64_t wr_id(const struct glue_connection *c, enum wr_kind kind,
	       uint32_t index)
{
	return (uint64_t)c->slot << 52 | (uint64_t)c->generation << 32 |
	       (uint32_t)kind << 28 | index;
}

enum wr_kind wr_kind(uint64_t id)
{
	return id >> 28 & 0xf;
}

uint32_t wr_index(uint64_t id)
{
	return id & 0xfffffff;
}

bool wr_are_alike(uint64_t a, uint64_t b)
{
	return (a ^ b) >> 28 == 0;
}

struct glue_connection *wr_connection(struct glue *g, uint64_t id)
{
	struct glue_connection *c = g->connections[id >> 52];

	return c && c->generation == (id >> 32 & 0xfffff) ? c : NULL;
}

char *send_slot(const struct glue_connection *c, int slot)
{
	return c->memory + SEND_SLOTS + (size_t)slot * SLOT_SIZE;
}

char *recv_slot(const struct glue_connection *c, int slot)
{
	return c->memory + RECV_SLOTS + (size_t)slot * SLOT_SIZE;
}

struct control *control_send_slot(const struct glue_connection *c, uint32_t n)
{
	return (struct control *)(c->memory + CONTROL_SEND_SLOTS) +
	       n % CONTROL_SENDS;
}

struct control *control_recv_slot(const struct glue_connection *c, uint32_t n)
{
	return (struct control *)(c->memory + CONTROL_RECV_SLOTS) + n;
}

static int post_one_recv(struct glue_connection *c, enum half_kind half,
			 uint64_t id, void *address, uint32_t size)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)address,
		.length = size,
		.lkey = c->memory_mr->lkey,
	};
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 };
	struct ibv_recv_wr *bad;

	return ibv_post_recv(c->half[half].id->qp, &wr, &bad);
}

int post_recv(struct glue_connection *c, int slot)
{
	return post_one_recv(c, HALF_DATA, wr_id(c, WR_RECV, slot),
			     recv_slot(c, slot), SLOT_SIZE);
}

int post_control_recv(struct glue_connection *c, int slot)
{
	return post_one_recv(c, HALF_CONTROL, wr_id(c, WR_CONTROL_RECV, slot),
			     control_recv_slot(c, slot),
			     sizeof(struct control));
}

int status_error(enum ibv_wc_status status)
{
	switch (status) {
	case IBV_WC_SUCCESS:
		return 0;
	case IBV_WC_RETRY_EXC_ERR:
	case IBV_WC_RNR_RETRY_EXC_ERR:
	case IBV_WC_RESP_TIMEOUT_ERR:
		return ETIMEDOUT;
	case IBV_WC_LOC_PROT_ERR:
	case IBV_WC_LOC_ACCESS_ERR:
	case IBV_WC_REM_ACCESS_ERR:
		return EFAULT;
	case IBV_WC_WR_FLUSH_ERR:
		return ECONNRESET;
	default:
		return EREMOTEIO;
	}
}

static int create_one_qp(struct half *half, struct rdma_cm_id *id,
			 struct ibv_qp_init_attr *attr)
{
	struct glue *g = half->connection->glue;

	if (g->relaxed && half->kind == HALF_DATA)
		return medge_create_relaxed_qp(id, g->pd, attr);
	return rdma_create_qp(id, g->pd, attr) ? errno : 0;
}

/* A little inline saves a look-up; more of it would make every entry of the queue larger. */
static int create_qp(struct half *half, struct rdma_cm_id *id,
		     struct ibv_qp_init_attr *attr)
{
	static const uint32_t inline_sizes[] = { 64, 0 };
	int error = 0;
	size_t i;

	for (i = 0; i < sizeof(inline_sizes) / sizeof(*inline_sizes); i++) {
		struct ibv_qp_init_attr try = *attr;

		try.cap.max_inline_data = inline_sizes[i];
		error = create_one_qp(half, id, &try);
		if (!error) {
			*attr = try;
			return 0;
		}
	}
	return error;
}

static int fill_recvs(struct half *half)
{
	struct glue_connection *c = half->connection;
	int error = 0, i;

	if (half->kind == HALF_DATA) {
		for (i = 0; i < SLOTS && !error; i++)
			error = post_recv(c, i);
	} else {
		for (i = 0; i < CONTROL_RECVS && !error; i++)
			error = post_control_recv(c, i);
	}
	return error;
}

int half_create_qp(struct half *half, struct rdma_cm_id *id)
{
	struct glue_connection *c = half->connection;
	struct glue *g = c->glue;
	bool data = half->kind == HALF_DATA;
	struct ibv_qp_init_attr attr = {
		.send_cq = data ? g->cq : g->control_cq,
		.recv_cq = data ? g->cq : g->control_cq,
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = {
			.max_send_wr = data ? g->options.queue_depth + 1 :
					      CONTROL_SENDS,
			.max_recv_wr = data ? SLOTS : CONTROL_RECVS,
			.max_send_sge = 1,
			.max_recv_sge = 1,
		},
	};
	int error = create_qp(half, id, &attr);

	if (error)
		return error;
	half->id = id;
	if (data)
		c->max_inline = attr.cap.max_inline_data;
	return fill_recvs(half);
}

static void *map_pages(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static struct work *new_work(uint32_t depth)
{
	struct work *work = aligned_alloc(alignof(struct work),
					  depth * sizeof(*work));

	if (work)
		memset(work, 0, depth * sizeof(*work));
	return work;
}

static int create_memory(struct glue_connection *c)
{
	struct glue *g = c->glue;
	int i;

	c->memory_size = MEMORY_SIZE;
	c->memory = map_pages(c->memory_size);
	c->mailbox = map_pages(sizeof(*c->mailbox));
	c->work = new_work(g->options.queue_depth);
	c->keys = calloc(REMOTE_KEYS, sizeof(*c->keys));
	c->assembly = malloc(GLUE_MAX_PAYLOAD);
	if (!c->memory || !c->mailbox || !c->work || !c->keys || !c->assembly)
		return ENOMEM;
	c->memory_mr = ibv_reg_mr(g->pd, c->memory, c->memory_size,
				  IBV_ACCESS_LOCAL_WRITE);
	c->mailbox_mr = ibv_reg_mr(g->pd, c->mailbox, sizeof(*c->mailbox),
				   IBV_ACCESS_LOCAL_WRITE |
				   IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_READ);
	if (!c->memory_mr || !c->mailbox_mr)
		return errno;
	for (i = 0; i < SLOTS; i++)
		c->free_slots[i] = i;
	c->num_free_slots = SLOTS;
	return 0;
}

static bool take_place(struct glue_connection *c)
{
	struct glue *g = c->glue;
	uint32_t i;

	pthread_mutex_lock(&g->lock);
	for (i = 0; i < g->options.max_connections; i++) {
		if (g->connections[i])
			continue;
		c->slot = i;
		c->generation = ++g->generation & 0xfffff;
		c->began_ms = now_ms();
		g->connections[i] = c;
		break;
	}
	pthread_mutex_unlock(&g->lock);
	return i < g->options.max_connections;
}

struct glue_connection *connection_new(struct glue *g)
{
	struct glue_connection *c = calloc(1, sizeof(*c));
	int error, kind;

	if (!c)
		return NULL;
	c->glue = g;
	c->error = -1;
	pthread_mutex_init(&c->lock, NULL);
	for (kind = 0; kind < HALVES; kind++) {
		c->half[kind].connection = c;
		c->half[kind].kind = kind;
	}
	error = create_memory(c);
	if (!error && getrandom(&c->token, sizeof(c->token), 0) < 0)
		error = errno;
	if (!error && !take_place(c))
		error = ENOSPC;
	if (error) {
		connection_destroy(c);
		errno = error;
		return NULL;
	}
	return c;
}

static void destroy_half(struct half *half)
{
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };

	if (!half->id)
		return;
	if (half->id->qp) {
		/*
		 * So that what it has flushed leaves the queue that all share,
		 * and that it would fill if nobody polls. rdma_disconnect() came
		 * before: it fails for a QP that is reset.
		 */
		ibv_modify_qp(half->id->qp, &reset, IBV_QP_STATE);
		rdma_destroy_qp(half->id);
	}
	rdma_destroy_id(half->id);
	half->id = NULL;
}

static void dereg(struct ibv_mr *mr)
{
	if (mr)
		ibv_dereg_mr(mr);
}

static void destroy_memory(struct glue_connection *c)
{
	uint32_t i;

	for (i = 0; c->work && i < c->glue->options.queue_depth; i++)
		dereg(c->work[i].once);
	for (i = 0; i < GRANTS; i++)
		dereg(c->grants[i]);
	dereg(c->memory_mr);
	dereg(c->mailbox_mr);
	if (c->memory)
		munmap(c->memory, c->memory_size);
	if (c->mailbox)
		munmap(c->mailbox, sizeof(*c->mailbox));
	free(c->work);
	free(c->keys);
	free(c->assembly);
}

/* It is in no table any more. */
void connection_destroy(struct glue_connection *c)
{
	destroy_half(&c->half[HALF_DATA]);
	destroy_half(&c->half[HALF_CONTROL]);
	destroy_memory(c);
	pthread_mutex_destroy(&c->lock);
	free(c);
}
