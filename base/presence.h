/* SPDX-License-Identifier: Apache-2.0 */
/*
 * presence - the answer of a look at the world: present, absent, or unknown.
 *
 * Absence is proven: the kernel said ENOENT or ENOTDIR, or a listing ended whole without the name.  Every
 * other failure (EIO, ENOMEM, EMFILE, EACCES, a file that cannot be parsed) leaves the answer unknown, and
 * nothing durable is decided on an unknown: nothing is removed, set aside, restarted, ended or reported as
 * final.  The caller keeps what it knew, and looks again later.
 *
 * The type makes the compiler ask for that.  A struct presence is neither a truth value nor comparable, its
 * result may not be dropped, and there is deliberately no "is present": its negation would treat unknown as
 * absent. Two ways lead to the answer:
 *
 *     switch (presence_of(fs_look_at(fd, name, NULL, &e))) {     no default: -Wswitch names a missing case
 *     case PRESENCE_UNKNOWN: return e.code;
 *     case PRESENCE_ABSENT:  ...
 *     case PRESENCE_PRESENT: ...
 *     }
 *
 *     if (presence_is_unknown(found))    what is neither unknown nor absent is present
 *         return e->code;
 *     if (presence_is_absent(found))
 *         ...
 *
 * tests/tools/check-presence compiles the wrong uses and expects each to be refused.  Any thread.
 */
#ifndef BASE_PRESENCE_H
#define BASE_PRESENCE_H
#include "base/error.h"

#include <stdint.h>

enum presence_answer {
    PRESENCE_UNKNOWN = 0, /* what was never set is unknown */
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

/* Counts one failed look; `e` says why, and stays as it is. */
struct presence presence_unknown(const struct err *e) MUST_CHECK;

/* Of a failed open, stat or read: ENOENT and ENOTDIR prove absence, and *e is cleared; all else is unknown.
 */
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

/* Looks of this process that failed since its start, for /metrics.  Looks of forked children are not among
 * them. */
uint64_t presence_unknown_count(void);
#endif
