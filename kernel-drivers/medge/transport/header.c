// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The headers of what is sent, with what the peer is told on the way. */
#include "state.h"

static u32 ack_header(struct medge_conn *c, struct medge_frame *f, void *buf)
{
	struct medge_ack ack __uninitialized;

	f->type = MEDGE_FRAME_ACK;
	if (c->nack_now)
		f->flags |= MEDGE_FRAME_NACK;
	if (c->rnr_poke)
		f->flags |= MEDGE_FRAME_RNR_POKE;
	if (c->poke_now || c->rnr_poke)
		f->flags |= MEDGE_FRAME_ACK_REQ;
	medge_ack_fill_echo(c, f);
	medge_ack_fill_ext(c, &ack);
	medge_wire_encode_frame(buf, f);
	medge_wire_encode_ack(buf + sizeof(struct medge_frame_hdr), &ack);
	medge_ack_sent(c, true);
	return medge_wire_ack_len(ack.words);
}

u32 medge_tx_header(struct medge_conn *c, const struct medge_tx *tx, void *buf)
{
	struct medge_frame f = { .qpn = c->cfg.dest_qpn };
	struct medge_op op = tx->op;

	medge_ack_fill(c, &f);
	if (tx->type == MEDGE_FRAME_ACK)
		return ack_header(c, &f, buf);
	f.type = MEDGE_FRAME_DATA;
	f.nops = tx->nops;
	f.psn = tx->psn;
	f.seg_len = tx->nops == 1 ? c->cfg.seg_len : 0;
	if (medge_sent(c, tx->psn + tx->nframes - 1)->flags & MEDGE_SENT_ACK_REQ)
		f.flags |= MEDGE_FRAME_ACK_REQ;
	if (medge_sent(c, tx->psn + tx->nframes - 1)->flags & MEDGE_SENT_ECHO)
		f.flags |= MEDGE_FRAME_ECHO;
	if (!tx->response)
		f.fence_dist = medge_sop(c, op.op_no)->fence_dist;
	medge_wire_encode_frame(buf, &f);
	/* Where a response goes is the requester's own knowledge. */
	if (tx->response) {
		op.addr = 0;
		op.rkey = 0;
		op.imm = 0;
	}
	medge_wire_encode_op(buf + sizeof(struct medge_frame_hdr), &op);
	medge_reply_sent(c);
	medge_ack_sent(c, false);
	return MEDGE_HDR_LEN;
}
