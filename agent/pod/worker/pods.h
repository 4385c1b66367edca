/* SPDX-License-Identifier: Apache-2.0 */
/* pods - how the store's objects become pods: new ones, edits, removals. Loop thread only. */
#ifndef AGENT_POD_WORKER_PODS_H
#define AGENT_POD_WORKER_PODS_H
#include "agent/pod/core/pod.h"

struct pod *pods_new(struct node *n, struct api_pod *api, const char *uid);
void pods_gone(struct pod *p); /* frees a terminated, unwanted pod and starts its successor */
void pods_free(struct pod *p); /* removes it from the table; its memory is freed when its timer has closed */
void pods_want(struct node *n, struct api_pod *api);
void pods_apply(struct pod *p, struct api_pod *api); /* applies an edit in place */
/* Adds an ephemeral container (EphemeralContainer) to a pod of the manifest folder, until the pod is removed.
 * ERR_INVALID: the field and the reason. ERR_PRECONDITION: this pod takes none, or no more. */
enum err_code pods_debug(struct pod *p, json_t *container, struct err *e) MUST_CHECK;
const char *pods_left_out(const struct node *n); /* a pod missing in the table, and why; NULL: none */
void pods_unwant(struct node *n, const char *namespace_, const char *name);
void pods_lost(struct node *n, const struct api_pod *api); /* its source has it no more */
/* For the pods of this source. */
void pods_config_changed(struct node *n, enum api_origin origin, enum api_config_kind kind,
                         const char *namespace_, const char *name);
#endif
