// SPDX-License-Identifier: GPL-2.0
/* Does on purpose what the lab must notice: insmod misbehave.ko what=NAME. */
#include <linux/delay.h>
#include <linux/kasan.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/panic.h>
#include <linux/slab.h>
#include <linux/sizes.h>
#include <linux/spinlock.h>
#include <linux/vmalloc.h>

static char *what = "";
module_param(what, charp, 0);

static DEFINE_SPINLOCK(one);
static DEFINE_SPINLOCK(two);
static DEFINE_MUTEX(sleeper);
/* Keeps the compiler from seeing that a pointer is stale, or lost. */
static void * volatile last;

static void warn(void)
{
	WARN_ON(1);
}

static void fault(void)
{
	*(volatile int *)8 = 1;
}

static void die(void)
{
	panic("misbehave");
}

static void hang(void)
{
	local_irq_disable();
	for (;;)
		cpu_relax();
}

static void use_after_free(void)
{
	char *p = kmalloc(64, GFP_KERNEL);

	last = p;
	kfree(p);
	*(volatile char *)last = 1;
}

static void invert_locks(void)
{
	spin_lock(&one);
	spin_lock(&two);
	spin_unlock(&two);
	spin_unlock(&one);
	spin_lock(&two);
	spin_lock(&one);
	spin_unlock(&one);
	spin_unlock(&two);
}

static void sleep_atomic(void)
{
	spin_lock(&one);
	mutex_lock(&sleeper);
	mutex_unlock(&sleeper);
	spin_unlock(&one);
}

static void leak(void)
{
	int i;

	for (i = 0; i < 16; i++)
		last = kmalloc(200, GFP_KERNEL);
	last = NULL;
}

/* No misbehaviour: what KASAN knows of an area stays when its neighbours are given back. */
static void free_neighbours(void)
{
#ifdef CONFIG_KASAN_VMALLOC
	char *area[32];
	int i;

	for (i = 0; i < ARRAY_SIZE(area); i++)
		area[i] = vmalloc(SZ_64K - 64);
	for (i = 0; i < ARRAY_SIZE(area); i += 2)
		vfree(area[i]);
	vm_unmap_aliases();
	for (i = 1; i < ARRAY_SIZE(area); i += 2) {
		WARN_ON(area[i] && !*(u8 *)kasan_mem_to_shadow(area[i] + SZ_64K - 64));
		vfree(area[i]);
	}
#endif
}

static const struct {
	const char *name;
	void (*act)(void);
} acts[] = {
	{ "warn", warn },
	{ "fault", fault },
	{ "die", die },
	{ "hang", hang },
	{ "use_after_free", use_after_free },
	{ "invert_locks", invert_locks },
	{ "sleep_atomic", sleep_atomic },
	{ "leak", leak },
	{ "free_neighbours", free_neighbours },
};

static int __init misbehave_init(void)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(acts); i++) {
		if (!strcmp(what, acts[i].name)) {
			acts[i].act();
			return 0;
		}
	}
	return -EINVAL;
}

static void __exit misbehave_exit(void)
{
}

module_init(misbehave_init);
module_exit(misbehave_exit);
MODULE_DESCRIPTION("Does on purpose what the lab must notice");
MODULE_LICENSE("GPL");
