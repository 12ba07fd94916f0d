/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the tests print: verdicts, the way to reproduce a failure, traces. */
#ifndef MEDGE_TEST_SAY_H
#define MEDGE_TEST_SAY_H

#include <stdio.h>

extern int say_verbose;

/* Printed with every failure, whoever finds it: sanitizer, WARN_ON or CHECK. */
void say_context(const char *fmt, ...) __attribute__((__format__(printf, 1, 2)));

/* @what: the condition that does not hold, or "" */
void say_fail(const char *file, int line, const char *what, const char *fmt, ...)
	__attribute__((__noreturn__, __cold__, __format__(printf, 4, 5)));

/* The last line of a program, for its runner: "PASS name: detail". */
void say_pass(const char *name, const char *fmt, ...)
	__attribute__((__format__(printf, 2, 3)));

#define FAIL(...)	say_fail(__FILE__, __LINE__, "", __VA_ARGS__)
#define CHECK(cond, ...) do {				\
	if (__builtin_expect(!(cond), 0))		\
		say_fail(__FILE__, __LINE__, "not so: " #cond, " " __VA_ARGS__); \
} while (0)
#define CHECK_EQ(a, b) do {						\
	unsigned long long check_a = (a), check_b = (b);		\
	if (__builtin_expect(check_a != check_b, 0))			\
		FAIL(#a " is %llu, not " #b " = %llu", check_a, check_b); \
} while (0)
#define TRACE(...) do {				\
	if (__builtin_expect(say_verbose, 0))	\
		printf(__VA_ARGS__);		\
} while (0)

#endif /* MEDGE_TEST_SAY_H */
