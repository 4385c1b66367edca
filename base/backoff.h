/* SPDX-License-Identifier: Apache-2.0 */
/* backoff - the wait before the next try: a first one, then doubled up to a last one. */
#ifndef BASE_BACKOFF_H
#define BASE_BACKOFF_H
#include <stdint.h>

/* `last_ms`: the wait before; 0: there was none. */
static inline uint64_t backoff_next_ms(uint64_t last_ms, uint64_t first_ms, uint64_t most_ms)
{
    uint64_t next = last_ms == 0 ? first_ms : last_ms * 2;

    return next < most_ms ? next : most_ms;
}
#endif
