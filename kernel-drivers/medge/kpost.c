// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Kernel consumers post: their work requests become WQEs as a user's provider writes them. */
#include "ah.h"
#include "doorbell.h"
#include "kpost.h"
#include "qp.h"

enum operands {
	HAS_TARGET = BIT(0),		/* remote address and key */
	HAS_IMM = BIT(1),
	IS_ATOMIC = BIT(2),
	HAS_INV = BIT(3),		/* key to invalidate, there or here */
	IS_REG = BIT(4),
};

/* What is not here, medge has not. */
static const struct wr_kind {
	bool known;
	u8 wqe;				/* enum medge_wqe_opcode */
	u8 operands;
} wr_kinds[] = {
	[IB_WR_RDMA_WRITE] = { true, MEDGE_WQE_WRITE, HAS_TARGET },
	[IB_WR_RDMA_WRITE_WITH_IMM] = {
		true, MEDGE_WQE_WRITE_IMM, HAS_TARGET | HAS_IMM
	},
	[IB_WR_SEND] = { true, MEDGE_WQE_SEND, 0 },
	[IB_WR_SEND_WITH_IMM] = { true, MEDGE_WQE_SEND_IMM, HAS_IMM },
	[IB_WR_RDMA_READ] = { true, MEDGE_WQE_READ, HAS_TARGET },
	[IB_WR_ATOMIC_CMP_AND_SWP] = { true, MEDGE_WQE_CMP_SWAP, IS_ATOMIC },
	[IB_WR_ATOMIC_FETCH_AND_ADD] = { true, MEDGE_WQE_FETCH_ADD, IS_ATOMIC },
	[IB_WR_SEND_WITH_INV] = { true, MEDGE_WQE_SEND_INV, HAS_INV },
	[IB_WR_LOCAL_INV] = { true, MEDGE_WQE_LOCAL_INV, HAS_INV },
	[IB_WR_REG_MR] = { true, MEDGE_WQE_REG_MR, IS_REG },
};

static const struct wr_kind *find_kind(const struct ib_send_wr *wr)
{
	if (wr->opcode >= ARRAY_SIZE(wr_kinds) || !wr_kinds[wr->opcode].known)
		return NULL;
	return &wr_kinds[wr->opcode];
}

/* ---- rings ---- */

/* The next free entry; NULL: the ring is full. Under its producer's lock. */
static void *reserve(const struct medge_ring *ring, u32 prod)
{
	u32 cons;

	if (!ring->hdr)
		return NULL;
	/* The entry is written anew after the last reading of it. */
	cons = smp_load_acquire(&ring->hdr->cons);
	return prod - cons > ring->mask ? NULL : medge_ring_entry(ring, prod);
}

/*
 * Tell that the ring has entries, if it must be told. Who posts with
 * interrupts off holds locks under which nothing can be sent.
 */
static void ring_bell(struct medge_qp *qp, const struct medge_ring *ring)
{
	/* Pairs with the barrier between need_doorbell and the look at prod. */
	smp_mb();
	if (!READ_ONCE(ring->hdr->need_doorbell))
		return;
	if (irqs_disabled())
		tasklet_schedule(&qp->kpost.bell);
	else if (ring == &qp->sq)
		medge_send_doorbell(qp);
	else
		medge_recv_doorbell(qp);
}

static void bell_rings(struct tasklet_struct *bell)
{
	struct medge_qp *qp = container_of(bell, struct medge_qp, kpost.bell);

	medge_recv_doorbell(qp);
	medge_send_doorbell(qp);
}

void medge_kpost_init(struct medge_kpost *kpost, bool kernel)
{
	kpost->kernel = kernel;
	spin_lock_init(&kpost->sq_lock);
	spin_lock_init(&kpost->rq_lock);
	tasklet_setup(&kpost->bell, bell_rings);
}

void medge_kpost_stop(struct medge_kpost *kpost)
{
	tasklet_kill(&kpost->bell);
}

static void put_sges(struct medge_sge *to, const struct ib_sge *from, u32 num)
{
	for (; num; num--, to++, from++) {
		to->addr = from->addr;
		to->length = from->length;
		to->lkey = from->lkey;
	}
}

/* ---- sends ---- */

static u16 wqe_flags(int send_flags)
{
	u16 flags = 0;

	if (send_flags & IB_SEND_SIGNALED)
		flags |= MEDGE_WQE_SIGNALED;
	if (send_flags & IB_SEND_SOLICITED)
		flags |= MEDGE_WQE_SOLICITED;
	if (send_flags & IB_SEND_INLINE)
		flags |= MEDGE_WQE_INLINE;
	if (send_flags & IB_SEND_FENCE)
		flags |= MEDGE_WQE_FENCE;
	return flags;
}

static int put_inline(const struct medge_qp *qp, struct medge_send_wqe *wqe,
		      const struct ib_send_wr *wr)
{
	void *to = wqe + 1;
	u32 room = qp->max_inline;
	int i;

	for (i = 0; i < wr->num_sge; i++) {
		const struct ib_sge *sge = &wr->sg_list[i];

		if (sge->length > room)
			return -EINVAL;
		memcpy(to, (void *)(uintptr_t)sge->addr, sge->length);
		to += sge->length;
		room -= sge->length;
	}
	wqe->inline_len = qp->max_inline - room;
	return 0;
}

static void put_operands(struct medge_send_wqe *wqe, const struct ib_send_wr *wr,
			 u8 operands, bool is_ud)
{
	if (operands & HAS_IMM)
		wqe->imm = wr->ex.imm_data;
	if (operands & HAS_INV)
		wqe->rkey = wr->ex.invalidate_rkey;
	if (operands & IS_REG) {
		wqe->rkey = reg_wr(wr)->key;
		wqe->bind_access = reg_wr(wr)->access;
	}
	if (operands & HAS_TARGET) {
		wqe->remote_addr = rdma_wr(wr)->remote_addr;
		wqe->rkey = rdma_wr(wr)->rkey;
	}
	if (is_ud) {
		wqe->ud_ah = container_of(ud_wr(wr)->ah, struct medge_ah,
					  ibah)->number;
		wqe->ud_qpn = ud_wr(wr)->remote_qpn;
		wqe->ud_qkey = ud_wr(wr)->remote_qkey;
	}
	if (operands & IS_ATOMIC) {
		wqe->remote_addr = atomic_wr(wr)->remote_addr;
		wqe->rkey = atomic_wr(wr)->rkey;
		wqe->compare_add = atomic_wr(wr)->compare_add;
		wqe->swap = atomic_wr(wr)->swap;
	}
}

static int push_send(struct medge_qp *qp, const struct ib_send_wr *wr, u32 prod)
{
	const struct wr_kind *kind = find_kind(wr);
	struct medge_send_wqe *wqe;

	if (!kind)
		return -EOPNOTSUPP;
	if (medge_qp_is_ud(qp) && kind->operands & (HAS_TARGET | IS_ATOMIC))
		return -EINVAL;
	if (wr->num_sge < 0 || wr->num_sge > qp->max_sge)
		return -EINVAL;
	wqe = reserve(&qp->sq, prod);
	if (!wqe)
		return -ENOMEM;

	*wqe = (struct medge_send_wqe) {
		.wr_id = wr->wr_id,
		.opcode = kind->wqe,
		.flags = wqe_flags(wr->send_flags),
	};
	put_operands(wqe, wr, kind->operands, medge_qp_is_ud(qp));
	if (wr->send_flags & IB_SEND_INLINE)
		return put_inline(qp, wqe, wr);
	wqe->num_sge = wr->num_sge;
	put_sges((struct medge_sge *)(wqe + 1), wr->sg_list, wr->num_sge);
	return 0;
}

static bool may_send(const struct medge_qp *qp)
{
	switch (READ_ONCE(qp->state)) {
	case IB_QPS_RTS:
	case IB_QPS_SQD:
	case IB_QPS_SQE:
	case IB_QPS_ERR:
		return true;
	default:
		return false;
	}
}

/* All of the list, or all before the first that cannot be posted. */
static int post_send(struct medge_qp *qp, const struct ib_send_wr *wr,
		     const struct ib_send_wr **bad)
{
	const struct ib_send_wr *first = wr;
	unsigned long irq;
	int err = 0;
	u32 prod;

	spin_lock_irqsave(&qp->kpost.sq_lock, irq);
	if (!may_send(qp))
		err = -EINVAL;
	prod = qp->sq.hdr ? qp->sq.hdr->prod : 0;
	for (; wr && !err; wr = wr->next) {
		err = push_send(qp, wr, prod);
		if (err)
			break;
		prod++;
	}
	if (err)
		*bad = wr;
	if (wr != first)
		/* The entries are there before it is known that they are. */
		smp_store_release(&qp->sq.hdr->prod, prod);
	spin_unlock_irqrestore(&qp->kpost.sq_lock, irq);

	if (wr != first)
		ring_bell(qp, &qp->sq);
	return err;
}

int medge_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		    const struct ib_send_wr **bad)
{
	struct medge_qp *qp = to_medge_qp(ibqp);

	if (qp->kpost.kernel)
		return post_send(qp, wr, bad);
	if (wr) {
		*bad = wr;
		return -EOPNOTSUPP;
	}
	if (medge_qp_hold(qp)) {
		medge_doorbell_rung(qp);
		medge_qp_put(qp);
	}
	return 0;
}

/* ---- receives ---- */

static int push_recv(const struct medge_ring *ring, u32 max_sge,
		     const struct ib_recv_wr *wr, u32 prod)
{
	struct medge_recv_wqe *wqe;

	if (wr->num_sge < 0 || wr->num_sge > max_sge)
		return -EINVAL;
	wqe = reserve(ring, prod);
	if (!wqe)
		return -ENOMEM;
	*wqe = (struct medge_recv_wqe) {
		.wr_id = wr->wr_id,
		.num_sge = wr->num_sge,
	};
	put_sges((struct medge_sge *)(wqe + 1), wr->sg_list, wr->num_sge);
	return 0;
}

int medge_kpost_recvs(struct medge_ring *ring, u32 max_sge,
		      const struct ib_recv_wr **next)
{
	const struct ib_recv_wr *first = *next, *wr = first;
	u32 prod = ring->hdr ? ring->hdr->prod : 0;
	int err = 0;

	for (; wr; wr = wr->next) {
		err = push_recv(ring, max_sge, wr, prod);
		if (err)
			break;
		prod++;
	}
	if (wr != first)
		/* The entries are there before it is known that they are. */
		smp_store_release(&ring->hdr->prod, prod);
	*next = wr;
	return err;
}

static int post_recv(struct medge_qp *qp, const struct ib_recv_wr *wr,
		     const struct ib_recv_wr **bad)
{
	const struct ib_recv_wr *first = wr;
	unsigned long irq;
	int err = -EINVAL;

	spin_lock_irqsave(&qp->kpost.rq_lock, irq);
	if (READ_ONCE(qp->state) != IB_QPS_RESET)
		err = medge_kpost_recvs(&qp->rq, qp->max_recv_sge, &wr);
	if (err)
		*bad = wr;
	spin_unlock_irqrestore(&qp->kpost.rq_lock, irq);

	if (wr != first)
		ring_bell(qp, &qp->rq);
	return err;
}

int medge_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		    const struct ib_recv_wr **bad)
{
	struct medge_qp *qp = to_medge_qp(ibqp);

	if (qp->kpost.kernel)
		return post_recv(qp, wr, bad);
	if (wr) {
		*bad = wr;
		return -EOPNOTSUPP;
	}
	medge_recv_doorbell(qp);
	return 0;
}
