/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Decoding is total: any bytes give a frame or a reason. And what is decoded
 * keeps what is promised of it: no op reaches beyond the frame or its op.
 */
#include <stdlib.h>

#include "conn.h"
#include "fuzz_driver.h"
#include "say.h"

const char *const fuzz_name = "fuzz_decode";
const u32 fuzz_count = 400000;

static void check_op(const struct medge_op *op, u32 wire_len)
{
	u32 payload = medge_opcode_bare(op->opcode) ? 0 : op->op_len;

	CHECK(op->opcode < MEDGE_OPCODES);
	CHECK(!(op->flags & ~MEDGE_OP_FLAGS));
	CHECK(op->hdr_off + sizeof(struct medge_op_hdr) <= op->data_off);
	CHECK(op->data_off <= wire_len);
	CHECK(op->len <= wire_len - op->data_off);
	CHECK(op->offset <= payload && op->len <= payload - op->offset);
	CHECK(op->op_len <= MEDGE_MSG_MAX);
	if (op->opcode == MEDGE_OP_ATOMIC_WRITE)
		CHECK_EQ(op->len, MEDGE_ATOMIC_WRITE_LEN);
	if (op->opcode == MEDGE_OP_NOP)
		CHECK_EQ(op->op_len, 0);
	if (op->opcode == MEDGE_OP_FLUSH)
		CHECK(!(be32_to_cpu(op->imm) & ~MEDGE_FLUSH_BITS));
}

static bool op_is_atomic(u8 opcode)
{
	return opcode == MEDGE_OP_CMP_SWAP || opcode == MEDGE_OP_FETCH_ADD;
}

/* @linear: of the @len bytes of @buf, those that are there. */
static void check_data(const u8 *buf, u32 linear, u32 len,
		       const struct medge_frame *f)
{
	struct medge_op op = f->op;
	u32 n = 1;

	CHECK(f->nops >= 1);
	CHECK(f->nframes >= 1 && f->nframes <= MEDGE_WINDOW);
	check_op(&op, len);
	if (f->nops == 1) {
		u32 frames = op.len ? DIV_ROUND_UP(op.len, f->seg_len) : 1;

		CHECK_EQ(f->nframes, frames);
		return;
	}
	CHECK_EQ(f->nframes, 1);
	for (; n < f->nops; n++) {
		medge_wire_next_op(buf, &op);
		check_op(&op, len);
		CHECK_EQ(op.op_no, f->op.op_no + n);
		CHECK_EQ(op.offset, 0);
		CHECK(!op_is_atomic(op.opcode) || op.data_off + op.len <= linear);
	}
}

/* A frame cut from a run that decodes decodes, too; as many as there is room for join. */
static void check_cut(const u8 *buf, const struct medge_frame *run)
{
	u8 follows[MEDGE_HDR_LEN];
	struct medge_frame joined;
	u32 i;

	for (i = 0; i < run->nframes; i++) {
		u32 at = i * run->seg_len;
		u32 len = min_t(u32, run->seg_len, run->op.len - at);
		struct medge_frame f;
		u8 hdr[MEDGE_HDR_LEN + MEDGE_ATOMIC_LEN];

		/* of an atomic, which is one frame, decode reads the operands */
		memcpy(hdr, buf, op_is_atomic(run->op.opcode) ? sizeof(hdr) :
						MEDGE_HDR_LEN);
		medge_wire_cut(hdr, i, run->nframes);
		CHECK_EQ(medge_wire_decode(hdr, sizeof(hdr), MEDGE_HDR_LEN + len,
					   &f), MEDGE_DROP_NONE);
		CHECK_EQ(f.nframes, 1);
		CHECK_EQ(f.psn, (u32)(run->psn + i));
		CHECK_EQ(f.op.offset, run->op.offset + at);
		CHECK_EQ(f.op.len, len);
		if (!i) {
			joined = f;
			memcpy(follows, hdr, sizeof(follows));
		} else if (joined.nframes == i && medge_wire_goes_on(&joined)) {
			/* What is expected comes; but the run's last may have more to say. */
			if (medge_wire_follow(&joined, follows)) {
				CHECK_EQ(medge_wire_same_header(follows, hdr), f.flags == joined.flags);
				CHECK(i + 1 == run->nframes || f.flags == joined.flags, "frame %u", i);
				CHECK_EQ(f.op.len, run->seg_len);
			}
			CHECK(medge_wire_join(&joined, &f), "frame %u", i);
			CHECK_EQ(joined.nframes, i + 1);
			CHECK_EQ(joined.op.len, at + len);
		}
	}
	if (run->nframes > 1 && joined.nframes == run->nframes)
		CHECK_EQ(joined.flags, run->flags);
}

static void check_datagram(const u8 *buf, const struct medge_frame *f)
{
	struct medge_datagram dg, again;
	u8 hdr[MEDGE_DATAGRAM_LEN];

	medge_wire_decode_datagram(buf, &dg);
	CHECK_EQ(dg.qpn, f->qpn);
	CHECK(dg.qpn < 1 << 24 && dg.src_qpn < 1 << 24);
	CHECK(dg.class_flow < 1 << 28);
	CHECK(!(dg.flags & ~MEDGE_DATAGRAM_FLAGS));
	memset(hdr, 0xff, sizeof(hdr));
	medge_wire_encode_datagram(hdr, &dg);
	medge_wire_decode_datagram(hdr, &again);
	/* Of each byte but those that are reserved, nothing is lost. */
	CHECK(!memcmp(hdr, buf, 4) && !memcmp(hdr + 8, buf + 8, 12));
	CHECK(!memcmp(hdr + 24, buf + 24, sizeof(hdr) - 24));
	CHECK_EQ(again.class_flow, dg.class_flow);
}

static void check_probe(const u8 *buf)
{
	struct medge_probe probe, again;
	u8 hdr[MEDGE_PROBE_LEN];
	u32 i;

	medge_wire_decode_probe(buf, &probe);
	CHECK(probe.rail < MEDGE_MAX_RAILS && probe.first < MEDGE_MAX_RAILS);
	CHECK(probe.probe_rail < MEDGE_MAX_RAILS);
	CHECK(probe.peer_rail < MEDGE_MAX_RAILS ||
	      (probe.type == MEDGE_FRAME_PROBE &&
	       probe.peer_rail == MEDGE_RAIL_ANY));
	CHECK(probe.generation && probe.count <= MEDGE_PROBE_RAILS);
	for (i = 0; i < probe.count; i++) {
		CHECK(probe.index[i] < MEDGE_MAX_RAILS);
		CHECK(!i || probe.index[i] > probe.index[i - 1]);
	}
	medge_wire_encode_probe(hdr, &probe);
	medge_wire_decode_probe(hdr, &again);
	CHECK(!memcmp(&probe, &again, sizeof(probe)));
}

/* What was decoded, encoded again, is what was there. */
static void check_encode(const u8 *buf, const struct medge_frame *f)
{
	u8 again[MEDGE_ACK_MAX];
	struct medge_ack ack;

	if (f->type == MEDGE_FRAME_DATAGRAM) {
		check_datagram(buf, f);
		return;
	}
	if (f->type == MEDGE_FRAME_PROBE || f->type == MEDGE_FRAME_REPLY) {
		check_probe(buf);
		return;
	}
	medge_wire_encode_frame(again, f);
	CHECK(!memcmp(again, buf, sizeof(struct medge_frame_hdr)));
	if (f->type == MEDGE_FRAME_DATA) {
		medge_wire_encode_op(again, &f->op);
		CHECK(!memcmp(again, buf + sizeof(struct medge_frame_hdr),
			      sizeof(struct medge_op_hdr)));
		return;
	}
	medge_wire_decode_ack(buf, &ack);
	medge_wire_encode_ack(again, &ack);
	CHECK(!memcmp(again + offsetof(struct medge_ack_hdr, bitmap),
		      buf + medge_wire_ack_len(0),
		      ack.words * sizeof(ack.bitmap[0])));
}

/* Decode may read @linear of the @len bytes, and not a byte more. */
static enum medge_drop decode(const u8 *data, u32 linear, u32 len)
{
	struct medge_frame f;
	enum medge_drop drop;
	u8 *head;

	head = malloc(linear);
	memcpy(head, data, linear);
	drop = medge_wire_decode(head, linear, len, &f);
	CHECK(drop < MEDGE_DROPS);
	CHECK(*medge_drop_name(drop));
	if (!drop) {
		check_encode(head, &f);
		if (f.type == MEDGE_FRAME_DATA) {
			check_data(head, linear, len, &f);
			if (f.nops == 1 && f.op.len)
				check_cut(head, &f);
		}
		if (f.type == MEDGE_FRAME_DATAGRAM) {
			struct medge_datagram dg;

			medge_wire_decode_datagram(head, &dg);
			CHECK(dg.len <= len - MEDGE_DATAGRAM_LEN);
		}
	}
	free(head);
	return drop;
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t len)
{
	u32 linear = len;

	if (len > 65535)
		return 0;
	if (len >= sizeof(struct medge_frame_hdr))
		linear = min_t(u32, medge_wire_linear(data, len, len), len);
	if (decode(data, linear, len) == MEDGE_DROP_RUNT && linear < len)
		decode(data, len, len);
	return 0;
}

#ifndef MEDGE_LIBFUZZER
static size_t plausible_probe(struct rng *rng, u8 *buf)
{
	struct medge_probe probe = {
		.type = rng_below(rng, 2) ? MEDGE_FRAME_PROBE : MEDGE_FRAME_REPLY,
		.rail = rng_below(rng, MEDGE_MAX_RAILS),
		.peer_rail = rng_below(rng, MEDGE_MAX_RAILS),
		.probe_rail = rng_below(rng, MEDGE_MAX_RAILS),
		.first = rng_below(rng, 20),
		.nonce = rng_next(rng),
		.node = { 2, rng_next(rng) },
		.to = { 2, rng_next(rng) },
		.generation = rng_next(rng),
	};
	u32 i;

	if (probe.type == MEDGE_FRAME_REPLY)
		probe.count = rng_below(rng, MEDGE_PROBE_RAILS + 1);
	for (i = 0; i < probe.count; i++) {
		probe.index[i] = probe.first + i * rng_range(rng, 1, 2);
		probe.rails[i].flags = rng_below(rng, MEDGE_PORT_FLAGS + 1);
		probe.rails[i].mac[5] = rng_range(rng, 1, 255);
	}
	medge_wire_encode_probe(buf, &probe);
	return MEDGE_PROBE_LEN;
}

/* Nearly right: a plausible frame, then a few fields gone wrong. */
static size_t plausible(struct rng *rng, u8 *buf, size_t max)
{
	static const u16 segs[] = { 1, 8, 64, 1000, 1024, 8936 };
	bool several = !rng_below(rng, 3);
	struct medge_frame f = {
		.type = rng_below(rng, 5) ? MEDGE_FRAME_DATA :
					    rng_range(rng, MEDGE_FRAME_ACK,
						      MEDGE_FRAME_DATAGRAM),
		.flags = rng_below(rng, 2),
		.nops = several ? rng_range(rng, 2, 20) : 1,
		.seg_len = several ? 0 : segs[rng_below(rng, ARRAY_SIZE(segs))],
		.qpn = rng_below(rng, 1 << 24),
		.psn = rng_next(rng),
		.sack_base = rng_below(rng, MEDGE_WINDOW + 2),
		.fence_dist = rng_below(rng, MEDGE_OP_WINDOW + 2),
	};
	u32 at = sizeof(struct medge_frame_hdr), i;
	u32 op_no = rng_next(rng);

	medge_wire_encode_frame(buf, &f);
	if (f.type == MEDGE_FRAME_ACK) {
		i = rng_below(rng, MEDGE_ACK_WORDS + 1);
		buf[at + offsetof(struct medge_ack_hdr, words)] = i;
		return medge_wire_ack_len(i);
	}
	if (f.type == MEDGE_FRAME_DATAGRAM)
		return MEDGE_DATAGRAM_LEN + f.seg_len;
	at = medge_wire_headers(f.nops);
	for (i = 0; i < f.nops; i++) {
		struct medge_op op = {
			.opcode = rng_below(rng, MEDGE_OPCODES),
			.flags = rng_below(rng, MEDGE_OP_FLAGS + 1),
			.op_no = op_no + i,
			.op_len = rng_log(rng, several ? 100 : 6000),
		};

		if (op.opcode == MEDGE_OP_CMP_SWAP ||
		    op.opcode == MEDGE_OP_FETCH_ADD)
			op.op_len = MEDGE_ATOMIC_LEN;
		if (op.opcode == MEDGE_OP_ATOMIC_WRITE && rng_below(rng, 4))
			op.op_len = MEDGE_ATOMIC_WRITE_LEN;
		if (op.opcode == MEDGE_OP_NOP && rng_below(rng, 4))
			op.op_len = 0;
		if (op.opcode == MEDGE_OP_FLUSH)
			op.imm = cpu_to_be32(rng_below(rng, 9));
		if (!medge_opcode_bare(op.opcode))
			op.len = op.op_len;
		if (!several && f.seg_len && rng_below(rng, 2)) {
			op.offset = f.seg_len * rng_below(rng, 10);
			op.op_len += op.offset;
		}
		if (at + op.len > max)
			break;
		medge_wire_encode_op(buf + medge_wire_headers(i), &op);
		at += op.len;
	}
	return at;
}

size_t fuzz_input(struct rng *rng, u8 *buf, size_t max)
{
	size_t len, i, changes = rng_below(rng, 4);

	memset(buf, 0, max);
	if (!rng_below(rng, 8)) {
		len = rng_below(rng, 300);
		for (i = 0; i < len; i++)
			buf[i] = rng_next(rng);
		return len;
	}
	len = rng_below(rng, 6) ? plausible(rng, buf, max) :
				  plausible_probe(rng, buf);
	while (changes--)
		buf[rng_below(rng, min_t(u64, len, 200))] =
			rng_below(rng, 2) ? rng_next(rng) : BIT(rng_below(rng, 8));
	if (!rng_below(rng, 4))
		len = rng_below(rng, len + 1);
	else if (!rng_below(rng, 4))
		len += rng_below(rng, 46);
	return len;
}
#endif
