/* SPDX-License-Identifier: Apache-2.0 */
/* backoff - the delay before the next try: doubled each time, from a first to a last value. */
#ifndef BASE_BACKOFF_H
#define BASE_BACKOFF_H
#include <stdint.h>

/* `last_ms`: the previous delay; 0: none. */
static inline uint64_t backoff_next_ms(uint64_t last_ms, uint64_t first_ms, uint64_t most_ms)
{
    uint64_t next = last_ms == 0 ? first_ms : last_ms * 2;

    return next < most_ms ? next : most_ms;
}
#endif
