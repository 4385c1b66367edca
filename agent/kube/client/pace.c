/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kube/client/pace.h"

uint64_t kube_pace_take(struct kube_pace *p, int64_t boot_ns)
{
    if (p->rate <= 0)
        return 0;
    if (p->filled_ns == 0)
        p->tokens = p->burst;
    else
        p->tokens += p->rate * (double)(boot_ns - p->filled_ns) / 1e9;
    if (p->tokens > p->burst)
        p->tokens = p->burst;
    p->filled_ns = boot_ns;
    if (p->tokens >= 1) {
        p->tokens -= 1;
        return 0;
    }
    return (uint64_t)((1 - p->tokens) * 1000 / p->rate) + 1;
}
