// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory that comes, goes and changes between operations, on both sides: an
 * operation always means what is there when it starts.
 *
 *     glue_fuzz serve HERE [odp]
 *     glue_fuzz HERE THERE SEED ROUNDS [odp]
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "glue_test.h"

enum {
	PORT = 7481,
	AREAS = 6,
	AREA = 256 << 10,
	PAGE = 4096,
};

enum change {
	CHANGE_NOTHING,
	CHANGE_REPLACE,		/* another mapping in its place, without munmap() */
	CHANGE_UNMAP,		/* munmap(), then mmap() again */
	CHANGE_MOVE,		/* mremap() to elsewhere; its pages are replaced */
	CHANGE_SWAP,		/* two areas change places */
	CHANGE_FORGET,		/* madvise(MADV_DONTNEED): other pages */
	CHANGE_FORK,		/* a child shares it and writes; we write */
	CHANGE_PROTECT,		/* read-only and back */
	CHANGE_SHARED,		/* shared memory of a file */
	CHANGES,
	CHANGE_HOLE = CHANGES,	/* nothing is there, for a while */
};

enum { CALL_WHERE, CALL_CHANGE, CALL_CHECK, CALL_BYE, CALL_ANSWER };

/* Address space for the areas, and one more to move through. */
static char *areas;

static char *area(int i)
{
	return areas + (size_t)i * AREA;
}

static void *must_map(void *at, int flags, int fd)
{
	void *p = mmap(at, AREA, PROT_READ | PROT_WRITE, flags | MAP_FIXED, fd,
		       0);

	if (p == MAP_FAILED)
		die("mmap: %m");
	return p;
}

static void map_private(void *at)
{
	must_map(at, MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

static void move(void *from, void *to)
{
	if (mremap(from, AREA, AREA, MREMAP_MAYMOVE | MREMAP_FIXED, to) == MAP_FAILED)
		die("mremap: %m");
}

/* The child sees what was, writes over it, and lives on while we go on. */
static void share_with_child(char *at, uint64_t seed)
{
	static pid_t last;
	int status;

	if (last > 0) {
		EXPECT(waitpid(last, &status, 0), last);
		EXPECT(status, 0);
	}
	last = fork();
	if (last < 0)
		die("fork: %m");
	if (!last) {
		rng_fill(~seed, at, AREA);
		usleep(1000);
		_exit(!rng_same(~seed, at, AREA));
	}
}

static void map_file(void *at)
{
	int fd = memfd_create("area", 0);

	if (fd < 0 || ftruncate(fd, AREA))
		die("memfd: %m");
	must_map(at, MAP_SHARED, fd);
	close(fd);
}

static int last_how[AREAS];

/* A page that is not as it should be, and how it came there. */
static void explain(const char *what, int i, uint64_t seed)
{
	char *want = malloc(AREA);
	int page, bad = 0, first = -1;

	rng_fill(seed, want, AREA);
	for (page = 0; page < AREA / PAGE; page++) {
		if (!memcmp(want + page * PAGE, area(i) + page * PAGE, PAGE))
			continue;
		if (!bad++)
			first = page;
	}
	if (bad)
		fprintf(stderr, "%s: area %d, change %d: %d of %d pages are wrong, the first is %d\n",
			what, i, last_how[i], bad, AREA / PAGE, first);
	free(want);
}

static void change(int i, int how, uint64_t seed)
{
	char *at = area(i), *spare = area(AREAS), *other = area((i + 1) % AREAS);

	last_how[i] = how;
	switch (how) {
	case CHANGE_REPLACE:
		map_private(at);
		break;
	case CHANGE_UNMAP:
		munmap(at, AREA);
		map_private(at);
		break;
	case CHANGE_MOVE:
		move(at, spare);
		map_private(at);
		break;
	case CHANGE_SWAP:
		move(at, spare);
		move(other, at);
		move(spare, other);
		rng_fill(seed + 1, other, AREA);
		break;
	case CHANGE_FORGET:
		madvise(at, AREA, MADV_DONTNEED);
		break;
	case CHANGE_FORK:
		/* Not the file's, which the child would write into for us. */
		map_private(at);
		rng_fill(seed + 2, at, AREA);
		share_with_child(at, seed);
		break;
	case CHANGE_PROTECT:
		mprotect(at, AREA, PROT_READ);
		mprotect(at, AREA, PROT_READ | PROT_WRITE);
		break;
	case CHANGE_SHARED:
		map_file(at);
		break;
	case CHANGE_HOLE:
		munmap(at, AREA);
		return;
	}
	rng_fill(seed, at, AREA);
}

static void map_areas(void)
{
	int i;

	areas = mmap(NULL, (AREAS + 1) * (size_t)AREA, PROT_NONE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (areas == MAP_FAILED)
		die("mmap: %m");
	for (i = 0; i < AREAS; i++)
		map_private(area(i));
}

/* ------------------------------------------------------------ the server */

static void on_where(struct glue_connection *c, const uint64_t *args,
		     const void *payload, size_t size, void *context)
{
	uint64_t where[GLUE_ARGS] = { (uintptr_t)areas };

	EXPECT(glue_call(c, CALL_ANSWER, where, NULL, 0), 0);
}

static void on_change(struct glue_connection *c, const uint64_t *args,
		      const void *payload, size_t size, void *context)
{
	change(args[0], args[1], args[2]);
	EXPECT(glue_call(c, CALL_ANSWER, args, NULL, 0), 0);
}

/* Is what is in payload at the address of args[0]? */
static void on_check(struct glue_connection *c, const uint64_t *args,
		     const void *payload, size_t size, void *context)
{
	uint64_t same[GLUE_ARGS] = {
		rng_same(args[2], (void *)(uintptr_t)args[0], args[1])
	};

	EXPECT(glue_call(c, CALL_ANSWER, same, NULL, 0), 0);
}

static void on_bye(struct glue_connection *c, const uint64_t *args,
		   const void *payload, size_t size, void *context)
{
	*(bool *)context = true;
	EXPECT(glue_call(c, CALL_ANSWER, args, NULL, 0), 0);
}

static void serve(const char *here, struct glue_options *options)
{
	struct glue *g = must_open(here, options);
	bool stop = false;

	EXPECT(glue_listen(g, PORT), PORT);
	glue_set_handler(g, CALL_WHERE, on_where, NULL);
	glue_set_handler(g, CALL_CHANGE, on_change, NULL);
	glue_set_handler(g, CALL_CHECK, on_check, NULL);
	glue_set_handler(g, CALL_BYE, on_bye, &stop);
	must_wait(g);
	while (!stop)
		no_event(g);
	EXPECT(must_event(g, GLUE_EVENT_DISCONNECTED).error, 0);
	glue_close(g);
}

/* ------------------------------------------------------------ the client */

struct client {
	struct glue *g;
	struct glue_connection *c;
	bool answered;
	uint64_t answer;
	uint64_t remote;		/* its areas */
	uint64_t rng;
	uint64_t seeds[AREAS];		/* what is in the server's areas */
	bool known[AREAS];
};

static void on_answer(struct glue_connection *c, const uint64_t *args,
		      const void *payload, size_t size, void *context)
{
	struct client *k = context;

	k->answered = true;
	k->answer = args[0];
}

static uint64_t ask(struct client *k, uint32_t what, uint64_t a0, uint64_t a1,
		    uint64_t a2)
{
	uint64_t args[GLUE_ARGS] = { a0, a1, a2 };
	uint64_t end = now_ms() + PATIENCE_MS;

	k->answered = false;
	EXPECT(UNTIL_ROOM(k->g, glue_call(k->c, what, args, NULL, 0)), 0);
	while (!k->answered && now_ms() < end)
		no_event(k->g);
	EXPECT(k->answered, 1);
	return k->answer;
}

static void transfer(struct client *k, uint64_t remote, char *local,
		     size_t size, enum glue_operation operation)
{
	uint64_t handle;

	EXPECT(UNTIL_ROOM(k->g, glue_rdma_operation(k->c, remote, local, size,
						    operation, 0, &handle)), 0);
	wait_done(k->g, k->c, handle);
}

static void change_remote(struct client *k, int i)
{
	int how = rng_below(&k->rng, CHANGES), other = (i + 1) % AREAS;
	uint64_t seed = rng_next(&k->rng) >> 8;

	ask(k, CALL_CHANGE, i, how, seed);
	k->seeds[i] = seed;
	k->known[i] = true;
	if (how == CHANGE_SWAP) {
		k->seeds[other] = seed + 1;
		k->known[other] = true;
	}
}

/* An operation on what is not there fails, and nothing else does. */
static void try_hole(struct client *k, int i)
{
	struct glue_event e;

	ask(k, CALL_CHANGE, i, CHANGE_HOLE, 0);
	EXPECT(glue_rdma_operation(k->c, k->remote + (size_t)i * AREA, area(0),
				   PAGE, GLUE_READ, 0, NULL), 0);
	e = must_event(k->g, GLUE_EVENT_FAILED);
	EXPECT(e.error, EFAULT);
	ask(k, CALL_CHANGE, i, CHANGE_UNMAP, k->seeds[i]);
	k->known[i] = true;
}

static size_t some_size(struct client *k)
{
	switch (rng_below(&k->rng, 4)) {
	case 0:
		return 1 + rng_below(&k->rng, 300);
	case 1:
		return 1 + rng_below(&k->rng, 3 * PAGE);
	default:
		return 1 + rng_below(&k->rng, AREA);
	}
}

static void round_of(struct client *k, bool odp)
{
	int r = rng_below(&k->rng, AREAS), l = rng_below(&k->rng, AREAS);
	uint64_t seed = rng_next(&k->rng) >> 8;
	size_t size = some_size(k), offset = rng_below(&k->rng, AREA - size + 1);

	if (!k->known[r] || rng_below(&k->rng, 3) == 0)
		change_remote(k, r);
	if (!odp && rng_below(&k->rng, 20) == 0)
		try_hole(k, r);
	/* The server's area, as it is now, comes whole into ours, as it is now. */
	change(l, rng_below(&k->rng, CHANGES), seed);
	transfer(k, k->remote + (size_t)r * AREA, area(l), AREA, GLUE_READ);
	explain("read", l, k->seeds[r]);
	EXPECT(rng_same(k->seeds[r], area(l), AREA), 1);
	/* And the other way. */
	change(l, rng_below(&k->rng, CHANGES), seed);
	rng_fill(seed, area(l) + offset, size);
	transfer(k, k->remote + (size_t)r * AREA + offset, area(l) + offset,
		 size, GLUE_WRITE);
	EXPECT(ask(k, CALL_CHECK, k->remote + (size_t)r * AREA + offset, size,
		   seed), 1);
	k->known[r] = false;
}

static void run(const char *here, const char *there, uint64_t seed, int rounds,
		struct glue_options *options)
{
	struct client k = { .rng = seed * 2 + 1 };
	uint64_t began = now_ms();
	int i;

	k.g = must_open(here, options);
	k.c = must_connect(k.g, there, PORT);
	glue_set_handler(k.g, CALL_ANSWER, on_answer, &k);
	k.remote = ask(&k, CALL_WHERE, 0, 0, 0);
	for (i = 0; i < rounds; i++)
		round_of(&k, options->flags & GLUE_ODP);
	ask(&k, CALL_BYE, 0, 0, 0);
	glue_close(k.g);
	printf("%d rounds, %llu ms\n", rounds,
	       (unsigned long long)(now_ms() - began));
}

int main(int argc, char **argv)
{
	struct glue_options options = { .size = sizeof(options) };
	bool serves = argc > 2 && !strcmp(argv[1], "serve");

	if (!serves && argc < 5)
		die("usage: glue_fuzz serve HERE [odp] | HERE THERE SEED ROUNDS [odp]");
	if (!strcmp(argv[argc - 1], "odp"))
		options.flags = GLUE_ODP;
	map_areas();
	if (serves)
		serve(argv[2], &options);
	else
		run(argv[1], argv[2], strtoull(argv[3], NULL, 0), atoi(argv[4]),
		    &options);
	return 0;
}
