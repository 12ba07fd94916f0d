/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * How much of its CPU's time a process does not get that wants all of it: in an
 * idle guest, what others on the host take.
 *
 *	stolen MILLISECONDS
 *
 * Prints it in per mille.
 */
#include <err.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* What a timer or an interrupt may take. */
enum { GAP_NS = 300000 };

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

int main(int argc, char **argv)
{
	uint64_t begin = now(), last = begin, stolen = 0, end;

	if (argc != 2)
		errx(2, "usage: stolen MILLISECONDS");
	end = begin + atoi(argv[1]) * 1000000ULL;
	while (last < end) {
		uint64_t t = now();

		if (t - last > GAP_NS)
			stolen += t - last;
		last = t;
	}
	printf("%d\n", (int)(stolen * 1000 / (last - begin)));
	return 0;
}
