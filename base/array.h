/* SPDX-License-Identifier: Apache-2.0 */
/* array - arrays that grow by one element at a time. */
#ifndef BASE_ARRAY_H
#define BASE_ARRAY_H
#include <stdbool.h>
#include <stdlib.h>

/*
 * Makes room for v[n]; false when out of memory, v stays as it is. The room doubles at each power of two, so
 * that no capacity is kept: v has only ever grown by this call, from NULL.
 *
 *     if (!array_room(s->v, s->n))
 *         return err_nomem(e);
 *     s->v[s->n++] = one;
 */
#define array_room(v, n)                                                                                     \
    __extension__({                                                                                          \
        size_t n_ = (n);                                                                                     \
        __typeof__(v) grown_ =                                                                               \
            (n_ & (n_ - 1)) != 0 ? (v) : reallocarray((v), n_ == 0 ? 1 : 2 * n_, sizeof(*(v)));              \
        if (grown_ != NULL)                                                                                  \
            (v) = grown_;                                                                                    \
        grown_ != NULL;                                                                                      \
    })
#endif
