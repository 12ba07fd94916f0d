// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The wire format: encode, decode, cut, join. Decoding is total. */
#include "wire.h"

static const char *const drop_names[MEDGE_DROPS] = {
	[MEDGE_DROP_NONE] = "none",
	[MEDGE_DROP_RUNT] = "runt",
	[MEDGE_DROP_VERSION] = "version",
	[MEDGE_DROP_TYPE] = "type",
	[MEDGE_DROP_FLAGS] = "flags",
	[MEDGE_DROP_OPCODE] = "opcode",
	[MEDGE_DROP_LENGTH] = "length",
	[MEDGE_DROP_OFFSET] = "offset",
	[MEDGE_DROP_WINDOW] = "window",
	[MEDGE_DROP_MISMATCH] = "mismatch",
	[MEDGE_DROP_ACK] = "ack",
	[MEDGE_DROP_HOLD] = "hold",
	[MEDGE_DROP_STATE] = "state",
	[MEDGE_DROP_PROBE] = "probe",
};

static const char *const opcode_names[MEDGE_OPCODES] = {
	[MEDGE_OP_WRITE] = "write",
	[MEDGE_OP_WRITE_IMM] = "write_imm",
	[MEDGE_OP_SEND] = "send",
	[MEDGE_OP_SEND_IMM] = "send_imm",
	[MEDGE_OP_READ] = "read",
	[MEDGE_OP_CMP_SWAP] = "cmp_swap",
	[MEDGE_OP_FETCH_ADD] = "fetch_add",
	[MEDGE_OP_SEND_INV] = "send_inv",
	[MEDGE_OP_ATOMIC_WRITE] = "atomic_write",
	[MEDGE_OP_FLUSH] = "flush",
	[MEDGE_OP_NOP] = "nop",
	[MEDGE_OP_RESPONSE] = "response",
};

const char *medge_drop_name(enum medge_drop drop)
{
	return (u32)drop < MEDGE_DROPS ? drop_names[drop] : "?";
}

const char *medge_opcode_name(u8 opcode)
{
	return opcode < MEDGE_OPCODES ? opcode_names[opcode] : "?";
}

/* Bytes of payload that an op of this opcode carries, all frames together. */
static u32 op_payload(const struct medge_op *op)
{
	return medge_opcode_bare(op->opcode) ? 0 : op->op_len;
}

static bool op_is_atomic(u8 opcode)
{
	return opcode == MEDGE_OP_CMP_SWAP || opcode == MEDGE_OP_FETCH_ADD;
}

/* Bytes of a data frame that must be in one piece. */
static u32 data_linear(u32 nops, u8 opcode)
{
	if (nops > 1)
		return medge_wire_headers(nops);
	return MEDGE_HDR_LEN + (op_is_atomic(opcode) ? MEDGE_ATOMIC_LEN : 0);
}

u32 medge_wire_linear(const void *buf, u32 buf_len, u32 wire_len)
{
	struct medge_frame_hdr fh;
	struct medge_op_hdr oh;

	memcpy(&fh, buf, sizeof(fh));
	switch (fh.ver_type & 15) {
	case MEDGE_FRAME_ACK:
		return min_t(u32, wire_len, MEDGE_ACK_MAX);
	case MEDGE_FRAME_DATAGRAM:
		return MEDGE_DATAGRAM_LEN;
	case MEDGE_FRAME_PROBE:
	case MEDGE_FRAME_REPLY:
		return MEDGE_PROBE_LEN;
	}
	oh.opcode = MEDGE_OP_WRITE;
	if (buf_len >= MEDGE_HDR_LEN)
		memcpy(&oh, buf + sizeof(fh), sizeof(oh));
	return data_linear(be32_to_cpu(fh.nops_qpn) >> 24, oh.opcode);
}

u8 medge_wire_op_flags(const void *buf, u32 hdr_off)
{
	struct medge_op_hdr oh;

	memcpy(&oh, buf + hdr_off, sizeof(oh));
	return oh.flags;
}

void medge_wire_decode_op(const void *buf, u32 hdr_off, struct medge_op *op)
{
	struct medge_op_hdr oh;

	memcpy(&oh, buf + hdr_off, sizeof(oh));
	op->opcode = oh.opcode;
	op->flags = oh.flags;
	op->hdr_off = hdr_off;
	op->len = be16_to_cpu(oh.len);
	op->op_no = be32_to_cpu(oh.op_no);
	op->op_len = be32_to_cpu(oh.op_len);
	op->offset = be32_to_cpu(oh.offset);
	op->addr = be64_to_cpu(oh.addr);
	op->rkey = be32_to_cpu(oh.rkey);
	op->imm = oh.imm;
}

/* What is checked of each op, alone in its frame or not. */
static enum medge_drop check_op(const struct medge_op *op, u32 buf_len, u32 wire_len)
{
	u32 payload = op_payload(op);

	if (op->opcode >= MEDGE_OPCODES)
		return MEDGE_DROP_OPCODE;
	if (op->flags & ~MEDGE_OP_FLAGS)
		return MEDGE_DROP_FLAGS;
	if (op->op_len > MEDGE_MSG_MAX || op->len > wire_len - op->data_off)
		return MEDGE_DROP_LENGTH;
	/* Its operands are in one piece, in one frame. */
	if (op_is_atomic(op->opcode) &&
	    (op->op_len != MEDGE_ATOMIC_LEN || op->len != MEDGE_ATOMIC_LEN))
		return MEDGE_DROP_LENGTH;
	if (op->opcode == MEDGE_OP_ATOMIC_WRITE &&
	    (op->op_len != MEDGE_ATOMIC_WRITE_LEN || op->len != op->op_len))
		return MEDGE_DROP_LENGTH;
	if (op->opcode == MEDGE_OP_NOP && op->op_len)
		return MEDGE_DROP_LENGTH;
	if (op->opcode == MEDGE_OP_FLUSH &&
	    be32_to_cpu(op->imm) & ~MEDGE_FLUSH_BITS)
		return MEDGE_DROP_FLAGS;
	if (op->offset > payload || op->len > payload - op->offset)
		return MEDGE_DROP_OFFSET;
	/* Operands are read where they are. */
	if (op_is_atomic(op->opcode) && op->data_off + op->len > buf_len)
		return MEDGE_DROP_RUNT;
	return MEDGE_DROP_NONE;
}

/* An op alone in its frame: whole segments, but for the op's last. */
static enum medge_drop check_run(struct medge_frame *f)
{
	const struct medge_op *op = &f->op;
	u32 end = op->offset + op->len;

	f->nframes = 1;
	if (!op_payload(op))
		return MEDGE_DROP_NONE;
	if (!op->len || !f->seg_len)
		return MEDGE_DROP_LENGTH;
	if (op->offset % f->seg_len)
		return MEDGE_DROP_OFFSET;
	if (end != op->op_len && op->len % f->seg_len)
		return MEDGE_DROP_LENGTH;
	if (DIV_ROUND_UP(op->len, f->seg_len) > MEDGE_WINDOW)
		return MEDGE_DROP_LENGTH;
	f->nframes = DIV_ROUND_UP(op->len, f->seg_len);
	if ((op_is_atomic(op->opcode) ||
	     op->opcode == MEDGE_OP_ATOMIC_WRITE) && f->nframes > 1)
		return MEDGE_DROP_LENGTH;
	return MEDGE_DROP_NONE;
}

/* Several ops in one frame: whole requests with consecutive numbers. */
static enum medge_drop check_ops(const void *buf, u32 buf_len, u32 wire_len,
				 struct medge_frame *f)
{
	struct medge_op op = f->op;
	u32 i;

	f->nframes = 1;
	if (f->seg_len)
		return MEDGE_DROP_LENGTH;
	for (i = 0; i < f->nops; i++) {
		enum medge_drop drop = MEDGE_DROP_NONE;

		if (i) {
			medge_wire_next_op(buf, &op);
			drop = check_op(&op, buf_len, wire_len);
		}
		if (drop)
			return drop;
		if (op.opcode == MEDGE_OP_RESPONSE)
			return MEDGE_DROP_OPCODE;
		if (op.op_no != f->op.op_no + i)
			return MEDGE_DROP_MISMATCH;
		if (op.offset || op.len != op_payload(&op))
			return MEDGE_DROP_LENGTH;
	}
	return MEDGE_DROP_NONE;
}

static enum medge_drop decode_data(const void *buf, u32 buf_len, u32 wire_len,
				   struct medge_frame *f)
{
	enum medge_drop drop;

	if (buf_len < MEDGE_HDR_LEN || wire_len < MEDGE_HDR_LEN)
		return MEDGE_DROP_RUNT;
	if (!f->nops)
		return MEDGE_DROP_LENGTH;
	if (f->flags & ~MEDGE_FRAME_DATA_FLAGS)
		return MEDGE_DROP_FLAGS;
	medge_wire_decode_op(buf, sizeof(struct medge_frame_hdr), &f->op);
	f->op.data_off = medge_wire_headers(f->nops);
	if (f->op.data_off > buf_len)
		return MEDGE_DROP_RUNT;
	drop = check_op(&f->op, buf_len, wire_len);
	if (drop)
		return drop;
	return f->nops == 1 ? check_run(f) : check_ops(buf, buf_len, wire_len, f);
}

/* It has a header of its own, of which @f gets what all frames have. */
static enum medge_drop decode_datagram(const void *buf, u32 buf_len,
				       u32 wire_len, struct medge_frame *f)
{
	struct medge_datagram dg;

	if (buf_len < MEDGE_DATAGRAM_LEN)
		return MEDGE_DROP_RUNT;
	medge_wire_decode_datagram(buf, &dg);
	if (dg.flags & ~MEDGE_DATAGRAM_FLAGS)
		return MEDGE_DROP_FLAGS;
	if (dg.len > wire_len - MEDGE_DATAGRAM_LEN)
		return MEDGE_DROP_LENGTH;
	f->type = MEDGE_FRAME_DATAGRAM;
	f->qpn = dg.qpn;
	f->nframes = 1;
	return MEDGE_DROP_NONE;
}

static bool is_station(const u8 *mac)
{
	static const u8 zeros[MEDGE_MAC_LEN];

	return !(mac[0] & 1) && memcmp(mac, zeros, MEDGE_MAC_LEN);
}

/* Rails are described in the order of their indices, each once. */
static enum medge_drop check_probe_rails(const struct medge_probe_hdr *ph)
{
	u32 i, next = ph->first;

	for (i = 0; i < ph->count; i++) {
		const struct medge_probe_rail_hdr *rh = &ph->rails[i];

		if (rh->index < next || rh->index >= MEDGE_MAX_RAILS ||
		    rh->flags & ~MEDGE_PORT_FLAGS || !is_station(rh->mac))
			return MEDGE_DROP_PROBE;
		next = rh->index + 1;
	}
	return MEDGE_DROP_NONE;
}

static enum medge_drop decode_probe(const void *buf, u32 buf_len,
				    struct medge_frame *f)
{
	struct medge_probe_hdr ph;

	if (buf_len < MEDGE_PROBE_LEN)
		return MEDGE_DROP_RUNT;
	memcpy(&ph, buf, sizeof(ph));
	/* Nothing else of the common header is in it. */
	memset(f, 0, sizeof(*f));
	f->type = ph.ver_type & 15;
	f->flags = ph.flags;
	if (ph.flags & ~MEDGE_PROBE_FLAGS)
		return MEDGE_DROP_FLAGS;
	if (ph.rail >= MEDGE_MAX_RAILS || ph.first >= MEDGE_MAX_RAILS ||
	    ph.count > MEDGE_PROBE_RAILS || !is_station(ph.node) ||
	    !is_station(ph.to) || !ph.generation)
		return MEDGE_DROP_PROBE;
	if (ph.peer_rail >= MEDGE_MAX_RAILS &&
	    (f->type == MEDGE_FRAME_REPLY || ph.peer_rail != MEDGE_RAIL_ANY))
		return MEDGE_DROP_PROBE;
	if (f->type == MEDGE_FRAME_PROBE && ph.count)
		return MEDGE_DROP_PROBE;
	if (ph.probe_rail >= MEDGE_MAX_RAILS)
		return MEDGE_DROP_PROBE;
	return check_probe_rails(&ph);
}

static enum medge_drop check_ack(const void *buf, u32 buf_len)
{
	const u8 *words = buf + sizeof(struct medge_frame_hdr) +
			  offsetof(struct medge_ack_hdr, words);

	if (buf_len < medge_wire_ack_len(0))
		return MEDGE_DROP_RUNT;
	if (*words > MEDGE_ACK_WORDS)
		return MEDGE_DROP_LENGTH;
	return buf_len < medge_wire_ack_len(*words) ? MEDGE_DROP_RUNT :
						      MEDGE_DROP_NONE;
}

enum medge_drop medge_wire_decode(const void *buf, u32 buf_len, u32 wire_len,
				  struct medge_frame *f)
{
	struct medge_frame_hdr fh;

	memset(f, 0, sizeof(*f));
	f->parts = 1;
	if (buf_len > wire_len)
		buf_len = wire_len;
	if (buf_len < sizeof(fh))
		return MEDGE_DROP_RUNT;
	memcpy(&fh, buf, sizeof(fh));
	if (fh.ver_type >> 4 != MEDGE_WIRE_VERSION)
		return MEDGE_DROP_VERSION;
	f->type = fh.ver_type & 15;
	if (f->type == MEDGE_FRAME_DATAGRAM)
		return decode_datagram(buf, buf_len, wire_len, f);
	if (f->type == MEDGE_FRAME_PROBE || f->type == MEDGE_FRAME_REPLY)
		return decode_probe(buf, buf_len, f);
	f->flags = fh.flags;
	f->seg_len = be16_to_cpu(fh.seg_len);
	f->nops = be32_to_cpu(fh.nops_qpn) >> 24;
	f->qpn = be32_to_cpu(fh.nops_qpn) & 0xffffff;
	f->psn = be32_to_cpu(fh.psn);
	f->ack_psn = be32_to_cpu(fh.ack_psn);
	f->ack_op = be32_to_cpu(fh.ack_op);
	f->sack_base = be16_to_cpu(fh.sack_base);
	f->fence_dist = be16_to_cpu(fh.fence_dist);
	f->sack = be64_to_cpu(fh.sack);

	if (f->flags & ~MEDGE_FRAME_FLAGS)
		return MEDGE_DROP_FLAGS;
	if (f->sack_base > MEDGE_WINDOW || f->fence_dist > MEDGE_OP_WINDOW)
		return MEDGE_DROP_WINDOW;
	switch (f->type) {
	case MEDGE_FRAME_DATA:
		return decode_data(buf, buf_len, wire_len, f);
	case MEDGE_FRAME_ACK:
		return check_ack(buf, buf_len);
	default:
		return MEDGE_DROP_TYPE;
	}
}

void medge_wire_next_op(const void *buf, struct medge_op *op)
{
	op->data_off += op->len;
	medge_wire_decode_op(buf, op->hdr_off + sizeof(struct medge_op_hdr), op);
}

void medge_wire_decode_ack(const void *buf, struct medge_ack *ack)
{
	const void *hdr = buf + sizeof(struct medge_frame_hdr);
	struct medge_ack_hdr ah __uninitialized;
	u32 i;

	memcpy(&ah, hdr, offsetof(struct medge_ack_hdr, bitmap));
	ack->nak = ah.nak;
	ack->rnr_timer = ah.rnr_timer & 31;
	ack->nak_seq = be16_to_cpu(ah.nak_seq);
	ack->nak_op = be32_to_cpu(ah.nak_op);
	ack->dups = be32_to_cpu(ah.dups);
	ack->poke_seq = be16_to_cpu(ah.poke_seq);
	ack->words = ah.words;
	memcpy(ah.bitmap, hdr + offsetof(struct medge_ack_hdr, bitmap),
	       ack->words * sizeof(ah.bitmap[0]));
	for (i = 0; i < ack->words; i++)
		ack->bitmap[i] = be64_to_cpu(ah.bitmap[i]);
}

void medge_wire_decode_datagram(const void *buf, struct medge_datagram *dg)
{
	struct medge_datagram_hdr dh;

	memcpy(&dh, buf, sizeof(dh));
	dg->flags = dh.flags;
	dg->hop_limit = be32_to_cpu(dh.hops_src_qpn) >> 24;
	dg->len = be16_to_cpu(dh.len);
	dg->qpn = be32_to_cpu(dh.qpn) & 0xffffff;
	dg->src_qpn = be32_to_cpu(dh.hops_src_qpn) & 0xffffff;
	dg->qkey = be32_to_cpu(dh.qkey);
	dg->imm = dh.imm;
	dg->class_flow = be32_to_cpu(dh.class_flow) & 0xfffffff;
	memcpy(dg->sgid, dh.sgid, sizeof(dg->sgid));
	memcpy(dg->dgid, dh.dgid, sizeof(dg->dgid));
}

void medge_wire_decode_probe(const void *buf, struct medge_probe *p)
{
	struct medge_probe_hdr ph;
	u32 i;

	memcpy(&ph, buf, sizeof(ph));
	memset(p, 0, sizeof(*p));
	p->type = ph.ver_type & 15;
	p->flags = ph.flags;
	p->rail = ph.rail;
	p->peer_rail = ph.peer_rail;
	p->first = ph.first;
	p->count = ph.count;
	p->probe_rail = ph.probe_rail;
	p->nonce = be64_to_cpu(ph.nonce);
	memcpy(p->node, ph.node, MEDGE_MAC_LEN);
	memcpy(p->to, ph.to, MEDGE_MAC_LEN);
	p->generation = be32_to_cpu(ph.generation);
	p->known = be32_to_cpu(ph.known);
	for (i = 0; i < p->count; i++) {
		p->index[i] = ph.rails[i].index;
		p->rails[i].flags = ph.rails[i].flags;
		p->rails[i].speed = be32_to_cpu(ph.rails[i].speed);
		memcpy(p->rails[i].mac, ph.rails[i].mac, MEDGE_MAC_LEN);
	}
}

void medge_wire_encode_probe(void *buf, const struct medge_probe *p)
{
	struct medge_probe_hdr ph = {
		.ver_type = MEDGE_WIRE_VERSION << 4 | p->type,
		.flags = p->flags,
		.rail = p->rail,
		.peer_rail = p->peer_rail,
		.first = p->first,
		.count = p->count,
		.probe_rail = p->probe_rail,
		.nonce = cpu_to_be64(p->nonce),
		.generation = cpu_to_be32(p->generation),
		.known = cpu_to_be32(p->known),
	};
	u32 i;

	memcpy(ph.node, p->node, MEDGE_MAC_LEN);
	memcpy(ph.to, p->to, MEDGE_MAC_LEN);
	for (i = 0; i < p->count; i++) {
		ph.rails[i].index = p->index[i];
		ph.rails[i].flags = p->rails[i].flags;
		ph.rails[i].speed = cpu_to_be32(p->rails[i].speed);
		memcpy(ph.rails[i].mac, p->rails[i].mac, MEDGE_MAC_LEN);
	}
	memcpy(buf, &ph, sizeof(ph));
}

void medge_wire_encode_frame(void *buf, const struct medge_frame *f)
{
	struct medge_frame_hdr fh = {
		.ver_type = MEDGE_WIRE_VERSION << 4 | f->type,
		.flags = f->flags,
		.seg_len = cpu_to_be16(f->seg_len),
		.nops_qpn = cpu_to_be32((u32)f->nops << 24 | f->qpn),
		.psn = cpu_to_be32(f->psn),
		.ack_psn = cpu_to_be32(f->ack_psn),
		.ack_op = cpu_to_be32(f->ack_op),
		.sack_base = cpu_to_be16(f->sack_base),
		.fence_dist = cpu_to_be16(f->fence_dist),
		.sack = cpu_to_be64(f->sack),
	};

	memcpy(buf, &fh, sizeof(fh));
}

void medge_wire_encode_op(void *buf, const struct medge_op *op)
{
	struct medge_op_hdr oh = {
		.opcode = op->opcode,
		.flags = op->flags,
		.len = cpu_to_be16(op->len),
		.op_no = cpu_to_be32(op->op_no),
		.op_len = cpu_to_be32(op->op_len),
		.offset = cpu_to_be32(op->offset),
		.addr = cpu_to_be64(op->addr),
		.rkey = cpu_to_be32(op->rkey),
		.imm = op->imm,
	};

	memcpy(buf, &oh, sizeof(oh));
}

void medge_wire_encode_ack(void *buf, const struct medge_ack *ack)
{
	u8 *word = buf + offsetof(struct medge_ack_hdr, bitmap);
	struct medge_ack_hdr ah __uninitialized;
	u32 i;

	ah.nak = ack->nak;
	ah.rnr_timer = ack->rnr_timer;
	ah.nak_seq = cpu_to_be16(ack->nak_seq);
	ah.nak_op = cpu_to_be32(ack->nak_op);
	ah.dups = cpu_to_be32(ack->dups);
	ah.poke_seq = cpu_to_be16(ack->poke_seq);
	ah.words = ack->words;
	ah.reserved = 0;
	memcpy(buf, &ah, offsetof(struct medge_ack_hdr, bitmap));
	for (i = 0; i < ack->words; i++, word += sizeof(__be64))
		put_unaligned_be64(ack->bitmap[i], word);
}

void medge_wire_encode_datagram(void *buf, const struct medge_datagram *dg)
{
	struct medge_datagram_hdr dh = {
		.ver_type = MEDGE_WIRE_VERSION << 4 | MEDGE_FRAME_DATAGRAM,
		.flags = dg->flags,
		.len = cpu_to_be16(dg->len),
		.qpn = cpu_to_be32(dg->qpn),
		.hops_src_qpn = cpu_to_be32((u32)dg->hop_limit << 24 |
					    dg->src_qpn),
		.qkey = cpu_to_be32(dg->qkey),
		.imm = dg->imm,
		.class_flow = cpu_to_be32(dg->class_flow),
	};

	memcpy(dh.sgid, dg->sgid, sizeof(dh.sgid));
	memcpy(dh.dgid, dg->dgid, sizeof(dh.dgid));
	memcpy(buf, &dh, sizeof(dh));
}

void medge_wire_cut(void *hdr, u32 index, u32 count)
{
	struct medge_frame_hdr fh;
	struct medge_op_hdr oh;
	u32 seg, skip;

	memcpy(&fh, hdr, sizeof(fh));
	memcpy(&oh, hdr + sizeof(fh), sizeof(oh));
	seg = be16_to_cpu(fh.seg_len);
	skip = index * seg;
	if (index + 1 < count) {
		fh.flags &= ~MEDGE_FRAME_LAST_FLAGS;
		oh.len = cpu_to_be16(seg);
	} else {
		oh.len = cpu_to_be16(be16_to_cpu(oh.len) - skip);
	}
	fh.psn = cpu_to_be32(be32_to_cpu(fh.psn) + index);
	oh.offset = cpu_to_be32(be32_to_cpu(oh.offset) + skip);
	memcpy(hdr, &fh, sizeof(fh));
	memcpy(hdr + sizeof(fh), &oh, sizeof(oh));
}

bool medge_wire_goes_on(const struct medge_frame *f)
{
	const struct medge_op *op = &f->op;

	/* What an op's last frame may say no other says, and nobody waits behind it. */
	return f->type == MEDGE_FRAME_DATA && f->nops == 1 &&
	       !(f->flags & MEDGE_FRAME_LAST_FLAGS) &&
	       op->len && op->offset + op->len < op->op_len &&
	       op->len + f->seg_len <= MEDGE_JOIN_MAX &&
	       f->nframes < MEDGE_WINDOW;
}

static bool same_ack(const struct medge_frame *a, const struct medge_frame *b)
{
	return a->ack_psn == b->ack_psn && a->ack_op == b->ack_op &&
	       a->sack_base == b->sack_base && a->sack == b->sack;
}

bool medge_wire_join(struct medge_frame *f, const struct medge_frame *next)
{
	if (next->type != MEDGE_FRAME_DATA || next->nops != 1 ||
	    next->qpn != f->qpn || next->psn != f->psn + f->nframes ||
	    next->seg_len != f->seg_len || next->fence_dist != f->fence_dist ||
	    next->op.offset != f->op.offset + f->op.len ||
	    !medge_op_same(&next->op, &f->op) || !same_ack(next, f))
		return false;
	if (!next->op.len || f->op.len + next->op.len > MEDGE_JOIN_MAX ||
	    f->nframes + next->nframes > MEDGE_WINDOW)
		return false;
	f->op.len += next->op.len;
	f->nframes += next->nframes;
	f->parts += next->parts;
	f->flags |= next->flags;
	return true;
}

bool medge_wire_follow(const struct medge_frame *f, void *hdr)
{
	u32 end = f->op.offset + f->op.len;

	/* It is a full one, there is another, and room for it. */
	if (!medge_wire_goes_on(f) || f->op.op_len - end <= f->seg_len ||
	    f->op.len + 2 * f->seg_len > MEDGE_JOIN_MAX ||
	    f->nframes + 1 >= MEDGE_WINDOW)
		return false;
	put_unaligned_be32(f->psn + f->nframes,
			   hdr + offsetof(struct medge_frame_hdr, psn));
	put_unaligned_be32(end, hdr + sizeof(struct medge_frame_hdr) +
				offsetof(struct medge_op_hdr, offset));
	return true;
}

void medge_wire_join_full(struct medge_frame *f)
{
	f->op.len += f->seg_len;
	f->nframes++;
	f->parts++;
}

static_assert(MEDGE_HDR_LEN % sizeof(u64) == 0);

bool medge_wire_same_header(const void *a, const void *b)
{
	u64 differ = 0;
	u32 i;

	for (i = 0; i < MEDGE_HDR_LEN; i += sizeof(u64))
		differ |= get_unaligned_be64(a + i) ^ get_unaligned_be64(b + i);
	return !differ;
}
