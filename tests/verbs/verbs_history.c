/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Runs cases, told on standard input, over real QPs, and tells when what was
 * seen, for a model that knows the contract (verbs_history.py).
 *
 * One thread posts all ops of a case, then looks at the target's memory, from the
 * last op to the first, and at the completion queues, again and again. Looks are
 * numbered. Of each op it remembers when a byte of it was first seen, when one was
 * last seen to be missing, and when it was completed and delivered. So whoever
 * must come after op I must not be seen before I is last missing.
 *
 * A case, a line each:
 *   case RELAXED_QP LATE		LATE: receives are posted after so many looks
 *   op OPCODE FLAGS RELAXED_MEMORY LEN OF SOLO
 *				FLAGS: 1 backward, 2 forward, 4 IBV_SEND_FENCE, 8 bad key
 *				OF: what a READ reads: the memory of that op
 *				SOLO: post now what is collected, each such list at once
 *   run
 * The answer: a line for each op, then "done":
 *   FIRST_SEEN LAST_MISSING COMPLETED STATUS DELIVERED VALUE
 * VALUE: of a READ, how many bytes of OF it brought; of an atomic, its answer.
 */
#include <stdlib.h>
#include <string.h>

#include <infiniband/medgedv.h>

#include "dv_qp.h"
#include "verbs_test.h"

enum {
	MAX_OPS = 48,
	STEP = 16384,		/* from one op's memory to the next's */
	CELL = MAX_OPS * STEP,	/* the atomics' */
	AREA = CELL + 4096,
};

enum opcode { WRITE, WRITE_IMM, SEND, SEND_IMM, READ, FETCH_ADD, OPCODES };

enum flags { BACKWARD = 1, FORWARD = 2, WAIT = 4, BAD = 8 };

struct op {
	unsigned int opcode, flags, relaxed, len, of, solo;
	uint64_t first_seen, last_missing, completed, delivered;
	bool over;		/* all of it was seen */
	int status;
	uint64_t value;
};

static struct side a, b;
static struct op ops[MAX_OPS];
static int nops;
static unsigned int relaxed_qp, late;
static uint64_t look_no;
static struct pair pair;

/* Memory of both kinds at the target; the poster's, and what comes back to it. */
static uint8_t *target[2], *source, *sink;
static struct ibv_mr *tmr[2], *smr, *kmr;

static struct ibv_qp *create_qp(struct side *side, struct ibv_qp_init_attr *init)
{
	return create_dv_qp(side, init,
			    relaxed_qp ? MEDGEDV_QP_CREATE_RELAXED : 0, 0);
}

static bool consumes(const struct op *op)
{
	return op->opcode == WRITE_IMM || op->opcode == SEND ||
	       op->opcode == SEND_IMM;
}

static bool places(const struct op *op)
{
	return op->opcode <= SEND_IMM && op->len;
}

static uint8_t *memory(int i)
{
	return target[ops[i].relaxed] + i * STEP;
}

static void begin(void)
{
	struct pair_options opt = {
		.send_wr = MAX_OPS, .recv_wr = MAX_OPS,
		.create_qp = create_qp,
		.access = FULL_ACCESS | IBV_ACCESS_REMOTE_ATOMIC,
		.timeout = 18,
	};
	int i;

	pair_create(&pair, &a, &b, &opt);
	for (i = 0; i < nops; i++) {
		memset(source + i * STEP, i + 1, ops[i].len);
		memset(sink + i * STEP, 0, ops[i].len + 8);
		memset(memory(i), 0, ops[i].len);
	}
	memset(target[0] + CELL, 0, 8);
	look_no = 0;
}

static void post_receives(void)
{
	struct ibv_recv_wr *bad;
	int i;

	for (i = 0; i < nops; i++) {
		struct ibv_sge sge = {
			.addr = (uintptr_t)memory(i),
			.length = ops[i].len,
			.lkey = tmr[ops[i].relaxed]->lkey,
		};
		struct ibv_recv_wr wr = {
			.wr_id = i, .sg_list = &sge,
			.num_sge = ops[i].opcode == WRITE_IMM ? 0 : 1,
		};

		if (consumes(&ops[i]) && ibv_post_recv(pair.b.qp, &wr, &bad))
			die("ibv_post_recv failed");
	}
}

static void fill(int i, struct ibv_send_wr *wr, struct ibv_sge *sge)
{
	static const enum ibv_wr_opcode opcodes[OPCODES] = {
		IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_SEND,
		IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_READ,
		IBV_WR_ATOMIC_FETCH_AND_ADD,
	};
	struct op *op = &ops[i];
	int of = op->opcode == READ ? (int)op->of : i;
	uint32_t rkey = tmr[ops[of].relaxed]->rkey;
	bool back = op->opcode >= READ;

	if (op->flags & BAD)
		rkey ^= 0x5a5a5a5a;
	*sge = (struct ibv_sge) {
		.addr = (uintptr_t)(back ? sink : source) + i * STEP,
		.length = op->opcode == FETCH_ADD ? 8 : op->len,
		.lkey = back ? kmr->lkey : smr->lkey,
	};
	*wr = (struct ibv_send_wr) {
		.wr_id = i, .sg_list = sge, .num_sge = 1,
		.opcode = opcodes[op->opcode],
		.send_flags = IBV_SEND_SIGNALED,
		.imm_data = i,
	};
	if (op->flags & BACKWARD)
		wr->send_flags |= MEDGE_SEND_FENCE_BACKWARD;
	if (op->flags & FORWARD)
		wr->send_flags |= MEDGE_SEND_FENCE_FORWARD;
	if (op->flags & WAIT)
		wr->send_flags |= IBV_SEND_FENCE;
	if (op->opcode == FETCH_ADD) {
		wr->wr.atomic.remote_addr = (uintptr_t)target[0] + CELL;
		wr->wr.atomic.rkey = tmr[0]->rkey;
		wr->wr.atomic.compare_add = 1;
	} else {
		wr->wr.rdma.remote_addr = (uintptr_t)memory(of);
		wr->wr.rdma.rkey = rkey;
	}
}

static void look_at(int i)
{
	struct op *op = &ops[i];
	const uint8_t *bytes = memory(i);
	bool seen, missing;

	if (op->over || !places(op))
		return;
	/* What is seen to be there is looked for first: then what misses is news. */
	seen = memchr(bytes, i + 1, op->len);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	missing = memchr(bytes, 0, op->len);
	if (seen && !op->first_seen)
		op->first_seen = ++look_no;
	if (missing)
		op->last_missing = ++look_no;
	op->over = seen && !missing;
}

static void look(void)
{
	int i;

	for (i = nops - 1; i >= 0; i--) {
		look_at(i);
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
	}
}

/* Everything that is posted from @first on up to the next op of its own. */
static int post_list(int first)
{
	struct ibv_send_wr wr[MAX_OPS], *bad;
	struct ibv_sge sge[MAX_OPS];
	int i, ret;

	for (i = first; i < nops && (i == first || !ops[i].solo); i++) {
		fill(i, &wr[i], &sge[i]);
		if (i > first)
			wr[i - 1].next = &wr[i];
	}
	ret = ibv_post_send(pair.a.qp, &wr[first], &bad);
	if (ret && pair.a.qp->state != IBV_QPS_ERR)
		die("ibv_post_send: %s", strerror(ret));
	return i;
}

static uint64_t count(const uint8_t *bytes, int len, uint8_t tag)
{
	uint64_t n = 0;

	while (len--)
		n += *bytes++ == tag;
	return n;
}

static void take_completion(const struct ibv_wc *wc)
{
	struct op *op = &ops[wc->wr_id];
	const uint8_t *back = sink + wc->wr_id * STEP;

	if (op->completed)
		die("op %d completes twice", (int)wc->wr_id);
	op->completed = ++look_no;
	op->status = wc->status;
	if (op->opcode == READ)
		op->value = count(back, op->len, op->of + 1);
	else if (op->opcode == FETCH_ADD)
		memcpy(&op->value, back, sizeof(op->value));
}

static void take_delivery(const struct ibv_wc *wc)
{
	struct op *op = &ops[wc->wr_id];

	if (wc->status == IBV_WC_WR_FLUSH_ERR)
		return;
	if (wc->status)
		die("receive: %s", ibv_wc_status_str(wc->status));
	if (op->delivered)
		die("op %d is delivered twice", (int)wc->wr_id);
	if (op->opcode != SEND && wc->imm_data != wc->wr_id)
		die("receive %d has op %u's immediate data", (int)wc->wr_id,
		    wc->imm_data);
	op->delivered = ++look_no;
}

static int take(struct ibv_cq *cq, void (*fn)(const struct ibv_wc *wc))
{
	struct ibv_wc wc[MAX_OPS];
	int i, n;

	n = ibv_poll_cq(cq, MAX_OPS, wc);
	for (i = 0; i < n; i++)
		fn(&wc[i]);
	return n;
}

static void run(void)
{
	uint64_t until = now_ms() + PATIENCE_MS;
	int i = 0, completed = 0;
	unsigned int looks;

	begin();
	if (!late)
		post_receives();
	for (looks = 0; completed < nops; looks++) {
		if (i < nops)
			i = post_list(i);
		if (late && looks == late)
			post_receives();
		look();
		completed += take(pair.a.scq, take_completion);
		take(pair.b.rcq, take_delivery);
		if (now_ms() > until)
			die("%d of %d ops completed", completed, nops);
	}
	/* What comes late, and must not come at all. */
	look();
	take(pair.b.rcq, take_delivery);
	pair_destroy(&pair);
	for (i = 0; i < nops; i++)
		printf("%llu %llu %llu %d %llu %llu\n",
		       (unsigned long long)ops[i].first_seen,
		       (unsigned long long)ops[i].last_missing,
		       (unsigned long long)ops[i].completed, ops[i].status,
		       (unsigned long long)ops[i].delivered,
		       (unsigned long long)ops[i].value);
	puts("done");
	fflush(stdout);
}

static void read_op(const char *line)
{
	struct op *op = &ops[nops];

	memset(op, 0, sizeof(*op));
	if (nops == MAX_OPS ||
	    sscanf(line, "op %u %u %u %u %u %u", &op->opcode, &op->flags,
		   &op->relaxed, &op->len, &op->of, &op->solo) != 6 ||
	    op->opcode >= OPCODES || op->relaxed > 1 || op->len > STEP - 8 ||
	    op->of >= MAX_OPS)
		die("what is this? %s", line);
	nops++;
}

int main(void)
{
	char line[256];
	int i;

	side_open_both(&a, &b);
	source = alloc_pages(AREA);
	sink = alloc_pages(AREA);
	smr = must_reg(&a, source, AREA, FULL_ACCESS);
	kmr = must_reg(&a, sink, AREA, FULL_ACCESS);
	for (i = 0; i < 2; i++) {
		target[i] = alloc_pages(AREA);
		tmr[i] = must_reg(&b, target[i], AREA,
				  FULL_ACCESS | IBV_ACCESS_REMOTE_ATOMIC |
				  (i ? IBV_ACCESS_RELAXED_ORDERING : 0));
	}
	while (fgets(line, sizeof(line), stdin)) {
		if (sscanf(line, "case %u %u", &relaxed_qp, &late) == 2)
			nops = 0;
		else if (!strcmp(line, "run\n"))
			run();
		else
			read_op(line);
	}
	return 0;
}
