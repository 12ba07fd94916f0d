/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The rings shared with the kernel: mapping them, and telling it of them. */
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <infiniband/cmd_ioctl.h>

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

/* What such commands answer is which work request was bad, and there is none. */
static int tell_by_ioctl(struct ibv_context *context, const void *cmd,
			 size_t len)
{
	DECLARE_COMMAND_BUFFER(cmdb, UVERBS_OBJECT_DEVICE,
			       UVERBS_METHOD_INVOKE_WRITE, 3);
	const struct ib_uverbs_cmd_hdr *hdr = cmd;
	uint32_t bad_wr;

	fill_attr_const_in(cmdb, UVERBS_ATTR_WRITE_CMD, hdr->command);
	fill_attr_in(cmdb, UVERBS_ATTR_CORE_IN, hdr + 1, len - sizeof(*hdr));
	fill_attr_out_ptr(cmdb, UVERBS_ATTR_CORE_OUT, &bad_wr);
	return execute_ioctl(context, cmdb);
}

/*
 * A write is cheaper, but the kernel takes it only from the very credentials that
 * opened the device: not from who was given it, nor after setuid().
 */
static int tell(struct ibv_context *context, const void *cmd, size_t len)
{
	if (write(context->cmd_fd, cmd, len) == (ssize_t)len)
		return 0;
	return errno == EACCES ? tell_by_ioctl(context, cmd, len) : errno;
}

int medge_ring_doorbell(struct ibv_context *context, const void *cmd,
			size_t len)
{
	int err = tell(context, cmd, len);

	while (err == ENOMEM || err == EINTR || err == EFAULT) {
		sched_yield();
		err = tell(context, cmd, len);
	}
	return err;
}
