// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Keys: nodes that share a secret agree on a session, by a nonce of each.
 *
 *   A -> B   nonce a                        what is your nonce?
 *   B -> A   nonce b, echo a
 *   A -> B   nonce a, echo b, installed     A takes frames of session (a, b)
 *   B -> A   nonce b, echo a, installed     so does B; now both send such
 *
 * Each of these has a tag that only who knows the secret can make. A nonce is
 * offered until it has been echoed, and never again: so what is heard again later
 * makes no session, and no session has an earlier one's keys. Nobody sends with
 * a key before he knows that the other takes it: by word, or by a frame that came.
 * The last session stays for what is still under way.
 *
 * It is the node's address that has a session, not a QP: no user ever sees a key. The
 * secret is all that protects earlier sessions' keys, too (there is no
 * Diffie-Hellman in this): who gets hold of it reads what he has recorded.
 *
 * Lost messages are not repeated by a timer, but by the next frame that wants
 * to leave, or came with a key that is not known.
 */
#include <crypto/algapi.h>
#include <crypto/sha2.h>
#include <linux/etherdevice.h>
#include <linux/random.h>
#include <linux/slab.h>

#include "batch.h"
#include "compat.h"
#include "device.h"
#include "keys.h"
#include "seal.h"

enum {
	HEADROOM = 64,
	/* Peers at most; those without a session make room for others. */
	MAX_PEERS = 512,
	/* What is kept of each of them until there is a key. */
	MAX_HELD = 4,
	/* Messages not looked at yet. */
	MAX_HEARD = 64,
	MAX_HMAC = 128,
};

/* Between two messages that say the same. */
#define ASK_AGAIN_NS (20 * NSEC_PER_MSEC)
#define REPLY_AGAIN_NS (2 * NSEC_PER_MSEC)
#define STRANGERS_NS NSEC_PER_MSEC

/*
 * A node that there is, or is to be, a session with
 * @link: in medge_keys.peers, RCU
 * @l2: its address
 * @now: what is sent with; NULL: none yet
 * @last: what was, and may still come
 * @next: what will be, once the peer has it; all three RCU
 * @offer: the own nonce of the next session
 * @asked_at, @replied_at: ns
 * @held: what waits for a key
 */
struct keys_peer {
	struct hlist_node link;
	struct rcu_head rcu;
	struct medge_l2 l2;
	struct medge_session __rcu *now, *last, *next;
	u8 offer[MEDGE_NONCE_LEN];
	u64 asked_at, replied_at;
	struct sk_buff_head held;
};

/* ---- what keys are made of ---- */

/* Of 64 bytes at most for the key, and MAX_HMAC of message (RFC 2104). */
static void hmac(const void *key, u32 key_len, const void *msg, u32 len,
		 u8 *out)
{
	u8 buf[SHA256_BLOCK_SIZE + MAX_HMAC];
	u32 i;

	if (!medge_session_possible() ||
	    WARN_ON_ONCE(key_len > SHA256_BLOCK_SIZE || len > MAX_HMAC))
		return;
	memset(buf, 0, SHA256_BLOCK_SIZE);
	memcpy(buf, key, key_len);
	for (i = 0; i < SHA256_BLOCK_SIZE; i++)
		buf[i] ^= 0x36;
	memcpy(buf + SHA256_BLOCK_SIZE, msg, len);
	sha256(buf, SHA256_BLOCK_SIZE + len, out);
	for (i = 0; i < SHA256_BLOCK_SIZE; i++)
		buf[i] ^= 0x36 ^ 0x5c;
	memcpy(buf + SHA256_BLOCK_SIZE, out, SHA256_DIGEST_SIZE);
	sha256(buf, SHA256_BLOCK_SIZE + SHA256_DIGEST_SIZE, out);
	memzero_explicit(buf, sizeof(buf));
}

static void make_root(const void *secret, u32 len, u8 *root)
{
	static const char label[] = "medge root 1";
	u8 key[SHA256_DIGEST_SIZE];

	if (medge_session_possible())
		sha256(secret, len, key);
	hmac(key, sizeof(key), label, sizeof(label), root);
	memzero_explicit(key, sizeof(key));
}

/* What a key is of: who sends with it, to whom, and both parts. */
struct key_info {
	char label[16];
	u8 from[ETH_ALEN];
	u8 to[ETH_ALEN];
	u8 from_nonce[MEDGE_NONCE_LEN];
	u8 to_nonce[MEDGE_NONCE_LEN];
} __packed;

static void make_key(const u8 *root, struct key_info *info,
		     struct medge_session_key *key)
{
	u8 id[SHA256_DIGEST_SIZE];

	BUILD_BUG_ON(sizeof(*info) > MAX_HMAC);
	strscpy_pad(info->label, "medge key 1", sizeof(info->label));
	hmac(root, MEDGE_KEY_LEN, info, sizeof(*info), key->key);
	strscpy_pad(info->label, "medge id 1", sizeof(info->label));
	hmac(root, MEDGE_KEY_LEN, info, sizeof(*info), id);
	memcpy(&key->id, id, sizeof(key->id));
}

static void make_tag(const u8 *root, const u8 *from, const u8 *to,
		     const struct medge_keys_hdr *kh, u8 *tag)
{
	struct {
		char label[16];
		u8 from[ETH_ALEN];
		u8 to[ETH_ALEN];
		u8 msg[offsetof(struct medge_keys_hdr, tag)];
	} __packed of;
	u8 full[SHA256_DIGEST_SIZE];

	BUILD_BUG_ON(sizeof(of) > MAX_HMAC);
	strscpy_pad(of.label, "medge tag 1", sizeof(of.label));
	ether_addr_copy(of.from, from);
	ether_addr_copy(of.to, to);
	memcpy(of.msg, kh, sizeof(of.msg));
	hmac(root, MEDGE_KEY_LEN, &of, sizeof(of), full);
	memcpy(tag, full, MEDGE_TAG_LEN);
}

/* ---- peers ---- */

/* RCU read side, or under keys.lock. */
static struct keys_peer *find(struct medge_device *dev, const u8 *mac, u16 vlan)
{
	struct keys_peer *peer;

	hash_for_each_possible_rcu(dev->keys.peers, peer, link,
				   medge_mac_hash(mac),
				   lockdep_is_held(&dev->keys.lock))
		if (medge_l2_matches(&peer->l2, mac, vlan))
			return peer;
	return NULL;
}

/* Under keys.lock. NULL: no memory, or there are too many. */
static struct keys_peer *find_or_add(struct medge_device *dev,
				     const struct medge_l2 *l2)
{
	struct medge_keys *keys = &dev->keys;
	struct keys_peer *peer = find(dev, l2->dmac, l2->vlan);

	if (peer || l2->vlan == MEDGE_VLAN_UNKNOWN)
		return peer;
	if (keys->npeers == MAX_PEERS) {
		schedule_work(&keys->work);
		return NULL;
	}
	peer = kzalloc(sizeof(*peer), GFP_ATOMIC);
	if (!peer)
		return NULL;
	peer->l2 = *l2;
	__skb_queue_head_init(&peer->held);
	get_random_bytes(peer->offer, sizeof(peer->offer));
	hash_add_rcu(keys->peers, &peer->link, medge_mac_hash(l2->dmac));
	keys->npeers++;
	return peer;
}

static struct medge_session *locked(struct medge_keys *keys,
				    struct medge_session __rcu *s)
{
	return rcu_dereference_protected(s, lockdep_is_held(&keys->lock));
}

/* Under keys.change, which the work is under, and keys.lock. */
static void remove_peer(struct medge_keys *keys, struct keys_peer *peer)
{
	hash_del_rcu(&peer->link);
	keys->npeers--;
	__skb_queue_purge(&peer->held);
	medge_session_free(locked(keys, peer->now));
	medge_session_free(locked(keys, peer->last));
	medge_session_free(locked(keys, peer->next));
	kfree_rcu(peer, rcu);
}

/* All; or those only that there is no session with. Under keys.change. */
static void remove_peers(struct medge_keys *keys, bool all)
{
	struct hlist_node *next;
	struct keys_peer *peer;
	int i;

	hash_for_each_safe(keys->peers, i, next, peer, link)
		if (all || !(rcu_access_pointer(peer->now) ||
			     rcu_access_pointer(peer->next)))
			remove_peer(keys, peer);
}

/* ---- messages ---- */

/* Under keys.lock. NULL: no memory. */
static struct sk_buff *message(struct medge_device *dev,
			       const struct keys_peer *peer, u8 flags,
			       const u8 *nonce, const u8 *echo)
{
	struct medge_keys_hdr kh = {
		.ver_type = MEDGE_WIRE_VERSION << 4 | MEDGE_FRAME_KEYS,
		.flags = flags,
	};
	struct sk_buff *skb = alloc_skb(HEADROOM + sizeof(kh), GFP_ATOMIC);

	if (!skb)
		return NULL;
	skb_reserve(skb, HEADROOM);
	skb->ip_summed = CHECKSUM_UNNECESSARY;
	memcpy(kh.nonce, nonce, sizeof(kh.nonce));
	if (echo)
		memcpy(kh.echo, echo, sizeof(kh.echo));
	make_tag(dev->keys.root, dev->netdev->dev_addr, peer->l2.dmac, &kh,
		 kh.tag);
	skb_put_data(skb, &kh, sizeof(kh));
	return skb;
}

/* Under keys.lock. NULL: it was asked just now. */
static struct sk_buff *question(struct medge_device *dev, struct keys_peer *peer)
{
	u64 now = ktime_get_ns();

	if (peer->asked_at && now - peer->asked_at < ASK_AGAIN_NS)
		return NULL;
	peer->asked_at = now;
	return message(dev, peer, 0, peer->offer, NULL);
}

/* RCU read side, BHs off. */
static void send(struct medge_device *dev, u32 rail, const struct medge_l2 *to,
		 struct sk_buff *skb)
{
	if (skb)
		medge_rail_xmit_clear(dev, rail, to, skb);
}

/* The peer has the session. Under keys.lock; @held is to be sent then. */
static void promote(struct medge_keys *keys, struct keys_peer *peer,
		    struct sk_buff_head *held)
{
	struct medge_session *s = locked(keys, peer->next);

	medge_session_free(locked(keys, peer->last));
	rcu_assign_pointer(peer->last, locked(keys, peer->now));
	rcu_assign_pointer(peer->now, s);
	RCU_INIT_POINTER(peer->next, NULL);
	skb_queue_splice_tail_init(&peer->held, held);
}

/* ---- frames ---- */

static bool is_datagram(const struct sk_buff *skb)
{
	const struct medge_frame_hdr *fh = (const void *)skb->data;

	return (fh->ver_type & 15) == MEDGE_FRAME_DATAGRAM;
}

/* Under keys.lock. The newest are kept. */
static void hold(struct keys_peer *peer, u32 rail, struct sk_buff *skb)
{
	if (skb_queue_len(&peer->held) == MAX_HELD)
		kfree_skb(__skb_dequeue(&peer->held));
	*medge_tx_cb(skb) = (struct medge_tx_cb) {
		.l2 = peer->l2,
		.rail = rail,
	};
	__skb_queue_tail(&peer->held, skb_get(skb));
}

static void ask(struct medge_rail *rail, const struct medge_l2 *to,
		struct sk_buff *waits)
{
	struct medge_keys *keys = &rail->dev->keys;
	struct sk_buff *skb = NULL;
	struct keys_peer *peer;

	spin_lock_bh(&keys->lock);
	peer = keys->set ? find_or_add(rail->dev, to) : NULL;
	if (peer && waits && is_datagram(waits))
		hold(peer, rail->index, waits);
	if (peer)
		skb = question(rail->dev, peer);
	spin_unlock_bh(&keys->lock);
	send(rail->dev, rail->index, to, skb);
}

int medge_keys_seal(struct medge_rail *rail, const struct medge_l2 *to,
		    struct sk_buff *skb, u32 frames, u32 headroom)
{
	struct medge_session *s = NULL;
	struct keys_peer *peer;
	u32 len = skb->len;

	/* Its members share no key. */
	if (is_multicast_ether_addr(to->dmac))
		return -EOPNOTSUPP;
	/* Of a connection that is older than the secret. */
	if (frames > 1)
		len = MEDGE_HDR_LEN + skb_shinfo(skb)->gso_size;
	if (len + MEDGE_SECRET_LEN > READ_ONCE(rail->netdev->mtu))
		return -EMSGSIZE;
	peer = find(rail->dev, to->dmac, to->vlan);
	if (peer)
		s = rcu_dereference(peer->now);
	if (!s) {
		medge_count(rail->dev, tx_no_key);
		ask(rail, to, skb);
		return -ENOKEY;
	}
	if (unlikely(medge_session_is_old(s, rail->index)))
		ask(rail, to, NULL);
	return medge_session_seal(s, rail->index, skb, frames, headroom);
}

/* Whoever it is: that there is no such key here is all he is told, and rarely. */
static void answer_unknown(struct medge_rail *rail,
			   const struct medge_rx_l2 *l2, bool stranger)
{
	struct medge_l2 to = { .vlan = l2->vlan };
	u64 now = ktime_get_ns(), *at = &rail->dev->keys.strangers_at;

	medge_count(rail->dev, rx_no_key);
	if (l2->multicast)
		return;
	if (stranger) {
		if (now - READ_ONCE(*at) < STRANGERS_NS)
			return;
		WRITE_ONCE(*at, now);
	}
	ether_addr_copy(to.dmac, l2->smac);
	ask(rail, &to, NULL);
}

static struct medge_session *session_of(struct keys_peer *peer, __be32 id)
{
	struct medge_session *s;

	s = rcu_dereference(peer->now);
	if (s && s->rx_id == id)
		return s;
	s = rcu_dereference(peer->next);
	if (s && s->rx_id == id)
		return s;
	s = rcu_dereference(peer->last);
	return s && s->rx_id == id ? s : NULL;
}

/* A frame came with it: the peer has it. */
static void taken_up(struct medge_device *dev, struct keys_peer *peer,
		     struct medge_session *s)
{
	struct sk_buff_head held;

	if (likely(rcu_access_pointer(peer->next) != s))
		return;
	__skb_queue_head_init(&held);
	spin_lock_bh(&dev->keys.lock);
	if (rcu_access_pointer(peer->next) == s)
		promote(&dev->keys, peer, &held);
	spin_unlock_bh(&dev->keys.lock);
	medge_batch_xmit(dev, &held);
}

bool medge_keys_open(struct medge_rail *rail, struct sk_buff *skb,
		     const struct medge_rx_l2 *l2)
{
	struct medge_device *dev = rail->dev;
	const struct medge_secret_hdr *seal;
	struct medge_session *s = NULL;
	struct keys_peer *peer;

	if (!pskb_may_pull(skb, sizeof(*seal))) {
		medge_count_drop(dev, MEDGE_DROP_RUNT);
		return false;
	}
	seal = (const void *)skb->data;
	peer = find(dev, l2->smac, l2->vlan);
	if (peer)
		s = session_of(peer, get_unaligned(&seal->session));
	if (!s) {
		answer_unknown(rail, l2, !peer);
		return false;
	}
	switch (medge_session_open(s, skb)) {
	case MEDGE_OPENED:
		taken_up(dev, peer, s);
		return true;
	case MEDGE_OPENED_BAD:
		medge_count(dev, rx_bad_seal);
		return false;
	case MEDGE_OPENED_REPLAYED:
		medge_count(dev, rx_replayed);
		return false;
	default:
		medge_count(dev, rx_no_memory);
		return false;
	}
}

/* ---- what peers tell ---- */

void medge_keys_receive(struct medge_rail *rail, struct sk_buff *skb,
			const struct medge_rx_l2 *l2)
{
	struct medge_keys *keys = &rail->dev->keys;

	/* As many as are under way at once, of all that are not made up. */
	if (!medge_keys_set(keys) || l2->multicast ||
	    skb_queue_len_lockless(&keys->heard) >= MAX_HEARD ||
	    !pskb_may_pull(skb, MEDGE_KEYS_LEN)) {
		medge_count(rail->dev, rx_bad_keys);
		return;
	}
	skb = skb_clone(skb, GFP_ATOMIC);
	if (!skb) {
		medge_count(rail->dev, rx_no_memory);
		return;
	}
	/* Where an answer goes. */
	ether_addr_copy(medge_tx_cb(skb)->l2.dmac, l2->smac);
	medge_tx_cb(skb)->l2.vlan = l2->vlan;
	medge_tx_cb(skb)->rail = rail->index;
	skb_queue_tail(&keys->heard, skb);
	schedule_work(&keys->work);
}

/* Under keys.change. */
static struct medge_session *make_session(struct medge_device *dev,
					  const struct keys_peer *peer,
					  const u8 *mine, const u8 *theirs)
{
	struct medge_session_key tx, rx;
	struct medge_session *s;
	struct key_info info;

	ether_addr_copy(info.from, dev->netdev->dev_addr);
	ether_addr_copy(info.to, peer->l2.dmac);
	memcpy(info.from_nonce, mine, MEDGE_NONCE_LEN);
	memcpy(info.to_nonce, theirs, MEDGE_NONCE_LEN);
	make_key(dev->keys.root, &info, &tx);
	ether_addr_copy(info.from, peer->l2.dmac);
	ether_addr_copy(info.to, dev->netdev->dev_addr);
	memcpy(info.from_nonce, theirs, MEDGE_NONCE_LEN);
	memcpy(info.to_nonce, mine, MEDGE_NONCE_LEN);
	make_key(dev->keys.root, &info, &rx);
	s = medge_session_new(&tx, &rx);
	memzero_explicit(&tx, sizeof(tx));
	memzero_explicit(&rx, sizeof(rx));
	if (IS_ERR(s))
		return NULL;
	memcpy(s->mine, mine, sizeof(s->mine));
	memcpy(s->theirs, theirs, sizeof(s->theirs));
	return s;
}

static bool is_of(const struct medge_session *s, const struct medge_keys_hdr *kh)
{
	return s && !memcmp(s->mine, kh->echo, sizeof(s->mine)) &&
	       !memcmp(s->theirs, kh->nonce, sizeof(s->theirs));
}

/* The session that a message is about. Under keys.lock. */
static bool is_known(struct medge_keys *keys, const struct keys_peer *peer,
		     const struct medge_keys_hdr *kh)
{
	return is_of(locked(keys, peer->now), kh) ||
	       is_of(locked(keys, peer->next), kh) ||
	       is_of(locked(keys, peer->last), kh);
}

/* An offer is taken. Under keys.lock. */
static void install(struct medge_device *dev, struct keys_peer *peer,
		    struct medge_session *s)
{
	medge_session_free(locked(&dev->keys, peer->next));
	rcu_assign_pointer(peer->next, s);
	get_random_bytes(peer->offer, sizeof(peer->offer));
	medge_count(dev, keys_agreed);
}

/* What to answer. Under keys.lock. */
static struct sk_buff *answer(struct medge_device *dev, struct keys_peer *peer,
			      const struct medge_keys_hdr *kh,
			      struct medge_session *made,
			      struct sk_buff_head *held)
{
	bool installed = kh->flags & MEDGE_KEYS_INSTALLED;
	u64 now = ktime_get_ns();

	if (made)
		install(dev, peer, made);
	if (is_known(&dev->keys, peer, kh)) {
		if (installed && is_of(locked(&dev->keys, peer->next), kh))
			promote(&dev->keys, peer, held);
		if (installed && !made)
			return NULL;
		return message(dev, peer, MEDGE_KEYS_INSTALLED, kh->echo,
			       kh->nonce);
	}
	/* Something old that somebody repeats looks the same as a beginning. */
	if (now - peer->replied_at < REPLY_AGAIN_NS)
		return NULL;
	peer->replied_at = now;
	return message(dev, peer, 0, peer->offer, kh->nonce);
}

/* Under keys.change: nobody else changes the secret, or frees a peer. */
static void hear(struct medge_device *dev, struct sk_buff *skb)
{
	const struct medge_keys_hdr *kh = (const void *)skb->data;
	const struct medge_tx_cb cb = *medge_tx_cb(skb);
	struct medge_session *made = NULL;
	struct sk_buff *reply = NULL;
	struct sk_buff_head held;
	struct keys_peer *peer;
	u8 tag[MEDGE_TAG_LEN];
	bool offered;

	__skb_queue_head_init(&held);
	make_tag(dev->keys.root, cb.l2.dmac, dev->netdev->dev_addr, kh, tag);
	local_bh_disable();
	if (!dev->keys.set || crypto_memneq(tag, kh->tag, sizeof(tag)) ||
	    kh->flags & ~MEDGE_KEYS_FLAGS || kh->reserved) {
		medge_count(dev, rx_bad_keys);
		local_bh_enable();
		return;
	}
	spin_lock(&dev->keys.lock);
	peer = find_or_add(dev, &cb.l2);
	/* Only we change it. */
	offered = peer && !memcmp(peer->offer, kh->echo, sizeof(kh->echo));
	spin_unlock(&dev->keys.lock);
	local_bh_enable();
	if (!peer)
		return;
	if (offered) {
		made = make_session(dev, peer, kh->echo, kh->nonce);
		if (!made)
			return;
	}
	rcu_read_lock();
	spin_lock_bh(&dev->keys.lock);
	reply = answer(dev, peer, kh, made, &held);
	spin_unlock_bh(&dev->keys.lock);
	local_bh_disable();
	send(dev, cb.rail, &peer->l2, reply);
	medge_batch_xmit(dev, &held);
	local_bh_enable();
	rcu_read_unlock();
}

static void go_through(struct work_struct *work)
{
	struct medge_keys *keys = container_of(work, struct medge_keys, work);
	struct medge_device *dev = container_of(keys, struct medge_device, keys);
	struct sk_buff *skb;

	mutex_lock(&keys->change);
	spin_lock_bh(&keys->lock);
	if (keys->npeers == MAX_PEERS)
		remove_peers(keys, false);
	spin_unlock_bh(&keys->lock);
	while ((skb = skb_dequeue(&keys->heard))) {
		hear(dev, skb);
		consume_skb(skb);
	}
	mutex_unlock(&keys->change);
}

/* ---- the secret ---- */

int medge_keys_secret(struct medge_device *dev, const void *secret, u32 len)
{
	struct medge_keys *keys = &dev->keys;
	u8 root[MEDGE_KEY_LEN] = {};
	int err = medge_session_probe();

	if (err)
		return err;
	if (len)
		make_root(secret, len, root);
	mutex_lock(&keys->change);
	spin_lock_bh(&keys->lock);
	remove_peers(keys, true);
	memcpy(keys->root, root, sizeof(keys->root));
	WRITE_ONCE(keys->set, len);
	spin_unlock_bh(&keys->lock);
	mutex_unlock(&keys->change);
	memzero_explicit(root, sizeof(root));
	return 0;
}

void medge_keys_init(struct medge_device *dev)
{
	struct medge_keys *keys = &dev->keys;

	mutex_init(&keys->change);
	INIT_WORK(&keys->work, go_through);
	skb_queue_head_init(&keys->heard);
	spin_lock_init(&keys->lock);
	hash_init(keys->peers);
}

void medge_keys_destroy(struct medge_device *dev)
{
	struct medge_keys *keys = &dev->keys;

	cancel_work_sync(&keys->work);
	skb_queue_purge(&keys->heard);
	spin_lock_bh(&keys->lock);
	remove_peers(keys, true);
	spin_unlock_bh(&keys->lock);
	mutex_destroy(&keys->change);
	memzero_explicit(keys->root, sizeof(keys->root));
}
