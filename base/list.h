/* SPDX-License-Identifier: Apache-2.0 */
/*
 * list - <sys/queue.h> with the loops that glibc lacks, and the one uthash configuration.
 * Keyed lookup stays behind the owning module's functions.  Hashing is unkeyed: a module caps the
 * number of entries that an outside party can create.
 */
#ifndef BASE_LIST_H
#define BASE_LIST_H
#include <sys/queue.h>

#ifndef TAILQ_FOREACH_SAFE
#define TAILQ_FOREACH_SAFE(var, head, field, tmp)                                                            \
    for ((var) = TAILQ_FIRST(head); (var) != NULL && ((tmp) = TAILQ_NEXT(var, field), 1); (var) = (tmp))
#endif

/* uthash exits the process on OOM by default; ours leaves the element out: after HASH_ADD* compare
 * the element's hh.tbl with NULL. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>
#endif
