// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The ports below the node's address: the network device that has it, and, if
 * that is a bond or the like, its members. The kernel's link messages tell when
 * one of them loses its carrier, whatever RDMA device runs over them.
 */
#include <errno.h>
#include <ifaddrs.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/if.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#include "glue.h"

unsigned int if_nametoindex(const char *name);

static bool same_address(const struct sockaddr *a,
			 const struct sockaddr_storage *b)
{
	if (!a || a->sa_family != b->ss_family)
		return false;
	if (a->sa_family == AF_INET)
		return ((const struct sockaddr_in *)a)->sin_addr.s_addr ==
		       ((const struct sockaddr_in *)b)->sin_addr.s_addr;
	return a->sa_family == AF_INET6 &&
	       !memcmp(&((const struct sockaddr_in6 *)a)->sin6_addr,
		       &((const struct sockaddr_in6 *)b)->sin6_addr, 16);
}

static int find_netdev(struct glue *g)
{
	struct ifaddrs *list, *i;

	if (getifaddrs(&list))
		return errno;
	for (i = list; i && !g->netdev; i = i->ifa_next) {
		if (same_address(i->ifa_addr, &g->address))
			g->netdev = if_nametoindex(i->ifa_name);
	}
	freeifaddrs(list);
	return g->netdev ? 0 : EADDRNOTAVAIL;
}

static struct rail *find_rail(struct glue *g, int index)
{
	int i;

	for (i = 0; i < g->num_rails; i++) {
		if (g->rails[i].index == index)
			return &g->rails[i];
	}
	return NULL;
}

static void tell(struct glue *g, const struct rail *rail)
{
	struct glue_event event = {
		.type = rail->up ? GLUE_EVENT_RAIL_UP : GLUE_EVENT_RAIL_DOWN,
	};

	memcpy(event.rail, rail->name, sizeof(event.rail));
	event_put(g, &event);
}

static void set_rail(struct glue *g, int index, const char *name, bool up)
{
	struct rail *rail = find_rail(g, index);
	bool is_new = !rail;

	if (is_new) {
		if (!up || g->num_rails == MAX_RAILS)
			return;
		rail = &g->rails[g->num_rails++];
		rail->index = index;
		rail->up = false;
	}
	if (rail->up == up)
		return;
	rail->up = up;
	if (name)
		strncpy(rail->name, name, sizeof(rail->name) - 1);
	/* Those that are there when the node is opened are no news. */
	if (g->agent_runs)
		tell(g, rail);
}

static void take_link(struct glue *g, struct nlmsghdr *h)
{
	struct ifinfomsg *info = NLMSG_DATA(h);
	int left = IFLA_PAYLOAD(h), master = 0;
	const char *name = NULL;
	struct rtattr *a;
	bool ours;

	for (a = IFLA_RTA(info); RTA_OK(a, left); a = RTA_NEXT(a, left)) {
		if (a->rta_type == IFLA_IFNAME)
			name = RTA_DATA(a);
		else if (a->rta_type == IFLA_MASTER)
			memcpy(&master, RTA_DATA(a), sizeof(master));
	}
	ours = h->nlmsg_type == RTM_NEWLINK &&
	       (info->ifi_index == g->netdev || master == g->netdev);
	if (ours || find_rail(g, info->ifi_index))
		set_rail(g, info->ifi_index, name,
			 ours && info->ifi_flags & IFF_UP &&
			 info->ifi_flags & IFF_LOWER_UP);
}

/* Returns false when there is no more, or the list is at its end. */
static bool take_messages(struct glue *g, int flags)
{
	char buf[32768] __attribute__((aligned(8)));
	ssize_t n = recv(g->rail_socket, buf, sizeof(buf), flags);
	struct nlmsghdr *h;
	size_t left = n > 0 ? n : 0;

	for (h = (struct nlmsghdr *)buf; NLMSG_OK(h, left);
	     h = NLMSG_NEXT(h, left)) {
		if (h->nlmsg_type == NLMSG_DONE || h->nlmsg_type == NLMSG_ERROR)
			return false;
		if (h->nlmsg_type == RTM_NEWLINK || h->nlmsg_type == RTM_DELLINK)
			take_link(g, h);
	}
	return n > 0;
}

static int ask_for_links(struct glue *g)
{
	struct {
		struct nlmsghdr h;
		struct ifinfomsg info;
	} ask = {
		.h = {
			.nlmsg_len = sizeof(ask),
			.nlmsg_type = RTM_GETLINK,
			.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
		},
	};

	return send(g->rail_socket, &ask, sizeof(ask), 0) < 0 ? errno : 0;
}

int rails_watch(struct glue *g)
{
	struct sockaddr_nl links = {
		.nl_family = AF_NETLINK,
		.nl_groups = RTMGRP_LINK,
	};
	int error = find_netdev(g);

	if (error)
		return error;
	g->rail_socket = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC,
				NETLINK_ROUTE);
	if (g->rail_socket < 0 ||
	    bind(g->rail_socket, (struct sockaddr *)&links, sizeof(links)))
		return errno;
	error = ask_for_links(g);
	while (!error && take_messages(g, 0))
		;
	return error;
}

/* News may have been dropped when there were too many: ask for all. */
void rails_news(struct glue *g)
{
	/* The end of a list is no error, and leaves the one of the last time. */
	errno = 0;
	while (take_messages(g, MSG_DONTWAIT))
		;
	if (errno == ENOBUFS)
		ask_for_links(g);
}
