// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Acknowledgements, both ways: cumulative, selective, of performed ops, and
 * refusals. When one is due: with any data, when asked (see reply.c), after some
 * frames or some time (MultiEdge 2.1.2), and at once for a hole that every
 * rail has passed (a negative ack).
 */
#include "state.h"

/* A rail counts in the search for holes if it has carried something lately. */
enum { RAIL_RECENT_NS = 2 * MEDGE_MSEC };

/* RNR NAK timer codes in units of 10 us (IBTA table 45). */
static const u32 rnr_timers[32] = {
	65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384,
	512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576,
	32768, 49152,
};

/* ---- what we say ---- */

static u64 received_from(const struct medge_conn *c, u32 psn)
{
	u32 word = medge_bit_word(psn), shift = psn % 64;
	u64 bits = c->received[word] >> shift;

	if (shift)
		bits |= c->received[(word + 1) % MEDGE_BITMAP_WORDS] << (64 - shift);
	return bits;
}

void medge_ack_fill(struct medge_conn *c, struct medge_frame *f)
{
	f->ack_psn = c->rcv_nxt;
	f->ack_op = c->rop_next;
	if (!medge_seq_before(c->rcv_nxt, c->rcv_high))
		return;
	/* 64 frames fit: those around the latest are news. */
	if (medge_seq_before(c->rcv_nxt, c->rcv_latest))
		f->sack_base = (c->rcv_latest - c->rcv_nxt) / 64 * 64;
	f->sack = received_from(c, c->rcv_nxt + f->sack_base);
}

void medge_ack_path(struct medge_conn *c, u32 rail, const struct medge_frame *f)
{
	struct medge_conn_rail *r = medge_rx_rail(c, rail);

	if (f->flags & MEDGE_FRAME_MARKED)
		c->marked_rails |= 1ULL << rail;
	if (f->flags & MEDGE_FRAME_ECHO) {
		r->echo_psn = f->psn + f->nframes - 1;
		c->echo_rails |= 1ULL << rail;
	}
}

void medge_ack_fill_echo(struct medge_conn *c, struct medge_frame *f)
{
	u32 rail;

	if (!c->echo_now)
		return;
	c->echo_now = false;
	rail = __ffs64(c->echo_rails);
	c->echo_rails &= c->echo_rails - 1;
	f->psn = medge_rx_rail(c, rail)->echo_psn;
	f->flags |= MEDGE_FRAME_ECHO;
	if (c->marked_rails & 1ULL << rail)
		f->flags |= MEDGE_FRAME_MARKED;
	c->marked_rails &= ~(1ULL << rail);
}

u32 medge_ack_words(const struct medge_conn *c)
{
	/* Without a hole there is nothing more to say. */
	if (!medge_seq_before(c->rcv_nxt, c->rcv_high))
		return 0;
	return DIV_ROUND_UP(c->rcv_high - c->rcv_nxt, 64);
}

void medge_ack_fill_ext(struct medge_conn *c, struct medge_ack *ack)
{
	u32 i;

	memset(ack, 0, offsetof(struct medge_ack, bitmap));
	if (c->refused) {
		ack->nak = c->refuse_nak;
		ack->nak_op = c->refuse_op;
	} else if (c->rcv_rnr) {
		ack->nak = MEDGE_NAK_RNR;
		ack->nak_op = c->rop_next;
		ack->rnr_timer = c->cfg.rnr_timer;
		ack->nak_seq = c->rnr_nak_seq;
		c->stats.rnr_naks_sent++;
	}
	ack->dups = c->stats.dups;
	ack->poke_seq = c->rnr_seq;
	ack->words = medge_ack_words(c);
	for (i = 0; i < ack->words; i++)
		ack->bitmap[i] = received_from(c, c->rcv_nxt + 64 * i);
	c->stats.tx_acks++;
	if (c->nack_now)
		c->stats.tx_nacks++;
}

void medge_ack_sent(struct medge_conn *c, bool explicit_ack)
{
	/* What data carries has room for 64 frames of the window, and for no refusal. */
	if (explicit_ack || c->rcv_high - c->rcv_nxt <= 64) {
		c->ack_pending = 0;
		c->ack_at = MEDGE_NEVER;
		c->ack_now &= c->refused || c->rcv_rnr;
	}
	if (explicit_ack) {
		c->nack_now = false;
		c->ack_now = false;
		c->ack_word = false;
		/* A poke goes out on each path: one of them may live. */
		if (c->poke_paths && --c->poke_paths) {
			c->ack_doubt = true;
			return;
		}
		c->poke_now = false;
		c->rnr_poke = false;
	}
}

/* The oldest frame that is missing, if all rails in use have passed it. */
static bool find_hole(struct medge_conn *c, u64 now, u32 *hole)
{
	u32 psn = c->rcv_nxt, i;

	if (medge_bit(c->received, psn))
		psn += medge_bits_alike(c->received, psn, MEDGE_WINDOW);
	if (!medge_seq_before(psn, c->rcv_high))
		return false;
	for (i = 0; i < c->nrails; i++) {
		const struct medge_conn_rail *r = medge_rx_rail(c, i);

		if (r->rx_time && now - r->rx_time < RAIL_RECENT_NS &&
		    medge_seq_before(r->rx_high, psn))
			return false;
	}
	*hole = psn;
	return true;
}

bool medge_ack_heard(const struct medge_conn *c, u64 since)
{
	u32 i;

	for (i = 0; i < c->nrails; i++)
		if (medge_rx_rail(c, i)->rx_time > since)
			return true;
	return false;
}

/* So far from what may come that it is no older or newer than that. */
static bool is_old(const struct medge_conn *c, u32 psn)
{
	return psn - c->rcv_nxt + MEDGE_WINDOW >= 2 * MEDGE_WINDOW;
}

void medge_ack_received(struct medge_conn *c, u64 now, u32 rail, u32 high,
			u32 bytes)
{
	struct medge_conn_rail *r = medge_rx_rail(c, rail);
	u8 path = c->rail_path[rail];
	u32 hole;

	if (path != MEDGE_PATH_UNKNOWN)
		medge_cong_returned(&c->paths[path].cong, bytes);

	c->nrails = max(c->nrails, rail + 1);
	if (!r->rx_time || is_old(c, r->rx_high) ||
	    medge_seq_before(r->rx_high, high))
		r->rx_high = high;
	r->rx_time = max_t(u64, now, 1);
	c->ack_rail = rail;
	c->rcv_latest = high;
	if (medge_seq_before(c->rcv_high, high + 1))
		c->rcv_high = high + 1;
	if (c->any_nacked && medge_seq_before(c->nacked, c->rcv_nxt))
		c->any_nacked = false;
	if (find_hole(c, now, &hole) &&
	    (!c->any_nacked || medge_seq_before(c->nacked, hole))) {
		c->nacked = hole;
		c->any_nacked = true;
		c->nack_now = true;
	}
}

void medge_ack_due(struct medge_conn *c, u64 now, const struct medge_rx *rx)
{
	if (!c->ack_pending)
		c->ack_at = now + c->cfg.ack_delay_ns;
	/* A run that was not cut is one: an ack costs us and the peer as much as that. */
	c->ack_pending = min_t(u32, c->ack_pending + rx->parts, 65535);
	if (rx->flags & MEDGE_FRAME_ACK_REQ && !c->ack_now)
		medge_reply_asked(c);
	if (c->ack_pending >= c->cfg.ack_frames)
		c->ack_now = true;
}

/* ---- what we are told ---- */

/*
 * @n frames that are alike.
 * @whole: the ack says of every frame before them whether it was received.
 * The SACK that data carries has room for 64: those before them are not
 * missing, they are not mentioned, and nothing may be held against them.
 */
static bool acked(struct medge_conn *c, u64 now, u32 psn, u32 n, bool whole)
{
	bool news = !(medge_sent(c, psn)->flags & MEDGE_SENT_ACKED);

	if (news)
		medge_loss_acked(c, psn, n);
	if (whole)
		medge_loss_accounted(c, psn + n - 1, now);
	return news;
}

static bool acked_bits(struct medge_conn *c, u64 now, u32 psn, u64 bits,
		       bool whole)
{
	bool news = false;

	for (; bits; bits &= bits - 1) {
		u32 at = psn + __ffs64(bits);

		if (at - c->snd_una < c->snd_nxt - c->snd_una)
			news |= acked(c, now, at, 1, whole);
	}
	return news;
}

static bool acked_frames(struct medge_conn *c, u64 now,
			 const struct medge_frame *f,
			 const struct medge_ack *ack)
{
	bool news = medge_seq_before(c->snd_una, f->ack_psn);
	u32 i, n;

	for (; medge_seq_before(c->snd_una, f->ack_psn); c->snd_una += n) {
		n = medge_loss_alike(c, c->snd_una, f->ack_psn - c->snd_una);
		acked(c, now, c->snd_una, n, true);
	}
	if (!ack)
		return acked_bits(c, now, f->ack_psn + f->sack_base, f->sack,
				  !f->sack_base) || news;
	for (i = 0; i < ack->words; i++)
		news |= acked_bits(c, now, f->ack_psn + 64 * i, ack->bitmap[i],
				   true);
	return news;
}

static void refused_rnr(struct medge_conn *c, u64 now,
			const struct medge_ack *ack)
{
	if (c->rnr_wait && c->rnr_seq == ack->nak_seq && c->rnr_op == ack->nak_op)
		return;
	c->stats.rnr_naks_received++;
	if (!c->rnr_wait || c->rnr_op != ack->nak_op)
		c->rnr_count = 0;
	c->rnr_wait = true;
	c->rnr_poked = false;
	c->rnr_op = ack->nak_op;
	c->rnr_seq = ack->nak_seq;
	if (c->cfg.rnr_retry < 7 && c->rnr_count >= c->cfg.rnr_retry) {
		medge_conn_fail_op(c, ack->nak_op, MEDGE_RNR_RETRY_EXCEEDED);
		return;
	}
	c->rnr_count++;
	c->rnr_at = now + rnr_timers[ack->rnr_timer] * 10ULL * MEDGE_USEC;
}

static void refused(struct medge_conn *c, u64 now, const struct medge_ack *ack)
{
	if (c->dead || ack->nak_op - c->op_oldest >= c->op_next - c->op_oldest)
		return;
	if (ack->nak == MEDGE_NAK_RNR) {
		refused_rnr(c, now, ack);
		return;
	}
	c->nak = ack->nak;
	c->nak_op = ack->nak_op;
}

/*
 * How long our frame's way took, and its answer's: by the same path, unless what the
 * peer received it on leads elsewhere. A switch leads to where it saw an address last,
 * and the rails of a bond have one: then answers come now by this rail, now by that.
 */
static void echoed(struct medge_conn *c, u64 now, const struct medge_frame *f)
{
	const struct medge_sent *s = medge_sent(c, f->psn);
	struct medge_conn_path *path = &c->paths[s->path];
	struct medge_cong *g = &path->cong;

	/* Its slot must not be another's yet, nor the answer one to another copy. */
	if (c->snd_nxt - f->psn - 1 > c->sent.mask || !s->time ||
	    s->flags & MEDGE_SENT_AGAIN || !(s->flags & MEDGE_SENT_ECHO))
		return;
	if (f->flags & MEDGE_FRAME_MARKED)
		medge_cong_marked(g);
	medge_cong_measured(g, now, s->time, now - s->time,
			    c->acks_on == path->rail);
}

/* What the peer asks of us stands, however old its ack is. */
static void asked(struct medge_conn *c, const struct medge_frame *f,
		  const struct medge_ack *ack)
{
	bool heard = false;

	c->stats.rx_acks++;
	if (f->flags & MEDGE_FRAME_NACK)
		c->stats.rx_nacks++;
	if (f->flags & MEDGE_FRAME_RNR_POKE)
		heard = medge_recvq_poked(c, ack->poke_seq);
	if (f->flags & MEDGE_FRAME_ACK_REQ && !heard) {
		c->ack_word = true;
		/* it would not ask if all our acks had reached it */
		c->ack_doubt = true;
		medge_share_doubt(c, c->ack_last_path);
	}
}

/* What it says of itself must be its latest word. */
static void explicit_ack(struct medge_conn *c, u64 now,
			 const struct medge_ack *ack)
{
	s32 dups = ack->dups - c->peer_dups;

	/* Acks that say the same but for that have no order. */
	if (dups > 0)
		c->peer_dups = ack->dups;
	medge_loss_spurious(c, now, max(dups, 0));
	if (ack->nak)
		refused(c, now, ack);
	else
		c->rnr_wait = false;
	/*
	 * Whoever answers is alive, even if there was nothing to say; or if
	 * what it has not got cannot go yet. Who has refused a request owes the
	 * answers to those before it: they are its signs of life.
	 */
	if ((!c->nunacked && !c->nak) || c->waits) {
		c->progress = now;
		c->backoff = 0;
	}
}

enum medge_drop medge_ack_process(struct medge_conn *c, u64 now,
				  const struct medge_frame *f,
				  const struct medge_ack *ack)
{
	bool news;

	medge_conn_start_at(c, f->ack_psn);
	/* Beyond what we sent: a lie. Before that it may be old. */
	if (medge_seq_before(c->snd_nxt, f->ack_psn) ||
	    medge_seq_before(c->op_next, f->ack_op))
		return MEDGE_DROP_ACK;
	if (ack)
		asked(c, f, ack);
	news = acked_frames(c, now, f, ack);
	if (medge_seq_before(c->op_performed, f->ack_op)) {
		c->op_performed = f->ack_op;
		news = true;
		if (c->rnr_wait && medge_seq_before(c->rnr_op, f->ack_op))
			c->rnr_wait = false;
	}
	/* An ack that was overtaken must not take back what its successor said. */
	if (ack && f->ack_psn == c->snd_una && f->ack_op == c->op_performed)
		explicit_ack(c, now, ack);
	if (ack && f->flags & MEDGE_FRAME_ECHO)
		echoed(c, now, f);
	if (news) {
		c->progress = now;
		c->backoff = 0;
		c->grace = 0;
		c->probed = false;
		medge_loss_news(c, now);
	} else if (ack) {
		medge_loss_answered(c, now);
	}
	medge_request_complete(c);
	if (c->recheck)
		medge_recvq_advance(c);
	return MEDGE_DROP_NONE;
}
