/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * How long a small pipeline takes (Balaji et al., figure 16): a reader on node a
 * sends the planes of a volume in units of work, of which node b extracts a
 * surface, as marching cubes do.
 *
 *   isosurface BYTES    of a unit
 *
 * Prints milliseconds: what the pipeline took, and what the extraction alone takes
 * of the same units in memory; and the triangles. Each unit must give the surface
 * that it gave in memory.
 */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verbs_test.h"

enum {
	SIDE = 32,
	PLANE = SIDE * SIDE,
	/* Units of 8 and of 1024 planes, each with the last one of the unit before. */
	LAYERS = 4 * 7 * 1023,
	VOLUME = (LAYERS + 1) * PLANE,
	LEVEL = 100,
	WINDOW = 16,
	CREDIT = WINDOW / 2,	/* units that a message of the extraction's frees */
	CREDITS = WINDOW,	/* the slot of those messages */
	CREDIT_LEN = 8,
};

/* @where: triangles, weighted by where they are. */
struct surface {
	uint64_t cells, triangles, where;
};

/*
 * By which of a cell's corners are inside, of which bits 0, 1 and 2 of its number
 * are x, y and z; where a face could be cut in two ways, they are kept apart.
 */
static const char triangles[] =
	"0112122312232332122323342334344312232334233434432332344334434552"
	"1223233423343443233432433445435223343445344545543443435245545421"
	"1223233423343443233434453445455423343445342345323443455445325241"
	"2334344534452332344543544552324134454552453434212332324134212110";

static uint8_t *volume;
static struct surface *expected;
static size_t len, units, step;

static struct pair pair;
static struct ibv_mr *from, *to;

/* Balls, each plane of them a bit larger or smaller. */
static void make_volume(void)
{
	int x, y, z;

	volume = alloc_pages(VOLUME);
	for (z = 0; z <= LAYERS; z++) {
		int dz = z % 24 - 12;
		int base = dz * dz + (z * 2654435761U >> 28);

		for (y = 0; y < SIDE; y++) {
			for (x = 0; x < SIDE; x++) {
				int v = base + (x % 24 - 12) * (x % 24 - 12) +
					(y % 24 - 12) * (y % 24 - 12);

				volume[z * PLANE + y * SIDE + x] = v > 255 ? 255 : v;
			}
		}
	}
}

static void extract_row(const uint8_t *at, struct surface *s)
{
	uint8_t side[SIDE];
	int x;

	/* Of a cell, bits 0, 2, 4 and 6 are the corners of its left side. */
	for (x = 0; x < SIDE; x++)
		side[x] = (at[x] < LEVEL) | (at[SIDE + x] < LEVEL) << 2 |
			  (at[PLANE + x] < LEVEL) << 4 |
			  (at[PLANE + SIDE + x] < LEVEL) << 6;
	for (x = 0; x + 1 < SIDE; x++) {
		unsigned int n = triangles[side[x] | side[x + 1] << 1] - '0';

		s->cells += n != 0;
		s->triangles += n;
		s->where = s->where * 3 + n;
	}
}

static struct surface extract(const uint8_t *unit)
{
	struct surface s = {};
	size_t z, y;

	for (z = 0; z < step; z++)
		for (y = 0; y + 1 < SIDE; y++)
			extract_row(unit + z * PLANE + y * SIDE, &s);
	return s;
}

/*
 * Both ends sleep until there is something to do: each has but one CPU, and what
 * carries their data needs it, too.
 */
static void must_wc(struct end *end, struct ibv_cq *cq)
{
	struct ibv_cq *any;
	struct ibv_wc wc;
	void *context;

	while (!ibv_poll_cq(cq, 1, &wc)) {
		if (ibv_req_notify_cq(cq, 0))
			die("ibv_req_notify_cq");
		if (ibv_poll_cq(cq, 1, &wc))
			break;
		if (ibv_get_cq_event(end->channel, &any, &context))
			die("ibv_get_cq_event");
		ibv_ack_cq_events(any, 1);
	}
	if (wc.status)
		die("%s", ibv_wc_status_str(wc.status));
}

static void post(struct end *end, struct ibv_mr *mr, size_t slot, bool recv,
		 bool signaled)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)mr->addr + slot * len,
		.length = slot == CREDITS ? CREDIT_LEN : len,
		.lkey = mr->lkey,
	};
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = signaled ? IBV_SEND_SIGNALED : 0,
	}, *bad;
	struct ibv_recv_wr rwr = { .sg_list = &sge, .num_sge = 1 }, *rbad;

	if (recv ? ibv_post_recv(end->qp, &rwr, &rbad) :
		   ibv_post_send(end->qp, &wr, &bad))
		die("a message cannot be posted");
}

static void bind_to(long cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static void *extract_all(void *unused)
{
	struct surface s;
	size_t n;

	bind_to(sysconf(_SC_NPROCESSORS_ONLN) - 1);
	for (n = 0; n < units; n++) {
		must_wc(&pair.b, pair.b.rcq);
		s = extract((uint8_t *)to->addr + n % WINDOW * len);
		if (memcmp(&s, &expected[n], sizeof(s)))
			die("unit %zu has another surface than in memory", n);
		post(&pair.b, to, n % WINDOW, true, false);
		if ((n + 1) % CREDIT)
			continue;
		if (n >= CREDIT)
			must_wc(&pair.b, pair.b.scq);
		post(&pair.b, to, CREDITS, false, true);
	}
	return unused;
}

static void read_all(void)
{
	size_t n, sent = 0, room = WINDOW;

	for (n = 0; n < units; n++) {
		for (; n >= room; room += CREDIT) {
			must_wc(&pair.a, pair.a.rcq);
			post(&pair.a, from, CREDITS, true, false);
		}
		for (; n >= sent + WINDOW; sent += CREDIT)
			must_wc(&pair.a, pair.a.scq);
		/* As one reads of a RAM disk. */
		memcpy((uint8_t *)from->addr + n % WINDOW * len,
		       volume + n * step * PLANE, len);
		post(&pair.a, from, n % WINDOW, false, !((n + 1) % CREDIT));
	}
}

static double alone(uint64_t *total)
{
	uint64_t began = now_ns();
	size_t n;

	for (n = 0; n < units; n++) {
		expected[n] = extract(volume + n * step * PLANE);
		*total += expected[n].triangles;
	}
	return (now_ns() - began) / 1e6;
}

static double together(void)
{
	uint64_t began = now_ns();
	pthread_t thread;

	if (pthread_create(&thread, NULL, extract_all, NULL))
		die("pthread_create");
	read_all();
	pthread_join(thread, NULL);
	return (now_ns() - began) / 1e6;
}

int main(int argc, char **argv)
{
	struct pair_options po = {
		.send_wr = WINDOW, .recv_wr = WINDOW, .events = true
	};
	double pipeline, extraction;
	uint64_t total = 0;
	struct side a, b;
	size_t all;
	int i;

	len = argc > 1 ? strtoul(argv[1], NULL, 0) : 0;
	step = len / PLANE - 1;
	if (len < 2 * PLANE || len % PLANE || LAYERS % step) {
		fputs("usage: isosurface BYTES    8192 or 1048576\n", stderr);
		return 2;
	}
	units = LAYERS / step;
	make_volume();
	expected = calloc(units, sizeof(*expected));
	side_open_both(&a, &b);
	pair_create(&pair, &a, &b, &po);
	all = WINDOW * len + CREDIT_LEN;
	from = must_reg(&a, alloc_pages(all), all, FULL_ACCESS);
	to = must_reg(&b, alloc_pages(all), all, FULL_ACCESS);
	for (i = 0; i < WINDOW; i++) {
		post(&pair.b, to, i, true, false);
		post(&pair.a, from, CREDITS, true, false);
	}
	bind_to(0);
	extraction = alone(&total);
	pipeline = together();
	printf("%.2f %.2f %llu\n", pipeline, extraction, (unsigned long long)total);
	pair_destroy(&pair);
	ibv_dereg_mr(from);
	ibv_dereg_mr(to);
	side_close(&a);
	side_close(&b);
	free(expected);
	return 0;
}
