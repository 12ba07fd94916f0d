// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What the compiler counts in an instrumented module, written to a file on
 * request: echo FILE >/sys/module/medge/parameters/coverage. Of kernels that
 * are built without gcov; command-coverage.sh has this linked before all other objects of
 * the module, and cov_last.c after them.
 */
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/string.h>

#if __GNUC__ < 12
#error "older compilers have other counters"
#endif

enum { KINDS_OF_COUNTERS = __GNUC__ >= 14 ? 9 : 8 };

/* As gcc makes them, and libgcov reads them. */
struct gcov_ctr_info {
	unsigned int num;
	s64 *values;
};

struct gcov_fn_info {
	const struct gcov_info *key;
	unsigned int ident;
	unsigned int lineno_checksum;
	unsigned int cfg_checksum;
	struct gcov_ctr_info ctrs[];	/* of the kinds that it uses */
};

struct gcov_info {
	unsigned int version;
	struct gcov_info *next;
	unsigned int stamp;
	unsigned int checksum;
	const char *filename;
	void (*merge[KINDS_OF_COUNTERS])(s64 *values, unsigned int num);
	unsigned int n_functions;
	const struct gcov_fn_info *const *functions;
};

/* The linker keeps the order: behind these come those of all instrumented objects. */
const struct gcov_info *const medge_cov_first[0] __section("medge_cov_infos");
extern const struct gcov_info *const medge_cov_last[0];

/* Its address says in which way counters are merged; nobody calls it. */
void __gcov_merge_add(s64 *values, unsigned int num);
void __gcov_merge_add(s64 *values, unsigned int num)
{
}

struct sink {
	struct file *file;
	loff_t pos;
	int err;
};

static __printf(2, 3) void put(struct sink *sink, const char *fmt, ...)
{
	char line[256];
	va_list args;
	ssize_t n;

	va_start(args, fmt);
	n = vscnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	if (!sink->err && kernel_write(sink->file, line, n, &sink->pos) != n)
		sink->err = -EIO;
}

static void put_function(struct sink *sink, const struct gcov_fn_info *fn)
{
	const struct gcov_ctr_info *arcs = fn->ctrs;
	unsigned int i;

	put(sink, "function %u %u %u\n", fn->ident, fn->lineno_checksum,
	    fn->cfg_checksum);
	for (i = 0; i < arcs->num; i++)
		put(sink, "%lld\n", arcs->values[i]);
}

static void put_object(struct sink *sink, const struct gcov_info *info)
{
	unsigned int i;

	put(sink, "object %u %u %u %s\n", info->version, info->stamp,
	    info->checksum, info->filename);
	for (i = 0; i < info->n_functions; i++)
		/* One that is another object's, too, is counted there. */
		if (info->functions[i] && info->functions[i]->key == info)
			put_function(sink, info->functions[i]);
}

static int write_coverage(const char *value, const struct kernel_param *kp)
{
	const struct gcov_info *const *info;
	char *name = kstrdup(value, GFP_KERNEL);
	struct sink sink = {};

	if (!name)
		return -ENOMEM;
	sink.file = filp_open(strim(name), O_WRONLY | O_CREAT | O_TRUNC, 0644);
	kfree(name);
	if (IS_ERR(sink.file))
		return PTR_ERR(sink.file);
	for (info = medge_cov_first; info < medge_cov_last; info++)
		put_object(&sink, *info);
	filp_close(sink.file, NULL);
	return sink.err;
}

static const struct kernel_param_ops coverage_ops = {
	.set = write_coverage,
};
module_param_cb(coverage, &coverage_ops, NULL, 0200);
