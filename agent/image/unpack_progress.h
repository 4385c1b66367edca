/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unpack_progress - how far coracle-unpack is: a page that it counts into (--progress) and the agent looks at
 * when somebody asks.  Nobody is woken by it.  The agent has it read-only and of a size that cannot change,
 * and takes what stands there for numbers and nothing else: whoever writes it reads hostile input.
 */
#ifndef AGENT_IMAGE_UNPACK_PROGRESS_H
#define AGENT_IMAGE_UNPACK_PROGRESS_H
#include <stdatomic.h>
#include <stdint.h>

struct unpack_progress {
    _Atomic uint64_t bytes;     /* of files in layers, as their unpacking begins */
    _Atomic uint32_t layers;    /* done: unpacked, or found in the store */
    _Atomic uint32_t of_layers; /* how many there are; 0: not known yet */
};

/* The same layout on both sides, and no lock in it. */
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2 && sizeof(struct unpack_progress) == 16, "plain numbers");

static inline void unpack_progress_add(_Atomic uint32_t *counter, uint32_t n)
{
    atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}
#endif
