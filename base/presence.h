/* SPDX-License-Identifier: Apache-2.0 */
/*
 * presence - the result of a lookup: present, absent, or unknown.
 *
 * Absence is proven: the kernel returned ENOENT or ENOTDIR, or a complete listing did not have the name. Any
 * other failure (EIO, ENOMEM, EMFILE, EACCES, a file that cannot be parsed) leaves the answer unknown, and an
 * unknown answer has no lasting effect: nothing is removed, set aside, restarted, ended or reported as final.
 * The caller keeps its previous knowledge and retries later.
 *
 * The compiler enforces this. A struct presence is neither a truth value nor comparable, its result may not
 * be dropped, and there is deliberately no "is present", because its negation would treat unknown as absent.
 * There are two ways to use it:
 *
 *     switch (presence_of(fs_look_at(fd, name, NULL, &e))) {     no default: -Wswitch reports a missing case
 *     case PRESENCE_UNKNOWN: return e.code;
 *     case PRESENCE_ABSENT:  ...
 *     case PRESENCE_PRESENT: ...
 *     }
 *
 *     if (presence_is_unknown(found))
 *         return e->code;
 *     if (presence_is_absent(found))
 *         ...
 *
 * tests/tools/check-presence compiles wrong uses and expects each to be rejected. Any thread.
 */
#ifndef BASE_PRESENCE_H
#define BASE_PRESENCE_H
#include "base/error.h"

#include <stdint.h>

enum presence_answer {
    PRESENCE_UNKNOWN = 0, /* also the value of a zeroed struct */
    PRESENCE_ABSENT,
    PRESENCE_PRESENT,
};

struct presence {
    enum presence_answer private_answer; /* read through the functions below */
};

static inline MUST_CHECK struct presence presence_absent(void)
{
    return (struct presence){ PRESENCE_ABSENT };
}

static inline MUST_CHECK struct presence presence_present(void)
{
    return (struct presence){ PRESENCE_PRESENT };
}

/* Counts one failed lookup; `e` has the reason and is not changed. */
struct presence presence_unknown(const struct err *e) MUST_CHECK;

/* Converts a failed open, stat or read: ENOENT and ENOTDIR prove absence and clear *e; anything else is
 * unknown. */
struct presence presence_from_err(struct err *e) MUST_CHECK;

static inline MUST_CHECK enum presence_answer presence_of(struct presence p)
{
    return p.private_answer;
}

static inline MUST_CHECK bool presence_is_unknown(struct presence p)
{
    return p.private_answer == PRESENCE_UNKNOWN;
}

static inline MUST_CHECK bool presence_is_absent(struct presence p)
{
    return p.private_answer == PRESENCE_ABSENT;
}

/* Number of failed lookups of this process, for /metrics. Those of forked children are not included. */
uint64_t presence_unknown_count(void);
#endif
