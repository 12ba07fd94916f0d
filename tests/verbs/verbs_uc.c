// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Unreliable connections over rails that lose frames: a message comes whole and
 * right, or not at all; one that is lost does not keep the next from coming.
 *
 * Prints how many came; judges whether that can be.
 */
#include <stdlib.h>
#include <string.h>

#include "verbs_test.h"

enum {
	MESSAGES = 3000,
	/* Of several frames, also of 9000 bytes. */
	LEN_MAX = 40000,
	RECEIVES = 32,
	/* Sent before the receiver is looked at. */
	BURST = 8,
	/* What has not come by then does not come. */
	LATE_MS = 100,
};

static struct side A, B;
static uint64_t seed;

/* What message @number is, as both sides know it. */
static uint32_t length_of(uint32_t number)
{
	uint64_t rng = seed * 31 + number + 1;

	rng_next(&rng);
	return 1 + rng_below(&rng, LEN_MAX);
}

static void fill(uint32_t number, uint8_t *buf)
{
	uint64_t rng = seed + number * 2654435761ULL + 1;

	rng_fill(&rng, buf, length_of(number));
}

static bool is_write(uint32_t number)
{
	return number % 3 == 2;
}

/* ---- the receiver ---- */

static struct ibv_mr *rmr, *smr;
static uint8_t *rbuf, *sbuf, *want;
static struct pair pair;		/* a sends */
static uint32_t came, sends_came, writes_came, last;

static uint8_t *slot(uint32_t number)
{
	return rbuf + (size_t)number % RECEIVES * LEN_MAX;
}

static uint8_t *written(uint32_t number)
{
	return slot(number) + (size_t)RECEIVES * LEN_MAX;
}

static void post_receive(uint64_t i)
{
	struct ibv_sge sge = { (uintptr_t)slot(i), LEN_MAX, rmr->lkey };
	struct ibv_recv_wr *bad, wr = {
		.wr_id = i, .sg_list = &sge, .num_sge = 1,
	};

	if (ibv_post_recv(pair.b.qp, &wr, &bad))
		die("a receive was refused");
}

static void receive(const struct ibv_wc *wc)
{
	uint32_t number = wc->imm_data;
	uint8_t *got = is_write(number) ? written(number) : slot(wc->wr_id);

	if (wc->status)
		die("a receive ended with %s", ibv_wc_status_str(wc->status));
	if (!(wc->wc_flags & IBV_WC_WITH_IMM) || number >= MESSAGES ||
	    wc->byte_len != length_of(number))
		die("message %u of %u bytes was never sent", number, wc->byte_len);
	if (came && number <= last)
		die("message %u came after %u", number, last);
	fill(number, want);
	if (memcmp(got, want, wc->byte_len))
		die("message %u has wrong bytes", number);
	last = number;
	came++;
	if (is_write(number))
		writes_came++;
	else
		sends_came++;
	post_receive(wc->wr_id);
}

/* ---- the sender ---- */

static void send_message(uint32_t number)
{
	uint8_t *from = sbuf + (size_t)number % BURST * LEN_MAX;
	struct ibv_sge sge = { (uintptr_t)from, length_of(number), smr->lkey };
	struct ibv_send_wr *bad, wr = {
		.wr_id = number, .sg_list = &sge, .num_sge = 1,
		.opcode = IBV_WR_SEND_WITH_IMM, .imm_data = number,
		.send_flags = IBV_SEND_SIGNALED,
	};

	if (is_write(number)) {
		wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
		wr.wr.rdma.remote_addr = (uintptr_t)written(number);
		wr.wr.rdma.rkey = rmr->rkey;
	}
	fill(number, from);
	if (ibv_post_send(pair.a.qp, &wr, &bad))
		die("a send was refused");
}

static void burst(uint32_t first)
{
	struct ibv_wc wc;
	uint32_t i;

	for (i = 0; i < BURST; i++)
		send_message(first + i);
	for (i = 0; i < BURST; i++)
		if (!wait_wc(pair.a.scq, &wc, PATIENCE_MS) || wc.status)
			die("message %u did not leave", first + i);
	while (wait_wc(pair.b.rcq, &wc, last == first + BURST - 1 ? 0 : LATE_MS))
		receive(&wc);
}

int main(int argc, char **argv)
{
	struct pair_options opt = {
		.type = IBV_QPT_UC, .recv_wr = RECEIVES,
		.access = FULL_ACCESS & ~IBV_ACCESS_REMOTE_READ,
		.path_mtu = IBV_MTU_1024,
	};
	size_t len = (size_t)RECEIVES * LEN_MAX;
	uint32_t i;

	seed = rng_seed(argc > 1 ? argv[1] : NULL);
	printf("verbs_uc: seed %llu\n", (unsigned long long)seed);
	side_open_both(&A, &B);
	sbuf = alloc_pages((size_t)BURST * LEN_MAX);
	rbuf = alloc_pages(2 * len);
	want = alloc_pages(LEN_MAX);
	smr = must_reg(&A, sbuf, (size_t)BURST * LEN_MAX, 0);
	rmr = must_reg(&B, rbuf, 2 * len, FULL_ACCESS);
	pair_create(&pair, &A, &B, &opt);
	for (i = 0; i < RECEIVES; i++)
		post_receive(i);
	for (i = 0; i < MESSAGES; i += BURST)
		burst(i);

	if (!sends_came || !writes_came || last + MESSAGES / 10 < MESSAGES)
		die("%u came, the last was %u: losses stop the others", came, last);
	printf("verbs_uc: %u of %u messages came, every byte right\n", came,
	       (uint32_t)MESSAGES);
	pair_destroy(&pair);
	ibv_dereg_mr(smr);
	ibv_dereg_mr(rmr);
	side_close(&A);
	side_close(&B);
	return 0;
}
