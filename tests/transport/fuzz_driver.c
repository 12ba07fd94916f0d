/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Runs a fuzzer without libFuzzer.
 *
 *   fuzz_X [--count N] [--base SEED|random] [-v] [--seed SEED]
 *   fuzz_X FILE...		inputs that libFuzzer found
 */
#include <getopt.h>
#include <stdlib.h>
#include <time.h>

#include "fuzz_driver.h"
#include "say.h"

enum { INPUT_MAX = 16384 };

static u64 parse_seed(const char *s)
{
	struct timespec t;

	if (strcmp(s, "random"))
		return strtoull(s, NULL, 0);
	clock_gettime(CLOCK_REALTIME, &t);
	return (t.tv_sec * 1000000000ULL + t.tv_nsec) & 0xffffffffffULL;
}

static void run_seed(const char *program, u64 seed)
{
	static u8 buf[INPUT_MAX];
	struct rng rng;
	size_t len;
	u8 *input;

	say_context("seed %llu, again: %s --seed %llu -v\n", seed, program, seed);
	rng_seed(&rng, seed);
	len = fuzz_input(&rng, buf, sizeof(buf));
	input = malloc(len);
	memcpy(input, buf, len);
	LLVMFuzzerTestOneInput(input, len);
	free(input);
}

static int run_file(const char *name)
{
	FILE *f = fopen(name, "rb");
	u8 *input = malloc(1 << 20);
	size_t len;

	if (!f) {
		perror(name);
		return 1;
	}
	len = fread(input, 1, 1 << 20, f);
	fclose(f);
	input = realloc(input, len + !len);
	LLVMFuzzerTestOneInput(input, len);
	free(input);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "count", required_argument, NULL, 'n' },
		{ "base", required_argument, NULL, 'b' },
		{ "seed", required_argument, NULL, 's' },
		{ }
	};
	const char *env = getenv("MEDGE_SEED");
	u64 base = env && *env ? parse_seed(env) : 1;
	u32 count = fuzz_count, i;
	int opt;

	while ((opt = getopt_long(argc, argv, "v", options, NULL)) != -1) {
		switch (opt) {
		case 'n': count = strtoul(optarg, NULL, 0); break;
		case 'b': base = parse_seed(optarg); break;
		case 's': base = parse_seed(optarg); count = 1; break;
		case 'v': say_verbose = 1; break;
		default: return 2;
		}
	}
	for (; optind < argc; optind++, count = 0)
		if (run_file(argv[optind]))
			return 1;
	for (i = 0; i < count; i++)
		run_seed(argv[0], base + i);
	say_pass(fuzz_name, "%u inputs, base seed %llu", count, base);
	return 0;
}
