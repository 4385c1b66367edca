/* SPDX-License-Identifier: Apache-2.0 */
/* events - records what happened, for people. Loop thread only. */
#ifndef AGENT_POD_CORE_EVENTS_H
#define AGENT_POD_CORE_EVENTS_H
#include "agent/pod/core/pod.h"

/* Bytes of a message; longer ones are truncated. Room for the text of a check (PROBE_TEXT_MAX) after
 * kubelet's words: kubelet reads 10 KiB of a command's output, and an API server accepts them (1024 is the
 * limit of events.k8s.io, which kubelet does not use). */
#define EVENT_MESSAGE_MAX (12 * 1024 + 128)

void pod_event(struct pod *p, const struct ctr *c, bool warning, const char *reason, const char *fmt, ...)
    PRINTF_LIKE(5, 6);
/* With more detail than kubelet's message, for users of this machine: the annotation EVENT_DETAIL, which
 * `coracle describe` and `coracle events` show after the message. Of equal events the newest detail is kept.
 * NULL: none. */
#define EVENT_DETAIL "coracle.dev/detail"
void pod_event_detail(struct pod *p, const struct ctr *c, bool warning, const char *reason,
                      const char *message, const char *detail);
/* With annotations of the event (strings), which are copied; NULL: none. */
void pod_event_annotated(struct pod *p, bool warning, const char *reason, const char *message,
                         const json_t *annotations);
/* Of another object of the folder, with the name of the controller that reports it in a cluster
 * ("job-controller"): a constant. */
void object_event(struct node *n, const char *controller, enum api_kind kind, const struct api_meta *meta,
                  const char *uid, bool warning, const char *reason, const char *message);
void node_event(struct node *n, bool warning, const char *reason,
                const char *message); /* of the node itself */
/* "Node X status is now: REASON", kubelet's words for a change of a condition. */
void node_event_status(struct node *n, const char *reason);
json_t *events_json(struct node *n);
/* "namespace/name" of all, oldest first; and one of them. NULL when out of memory, or if there is none. */
json_t *events_keys(struct node *n);
json_t *events_find_json(struct node *n, const char *name);
void events_free(struct node *n);
#endif
