// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Many calls of mixed size between all nodes: each handler is run exactly once,
 * in order per connection, with what the caller gave.
 *
 *     glue_am SEED CALLS RANK ADDRESS...    CALLS in all; of ADDRESS, RANK is ours
 */
#include <stdlib.h>

#include "glue_test.h"

enum { PORT = 7490, MAX_NODES = 16, NUM_HANDLERS = 7, DONE = 100 };

struct node {
	struct glue *g;
	int rank, num;
	uint64_t seed;
	uint64_t calls;			/* to each peer */
	struct glue_connection *peers[MAX_NODES];
	uint64_t sent[MAX_NODES], received[MAX_NODES];
	uint64_t bytes;
	int done;
	int gone;			/* who has hung up, since he has all */
};

/* A handler knows by it which one it is. */
struct slot {
	struct node *node;
	int index;
};

/* What a call is follows from who calls whom, and its number. */
static uint64_t call_seed(const struct node *n, int from, int to, uint64_t call)
{
	return n->seed ^ ((uint64_t)from << 56 | (uint64_t)to << 48 | call);
}

static size_t call_size(uint64_t seed)
{
	uint64_t state = seed * 2 + 1, dice = rng_below(&state, 1000);

	if (dice < 700)
		return rng_below(&state, 200);
	if (dice < 990)
		return rng_below(&state, 9000);
	return rng_below(&state, GLUE_MAX_PAYLOAD + 1);
}

static void on_call(struct glue_connection *c, const uint64_t args[GLUE_ARGS],
		    const void *payload, size_t size, void *context)
{
	const struct slot *slot = context;
	struct node *n = slot->node;
	int from = glue_peer(c);
	uint64_t call = n->received[from]++;
	uint64_t seed = call_seed(n, from, n->rank, call);

	EXPECT(n->peers[from] == c, 1);
	EXPECT(args[0], from);
	EXPECT(args[1], call);
	EXPECT(args[2], ~call);
	EXPECT(args[3], slot->index);
	EXPECT(size, call_size(seed));
	EXPECT(rng_same(seed, payload, size), 1);
	n->bytes += size;
}

static void on_done(struct glue_connection *c, const uint64_t args[GLUE_ARGS],
		    const void *payload, size_t size, void *context)
{
	struct node *n = context;

	EXPECT(args[0], n->received[glue_peer(c)]);
	n->done++;
}

static void connect_all(struct node *n, char **addresses)
{
	struct glue_connection *c;
	int i;

	for (i = 0; i < n->rank; i++)
		n->peers[i] = must_connect(n->g, addresses[i], PORT + i);
	for (i = n->rank + 1; i < n->num; i++) {
		c = must_wait(n->g);
		n->peers[glue_peer(c)] = c;
	}
}

/* Returns whether there was room. */
static bool call(struct node *n, int to)
{
	static char payload[GLUE_MAX_PAYLOAD];
	uint64_t number = n->sent[to];
	uint64_t seed = call_seed(n, n->rank, to, number);
	uint64_t index = seed % NUM_HANDLERS;
	uint64_t args[GLUE_ARGS] = { n->rank, number, ~number, index };
	size_t size = call_size(seed);
	int r;

	rng_fill(seed, payload, size);
	r = glue_call(n->peers[to], index, args, payload, size);
	if (r == -EAGAIN)
		return false;
	EXPECT(r, 0);
	n->sent[to]++;
	return true;
}

/* Who has our word and all others' may go. */
static void hear(struct node *n)
{
	struct glue_event event = next_event(n->g, 0);

	if (!event.type)
		return;
	EXPECT(event.type, GLUE_EVENT_DISCONNECTED);
	EXPECT(event.error, 0);
	n->gone++;
}

static void say_done(struct node *n, int to)
{
	uint64_t args[GLUE_ARGS] = { n->sent[to] };
	int r;

	while ((r = glue_call(n->peers[to], DONE, args, NULL, 0)) == -EAGAIN)
		hear(n);
	EXPECT(r, 0);
}

static void run(struct node *n)
{
	uint64_t left = n->calls * (n->num - 1);
	uint64_t news = now_ms(), seen = 0, now;
	int to = n->rank, i;

	while (left) {
		for (i = 0; i < n->num && left; i++) {
			to = (to + 1) % n->num;
			if (to != n->rank && n->sent[to] < n->calls)
				left -= call(n, to);
		}
		no_event(n->g);
	}
	for (i = 0; i < n->num; i++) {
		if (i != n->rank)
			say_done(n, i);
	}
	while (n->done < n->num - 1) {
		hear(n);
		now = now_ms();
		if (n->bytes != seen)
			news = now;
		seen = n->bytes;
		if (now - news > PATIENCE_MS)
			die("node %d: nothing comes any more", n->rank);
	}
}

int main(int argc, char **argv)
{
	struct glue_options options = { .size = sizeof(options),
					.peer_timeout_ms = 20000 };
	static struct slot slots[NUM_HANDLERS];
	struct node n = {};
	uint64_t began;
	int i;

	if (argc < 6 || argc > 4 + MAX_NODES)
		die("usage: glue_am SEED CALLS RANK ADDRESS ADDRESS...");
	n.seed = strtoull(argv[1], NULL, 0);
	n.rank = atoi(argv[3]);
	n.num = argc - 4;
	n.calls = strtoull(argv[2], NULL, 0) / (n.num * (n.num - 1));
	options.hello = n.rank;
	n.g = must_open(argv[4 + n.rank], &options);
	for (i = 0; i < NUM_HANDLERS; i++) {
		slots[i] = (struct slot){ &n, i };
		EXPECT(glue_set_handler(n.g, i, on_call, &slots[i]), 0);
	}
	EXPECT(glue_set_handler(n.g, DONE, on_done, &n), 0);
	EXPECT(glue_listen(n.g, PORT + n.rank), PORT + n.rank);
	connect_all(&n, argv + 4);
	began = now_ms();
	run(&n);
	printf("node %d of %d: %llu calls each way to each, %llu bytes in, %llu ms\n",
	       n.rank, n.num, (unsigned long long)n.calls,
	       (unsigned long long)n.bytes,
	       (unsigned long long)(now_ms() - began));
	/* Of each two nodes, the higher rank ends their connection. */
	for (i = 0; i < n.rank; i++)
		glue_disconnect(n.peers[i]);
	for (i = n.rank + 1 + n.gone; i < n.num; i++)
		EXPECT(must_event(n.g, GLUE_EVENT_DISCONNECTED).error, 0);
	glue_close(n.g);
	return 0;
}
