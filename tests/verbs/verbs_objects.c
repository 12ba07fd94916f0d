/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What verbs promise of their objects beside moving bytes: CQs that change,
 * SRQs that run low, targets of XRC that another has made, users that are others
 * than opened the device, windows and regions that depend on each other, what a
 * datagram says of where it comes from, limits.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "verbs_check.h"

enum { BUF = 65536, SENDS = 10 };

static struct side A, B;
static uint8_t *abuf, *bbuf;
static struct ibv_mr *amr, *bmr;

static void post_recv(struct end *end, struct ibv_mr *mr, uint64_t wr_id)
{
	struct ibv_sge sge = { (uintptr_t)mr->addr, 64, mr->lkey };
	struct ibv_recv_wr *bad, wr = {
		.wr_id = wr_id, .sg_list = &sge, .num_sge = 1,
	};

	check(!ibv_post_recv(end->qp, &wr, &bad), "a receive was refused");
}

static void post_srq(struct ibv_srq *srq, struct ibv_mr *mr, uint64_t wr_id)
{
	struct ibv_sge sge = { (uintptr_t)mr->addr, 64, mr->lkey };
	struct ibv_recv_wr *bad, wr = {
		.wr_id = wr_id, .sg_list = &sge, .num_sge = 1,
	};

	check(!ibv_post_srq_recv(srq, &wr, &bad), "SRQ: a receive was refused");
}

static void post_send(struct end *end, struct ibv_mr *mr, uint64_t wr_id)
{
	struct ibv_sge sge = { (uintptr_t)mr->addr, 16, mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.wr_id = wr_id, .sg_list = &sge, .num_sge = 1,
		.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED,
	};

	check(!ibv_post_send(end->qp, &wr, &bad), "a send was refused");
}

static void must_complete(struct ibv_cq *cq, uint64_t wr_id,
			  enum ibv_wc_status status)
{
	struct ibv_wc wc;

	check(wait_wc(cq, &wc, PATIENCE_MS), "no completion of %llu",
	      (unsigned long long)wr_id);
	check(wc.wr_id == wr_id, "completion of %llu instead of %llu",
	      (unsigned long long)wc.wr_id, (unsigned long long)wr_id);
	check(wc.status == status, "%llu: %s instead of %s",
	      (unsigned long long)wr_id, ibv_wc_status_str(wc.status),
	      ibv_wc_status_str(status));
}

static void must_happen(struct side *side, enum ibv_event_type want)
{
	struct pollfd fd = { .fd = side->ctx->async_fd, .events = POLLIN };
	struct ibv_async_event event;

	do {
		check(poll(&fd, 1, PATIENCE_MS) == 1, "no event %s",
		      ibv_event_type_str(want));
		check(!ibv_get_async_event(side->ctx, &event), "no event");
		ibv_ack_async_event(&event);
	} while (event.event_type != want);
}

/* ---- CQs ---- */

static void resized_cq_keeps_what_is_in_it(void)
{
	struct pair p;
	int i;

	pair_create(&p, &A, &B, &(struct pair_options){ .cqe = 64 });
	for (i = 0; i < SENDS; i++)
		post_recv(&p.b, bmr, i);
	for (i = 0; i < SENDS; i++)
		post_send(&p.a, amr, i);
	/* The last receive is there, so all sends before it are, or will be soon. */
	for (i = 0; i < SENDS; i++)
		must_complete(p.b.rcq, i, IBV_WC_SUCCESS);
	must_complete(p.a.scq, 0, IBV_WC_SUCCESS);
	check(!ibv_resize_cq(p.a.scq, 5000), "CQ not resized");
	check(p.a.scq->cqe >= 5000, "%d entries", p.a.scq->cqe);
	for (i = 1; i < SENDS; i++)
		must_complete(p.a.scq, i, IBV_WC_SUCCESS);
	check(!ibv_resize_cq(p.a.scq, 16), "CQ not made smaller");
	for (i = 0; i < 40; i++) {
		post_recv(&p.b, bmr, i);
		post_send(&p.a, amr, i);
		must_complete(p.a.scq, i, IBV_WC_SUCCESS);
		must_complete(p.b.rcq, i, IBV_WC_SUCCESS);
	}
	pair_destroy(&p);
}

static void moderated_cq_waits_for_more(void)
{
	enum { PERIOD_MS = 60 };
	struct ibv_modify_cq_attr attr = {
		.attr_mask = IBV_CQ_ATTR_MODERATE,
		.moderate = { .cq_count = 100, .cq_period = PERIOD_MS * 1000 },
	};
	struct ibv_cq *cq;
	struct pair p;
	uint64_t began;
	void *ctx;

	pair_create(&p, &A, &B, &(struct pair_options){ .events = true });
	check(!ibv_modify_cq(p.b.rcq, &attr), "CQ cannot be moderated");
	check(!ibv_req_notify_cq(p.b.rcq, 0), "CQ cannot be armed");
	post_recv(&p.b, bmr, 1);
	began = now_ms();
	post_send(&p.a, amr, 1);
	check(!ibv_get_cq_event(p.b.channel, &cq, &ctx), "no event");
	check(now_ms() - began >= PERIOD_MS / 2, "the event came after %d ms",
	      (int)(now_ms() - began));
	ibv_ack_cq_events(cq, 1);
	must_complete(p.b.rcq, 1, IBV_WC_SUCCESS);
	pair_destroy(&p);
}

static void reset_takes_completions_along(void)
{
	struct ibv_wc wc;
	struct pair p;

	pair_create(&p, &A, &B, &(struct pair_options){});
	post_recv(&p.b, bmr, 1);
	post_recv(&p.b, bmr, 2);
	check(!end_to_state(&p.b, IBV_QPS_ERR), "not to ERR");
	must_complete(p.b.rcq, 1, IBV_WC_WR_FLUSH_ERR);
	check(!end_to_state(&p.b, IBV_QPS_RESET), "not to RESET");
	check(!ibv_poll_cq(p.b.rcq, 1, &wc), "a completion of before the reset");
	pair_destroy(&p);
}

/* ---- SRQs ---- */

static struct ibv_srq *srq;

static struct ibv_qp *with_srq(struct side *side, struct ibv_qp_init_attr *init)
{
	if (side == &B)
		init->srq = srq;
	return ibv_create_qp(side->pd, init);
}

static void srq_tells_when_it_runs_low(void)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 16, .max_sge = 1 } };
	struct ibv_srq_attr attr = { .srq_limit = 8 };
	struct pair p;
	int i;

	srq = ibv_create_srq(B.pd, &init);
	check(srq, "no SRQ: %s", strerror(errno));
	pair_create(&p, &A, &B, &(struct pair_options){ .create_qp = with_srq });
	for (i = 0; i < 16; i++)
		post_srq(srq, bmr, i);
	check(!ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), "no limit");
	for (i = 0; i < 9; i++) {
		post_send(&p.a, amr, i);
		must_complete(p.b.rcq, i, IBV_WC_SUCCESS);
		must_complete(p.a.scq, i, IBV_WC_SUCCESS);
	}
	must_happen(&B, IBV_EVENT_SRQ_LIMIT_REACHED);
	check(!ibv_query_srq(srq, &attr) && !attr.srq_limit, "still armed");

	/* An empty one makes the sender wait, and a receive lets it go on. */
	for (; i < 17; i++)
		post_send(&p.a, amr, i);
	for (i = 9; i < 16; i++)
		must_complete(p.b.rcq, i, IBV_WC_SUCCESS);
	post_srq(srq, bmr, 16);
	must_complete(p.b.rcq, 16, IBV_WC_SUCCESS);

	check(!end_to_state(&p.b, IBV_QPS_ERR), "not to ERR");
	must_happen(&B, IBV_EVENT_QP_LAST_WQE_REACHED);
	pair_destroy(&p);
	check(!ibv_destroy_srq(srq), "SRQ not destroyed");
}

/* What is posted stays, and more has room. */
static void srq_is_resized(void)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_srq_attr attr = { .max_wr = 64 };
	struct pair p;
	int i;

	srq = ibv_create_srq(B.pd, &init);
	check(srq, "no SRQ: %s", strerror(errno));
	pair_create(&p, &A, &B, &(struct pair_options){ .create_qp = with_srq });
	/* So that the indices have wrapped. */
	for (i = 0; i < 6; i++) {
		post_srq(srq, bmr, i);
		post_send(&p.a, amr, i);
		must_complete(p.b.rcq, i, IBV_WC_SUCCESS);
		must_complete(p.a.scq, i, IBV_WC_SUCCESS);
	}
	for (; i < 10; i++)
		post_srq(srq, bmr, i);
	check(!ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), "not resized: %s",
	      strerror(errno));
	check(!ibv_query_srq(srq, &attr) && attr.max_wr >= 64, "not of 64");
	for (; i < 6 + 64; i++)
		post_srq(srq, bmr, i);
	attr.max_wr = 8;
	check(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR),
	      "64 receives in a queue of 8");
	for (i = 6; i < 6 + 64; i++) {
		post_send(&p.a, amr, i);
		must_complete(p.b.rcq, i, IBV_WC_SUCCESS);
		must_complete(p.a.scq, i, IBV_WC_SUCCESS);
	}
	/* A sender that waits is not forgotten. */
	post_send(&p.a, amr, i);
	check(!ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), "not made smaller");
	post_srq(srq, bmr, i);
	must_complete(p.b.rcq, i, IBV_WC_SUCCESS);
	must_complete(p.a.scq, i, IBV_WC_SUCCESS);
	pair_destroy(&p);
	check(!ibv_destroy_srq(srq), "SRQ not destroyed");
}

/* ---- XRC ---- */

/* It goes when the last who has it lets go of it. */
static void target_is_opened_by_number(void)
{
	struct ibv_xrcd *xrcd = xrcd_open(&B);
	struct ibv_qp_init_attr_ex target = {
		.qp_type = IBV_QPT_XRC_RECV,
		.comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = xrcd,
	};
	struct ibv_qp_open_attr open = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
			     IBV_QP_OPEN_ATTR_TYPE,
		.xrcd = xrcd, .qp_type = IBV_QPT_XRC_RECV,
	};
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1,
	};
	struct ibv_recv_wr *bad, wr = {};
	struct ibv_qp *made, *opened;

	check(xrcd, "no XRC domain: %s", strerror(errno));
	made = ibv_create_qp_ex(B.ctx, &target);
	check(made, "no target: %s", strerror(errno));
	open.qp_num = made->qp_num;
	opened = ibv_open_qp(B.ctx, &open);
	check(opened, "not opened: %s", strerror(errno));
	check(!ibv_modify_qp(opened, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
			     IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), "no INIT");
	check(ibv_post_recv(opened, &wr, &bad), "a receive in no queue");
	attr.qp_state = IBV_QPS_RESET;
	check(!ibv_modify_qp(opened, &attr, IBV_QP_STATE), "no RESET");
	check(!ibv_destroy_qp(made), "the target stays with its maker");
	check(!ibv_destroy_qp(opened), "the target stays");
	check(!ibv_close_xrcd(xrcd), "the XRC domain stays");
}

/* ---- users ---- */

/* glibc's own call would change all threads; the kernel's changes this one. */
static void *post_as_nobody(void *arg)
{
	enum { NOBODY = 65534 };
	struct pair *p = arg;
	int i;

	check(!syscall(SYS_setresuid, -1, NOBODY, -1), "still root: %s",
	      strerror(errno));
	for (i = 0; i < SENDS; i++) {
		/* A sender that waits wants to be told of a receive. */
		post_send(&p->a, amr, i);
		if (p->b.qp->srq)
			post_srq(p->b.qp->srq, bmr, i);
		else
			post_recv(&p->b, bmr, i);
		must_complete(p->b.rcq, i, IBV_WC_SUCCESS);
		must_complete(p->a.scq, i, IBV_WC_SUCCESS);
	}
	return NULL;
}

static void another_user_posts(void)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 16, .max_sge = 1 } };
	pthread_t thread;
	struct pair p;

	pair_create(&p, &A, &B, &(struct pair_options){});
	check(!pthread_create(&thread, NULL, post_as_nobody, &p) &&
	      !pthread_join(thread, NULL), "no thread");
	pair_destroy(&p);

	srq = ibv_create_srq(B.pd, &init);
	check(srq, "no SRQ: %s", strerror(errno));
	pair_create(&p, &A, &B, &(struct pair_options){ .create_qp = with_srq });
	check(!pthread_create(&thread, NULL, post_as_nobody, &p) &&
	      !pthread_join(thread, NULL), "no thread");
	pair_destroy(&p);
	check(!ibv_destroy_srq(srq), "SRQ not destroyed");
}

/* ---- the state SQD ---- */

/* What is begun ends; what is posted then waits until the queue goes on. */
static void sq_is_drained(void)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1,
	};
	struct ibv_qp_init_attr init;
	struct ibv_wc wc;
	struct pair p;
	int i;

	pair_create(&p, &A, &B, &(struct pair_options){});
	/* Nobody receives, so it cannot end. */
	post_send(&p.a, amr, 0);
	check(!ibv_modify_qp(p.a.qp, &attr,
			     IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY),
	      "not to SQD: %s", strerror(errno));
	check(!ibv_query_qp(p.a.qp, &attr, IBV_QP_STATE, &init) &&
	      attr.qp_state == IBV_QPS_SQD && attr.sq_draining, "drained");
	post_send(&p.a, amr, 1);
	for (i = 0; i < 2; i++)
		post_recv(&p.b, bmr, i);
	must_complete(p.a.scq, 0, IBV_WC_SUCCESS);
	must_happen(&A, IBV_EVENT_SQ_DRAINED);
	check(!ibv_query_qp(p.a.qp, &attr, IBV_QP_STATE, &init) &&
	      !attr.sq_draining, "not drained");
	usleep(20000);
	check(!ibv_poll_cq(p.a.scq, 1, &wc), "sent in SQD");
	attr.qp_state = IBV_QPS_RTS;
	attr.cur_qp_state = IBV_QPS_SQD;
	check(!ibv_modify_qp(p.a.qp, &attr, IBV_QP_STATE | IBV_QP_CUR_STATE),
	      "not to RTS: %s", strerror(errno));
	must_complete(p.a.scq, 1, IBV_WC_SUCCESS);
	for (i = 0; i < 2; i++)
		must_complete(p.b.rcq, i, IBV_WC_SUCCESS);
	pair_destroy(&p);
}

/* ---- windows and regions ---- */

static void bind(struct end *end, struct ibv_mw *mw, uint32_t rkey,
		 struct ibv_mr *mr, enum ibv_wc_status want)
{
	struct ibv_send_wr *bad, wr = {
		.wr_id = 77, .opcode = IBV_WR_BIND_MW,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_mw = {
			.mw = mw, .rkey = rkey,
			.bind_info = { mr, (uintptr_t)mr->addr, 4096,
				       IBV_ACCESS_REMOTE_READ },
		},
	};

	check(!ibv_post_send(end->qp, &wr, &bad), "a bind was refused");
	must_complete(end->scq, 77, want);
}

static void window_holds_its_region(void)
{
	struct ibv_mr *mr, *plain;
	struct ibv_mw *mw;
	struct pair p;

	mr = must_reg(&B, bbuf, BUF, FULL_ACCESS | IBV_ACCESS_MW_BIND);
	plain = must_reg(&B, bbuf, BUF, FULL_ACCESS);
	mw = ibv_alloc_mw(B.pd, IBV_MW_TYPE_2);
	check(mw, "no window: %s", strerror(errno));
	pair_create(&p, &A, &B, &(struct pair_options){});
	bind(&p.b, mw, ibv_inc_rkey(mw->rkey), mr, IBV_WC_SUCCESS);
	check(ibv_dereg_mr(mr) == EBUSY, "a region with a window went");
	/* It is bound already. */
	bind(&p.b, mw, ibv_inc_rkey(ibv_inc_rkey(mw->rkey)), mr,
	     IBV_WC_MW_BIND_ERR);
	pair_destroy(&p);
	check(!ibv_dealloc_mw(mw), "the window stays");
	check(!ibv_dereg_mr(mr), "a region without a window stays");

	mw = ibv_alloc_mw(B.pd, IBV_MW_TYPE_2);
	check(mw, "no window: %s", strerror(errno));
	pair_create(&p, &A, &B, &(struct pair_options){});
	bind(&p.b, mw, ibv_inc_rkey(mw->rkey), plain, IBV_WC_MW_BIND_ERR);
	pair_destroy(&p);
	check(!ibv_dealloc_mw(mw) && !ibv_dereg_mr(plain), "something stays");
}

static void region_keeps_its_key(void)
{
	struct ibv_mr *mr = must_reg(&B, bbuf, BUF, FULL_ACCESS);
	uint32_t lkey = mr->lkey, rkey = mr->rkey;
	uint8_t *other = alloc_pages(BUF);
	struct ibv_sge sge = { (uintptr_t)abuf, 64, amr->lkey };
	struct ibv_send_wr *bad, wr = {
		.wr_id = 5, .sg_list = &sge, .num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { (uintptr_t)other, rkey },
	};
	struct pair p;

	pair_create(&p, &A, &B, &(struct pair_options){});
	check(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, B.pd, other, BUF,
			    0), "not moved");
	check(mr->lkey == lkey && mr->rkey == rkey, "the keys are others");
	memset(abuf, 0x5a, 64);
	memset(other, 0, 64);
	check(!ibv_post_send(p.a.qp, &wr, &bad), "a write was refused");
	must_complete(p.a.scq, 5, IBV_WC_SUCCESS);
	check(!memcmp(other, abuf, 64), "the bytes are elsewhere");

	/* Rights are taken away, not only given. */
	check(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, B.pd, NULL, 0,
			    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ),
	      "rights not changed");
	check(!ibv_post_send(p.a.qp, &wr, &bad), "a write was refused");
	must_complete(p.a.scq, 5, IBV_WC_REM_ACCESS_ERR);
	pair_destroy(&p);
	check(!ibv_dereg_mr(mr), "the region stays");
	munmap(other, BUF);
}

/* ---- limits ---- */

/* ---- datagrams ---- */

enum { QKEY = 0x1234, HEADER = 40, DATAGRAMS = 16 };

static void ud_create(struct end *end, struct side *side)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_UD,
		.cap = { .max_send_wr = DATAGRAMS, .max_recv_wr = DATAGRAMS,
			 .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1,
				    .qkey = QKEY };

	*end = (struct end){ .side = side };
	end->rcq = end->scq = ibv_create_cq(side->ctx, DATAGRAMS, NULL, NULL, 0);
	init.send_cq = init.recv_cq = end->scq;
	end->qp = ibv_create_qp(side->pd, &init);
	check(end->qp, "no UD QP: %s", strerror(errno));
	check(!ibv_modify_qp(end->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
			     IBV_QP_PORT | IBV_QP_QKEY), "no INIT");
	attr.qp_state = IBV_QPS_RTR;
	check(!ibv_modify_qp(end->qp, &attr, IBV_QP_STATE), "no RTR");
	attr.qp_state = IBV_QPS_RTS;
	check(!ibv_modify_qp(end->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN),
	      "no RTS");
}

static void ud_destroy(struct end *end)
{
	check(!ibv_destroy_qp(end->qp) && !ibv_destroy_cq(end->scq),
	      "something stays");
}

static struct ibv_wc ud_receive(struct end *to, struct end *from,
				struct ibv_mr *mr, struct ibv_ah *ah)
{
	struct ibv_sge sge = { (uintptr_t)mr->addr, 16, mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
		.wr.ud = { ah, to->qp->qp_num, QKEY },
	};
	struct ibv_wc wc;

	check(ah, "no AH: %s", strerror(errno));
	check(!ibv_post_send(from->qp, &wr, &bad), "a datagram was refused");
	check(wait_wc(to->rcq, &wc, PATIENCE_MS), "no datagram");
	check(!wc.status && wc.opcode == IBV_WC_RECV &&
	      wc.byte_len == HEADER + 16 && wc.src_qp == from->qp->qp_num,
	      "%s, opcode %u, %u bytes", ibv_wc_status_str(wc.status), wc.opcode,
	      wc.byte_len);
	check(!ibv_destroy_ah(ah), "an AH stays");
	return wc;
}

/* The last 20 of its bytes are an IPv4 header, or all 40 an IPv6 one (IBTA A17.4.5.1). */
static void header_is_of(const uint8_t *header, const struct ibv_wc *wc,
			 const union ibv_gid *from, const union ibv_gid *to)
{
	static const uint8_t mapped[12] = { [10] = 0xff, 0xff };
	const uint8_t *ip = header + HEADER - 20;

	check(wc->wc_flags & IBV_WC_GRH, "no header");
	if (!memcmp(to->raw, mapped, sizeof(mapped))) {
		check(wc->sl == 10, "IPv4 is told as %u", wc->sl);
		check(ip[0] == 0x45 && !memcmp(ip + 12, from->raw + 12, 4) &&
		      !memcmp(ip + 16, to->raw + 12, 4), "not from IPv4 to IPv4");
	} else {
		check(wc->sl == 9, "IPv6 is told as %u", wc->sl);
		check(header[0] >> 4 == 6 && !memcmp(header + 8, from->raw, 16) &&
		      !memcmp(header + 24, to->raw, 16), "not from IPv6 to IPv6");
	}
}

static void datagram_tells_its_header(void)
{
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1 };
	union ibv_gid a_gid, b_gid;
	struct end a, b;
	struct ibv_wc wc;
	int i, n = 0;

	ud_create(&a, &A);
	ud_create(&b, &B);
	for (i = 0; i < A.port.gid_tbl_len && i < B.port.gid_tbl_len; i++) {
		if (ibv_query_gid(A.ctx, 1, i, &a_gid) || !a_gid.global.interface_id ||
		    ibv_query_gid(B.ctx, 1, i, &b_gid) || !b_gid.global.interface_id)
			continue;
		attr.grh.dgid = b_gid;
		attr.grh.sgid_index = i;
		attr.grh.hop_limit = 64;
		post_recv(&b, bmr, i);
		wc = ud_receive(&b, &a, amr, ibv_create_ah(A.pd, &attr));
		header_is_of(bbuf, &wc, &a_gid, &b_gid);
		/* And who has it can answer. */
		post_recv(&a, amr, i);
		wc = ud_receive(&a, &b, bmr, ibv_create_ah_from_wc(
				B.pd, &wc, (struct ibv_grh *)bbuf, 1));
		header_is_of(abuf, &wc, &b_gid, &a_gid);
		n++;
	}
	check(n >= 2, "only %d addresses", n);
	ud_destroy(&a);
	ud_destroy(&b);
}

/* What is posted need not have been told of; the handle is as good as copied by then. */
static void address_goes_after_posts(void)
{
	struct ibv_ah_attr attr = {
		.is_global = 1, .port_num = 1,
		.grh = { .dgid = B.gid, .sgid_index = A.gid_index,
			 .hop_limit = 64 },
	};
	struct ibv_sge sge = { (uintptr_t)amr->addr, 16, amr->lkey };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
	};
	struct end a, b;
	struct ibv_wc wc;
	int i, round;

	ud_create(&a, &A);
	ud_create(&b, &B);
	for (round = 0; round < 50; round++) {
		wr.wr.ud.ah = ibv_create_ah(A.pd, &attr);
		check(wr.wr.ud.ah, "no AH: %s", strerror(errno));
		wr.wr.ud.remote_qpn = b.qp->qp_num;
		wr.wr.ud.remote_qkey = QKEY;
		for (i = 0; i < DATAGRAMS; i++)
			post_recv(&b, bmr, i);
		for (i = 0; i < DATAGRAMS; i++) {
			/* One, so that there is room in the next round. */
			wr.send_flags = i == DATAGRAMS - 1 ?
						IBV_SEND_SIGNALED : 0;
			check(!ibv_post_send(a.qp, &wr, &bad),
			      "datagram %d was refused", i);
		}
		check(!ibv_destroy_ah(wr.wr.ud.ah), "an AH stays");
		check(wait_wc(a.scq, &wc, PATIENCE_MS) && !wc.status,
		      "round %d: not sent", round);
		for (i = 0; i < DATAGRAMS; i++)
			check(wait_wc(b.rcq, &wc, PATIENCE_MS) && !wc.status,
			      "round %d: datagram %d does not come", round, i);
	}
	ud_destroy(&a);
	ud_destroy(&b);
}

static void limits_are_as_told(void)
{
	struct ibv_cq *cq = ibv_create_cq(A.ctx, 1 << 22, NULL, NULL, 0);
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 16384, .max_recv_wr = 16384,
			 .max_send_sge = 1, .max_recv_sge = 1,
			 .max_inline_data = 512 },
	};
	struct ibv_qp *qp;

	check(cq, "no CQ of 4 Mi entries: %s", strerror(errno));
	init.send_cq = init.recv_cq = cq;
	qp = ibv_create_qp(A.pd, &init);
	check(qp, "no QP of 16 Ki WQEs: %s", strerror(errno));
	check(init.cap.max_inline_data >= 512, "inline %u",
	      init.cap.max_inline_data);
	check(A.attr.max_qp >= 65536, "%d QPs", A.attr.max_qp);
	check(A.port.max_msg_sz >= 1u << 31, "messages of %u", A.port.max_msg_sz);
	check(!ibv_destroy_qp(qp) && !ibv_destroy_cq(cq), "something stays");
}

int main(void)
{
	static const struct { const char *name; void (*fn)(void); } tests[] = {
#define TEST(fn) { #fn, fn }
		TEST(resized_cq_keeps_what_is_in_it),
		TEST(moderated_cq_waits_for_more),
		TEST(reset_takes_completions_along),
		TEST(srq_tells_when_it_runs_low),
		TEST(srq_is_resized),
		TEST(target_is_opened_by_number),
		TEST(another_user_posts),
		TEST(sq_is_drained),
		TEST(window_holds_its_region),
		TEST(region_keeps_its_key),
		TEST(datagram_tells_its_header),
		TEST(address_goes_after_posts),
		TEST(limits_are_as_told),
	};
	size_t i;

	side_open_both(&A, &B);
	abuf = alloc_pages(BUF);
	bbuf = alloc_pages(BUF);
	amr = must_reg(&A, abuf, BUF, FULL_ACCESS);
	bmr = must_reg(&B, bbuf, BUF, FULL_ACCESS);
	for (i = 0; i < ARRAY_LEN(tests); i++) {
		printf("%s\n", tests[i].name);
		fflush(stdout);
		tests[i].fn();
	}
	check(!ibv_dereg_mr(amr) && !ibv_dereg_mr(bmr), "a region stays");
	side_close(&A);
	side_close(&B);
	printf("all passed\n");
	return 0;
}
