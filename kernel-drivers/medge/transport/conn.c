// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* A connection's life: made, started, told the time. */
#include "state.h"

size_t medge_conn_size(void)
{
	return sizeof(struct medge_conn);
}

void medge_conn_init(struct medge_conn *c, const struct medge_conn_config *cfg,
		     const struct medge_conn_ops *ops, u64 now)
{
	u32 i;

	c->cfg = *cfg;
	c->ops = ops;
	c->cfg.run_max = min_t(u32, cfg->run_max, MEDGE_RUN_MAX);
	c->rcv_nxt = cfg->peer_psn;
	c->rcv_high = cfg->peer_psn;
	c->rcv_latest = cfg->peer_psn;
	c->ack_at = MEDGE_NEVER;
	c->replies_trusted = MEDGE_REPLIES_MIN;
	c->window = cfg->window;
	c->loss_at = MEDGE_NEVER;
	c->report_now = true;
	for (i = 0; i < MEDGE_MAX_RAILS; i++)
		c->rail_path[i] = MEDGE_PATH_UNKNOWN;
	c->paced_at = MEDGE_NEVER;
	c->scheduler = MEDGE_SCHED_EARLIEST;
	c->progress = now;
	c->last_tx = now;
	c->lost_at = now;
	medge_table_init(&c->sent, c->first.sent, MEDGE_SENT_FIRST);
	medge_table_init(&c->sops, c->first.sops, MEDGE_OPS_FIRST);
	medge_table_init(&c->rops, c->first.rops, MEDGE_OPS_FIRST);
	medge_table_init(&c->resps, c->first.resps, MEDGE_RESPONSES_FIRST);
	medge_table_init(&c->rails, c->first.rails, MEDGE_RAILS_FIRST);
	c->paths = c->first.paths;
	c->paths_max = MEDGE_PATHS_FIRST;
}

void medge_conn_fini(struct medge_conn *c)
{
	medge_table_fini(&c->sent);
	medge_table_fini(&c->sops);
	medge_table_fini(&c->rops);
	medge_table_fini(&c->resps);
	medge_table_fini(&c->rails);
	if (c->paths != c->first.paths)
		medge_env_free(c->paths);
}

bool medge_conn_reserve_paths(struct medge_conn *c, u32 npaths)
{
	struct medge_conn_path *paths;

	if (npaths <= c->paths_max)
		return true;
	paths = medge_env_alloc(npaths * sizeof(*paths));
	if (!paths)
		return false;
	/* Frames in flight may be on any of them, also on those that are gone. */
	memcpy(paths, c->paths, c->paths_max * sizeof(*paths));
	if (c->paths != c->first.paths)
		medge_env_free(c->paths);
	c->paths = paths;
	c->paths_max = npaths;
	return true;
}

void medge_conn_start_at(struct medge_conn *c, u32 psn)
{
	if (c->psn_known)
		return;
	c->psn_known = true;
	c->snd_una = psn;
	c->snd_nxt = psn;
	c->lost_hint = psn;
}

void medge_conn_enable_send(struct medge_conn *c,
			    const struct medge_conn_config *cfg, u64 now)
{
	c->cfg.psn = cfg->psn;
	c->cfg.ord = cfg->ord;
	c->cfg.retry_cnt = cfg->retry_cnt;
	c->cfg.rnr_retry = cfg->rnr_retry;
	c->cfg.rnr_timer = cfg->rnr_timer;
	c->cfg.timeout_ns = cfg->timeout_ns;
	c->progress = now;
	c->last_tx = now;
	medge_conn_start_at(c, cfg->psn);
	c->can_send = true;
}

void medge_conn_set_rnr_timer(struct medge_conn *c, u8 code)
{
	c->cfg.rnr_timer = code;
}

void medge_conn_set_user(struct medge_conn *c, void *user)
{
	c->user = user;
}

void *medge_conn_user(const struct medge_conn *c)
{
	return c->user;
}

const struct medge_conn_stats *medge_conn_stats(const struct medge_conn *c)
{
	return &c->stats;
}

void medge_conn_schedule(struct medge_conn *c, enum medge_scheduler scheduler)
{
	c->scheduler = scheduler;
}

void medge_conn_may_wait(struct medge_conn *c)
{
	c->may_wait = true;
}

bool medge_conn_refusing(const struct medge_conn *c)
{
	return c->refused;
}

u64 medge_conn_earliest(const struct medge_conn *c)
{
	u64 at = min3(c->ack_at, c->paced_at, medge_loss_earliest(c));

	return c->rnr_wait ? min(at, c->rnr_at) : at;
}

u64 medge_conn_deadline(struct medge_conn *c)
{
	u64 at = c->ack_at;

	if (c->rnr_wait && !c->dead)
		at = min(at, c->rnr_at);
	return min3(at, c->paced_at, medge_loss_deadline(c));
}

/* Ask again, until there is an answer, but not for ever. */
static void poke_rnr(struct medge_conn *c, u64 now)
{
	if (!c->rnr_poked) {
		c->progress = now;
	} else {
		if (c->backoff < 255)
			c->backoff++;
		c->poke_paths = medge_sched_paths(c);
		c->ack_doubt = true;
	}
	c->rnr_poked = true;
	c->rnr_poke = true;
	c->rnr_at = now + medge_loss_rto(c);
}

void medge_conn_timeout(struct medge_conn *c, u64 now)
{
	if (now >= c->ack_at) {
		c->ack_now = true;
		c->ack_at = MEDGE_NEVER;
		medge_reply_overdue(c);
	}
	if (c->rnr_wait && !c->dead && now >= c->rnr_at)
		poke_rnr(c, now);
	if (now >= c->paced_at)
		c->paced_at = MEDGE_NEVER;
	medge_loss_timeout(c, now);
	if (c->op_oldest != c->op_next && !c->dead &&
	    medge_loss_hopeless(c, now))
		medge_conn_fail_op(c, c->op_oldest, MEDGE_RETRY_EXCEEDED);
}

bool medge_conn_idle(const struct medge_conn *c)
{
	return c->op_oldest == c->op_next && c->resp_oldest == c->resp_next &&
	       !c->nunacked && !medge_ack_wanted(c) &&
	       c->ack_at == MEDGE_NEVER && !c->held;
}
