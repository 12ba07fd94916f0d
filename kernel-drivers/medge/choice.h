/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Which of two ways does more is found by going both, time and again. */
#ifndef MEDGE_CHOICE_H
#define MEDGE_CHOICE_H

#include <linux/types.h>

enum {
	/* Of so many times, one is gone the way that seems worse. */
	MEDGE_CHOICE_TIMES = 32,
	/* The second way has a price: it is to do more than the first, by so much percent. */
	MEDGE_CHOICE_GAIN = 5,
};

/**
 * struct medge_choice - between a first way and a second one
 * @times: that they have been gone
 * @rate: what was done of late, by way, in bytes per us; 0: not known
 */
struct medge_choice {
	u32 times;
	u32 rate[2];
};

/* Something was done at this @rate. Return: to go the second way from here on. */
static inline bool medge_choose(struct medge_choice *c, bool second, u32 rate)
{
	u32 *known = &c->rate[second];
	bool more;

	rate = max(rate, 1u);
	*known = *known ? (*known + rate) / 2 : rate;
	if (!c->rate[0] || !c->rate[1])
		return c->rate[0];
	more = (u64)c->rate[1] * 100 >
	       (u64)c->rate[0] * (100 + MEDGE_CHOICE_GAIN);
	return ++c->times % MEDGE_CHOICE_TIMES ? more : !more;
}

#endif /* MEDGE_CHOICE_H */
