/* SPDX-License-Identifier: Apache-2.0 */
/*
 * route - the subject of a request to the node's port, the right that it needs, and its name on the status
 * socket: pure functions. Source: pkg/kubelet/server (server.go, auth.go) and PodLogOptions.
 */
#ifndef AGENT_KUBE_SERVER_ROUTE_H
#define AGENT_KUBE_SERVER_ROUTE_H
#include "base/codec/http_request.h"

enum path_kind {
    PATH_NONE,
    PATH_HEALTHZ,
    PATH_PODS,
    PATH_RUNNING_PODS,
    PATH_STATS,
    PATH_METRICS,
    PATH_CONFIGZ,
    PATH_LOGS, /* of a container */
    PATH_EXEC,
    PATH_ATTACH,
    PATH_FORWARD,
    PATH_RUN,
    PATH_CHECKPOINT,
    PATH_SYSTEM_LOGS,
    PATH_DEBUG,
    PATH_STATUSZ,
    PATH_FLAGZ,
    PATH_SLIS,
};

struct route { /* strings are the request's */
    enum path_kind kind;
    unsigned methods;   /* allowed ones; otherwise 405 */
    const char *target; /* of the status socket, where it is always the same; NULL otherwise */
    const char *namespace_, *pod, *uid, *container; /* NULL: not in the path */
    bool debugging; /* only with enableDebuggingHandlers, and never on the port that is read-only */
};
struct route route_find(const struct http_request *r);

/* The subresources of nodes, one of which is needed, in kubelet's order. Returns how many. */
#define ROUTE_RIGHTS_MAX 2
size_t route_rights(const struct http_request *r, const char *ret[ROUTE_RIGHTS_MAX]);
/* The verb of the API for a method by its HTTP name; "" for those that have none. */
const char *route_verb(const char *method);

/* The target of the status socket, appended. ERR_INVALID: 400; ERR_RANGE: 422, PodLogOptions that exclude
 * one another. */
enum err_code route_log_target(const struct http_request *r, const struct route *to, struct buf *ret,
                               struct err *e) MUST_CHECK;
enum err_code route_stream_target(const struct http_request *r, const struct route *to, struct buf *ret,
                                  struct err *e) MUST_CHECK;                      /* exec, attach, run */
void route_pod_target(const struct route *to, const char *what, struct buf *ret); /* what "": the pod */
#endif
