/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What two nodes say to each other; little-endian. */
#ifndef GLUE_PROTOCOL_H
#define GLUE_PROTOCOL_H

#include <assert.h>
#include <stdint.h>

#include "rdmacm-glue.h"

enum {
	HELLO_MAGIC = 0x65756c67,
	HELLO_VERSION = 2,
};

/*
 * A connection is two QPs: one for the program's data, and one over which the
 * nodes' agents talk, also while the program is busy elsewhere.
 */
enum half_kind {
	HALF_CONTROL,
	HALF_DATA,
	HALVES,
};

/* Private data of the CM's request and reply. */
struct hello {
	uint32_t magic;
	uint16_t version;
	uint8_t kind;			/* enum half_kind */
	uint8_t reserved;
	uint64_t token;			/* makes a pair of two halves */
	uint64_t word;			/* options.hello */
	/* Where the peer of a HALF_DATA counts our calls it has consumed; it may read there, too. */
	uint64_t mailbox;
	uint32_t mailbox_key;
	uint32_t credits;		/* receives posted for the peer */
};
static_assert(sizeof(struct hello) == 40, "the CM's requests have 56 bytes");

/*
 * The agents' messages. Each request has its answer, and each kind of request
 * is out only once (MAP and RELEASE once for each grant), so CONTROL_RECVS
 * receives always suffice.
 */
enum control_type {
	CONTROL_PING = 1,
	CONTROL_PONG,
	CONTROL_MAP,			/* may I use address, length? */
	CONTROL_MAPPED,			/* with this key; or an error */
	CONTROL_RELEASE,		/* the grant is not used any more */
	CONTROL_RELEASED,
	CONTROL_INVALIDATE,		/* forget keys of address, length */
	CONTROL_INVALIDATED,
	CONTROL_BYE,
	CONTROL_READY,			/* who asked for the connection has it */
};

enum control_flags {
	CONTROL_FOR_WRITE = 1 << 0,	/* MAP */
	CONTROL_LASTING = 1 << 1,	/* MAPPED: the key may be kept */
};

enum {
	GRANTS = 8,			/* memory lent for one operation */
	CONTROL_RECVS = 48,
	CONTROL_SENDS = 64,
};

struct control {
	uint8_t type;			/* enum control_type */
	uint8_t flags;			/* enum control_flags */
	uint16_t grant;
	uint32_t error;
	uint64_t handle;		/* MAP, MAPPED: the asker's operation */
	uint64_t address;
	uint64_t length;
	uint32_t key;
	uint32_t reserved;
};
static_assert(sizeof(struct control) == 40, "struct control has no holes");

/*
 * What is sent over HALF_DATA: a call in parts that follow each other, or the
 * notification of a device that has no immediate data.
 */
enum call_type {
	CALL_PART = 1,
	CALL_NOTIFICATION,
};

struct call_header {
	uint8_t type;			/* enum call_type */
	uint8_t reserved;
	uint16_t handler;
	uint32_t size;			/* of the part, which follows */
	uint32_t total;			/* of all parts; or the tag */
	uint32_t offset;		/* of this part */
	uint64_t args[GLUE_ARGS];
};
static_assert(sizeof(struct call_header) == 48, "no holes");

enum {
	SLOT_SIZE = 8192,
	PART_SIZE = SLOT_SIZE - sizeof(struct call_header),
	/* Receives of a connection, and slots to send from. */
	SLOTS = 64,
};

#endif /* GLUE_PROTOCOL_H */
