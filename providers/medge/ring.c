/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The rings shared with the kernel: mapping them. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "medge.h"
#include "ring.h"

/*
 * nentries 0 is a queue of no entries: nothing is mapped, every reserve fails.
 * The kernel is trusted, but a module newer than this library is not known to
 * be: what it says of the ring has to fit together.
 */
int medge_ring_map(struct medge_ring *ring, int cmd_fd,
		   const struct medge_ring_map *map)
{
	void *mem;

	memset(ring, 0, sizeof(*ring));
	if (!map->nentries)
		return 0;

	if (map->nentries & (map->nentries - 1) || map->shift > 16 ||
	    map->length > SIZE_MAX ||
	    map->length < MEDGE_RING_ENTRIES +
				  ((uint64_t)map->nentries << map->shift))
		return EPROTO;

	mem = mmap(NULL, map->length, PROT_READ | PROT_WRITE, MAP_SHARED,
		   cmd_fd, map->offset);
	if (mem == MAP_FAILED)
		return errno;

	ring->hdr = mem;
	ring->entries = (uint8_t *)mem + MEDGE_RING_ENTRIES;
	ring->length = map->length;
	ring->nentries = map->nentries;
	ring->shift = map->shift;
	medge_ring_resync(ring);
	return 0;
}

void medge_ring_unmap(struct medge_ring *ring)
{
	if (ring->hdr)
		munmap(ring->hdr, ring->length);
	memset(ring, 0, sizeof(*ring));
}
