/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cpus - a set of processors, and its text: the list format of the kernel, "0-3,8" (cpuset(7), kubelet's
 * state file, reservedSystemCPUs). Pure values; copied freely.
 */
#ifndef AGENT_PLACEMENT_CPUS_H
#define AGENT_PLACEMENT_CPUS_H
#include "base/buf.h"
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define CPUS_MAX 1024 /* numbers of processors: 0 to CPUS_MAX - 1 */
#define CPUS_WORDS (CPUS_MAX / 64)
#define CPUS_TEXT_MAX 8192 /* bytes of a list; the longest list of CPUS_MAX processors has half of that */
#define CPUS_TEXT_SIZE (CPUS_TEXT_MAX + 1)

struct cpus {
    uint64_t w[CPUS_WORDS];
};

static inline bool cpus_has(const struct cpus *s, unsigned cpu)
{
    return cpu < CPUS_MAX && (s->w[cpu / 64] >> (cpu % 64) & 1) != 0;
}

static inline void cpus_add(struct cpus *s, unsigned cpu) /* cpu < CPUS_MAX */
{
    s->w[cpu / 64] |= 1ull << (cpu % 64);
}

static inline unsigned cpus_count(const struct cpus *s)
{
    unsigned n = 0;

    for (size_t i = 0; i < CPUS_WORDS; i++)
        n += (unsigned)__builtin_popcountll(s->w[i]);
    return n;
}

static inline bool cpus_equal(const struct cpus *a, const struct cpus *b)
{
    return memcmp(a, b, sizeof(*a)) == 0;
}

bool cpus_is_empty(const struct cpus *s);
bool cpus_overlap(const struct cpus *a, const struct cpus *b);
bool cpus_contain(const struct cpus *s, const struct cpus *part);
struct cpus cpus_or(const struct cpus *a, const struct cpus *b);
struct cpus cpus_and(const struct cpus *a, const struct cpus *b);
struct cpus cpus_without(const struct cpus *a, const struct cpus *b);
/* The first processor of *s from `from` on; CPUS_MAX: none. */
unsigned cpus_next(const struct cpus *s, unsigned from);
#define cpus_each(cpu, s) for (unsigned cpu = cpus_next(s, 0); cpu < CPUS_MAX; cpu = cpus_next(s, cpu + 1))

/*
 * Reads a list; "" is the empty set, and blanks around it (the kernel's newline) are allowed. Numbers may
 * repeat. ERR_INVALID: not a list. ERR_RANGE: a number above CPUS_MAX - 1. `what` names the list in the
 * error.
 */
enum err_code cpus_parse(struct cpus *ret, const char *text, const char *what, struct err *e) MUST_CHECK;
/* The shortest list, ascending; "" for the empty set. */
void cpus_print(const struct cpus *s, char ret[CPUS_TEXT_SIZE]);
#endif
