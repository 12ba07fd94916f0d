// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Sessions: frames are encrypted and authenticated with AES-256-GCM of the kernel's
 * crypto API, where they leave the host and where they come in. A frame alone is
 * encrypted all of it; of a superframe, the headers are left clear, but
 * authenticated as the frames would have them, since whoever cuts it has no key.
 *
 * A replay is refused by the frame's number, which is its nonce as well: never the
 * same twice under one key, and seen at most once.
 */
#include <crypto/aead.h>
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/skbuff.h>
#include <linux/slab.h>

#include "compat.h"
#include "seal.h"
#include "session.h"

enum {
	IV_LEN = 12,
	IV_ZEROS = 4,
	HEAD_LEN = offsetof(struct medge_secret_hdr, tag),
	RAIL_SHIFT = 56,
	/* Another key is asked for, and no frame leaves any more. */
	OLD_AFTER = 1 << 18,
};

#define LAST_NUMBER BIT_ULL(40)
#define COUNT_MASK (BIT_ULL(RAIL_SHIFT) - 1)

/* For one frame after the other; not on the stack, which may be no DMA memory. */
struct job {
	struct aead_request *req;
	u8 aad[HEAD_LEN + MEDGE_HDR_LEN];
	u8 iv[IV_LEN];
	/* What is authenticated, the linear part, fragments, the tag. */
	struct scatterlist sg[MAX_SKB_FRAGS + 3];
};

/* ---- what the crypto API does; constant false where there is none ---- */

/* Not asynchronous: a frame's place in its rail's order would be lost. */
static struct crypto_aead *new_cipher(void)
{
	if (!medge_session_possible())
		return ERR_PTR(-EOPNOTSUPP);
	return crypto_alloc_aead("gcm(aes)", 0, CRYPTO_ALG_ASYNC);
}

static void free_cipher(struct crypto_aead *tfm)
{
	if (medge_session_possible() && !IS_ERR_OR_NULL(tfm))
		crypto_free_aead(tfm);
}

static struct crypto_aead *cipher_of(const struct medge_session_key *key)
{
	struct crypto_aead *tfm = new_cipher();
	int err;

	if (IS_ERR(tfm) || !medge_session_possible())
		return tfm;
	err = crypto_aead_setkey(tfm, key->key, sizeof(key->key));
	if (!err)
		err = crypto_aead_setauthsize(tfm, MEDGE_TAG_LEN);
	if (!err)
		return tfm;
	free_cipher(tfm);
	return ERR_PTR(err);
}

static struct job *new_job(struct crypto_aead *tfm)
{
	struct job *job;

	if (!medge_session_possible())
		return NULL;
	job = kmalloc(sizeof(*job), GFP_ATOMIC);
	if (!job)
		return NULL;
	job->req = aead_request_alloc(tfm, GFP_ATOMIC);
	if (!job->req) {
		kfree(job);
		return NULL;
	}
	aead_request_set_callback(job->req, 0, NULL, NULL);
	return job;
}

static void free_job(struct job *job)
{
	aead_request_free(job->req);
	kfree(job);
}

static int crypt(struct job *job, u32 ad_len, u32 len, bool encrypt)
{
	if (!medge_session_possible())
		return -EOPNOTSUPP;
	aead_request_set_ad(job->req, ad_len);
	aead_request_set_crypt(job->req, job->sg, job->sg,
			       encrypt ? len : len + MEDGE_TAG_LEN, job->iv);
	return encrypt ? crypto_aead_encrypt(job->req) :
			 crypto_aead_decrypt(job->req);
}

int medge_session_probe(void)
{
	struct crypto_aead *tfm = new_cipher();

	if (IS_ERR(tfm))
		return -EOPNOTSUPP;
	free_cipher(tfm);
	return 0;
}

/* ---- frames ---- */

/* What is authenticated of a frame but not encrypted. Return: bytes. */
static u32 set_ad(struct job *job, const struct sk_buff *skb,
		  const struct medge_secret_hdr *seal, u32 index, u32 frames)
{
	u8 *hdr = job->aad + HEAD_LEN;

	memcpy(job->aad, seal, HEAD_LEN);
	medge_seal_alone(job->aad, index);
	memset(job->iv, 0, IV_ZEROS);
	memcpy(job->iv + IV_ZEROS,
	       job->aad + offsetof(struct medge_secret_hdr, number),
	       IV_LEN - IV_ZEROS);
	if (!seal->clear)
		return HEAD_LEN;
	memcpy(hdr, skb->data, MEDGE_HDR_LEN);
	if (frames > 1)
		medge_wire_cut(hdr, index, frames);
	return HEAD_LEN + MEDGE_HDR_LEN;
}

/* Frame @index of those at skb->data, by the seal, which is elsewhere. */
static int crypt_frame(struct job *job, struct sk_buff *skb,
		       struct medge_secret_hdr *seal, u32 index, u32 frames,
		       bool encrypt)
{
	u32 ad_len = set_ad(job, skb, seal, index, frames);
	u32 from = seal->clear, len = skb->len - from;
	int n = 0;

	if (frames > 1) {
		u32 seg_len = medge_wire_seg_len(skb->data);

		from += index * seg_len;
		len = min(seg_len, skb->len - from);
	}
	sg_init_table(job->sg, ARRAY_SIZE(job->sg));
	sg_set_buf(&job->sg[0], job->aad, ad_len);
	if (len)
		n = skb_to_sgvec_nomark(skb, &job->sg[1], from, len);
	if (n < 0)
		return n;
	sg_set_buf(&job->sg[n + 1], seal->tag + index * MEDGE_TAG_LEN,
		   MEDGE_TAG_LEN);
	sg_mark_end(&job->sg[n + 1]);
	return crypt(job, ad_len, len, encrypt);
}

static int crypt_frames(struct crypto_aead *tfm, struct sk_buff *skb,
			struct medge_secret_hdr *seal, u32 frames, bool encrypt)
{
	struct job *job = new_job(tfm);
	int err = 0;
	u32 i;

	if (!job)
		return -ENOMEM;
	for (i = 0; i < frames && !err; i++)
		err = crypt_frame(job, skb, seal, i, frames, encrypt);
	free_job(job);
	return err;
}

static u64 rail_bits(u32 rail)
{
	return (u64)rail << RAIL_SHIFT;
}

bool medge_session_is_old(const struct medge_session *s, u32 rail)
{
	return atomic64_read(&s->next[rail]) > OLD_AFTER;
}

int medge_session_seal(struct medge_session *s, u32 rail, struct sk_buff *skb,
		       u32 frames, u32 headroom)
{
	u32 len = HEAD_LEN + frames * MEDGE_TAG_LEN;
	struct medge_secret_hdr *seal;
	u64 number;
	int err;

	/* It was made of its user's pages before we were to encrypt. */
	if (skb_has_shared_frag(skb) || skb_cloned(skb))
		return -EAGAIN;
	if (skb_cow_head(skb, headroom + len))
		return -ENOMEM;
	number = atomic64_fetch_add(frames, &s->next[rail]);
	if (number > LAST_NUMBER)
		return -EOVERFLOW;
	seal = (void *)(skb->data - len);
	seal->ver_type = MEDGE_WIRE_VERSION << 4 | MEDGE_FRAME_SECRET;
	seal->clear = frames > 1 ? MEDGE_HDR_LEN : 0;
	put_unaligned_be16(frames, &seal->frames);
	put_unaligned(s->tx_id, &seal->session);
	put_unaligned_be64(rail_bits(rail) | number, &seal->number);
	err = crypt_frames(s->tx, skb, seal, frames, true);
	if (!err)
		skb_push(skb, len);
	return err;
}

/* ---- replays ---- */

static bool is_new(const struct medge_seen *seen, u64 first, u32 n)
{
	u64 i;

	if (first + MEDGE_WINDOW < seen->end)
		return false;
	for (i = first; i < first + n && i < seen->end; i++)
		if (test_bit(i % MEDGE_WINDOW, seen->bits))
			return false;
	return true;
}

static void see(struct medge_seen *seen, u64 first, u32 n)
{
	u64 i, end = max(seen->end, first + n);

	/* What the window leaves behind makes place for what is new. */
	if (end - seen->end >= MEDGE_WINDOW)
		bitmap_zero(seen->bits, MEDGE_WINDOW);
	else
		for (i = seen->end; i < end; i++)
			__clear_bit(i % MEDGE_WINDOW, seen->bits);
	seen->end = end;
	for (i = first; i < first + n; i++)
		__set_bit(i % MEDGE_WINDOW, seen->bits);
}

/* None of them has been seen; @now: from now on they have. */
static bool unseen(struct medge_seen *seen, u64 first, u32 n, bool now)
{
	bool ok;

	spin_lock(&seen->lock);
	ok = is_new(seen, first, n);
	if (ok && now)
		see(seen, first, n);
	spin_unlock(&seen->lock);
	return ok;
}

/* Others may have a clone, and see what is decrypted in place. */
static bool make_own(struct sk_buff *skb)
{
	if (skb_has_frag_list(skb) && skb_linearize(skb))
		return false;
	if (!skb_cloned(skb) && !skb_has_shared_frag(skb))
		return true;
	return !skb_copy_ubufs(skb, GFP_ATOMIC);
}

enum medge_opened medge_session_open(struct medge_session *s,
				     struct sk_buff *skb)
{
	struct medge_secret_hdr *seal;
	struct medge_seen *seen;
	u64 number, first;
	u32 frames;
	int len;

	if (!make_own(skb))
		return MEDGE_OPENED_NO_MEMORY;
	len = medge_seal_len(skb);
	if (len <= 0)
		return MEDGE_OPENED_BAD;
	seal = (void *)skb->data;
	if (!pskb_may_pull(skb, len + seal->clear))
		return MEDGE_OPENED_BAD;
	frames = medge_seal_frames(skb->data);
	__skb_pull(skb, len);
	if (frames > 1 && !medge_seal_divides(skb, frames))
		return MEDGE_OPENED_BAD;

	seal = (void *)(skb->data - len);
	number = get_unaligned_be64(&seal->number);
	first = number & COUNT_MASK;
	if (number >> RAIL_SHIFT >= MEDGE_MAX_RAILS || first > LAST_NUMBER)
		return MEDGE_OPENED_BAD;
	seen = &s->seen[number >> RAIL_SHIFT];
	if (!unseen(seen, first, frames, false))
		return MEDGE_OPENED_REPLAYED;
	switch (crypt_frames(s->rx, skb, seal, frames, false)) {
	case 0:
		break;
	case -ENOMEM:
		return MEDGE_OPENED_NO_MEMORY;
	default:
		return MEDGE_OPENED_BAD;
	}
	return unseen(seen, first, frames, true) ? MEDGE_OPENED :
						   MEDGE_OPENED_REPLAYED;
}

/* ---- life ---- */

static void free_session(struct rcu_head *rcu)
{
	struct medge_session *s = container_of(rcu, struct medge_session, rcu);

	free_cipher(s->tx);
	free_cipher(s->rx);
	kvfree(s);
}

void medge_session_free(struct medge_session *s)
{
	if (s)
		call_rcu(&s->rcu, free_session);
}

struct medge_session *medge_session_new(const struct medge_session_key *tx,
					const struct medge_session_key *rx)
{
	struct medge_session *s = kvzalloc(sizeof(*s), GFP_KERNEL);
	int err, i;

	if (!s)
		return ERR_PTR(-ENOMEM);
	for (i = 0; i < MEDGE_MAX_RAILS; i++)
		spin_lock_init(&s->seen[i].lock);
	s->tx_id = tx->id;
	s->rx_id = rx->id;
	s->tx = cipher_of(tx);
	s->rx = cipher_of(rx);
	if (!IS_ERR(s->tx) && !IS_ERR(s->rx))
		return s;
	err = IS_ERR(s->tx) ? PTR_ERR(s->tx) : PTR_ERR(s->rx);
	free_session(&s->rcu);
	return ERR_PTR(err);
}
