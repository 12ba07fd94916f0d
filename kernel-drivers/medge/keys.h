/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Keys: how nodes that share a secret agree on them. */
#ifndef MEDGE_KEYS_H
#define MEDGE_KEYS_H

#include <linux/hashtable.h>
#include <linux/mutex.h>
#include <linux/skbuff.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "rail.h"
#include "session.h"

struct medge_device;

/**
 * struct medge_keys - a device's
 * @change: who makes or frees a peer's sessions; outside of @lock
 * @work: goes through @heard
 * @heard: what peers told of keys, at most so much
 * @set: there is a secret; read at any time
 * @lock: BHs off; guards all that follows it, and the peers
 * @peers: known by address; RCU
 * @npeers: of them
 * @root: made of the secret
 * @strangers_at: ns, when one was last answered whom nothing was known of
 */
struct medge_keys {
	struct mutex change;
	struct work_struct work;
	struct sk_buff_head heard;
	bool set;
	spinlock_t lock;
	DECLARE_HASHTABLE(peers, 8);
	u32 npeers;
	u8 root[MEDGE_KEY_LEN];
	u64 strangers_at;
};

void medge_keys_init(struct medge_device *dev);
/* There are no rails. May sleep. */
void medge_keys_destroy(struct medge_device *dev);

/* What all keys are made of from now on; of no bytes: there is none. May sleep. */
int medge_keys_secret(struct medge_device *dev, const void *secret, u32 len);

static inline bool medge_keys_set(const struct medge_keys *keys)
{
	return READ_ONCE(keys->set);
}

/*
 * Encrypt what is to leave on @rail, with @headroom left in front. Until there is
 * a key, it is asked for; datagrams, which nobody would repeat soon, are kept, a
 * few, and sent then. BHs off, RCU read side. 0, or -errno: the skb is the caller's
 * to free.
 */
int medge_keys_seal(struct medge_rail *rail, const struct medge_l2 *to,
		    struct sk_buff *skb, u32 frames, u32 headroom);
/*
 * Decrypt what came. Return: it is what was sealed; if not, it has been counted
 * why. In softirq, RCU read side.
 */
bool medge_keys_open(struct medge_rail *rail, struct sk_buff *skb,
		     const struct medge_rx_l2 *l2);
/* A frame came that is about keys. The skb stays the caller's. In softirq. */
void medge_keys_receive(struct medge_rail *rail, struct sk_buff *skb,
			const struct medge_rx_l2 *l2);

#endif /* MEDGE_KEYS_H */
