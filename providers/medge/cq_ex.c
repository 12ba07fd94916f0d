// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Completions read field by field, where they are (ibv_start_poll and its like). */
#include <errno.h>
#include <time.h>

#include "medge.h"

static struct medge_cq *medge_from_cq_ex(struct ibv_cq_ex *cq_ex)
{
	return container_of(cq_ex, struct medge_cq, vcq.cq_ex);
}

/* The oldest completion is the current one; between start and end we hold it. */
static int medge_cq_look(struct medge_cq *cq)
{
	cq->current = medge_ring_peek(&cq->ring);
	if (!cq->current)
		return ENOENT;
	cq->vcq.cq_ex.wr_id = cq->current->wr_id;
	cq->vcq.cq_ex.status = cq->current->status;
	return 0;
}

static int medge_start_poll(struct ibv_cq_ex *cq_ex,
			    struct ibv_poll_cq_attr *attr)
{
	struct medge_cq *cq = medge_from_cq_ex(cq_ex);
	enum medge_spin_act act;
	struct medge_qp_id id;
	bool late;
	int ret;

	if (attr->comp_mask)
		return EINVAL;
	medge_lock(&cq->lock);
	ret = medge_cq_look(cq);
	if (!ret) {
		medge_spin_found(cq);
		return 0;
	}
	late = cq->late;
	act = medge_spin_empty(cq, &id);
	medge_unlock(&cq->lock);
	if (late)
		medge_late_ring(cq);
	if (act != MEDGE_SPIN_ON)
		medge_spin_help(cq, act, id);
	return ret;
}

static int medge_next_poll(struct ibv_cq_ex *cq_ex)
{
	struct medge_cq *cq = medge_from_cq_ex(cq_ex);

	if (cq->current)
		cq->ring.cons++;
	return medge_cq_look(cq);
}

static void medge_end_poll(struct ibv_cq_ex *cq_ex)
{
	struct medge_cq *cq = medge_from_cq_ex(cq_ex);

	if (cq->current)
		cq->ring.cons++;
	cq->current = NULL;
	medge_ring_release(&cq->ring);
	medge_unlock(&cq->lock);
}

static enum ibv_wc_opcode medge_read_opcode(struct ibv_cq_ex *cq_ex)
{
	return medge_from_cq_ex(cq_ex)->current->opcode;
}

static uint32_t medge_read_vendor_err(struct ibv_cq_ex *cq_ex)
{
	return medge_from_cq_ex(cq_ex)->current->vendor_err;
}

static uint32_t medge_read_byte_len(struct ibv_cq_ex *cq_ex)
{
	return medge_from_cq_ex(cq_ex)->current->byte_len;
}

static __be32 medge_read_imm_data(struct ibv_cq_ex *cq_ex)
{
	return medge_from_cq_ex(cq_ex)->current->imm;
}

static uint32_t medge_read_qp_num(struct ibv_cq_ex *cq_ex)
{
	return medge_from_cq_ex(cq_ex)->current->qp_num;
}

static uint32_t medge_read_src_qp(struct ibv_cq_ex *cq_ex)
{
	return medge_from_cq_ex(cq_ex)->current->src_qp;
}

static unsigned int medge_read_wc_flags(struct ibv_cq_ex *cq_ex)
{
	return medge_from_cq_ex(cq_ex)->current->wc_flags;
}

/* Ethernet has no LIDs. */
static uint32_t medge_read_slid(struct ibv_cq_ex *cq_ex)
{
	(void)cq_ex;
	return 0;
}

static uint8_t medge_read_dlid_path_bits(struct ibv_cq_ex *cq_ex)
{
	(void)cq_ex;
	return 0;
}

static uint8_t medge_read_sl(struct ibv_cq_ex *cq_ex)
{
	return medge_from_cq_ex(cq_ex)->current->sl;
}

static uint64_t medge_read_completion_ts(struct ibv_cq_ex *cq_ex)
{
	return medge_from_cq_ex(cq_ex)->current->timestamp;
}

static uint64_t medge_clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

/* The stamp is of the monotonic clock; the wall clock was as far from it as now. */
static uint64_t medge_read_wallclock(struct ibv_cq_ex *cq_ex)
{
	uint64_t age = medge_clock_ns(CLOCK_MONOTONIC) -
		       medge_read_completion_ts(cq_ex);

	return medge_clock_ns(CLOCK_REALTIME) - age;
}

void medge_cq_ex_init(struct medge_cq *cq, uint64_t wc_flags)
{
	struct ibv_cq_ex *ex = &cq->vcq.cq_ex;

	ex->start_poll = medge_start_poll;
	ex->next_poll = medge_next_poll;
	ex->end_poll = medge_end_poll;
	ex->read_opcode = medge_read_opcode;
	ex->read_vendor_err = medge_read_vendor_err;
	ex->read_wc_flags = medge_read_wc_flags;
	if (wc_flags & IBV_WC_EX_WITH_BYTE_LEN)
		ex->read_byte_len = medge_read_byte_len;
	if (wc_flags & IBV_WC_EX_WITH_IMM)
		ex->read_imm_data = medge_read_imm_data;
	if (wc_flags & IBV_WC_EX_WITH_QP_NUM)
		ex->read_qp_num = medge_read_qp_num;
	if (wc_flags & IBV_WC_EX_WITH_SRC_QP)
		ex->read_src_qp = medge_read_src_qp;
	if (wc_flags & IBV_WC_EX_WITH_SLID)
		ex->read_slid = medge_read_slid;
	if (wc_flags & IBV_WC_EX_WITH_SL)
		ex->read_sl = medge_read_sl;
	if (wc_flags & IBV_WC_EX_WITH_DLID_PATH_BITS)
		ex->read_dlid_path_bits = medge_read_dlid_path_bits;
	if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)
		ex->read_completion_ts = medge_read_completion_ts;
	if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
		ex->read_completion_wallclock_ns = medge_read_wallclock;
}

int medge_query_rt_values(struct ibv_context *context,
			  struct ibv_values_ex *values)
{
	(void)context;
	if (values->comp_mask & ~(uint32_t)IBV_VALUES_MASK_RAW_CLOCK)
		return EINVAL;
	/* Ticks of hca_core_clock, as in a completion, not a timespec's parts. */
	if (values->comp_mask & IBV_VALUES_MASK_RAW_CLOCK) {
		values->raw_clock.tv_sec = 0;
		values->raw_clock.tv_nsec = medge_clock_ns(CLOCK_MONOTONIC);
	}
	return 0;
}
