// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Rings of slots that grow. */
#include "table.h"

void medge_table_init(struct medge_table *t, void *first, u32 size)
{
	t->one = first;
	t->chunks = &t->one;
	t->mask = size - 1;
	t->own = false;
}

static u32 chunks(const struct medge_table *t)
{
	return DIV_ROUND_UP(medge_table_size(t), MEDGE_TABLE_CHUNK);
}

void medge_table_fini(struct medge_table *t)
{
	u32 i;

	if (!t->own)
		return;
	for (i = 0; i < chunks(t); i++)
		medge_env_free(t->chunks[i]);
	if (t->chunks != &t->one)
		medge_env_free(t->chunks);
}

/* @t is zeros. */
static bool alloc_slots(struct medge_table *t, u32 size, size_t slot_size)
{
	u32 chunk = min_t(u32, size, MEDGE_TABLE_CHUNK), i;

	t->own = true;
	t->mask = size - 1;
	t->chunks = chunks(t) == 1 ? &t->one :
		    medge_env_alloc(chunks(t) * sizeof(*t->chunks));
	if (!t->chunks)
		return false;
	for (i = 0; i < chunks(t); i++) {
		t->chunks[i] = medge_env_alloc(chunk * slot_size);
		if (!t->chunks[i]) {
			medge_table_fini(t);
			return false;
		}
	}
	return true;
}

bool medge_table_enlarge(struct medge_table *t, size_t slot_size, u32 want,
			 u32 most, u32 from, u32 count)
{
	struct medge_table bigger = { };
	u32 size = medge_table_size(t), n;

	while (size < most && size < want)
		size *= 2;
	if (!alloc_slots(&bigger, size, slot_size))
		return false;
	for (n = from; n != from + count; n++)
		memcpy(medge_table_slot(&bigger, n, slot_size),
		       medge_table_slot(t, n, slot_size), slot_size);
	medge_table_fini(t);
	*t = bigger;
	if (chunks(t) == 1)
		t->chunks = &t->one;
	return true;
}
