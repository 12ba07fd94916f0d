// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A ball of 64 bytes goes to and fro between two nodes, each throw a write with
 * a notification, whose tag is the number of the throw.
 *
 *     pingpong 0 HERE THERE     and there: pingpong 1 THERE HERE, in the same order
 */
#include <time.h>

#include "mesh.h"

enum { THROWS = 2000, BALL = 64, BARS = 10 };

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

static void throw_ball(struct mesh *m, uint32_t number)
{
	int other = !m->rank, r;

	snprintf(m->memory + BALL, BALL, "ball %u from node %d", number, m->rank);
	while ((r = glue_rdma_operation(m->peer[other], m->address[other],
					m->memory + BALL, BALL, GLUE_WRITE,
					GLUE_NOTIFY(number), NULL)) == -EAGAIN)
		mesh_keep(m, 0);
	mesh_check(r, "glue_rdma_operation");
}

static void catch_ball(struct mesh *m, uint32_t number)
{
	char expected[BALL];
	struct glue_event e;

	do {
		e = mesh_event(m, MESH_PATIENCE);
		if (!e.type)
			errx(1, "node %d: ball %u never comes", m->rank, number);
	} while (e.type != GLUE_EVENT_NOTIFICATION);
	snprintf(expected, BALL, "ball %u from node %d", number, !m->rank);
	if (e.tag != number || strcmp(m->memory, expected))
		errx(1, "ball %u is %u: %s", number, e.tag, m->memory);
}

static int by_time(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* How long the throws took, a tenth of them a line. */
static void show(double *us)
{
	int i, stars;

	qsort(us, THROWS, sizeof(*us), by_time);
	for (i = 0; i < BARS; i++) {
		double t = us[(2 * i + 1) * THROWS / (2 * BARS)];

		printf("%3d %% within %8.1f us  ", (2 * i + 1) * 100 / (2 * BARS), t);
		stars = t * 40 / us[THROWS * 95 / 100];
		while (stars-- > 0)
			putchar('*');
		putchar('\n');
	}
	printf("median of %d round trips: %.1f us, all balls right\n", THROWS,
	       us[THROWS / 2]);
}

int main(int argc, char **argv)
{
	static double us[THROWS];
	struct mesh m = {};
	double began;
	uint32_t i;

	mesh_open(&m, argc, argv, 2 * BALL);
	if (m.size != 2)
		errx(1, "it takes two");
	for (i = 0; i < THROWS; i++) {
		began = now_us();
		if (!m.rank)
			throw_ball(&m, i);
		catch_ball(&m, i);
		if (m.rank)
			throw_ball(&m, i);
		us[i] = now_us() - began;
	}
	if (!m.rank)
		show(us);
	mesh_close(&m);
	return 0;
}
