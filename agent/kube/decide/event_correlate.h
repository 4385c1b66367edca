/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event_correlate - an event on its way: counted, combined or dropped, as in client-go
 * (staging/src/k8s.io/client-go/tools/record/events_cache.go). No I/O.
 *
 * - The tenth different text for the same object, reason and type within ten minutes, and all after it,
 * become one event "(combined from similar events): ...".
 * - An event that was sent already is counted: a PATCH of count, lastTimestamp and message.
 * - Of each source, object and type 25 go at once, then one every five minutes; others are dropped.
 */
#ifndef AGENT_KUBE_DECIDE_EVENT_CORRELATE_H
#define AGENT_KUBE_DECIDE_EVENT_CORRELATE_H
#include "agent/kube/decide/event_lru.h"

#include <jansson.h>
#include <stdbool.h>

#define EVENT_COMBINED "(combined from similar events): "
#define EVENT_SIMILAR 10
#define EVENT_SIMILAR_NS (INT64_C(600) * 1000000000)
#define EVENT_SPAM_BURST 25
#define EVENT_SPAM_NS (INT64_C(300) * 1000000000) /* per token */

struct event_correlator {
    struct event_lru groups, sent, senders;
};

struct event_verdict {
    bool dropped, is_patch;
    uint64_t key;  /* for event_correlate_sent() */
    json_t *event; /* the whole event; NULL if dropped */
    json_t *patch; /* {count, lastTimestamp, message} if is_patch */
};

void event_correlator_init(struct event_correlator *c);
void event_correlator_done(struct event_correlator *c);

/* The event as client-go creates it, from the daemon's data: name, namespace, source, times. New; NULL: it is
 * none, or no memory. */
json_t *event_object(const json_t *said, const char *node, int64_t now_ns);

/* `event` is from event_object(); borrowed. */
struct event_verdict event_correlate(struct event_correlator *c, const json_t *event, int64_t now_ns,
                                     int64_t boot_ns);
/* The apiserver's answer to it: its name is the one to patch. */
void event_correlate_sent(struct event_correlator *c, uint64_t key, const json_t *object);
void event_verdict_done(struct event_verdict *v);
#endif
