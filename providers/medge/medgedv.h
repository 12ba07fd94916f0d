/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * medge direct verbs: what a medge device can do that verbs have no words for.
 * Link with -lmedge; see medgedv(7).
 *
 * A struct may grow at its end. Who passes one says how long he knows it, as
 * its last argument; comp_mask says which of its later parts hold.
 */
#ifndef MEDGEDV_H
#define MEDGEDV_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <infiniband/verbs.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Is it a medge device, which this library drives? Of any device. */
bool medgedv_is_supported(struct ibv_device *device);

/*
 * Fences, in ibv_send_wr.send_flags and ibv_qp_ex.wr_flags, on any QP of a
 * medge device. The receiver resolves them, so they cost no round trip. (The
 * bits are of those that the kernel leaves to drivers.)
 */
enum medgedv_send_flags {
	/* Performed only after all earlier work requests have been performed. */
	MEDGE_SEND_FENCE_BACKWARD = 1 << 26,
	/* Every later work request is performed only after this one. */
	MEDGE_SEND_FENCE_FORWARD = 1 << 27,
};

enum medgedv_qp_create_flags {
	/* Work requests are performed in any order but what fences say. */
	MEDGEDV_QP_CREATE_RELAXED = 1 << 0,
	/* The device's poller looks at what is posted, where it may. */
	MEDGEDV_QP_CREATE_POLLED = 1 << 1,
};

struct medgedv_qp_init_attr {
	uint64_t comp_mask;		/* none defined */
	uint32_t create_flags;		/* enum medgedv_qp_create_flags */
	uint32_t reserved;		/* 0 */
};

/* As ibv_create_qp_ex(). NULL, with errno, if it fails. */
struct ibv_qp *medgedv_create_qp(struct ibv_context *context,
				 struct ibv_qp_init_attr_ex *attr,
				 struct medgedv_qp_init_attr *medge_attr,
				 uint32_t inlen);

enum medgedv_device_caps {
	MEDGEDV_DEVICE_CAP_FENCES = 1 << 0,
	MEDGEDV_DEVICE_CAP_RELAXED_QP = 1 << 1,
	MEDGEDV_DEVICE_CAP_POLLED_QP = 1 << 2,
};

struct medgedv_device_attr {
	uint64_t comp_mask;		/* out; none defined */
	uint32_t caps;			/* enum medgedv_device_caps */
	uint32_t wire_version;
	uint32_t ethertype;
	uint32_t max_rails;
	uint32_t num_rails;
	uint32_t window;		/* frames of a QP in flight */
	uint32_t op_window;		/* work requests of a QP in flight */
	uint32_t frame_payload;		/* bytes of a full frame */
	uint32_t superframe_payload;	/* bytes handed to a rail in one go */
	uint32_t ack_frames;		/* acknowledged after so many frames; superframes are one */
	uint32_t ack_delay_us;		/* or after this time */
	uint32_t reserved;
};

/* 0, or the value of errno. */
int medgedv_query_device(struct ibv_context *context,
			 struct medgedv_device_attr *attr, uint32_t inlen);

enum medgedv_qp_flags {
	MEDGEDV_QP_RELAXED = 1 << 0,
	MEDGEDV_QP_CONNECTED = 1 << 1,	/* if not, the rest is zeros */
	MEDGEDV_QP_RNR = 1 << 2,	/* the peer waits for a receive here */
	MEDGEDV_QP_RNR_WAIT = 1 << 3,	/* we wait for one there */
	MEDGEDV_QP_POLLED = 1 << 4,	/* posts need no system call */
};

struct medgedv_qp_attr {
	uint64_t comp_mask;		/* out; none defined */
	uint32_t flags;			/* enum medgedv_qp_flags */
	uint32_t frame_payload;		/* bytes of a full frame */
	uint32_t ops_waiting;		/* accepted, not yet sent */
	uint32_t ops_outstanding;	/* sent, not yet completed */
	uint32_t frames_outstanding;	/* sent, not yet acknowledged */
	uint32_t frames_held;		/* received, and waiting for a fence */
	uint64_t tx_frames;
	uint64_t tx_bytes;
	uint64_t rx_frames;
	uint64_t rx_bytes;
	uint64_t retransmits;		/* of tx_frames */
	uint64_t dups;			/* frames received twice */
	uint64_t held;			/* frames that ever waited for a fence */
};

/* 0, or the value of errno. */
int medgedv_query_qp(struct ibv_qp *qp, struct medgedv_qp_attr *attr,
		     uint32_t inlen);

enum medgedv_rail_flags {
	MEDGEDV_RAIL_UP = 1 << 0,	/* it carries frames */
};

struct medgedv_rail_attr {
	uint64_t comp_mask;		/* out; none defined */
	uint32_t index;			/* as counters and traces name it */
	uint32_t flags;			/* enum medgedv_rail_flags */
	uint32_t ifindex;
	uint32_t mtu;
	uint32_t speed_mbps;		/* 0: unknown */
	uint32_t weight;		/* its share of the bytes; 0: down */
	char name[16];
	/* Frames and bytes, with their Ethernet headers, as on the wire. */
	uint64_t tx_frames;
	uint64_t tx_bytes;
	uint64_t tx_retransmits;	/* of tx_frames */
	uint64_t tx_errors;		/* what the rail refused */
	uint64_t rx_frames;
	uint64_t rx_bytes;
};

/*
 * Up to @max_rails of the device's rails.
 * Return: how many it has, which may be more, or a negative errno.
 */
ssize_t medgedv_query_rails(struct ibv_context *context,
			    struct medgedv_rail_attr *rails, size_t max_rails,
			    uint32_t entry_size);

#ifdef __cplusplus
}
#endif

#endif /* MEDGEDV_H */
