/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/eviction/internal.h"

#define PATIENCE_MAX_MS 60000 /* kubelet's figures of files are as old */

bool patience_lasts(const struct patience *p, const struct ev_crossing *c, uint64_t now_ms)
{
    const uint64_t left = c->value.available, went = p->available > left ? p->available - left : 0;

    if (p->since_ms == 0 || p->signal != c->threshold.signal)
        return true;
    return now_ms - p->since_ms < PATIENCE_MAX_MS && went < left / 2 && left >= c->line / 2;
}

uint64_t patience_go_on(struct patience *p, const struct ev_crossing *c, uint64_t now_ms)
{
    if (p->since_ms == 0 || p->signal != c->threshold.signal)
        p->since_ms = now_ms;
    p->signal = c->threshold.signal;
    p->available = c->value.available;
    return now_ms - p->since_ms;
}
