// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Addresses: where datagrams and connections lead, as ib_core resolved it. */
#include <linux/completion.h>
#include <linux/etherdevice.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_cache.h>
#include <rdma/medge-abi.h>
#include <rdma/uverbs_ioctl.h>

#include "ah.h"
#include "device.h"

static struct medge_ah *to_medge_ah(struct ib_ah *ibah)
{
	return container_of(ibah, struct medge_ah, ibah);
}

void medge_ah_table_init(struct medge_device *dev)
{
	/* Consumers make and unmake them with interrupts off. */
	xa_init_flags(&dev->ahs, XA_FLAGS_ALLOC1 | XA_FLAGS_LOCK_IRQ);
}

int medge_l2_resolve(struct medge_device *dev, const struct rdma_ah_attr *attr,
		     struct medge_l2 *l2)
{
	const struct ib_gid_attr *sgid = attr->grh.sgid_attr;
	u8 smac[ETH_ALEN];

	if (attr->type != RDMA_AH_ATTR_TYPE_ROCE || !sgid)
		return -EINVAL;
	ether_addr_copy(l2->dmac, attr->roce.dmac);
	if (is_zero_ether_addr(l2->dmac))
		return -EINVAL;
	if (rdma_read_gid_l2_fields(sgid, &l2->vlan, smac))
		return -EINVAL;
	/* The rails know one address. */
	if (!ether_addr_equal(smac, dev->netdev->dev_addr))
		return -EOPNOTSUPP;
	return 0;
}

enum { MAC_WAIT_MS = 1000 };

struct mac_answer {
	struct completion come;
	int err;
};

static void take_mac(int err, struct sockaddr *src, struct rdma_dev_addr *addr,
		     void *context)
{
	struct mac_answer *answer = context;

	answer->err = err;
	complete(&answer->come);
}

int medge_mac_find(struct rdma_ah_attr *attr)
{
	const struct ib_gid_attr *sgid = attr->grh.sgid_attr;
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} from, to;
	/* The network is that of the GID's interface. */
	struct rdma_dev_addr found = { .net = &init_net, .sgid_attr = sgid };
	struct mac_answer answer;
	int err;

	if (attr->type != RDMA_AH_ATTR_TYPE_ROCE || !sgid)
		return -EINVAL;
	rdma_gid2ip(&from.any, &sgid->gid);
	rdma_gid2ip(&to.any, &attr->grh.dgid);
	if (from.any.sa_family != to.any.sa_family)
		return -EINVAL;
	init_completion(&answer.come);
	err = rdma_resolve_ip(&from.any, &to.any, &found, MAC_WAIT_MS, take_mac,
			      true, &answer);
	if (err)
		return err;
	wait_for_completion(&answer.come);
	if (!answer.err)
		ether_addr_copy(attr->roce.dmac, found.dst_dev_addr);
	return answer.err;
}

static int resolve(struct medge_device *dev, const struct rdma_ah_attr *attr,
		   struct medge_av *av)
{
	const struct ib_global_route *grh = rdma_ah_read_grh(attr);
	int err;

	err = medge_l2_resolve(dev, attr, &av->l2);
	if (err)
		return err;
	av->head = (struct medge_datagram) {
		.hop_limit = grh->hop_limit,
		.class_flow = (u32)grh->traffic_class << 20 |
			      (grh->flow_label & 0xfffff),
	};
	memcpy(av->head.sgid, grh->sgid_attr->gid.raw, sizeof(av->head.sgid));
	memcpy(av->head.dgid, grh->dgid.raw, sizeof(av->head.dgid));
	return 0;
}

static int publish(struct medge_device *dev, struct medge_ah *ah)
{
	unsigned long irq;
	int err;

	xa_lock_irqsave(&dev->ahs, irq);
	err = __xa_alloc_cyclic(&dev->ahs, &ah->number, ah,
				XA_LIMIT(1, MEDGE_MAX_AH), &dev->next_ah,
				GFP_ATOMIC);
	xa_unlock_irqrestore(&dev->ahs, irq);
	return err < 0 ? err : 0;
}

static void retract(struct medge_device *dev, struct medge_ah *ah)
{
	unsigned long irq;

	xa_lock_irqsave(&dev->ahs, irq);
	__xa_erase(&dev->ahs, ah->number);
	xa_unlock_irqrestore(&dev->ahs, irq);
}

int medge_create_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *init,
		    struct ib_udata *udata)
{
	struct medge_device *dev = to_medge_device(ibah->device);
	struct medge_create_ah_resp resp = {};
	struct medge_ah *ah = to_medge_ah(ibah);
	int err;

	if (udata && udata->inlen &&
	    !ib_is_udata_cleared(udata, 0, udata->inlen))
		return -EOPNOTSUPP;
	if (udata && udata->outlen < sizeof(resp))
		return -EINVAL;
	err = resolve(dev, init->ah_attr, &ah->av);
	if (!err)
		err = publish(dev, ah);
	if (err || !udata)
		return err;
	resp.ah = ah->number;
	err = ib_copy_to_udata(udata, &resp, sizeof(resp));
	if (err)
		retract(dev, ah);
	return err;
}

int medge_query_ah(struct ib_ah *ibah, struct rdma_ah_attr *attr)
{
	const struct medge_ah *ah = to_medge_ah(ibah);
	const struct medge_datagram *head = &ah->av.head;
	union ib_gid dgid;

	attr->type = RDMA_AH_ATTR_TYPE_ROCE;
	rdma_ah_set_port_num(attr, 1);
	memcpy(dgid.raw, head->dgid, sizeof(dgid));
	rdma_ah_set_grh(attr, &dgid, head->class_flow & 0xfffff,
			ibah->sgid_attr ? ibah->sgid_attr->index : 0,
			head->hop_limit, head->class_flow >> 20);
	ether_addr_copy(attr->roce.dmac, ah->av.l2.dmac);
	return 0;
}

int medge_destroy_ah(struct ib_ah *ibah, u32 flags)
{
	retract(to_medge_device(ibah->device), to_medge_ah(ibah));
	return 0;
}

bool medge_av_get(struct ib_pd *pd, u32 number, struct medge_av *av)
{
	struct medge_device *dev = to_medge_device(pd->device);
	struct medge_ah *ah;
	unsigned long irq;

	/* Its memory goes as soon as it is retracted: copied under the lock. */
	xa_lock_irqsave(&dev->ahs, irq);
	ah = xa_load(&dev->ahs, number);
	if (ah && ah->ibah.pd != pd)
		ah = NULL;
	if (ah)
		*av = ah->av;
	xa_unlock_irqrestore(&dev->ahs, irq);
	return ah;
}
