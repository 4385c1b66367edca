/* SPDX-License-Identifier: Apache-2.0 */
/* reflect - the state of a reflector, shared by its two files: reflector.c sends requests and waits,
 * reflector_answer.c reads answers and decides. */
#ifndef AGENT_KUBE_CLIENT_REFLECT_H
#define AGENT_KUBE_CLIENT_REFLECT_H
#include "agent/kube/client/internal.h"
#include "agent/kube/client/reflector.h"

#define VERSION_MAX 64

enum reflect_state {
    REFLECT_WATCH_LIST, /* the initial events come in */
    REFLECT_LIST,
    REFLECT_WATCH,
    REFLECT_PAUSE, /* then continues with `next` */
};

struct kube_reflector {
    struct kube_reflector_options o;
    char *path, *selector, *subject;
    enum reflect_state state, next;
    struct kube_request request;
    uv_timer_t timer; /* of a pause, or the end of a watch */
    struct known known;
    char version[VERSION_MAX]; /* resourceVersion of the last event or list; "": none */
    bool consistent;           /* lists with resourceVersion "" */
    bool confirming;           /* a set was suddenly empty: this one decides */
    bool no_watch_list;        /* the server does not know it */
    char *more;                /* of a list: the token of its next page */
    bool synced, trouble, closed, timer_closed;
    bool full; /* logged once */
    /* of the watch that runs */
    uint64_t began_ms, events;
    int timeout_s;
    bool expired;            /* ERROR 410 */
    struct err stream_error; /* another ERROR, or an event that cannot be used */
    int stream_http;
    /* back-off */
    uint64_t delay_ms, failed_ms;
};

/* ---- reflector.c ---- */
void reflector_go(struct kube_reflector *r); /* sends the request of its state, unless one is in progress */
/* After a failure: back-off, at least as long as the server requests. */
void reflector_pause(struct kube_reflector *r, enum reflect_state next, uint64_t retry_after_ms);
void reflector_rest(struct kube_reflector *r, enum reflect_state next);
enum reflect_state reflector_first(const struct kube_reflector *r); /* of a new set */
void reflector_works(struct kube_reflector *r);
void reflector_report_trouble(struct kube_reflector *r, const struct err *why, int http);

/* ---- reflector_answer.c ---- */
void reflector_on_head(void *owner);
bool reflector_on_line(json_t *line, void *owner);
/* The request is over, and r->state is of it. */
void reflector_answered(struct kube_reflector *r, const struct err *result);
#endif
