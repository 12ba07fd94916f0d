// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Heat that spreads over a plate, which the nodes have shared out by rows.
 *
 * In each step a node computes its rows from those of the step before, and then
 * writes its first and last row into its neighbours' halos, each write with a
 * notification: nobody goes on before both neighbours' rows are there. There are
 * two plates, for even and odd steps, so that a neighbour that is a step ahead
 * overwrites nothing. In the end node 0 reads all rows, compares them with what
 * it has computed alone, and draws them.
 */
#include <math.h>

#include "mesh.h"

enum {
	WIDTH = 512,
	HEIGHT = 240,			/* of all nodes together */
	STEPS = 400,
	DRAW_WIDTH = 64,
	DRAW_HEIGHT = 20,
};

static struct mesh mesh;
static int rows;			/* of this node; and two of halo */

/* Row -1 and row @rows are the halo. */
static double *row_of(char *memory, int plate, int row)
{
	return (double *)memory + ((size_t)plate * (rows + 2) + row + 1) * WIDTH;
}

static uint64_t offset_of(int plate, int row)
{
	return ((size_t)plate * (rows + 2) + row + 1) * WIDTH * sizeof(double);
}

/* A hot disc, a cold bar, and edges that stay as they are. */
static double start_at(int y, int x)
{
	double dx = (x - WIDTH * 0.3) / WIDTH, dy = (double)(y - HEIGHT / 2) / HEIGHT;

	if (dx * dx + dy * dy < 0.02)
		return 100;
	if (x > WIDTH * 0.7 && x < WIDTH * 0.75)
		return -60;
	return 0;
}

static void compute_row(double *to, const double *above, const double *row,
			const double *below)
{
	int x;

	to[0] = row[0];
	to[WIDTH - 1] = row[WIDTH - 1];
	for (x = 1; x < WIDTH - 1; x++)
		to[x] = row[x] + 0.24 * (above[x] + below[x] + row[x - 1] +
					 row[x + 1] - 4 * row[x]);
}

/* All rows of @from but the plate's own edges. */
static void compute(char *memory, int from, int num, int first)
{
	int r;

	for (r = 0; r < num; r++) {
		if (first + r == 0 || first + r == HEIGHT - 1)
			memcpy(row_of(memory, !from, r), row_of(memory, from, r),
			       WIDTH * sizeof(double));
		else
			compute_row(row_of(memory, !from, r),
				    row_of(memory, from, r - 1),
				    row_of(memory, from, r),
				    row_of(memory, from, r + 1));
	}
}

static void send_row(int to, int plate, int row, int halo, int step)
{
	int r;

	while ((r = glue_rdma_operation(mesh.peer[to],
					mesh.address[to] + offset_of(plate, halo),
					row_of(mesh.memory, plate, row),
					WIDTH * sizeof(double), GLUE_WRITE,
					GLUE_NOTIFY(step), NULL)) == -EAGAIN)
		errx(1, "a queue of two rows cannot be full");
	mesh_check(r, "glue_rdma_operation");
}

static int came[STEPS + 1];		/* rows for each step */

static void exchange(int plate, int step)
{
	int neighbours = (mesh.rank > 0) + (mesh.rank < mesh.size - 1);
	struct glue_event e;

	if (mesh.rank > 0)
		send_row(mesh.rank - 1, plate, 0, rows, step);
	if (mesh.rank < mesh.size - 1)
		send_row(mesh.rank + 1, plate, rows - 1, -1, step);
	while (came[step] < neighbours) {
		e = mesh_event(&mesh, MESH_PATIENCE);
		if (!e.type)
			errx(1, "node %d: step %d never comes", mesh.rank, step);
		if (e.type == GLUE_EVENT_NOTIFICATION)
			came[e.tag]++;
	}
}

static void draw(double (*plate)[WIDTH])
{
	static const char shades[] = "@%#*+=-:. .:-=+*#%@";
	int x, y, shade;

	for (y = 0; y < DRAW_HEIGHT; y++) {
		for (x = 0; x < DRAW_WIDTH; x++) {
			shade = lround(plate[y * HEIGHT / DRAW_HEIGHT]
					    [x * WIDTH / DRAW_WIDTH] / 100 * 14);
			shade = shade < -9 ? -9 : shade > 9 ? 9 : shade;
			putchar(shades[shade + 9]);
		}
		printf("  %d\n", y * HEIGHT / DRAW_HEIGHT / rows);
	}
}

static void fetch(double (*plate)[WIDTH], int last)
{
	size_t bytes = (size_t)rows * WIDTH * sizeof(double);
	uint64_t handle;
	int i;

	memcpy(plate, row_of(mesh.memory, last, 0), bytes);
	for (i = 1; i < mesh.size; i++) {
		mesh_check(glue_rdma_operation(mesh.peer[i],
					       mesh.address[i] + offset_of(last, 0),
					       plate[i * rows], bytes, GLUE_READ,
					       0, &handle), "glue_rdma_operation");
		while (!glue_query_operation(mesh.peer[i], handle))
			mesh_keep(&mesh, 10);
	}
}

/* The same on one node. */
static void compute_alone(double (*plate)[WIDTH])
{
	double (*other)[WIDTH] = malloc(sizeof(*other) * HEIGHT), (*tmp)[WIDTH];
	double (*mine)[WIDTH] = plate;
	int step, x, y;

	for (y = 0; y < HEIGHT; y++) {
		for (x = 0; x < WIDTH; x++)
			plate[y][x] = start_at(y, x);
	}
	for (step = 0; step < STEPS; step++) {
		memcpy(other[0], mine[0], sizeof(*mine));
		memcpy(other[HEIGHT - 1], mine[HEIGHT - 1], sizeof(*mine));
		for (y = 1; y < HEIGHT - 1; y++)
			compute_row(other[y], mine[y - 1], mine[y], mine[y + 1]);
		tmp = mine;
		mine = other;
		other = tmp;
	}
	if (mine != plate)
		memcpy(plate, mine, sizeof(*plate) * HEIGHT);
	free(mine == plate ? other : mine);
}

static void compare(int last)
{
	double (*all)[WIDTH] = malloc(sizeof(*all) * HEIGHT);
	double (*alone)[WIDTH] = malloc(sizeof(*alone) * HEIGHT);
	int same;

	fetch(all, last);
	compute_alone(alone);
	same = !memcmp(all, alone, sizeof(*all) * HEIGHT);
	draw(all);
	printf("%d nodes, %d steps: %s what one node computes\n", mesh.size, STEPS,
	       same ? "exactly" : "NOT");
	if (!same)
		exit(1);
	free(all);
	free(alone);
}

int main(int argc, char **argv)
{
	int nodes = argc - 2, first, step, x, y;

	if (nodes < 2 || HEIGHT % nodes)
		errx(1, "the nodes cannot share %d rows", HEIGHT);
	rows = HEIGHT / nodes;
	mesh_open(&mesh, argc, argv, 2 * (rows + 2) * WIDTH * sizeof(double));
	first = mesh.rank * rows;
	for (y = 0; y < rows; y++) {
		for (x = 0; x < WIDTH; x++)
			row_of(mesh.memory, 0, y)[x] = start_at(first + y, x);
	}
	mesh_barrier(&mesh);
	exchange(0, 0);
	for (step = 1; step <= STEPS; step++) {
		compute(mesh.memory, (step - 1) % 2, rows, first);
		exchange(step % 2, step);
	}
	mesh_barrier(&mesh);
	if (!mesh.rank)
		compare(STEPS % 2);
	mesh_close(&mesh);
	return 0;
}
