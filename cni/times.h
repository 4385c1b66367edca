/* SPDX-License-Identifier: Apache-2.0 */
/*
 * times - how long each plugin of a list took: in one operation, and in total since the start of the agent.
 * Only plugins that succeeded are counted. Pure.
 */
#ifndef CNI_TIMES_H
#define CNI_TIMES_H
#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

#define CNI_TIMED_MAX 8    /* plugins of one operation; further plugins are not timed */
#define CNI_TIMES_MAX 32   /* plugins in the sums; further plugins are not counted */
#define CNI_TIMED_NAME 48  /* bytes of a plugin's name, with the NUL; longer names are truncated */
#define CNI_TIME_BUCKETS 9 /* of the histogram */

struct cni_timed { /* the plugins of one operation, in the order of their runs */
    struct {
        char name[CNI_TIMED_NAME];
        uint32_t us;
    } v[CNI_TIMED_MAX];
    size_t n;
};

struct cni_times { /* all operations */
    struct cni_time {
        char name[CNI_TIMED_NAME];
        bool del; /* DEL; otherwise ADD */
        uint64_t buckets[CNI_TIME_BUCKETS], n, sum_us;
    } v[CNI_TIMES_MAX];
    size_t n;
};

struct cni_time_bound {
    const char *text; /* seconds, in the format of metrics */
    uint32_t us;
};
extern const struct cni_time_bound cni_time_bounds[CNI_TIME_BUCKETS];

void cni_timed_add(struct cni_timed *t, const char *name, uint64_t us);
void cni_times_add(struct cni_times *t, const char *name, bool del, uint64_t us);
/* "bridge 12.1, portmap 3.4 ms"; nothing if there are none. */
void cni_timed_text(const struct cni_timed *t, struct buf *out);
#endif
