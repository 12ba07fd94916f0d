/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Addresses: where datagrams and connections lead, as ib_core resolved it. */
#ifndef MEDGE_AH_H
#define MEDGE_AH_H

#include <rdma/ib_verbs.h>

#include "rail.h"

struct medge_device;

/**
 * struct medge_av - all that an address says
 * @l2: Ethernet header's part
 * @head: header's part: GIDs, traffic class, flow label, hop limit
 */
struct medge_av {
	struct medge_l2 l2;
	struct medge_datagram head;
};

/**
 * struct medge_ah - an address handle
 * @number: by which WQEs name it; a user's cannot be trusted with more
 */
struct medge_ah {
	struct ib_ah ibah;
	u32 number;
	struct medge_av av;
};

void medge_ah_table_init(struct medge_device *dev);

/* What the frames of a QP or of an AH are addressed to; errno: they cannot be. */
int medge_l2_resolve(struct medge_device *dev, const struct rdma_ah_attr *attr,
		     struct medge_l2 *l2);

/* What a consumer in the kernel has left open: the MAC address, in the peer's GID. May sleep. */
int medge_mac_find(struct rdma_ah_attr *attr);

/* The address of AH @number, if it is of @pd. Any context. */
bool medge_av_get(struct ib_pd *pd, u32 number, struct medge_av *av);

/* ib_device_ops */
int medge_create_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *init,
		    struct ib_udata *udata);
int medge_query_ah(struct ib_ah *ibah, struct rdma_ah_attr *attr);
int medge_destroy_ah(struct ib_ah *ibah, u32 flags);

#endif /* MEDGE_AH_H */
