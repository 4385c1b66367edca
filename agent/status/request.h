/* SPDX-License-Identifier: Apache-2.0 */
/* request - the route and the parameters of a request to the status socket; no I/O. */
#ifndef AGENT_STATUS_REQUEST_H
#define AGENT_STATUS_REQUEST_H
#include "agent/api/schema/kinds.h"
#include "base/codec/http_request.h"

enum status_route {
    ROUTE_NONE,
    ROUTE_HEALTHZ,
    ROUTE_READYZ,
    ROUTE_VERSION,
    ROUTE_METRICS,
    ROUTE_METRICS_CADVISOR,
    ROUTE_METRICS_RESOURCE,
    ROUTE_METRICS_PROBES,
    ROUTE_STATS,
    ROUTE_PODS,
    ROUTE_POD,
    ROUTE_POD_LOG,
    ROUTE_POD_EXEC,
    ROUTE_POD_ATTACH,
    ROUTE_POD_FORWARD,
    ROUTE_POD_ARCHIVE,
    ROUTE_POD_RESTART,
    ROUTE_POD_DEBUG,
    ROUTE_EVENTS,
    ROUTE_NODES,
    ROUTE_CONFIG_MAPS,
    ROUTE_SECRETS,
    ROUTE_PRIORITY_CLASSES,
    ROUTE_GENERIC,
    ROUTE_EXPLAIN,
    ROUTE_MANIFESTS,
    ROUTE_CONFIG,
    ROUTE_DEVICES,
    ROUTE_EVICTIONS,
    ROUTE_PLACEMENTS,
    ROUTE_IMAGES,
    ROUTE_IMAGE_TASK,
    ROUTE_OPERATIONS,
    ROUTE_STORE,
    ROUTE_STORE_OBJECT,
    ROUTE_KUBECONFIG,
};

struct status_match {
    enum status_route route;       /* ROUTE_NONE: 404 */
    unsigned methods;              /* allowed ones; otherwise 405 */
    const char *namespace_, *name; /* NULL: not in the path */
    enum api_kind kind;            /* of ROUTE_GENERIC */
};
struct status_match status_route(const struct http_request *r);
/* Whether the body of a request to this URL is read; other bodies are skipped. */
bool status_takes_body(const char *url);

struct status_log_options {
    const char *container; /* NULL: not given */
    bool follow, previous, timestamps;
    bool has_tail;
    uint64_t tail_lines;
    int64_t since_ns;     /* wall clock; 0: all */
    uint64_t limit_bytes; /* 0: none */
    bool only_stdout, only_stderr;
};

struct status_exec_options {
    const char *container; /* NULL: not given */
    const char *command[HTTP_PARAMS_MAX + 1];
    bool stdin_, stdout_, stderr_, tty;
    uint64_t port;    /* forward */
    const char *path; /* archive */
};
/* Checked like PodExecOptions and PodAttachOptions in an apiserver; borrowed from the request. */
enum err_code status_exec_options(const struct http_request *r, struct status_exec_options *ret,
                                  struct err *e) MUST_CHECK;
enum err_code status_attach_options(const struct http_request *r, struct status_exec_options *ret,
                                    struct err *e) MUST_CHECK;
enum err_code status_forward_options(const struct http_request *r, struct status_exec_options *ret,
                                     struct err *e) MUST_CHECK;
enum err_code status_archive_options(const struct http_request *r, struct status_exec_options *ret,
                                     struct err *e) MUST_CHECK;
enum err_code status_log_options(const struct http_request *r, struct status_log_options *ret,
                                 struct err *e) MUST_CHECK;
#endif
