// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Shared memory, distributed: pages that move to whoever wants to write them.
 *
 * Node 0 knows who was the last to ask for a page, and passes each request on to
 * that node, which hands the page over when it has it and has done with it: a
 * write into the asker's frame, with a notification. So who asks queues up
 * behind who asked before, and there is ever one copy of a page.
 *
 * Each node adds 1 to a counter in each of many pages, chosen at random. In the
 * end node 0 collects all pages: the sum tells whether an addition was lost.
 */
#include "mesh.h"

enum { PAGES = 64, PAGE = 4096, TURNS = 500, NOBODY = -1 };

/* Handlers. */
enum { WANT, HAND_OVER };

struct page {
	uint64_t count;
	uint64_t by[MESH_MAX];		/* who counted how often */
	char rest[PAGE - 8 - 8 * MESH_MAX];
};

static struct mesh mesh;
static struct page *frames;		/* in mesh.memory */
static int here[PAGES];			/* is it ours? */
static int next[PAGES];			/* who gets it after us */
static int last[PAGES];			/* node 0: who asked last */
static int busy = NOBODY;		/* the page we are writing, or wait for */
static uint64_t moved;

static void give_away(int page)
{
	int to = next[page];
	uint64_t offset = (char *)&frames[page] - mesh.memory;

	/* The frame is ours again only when the page comes back, so it is stable. */
	mesh_check(glue_rdma_operation(mesh.peer[to], mesh.address[to] + offset,
				       &frames[page], PAGE, GLUE_WRITE,
				       GLUE_NOTIFY(page), NULL),
		   "handing a page over");
	here[page] = 0;
	next[page] = NOBODY;
	moved++;
}

/* Somebody is to get the page from us, now or when we are through with it. */
static void hand_over(int page, int to)
{
	next[page] = to;
	if (here[page] && busy != page)
		give_away(page);
}

static void on_hand_over(struct glue_connection *c, const uint64_t *args,
			 const void *payload, size_t size, void *context)
{
	hand_over(args[0], args[1]);
}

/* At node 0. */
static void want(int page, int who)
{
	uint64_t args[GLUE_ARGS] = { page, who };
	int before = last[page];

	last[page] = who;
	if (before == mesh.rank)
		hand_over(page, who);
	else
		mesh_check(glue_call(mesh.peer[before], HAND_OVER, args, NULL, 0),
			   "asking for a page");
}

static void on_want(struct glue_connection *c, const uint64_t *args,
		    const void *payload, size_t size, void *context)
{
	want(args[0], mesh_rank(c));
}

static void take_event(int timeout_ms)
{
	struct glue_event e = mesh_event(&mesh, timeout_ms);

	if (timeout_ms && !e.type)
		errx(1, "node %d: page %d never comes", mesh.rank, busy);
	if (e.type == GLUE_EVENT_NOTIFICATION)
		here[e.tag] = 1;
}

/* The page is here, and stays until we let go of it. */
static void get_page(int page)
{
	uint64_t args[GLUE_ARGS] = { page };

	busy = page;
	if (!here[page]) {
		if (!mesh.rank)
			want(page, 0);
		else
			mesh_check(glue_call(mesh.peer[0], WANT, args, NULL, 0),
				   "wanting a page");
	}
	while (!here[page])
		take_event(MESH_PATIENCE);
}

static void let_go(int page)
{
	busy = NOBODY;
	if (next[page] != NOBODY)
		give_away(page);
}

/* Where the pages were in the end, and what was done to them. */
static void show(const int *owner)
{
	uint64_t sum = 0, by[MESH_MAX] = {}, expected = (uint64_t)mesh.size * TURNS;
	int i, j;

	printf("pages at the end:  ");
	for (i = 0; i < PAGES; i++) {
		printf("%d%s", owner[i], i % 16 == 15 ? "\n                   " : " ");
		sum += frames[i].count;
		for (j = 0; j < mesh.size; j++)
			by[j] += frames[i].by[j];
	}
	printf("\r");
	for (j = 0; j < mesh.size; j++)
		printf("node %d added %llu\n", j, (unsigned long long)by[j]);
	printf("sum %llu, should be %llu: %s\n", (unsigned long long)sum,
	       (unsigned long long)expected, sum == expected ? "right" : "WRONG");
	if (sum != expected)
		exit(1);
}

static void collect(void)
{
	int owner[PAGES], i;

	memcpy(owner, last, sizeof(owner));
	for (i = 0; i < PAGES; i++) {
		get_page(i);
		let_go(i);
	}
	show(owner);
}

int main(int argc, char **argv)
{
	int i, page;

	memset(next, 0xff, sizeof(next));
	mesh_open(&mesh, argc, argv, PAGES * PAGE);
	frames = (struct page *)mesh.memory;
	/* At first they are all node 0's. */
	for (i = 0; i < PAGES; i++)
		here[i] = !mesh.rank;
	glue_set_handler(mesh.glue, WANT, on_want, NULL);
	glue_set_handler(mesh.glue, HAND_OVER, on_hand_over, NULL);
	mesh_barrier(&mesh);
	srandom(mesh.rank + 1);
	for (i = 0; i < TURNS; i++) {
		page = random() % PAGES;
		get_page(page);
		frames[page].count++;
		frames[page].by[mesh.rank]++;
		let_go(page);
		take_event(0);
	}
	mesh_barrier(&mesh);
	if (!mesh.rank)
		collect();
	printf("node %d: %llu pages went elsewhere\n", mesh.rank,
	       (unsigned long long)moved);
	mesh_close(&mesh);
	return 0;
}
