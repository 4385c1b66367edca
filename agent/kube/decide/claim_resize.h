/* SPDX-License-Identifier: Apache-2.0 */
/*
 * claim_resize - the status of a PersistentVolumeClaim whose volume this node makes larger
 * (pkg/volume/util/resize_util.go). Pure.
 */
#ifndef AGENT_KUBE_DECIDE_CLAIM_RESIZE_H
#define AGENT_KUBE_DECIDE_CLAIM_RESIZE_H
#include <jansson.h>

/*
 * The status to reach. `resize`: {"state": "progress"}: the driver is being called; {"state": "done", "size":
 * "2Gi"}: the volume has this size; {"state": "failed" or "infeasible", "error"}: it is tried again, or the
 * size has to change first. `now`: RFC 3339. New; NULL when out of memory, or the state is none of these.
 */
json_t *claim_resize_status(const json_t *status, const json_t *resize, const char *now);
/* The body of the PATCH on the subresource `status`, with the resourceVersion on which it depends; new; NULL
 * when nothing differs, or out of memory. */
json_t *claim_resize_patch(const json_t *claim, const json_t *resize, const char *now);
#endif
