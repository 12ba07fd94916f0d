/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The library's own objects.
 *
 * Locks, outermost first: polling (who polls for events, and runs handlers),
 * glue.lock, connection.lock, then one of glue.region_lock,
 * glue.event_lock, glue.change_lock.
 */
#ifndef GLUE_H
#define GLUE_H

#include <endian.h>
#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "protocol.h"

/* Memory that the device knows. */
struct region {
	uint64_t start, length;
	struct ibv_mr *mr;
};

/* Sorted by start, then length. */
struct regions {
	struct region *regions;
	size_t count, room;
};

/* A peer's memory that we may use. */
struct remote_key {
	uint64_t start, length;
	uint32_t key;
};

enum { REMOTE_KEYS = 1024 };

enum { CACHE_LINE = 64 };

enum work_kind { WORK_WRITE, WORK_READ, WORK_SEND };

enum work_state {
	WORK_WAITS,		/* for a key, or for earlier work */
	WORK_ASKED,		/* the peer, for a key */
	WORK_HAS_KEY,
	WORK_POSTED,
	WORK_DONE,
	WORK_FAILED,
};

/*
 * An operation, from the call that starts it to its completion: a line, for each
 * is one that was used long ago.
 */
struct work {
	alignas(CACHE_LINE) uint8_t kind;	/* enum work_kind */
	uint8_t state;			/* enum work_state */
	uint8_t flags;			/* enum glue_operation_flags */
	bool inlined;
	bool quiet;			/* the next one, tied to it, tells */
	bool tied;			/* fails if the one before does */
	int16_t slot;			/* its data is in this slot, or -1 */
	int8_t grant;			/* lent by the peer, or -1 */
	uint32_t tag;
	uint32_t size;
	void *local;			/* what the program said */
	uint64_t remote;
	uint32_t remote_key;
	uint32_t local_key;
	struct ibv_mr *once;		/* registered for it alone */
	int error;
};
static_assert(sizeof(struct work) == CACHE_LINE, "a line");
static_assert(GLUE_MAX_OPERATION <= UINT32_MAX, "work.size");
static_assert(SLOTS <= INT16_MAX && GRANTS <= INT8_MAX, "work.slot, work.grant");

enum connection_state {
	CONNECTION_STARTING,
	CONNECTION_OPEN,
	CONNECTION_LOST,
	CONNECTION_FAILED,		/* never was open */
};

struct half {
	struct glue_connection *connection;
	enum half_kind kind;
	struct rdma_cm_id *id;
	bool up;
};

/* An operation that failed without harm to the connection. */
struct failure {
	uint64_t handle;
	int error;
};

enum { FAILURES = 64 };

/* A message or notification in one of our receives. */
struct arrival {
	uint32_t slot;
	uint32_t size;
	uint32_t tag;
	bool notification;
};

struct glue_connection {
	struct glue *glue;
	uint32_t slot;			/* in glue.connections */
	uint32_t generation;
	_Atomic enum connection_state state;
	_Atomic int suspicion;		/* an errno, by the device */
	_Atomic int error;		/* why it is LOST or FAILED; -1 */
	void *context;
	uint64_t token;
	uint64_t peer_hello;
	bool passive;
	struct half half[HALVES];

	/* Of the agent and glue.lock. */
	uint64_t began_ms;
	_Atomic bool given;		/* the program has it */
	_Atomic bool *gone;		/* where to say that it is destroyed */
	bool lost_told;
	struct glue_connection *next;	/* of those waiting, or doomed */

	/* Of the agent alone. */
	uint64_t suspected_ms;
	uint64_t heard_ms;
	uint64_t pinged_ms;		/* 0: no ping is out */
	struct ibv_mr *grants[GRANTS];

	/* lock guards what follows. */
	pthread_mutex_t lock;
	struct work *work;		/* by handle, modulo queue_depth */
	uint64_t issued;		/* handles: taken */
	uint64_t posted;		/* given to the device, or failed */
	_Atomic uint64_t completed;	/* changes under lock */
	uint64_t read_posted;		/* the last read */
	uint64_t forward_read;		/* the last read with a forward fence */
	uint32_t grants_busy;		/* bits: asked for, used, or released */
	uint32_t credits;		/* limit of sends */
	uint32_t sends;			/* that used one of the peer's receives */
	int free_slots[SLOTS];
	int num_free_slots;
	struct remote_key *keys;
	size_t num_keys, last_key;
	struct region last_region;
	uint64_t last_regions_change;
	struct failure failures[FAILURES];	/* the last ones */
	_Atomic uint32_t num_failures;	/* changes under lock */
	_Atomic bool invalidating;
	_Atomic bool lent;		/* the peer has keys of glue_alloc() */
	_Atomic bool heard_bye, bye_sent;
	uint32_t control_sends, control_done;

	/* Of the two below: what is sent from, and received to. */
	char *memory;
	size_t memory_size;
	struct ibv_mr *memory_mr;
	struct mailbox *mailbox;
	struct ibv_mr *mailbox_mr;

	/* glue.polling guards what follows. */
	uint32_t consumed;		/* of our receives */
	uint32_t reported;
	bool reporting;
	char *assembly;			/* a call of several parts */
	uint32_t assembled;
	uint32_t assembled_total;	/* as its first part said */
	uint16_t assembled_handler;
	/*
	 * What came when no handler could run, oldest first: before the program
	 * had the connection, or while it was ending another one.
	 */
	struct arrival early[SLOTS];
	uint32_t num_early;

	/* As the hello said. */
	uint64_t peer_mailbox;
	uint32_t peer_mailbox_key;
	uint32_t max_inline;
};

/* A page of its own: the peer writes to it. */
struct mailbox {
	_Atomic uint32_t consumed;	/* the peer of our sends */
	uint32_t pad[15];
	uint32_t report;		/* what we write to the peer's */
	uint32_t last_read;		/* of the peer's, see glue_disconnect() */
};

struct handler {
	glue_handler run;
	void *context;
};

enum { MAX_RAILS = 65, POLL_BATCH = 16 };

struct rail {
	int index;
	bool up;
	char name[16];
};

struct glue {
	int fork_generation;
	struct glue_options options;
	struct sockaddr_storage address;
	uint16_t port;
	struct ibv_context *verbs;
	struct ibv_pd *pd;
	struct ibv_device_attr device;
	bool iwarp;
	bool odp;
	bool relaxed;			/* the order is fences', not posting's */

	/* Data: of who polls. */
	pthread_mutex_t polling;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	unsigned int unacked_cq_events;
	struct handler handlers[GLUE_HANDLERS];
	struct ibv_wc batch[POLL_BATCH];	/* what is found, */
	int batch_at, batch_num;	/* and what is left of it */
	bool later;			/* what arrives is put aside */

	/* The agent's. */
	pthread_t agent;
	int wake_agent, wake_poller;
	bool agent_runs;
	_Atomic bool stop;
	struct rdma_event_channel *cm;
	struct rdma_cm_id *bound;	/* holds the address */
	struct rdma_cm_id *listener;
	struct ibv_comp_channel *control_channel;
	struct ibv_cq *control_cq;
	int rail_socket;
	int netdev;
	struct rail rails[MAX_RAILS];
	int num_rails;

	/* Counts what somebody may wait for. */
	_Atomic uint32_t changes;
	pthread_mutex_t change_lock;
	pthread_cond_t changed;

	/* lock guards what follows. */
	pthread_mutex_t lock;
	/* Something leaves it only with polling held, too. */
	struct glue_connection **connections;
	uint32_t generation;
	struct glue_connection *waiting;	/* for glue_connection_wait() */
	struct glue_connection *doomed;	/* the agent shall destroy these */

	pthread_mutex_t region_lock;
	struct regions allocated, paged;
	_Atomic uint64_t regions_change;	/* something was taken away */
	pthread_mutex_t free_lock;	/* one glue_free() at a time */

	pthread_mutex_t event_lock;
	struct glue_event *events;
	uint32_t event_room;
	_Atomic uint32_t events_put, events_got;
	_Atomic uint32_t lost_untold;
	_Atomic uint32_t sleepers;
	uint32_t early;			/* connections with early[]; polling */
};

/* node.c */
bool node_is_ours(const struct glue *g);
uint64_t now_ms(void);
uint64_t now_us(void);
/* The absolute time in @ms from now, for pthread_cond_timedwait(). */
struct timespec deadline_in(int ms);
/* Something has changed that somebody may wait for. */
void announce(struct glue *g);
/*
 * Waits until glue.changes is not @seen; false: it is too late. The caller takes
 * @seen before it looks for what it wants. No deadline: NULL.
 */
bool wait_changed(struct glue *g, uint32_t seen,
		  const struct timespec *deadline);
void wake(int eventfd);

/* agent.c */
int agent_start(struct glue *g);
void agent_stop(struct glue *g);

/* connect.c */
void connect_event(struct glue *g, struct rdma_cm_event *event);
/* So says who asked for it. */
void connect_ready(struct glue_connection *c);
/* Destroys what is doomed and what has taken too long. */
void connect_clean(struct glue *g);
/* Whatever happened, the connection is of no more use. */
void connection_lost(struct glue_connection *c, int error);
/* So says a completion. The CM, or the peer's farewell, may know better. */
void connection_suspect(struct glue_connection *c, int error);
/*
 * A queue pair takes no work: it is ending, as siw's does before a completion
 * or the CM tells why, or its device is broken, which is EIO.
 */
void connection_refuses_work(struct glue_connection *c);
/* Returns true if there is one to decide on soon. */
bool connect_suspicions(struct glue *g);

/* queue.c */
int half_create_qp(struct half *half, struct rdma_cm_id *id);
struct glue_connection *connection_new(struct glue *g);
void connection_destroy(struct glue_connection *c);

enum wr_kind { WR_WORK, WR_RECV, WR_REPORT, WR_CONTROL_SEND, WR_CONTROL_RECV };

uint64_t wr_id(const struct glue_connection *c, enum wr_kind kind,
	       uint32_t index);
enum wr_kind wr_kind(uint64_t id);
uint32_t wr_index(uint64_t id);
/* Are both of the same connection and kind? */
bool wr_are_alike(uint64_t a, uint64_t b);
/* NULL: it is gone. */
struct glue_connection *wr_connection(struct glue *g, uint64_t id);

char *send_slot(const struct glue_connection *c, int slot);
char *recv_slot(const struct glue_connection *c, int slot);
int post_recv(struct glue_connection *c, int slot);
int post_control_recv(struct glue_connection *c, int slot);
struct control *control_send_slot(const struct glue_connection *c, uint32_t n);
struct control *control_recv_slot(const struct glue_connection *c, uint32_t n);
/* An errno that says what a completion's status means. */
int status_error(enum ibv_wc_status status);

/* control.c */
void control_poll(struct glue *g);
void control_tick(struct glue *g, uint64_t now);
/* Tells the peer that what it has accepted is open. */
void control_ready(struct glue_connection *c);
/* With connection.lock held. */
void control_send(struct glue_connection *c, const struct control *msg);

/* memory.c */
bool memory_has_odp(struct ibv_context *verbs);
/* A lasting local key for memory, if there is one. With connection.lock held. */
bool memory_local_key(struct glue_connection *c, uint64_t address, size_t size,
		      uint32_t *key);
/* What a peer asks for. Fills in address, length, key, flags of @answer, or error. */
void memory_grant(struct glue_connection *c, const struct control *ask,
		  struct control *answer);
void memory_free_all(struct glue *g);
/* Is something there, as far as can be seen without touching it? */
bool memory_is_mapped(uint64_t address, uint64_t length);

/* operation.c, with connection.lock held */
void work_pump(struct glue_connection *c);
void work_mapped(struct glue_connection *c, const struct control *msg);
void work_forget_keys(struct glue_connection *c, uint64_t start,
		      uint64_t length);
/* Room for @num more, of which all use a receive of the peer if @sends. */
bool work_has_room(struct glue_connection *c, uint32_t num, bool sends);
struct work *work_new(struct glue_connection *c, uint64_t *handle);
/* Without. What @n of its completions, all of WR_WORK and successes, tell. */
void work_complete(struct glue_connection *c, const struct ibv_wc *wc, int n);
/* Has all that was started been completed? */
bool work_is_all_done(struct glue_connection *c);
/* Reads a word of the peer's mailbox. Takes a place, which must be free. */
void work_read_mailbox(struct glue_connection *c);

/* call.c, with glue.polling held */
void call_arrived(struct glue_connection *c, const struct arrival *arrival);
void call_early(struct glue *g);
void call_reported(struct glue_connection *c);
/* Fills a slot with a notification, for devices without immediate data. */
size_t call_fill_notification(struct glue_connection *c, int slot,
			      uint32_t tag);

/* event.c */
/*
 * Looks at what the device has completed, and puts aside what arrived: no
 * handler runs. Nothing happens if another thread polls.
 */
void event_poll_for_later(struct glue *g);
void event_put(struct glue *g, const struct glue_event *event);
/* Those of a connection that is given up are not for anybody. */
void event_forget(struct glue *g, const struct glue_connection *c);
/* The node whose handler this thread is in, or NULL. */
struct glue *event_in_handler(void);
/* A handler may poll another node: returns the node that it is of. */
struct glue *event_enter_handler(struct glue *g);
void event_leave_handler(struct glue *outer);

/* rails.c */
int rails_watch(struct glue *g);
void rails_news(struct glue *g);

/* medge.c: what only medge devices can do */
bool medge_can_relax(struct ibv_context *verbs);
int medge_create_relaxed_qp(struct rdma_cm_id *id, struct ibv_pd *pd,
			    struct ibv_qp_init_attr *attr);
uint32_t medge_fences(uint32_t flags);

#endif /* GLUE_H */
