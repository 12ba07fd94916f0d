// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A DMA engine for machines that have none: a thread for each channel, which copies memory. It can be as slow, as full,
 * as unordered and as broken as an engine may be.
 *
 *	insmod soft_dma.ko channels=2
 *
 * What can be changed at any time is in /sys/module/soft_dma/parameters.
 */
#include <linux/delay.h>
#include <linux/dma-mapping.h>
#include <linux/dmaengine.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/platform_device.h>
#include <linux/random.h>
#include <linux/slab.h>

enum {
	CHANNELS_MAX = 4,
	/* What a copy that fails may leave behind. */
	SCRIBBLE = 0xdb,
};

static uint channels = 2;
module_param(channels, uint, 0444);
static uint depth = 512;
module_param(depth, uint, 0644);
MODULE_PARM_DESC(depth, "copies that a channel takes before the first is made");
static uint delay_us;
module_param(delay_us, uint, 0644);
MODULE_PARM_DESC(delay_us, "most of what a copy takes longer");
static uint fail_every;
module_param(fail_every, uint, 0644);
MODULE_PARM_DESC(fail_every, "one of so many copies fails; 0: none");
static bool scribble = true;
module_param(scribble, bool, 0644);
MODULE_PARM_DESC(scribble, "it leaves something else behind");
static bool shuffle;
module_param(shuffle, bool, 0644);
MODULE_PARM_DESC(shuffle, "copies are made in any order");

static uint refused;
module_param(refused, uint, 0444);
MODULE_PARM_DESC(refused, "copies that were not taken, about: a channel was full");

struct copy {
	struct dma_async_tx_descriptor tx;
	dma_addr_t to, from;
	size_t len;
	struct list_head entry;
};

struct channel {
	struct dma_chan chan;
	spinlock_t lock;
	struct list_head submitted, issued;
	u32 nissued;
	u32 taken;		/* prepared, and not yet made */
	struct mutex at_it;	/* while one is made, and told of */
	wait_queue_head_t wait;
	struct task_struct *task;
};

static struct dma_device engine;
static struct channel all[CHANNELS_MAX];
static struct platform_device *platform;

static struct channel *to_channel(struct dma_chan *chan)
{
	return container_of(chan, struct channel, chan);
}

/* ---- what a user calls ---- */

static dma_cookie_t submit(struct dma_async_tx_descriptor *tx)
{
	struct copy *copy = container_of(tx, struct copy, tx);
	struct channel *c = to_channel(tx->chan);
	dma_cookie_t cookie;

	spin_lock_bh(&c->lock);
	cookie = max(c->chan.cookie + 1, DMA_MIN_COOKIE);
	c->chan.cookie = cookie;
	tx->cookie = cookie;
	list_add_tail(&copy->entry, &c->submitted);
	spin_unlock_bh(&c->lock);
	return cookie;
}

static struct dma_async_tx_descriptor *prepare(struct dma_chan *chan, dma_addr_t to, dma_addr_t from, size_t len,
					       unsigned long flags)
{
	struct channel *c = to_channel(chan);
	struct copy *copy = kzalloc(sizeof(*copy), GFP_NOWAIT);
	bool room;

	spin_lock_bh(&c->lock);
	room = copy && c->taken < READ_ONCE(depth);
	c->taken += room;
	refused += !room;
	spin_unlock_bh(&c->lock);
	if (!room) {
		kfree(copy);
		return NULL;
	}
	dma_async_tx_descriptor_init(&copy->tx, chan);
	copy->tx.flags = flags;
	copy->tx.tx_submit = submit;
	copy->to = to;
	copy->from = from;
	copy->len = len;
	return &copy->tx;
}

static void issue(struct dma_chan *chan)
{
	struct channel *c = to_channel(chan);
	struct list_head *entry;

	spin_lock_bh(&c->lock);
	list_for_each(entry, &c->submitted)
		c->nissued++;
	list_splice_tail_init(&c->submitted, &c->issued);
	spin_unlock_bh(&c->lock);
	wake_up(&c->wait);
}

static enum dma_status status(struct dma_chan *chan, dma_cookie_t cookie, struct dma_tx_state *state)
{
	return dma_async_is_complete(cookie, READ_ONCE(chan->completed_cookie), READ_ONCE(chan->cookie));
}

static void release(struct channel *c, struct copy *copy)
{
	kfree(copy);
	spin_lock_bh(&c->lock);
	c->taken--;
	spin_unlock_bh(&c->lock);
}

static int terminate(struct dma_chan *chan)
{
	struct channel *c = to_channel(chan);
	struct copy *copy, *next;
	LIST_HEAD(gone);

	spin_lock_bh(&c->lock);
	list_splice_init(&c->submitted, &gone);
	list_splice_init(&c->issued, &gone);
	c->nissued = 0;
	spin_unlock_bh(&c->lock);
	list_for_each_entry_safe(copy, next, &gone, entry) {
		dma_descriptor_unmap(&copy->tx);
		release(c, copy);
	}
	return 0;
}

static void synchronize(struct dma_chan *chan)
{
	struct channel *c = to_channel(chan);

	mutex_lock(&c->at_it);
	mutex_unlock(&c->at_it);
}

/* ---- the engine ---- */

static void tell(const struct copy *copy, enum dmaengine_tx_result result)
{
	const struct dmaengine_result told = { .result = result };

	/* As from a tasklet, which is where most drivers do it. */
	local_bh_disable();
	if (copy->tx.callback_result)
		copy->tx.callback_result(copy->tx.callback_param, &told);
	else if (copy->tx.callback)
		copy->tx.callback(copy->tx.callback_param);
	local_bh_enable();
}

static void make(struct channel *c, struct copy *copy)
{
	enum dmaengine_tx_result result = DMA_TRANS_NOERROR;
	void *to = phys_to_virt(copy->to), *from = phys_to_virt(copy->from);
	u32 every = READ_ONCE(fail_every), longer = READ_ONCE(delay_us);

	if (longer)
		usleep_range(get_random_u32_below(longer), longer);
	if (every && !get_random_u32_below(every)) {
		if (READ_ONCE(scribble))
			memset(to, SCRIBBLE, copy->len);
		result = DMA_TRANS_WRITE_FAILED;
	} else {
		memcpy(to, from, copy->len);
	}
	WRITE_ONCE(c->chan.completed_cookie, max(c->chan.completed_cookie, copy->tx.cookie));
	dma_descriptor_unmap(&copy->tx);
	tell(copy, result);
	release(c, copy);
}

static struct copy *take(struct channel *c)
{
	struct copy *copy = NULL;
	u32 skip;

	spin_lock_bh(&c->lock);
	if (c->nissued) {
		skip = READ_ONCE(shuffle) ? get_random_u32_below(c->nissued) : 0;
		list_for_each_entry(copy, &c->issued, entry)
			if (!skip--)
				break;
		list_del(&copy->entry);
		c->nissued--;
	}
	spin_unlock_bh(&c->lock);
	return copy;
}

static int work(void *arg)
{
	struct channel *c = arg;
	struct copy *copy;

	while (!kthread_should_stop()) {
		wait_event_idle(c->wait, READ_ONCE(c->nissued) || kthread_should_stop());
		mutex_lock(&c->at_it);
		copy = take(c);
		if (copy)
			make(c, copy);
		mutex_unlock(&c->at_it);
		cond_resched();
	}
	return 0;
}

/* ---- life ---- */

/* It copies by physical addresses, and knows of no other kind. */
static int check_addresses(struct device *dev)
{
	void *mem = kmalloc(PAGE_SIZE, GFP_KERNEL);
	dma_addr_t addr;
	int err;

	if (!mem)
		return -ENOMEM;
	addr = dma_map_single(dev, mem, PAGE_SIZE, DMA_TO_DEVICE);
	err = dma_mapping_error(dev, addr);
	if (!err) {
		if (addr != virt_to_phys(mem))
			err = -EOPNOTSUPP;
		dma_unmap_single(dev, addr, PAGE_SIZE, DMA_TO_DEVICE);
	}
	kfree(mem);
	return err;
}

static void stop(void)
{
	u32 i;

	for (i = 0; i < channels; i++)
		if (all[i].task)
			kthread_stop(all[i].task);
}

static int start(void)
{
	u32 i;

	INIT_LIST_HEAD(&engine.channels);
	for (i = 0; i < channels; i++) {
		struct channel *c = &all[i];
		struct task_struct *task;

		spin_lock_init(&c->lock);
		INIT_LIST_HEAD(&c->submitted);
		INIT_LIST_HEAD(&c->issued);
		mutex_init(&c->at_it);
		init_waitqueue_head(&c->wait);
		c->chan.device = &engine;
		c->chan.cookie = DMA_MIN_COOKIE;
		c->chan.completed_cookie = DMA_MIN_COOKIE;
		list_add_tail(&c->chan.device_node, &engine.channels);
		task = kthread_run(work, c, "soft_dma/%u", i);
		if (IS_ERR(task))
			return PTR_ERR(task);
		c->task = task;
	}
	return 0;
}

static int probe(struct platform_device *pdev)
{
	int err;

	err = dma_coerce_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(64));
	if (!err)
		err = check_addresses(&pdev->dev);
	if (err)
		return err;
	err = start();
	if (err)
		goto fail;
	engine.dev = &pdev->dev;
	dma_cap_set(DMA_MEMCPY, engine.cap_mask);
	dma_cap_set(DMA_PRIVATE, engine.cap_mask);
	engine.device_prep_dma_memcpy = prepare;
	engine.device_issue_pending = issue;
	engine.device_tx_status = status;
	engine.device_terminate_all = terminate;
	engine.device_synchronize = synchronize;
	err = dma_async_device_register(&engine);
	if (!err)
		return 0;
fail:
	stop();
	return err;
}

static struct platform_driver driver = {
	.driver = { .name = "soft_dma" },
	.probe = probe,
};

static int __init soft_dma_init(void)
{
	int err;

	if (!channels || channels > CHANNELS_MAX)
		return -EINVAL;
	err = platform_driver_register(&driver);
	if (err)
		return err;
	platform = platform_device_register_simple("soft_dma", PLATFORM_DEVID_NONE, NULL, 0);
	if (IS_ERR(platform)) {
		platform_driver_unregister(&driver);
		return PTR_ERR(platform);
	}
	if (platform->dev.driver)
		return 0;
	platform_device_unregister(platform);
	platform_driver_unregister(&driver);
	return -ENODEV;
}

/* Nobody has a channel: who has one keeps the module. */
static void __exit soft_dma_exit(void)
{
	dma_async_device_unregister(&engine);
	stop();
	platform_device_unregister(platform);
	platform_driver_unregister(&driver);
}

module_init(soft_dma_init);
module_exit(soft_dma_exit);
MODULE_DESCRIPTION("A DMA engine in software");
MODULE_LICENSE("Dual BSD/GPL");
