/* SPDX-License-Identifier: Apache-2.0 */
/* unpack_progress - coracle-unpack's progress: a page with its counters (--progress) that the agent reads on
 * request, without notifications. The agent maps it read-only and with a fixed size, and treats its content
 * as untrusted numbers, because its writer reads hostile input. */
#ifndef AGENT_IMAGE_UNPACK_PROGRESS_H
#define AGENT_IMAGE_UNPACK_PROGRESS_H
#include <stdatomic.h>
#include <stdint.h>

struct unpack_progress {
    _Atomic uint64_t bytes;     /* of files in layers, when their unpacking begins */
    _Atomic uint32_t layers;    /* completed: unpacked, or found in the store */
    _Atomic uint32_t of_layers; /* total; 0: unknown */
};

/* The same layout on both sides, without locks. */
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2 && sizeof(struct unpack_progress) == 16, "plain numbers");

static inline void unpack_progress_add(_Atomic uint32_t *counter, uint32_t n)
{
    atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}
#endif
