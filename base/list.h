/* SPDX-License-Identifier: Apache-2.0 */
/* list - <sys/queue.h> with the loops that glibc lacks, and the one uthash configuration. Keyed lookup stays
 * behind the owning module's functions. Hashing is unkeyed, so a module must limit the number of entries that
 * outsiders can create. */
#ifndef BASE_LIST_H
#define BASE_LIST_H
#include <sys/queue.h>

#ifndef TAILQ_FOREACH_SAFE
#define TAILQ_FOREACH_SAFE(var, head, field, tmp)                                                            \
    for ((var) = TAILQ_FIRST(head); (var) != NULL && ((tmp) = TAILQ_NEXT(var, field), 1); (var) = (tmp))
#endif

/* By default uthash exits the process when out of memory; with this it omits the element: after HASH_ADD*
 * compare the element's hh.tbl with NULL. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>
#endif
