/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Which bytes memory may hold, by the ops and their order alone: what was read,
 * and what is left at the end.
 */
#include <stdlib.h>

#include "host.h"
#include "pair.h"

static bool is_write(const struct op *o)
{
	return o->req.opcode == MEDGE_OP_WRITE ||
	       o->req.opcode == MEDGE_OP_WRITE_IMM ||
	       o->req.opcode == MEDGE_OP_ATOMIC_WRITE;
}

/* Where in region @region op @o writes byte 0; false: it does not write there. */
static bool writes(const struct op *o, enum host_region region, u64 *at)
{
	if (!is_write(o) || o->req.rkey != host_rkey(region) || !o->req.len)
		return false;
	*at = o->req.addr - host_addr(region, 0);
	return true;
}

bool check_ordered(const struct host *h, u32 i, u32 j)
{
	const struct op *o = &h->ops[j];
	s32 m;

	if (o->req.flags & MEDGE_OP_FENCE_BACKWARD)
		return true;
	if (o->req.flags & MEDGE_OP_STRICT &&
	    o->req.rkey != host_rkey(REGION_RELAXED))
		return true;
	/* in op order as they are delivered */
	if (o->req.opcode != MEDGE_OP_WRITE)
		return !is_write(o);
	for (m = o->fence_before; m >= (s32)i; m = h->ops[m].fence_before)
		if (m == (s32)i || check_ordered(h, i, m))
			return true;
	return false;
}

/* Must op index @j wait for the READ at index @read to be answered? */
static bool after_read(const struct host *h, u32 read, u32 j)
{
	u32 m;

	if (h->ops[read].req.flags & MEDGE_OP_FENCE_FORWARD ||
	    h->ops[j].req.flags & MEDGE_OP_FENCE_BACKWARD)
		return true;
	for (m = read + 1; m <= j; m++)
		if (h->ops[m].req.submit & MEDGE_SUBMIT_FENCE)
			return true;
	return false;
}

/* Does it write there? Then @from is where it has that byte from. */
static bool covers(const struct op *o, enum host_region region, u64 at,
		   const u8 **from)
{
	u64 start;

	if (!writes(o, region, &start) || at < start || at - start >= o->req.len)
		return false;
	*from = noise + o->src + at - start;
	return true;
}

/* The end of those bytes from @at on that the same ops write, or @end. */
static u64 alike(const struct host *h, enum host_region region, u64 at, u64 end)
{
	u64 start;
	u32 j;

	for (j = 0; j < h->nops; j++) {
		if (!writes(&h->ops[j], region, &start))
			continue;
		if (start > at)
			end = min(end, start);
		else if (start + h->ops[j].req.len > at)
			end = min(end, start + h->ops[j].req.len);
	}
	return end;
}

/* Is what op index @j writes at @at gone before op index @read, or (nops) the end? */
static bool overwritten(const struct host *h, enum host_region region, u64 at,
			u32 j, u32 read)
{
	const u8 *from;
	u32 k;

	for (k = j + 1; k < read && k < h->nops; k++)
		if (covers(&h->ops[k], region, at, &from) && check_ordered(h, j, k))
			return true;
	return false;
}

/* Where the byte at @at may be from, as op index @read or (nops) the end sees it. */
static u32 sources(const struct host *h, enum host_region region, u64 at,
		   u32 read, const u8 **from)
{
	const struct region *r = &h->peer->regions[region];
	bool any = false;
	u32 j, n = 0;

	for (j = 0; j < h->nops; j++) {
		if (!covers(&h->ops[j], region, at, &from[n]))
			continue;
		any = any || j < read;
		if (j > read && after_read(h, read, j))
			continue;
		n += !overwritten(h, region, at, j, read);
	}
	if (!any)
		from[n++] = noise + r->src + at;
	return n;
}

/* What the region would hold if all was done in op order, up to index @end. */
static void in_op_order(const struct host *h, enum host_region region, u64 from,
			u32 len, u32 end, u8 *out)
{
	const struct region *r = &h->peer->regions[region];
	u64 start;
	u32 j;

	memcpy(out, noise + r->src + from, len);
	for (j = 0; j < end; j++) {
		const struct op *o = &h->ops[j];
		u64 lo, hi;

		if (!writes(o, region, &start))
			continue;
		lo = max(start, from);
		hi = min(start + o->req.len, from + len);
		if (lo < hi)
			memcpy(out + lo - from, noise + o->src + lo - start,
			       hi - lo);
	}
}

static void check_bytes(const struct host *h, enum host_region region, u64 from,
			u32 len, u32 end, const u8 *is, const char *what)
{
	const u8 **source = malloc((h->nops + 1) * sizeof(*source));
	u8 *want = malloc(len + 1);
	u32 i, n = 0, s = 0, began = 0, same = 0;

	in_op_order(h, region, from, len, end, want);
	for (i = memcmp(want, is, len) ? 0 : len; i < len; i++) {
		if (i == same) {
			began = i;
			same = alike(h, region, from + i, from + len) - from;
			n = sources(h, region, from + i, end, source);
			s = 0;
		}
		/* What wrote the byte before it, most likely. */
		if (s < n && source[s][i - began] == is[i])
			continue;
		for (s = 0; s < n && source[s][i - began] != is[i]; s++)
			;
		CHECK(s < n,
		      "%s %u: byte %llu of region %u of side %u is %02x, in op order %02x",
		      what, end, from + i, region, h->peer->side, is[i], want[i]);
	}
	free(source);
	free(want);
}

void check_read(struct host *h, u32 i)
{
	const struct op *o = &h->ops[i];
	enum host_region region;

	if (!o->req.len)
		return;
	CHECK(host_memory(h->peer, o->req.rkey, o->req.addr, o->req.len, &region));
	check_bytes(h, region, o->req.addr - host_addr(region, 0), o->req.len, i,
		    o->sink, "READ");
}

/* Atomics are exactly-once, in op order. */
static void check_cells(const struct host *h)
{
	const struct region *r = &h->peer->regions[REGION_ATOMIC];
	u8 *cells = malloc(r->len);
	u32 i;

	memcpy(cells, noise + r->src, r->len);
	for (i = 0; i < h->nops; i++) {
		const struct op *o = &h->ops[i];
		u64 value;
		u8 *cell;

		if (!op_is_atomic(o->req.opcode) || !o->executed)
			continue;
		cell = cells + (o->req.addr - host_addr(REGION_ATOMIC, 0));
		memcpy(&value, cell, sizeof(value));
		CHECK_EQ(o->original, value);
		if (o->req.opcode == MEDGE_OP_FETCH_ADD)
			value += o->operand;
		else if (value == o->operand)
			value = o->swap;
		memcpy(cell, &value, sizeof(value));
	}
	CHECK(!memcmp(cells, r->bytes, r->len), "atomic cells of side %u",
	      h->peer->side);
	free(cells);
}

void check_memory(struct host *h)
{
	check_bytes(h, REGION_STRICT, 0, h->peer->regions[REGION_STRICT].len,
		    h->nops, h->peer->regions[REGION_STRICT].bytes, "end after");
	check_bytes(h, REGION_RELAXED, 0, h->peer->regions[REGION_RELAXED].len,
		    h->nops, h->peer->regions[REGION_RELAXED].bytes, "end after");
	check_cells(h);
}
