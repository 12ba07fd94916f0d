/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The wire format: what goes in comes out, and nothing else comes in. */
#include <stdlib.h>

#include "direct.h"

static struct rng rng;

static struct medge_op random_op(u8 opcode, u32 op_len)
{
	return (struct medge_op){
		.opcode = opcode,
		.flags = rng_below(&rng, MEDGE_OP_FLAGS + 1),
		.op_no = rng_next(&rng),
		.op_len = op_len,
		.addr = rng_next(&rng),
		.rkey = rng_next(&rng),
		.imm = rng_next(&rng),
	};
}

static struct medge_frame random_frame(u8 nops, u16 seg_len)
{
	return (struct medge_frame){
		.type = MEDGE_FRAME_DATA,
		.flags = rng_below(&rng, 2) ? MEDGE_FRAME_ACK_REQ : 0,
		.nops = nops,
		.seg_len = seg_len,
		.qpn = rng_below(&rng, 1 << 24),
		.psn = rng_next(&rng),
		.ack_psn = rng_next(&rng),
		.ack_op = rng_next(&rng),
		.sack_base = rng_below(&rng, MEDGE_WINDOW + 1),
		.fence_dist = rng_below(&rng, MEDGE_OP_WINDOW + 1),
		.sack = rng_next(&rng),
	};
}

static void same_frame(const struct medge_frame *a, const struct medge_frame *b)
{
	CHECK_EQ(a->type, b->type);
	CHECK_EQ(a->flags, b->flags);
	CHECK_EQ(a->seg_len, b->seg_len);
	CHECK_EQ(a->qpn, b->qpn);
	CHECK_EQ(a->psn, b->psn);
	CHECK_EQ(a->ack_psn, b->ack_psn);
	CHECK_EQ(a->ack_op, b->ack_op);
	CHECK_EQ(a->sack_base, b->sack_base);
	CHECK_EQ(a->fence_dist, b->fence_dist);
	CHECK_EQ(a->sack, b->sack);
}

static void same_op(const struct medge_op *a, const struct medge_op *b)
{
	CHECK_EQ(a->opcode, b->opcode);
	CHECK_EQ(a->flags, b->flags);
	CHECK_EQ(a->len, b->len);
	CHECK_EQ(a->op_no, b->op_no);
	CHECK_EQ(a->op_len, b->op_len);
	CHECK_EQ(a->offset, b->offset);
	CHECK_EQ(a->addr, b->addr);
	CHECK_EQ(a->rkey, b->rkey);
	CHECK_EQ(a->imm, b->imm);
}

/* A run of @len bytes from @offset of an op of @op_len. */
static struct packet *run_packet(u32 op_len, u32 offset, u32 len, u16 seg_len)
{
	struct packet *p = packet_new(MEDGE_HDR_LEN + len);
	struct medge_frame f = random_frame(1, seg_len);
	struct medge_op op = random_op(MEDGE_OP_WRITE, op_len);

	op.offset = offset;
	op.len = len;
	p->nframes = DIV_ROUND_UP(len, seg_len);
	medge_wire_encode_frame(p->data, &f);
	medge_wire_encode_op(p->data + sizeof(struct medge_frame_hdr), &op);
	memcpy(p->data + MEDGE_HDR_LEN, noise, len);
	return p;
}

/* @nops small ops in one frame; lens[] are theirs */
static struct packet *several_packet(u8 nops, const u32 *lens,
				     struct medge_op *ops)
{
	struct packet *p = packet_new(9000);
	struct medge_frame f = random_frame(nops, 0);
	u32 at = medge_wire_headers(nops), i;

	memset(p->data, 0, p->len);
	medge_wire_encode_frame(p->data, &f);
	for (i = 0; i < nops; i++) {
		ops[i] = random_op(MEDGE_OP_WRITE, lens[i]);
		ops[i].len = lens[i];
		ops[i].op_no = ops[0].op_no + i;
		medge_wire_encode_op(p->data + medge_wire_headers(i), &ops[i]);
		at += lens[i];
	}
	p->len = at;
	return p;
}

static void decode__gives_what_was_encoded(void)
{
	u32 i;

	for (i = 0; i < 20000; i++) {
		u16 seg_len = rng_range(&rng, 1, 9000);
		struct medge_frame f = random_frame(1, seg_len), g;
		struct medge_op op = random_op(MEDGE_OP_WRITE, 0);
		u32 index = rng_below(&rng, 10);
		u8 buf[MEDGE_HDR_LEN + 9000];

		op.offset = index * seg_len;
		op.len = rng_range(&rng, 1, seg_len);
		op.op_len = op.offset + op.len;
		medge_wire_encode_frame(buf, &f);
		medge_wire_encode_op(buf + sizeof(struct medge_frame_hdr), &op);
		CHECK_EQ(medge_wire_decode(buf, MEDGE_HDR_LEN,
					   MEDGE_HDR_LEN + op.len, &g), 0);
		same_frame(&f, &g);
		same_op(&op, &g.op);
		CHECK_EQ(g.nops, 1);
		CHECK_EQ(g.nframes, 1);
		CHECK_EQ(g.op.data_off, MEDGE_HDR_LEN);
	}
}

static void decode__gives_the_ack_that_was_encoded(void)
{
	u32 i, w;

	for (i = 0; i < 1000; i++) {
		struct medge_frame f = random_frame(0, 0), g;
		u8 buf[MEDGE_ACK_MAX];
		struct medge_ack a = {
			.nak = rng_below(&rng, MEDGE_NAKS),
			.rnr_timer = rng_below(&rng, 32),
			.nak_seq = rng_next(&rng),
			.nak_op = rng_next(&rng),
			.dups = rng_next(&rng),
			.words = rng_below(&rng, MEDGE_ACK_WORDS + 1),
		}, b;
		u32 len = medge_wire_ack_len(a.words);

		f.type = MEDGE_FRAME_ACK;
		f.flags = rng_below(&rng, MEDGE_FRAME_FLAGS + 1);
		for (w = 0; w < a.words; w++)
			a.bitmap[w] = rng_next(&rng);
		memset(buf, 0xa5, sizeof(buf));
		medge_wire_encode_frame(buf, &f);
		medge_wire_encode_ack(buf + sizeof(struct medge_frame_hdr), &a);
		for (w = len; w < sizeof(buf); w++)
			CHECK_EQ(buf[w], 0xa5);
		CHECK_EQ(medge_wire_linear(buf, len, len), len);
		CHECK_EQ(medge_wire_decode(buf, len, len, &g), 0);
		same_frame(&f, &g);
		medge_wire_decode_ack(buf, &b);
		CHECK_EQ(a.nak, b.nak);
		CHECK_EQ(a.rnr_timer, b.rnr_timer);
		CHECK_EQ(a.nak_seq, b.nak_seq);
		CHECK_EQ(a.nak_op, b.nak_op);
		CHECK_EQ(a.dups, b.dups);
		CHECK_EQ(a.words, b.words);
		CHECK(!memcmp(a.bitmap, b.bitmap, 8 * a.words));
	}
}

static void decode__drops_an_ack_without_all_of_its_words(void)
{
	u8 *words;
	u32 i, len;

	for (i = 0; i < 1000; i++) {
		struct medge_frame f = random_frame(0, 0), g;
		struct medge_ack a = {
			.words = rng_below(&rng, MEDGE_ACK_WORDS + 1),
		};
		u8 buf[MEDGE_ACK_MAX] = {};

		f.type = MEDGE_FRAME_ACK;
		medge_wire_encode_frame(buf, &f);
		medge_wire_encode_ack(buf + sizeof(struct medge_frame_hdr), &a);
		len = sizeof(struct medge_frame_hdr) +
		      rng_below(&rng, medge_wire_ack_len(a.words) -
				      sizeof(struct medge_frame_hdr));
		CHECK_EQ(medge_wire_decode(buf, len, len, &g), MEDGE_DROP_RUNT);
		/* Ethernet may pad it, but there is an end to its words. */
		CHECK_EQ(medge_wire_decode(buf, sizeof(buf), sizeof(buf), &g), 0);
		words = buf + sizeof(struct medge_frame_hdr) +
			offsetof(struct medge_ack_hdr, words);
		*words = rng_range(&rng, MEDGE_ACK_WORDS + 1, 255);
		CHECK_EQ(medge_wire_decode(buf, sizeof(buf), sizeof(buf), &g),
			 MEDGE_DROP_LENGTH);
	}
}

static struct medge_datagram random_datagram(u16 len)
{
	struct medge_datagram dg = {
		.flags = rng_below(&rng, MEDGE_DATAGRAM_FLAGS + 1),
		.hop_limit = rng_next(&rng),
		.len = len,
		.qpn = rng_below(&rng, 1 << 24),
		.src_qpn = rng_below(&rng, 1 << 24),
		.qkey = rng_next(&rng),
		.imm = rng_next(&rng),
		.class_flow = rng_below(&rng, 1 << 28),
	};
	u32 i;

	for (i = 0; i < sizeof(dg.sgid); i++) {
		dg.sgid[i] = rng_next(&rng);
		dg.dgid[i] = rng_next(&rng);
	}
	return dg;
}

static void decode__gives_the_datagram_that_was_encoded(void)
{
	u32 i;

	for (i = 0; i < 1000; i++) {
		struct medge_datagram b, a = random_datagram(rng_below(&rng, 4097));
		u32 wire_len = MEDGE_DATAGRAM_LEN + a.len;
		u8 buf[MEDGE_DATAGRAM_LEN];
		struct medge_frame f;

		medge_wire_encode_datagram(buf, &a);
		CHECK_EQ(medge_wire_linear(buf, sizeof(buf), wire_len),
			 MEDGE_DATAGRAM_LEN);
		CHECK_EQ(medge_wire_decode(buf, sizeof(buf), wire_len, &f),
			 MEDGE_DROP_NONE);
		CHECK_EQ(f.type, MEDGE_FRAME_DATAGRAM);
		CHECK_EQ(f.qpn, a.qpn);
		medge_wire_decode_datagram(buf, &b);
		CHECK_EQ(b.flags, a.flags);
		CHECK_EQ(b.hop_limit, a.hop_limit);
		CHECK_EQ(b.len, a.len);
		CHECK_EQ(b.qpn, a.qpn);
		CHECK_EQ(b.src_qpn, a.src_qpn);
		CHECK_EQ(b.qkey, a.qkey);
		CHECK_EQ(b.imm, a.imm);
		CHECK_EQ(b.class_flow, a.class_flow);
		CHECK(!memcmp(b.sgid, a.sgid, sizeof(b.sgid)));
		CHECK(!memcmp(b.dgid, a.dgid, sizeof(b.dgid)));
	}
}

static void next_op__finds_each(void)
{
	static const u32 lens[] = { 0, 1, 7, 8, 9, 0, 63, 64 };
	u32 at = medge_wire_headers(ARRAY_SIZE(lens));
	struct medge_op ops[ARRAY_SIZE(lens)], op;
	struct packet *p = several_packet(ARRAY_SIZE(lens), lens, ops);
	struct medge_frame f;
	u32 i;

	CHECK_EQ(medge_wire_linear(p->data, MEDGE_HDR_LEN, p->len), at);
	CHECK_EQ(medge_wire_decode(p->data, at, p->len, &f), 0);
	op = f.op;
	for (i = 0;; i++) {
		same_op(&op, &ops[i]);
		CHECK_EQ(op.hdr_off, medge_wire_headers(i));
		CHECK_EQ(op.data_off, at);
		at += lens[i];
		if (i + 1 == ARRAY_SIZE(lens))
			break;
		medge_wire_next_op(p->data, &op);
	}
	CHECK_EQ(at, p->len);
	packet_put(p);
}

/* From a copy that ends where it says, so that reading on is seen. */
static enum medge_drop decode_exact(const u8 *bytes, u32 len, u32 wire_len)
{
	struct medge_frame f;
	u8 *copy = malloc(len);
	enum medge_drop drop;

	memcpy(copy, bytes, len);
	drop = medge_wire_decode(copy, len, wire_len, &f);
	free(copy);
	return drop;
}

static void decode__truncated_anywhere(void)
{
	static const u32 lens[] = { 5, 0, 16, 33 };
	struct medge_op ops[ARRAY_SIZE(lens)];
	struct packet *ps[] = {
		run_packet(3000, 0, 3000, 1000),
		run_packet(64, 0, 64, 1000),
		several_packet(ARRAY_SIZE(lens), lens, ops),
	};
	u32 i, len;

	for (i = 0; i < ARRAY_SIZE(ps); i++) {
		for (len = 0; len < ps[i]->len; len++)
			CHECK(decode_exact(ps[i]->data, len, len),
			      "packet %u decodes with %u bytes", i, len);
		CHECK_EQ(decode_exact(ps[i]->data, len, len), 0);
		packet_put(ps[i]);
	}
}

static void decode__padding_is_ignored(void)
{
	struct packet *p = run_packet(1001, 1000, 1, 1000);
	u8 padded[MEDGE_HDR_LEN + 46] = { };
	struct medge_frame f;

	memcpy(padded, p->data, p->len);
	CHECK_EQ(medge_wire_decode(padded, sizeof(padded), sizeof(padded), &f), 0);
	CHECK_EQ(f.op.len, 1);
	CHECK_EQ(f.nframes, 1);
	packet_put(p);
}

static void decode__superframe_counts_its_frames(void)
{
	static const struct { u32 len; u16 seg, frames; } cases[] = {
		{ 1, 1000, 1 }, { 1000, 1000, 1 }, { 1001, 1000, 2 },
		{ 60000, 1000, 60 }, { 512, 1, 512 }, { 65000, 8936, 8 },
	};
	struct medge_frame f;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct packet *p = run_packet(cases[i].len, 0, cases[i].len,
					      cases[i].seg);

		CHECK_EQ(medge_wire_decode(p->data, MEDGE_HDR_LEN, p->len, &f), 0);
		CHECK_EQ(f.nframes, cases[i].frames);
		packet_put(p);
	}
}

/* One field spoiled: one reason. */
static void decode__says_why(void)
{
	enum { OURS = MEDGE_WIRE_VERSION << 4 };
	static const struct { u32 at; u8 value; enum medge_drop drop; } cases[] = {
		{ 0, OURS - 0x10, MEDGE_DROP_VERSION },
		{ 0, OURS + 0x10, MEDGE_DROP_VERSION },
		{ 0, OURS + 0x3, MEDGE_DROP_PROBE },
		{ 0, OURS + 0x5, MEDGE_DROP_TYPE },
		{ 0, OURS + 0xf, MEDGE_DROP_TYPE },
		{ 1, 0x80, MEDGE_DROP_FLAGS },
		{ 1, 0x02, MEDGE_DROP_FLAGS },		/* NACK in a data frame */
		{ 4, 0, MEDGE_DROP_LENGTH },		/* no ops */
		{ 20, 0xff, MEDGE_DROP_WINDOW },	/* sack_base */
		{ 22, 0xff, MEDGE_DROP_WINDOW },	/* fence_dist */
		{ 32, MEDGE_OPCODES, MEDGE_DROP_OPCODE },
		{ 32, 255, MEDGE_DROP_OPCODE },
		{ 33, 0x10, MEDGE_DROP_FLAGS },
		{ 34, 0xff, MEDGE_DROP_LENGTH },	/* more than there is */
		{ 40, 0xff, MEDGE_DROP_LENGTH },	/* more than 2 GB */
		{ 47, 1, MEDGE_DROP_OFFSET },		/* within a segment */
		{ 44, 1, MEDGE_DROP_OFFSET },		/* behind the op */
		{ 2, 0, MEDGE_DROP_OFFSET },		/* seg_len too small */
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct packet *p = run_packet(4096, 2048, 2048, 1024);

		CHECK_EQ(decode_exact(p->data, p->len, p->len), 0);
		if (cases[i].at == 2)
			put_unaligned_be16(1000, p->data + 2);
		else
			p->data[cases[i].at] = cases[i].value;
		CHECK(decode_exact(p->data, p->len, p->len) == cases[i].drop,
		      "byte %u = %u: %s, not %s", cases[i].at, cases[i].value,
		      medge_drop_name(decode_exact(p->data, p->len, p->len)),
		      medge_drop_name(cases[i].drop));
		packet_put(p);
	}
}

static void decode__says_why_of_a_datagram(void)
{
	struct medge_datagram dg = random_datagram(100);
	struct packet *p = packet_new(MEDGE_DATAGRAM_LEN + dg.len);
	u32 len;

	medge_wire_encode_datagram(p->data, &dg);
	CHECK_EQ(decode_exact(p->data, p->len, p->len), 0);
	CHECK_EQ(decode_exact(p->data, p->len, p->len + 46), 0);
	for (len = 0; len < p->len; len++)
		CHECK_EQ(decode_exact(p->data, len, len),
			 len < MEDGE_DATAGRAM_LEN ? MEDGE_DROP_RUNT :
						    MEDGE_DROP_LENGTH);
	p->data[1] |= MEDGE_DATAGRAM_FLAGS + 1;
	CHECK_EQ(decode_exact(p->data, p->len, p->len), MEDGE_DROP_FLAGS);
	packet_put(p);
}

/* What each of the ops without, or with just so much, payload may look like. */
static void decode__small_ops_have_their_lengths(void)
{
	static const struct { u8 opcode; u32 len, op_len, imm; u8 drop; } cases[] = {
		{ MEDGE_OP_ATOMIC_WRITE, 8, 8, 0, MEDGE_DROP_NONE },
		{ MEDGE_OP_ATOMIC_WRITE, 4, 8, 0, MEDGE_DROP_LENGTH },
		{ MEDGE_OP_ATOMIC_WRITE, 16, 16, 0, MEDGE_DROP_LENGTH },
		{ MEDGE_OP_ATOMIC_WRITE, 0, 0, 0, MEDGE_DROP_LENGTH },
		{ MEDGE_OP_FLUSH, 0, 1 << 20, MEDGE_FLUSH_BITS, MEDGE_DROP_NONE },
		{ MEDGE_OP_FLUSH, 0, 0, 8, MEDGE_DROP_FLAGS },
		{ MEDGE_OP_FLUSH, 8, 8, 1, MEDGE_DROP_OFFSET },
		{ MEDGE_OP_NOP, 0, 0, 0, MEDGE_DROP_NONE },
		{ MEDGE_OP_NOP, 0, 1, 0, MEDGE_DROP_LENGTH },
		{ MEDGE_OP_NOP, 1, 0, 0, MEDGE_DROP_OFFSET },
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct packet *p = run_packet(64, 0, 64, 1024);
		struct medge_op op = {
			.opcode = cases[i].opcode,
			.len = cases[i].len,
			.op_len = cases[i].op_len,
			.imm = cpu_to_be32(cases[i].imm),
		};

		medge_wire_encode_op(p->data + sizeof(struct medge_frame_hdr),
				     &op);
		CHECK(decode_exact(p->data, p->len, p->len) == cases[i].drop,
		      "case %u: %s", i,
		      medge_drop_name(decode_exact(p->data, p->len, p->len)));
		packet_put(p);
	}
}

static void cut__frames_are_those_sent_one_by_one(void)
{
	u32 total = 10 * 1000 + 17, seg = 1000, n = 11, i;
	struct packet *p = run_packet(5000 + total, 5000, total, seg);
	struct medge_frame run, f;

	p->data[1] = MEDGE_FRAME_ACK_REQ;
	CHECK_EQ(medge_wire_decode(p->data, p->len, p->len, &run), 0);
	CHECK_EQ(run.nframes, n);
	for (i = 0; i < n; i++) {
		u32 len = i + 1 < n ? seg : 17;
		u8 buf[MEDGE_HDR_LEN];

		memcpy(buf, p->data, sizeof(buf));
		medge_wire_cut(buf, i, n);
		CHECK_EQ(medge_wire_decode(buf, sizeof(buf),
					   MEDGE_HDR_LEN + len, &f), 0);
		CHECK_EQ(f.nframes, 1);
		CHECK_EQ(f.psn, (u32)(run.psn + i));
		CHECK_EQ(f.op.len, len);
		CHECK_EQ(f.op.offset, 5000 + i * seg);
		CHECK_EQ(f.flags, i + 1 < n ? 0 : MEDGE_FRAME_ACK_REQ);
		CHECK_EQ(f.ack_psn, run.ack_psn);
		CHECK_EQ(f.sack, run.sack);
		CHECK_EQ(f.op.addr, run.op.addr);
	}
	packet_put(p);
}

/* Of frame @i of @n that @p is cut into. */
static void cut_header(const struct packet *p, u32 i, u32 n, u8 *hdr)
{
	memcpy(hdr, p->data, MEDGE_HDR_LEN);
	medge_wire_cut(hdr, i, n);
}

static void decode_cut(const struct packet *p, u32 i, u32 n, struct medge_frame *f)
{
	u8 buf[MEDGE_HDR_LEN];

	cut_header(p, i, n, buf);
	CHECK_EQ(medge_wire_decode(buf, sizeof(buf), p->len, f), 0);
}

static void join__undoes_cut(void)
{
	u32 total = 10 * 1000 + 17, n = 11, i;
	struct packet *p = run_packet(5000 + total, 5000, total, 1000);
	struct medge_frame run, f, next, full;
	u8 follows[MEDGE_HDR_LEN], hdr[MEDGE_HDR_LEN];

	p->data[1] = MEDGE_FRAME_ECHO;
	CHECK_EQ(medge_wire_decode(p->data, p->len, p->len, &run), 0);
	decode_cut(p, 0, n, &f);
	cut_header(p, 0, n, follows);
	for (i = 1; i < n; i++) {
		CHECK(medge_wire_goes_on(&f), "not behind %u frames", i);
		CHECK_EQ(f.parts, i);
		CHECK_EQ(f.nframes, i);
		decode_cut(p, i, n, &next);
		/* All but the last are known before they come. */
		cut_header(p, i, n, hdr);
		CHECK_EQ(medge_wire_follow(&f, follows), i < n - 1);
		CHECK_EQ(medge_wire_same_header(follows, hdr), i < n - 1);
		full = f;
		medge_wire_join_full(&full);
		CHECK(medge_wire_join(&f, &next), "frame %u", i);
		CHECK_EQ(!memcmp(&full, &f, sizeof(f)), i < n - 1);
	}
	/* It was the op's last. */
	CHECK(!medge_wire_goes_on(&f), "goes on");
	CHECK_EQ(f.parts, n);
	CHECK_EQ(run.parts, 1);
	f.parts = 1;
	CHECK(!memcmp(&f, &run, sizeof(f)), "not what was cut");
	packet_put(p);
}

/* Superframes of one op, up to what is joined: more than 16 bits count. */
static void join__of_superframes(void)
{
	u32 seg = 1000, len = 64 * seg, n = MEDGE_JOIN_MAX / len, i;
	struct packet *p = run_packet((n + 1) * len, 0, len, seg);
	struct medge_frame run, f, next;

	CHECK_EQ(medge_wire_decode(p->data, p->len, p->len, &run), 0);
	/* which only an op's last one has */
	run.flags &= ~MEDGE_FRAME_LAST_FLAGS;
	f = run;
	for (i = 1; i <= n; i++) {
		next = run;
		next.psn += i * run.nframes;
		next.op.offset = i * len;
		if (i == n)
			break;
		CHECK(medge_wire_goes_on(&f), "not behind %u superframes", i);
		CHECK(medge_wire_join(&f, &next), "superframe %u", i);
		CHECK_EQ(f.parts, i + 1);
		CHECK_EQ(f.nframes, (i + 1) * 64);
		CHECK_EQ(f.op.len, (i + 1) * len);
		CHECK_EQ(f.op.offset, 0);
	}
	CHECK(!medge_wire_join(&f, &next), "more than may be joined");
	packet_put(p);
}

/* One bit, anywhere. */
static void join__same_header(void)
{
	u8 a[MEDGE_HDR_LEN], b[MEDGE_HDR_LEN];
	u32 i;

	memset(a, 0x5a, sizeof(a));
	memcpy(b, a, sizeof(b));
	CHECK(medge_wire_same_header(a, b), "the same");
	for (i = 0; i < 8 * sizeof(a); i++) {
		b[i / 8] ^= 1 << i % 8;
		CHECK(!medge_wire_same_header(a, b), "bit %u", i);
		b[i / 8] ^= 1 << i % 8;
	}
}

/* There is nothing to expect where the next frame ends something. */
static void join__expects_no_last(void)
{
	struct packet *p = run_packet(5000, 0, 5000, 1000);
	u8 hdr[MEDGE_HDR_LEN], was[MEDGE_HDR_LEN];
	struct medge_frame first, f;

	decode_cut(p, 0, 5, &first);
	cut_header(p, 0, 5, hdr);
	memcpy(was, hdr, sizeof(was));
#define LAST(field, value)						\
	do {								\
		f = first;						\
		f.field = value;					\
		CHECK(!medge_wire_follow(&f, hdr), #field);		\
		CHECK(!memcmp(hdr, was, sizeof(hdr)), #field);		\
	} while (0)
	LAST(op.op_len, 2000);
	LAST(op.op_len, 1500);
	LAST(op.len, 3000 + 1000);
	LAST(op.len, MEDGE_JOIN_MAX - 1000);
	LAST(nframes, MEDGE_WINDOW - 1);
	LAST(flags, MEDGE_FRAME_ACK_REQ);
	LAST(nops, 2);
	LAST(type, MEDGE_FRAME_ACK);
#undef LAST
	/* Near the end of 32 bits, too. */
	f = first;
	f.op.op_len = UINT32_MAX;
	f.op.offset = UINT32_MAX - 1500;
	CHECK(!medge_wire_follow(&f, hdr), "beyond the op");
	f = first;
	f.op.op_len = 2001;
	CHECK(medge_wire_follow(&f, hdr), "one byte is to follow the next");
	packet_put(p);
}

/* Each field that says that a frame is not the next, or would be lost with its header. */
static void join__only_what_follows(void)
{
	struct packet *p = run_packet(5000, 0, 4000, 1000);
	struct medge_frame first, next, f, bad;

	decode_cut(p, 0, 4, &first);
	decode_cut(p, 1, 4, &next);
#define BAD(field, value)						\
	do {								\
		f = first;						\
		bad = next;						\
		bad.field = value;					\
		CHECK(!medge_wire_join(&f, &bad), #field);		\
		CHECK(!memcmp(&f, &first, sizeof(f)), #field);		\
	} while (0)
	BAD(type, MEDGE_FRAME_ACK);
	BAD(type, MEDGE_FRAME_DATAGRAM);
	BAD(nops, 2);
	BAD(qpn, next.qpn ^ 1);
	BAD(psn, next.psn + 1);
	BAD(psn, first.psn);
	BAD(seg_len, 500);
	BAD(ack_psn, next.ack_psn + 1);
	BAD(ack_op, next.ack_op + 1);
	BAD(sack_base, next.sack_base + 1);
	BAD(sack, next.sack ^ 1);
	BAD(fence_dist, next.fence_dist + 1);
	BAD(nframes, MEDGE_WINDOW);
	BAD(op.opcode, MEDGE_OP_RESPONSE);
	BAD(op.flags, next.op.flags ^ MEDGE_OP_STRICT);
	BAD(op.len, 0);
	BAD(op.len, MEDGE_JOIN_MAX - 999);
	BAD(op.op_no, next.op.op_no + 1);
	BAD(op.op_len, next.op.op_len + 1);
	BAD(op.offset, next.op.offset + 1000);
	BAD(op.offset, first.op.offset);
	BAD(op.addr, next.op.addr + 1);
	BAD(op.rkey, next.op.rkey + 1);
	BAD(op.imm, next.op.imm + 1);
#undef BAD
	f = first;
	CHECK(medge_wire_join(&f, &next), "the next");
	/* Who is asked to answer is not kept waiting. */
	f.flags = MEDGE_FRAME_ACK_REQ;
	CHECK(!medge_wire_goes_on(&f), "ACK_REQ");
	f.flags = MEDGE_FRAME_ECHO;
	CHECK(!medge_wire_goes_on(&f), "ECHO");
	f = first;
	f.nframes = MEDGE_WINDOW;
	CHECK(!medge_wire_goes_on(&f), "a window of frames");
	f = first;
	f.op.len = MEDGE_JOIN_MAX - 999;
	CHECK(!medge_wire_goes_on(&f), "no room for another");
	packet_put(p);
}

static void linear__covers_what_decode_reads(void)
{
	struct packet *p = run_packet(3000, 0, 3000, 1000);
	u32 linear = medge_wire_linear(p->data, MEDGE_HDR_LEN, p->len);

	CHECK_EQ(linear, MEDGE_HDR_LEN);
	CHECK_EQ(decode_exact(p->data, linear, p->len), 0);
	p->data[sizeof(struct medge_frame_hdr)] = MEDGE_OP_CMP_SWAP;
	CHECK_EQ(medge_wire_linear(p->data, MEDGE_HDR_LEN, p->len),
		 MEDGE_HDR_LEN + MEDGE_ATOMIC_LEN);
	packet_put(p);
}

static void names__exist_for_every_value(void)
{
	u32 i;

	for (i = 0; i < MEDGE_DROPS + 2; i++)
		CHECK(medge_drop_name(i) && *medge_drop_name(i), "%u", i);
	for (i = 0; i < 256; i++)
		CHECK(medge_opcode_name(i) && *medge_opcode_name(i), "%u", i);
}

static void seq__wraps_around(void)
{
	CHECK(medge_seq_before(0xffffffff, 0));
	CHECK(medge_seq_before(0xfffffff0, 0x10));
	CHECK(!medge_seq_before(0x10, 0xfffffff0));
	CHECK(!medge_seq_before(5, 5));
	CHECK(medge_seq_diff(3, 0xfffffffe) == 5);
}

/* Who gives less than medge_wire_linear() asks for gets no frame. */
static void decode__of_less_than_is_needed(void)
{
	static const u32 lens[] = { 8, 8 };
	struct medge_op ops[ARRAY_SIZE(lens)];
	struct packet *p = several_packet(ARRAY_SIZE(lens), lens, ops);
	u32 linear = medge_wire_linear(p->data, MEDGE_HDR_LEN, p->len);

	CHECK_EQ(decode_exact(p->data, linear, p->len), MEDGE_DROP_NONE);
	CHECK_EQ(decode_exact(p->data, linear - 1, p->len), MEDGE_DROP_RUNT);
	packet_put(p);
}

/* Among several ops, an atomic's operands are to be with the headers, wherever they are. */
static void decode__of_operands_among_others(void)
{
	static const u32 lens[] = { 40, MEDGE_ATOMIC_LEN, 8 };
	struct medge_op ops[ARRAY_SIZE(lens)];
	struct packet *p = several_packet(ARRAY_SIZE(lens), lens, ops);
	u32 need = p->len - lens[2];

	ops[1].opcode = MEDGE_OP_FETCH_ADD;
	medge_wire_encode_op(p->data + medge_wire_headers(1), &ops[1]);
	CHECK_EQ(decode_exact(p->data, need, p->len), MEDGE_DROP_NONE);
	CHECK_EQ(decode_exact(p->data, need - 1, p->len), MEDGE_DROP_RUNT);
	CHECK_EQ(decode_exact(p->data, medge_wire_headers(3), p->len),
		 MEDGE_DROP_RUNT);
	packet_put(p);
}

int main(int argc, char **argv)
{
	direct_begin(argc, argv);
	rng_seed(&rng, 2);
	RUN(decode__gives_what_was_encoded);
	RUN(decode__gives_the_ack_that_was_encoded);
	RUN(decode__drops_an_ack_without_all_of_its_words);
	RUN(decode__gives_the_datagram_that_was_encoded);
	RUN(decode__says_why_of_a_datagram);
	RUN(next_op__finds_each);
	RUN(decode__truncated_anywhere);
	RUN(decode__padding_is_ignored);
	RUN(decode__superframe_counts_its_frames);
	RUN(decode__says_why);
	RUN(decode__small_ops_have_their_lengths);
	RUN(cut__frames_are_those_sent_one_by_one);
	RUN(join__undoes_cut);
	RUN(join__of_superframes);
	RUN(join__same_header);
	RUN(join__expects_no_last);
	RUN(join__only_what_follows);
	RUN(linear__covers_what_decode_reads);
	RUN(names__exist_for_every_value);
	RUN(seq__wraps_around);
	RUN(decode__of_less_than_is_needed);
	RUN(decode__of_operands_among_others);
	return direct_end("test_wire");
}
