/* SPDX-License-Identifier: Apache-2.0 */
/* pace - a token bucket, as client-go's flow control: `burst` at once, then `rate` a second. No I/O. */
#ifndef AGENT_KUBE_CLIENT_PACE_H
#define AGENT_KUBE_CLIENT_PACE_H
#include <stdint.h>

struct kube_pace {
    double tokens, rate /* a second; 0: no limit */, burst /* at least 1 */;
    int64_t filled_ns; /* boot clock; 0: full */
};

/* Takes a token: 0; or the milliseconds until there is one. */
uint64_t kube_pace_take(struct kube_pace *p, int64_t boot_ns);
#endif
