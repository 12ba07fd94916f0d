/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Sessions: the two keys, one for each direction, that two nodes have agreed on. */
#ifndef MEDGE_SESSION_H
#define MEDGE_SESSION_H

#include <linux/atomic.h>
#include <linux/rcupdate.h>
#include <linux/skbuff.h>
#include <linux/spinlock.h>

#include "transport/wire.h"

enum { MEDGE_KEY_LEN = 32 };

/* Has this kernel what it takes? Whether the cipher is there is found out later. */
static inline bool medge_session_possible(void)
{
	return IS_REACHABLE(CONFIG_CRYPTO_AEAD) &&
	       IS_REACHABLE(CONFIG_CRYPTO_LIB_SHA256);
}

/* Of one direction. */
struct medge_session_key {
	u8 key[MEDGE_KEY_LEN];
	__be32 id;
};

/**
 * struct medge_seen - which frames of a rail of the sender's have come
 * @lock: BHs off
 * @end: behind the newest
 * @bits: of number n: bit n % MEDGE_WINDOW; older ones than that count as seen
 */
struct medge_seen {
	spinlock_t lock;
	u64 end;
	DECLARE_BITMAP(bits, MEDGE_WINDOW);
};

/**
 * struct medge_session - with a node
 * @mine, @theirs: the nonces it was made of
 * @tx_id, @rx_id: what frames call the keys
 * @next: number of the next frame, of each rail
 * @seen: of each rail of the peer's, so that rails may be late by any time
 */
struct medge_session {
	struct rcu_head rcu;
	u8 mine[MEDGE_NONCE_LEN];
	u8 theirs[MEDGE_NONCE_LEN];
	__be32 tx_id, rx_id;
	struct crypto_aead *tx, *rx;
	atomic64_t next[MEDGE_MAX_RAILS];
	struct medge_seen seen[MEDGE_MAX_RAILS];
};

/* Is there a cipher? May sleep, and load modules. 0, or -errno. */
int medge_session_probe(void);
/* May sleep. Return: it, or ERR_PTR(). */
struct medge_session *medge_session_new(const struct medge_session_key *tx,
					const struct medge_session_key *rx);
/* After a grace period. */
void medge_session_free(struct medge_session *s);

/* Its key has been used so often on that rail that another would be better. */
bool medge_session_is_old(const struct medge_session *s, u32 rail);

/*
 * Encrypt a frame, or superframe, that skb->data is at, put the seal in front,
 * and have @headroom left in front of that. BHs off. 0, or -errno.
 */
int medge_session_seal(struct medge_session *s, u32 rail, struct sk_buff *skb,
		       u32 frames, u32 headroom);

enum medge_opened {
	MEDGE_OPENED,
	MEDGE_OPENED_BAD,	/* it is not what was sealed */
	MEDGE_OPENED_REPLAYED,
	MEDGE_OPENED_NO_MEMORY,
};

/* Decrypt what skb->data is at, and take its seal off. BHs off. */
enum medge_opened medge_session_open(struct medge_session *s,
				     struct sk_buff *skb);

#endif /* MEDGE_SESSION_H */
