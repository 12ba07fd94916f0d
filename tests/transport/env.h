/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The transport's environment in user space: the twin of
 * kernel-drivers/medge/transport/env.h, whose guard it takes. Force-included
 * (-include), it stands in the kernel file's place, because a quoted include
 * looks beside the transport's sources first.
 *
 * Where the kernel merely warns, this ends the program: a test must not go on.
 */
#ifndef MEDGE_TRANSPORT_ENV_H
#define MEDGE_TRANSPORT_ENV_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;
/* As the kernel has it on every architecture, so that %llu fits. */
typedef unsigned long long u64;

typedef u16 __be16;
typedef u32 __be32;
typedef u64 __be64;

#define cpu_to_be16(x)	((__be16)htobe16((u16)(x)))
#define cpu_to_be32(x)	((__be32)htobe32((u32)(x)))
#define cpu_to_be64(x)	((__be64)htobe64((u64)(x)))
#define be16_to_cpu(x)	((u16)be16toh((u16)(x)))
#define be32_to_cpu(x)	((u32)be32toh((u32)(x)))
#define be64_to_cpu(x)	((u64)be64toh((u64)(x)))

#define BIT(n)		(1UL << (n))
#define BIT_ULL(n)	(1ULL << (n))

/* C11's wants a message, the kernel's makes one. */
#define static_assert(expr, ...) \
	medge_static_assert(expr, ##__VA_ARGS__, #expr)
#define medge_static_assert(expr, msg, ...) _Static_assert(expr, msg)

/* Valgrind and the sanitizers are to see what is not filled. */
#define __uninitialized

#define likely(x)	__builtin_expect(!!(x), 1)
#define unlikely(x)	__builtin_expect(!!(x), 0)

#define min_t(type, a, b) ({				\
	type medge_min_a = (a);				\
	type medge_min_b = (b);				\
	medge_min_a < medge_min_b ? medge_min_a : medge_min_b; })
#define max_t(type, a, b) ({				\
	type medge_max_a = (a);				\
	type medge_max_b = (b);				\
	medge_max_a > medge_max_b ? medge_max_a : medge_max_b; })
#define min(a, b) ({ typeof(a) medge_ma = (a); typeof(b) medge_mb = (b); \
	medge_ma < medge_mb ? medge_ma : medge_mb; })
#define max(a, b) ({ typeof(a) medge_ma = (a); typeof(b) medge_mb = (b); \
	medge_ma > medge_mb ? medge_ma : medge_mb; })
#define min3(a, b, c)	min((typeof(a))min(a, b), c)
#define max3(a, b, c)	max((typeof(a))max(a, b), c)
#define clamp(v, lo, hi)	min(max(v, lo), hi)
#define clamp_t(type, v, lo, hi) min_t(type, max_t(type, v, lo), hi)

#define DIV_ROUND_UP(n, d)	(((n) + (d) - 1) / (d))
#define round_up(x, y)		((((x) - 1) | ((typeof(x))(y) - 1)) + 1)
#define round_down(x, y)	((x) & ~((typeof(x))(y) - 1))
#define ALIGN(x, a)		round_up(x, a)
#define ARRAY_SIZE(a)		(sizeof(a) / sizeof((a)[0]))
#define swap(a, b) do {			\
	typeof(a) medge_swap = (a);	\
	(a) = (b);			\
	(b) = medge_swap;		\
} while (0)

#define fallthrough	__attribute__((__fallthrough__))
#define __packed	__attribute__((__packed__))
#define __must_check	__attribute__((__warn_unused_result__))
#define READ_ONCE(x)	(*(const volatile typeof(x) *)&(x))
#define WRITE_ONCE(x, v) (*(volatile typeof(x) *)&(x) = (v))

/* As the kernel's: undefined for 0. */
static inline unsigned long __ffs64(u64 x)
{
	return __builtin_ctzll(x);
}

static inline int fls64(u64 x)
{
	return x ? 64 - __builtin_clzll(x) : 0;
}

static inline int fls(unsigned int x)
{
	return x ? 32 - __builtin_clz(x) : 0;
}

static inline unsigned int hweight64(u64 x)
{
	return __builtin_popcountll(x);
}

static inline u64 div_u64(u64 n, u32 d)
{
	return n / d;
}

static inline u64 div64_u64(u64 n, u64 d)
{
	return n / d;
}

static inline u64 mul_u64_u64_div_u64(u64 a, u64 b, u64 d)
{
	return (u64)((unsigned __int128)a * b / d);
}

#define MEDGE_ENV_UNALIGNED(bits)					\
static inline u##bits get_unaligned_be##bits(const void *p)		\
{									\
	__be##bits v;							\
									\
	memcpy(&v, p, sizeof(v));					\
	return be##bits##_to_cpu(v);					\
}									\
									\
static inline void put_unaligned_be##bits(u##bits x, void *p)		\
{									\
	__be##bits v = cpu_to_be##bits(x);				\
									\
	memcpy(p, &v, sizeof(v));					\
}
MEDGE_ENV_UNALIGNED(16)
MEDGE_ENV_UNALIGNED(32)
MEDGE_ENV_UNALIGNED(64)

/* say.c: prints the test's context (seed) and ends the program. */
void medge_env_warn(const char *what, const char *file, int line)
	__attribute__((__noreturn__, __cold__));

/* alloc.c: fails when a test wants it to. */
void *medge_env_alloc(size_t bytes);
void medge_env_free(void *mem);

#define WARN_ON_ONCE(cond) ({					\
	bool medge_warn = !!(cond);				\
	if (unlikely(medge_warn))				\
		medge_env_warn(#cond, __FILE__, __LINE__);	\
	medge_warn; })
#define WARN_ON(cond)	WARN_ON_ONCE(cond)

#endif /* MEDGE_TRANSPORT_ENV_H */
