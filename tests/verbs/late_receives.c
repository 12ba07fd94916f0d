/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Receives for messages that wait for them already: who posts one after the other rings
 * for many at once, or he would never be as fast as his peer; and if he does something
 * else instead, they are found all the same.
 *
 *	late_receives [--never|--slow]	never: nobody may be late; slow: with all sanitizers, a
 *					receive and its doorbell take as long as receives may
 *					wait, so that all may ring
 *
 * How often it rings hangs on the time that the host gives it: one of several tries
 * counts. That all messages arrive, each in its own receive, does not.
 */
#include <string.h>
#include <sys/mman.h>

#include "verbs_test.h"

enum {
	SLOTS = 64,		/* receives at a time, and the sender's window of sends */
	MESSAGES = 2048,
	ALONE = 20,
	TRIES = 30,
	/* Its peer would ask again after 655 ms, and sooner what nobody looks for is lost. */
	RNR_TIMER = 0,
	AT_ONCE_MS = 300,
};

static struct side a, b;
static struct pair pair;
static volatile uint64_t *source, *target;
static struct ibv_mr *smr, *tmr;
static uint64_t sent, posted, received;
static bool never, slow;

static const struct pair_options options = {
	.send_wr = SLOTS, .recv_wr = SLOTS, .rnr_retry = 7,
	.min_rnr_timer = RNR_TIMER, .inline_data = sizeof(uint64_t),
};

static void begin(void)
{
	memset((void *)target, 0, SLOTS * sizeof(uint64_t));
	sent = posted = received = 0;
}

static void make(void)
{
	pair_create(&pair, &a, &b, &options);
	begin();
}

static void make_again(void)
{
	/* The receiver first, while it is late. */
	if (end_to_state(&pair.b, IBV_QPS_RESET) ||
	    end_to_state(&pair.a, IBV_QPS_RESET))
		die("the QPs cannot be reset");
	pair_connect(&pair, &options);
	begin();
}

/* As many as the queue takes; each has its number, from 1 on. */
static void send_some(uint64_t up_to)
{
	struct ibv_sge sge = { .length = sizeof(uint64_t) };
	struct ibv_send_wr *bad, wr = {
		.opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1,
		.send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED,
	};
	struct ibv_wc wc;

	while (ibv_poll_cq(pair.a.scq, 1, &wc))
		if (wc.status != IBV_WC_SUCCESS)
			die("a send failed: %s", ibv_wc_status_str(wc.status));
	for (; sent < up_to; sent++) {
		source[sent % SLOTS] = sent + 1;
		sge.addr = (uintptr_t)&source[sent % SLOTS];
		sge.lkey = smr->lkey;
		if (ibv_post_send(pair.a.qp, &wr, &bad))
			return;
	}
}

static void post_receive(void)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)&target[posted % SLOTS],
		.length = sizeof(uint64_t), .lkey = tmr->lkey,
	};
	struct ibv_recv_wr *bad, wr = {
		.wr_id = posted, .sg_list = &sge, .num_sge = 1,
	};
	int ret = ibv_post_recv(pair.b.qp, &wr, &bad);

	if (ret)
		die("ibv_post_recv of %llu, %llu received: %s",
		    (unsigned long long)posted, (unsigned long long)received,
		    strerror(ret));
	posted++;
}

static void check(const struct ibv_wc *wc)
{
	if (wc->status != IBV_WC_SUCCESS)
		die("a receive failed: %s", ibv_wc_status_str(wc->status));
	if (wc->wr_id != received)
		die("receive %llu completes as the %llu.", (unsigned long long)wc->wr_id,
		    (unsigned long long)received);
	received++;
	if (target[wc->wr_id % SLOTS] != received)
		die("receive %llu has message %llu", (unsigned long long)received,
		    (unsigned long long)target[wc->wr_id % SLOTS]);
}

/* The sender's messages are there, and wait. */
static void starve(uint64_t messages)
{
	uint64_t naks = side_counter(&b, "rnr_naks_sent"), began = now_ms();

	send_some(sent + messages);
	while (side_counter(&b, "rnr_naks_sent") == naks)
		if (now_ms() - began > PATIENCE_MS)
			die("nobody misses a receive");
}

static uint64_t rang(void)
{
	return side_counter(&b, "doorbells");
}

/* He reads some completions, posts as many receives, one by one, and reads again. */
static bool goes_on(void)
{
	uint64_t began = now_ms(), before, after, most = MESSAGES / 3;
	struct ibv_wc wc[SLOTS / 4];
	int i, n;

	make();
	starve(SLOTS);
	before = rang();
	while (posted < SLOTS / 4)
		post_receive();
	while (received < MESSAGES) {
		send_some(MESSAGES);
		n = ibv_poll_cq(pair.b.rcq, ARRAY_LEN(wc), wc);
		for (i = 0; i < n; i++) {
			check(&wc[i]);
			post_receive();
		}
		if (now_ms() - began > PATIENCE_MS)
			die("%llu of %d messages have come", (unsigned long long)received,
			    MESSAGES);
	}
	after = rang();
	printf("posts on: %d messages, %llu doorbells\n", MESSAGES,
	       (unsigned long long)(after - before));
	pair_destroy(&pair);
	/* Who may be late rings for some of them, who may not for more. */
	return never || slow || after - before <= most;
}

/*
 * He may be late by now, and a message waits, unless it is slower than he: the sender's
 * doorbell takes it there.
 */
static void come_to_be_late(void)
{
	struct ibv_wc wc;
	int i;

	for (i = 0; i < 8; i++) {
		send_some(sent + 1);
		post_receive();
		if (!wait_wc(pair.b.rcq, &wc, PATIENCE_MS))
			die("message %d does not come", i + 1);
		check(&wc);
	}
}

/* He posts one, and looks at memory. Return: a message waited, and he did not ring. */
static bool looks_at_memory(void)
{
	uint64_t bells, naks, began;

	make();
	come_to_be_late();
	/* Of what he is late with, nothing is left. */
	send_some(sent + 1);
	post_receive();
	make_again();
	come_to_be_late();
	bells = rang();
	naks = side_counter(&b, "rnr_naks_sent");
	send_some(sent + 1);
	post_receive();
	began = now_ms();
	while (target[(posted - 1) % SLOTS] != posted)
		if (now_ms() - began > AT_ONCE_MS)
			die("a receive that was not told of is not found");
	bells = rang() - bells;
	naks = side_counter(&b, "rnr_naks_sent") - naks;
	pair_destroy(&pair);
	return never ? bells : naks && (slow || !bells);
}

/* He posts one, and waits for an event. */
static void waits_for_an_event(void)
{
	struct ibv_wc wc;
	uint64_t began;

	make();
	come_to_be_late();
	send_some(sent + 1);
	post_receive();
	if (ibv_req_notify_cq(pair.b.rcq, 0))
		die("no notification");
	for (began = now_ms(); !ibv_poll_cq(pair.b.rcq, 1, &wc);)
		if (now_ms() - began > AT_ONCE_MS)
			die("who waits for an event is not served");
	check(&wc);
	pair_destroy(&pair);
}

/* He posts one, and all goes. */
static void goes(void)
{
	make();
	come_to_be_late();
	send_some(sent + 1);
	post_receive();
	pair_destroy(&pair);
}

static void until(bool (*act)(void), const char *what)
{
	int try;

	for (try = 1; !act(); try++)
		if (try == TRIES)
			die("%s: not as expected in %d tries", what, TRIES);
}

int main(int argc, char **argv)
{
	int i;

	never = argc == 2 && !strcmp(argv[1], "--never");
	slow = argc == 2 && !strcmp(argv[1], "--slow");
	if (argc > 2 || (argc == 2 && !never && !slow)) {
		fputs("usage: late_receives [--never|--slow]\n", stderr);
		return 2;
	}
	side_open_both(&a, &b);
	source = alloc_pages(SLOTS * sizeof(uint64_t));
	target = alloc_pages(SLOTS * sizeof(uint64_t));
	smr = must_reg(&a, (void *)source, SLOTS * sizeof(uint64_t), IBV_ACCESS_LOCAL_WRITE);
	tmr = must_reg(&b, (void *)target, SLOTS * sizeof(uint64_t), IBV_ACCESS_LOCAL_WRITE);
	until(goes_on, "posts on");
	until(looks_at_memory, "looks at memory");
	for (i = 0; i < ALONE; i++) {
		waits_for_an_event();
		goes();
	}
	ibv_dereg_mr(smr);
	ibv_dereg_mr(tmr);
	munmap((void *)source, SLOTS * sizeof(uint64_t));
	munmap((void *)target, SLOTS * sizeof(uint64_t));
	side_close(&a);
	side_close(&b);
	puts("all passed");
	return 0;
}
