/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the tests print: verdicts, the way to reproduce a failure, traces. */
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <stdlib.h>
#include <unistd.h>

#include "say.h"

int say_verbose;
static char context[512];

/* The sanitizer run-times have it; a plain build does not. */
void __sanitizer_set_death_callback(void (*callback)(void))
	__attribute__((__weak__));

static void print_context(void)
{
	fflush(stdout);
	fputs(context, stderr);
	fflush(stderr);
}

static void on_signal(int sig)
{
	ssize_t written = write(2, context, strlen(context));

	(void)written;
	signal(sig, SIG_DFL);
	raise(sig);
}

static void __attribute__((__constructor__)) hook_deaths(void)
{
	if (__sanitizer_set_death_callback) {
		__sanitizer_set_death_callback(print_context);
		return;
	}
	signal(SIGSEGV, on_signal);
	signal(SIGABRT, on_signal);
}

void say_context(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(context, sizeof(context), fmt, args);
	va_end(args);
}

void say_fail(const char *file, int line, const char *what, const char *fmt, ...)
{
	va_list args;

	fflush(stdout);
	fprintf(stderr, "FAIL %s:%d: %s", file, line, what);
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
	print_context();
	/* Not exit(): a leak report would only hide the failure. */
	_exit(1);
}

void say_pass(const char *name, const char *fmt, ...)
{
	va_list args;

	printf("PASS %s: ", name);
	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	putchar('\n');
}

void medge_env_warn(const char *what, const char *file, int line)
{
	say_fail(file, line, what, " (WARN_ON_ONCE)");
}
