// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A remote write with a notification.
 *
 *     hello HERE          waits, and prints what is written into its memory
 *     hello HERE THERE    writes into the memory of the one who waits there
 */
#include <err.h>
#include <stdio.h>
#include <string.h>

#include <rdmacm-glue.h>

int main(int argc, char **argv)
{
	static char buffer[64];
	struct glue_options options = {
		.size = sizeof(options),
		.hello = (uintptr_t)buffer,	/* where peers may write */
	};
	struct glue *glue = argc > 1 ? glue_open(argv[1], &options) : NULL;
	struct glue_connection *peer;
	struct glue_event event;

	if (!glue || (argc == 2 && glue_listen(glue, 7471) < 0))
		err(1, "usage: hello HERE [THERE]");
	peer = argc == 2 ? glue_connection_wait(glue, 60000) :
			   glue_request_connection(glue, argv[2], 7471, 5000);
	if (!peer)
		err(1, "no connection");
	if (argc > 2) {
		strcpy(buffer, "Hello from far away!");
		glue_rdma_operation(peer, glue_peer(peer), buffer,
				    sizeof(buffer), GLUE_WRITE,
				    GLUE_NOTIFY(42) | GLUE_EVENT, NULL);
	}
	if (glue_query_event(glue, &event, 5000) == 1)
		printf("%s %u: %s\n", glue_event_name(event.type), event.tag,
		       buffer);
	glue_close(glue);
}
