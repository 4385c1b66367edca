/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/placement/hints.h"
#include "base/array.h"

#include <stdlib.h>

void pl_hints_done(struct pl_hints *h)
{
    free(h->v);
    *h = (struct pl_hints){ 0 };
}

enum err_code pl_hints_add(struct pl_hints *h, uint64_t nodes, struct err *e)
{
    if (!array_room(h->v, h->n))
        return err_nomem(e);
    h->v[h->n++] = (struct pl_hint){ .nodes = nodes };
    return ERR_OK;
}

void pl_hints_prefer(struct pl_hints *h, unsigned size)
{
    for (size_t i = 0; i < h->n; i++)
        h->v[i].preferred = (unsigned)__builtin_popcountll(h->v[i].nodes) == size;
}

/* The `k` lowest bits of x. */
static uint64_t lowest(uint64_t x, unsigned k)
{
    uint64_t ret = 0;

    for (; k > 0 && x != 0; k--, x &= x - 1)
        ret |= x & -x;
    return ret;
}

bool pl_next_set(uint64_t nodes, uint64_t *set)
{
    unsigned size = (unsigned)__builtin_popcountll(*set), n = 0;

    if (*set == 0 || *set == (nodes & ~lowest(nodes, (unsigned)__builtin_popcountll(nodes) - size))) {
        *set = lowest(nodes, size + 1);
        return size < (unsigned)__builtin_popcountll(nodes);
    }
    /* The highest member that has room above moves up, and those above it follow directly. */
    for (uint64_t left = *set; left != 0; n++) {
        uint64_t bit = 1ull << (63 - __builtin_clzll(left)), up = nodes & ~(bit | (bit - 1));

        left &= ~bit;
        if (__builtin_popcountll(up) > (int)n) {
            *set = left | lowest(up, n + 1);
            return true;
        }
    }
    return false;
}
