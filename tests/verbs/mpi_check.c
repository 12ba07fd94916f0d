/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * An MPI program that knows every word it is to get: all to all, a reduction,
 * around a ring, and one-sided; sizes from some bytes to megabytes.
 *
 *   mpirun ... mpi_check SEED ROUNDS
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { SIZES = 18 };

static int rank, ranks;
static unsigned int seed;
static long wrong;

/* What @from sends to @to as word @i of round @round. */
static unsigned int word(int from, int to, int i, int round)
{
	unsigned int x = seed + from * 0x9e3779b1u + to * 0x85ebca77u +
			 round * 0xc2b2ae3du + i;

	x = (x ^ x >> 15) * 0x2c1b3c6du;
	x = (x ^ x >> 12) * 0x297a2d39u;
	return x ^ x >> 15;
}

static void fill(unsigned int *buf, int from, int to, int len, int round)
{
	int i;

	for (i = 0; i < len; i++)
		buf[i] = word(from, to, i, round);
}

static void check(const unsigned int *buf, int from, int to, int len, int round)
{
	int i;

	for (i = 0; i < len; i++)
		wrong += buf[i] != word(from, to, i, round);
}

static void all_to_all(unsigned int *out, unsigned int *in, int len, int round)
{
	int peer;

	for (peer = 0; peer < ranks; peer++)
		fill(out + peer * len, rank, peer, len, round);
	MPI_Alltoall(out, len, MPI_UNSIGNED, in, len, MPI_UNSIGNED,
		     MPI_COMM_WORLD);
	for (peer = 0; peer < ranks; peer++)
		check(in + peer * len, peer, rank, len, round);
}

static void reduce(unsigned int *out, unsigned int *in, int len, int round)
{
	unsigned int want;
	int peer, i;

	fill(out, rank, 0, len, round);
	MPI_Allreduce(out, in, len, MPI_UNSIGNED, MPI_BXOR, MPI_COMM_WORLD);
	for (i = 0; i < len; i++) {
		want = 0;
		for (peer = 0; peer < ranks; peer++)
			want ^= word(peer, 0, i, round);
		wrong += in[i] != want;
	}
}

static void ring(unsigned int *out, unsigned int *in, int len, int round)
{
	int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;

	fill(out, rank, next, len, round);
	MPI_Sendrecv(out, len, MPI_UNSIGNED, next, round, in, len, MPI_UNSIGNED,
		     before, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	check(in, before, rank, len, round);
}

static void one_sided(unsigned int *out, unsigned int *in, int len, int round)
{
	int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
	MPI_Win window;

	MPI_Win_create(in, sizeof(*in) * len, sizeof(*in), MPI_INFO_NULL,
		       MPI_COMM_WORLD, &window);
	MPI_Win_fence(0, window);
	fill(out, rank, next, len, round);
	MPI_Put(out, len, MPI_UNSIGNED, next, 0, len, MPI_UNSIGNED, window);
	MPI_Win_fence(0, window);
	check(in, before, rank, len, round);
	MPI_Get(out, len, MPI_UNSIGNED, next, 0, len, MPI_UNSIGNED, window);
	MPI_Win_fence(0, window);
	check(out, rank, next, len, round);
	MPI_Win_free(&window);
}

int main(int argc, char **argv)
{
	int round, rounds, len;
	unsigned int *in, *out;
	long words = 0, sum;

	MPI_Init(&argc, &argv);
	if (argc != 3)
		MPI_Abort(MPI_COMM_WORLD, 2);
	seed = strtoul(argv[1], NULL, 0);
	rounds = atoi(argv[2]);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	for (round = 0; round < rounds; round++) {
		len = 3 << round % SIZES;
		out = calloc((size_t)ranks * len, sizeof(*out));
		in = calloc((size_t)ranks * len, sizeof(*in));
		if (!in || !out)
			MPI_Abort(MPI_COMM_WORLD, 1);
		all_to_all(out, in, len, 4 * round);
		reduce(out, in, len, 4 * round + 1);
		ring(out, in, len, 4 * round + 2);
		one_sided(out, in, len, 4 * round + 3);
		words += (long)len * (ranks + 4);
		free(in);
		free(out);
	}
	MPI_Allreduce(&wrong, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
	if (!rank)
		printf("%d ranks, %d rounds, %ld words each, %ld wrong\n", ranks,
		       rounds, words, sum);
	MPI_Finalize();
	return sum != 0;
}
