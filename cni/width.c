/* SPDX-License-Identifier: Apache-2.0 */
#include "cni/width.h"

void cni_width_init(struct cni_width *w, size_t most)
{
    *w = (struct cni_width){ .now = most, .most = most };
}

void cni_width_slow(struct cni_width *w)
{
    w->quick = 0;
    if (w->now > 1)
        w->now /= 2;
}

void cni_width_took(struct cni_width *w, uint64_t ms)
{
    if (ms >= CNI_WIDTH_QUICK_MS && w->now > 1) {
        w->quick = 0;
        return;
    }
    if (w->now == w->most || ++w->quick < w->now)
        return;
    w->quick = 0;
    w->now++;
}
