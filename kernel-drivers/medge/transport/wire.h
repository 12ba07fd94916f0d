/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The wire format: what stands behind the Ethernet header of a medge frame.
 *
 *   data frame    medge_frame_hdr, then nops times medge_op_hdr, then the payload
 *                 of each, one behind the other
 *   ack frame     medge_frame_hdr, medge_ack_hdr
 *   datagram      medge_datagram_hdr, payload: of no connection
 *   probe, reply  medge_probe_hdr: between nodes, of no connection
 *   sealed frame  medge_seal_hdr, or medge_secret_hdr, then any of these
 *   keys          medge_keys_hdr: between nodes, of no connection
 *
 * All fields are big endian. A frame is self-describing: it alone says where
 * its bytes go. A frame of one op may be one of a *run*: consecutive frames of
 * that op, sent as one superframe with the first frame's header in front and
 * seg_len payload bytes a frame. Where the superframe has to be cut, each frame
 * gets the header that medge_wire_cut() writes; where it is not, the receiver
 * sees payload longer than seg_len and knows how many frames it holds. Frames
 * that were cut and come one after the other medge_wire_join() makes one again.
 */
#ifndef MEDGE_TRANSPORT_WIRE_H
#define MEDGE_TRANSPORT_WIRE_H

#include "env.h"

enum {
	MEDGE_WIRE_VERSION = 3,
	/* IEEE 802 local experimental EtherType 2 */
	MEDGE_ETHERTYPE = 0x88b6,
	MEDGE_MAX_RAILS = 64,
	/*
	 * Frames from the oldest not acknowledged to the newest, of one
	 * connection, one direction, at most; a sender begins with fewer.
	 */
	MEDGE_WINDOW = 2048,
	/* Request ops in flight of one connection, one direction. */
	MEDGE_OP_WINDOW = 512,
	/* Requests that answer with data (READ, atomics) in flight, at most. */
	MEDGE_MAX_RD_ATOMIC = 128,
	/* Payload of a run, headers included, fits the 16 bits of a length. */
	MEDGE_RUN_MAX = 65535 - 14 - 64,
	/*
	 * Payload that a receiver joins: what it has to do for it but copy is little
	 * beside that by then, and it keeps its softirq for as long.
	 */
	MEDGE_JOIN_MAX = 1 << 20,
	MEDGE_MSG_MAX = 1u << 31,
};

enum medge_frame_type {
	MEDGE_FRAME_DATA,
	MEDGE_FRAME_ACK,
	MEDGE_FRAME_DATAGRAM,
	MEDGE_FRAME_PROBE,	/* does this path work, and what are your rails? */
	MEDGE_FRAME_REPLY,	/* it does, and these */
	MEDGE_FRAME_SEALED,	/* a checksum, and a frame that it is of */
	MEDGE_FRAME_SECRET,	/* a tag, and a frame that it encrypts */
	MEDGE_FRAME_KEYS,	/* let us agree on keys */
	MEDGE_FRAME_TYPES,
};

enum medge_frame_flags {
	/* Acknowledge as soon as this frame and what it completes is performed. */
	MEDGE_FRAME_ACK_REQ = BIT(0),
	/* Ack frame: bits missing in the bitmap are negatively acknowledged. */
	MEDGE_FRAME_NACK = BIT(1),
	/* Ack frame: the sender's RNR timer ran out, look for a receive again. */
	MEDGE_FRAME_RNR_POKE = BIT(2),
	/*
	 * Data: answer with an ack frame of its own, on the rail it came on, so
	 * that the path's round trip is known. Ack: that answer, @psn says to
	 * which frame.
	 */
	MEDGE_FRAME_ECHO = BIT(3),
	/*
	 * Data: a hop of the path was congested (ECN's CE). Ack with ECHO: such
	 * frames have come on this rail since the last. Who sets it: a hop that
	 * is programmed to (switches and qdiscs mark IP headers, which raw
	 * Ethernet has not; a seal it has to make anew), or the receiver, where
	 * one day frames come in IP.
	 */
	MEDGE_FRAME_MARKED = BIT(4),
	MEDGE_FRAME_FLAGS = BIT(5) - 1,
	MEDGE_FRAME_DATA_FLAGS = MEDGE_FRAME_ACK_REQ | MEDGE_FRAME_ECHO |
				 MEDGE_FRAME_MARKED,
	/* Of a run, these are the last frame's. */
	MEDGE_FRAME_LAST_FLAGS = MEDGE_FRAME_ACK_REQ | MEDGE_FRAME_ECHO,
};

/**
 * struct medge_frame_hdr - in front of every frame
 * @ver_type: version in the high, enum medge_frame_type in the low 4 bits
 * @flags: enum medge_frame_flags
 * @seg_len: payload bytes of each frame of the op but its last; 0 if nops > 1
 * @nops_qpn: ops in this frame (8 bits), destination QPN (24 bits)
 * @psn: number of this frame in its connection's stream; of an ack, with ECHO,
 *       of the frame that is echoed, otherwise unused
 * @ack_psn: cumulative ack: all frames before it are placed
 * @ack_op: all request ops before it are performed
 * @sack_base: what bit 0 of @sack stands for, counted from @ack_psn
 * @fence_dist: the first op is not performed before op_no - fence_dist is
 *              (an op with a forward fence); 0: no such op
 * @sack: bit i: frame ack_psn + sack_base + i has been received
 */
struct medge_frame_hdr {
	u8 ver_type;
	u8 flags;
	__be16 seg_len;
	__be32 nops_qpn;
	__be32 psn;
	__be32 ack_psn;
	__be32 ack_op;
	__be16 sack_base;
	__be16 fence_dist;
	__be64 sack;
};

static_assert(sizeof(struct medge_frame_hdr) == 32);

enum medge_opcode {
	MEDGE_OP_WRITE,
	MEDGE_OP_WRITE_IMM,
	MEDGE_OP_SEND,
	MEDGE_OP_SEND_IMM,
	MEDGE_OP_READ,
	MEDGE_OP_CMP_SWAP,
	MEDGE_OP_FETCH_ADD,
	/* A SEND whose delivery invalidates a key of the receiver's. */
	MEDGE_OP_SEND_INV,
	/* A WRITE of eight bytes that are seen all at once. */
	MEDGE_OP_ATOMIC_WRITE,
	/* Performed when what came before it can be seen by all, or is durable. */
	MEDGE_OP_FLUSH,
	/* Only takes its turn: what a request does at its own side is not sent. */
	MEDGE_OP_NOP,
	/* The reverse stream's answer to READ and the atomics. */
	MEDGE_OP_RESPONSE,
	MEDGE_OPCODES,
};

enum medge_op_flags {
	MEDGE_OP_STRICT = BIT(0),
	MEDGE_OP_FENCE_BACKWARD = BIT(1),
	MEDGE_OP_FENCE_FORWARD = BIT(2),
	MEDGE_OP_SOLICITED = BIT(3),
	MEDGE_OP_FLAGS = BIT(4) - 1,
};

/**
 * struct medge_op_hdr - what an op's payload is
 * @opcode: enum medge_opcode
 * @flags: enum medge_op_flags
 * @len: payload bytes of this op in this frame (or in this uncut superframe)
 * @op_no: number of the request in its direction; of a RESPONSE, the number of
 *         the request it answers, in the opposite direction
 * @op_len: bytes of the whole op
 * @offset: of this frame's payload in the op
 * @addr: WRITE, READ, atomics: remote address of the op's first byte.
 *        SEND: receive index, which counts the ops of this direction that
 *        consume a receive WQE (WRITE_IMM's is implied: they do so in op order);
 *        its high half is the receiver's business (XRC: the SRQ)
 * @rkey: WRITE, READ, atomics, FLUSH: remote key. SEND_INV: key to invalidate
 * @imm: *_IMM: immediate data. FLUSH: enum medge_flush, big endian
 *
 * FLUSH has an op_len as READ has, and no payload either. Atomics carry 16 bytes
 * of payload: compare (or add) operand, swap operand.
 */
struct medge_op_hdr {
	u8 opcode;
	u8 flags;
	__be16 len;
	__be32 op_no;
	__be32 op_len;
	__be32 offset;
	__be64 addr;
	__be32 rkey;
	__be32 imm;
};

static_assert(sizeof(struct medge_op_hdr) == 32);

/* What a FLUSH asks for (IBTA's FETH). */
enum medge_flush {
	MEDGE_FLUSH_VISIBLE = BIT(0),
	MEDGE_FLUSH_DURABLE = BIT(1),
	MEDGE_FLUSH_WHOLE_MR = BIT(2),	/* addr and op_len are of no meaning */
	MEDGE_FLUSH_BITS = BIT(3) - 1,
};

/* Does an op of this opcode carry no payload, whatever its op_len? */
static inline bool medge_opcode_bare(u8 opcode)
{
	return opcode == MEDGE_OP_READ || opcode == MEDGE_OP_FLUSH ||
	       opcode == MEDGE_OP_NOP;
}

enum {
	MEDGE_HDR_LEN = sizeof(struct medge_frame_hdr) + sizeof(struct medge_op_hdr),
	MEDGE_ACK_WORDS = MEDGE_WINDOW / 64,
	MEDGE_ATOMIC_LEN = 16,
	MEDGE_ATOMIC_WRITE_LEN = 8,
};

static_assert(MEDGE_HDR_LEN <= 64);

/* Of a data frame of @nops: its headers, and so where the first payload begins. */
static inline u32 medge_wire_headers(u32 nops)
{
	return sizeof(struct medge_frame_hdr) + nops * sizeof(struct medge_op_hdr);
}

/* Why a request was refused: struct medge_ack_hdr.nak (IBTA 9.7.5.2.8). */
enum medge_nak {
	MEDGE_NAK_NONE,
	MEDGE_NAK_RNR,			/* no receive posted for nak_op */
	MEDGE_NAK_INVALID_REQUEST,
	MEDGE_NAK_ACCESS,
	MEDGE_NAK_OPERATION,		/* remote operational error */
	MEDGE_NAKS,
};

/**
 * struct medge_ack_hdr - the rest of an explicit acknowledgment
 * @nak: enum medge_nak; what happened to @nak_op, all before it are performed
 * @rnr_timer: RNR NAK timer code (IBTA table 45)
 * @nak_seq: tells a repeated RNR NAK from a new one
 * @nak_op: op refused
 * @dups: frames received twice so far, modulo 2^32
 * @poke_seq: with MEDGE_FRAME_RNR_POKE, the nak_seq it is the answer to: a
 *            poke that comes twice, on two rails, is refused once
 * @words: of @bitmap; those behind them are not sent, and zeros
 * @bitmap: bit i of word w: frame ack_psn + 64 w + i has been received
 */
struct medge_ack_hdr {
	u8 nak;
	u8 rnr_timer;
	__be16 nak_seq;
	__be32 nak_op;
	__be32 dups;
	__be16 poke_seq;
	u8 words;
	u8 reserved;
	__be64 bitmap[MEDGE_ACK_WORDS];
};

static_assert(sizeof(struct medge_ack_hdr) == 272);

enum { MEDGE_ACK_MAX = sizeof(struct medge_frame_hdr) + sizeof(struct medge_ack_hdr) };

/* Bytes of an explicit acknowledgment with so many words. */
static inline u32 medge_wire_ack_len(u32 words)
{
	return sizeof(struct medge_frame_hdr) +
	       offsetof(struct medge_ack_hdr, bitmap) + words * sizeof(__be64);
}

enum medge_datagram_flags {
	MEDGE_DATAGRAM_SOLICITED = BIT(0),
	MEDGE_DATAGRAM_IMM = BIT(1),
	MEDGE_DATAGRAM_FLAGS = BIT(2) - 1,
};

/**
 * struct medge_datagram_hdr - in front of a datagram
 * @ver_type: as in every frame
 * @flags: enum medge_datagram_flags
 * @len: payload bytes
 * @qpn: destination QPN (low 24 bits); 0xffffff: the members of group @dgid
 * @hops_src_qpn: hop limit (8 bits), sender's QPN (24 bits)
 * @qkey: taken by QPs that have the same
 * @imm: immediate data, if the flag says so
 * @class_flow: traffic class (8 bits, from bit 20 on), flow label (20 bits)
 * @sgid, @dgid: addresses of sender and receiver; IPv4 ones are mapped
 */
struct medge_datagram_hdr {
	u8 ver_type;
	u8 flags;
	__be16 len;
	__be32 qpn;
	__be32 hops_src_qpn;
	__be32 qkey;
	__be32 imm;
	__be32 class_flow;
	u8 sgid[16];
	u8 dgid[16];
};

static_assert(sizeof(struct medge_datagram_hdr) == 56);

enum { MEDGE_DATAGRAM_LEN = sizeof(struct medge_datagram_hdr) };

enum medge_probe_flags {
	/* Probe: its sender doubts this path; look whether yours back works. */
	MEDGE_PROBE_DOUBT = BIT(0),
	/* The rails in @rails are the last of the list. */
	MEDGE_PROBE_LAST = BIT(1),
	MEDGE_PROBE_FLAGS = BIT(2) - 1,
};

enum {
	MEDGE_PROBE_RAILS = 16,		/* described in one frame */
	MEDGE_RAIL_ANY = 255,
	MEDGE_MAC_LEN = 6,
};

enum medge_port_flags {
	MEDGE_PORT_UP = BIT(0),
	MEDGE_PORT_DRAINING = BIT(1),	/* its administrator wants it free */
	MEDGE_PORT_FLAGS = BIT(2) - 1,
};

/**
 * struct medge_probe_rail_hdr - a rail, as its node describes it
 * @index: below MEDGE_MAX_RAILS
 * @flags: enum medge_port_flags
 * @mac: address that it receives frames at, and sends them from
 * @speed: Mbit/s; 0: unknown
 */
struct medge_probe_rail_hdr {
	u8 index;
	u8 flags;
	u8 mac[MEDGE_MAC_LEN];
	__be32 speed;
};

static_assert(sizeof(struct medge_probe_rail_hdr) == 12);

/**
 * struct medge_probe_hdr - a probe or a reply, all of it
 * @ver_type: as in struct medge_frame_hdr
 * @flags: enum medge_probe_flags
 * @rail: the sender's, on which this frame leaves
 * @peer_rail: reply: the sender's rail on which the probe came in;
 *             probe: the receiver's that is meant, or MEDGE_RAIL_ANY
 * @first: probe: describe your rails from this index on; reply: it did
 * @count: rails described; 0 in a probe
 * @probe_rail: reply: the receiver's rail on which the probe left
 * @nonce: of the probe; who can repeat it has seen it
 * @node: the sender: its device's MAC address
 * @to: the receiver, likewise; other nodes may see the frame, too
 * @generation: number of the sender's list of rails; another list has another
 * @known: generation of the receiver's list that the sender knows; 0: none
 * @rails: the first @count of them are described, the others zero
 */
struct medge_probe_hdr {
	u8 ver_type;
	u8 flags;
	u8 rail;
	u8 peer_rail;
	u8 first;
	u8 count;
	u8 probe_rail;
	u8 reserved;
	__be64 nonce;
	u8 node[MEDGE_MAC_LEN];
	u8 to[MEDGE_MAC_LEN];
	__be32 generation;
	__be32 known;
	__be32 reserved2;
	struct medge_probe_rail_hdr rails[MEDGE_PROBE_RAILS];
};

/* Of one length, so that a reply is never more than what it replies to. */
enum { MEDGE_PROBE_LEN = sizeof(struct medge_probe_hdr) };
static_assert(MEDGE_PROBE_LEN == 232);

/**
 * struct medge_seal_hdr - in front of a frame whose sender has sealed it
 * @ver_type: as in struct medge_frame_hdr
 * @reserved: zero
 * @frames: that are sealed here: 1, or those of an uncut superframe
 * @crc: CRC32C (as iSCSI's: begun with ones, inverted at the end) of all that
 *       is behind the seal; of an uncut superframe, of its first frame with the
 *       header it would be cut with, and the other frames' follow
 *
 * Ethernet headers are not sealed. A seal within a seal is none.
 */
struct medge_seal_hdr {
	u8 ver_type;
	u8 reserved;
	__be16 frames;
	__be32 crc;
};

/* Bytes of one frame's seal, and of each further frame's. */
enum {
	MEDGE_SEAL_LEN = sizeof(struct medge_seal_hdr),
	MEDGE_SEAL_MORE = 4,
};

static_assert(MEDGE_SEAL_LEN == 8);

enum {
	MEDGE_TAG_LEN = 16,
	MEDGE_NONCE_LEN = 16,
};

/**
 * struct medge_secret_hdr - in front of a frame that only its receiver can read
 * @ver_type: as in struct medge_frame_hdr
 * @clear: bytes behind the seal that are not encrypted, only authenticated: 0, or,
 *         of what is or was a superframe, MEDGE_HDR_LEN
 * @frames: as in struct medge_seal_hdr
 * @session: which key
 * @number: of the frame, or the first: never another's of that key. The sender's
 *          rail (8 bits), then counted on that rail
 * @tag: AES-GCM's. Its nonce: 32 bits of zeros, and @number; its associated data:
 *       this header up to the tag, as it is in front of the frame alone, and
 *       what is clear. Of an uncut superframe the other frames' follow
 */
struct medge_secret_hdr {
	u8 ver_type;
	u8 clear;
	__be16 frames;
	__be32 session;
	__be64 number;
	u8 tag[MEDGE_TAG_LEN];
};

enum { MEDGE_SECRET_LEN = sizeof(struct medge_secret_hdr) };
static_assert(MEDGE_SECRET_LEN == 32);

enum medge_keys_flags {
	MEDGE_KEYS_INSTALLED = BIT(0),	/* the sender takes frames with that key */
	MEDGE_KEYS_FLAGS = BIT(1) - 1,
};

/**
 * struct medge_keys_hdr - what nodes tell each other to agree on keys, see keys.c
 * @ver_type: as in struct medge_frame_hdr
 * @flags: enum medge_keys_flags
 * @reserved: zero
 * @nonce: the sender's part
 * @echo: the receiver's, as the sender knows it; zeros: it does not
 * @tag: of all before it, and of both nodes' addresses: its sender knows the secret
 */
struct medge_keys_hdr {
	u8 ver_type;
	u8 flags;
	__be16 reserved;
	u8 nonce[MEDGE_NONCE_LEN];
	u8 echo[MEDGE_NONCE_LEN];
	u8 tag[MEDGE_TAG_LEN];
};

enum { MEDGE_KEYS_LEN = sizeof(struct medge_keys_hdr) };
static_assert(MEDGE_KEYS_LEN == 52);

/* Why bytes are not a frame. Counted by name; keep medge_drop_name() in step. */
enum medge_drop {
	MEDGE_DROP_NONE,
	MEDGE_DROP_RUNT,
	MEDGE_DROP_VERSION,
	MEDGE_DROP_TYPE,
	MEDGE_DROP_FLAGS,
	MEDGE_DROP_OPCODE,
	MEDGE_DROP_LENGTH,		/* lengths that contradict each other */
	MEDGE_DROP_OFFSET,
	MEDGE_DROP_WINDOW,		/* frame or op outside the window */
	MEDGE_DROP_MISMATCH,		/* frames of one op contradict each other */
	MEDGE_DROP_ACK,			/* acknowledges what was never sent */
	MEDGE_DROP_HOLD,		/* more held frames than a window */
	MEDGE_DROP_STATE,		/* connection is not in a state to receive */
	MEDGE_DROP_PROBE,		/* a probe that contradicts itself */
	MEDGE_DROPS,
};

/* An op of a frame, decoded. */
struct medge_op {
	u8 opcode;
	u8 flags;
	u16 hdr_off;		/* of its header, from the frame header */
	u32 op_no;
	u32 op_len;
	u32 offset;
	u64 addr;
	u32 rkey;
	__be32 imm;
	u32 len;		/* payload in this frame, or superframe, or all joined */
	u32 data_off;		/* of the payload, from the frame header */
};

/* Is it one op of which these are pieces? */
static inline bool medge_op_same(const struct medge_op *a,
				 const struct medge_op *b)
{
	return a->op_no == b->op_no && a->opcode == b->opcode &&
	       a->flags == b->flags && a->op_len == b->op_len &&
	       a->addr == b->addr && a->rkey == b->rkey && a->imm == b->imm;
}

/* A frame, decoded; of a probe or reply, only @type and @flags. */
struct medge_frame {
	u8 type;
	u8 flags;
	u8 nops;
	u16 seg_len;
	u16 nframes;		/* 1 unless it is an uncut superframe, or joined */
	u16 parts;		/* frames and superframes that were joined; 1: none were */
	u32 qpn;
	u32 psn;
	u32 ack_psn;
	u32 ack_op;
	u16 sack_base;
	u16 fence_dist;
	u64 sack;
	struct medge_op op;	/* the first; medge_wire_next_op() has the others */
};

/* An explicit acknowledgment's second header, decoded. */
struct medge_ack {
	u8 nak;
	u8 rnr_timer;
	u16 nak_seq;
	u32 nak_op;
	u32 dups;
	u16 poke_seq;
	u8 words;
	u64 bitmap[MEDGE_ACK_WORDS];	/* the first @words of them */
};

/* A datagram's header, decoded. */
struct medge_datagram {
	u8 flags;
	u8 hop_limit;
	u16 len;
	u32 qpn;
	u32 src_qpn;
	u32 qkey;
	__be32 imm;
	u32 class_flow;
	u8 sgid[16];
	u8 dgid[16];
};

/* A rail of a probe, decoded, and as its own node keeps it. */
struct medge_rail_attr {
	u8 flags;		/* enum medge_port_flags */
	u8 mac[MEDGE_MAC_LEN];	/* zeros: there is no such rail */
	u32 speed;
	u32 id;			/* own rails only: another id, another port */
};

/* A probe or reply, decoded; rails that are described are in @rails. */
struct medge_probe {
	u8 type;
	u8 flags;
	u8 rail;
	u8 peer_rail;
	u8 first;
	u8 count;
	u8 probe_rail;
	u64 nonce;
	u8 node[MEDGE_MAC_LEN];
	u8 to[MEDGE_MAC_LEN];
	u32 generation;
	u32 known;
	u8 index[MEDGE_PROBE_RAILS];
	struct medge_rail_attr rails[MEDGE_PROBE_RAILS];
};

/**
 * medge_wire_linear() - how much of a frame decoding needs in one piece
 * @buf: the frame's first bytes, behind the Ethernet header
 * @buf_len: how many of them there are, at least sizeof(struct medge_frame_hdr)
 * @wire_len: length of the frame (Ethernet padding may be included)
 *
 * All of an acknowledgment, otherwise the headers, and the operands of an atomic that is
 * alone in its frame. The result may exceed @wire_len: then it is a runt. Operands among
 * several ops are rare, and may be anywhere behind: decoding takes the frame for a runt
 * where they are not in the piece, and wants all of it.
 */
u32 medge_wire_linear(const void *buf, u32 buf_len, u32 wire_len);

/**
 * medge_wire_decode() - decode a frame's header, and its op headers
 * @buf: the frame behind the Ethernet header, linear for medge_wire_linear()
 * @buf_len: linear bytes
 * @wire_len: length of the whole frame
 * @f: the result; for a data frame, all of its op headers have been checked
 *
 * Total: any bytes give a frame or a reason.
 * Return: MEDGE_DROP_NONE or why it is not a frame.
 */
enum medge_drop medge_wire_decode(const void *buf, u32 buf_len, u32 wire_len,
				  struct medge_frame *f);

/* Of a data frame's header: payload bytes of each frame of the run but the last. */
static inline u32 medge_wire_seg_len(const void *hdr)
{
	const struct medge_frame_hdr *fh = hdr;

	return be16_to_cpu(fh->seg_len);
}

/* Decode the op header at @hdr_off of a frame; checks nothing, and sets no @data_off. */
void medge_wire_decode_op(const void *buf, u32 hdr_off, struct medge_op *op);
/* Of it only the flags. */
u8 medge_wire_op_flags(const void *buf, u32 hdr_off);

/* The op behind @op, which is not the last, in the same frame; checks nothing. */
void medge_wire_next_op(const void *buf, struct medge_op *op);

/* Decode the second header of a frame of type ACK that decoded well. */
void medge_wire_decode_ack(const void *buf, struct medge_ack *ack);

/* The same of a frame of type DATAGRAM. */
void medge_wire_decode_datagram(const void *buf, struct medge_datagram *dg);
/* Decode a frame of type PROBE or REPLY that decoded well. */
void medge_wire_decode_probe(const void *buf, struct medge_probe *p);
/* Encode one into MEDGE_PROBE_LEN bytes. */
void medge_wire_encode_probe(void *buf, const struct medge_probe *p);

void medge_wire_encode_frame(void *buf, const struct medge_frame *f);
void medge_wire_encode_op(void *buf, const struct medge_op *op);
/* As many bytes of a frame as are behind its first header. */
void medge_wire_encode_ack(void *buf, const struct medge_ack *ack);
void medge_wire_encode_datagram(void *buf, const struct medge_datagram *dg);

/**
 * medge_wire_cut() - turn a run's header into that of one of its frames
 * @hdr: MEDGE_HDR_LEN bytes, a copy of the run's header, rewritten in place
 * @index: which frame of the run, from 0
 * @count: frames in the run
 */
void medge_wire_cut(void *hdr, u32 index, u32 count);

/* May a frame follow @f, decoded, that could be joined to it? */
bool medge_wire_goes_on(const struct medge_frame *f);

/**
 * medge_wire_join() - undo a cut: make a frame one with that which follows it
 * @f: decoded, medge_wire_goes_on(); then of @next's frames, too
 * @next: decoded
 *
 * Return: they are joined; false: @next is not what follows @f in its op, or says
 * something else of what was received, and @f is as it was.
 */
bool medge_wire_join(struct medge_frame *f, const struct medge_frame *next);

/**
 * medge_wire_follow() - what the next header of an op is, if it says nothing new
 * @f: joined frames that go on, see medge_wire_goes_on()
 * @hdr: MEDGE_HDR_LEN bytes: that of one of them, a full one; rewritten in place
 *
 * A frame of seg_len bytes that has this header, bit by bit, needs no decoding:
 * medge_wire_join_full() joins it, and they go on.
 *
 * Return: false: if there is a next frame, it must be decoded, and @hdr is as it was.
 */
bool medge_wire_follow(const struct medge_frame *f, void *hdr);
void medge_wire_join_full(struct medge_frame *f);
/* Are MEDGE_HDR_LEN bytes the same? */
bool medge_wire_same_header(const void *a, const void *b);

const char *medge_drop_name(enum medge_drop drop);
const char *medge_opcode_name(u8 opcode);

#endif /* MEDGE_TRANSPORT_WIRE_H */
