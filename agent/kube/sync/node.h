/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node - the Node object: registration, status, heartbeats; and its way to the daemon.
 *
 * A separate watch follows the Node. If it exists, it is not POSTed again (kubelet tries and gets 409):
 * labels and annotations of every node are set by the first status patch instead. POST is repeated after 100
 * ms, doubled up to 7 s, forever. A deleted Node is not registered again before the daemon starts anew, as
 * with kubelet.
 */
#ifndef AGENT_KUBE_SYNC_NODE_H
#define AGENT_KUBE_SYNC_NODE_H
#include <stdbool.h>
#include <stdint.h>

#define NODE_UPDATE_MS 10000  /* nodeStatusUpdateFrequency */
#define NODE_REPORT_MS 300000 /* nodeStatusReportFrequency */
#define NODE_URGENT_MS 1000   /* between two patches, however much changes */

/* When the status is patched next. */
struct node_pace {
    bool reported;      /* once by this process */
    uint64_t last_ms;   /* of the last patch; boot clock */
    int64_t stretch_ms; /* after a change, up to half of report_ms either way: nodes do not report together */
    uint64_t update_ms, report_ms;
};
/* Milliseconds from now; 0: at once. */
uint64_t node_pace_wait_ms(const struct node_pace *p, bool differs, bool urgent, uint64_t now_ms);
#endif
