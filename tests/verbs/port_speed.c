/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What ibv_query_port_speed() says of a device, in units of 100 Mbit/s, by the command that it makes: libibverbs has it
 * since rdma-core 62.
 *
 *   port_speed DEVICE
 */
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>

#include <rdma/rdma_user_ioctl_cmds.h>

#include "verbs_test.h"

/* As the kernel numbers them, in ib_user_ioctl_cmds.h of Linux 7.0. */
enum {
	OBJECT_DEVICE = 0,
	METHOD_QUERY_PORT_SPEED = 7,
	ATTR_PORT_NUM = 0,
	ATTR_RESP = 1,
};

int main(int argc, char **argv)
{
	uint64_t speed = 0;
	struct {
		struct ib_uverbs_ioctl_hdr hdr;
		struct ib_uverbs_attr attr[2];
	} cmd = {
		.hdr = {
			.length = sizeof(cmd),
			.object_id = OBJECT_DEVICE,
			.method_id = METHOD_QUERY_PORT_SPEED,
			.num_attrs = 2,
		},
		.attr = {
			{ .attr_id = ATTR_PORT_NUM, .len = 8,
			  .flags = UVERBS_ATTR_F_MANDATORY, .data = 1 },
			{ .attr_id = ATTR_RESP, .len = sizeof(speed),
			  .flags = UVERBS_ATTR_F_MANDATORY,
			  .data = (uintptr_t)&speed },
		},
	};
	struct side side;

	if (argc != 2)
		die("usage: port_speed DEVICE");
	side_open(&side, argv[1], "0");
	if (ioctl(side.ctx->cmd_fd, RDMA_VERBS_IOCTL, &cmd))
		die("%s: %s", argv[1], strerror(errno));
	printf("%llu\n", (unsigned long long)speed);
	side_close(&side);
	return 0;
}
