/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Rings of slots that grow with what they hold: a connection that has little
 * to do is small. The first slots are the connection's own, so that one that
 * gets no memory goes on with those. No piece of them is larger than a page,
 * which there is even where memory is short and in pieces.
 */
#ifndef MEDGE_TRANSPORT_TABLE_H
#define MEDGE_TRANSPORT_TABLE_H

#include "env.h"

enum { MEDGE_TABLE_CHUNK = 32 };	/* slots */

/**
 * struct medge_table - a ring of slots
 * @chunks: slot @i is number @i % MEDGE_TABLE_CHUNK of its chunk
 * @one: @chunks, if there is but one
 * @mask: that of number n is slot n & @mask
 * @own: they are allocated
 */
struct medge_table {
	void **chunks;
	void *one;
	u32 mask;
	bool own;
};

static inline u32 medge_table_size(const struct medge_table *t)
{
	return t->mask + 1;
}

static inline void *medge_table_slot(const struct medge_table *t, u32 n,
				     size_t slot_size)
{
	u32 i = n & t->mask;

	return t->chunks[i / MEDGE_TABLE_CHUNK] +
	       i % MEDGE_TABLE_CHUNK * slot_size;
}

/* That of number @n, @before being that of the one before. */
static inline void *medge_table_next(const struct medge_table *t, void *before,
				     u32 n, size_t slot_size)
{
	return n & t->mask & (MEDGE_TABLE_CHUNK - 1) ?
	       before + slot_size : medge_table_slot(t, n, slot_size);
}

/* @first: @size zeroed slots, a power of two and no more than a chunk. */
void medge_table_init(struct medge_table *t, void *first, u32 size);
void medge_table_fini(struct medge_table *t);
/* What medge_table_grow() does, when there is something to do. */
bool medge_table_enlarge(struct medge_table *t, size_t slot_size, u32 want,
			 u32 most, u32 from, u32 count);

/*
 * Have @want slots at least, but no more than @most, a power of two; those of
 * the @count numbers from @from on are kept, all others are zeros. False: no
 * memory, and nothing has changed.
 */
static inline bool medge_table_grow(struct medge_table *t, size_t slot_size,
				    u32 want, u32 most, u32 from, u32 count)
{
	u32 size = medge_table_size(t);

	return size >= min(want, most) ||
	       medge_table_enlarge(t, slot_size, want, most, from, count);
}

#endif /* MEDGE_TRANSPORT_TABLE_H */
