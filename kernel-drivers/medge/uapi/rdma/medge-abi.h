/* SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR BSD-2-Clause) */
/*
 * What medge.ko and libmedge agree on: the rings they share and the private
 * parts of the uverbs commands.
 *
 * Trust: everything a user process can write (ring indices, WQEs, the CQ's
 * consumer index) is hostile to the kernel. The kernel reads an index once,
 * masks it, copies a WQE once and checks the copy.
 */
#ifndef MEDGE_ABI_USER_H
#define MEDGE_ABI_USER_H

#include <linux/types.h>
#include <rdma/ib_user_ioctl_cmds.h>

/*
 * The provider takes a device of this version and no other; libibverbs says so
 * where they differ. It changes only when what is here comes to mean something
 * else. What is new needs no other version:
 * - a flag or opcode that the module does not know is refused by it;
 * - a request or answer grows at its end, where what is short counts as zeros,
 *   and a request with more in it than the module knows is refused;
 * - what a device can do is in medge_device_info.caps.
 */
#define MEDGE_ABI_VERSION 1

/* What the device says it is: sysfs node_desc, by which the provider knows it. */
#define MEDGE_NODE_DESC "medge"

/*
 * A ring: this header, then nentries (a power of two) entries of 1 << shift
 * bytes, MEDGE_RING_ENTRIES bytes from the start of its mapping. Indices run
 * freely and are masked on use. A producer stores the entry, then @prod with
 * release; a consumer loads @prod with acquire, then the entry, and gives the
 * entry back by storing @cons with release.
 *
 *             prod written by   cons written by
 *   SQ, RQ    user              kernel: all WQEs before it have completed
 *   CQ        kernel            user
 *
 * @need_doorbell (SQ, RQ; written by the kernel): enum medge_doorbell; nonzero
 * when the kernel will not look at the ring until it is told. The user, after
 * storing @prod and a full barrier, reads it, and issues a doorbell (a POST_SEND
 * or POST_RECV command of no work requests) if it is nonzero. The kernel stores
 * it, and after a full barrier reads @prod once more before it goes idle.
 *
 * @taken (SQ; written by the kernel): it has taken all WQEs before it, whether
 * they have completed or not. Who spins for a completion sees by it that nobody
 * looks at the ring, and rings though he need not. An older module leaves it 0.
 *
 * @armed (CQ): the user sets bits of enum medge_cq_armed, and after a full
 * barrier looks at @prod once more; the kernel, after storing @prod and a full
 * barrier, reads it, and clears it when it tells of the completion. A REQ_NOTIFY_CQ
 * command does the same.
 * @has_armed (CQ): nonzero when the kernel looks at @armed.
 *
 * @lend (CQ; written by the kernel): enum medge_lend. Who polls the CQ in vain, time
 * and again, has a CPU to lend.
 *
 * @life (written by the kernel): enum medge_ring_life.
 */
struct medge_ring_hdr {
	__u32 prod;
	__u32 lend;
	__u8 pad0[56];
	__u32 cons;
	__u32 need_doorbell;
	__u32 armed;
	__u32 has_armed;
	__u32 life;
	__u32 taken;
	__u8 pad1[40];
};

enum medge_doorbell {
	MEDGE_DOORBELL_NONE,
	MEDGE_DOORBELL_NOW,
	/*
	 * This or more: who posts one after the other may ring when the kernel
	 * has not taken so many (of an RQ, when so many before @prod have not
	 * completed), or when he has no more to post; or forget it, for the
	 * kernel looks at the ring within 100 us (of an RQ, 400). He may as well
	 * ring now.
	 */
	MEDGE_DOORBELL_LATE,
};

enum medge_ring_life {
	MEDGE_RING_PLAIN,		/* of a module that resizes at once and no other way */
	MEDGE_RING_IN_USE,
	MEDGE_RING_LEFT,		/* for the one offered: enum medge_resize_step */
};

/* What who spins on a CQ may do with MEDGE_METHOD_CQ_LEND. */
enum medge_lend {
	MEDGE_LEND_NO,			/* an older module knows of nothing */
	MEDGE_LEND_UNKNOWN,		/* call it once, after a while of spinning: it is noted */
	MEDGE_LEND_NOTED,
	MEDGE_LEND_WANTED,		/* call it: it returns at a completion, or soon */
};

/* For which completions there is to be an event. */
enum medge_cq_armed {
	MEDGE_CQ_ARMED_SOLICITED = 1 << 0,
	MEDGE_CQ_ARMED_NEXT = 1 << 1,
};

#define MEDGE_RING_ENTRIES 128

/* Operations a send WQE can ask for. */
enum medge_wqe_opcode {
	MEDGE_WQE_WRITE,
	MEDGE_WQE_WRITE_IMM,
	MEDGE_WQE_SEND,
	MEDGE_WQE_SEND_IMM,
	MEDGE_WQE_READ,
	MEDGE_WQE_CMP_SWAP,
	MEDGE_WQE_FETCH_ADD,
	MEDGE_WQE_SEND_INV,		/* rkey: what the peer shall invalidate */
	MEDGE_WQE_ATOMIC_WRITE,
	MEDGE_WQE_FLUSH,
	MEDGE_WQE_LOCAL_INV,		/* rkey: what to invalidate here */
	MEDGE_WQE_BIND_MW,
	MEDGE_WQE_REG_MR,		/* of the kernel alone: bind_access, rkey */
	MEDGE_WQE_OPCODES,
};

enum medge_wqe_flags {
	MEDGE_WQE_SIGNALED = 1 << 0,
	MEDGE_WQE_SOLICITED = 1 << 1,
	MEDGE_WQE_INLINE = 1 << 2,	/* inline_len bytes follow, no SGEs */
	MEDGE_WQE_FENCE = 1 << 3,	/* IBV_SEND_FENCE */
	MEDGE_WQE_FENCE_BACKWARD = 1 << 4,
	MEDGE_WQE_FENCE_FORWARD = 1 << 5,
};

struct medge_sge {
	__aligned_u64 addr;
	__u32 length;
	__u32 lkey;
};

/* A send WQE: 64 bytes, then num_sge medge_sge or inline_len bytes of data. */
struct medge_send_wqe {
	__aligned_u64 wr_id;
	__u8 opcode;			/* enum medge_wqe_opcode */
	__u8 num_sge;
	__u16 flags;			/* enum medge_wqe_flags */
	__be32 imm;
	__aligned_u64 remote_addr;	/* BIND_MW: where the window starts */
	__u32 rkey;			/* BIND_MW: the window's from now on */
	__u32 inline_len;
	union {
		struct {
			__aligned_u64 compare_add;	/* atomics: IBTA 9.4.5 */
			__aligned_u64 swap;
		};
		struct {
			__aligned_u64 bind_length;	/* BIND_MW; 0: unbind */
			__u32 bind_lkey;		/* MR the window is in */
			__u32 bind_access;		/* enum ib_uverbs_access_flags */
		};
		struct {
			__aligned_u64 flush_length;	/* FLUSH */
			__u32 flush_type;		/* enum medge_flush_type */
			__u32 flush_level;		/* enum medge_flush_level */
		};
	};
	union {
		struct {
			/* UD: struct medge_create_ah_resp.ah, and who is meant behind it. */
			__u32 ud_ah;
			__u32 ud_qpn;
			__u32 ud_qkey;
		};
		__u32 srqn;		/* XRC: whose receives it shall use */
	};
	__u32 reserved;
};

/* As IBTA's FETH has them. */
enum medge_flush_type {
	MEDGE_FLUSH_GLOBAL = 1 << 0,
	MEDGE_FLUSH_PERSISTENT = 1 << 1,
};

enum medge_flush_level {
	MEDGE_FLUSH_RANGE,
	MEDGE_FLUSH_MR,
};

/* A receive WQE: 16 bytes, then num_sge medge_sge. */
struct medge_recv_wqe {
	__aligned_u64 wr_id;
	__u32 num_sge;
	__u32 reserved;
};

/*
 * A completion. status, opcode and wc_flags have the values of
 * enum ibv_wc_status, ibv_wc_opcode and ibv_wc_flags (which are those of
 * ib_user_ioctl_verbs.h, where that has them).
 */
struct medge_cqe {
	__aligned_u64 wr_id;
	__u8 status;
	__u8 opcode;
	__u16 wc_flags;
	__u32 byte_len;
	__be32 imm;
	__u32 qp_num;
	__u32 src_qp;
	__u32 vendor_err;
	__aligned_u64 timestamp;	/* CLOCK_MONOTONIC, ns */
	__u16 vlan;			/* of a datagram; 0xffff: none */
	__u8 sl;			/* of a datagram: enum medge_cqe_sl */
	__u8 reserved[5];
	__aligned_u64 reserved2;
};

/* IBV_WC_WITH_INV: the kernel's own flag for it is another. */
enum { MEDGE_WC_WITH_INV = 1 << 3 };

/*
 * RoCE has no service level, but a completion has to say what stands in the 40
 * bytes before a datagram (IBTA A17.4.5.1). mlx5 says it in this field, and UCX
 * looks for it there: bit 3 for RoCE v2, below it what header it is.
 */
enum medge_cqe_sl {
	MEDGE_CQE_SL_IPV6 = 9,
	MEDGE_CQE_SL_IPV4 = 10,
};

#define MEDGE_CQE_SHIFT 6

/* Where a ring can be mapped: mmap of the command fd at @offset, @length bytes. */
struct medge_ring_map {
	__aligned_u64 offset;
	__aligned_u64 length;
	__u32 nentries;			/* power of two; 0: no ring */
	__u32 shift;			/* log2 of the bytes of an entry */
};

struct medge_alloc_ucontext_resp {
	__u32 max_inline;		/* largest max_inline_data of a QP */
	__u32 max_sge;
	__u32 features;			/* enum medge_features */
	__u32 reserved;
};

enum medge_features {
	MEDGE_FEATURE_RING_QP = 1 << 0,	/* there is MEDGE_CMD_RING_QP */
};

/*
 * A command of ours, beside those of enum ib_uverbs_write_cmds: look at the send ring
 * of a QP. EINVAL: this process has no such QP. POST_SEND of no work requests does the
 * same, and takes longer.
 */
#define MEDGE_CMD_RING_QP 63

struct medge_ring_qp {
	__u32 qpn;
};

/* Of resize CQ, too. */
struct medge_create_cq_resp {
	struct medge_ring_map cq;
};

/*
 * A CQ or SRQ is resized in steps: its user is offered a ring, maps it, and takes
 * it. So whatever is lost on the way, an answer of the command or the mapping,
 * kernel and user go on with the same ring: a user who cannot know whether his
 * step was done sees that in the old ring's @life.
 */
enum medge_resize_step {
	MEDGE_RESIZE_AT_ONCE,		/* nothing may be lost */
	MEDGE_RESIZE_OFFER,		/* in place of what was offered before */
	MEDGE_RESIZE_TAKE,
	MEDGE_RESIZE_DECLINE,
};

/* The user's private part of resize CQ; absent means zeros. */
struct medge_resize_cq_req {
	__u32 step;			/* enum medge_resize_step */
	__u32 reserved;
};

enum medge_reg_mr_flags {
	/* No memory: reads find zeros, writes are forgotten; at any address. */
	MEDGE_REG_MR_NULL = 1 << 0,
};

/* The user's private part of register MR; absent or short means zeros. */
struct medge_reg_mr_req {
	__u32 flags;			/* enum medge_reg_mr_flags */
	__u32 reserved;
};

enum medge_create_qp_flags {
	MEDGE_CREATE_QP_RELAXED = 1 << 0,	/* ops carry no mark of themselves */
	MEDGE_CREATE_QP_POLLED = 1 << 1,	/* look at its SQ, if the device may */
};

/* The user's private part of create QP; absent or short means zeros. */
struct medge_create_qp_req {
	__u32 flags;			/* enum medge_create_qp_flags */
	__u32 reserved;
};

struct medge_create_qp_resp {
	struct medge_ring_map sq;
	struct medge_ring_map rq;
};

struct medge_create_ah_resp {
	__u32 ah;			/* for medge_send_wqe.ud_ah */
	__u32 reserved;
};

/*
 * Our own ioctl methods, on objects of uverbs. A struct may grow at its end: who
 * knows less of it reads or gets zeros.
 */
enum medge_device_methods {
	MEDGE_METHOD_QUERY_DEVICE = (1U << UVERBS_ID_NS_SHIFT),
	MEDGE_METHOD_QUERY_RAILS,
};

enum medge_query_device_attrs {
	MEDGE_ATTR_QUERY_DEVICE_INFO = (1U << UVERBS_ID_NS_SHIFT),
};

enum medge_query_rails_attrs {
	/* In: bytes of an entry, as the caller knows it */
	MEDGE_ATTR_QUERY_RAILS_ENTRY_SIZE = (1U << UVERBS_ID_NS_SHIFT),
	MEDGE_ATTR_QUERY_RAILS_ENTRIES,
	/* Out: how many rails there are, which may be more than were told */
	MEDGE_ATTR_QUERY_RAILS_NUM,
};

enum medge_qp_methods {
	MEDGE_METHOD_QUERY_QP = (1U << UVERBS_ID_NS_SHIFT),
};

enum medge_cq_methods {
	MEDGE_METHOD_CQ_LEND = (1U << UVERBS_ID_NS_SHIFT),
};

enum medge_cq_lend_attrs {
	MEDGE_ATTR_CQ_LEND_HANDLE = (1U << UVERBS_ID_NS_SHIFT),
};

enum medge_query_qp_attrs {
	MEDGE_ATTR_QUERY_QP_HANDLE = (1U << UVERBS_ID_NS_SHIFT),
	MEDGE_ATTR_QUERY_QP_INFO,
};

enum medge_device_caps {
	MEDGE_CAP_FENCES = 1 << 0,	/* the receiver resolves them */
	MEDGE_CAP_RELAXED_QP = 1 << 1,
	MEDGE_CAP_POLLED_QP = 1 << 2,
};

struct medge_device_info {
	__u32 caps;			/* enum medge_device_caps */
	__u32 wire_version;
	__u32 ethertype;
	__u32 max_rails;
	__u32 num_rails;
	__u32 window;			/* frames of a QP in flight */
	__u32 op_window;		/* work requests of a QP in flight */
	__u32 frame_payload;		/* bytes of a full frame */
	__u32 superframe_payload;	/* bytes handed to a rail in one go */
	__u32 ack_frames;		/* acknowledged after so many; uncut superframes are one */
	__u32 ack_delay_us;		/* or after this time */
	__u32 reserved;
};

enum medge_rail_flags {
	MEDGE_RAIL_UP = 1 << 0,		/* it carries frames */
};

#define MEDGE_RAIL_NAME_LEN 16

struct medge_rail_info {
	__u32 index;
	__u32 flags;			/* enum medge_rail_flags */
	__u32 ifindex;
	__u32 mtu;
	__u32 speed_mbps;		/* 0: unknown */
	__u32 weight;			/* its share of the bytes; 0: down */
	__u8 name[MEDGE_RAIL_NAME_LEN];
	/* Frames and bytes from the Ethernet header on; a superframe's as cut. */
	__aligned_u64 tx_frames;
	__aligned_u64 tx_bytes;
	__aligned_u64 tx_retransmits;	/* of tx_frames */
	__aligned_u64 tx_errors;	/* skbs that the rail refused */
	__aligned_u64 rx_frames;
	__aligned_u64 rx_bytes;
};

enum medge_qp_info_flags {
	MEDGE_QP_RELAXED = 1 << 0,	/* MEDGE_CREATE_QP_RELAXED */
	MEDGE_QP_CONNECTED = 1 << 1,	/* what is from @frame_payload on holds */
	MEDGE_QP_RNR = 1 << 2,		/* the peer's op waits for a receive here */
	MEDGE_QP_RNR_WAIT = 1 << 3,	/* ours waits for one there */
	MEDGE_QP_POLLED = 1 << 4,	/* the device's poller looks at its SQ */
};

struct medge_qp_info {
	__u32 flags;			/* enum medge_qp_info_flags */
	__u32 frame_payload;		/* bytes of a full frame */
	__u32 ops_waiting;		/* taken from the send queue, not yet sent */
	__u32 ops_outstanding;		/* sent, not yet completed */
	__u32 frames_outstanding;	/* sent, not yet acknowledged */
	__u32 frames_held;		/* received, and waiting for a fence */
	__aligned_u64 tx_frames;
	__aligned_u64 tx_bytes;
	__aligned_u64 rx_frames;
	__aligned_u64 rx_bytes;
	__aligned_u64 retransmits;
	__aligned_u64 dups;		/* frames received twice */
	__aligned_u64 held;		/* frames that ever had to wait */
};

/* An SRQ's ring is as an RQ's; an entry is given back as soon as it is read. */
struct medge_create_srq_resp {
	struct medge_ring_map rq;
};

/*
 * When it is resized; short means zeros. @resp: address of a struct
 * medge_create_srq_resp, to be filled in with what is offered.
 */
struct medge_modify_srq_req {
	__aligned_u64 resp;
	__u32 step;			/* enum medge_resize_step */
	__u32 reserved;
};

/* Device memory is mapped as a ring is: its bytes are where a ring's entries are. */
enum medge_attr_dm_alloc {
	MEDGE_ATTR_DM_ALLOC_MAP = 1U << 12,	/* struct medge_ring_map, out */
};

enum medge_methods_dm {
	MEDGE_METHOD_DM_QUERY = 1U << 12,
};

enum medge_attr_dm_query {
	MEDGE_ATTR_DM_QUERY_HANDLE = 1U << 12,
	MEDGE_ATTR_DM_QUERY_MAP,
	MEDGE_ATTR_DM_QUERY_LENGTH,		/* __u64, out: as it was asked for */
};

#endif /* MEDGE_ABI_USER_H */
