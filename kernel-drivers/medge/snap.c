// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Where snapshots are kept: as much memory as they take that are under way. */
#include <linux/log2.h>
#include <linux/math.h>
#include <linux/slab.h>

#include "snap.h"
#include "transport/env.h"

/* Of a chunk, if the queue has as many, and a page has room; of one that is there always. */
enum { SLOTS_MIN = 8, SLOTS_KEPT = 4 };

static u32 chunks(const struct medge_snaps *s)
{
	return (s->mask >> s->shift) + 1;
}

static void put_spare(struct medge_snaps *s, void *chunk)
{
	*(void **)chunk = s->spare;
	s->spare = chunk;
}

/* So that one chunk and where all of them are take least memory: about as much each. */
static u32 chunk_slots(size_t size, u32 entries, bool kept)
{
	u32 slots = int_sqrt(entries * sizeof(void *) / size);
	u32 least = kept ? SLOTS_KEPT : SLOTS_MIN;
	u32 most = min_t(u32, entries, max_t(u32, PAGE_SIZE / size, 1));

	return min_t(u32, roundup_pow_of_two(max(slots, least)), most);
}

int medge_snaps_init(struct medge_snaps *s, size_t size, u32 entries, bool reserve)
{
	s->size = size;
	s->mask = entries - 1;
	s->shift = ilog2(chunk_slots(size, entries, reserve));
	s->inner = BIT(s->shift) - 1;
	s->chunks = kcalloc(chunks(s), sizeof(*s->chunks), GFP_KERNEL_ACCOUNT);
	if (!s->chunks)
		return -ENOMEM;
	if (reserve) {
		s->spare = kzalloc(size << s->shift, GFP_KERNEL_ACCOUNT);
		if (!s->spare)
			return -ENOMEM;
	}
	return 0;
}

void medge_snaps_empty(struct medge_snaps *s)
{
	u32 i;

	if (!s->chunks)
		return;
	for (i = 0; i < chunks(s); i++) {
		if (!s->chunks[i])
			continue;
		memset(s->chunks[i], 0, (size_t)s->size << s->shift);
		put_spare(s, s->chunks[i]);
		s->chunks[i] = NULL;
	}
	s->end = 0;
}

void medge_snaps_fini(struct medge_snaps *s)
{
	void *chunk;

	medge_snaps_empty(s);
	while ((chunk = s->spare)) {
		s->spare = *(void **)chunk;
		kfree(chunk);
	}
	kfree(s->chunks);
	s->chunks = NULL;
}

size_t medge_snaps_most(const struct medge_snaps *s)
{
	return s->chunks ? chunks(s) * (sizeof(*s->chunks) + (s->size << s->shift)) : 0;
}

bool medge_snaps_attach(struct medge_snaps *s, u32 n)
{
	void *chunk = s->spare;

	if (chunk)
		s->spare = *(void **)chunk;
	else
		chunk = medge_env_alloc((size_t)s->size << s->shift);
	if (!chunk)
		return false;
	*medge_snaps_chunk(s, n) = chunk;
	return true;
}

void medge_snaps_detach(struct medge_snaps *s, u32 next, u32 end)
{
	void **chunk = medge_snaps_chunk(s, next - 1);

	/* Or one of its slots is in use again, on the next lap. */
	if (!*chunk || (s32)(end - next) > (s32)(s->mask - s->inner))
		return;
	put_spare(s, *chunk);
	*chunk = NULL;
}
