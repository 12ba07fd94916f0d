/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Of verbs_errors: states, events and threads */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "errors.h"

/* --- states --------------------------------------------------------------------- */

static void state_machine(void)
{
	struct pair_options opt = {};
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct pair p;

	check_ret(end_create(&p.a, &A, &opt), 0);
	check_ret(end_create(&p.b, &B, &opt), 0);
	check(state_of(&p.a) == IBV_QPS_RESET, "not in RESET at first");
	check_ret(end_to_rtr(&p.a, &p.b, &opt), EINVAL);
	check_ret(end_to_rts(&p.a, &opt), EINVAL);
	check(state_of(&p.a) == IBV_QPS_RESET, "a refused change was made");

	check_ret(ibv_modify_qp(p.a.qp, &attr, IBV_QP_STATE | IBV_QP_PORT),
		  EINVAL);
	attr.port_num = 2;
	check(ibv_modify_qp(p.a.qp, &attr,
			    IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX |
				    IBV_QP_ACCESS_FLAGS), "port 2");
	attr.port_num = 1;
	attr.pkey_index = 1000;
	check(ibv_modify_qp(p.a.qp, &attr,
			    IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX |
				    IBV_QP_ACCESS_FLAGS) ||
		      type_is("rxe"), "P_Key index 1000");
	if (state_of(&p.a) != IBV_QPS_RESET)
		check_ret(end_to_state(&p.a, IBV_QPS_RESET), 0);

	check_ret(end_to_init(&p.a, &opt), 0);
	check_ret(end_to_init(&p.a, &opt), 0);		/* INIT to INIT is */
	check_ret(end_to_rts(&p.a, &opt), EINVAL);
	A.gid_index += 1000;
	check(end_to_rtr(&p.a, &p.b, &opt), "a GID index that is not there");
	A.gid_index -= 1000;
	opt.path_mtu = 200;
	check(end_to_rtr(&p.a, &p.b, &opt), "path MTU 200");
	opt.path_mtu = 0;
	if (!type_is("rxe")) {
		p.b.qp->qp_num |= 1u << 24;
		check_ret(end_to_rtr(&p.a, &p.b, &opt), EINVAL);
		p.b.qp->qp_num &= ~(1u << 24);
	}
	check(state_of(&p.a) == IBV_QPS_INIT, "a refused change was made");
	check_ret(end_to_rtr(&p.a, &p.b, &opt), 0);
	check_ret(end_to_init(&p.a, &opt), EINVAL);
	check_ret(end_to_rts(&p.a, &opt), 0);
	check_ret(end_to_rtr(&p.a, &p.b, &opt), EINVAL);
	check_ret(end_to_state(&p.a, IBV_QPS_ERR), 0);
	check_ret(end_to_init(&p.a, &opt), EINVAL);
	check_ret(end_to_state(&p.a, IBV_QPS_ERR), 0);
	check_ret(end_to_state(&p.a, IBV_QPS_RESET), 0);
	check_ret(end_to_state(&p.a, IBV_QPS_RESET), 0);
	pair_destroy(&p);
}

/* A QP that was used, with requests of all kinds in it, works after RESET. */
static void reset_and_use_again(void)
{
	struct pair_options opt = {};
	struct ibv_wc wc;
	struct pair p;
	int i, round;

	make(&p, &opt);
	for (round = 0; round < 5; round++) {
		check_works(&p);
		for (i = 0; i < 10; i++) {
			check_ret(post(&p.a, mk(i, IBV_WR_SEND, 100), NULL), 0);
			check_ret(post_recv_at(&p.a, i, abuf, 8, amr->lkey), 0);
		}
		if (round % 2)
			check_ret(end_to_state(&p.a, IBV_QPS_ERR), 0);
		check_ret(end_to_state(&p.a, IBV_QPS_RESET), 0);
		check_ret(end_to_state(&p.b, IBV_QPS_RESET), 0);
		while (ibv_poll_cq(p.a.scq, 1, &wc) ||
		       ibv_poll_cq(p.a.rcq, 1, &wc))
			;
		p.a.psn = p.b.psn += 1000;
		pair_connect(&p, &opt);
		expect_none(p.a.scq, 10, __LINE__);
	}
	check_works(&p);
	pair_destroy(&p);
}

static void query_what_was_set(void)
{
	struct pair_options opt = {
		.timeout = 15, .retry_cnt = 5, .rnr_retry = 4,
		.min_rnr_timer = 17, .send_wr = 33, .recv_wr = 44,
		.send_sge = 3, .recv_sge = 2, .inline_data = 40,
	};
	struct ibv_qp_init_attr init = {};
	struct ibv_qp_attr attr = {};
	struct pair p;

	make(&p, &opt);
	check_ret(ibv_query_qp(p.a.qp, &attr, 0x1fffff, &init), 0);
#define same(what, want)                                                       \
	check((uint64_t)(what) == (uint64_t)(want), "%s is %#llx instead of %#llx", \
	      #what, (unsigned long long)(what), (unsigned long long)(want))
	same(attr.qp_state, IBV_QPS_RTS);
	same(attr.path_mtu, A.port.active_mtu);
	same(attr.dest_qp_num, p.b.qp->qp_num);
	same(attr.rq_psn & 0xffffff, p.b.psn & 0xffffff);
	if (!type_is("rxe"))		/* tells the next one */
		same(attr.sq_psn & 0xffffff, p.a.psn & 0xffffff);
	same(attr.qp_access_flags & FULL_ACCESS, FULL_ACCESS);
	same(attr.timeout, 15);
	same(attr.retry_cnt, 5);
	same(attr.rnr_retry, 4);
	same(attr.min_rnr_timer, 17);
	same(attr.port_num, 1);
	same(attr.pkey_index, 0);
	same(attr.max_rd_atomic, 16 < A.attr.max_qp_init_rd_atom ?
					 16 : A.attr.max_qp_init_rd_atom);
	same(attr.max_dest_rd_atomic, 16 < A.attr.max_qp_rd_atom ?
					      16 : A.attr.max_qp_rd_atom);
	same(attr.ah_attr.is_global, 1);
	same(attr.ah_attr.grh.sgid_index, A.gid_index);
	same(memcmp(&attr.ah_attr.grh.dgid, &B.gid, 16), 0);
	same(attr.cap.max_send_wr, p.a.cap.max_send_wr);
	same(attr.cap.max_recv_wr, p.a.cap.max_recv_wr);
	same(attr.cap.max_send_sge, p.a.cap.max_send_sge);
	same(attr.cap.max_recv_sge, p.a.cap.max_recv_sge);
	same(attr.cap.max_inline_data, p.a.cap.max_inline_data);
	check(p.a.cap.max_send_wr >= 33 && p.a.cap.max_recv_wr >= 44 &&
	      p.a.cap.max_send_sge >= 3 && p.a.cap.max_recv_sge >= 2 &&
	      p.a.cap.max_inline_data >= 40, "less than was asked for");
	same(init.qp_type, IBV_QPT_RC);
	pair_destroy(&p);
}

/* --- events ------------------------------------------------------------------------ */

static bool event_within(struct end *end, int ms)
{
	struct pollfd fd = { .fd = end->channel->fd, .events = POLLIN };

	return poll(&fd, 1, ms) == 1;
}

static void take_event(struct end *end, struct ibv_cq *want)
{
	struct ibv_cq *cq;
	void *context;

	check_ret(ibv_get_cq_event(end->channel, &cq, &context), 0);
	check(cq == want, "an event of another CQ");
	ibv_ack_cq_events(cq, 1);
}

static void send_one(struct pair *p, int i, int flags)
{
	mk(i, IBV_WR_SEND, 8)->send_flags |= flags;
	check_ret(post(&p->a, &wrs[i], NULL), 0);
	expect_wc(p->a.scq, i, IBV_WC_SUCCESS);
}

static void cq_events(void)
{
	struct pair_options opt = { .events = true };
	struct pair p;
	int i;

	make(&p, &opt);
	for (i = 0; i < 20; i++)
		post_recv(&p.b, i, 8);

	send_one(&p, 0, IBV_SEND_SOLICITED);
	check(!event_within(&p.b, 50), "an event of a CQ that is not armed");
	expect_wc(p.b.rcq, 0, IBV_WC_SUCCESS);

	check_ret(ibv_req_notify_cq(p.b.rcq, 0), 0);
	check(!event_within(&p.b, 50), "an event without a completion");
	send_one(&p, 1, 0);
	check(event_within(&p.b, PATIENCE_MS), "no event");
	take_event(&p.b, p.b.rcq);
	send_one(&p, 2, 0);
	check(!event_within(&p.b, 50), "a second event, armed once");
	expect_wc(p.b.rcq, 1, IBV_WC_SUCCESS);
	expect_wc(p.b.rcq, 2, IBV_WC_SUCCESS);

	check_ret(ibv_req_notify_cq(p.b.rcq, 1), 0);
	send_one(&p, 3, 0);
	check(!event_within(&p.b, 50), "an event of an unsolicited send");
	send_one(&p, 4, IBV_SEND_SOLICITED);
	check(event_within(&p.b, PATIENCE_MS), "no event of a solicited send");
	take_event(&p.b, p.b.rcq);
	expect_wc(p.b.rcq, 3, IBV_WC_SUCCESS);
	expect_wc(p.b.rcq, 4, IBV_WC_SUCCESS);

	/* Armed for any, then for solicited: any still counts. */
	check_ret(ibv_req_notify_cq(p.b.rcq, 0), 0);
	check_ret(ibv_req_notify_cq(p.b.rcq, 1), 0);
	send_one(&p, 5, 0);
	check(event_within(&p.b, PATIENCE_MS), "the weaker request won");
	take_event(&p.b, p.b.rcq);
	expect_wc(p.b.rcq, 5, IBV_WC_SUCCESS);

	/* An error is always solicited. */
	if (type_is("rxe"))
		skip("rxe has no event of a flush");
	check_ret(ibv_req_notify_cq(p.b.rcq, 1), 0);
	check_ret(end_to_state(&p.b, IBV_QPS_ERR), 0);
	check(event_within(&p.b, PATIENCE_MS), "no event of a flush");
	take_event(&p.b, p.b.rcq);
	pair_destroy(&p);
}

/* Wait, take all, arm, wait: nothing is lost, as in every program with events. */
static void cq_event_loop(void)
{
	struct pair_options opt = { .events = true };
	struct ibv_wc wc[8];
	struct pair p;
	int sent = 0, done = 0, n;

	make(&p, &opt);
	check_ret(ibv_req_notify_cq(p.a.scq, 0), 0);
	while (done < 2000) {
		while (sent < 2000 && sent - done < 16) {
			check_ret(post(&p.a, mk(0, IBV_WR_RDMA_WRITE, 8), NULL), 0);
			sent++;
		}
		check(event_within(&p.a, 10000), "event lost after %d", done);
		take_event(&p.a, p.a.scq);
		check_ret(ibv_req_notify_cq(p.a.scq, 0), 0);
		while ((n = ibv_poll_cq(p.a.scq, 8, wc)) > 0)
			done += n;
	}
	pair_destroy(&p);
}

static void async_events(void)
{
	struct ibv_async_event event;
	struct pollfd fd;
	struct pair p;

	if (type_is("rxe"))
		skip("rxe raises none here");
	make(&p, NULL);
	fd = (struct pollfd){ .fd = B.ctx->async_fd, .events = POLLIN };
	check_ret(post(&p.a, mk_bad(IBV_WR_RDMA_WRITE, 1, 1, 16), NULL), 0);
	expect_wc(p.a.scq, 50, IBV_WC_REM_ACCESS_ERR);
	for (;;) {
		check(poll(&fd, 1, 5000) == 1, "no asynchronous event at B");
		check_ret(ibv_get_async_event(B.ctx, &event), 0);
		ibv_ack_async_event(&event);
		if (event.event_type == IBV_EVENT_QP_ACCESS_ERR)
			break;
		check(event.event_type == IBV_EVENT_COMM_EST, "event %s",
		      ibv_event_type_str(event.event_type));
	}
	check(event.element.qp == p.b.qp, "an event of another QP");
	pair_destroy(&p);
}

/* --- threads ------------------------------------------------------------------------ */

enum { POSTERS = 3, EACH = 1500 };

struct crowd {
	struct pair p;
	pthread_mutex_t mutex;
	int room;
	int done;
	uint8_t seen[POSTERS * EACH];
};

static void *poster(void *arg)
{
	static int next;
	struct crowd *c = arg;
	int i, id, ret;
	bool go;

	id = __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED);
	for (i = 0; i < EACH; i++) {
		struct ibv_sge sge = { (uintptr_t)abuf, 64, amr->lkey };
		struct ibv_send_wr *bad, wr = {
			.wr_id = id * EACH + i, .sg_list = &sge, .num_sge = 1,
			.opcode = IBV_WR_RDMA_WRITE,
			.send_flags = IBV_SEND_SIGNALED,
			.wr.rdma.remote_addr = (uintptr_t)bbuf,
			.wr.rdma.rkey = bmr->rkey,
		};

		do {
			pthread_mutex_lock(&c->mutex);
			go = c->room > 0;
			c->room -= go;
			pthread_mutex_unlock(&c->mutex);
			if (!go)
				usleep(10);
		} while (!go);
		ret = ibv_post_send(c->p.a.qp, &wr, &bad);
		if (ret)
			die("ibv_post_send: %s", strerror(ret));
	}
	return NULL;
}

static void *poller(void *arg)
{
	struct crowd *c = arg;
	uint64_t until = now_ms() + PATIENCE_MS;
	struct ibv_wc wc[4];
	int i, n, done;

	do {
		n = ibv_poll_cq(c->p.a.scq, 4, wc);
		/* A slow kernel takes its time; one that loses one never ends. */
		if (n)
			until = now_ms() + PATIENCE_MS;
		else
			usleep(10);
		pthread_mutex_lock(&c->mutex);
		for (i = 0; i < n; i++) {
			if (wc[i].status || c->seen[wc[i].wr_id]++)
				die("completion %d: %s, seen %d times",
				    (int)wc[i].wr_id,
				    ibv_wc_status_str(wc[i].status),
				    c->seen[wc[i].wr_id]);
			c->room++;
			c->done++;
		}
		done = c->done;
		pthread_mutex_unlock(&c->mutex);
		if (now_ms() > until)
			die("%d of %d completed", done, POSTERS * EACH);
	} while (done < POSTERS * EACH);
	return NULL;
}

static void threads_share_a_qp(void)
{
	static struct crowd c = { .mutex = PTHREAD_MUTEX_INITIALIZER };
	pthread_t threads[POSTERS + 2];
	size_t i;

	make(&c.p, NULL);
	c.room = 60;
	for (i = 0; i < ARRAY_LEN(threads); i++)
		if (pthread_create(&threads[i], NULL,
				   i < POSTERS ? poster : poller, &c))
			die("no thread");
	for (i = 0; i < ARRAY_LEN(threads); i++)
		pthread_join(threads[i], NULL);
	pair_destroy(&c.p);
}

const struct error_case errors_states[] = {
	ERROR_CASE(state_machine),
	ERROR_CASE(reset_and_use_again),
	ERROR_CASE(query_what_was_set),
	ERROR_CASE(cq_events),
	ERROR_CASE(cq_event_loop),
	ERROR_CASE(async_events),
	ERROR_CASE(threads_share_a_qp),
	{ NULL }
};
