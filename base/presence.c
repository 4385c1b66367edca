/* SPDX-License-Identifier: Apache-2.0 */
#include "base/presence.h"

#include "base/log.h"

#include <errno.h>
#include <stdatomic.h>

static atomic_uint_fast64_t unknown_count;

struct presence presence_unknown(const struct err *e)
{
    atomic_fetch_add_explicit(&unknown_count, 1, memory_order_relaxed);
    log_debug("look failed", F_ERR(e));
    return (struct presence){ PRESENCE_UNKNOWN };
}

struct presence presence_from_err(struct err *e)
{
    if (e->sys != ENOENT && e->sys != ENOTDIR)
        return presence_unknown(e);
    *e = (struct err){ 0 };
    return presence_absent();
}

uint64_t presence_unknown_count(void)
{
    return atomic_load_explicit(&unknown_count, memory_order_relaxed);
}
