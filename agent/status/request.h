/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request - the head of an HTTP/1.1 request: bytes in, a request and its route out; no I/O.
 *
 *     status_parser_init(&p);
 *     used = status_parser_feed(&p, bytes, n);    until p.state is no longer PARSE_MORE
 *     PARSE_DONE: p.request is filled in; use it, then call status_parser_next(&p) for the next one
 *     PARSE_FAILED: answer p.http_code with p.error and close; the rest cannot be parsed
 *
 * Hostile input: everything is bounded. Percent-encoding is decoded; zero bytes and invalid UTF-8 are
 * rejected. A body is skipped (none of our requests needs one).
 */
#ifndef AGENT_STATUS_REQUEST_H
#define AGENT_STATUS_REQUEST_H
#include "base/buf.h"

#include <llhttp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STATUS_URL_MAX (32 * 1024)  /* 414 if longer; a script given to exec is the longest content */
#define STATUS_HEAD_MAX (40 * 1024) /* URL, names and values of headers: 431 if longer */
#define STATUS_BODY_MAX (64 * 1024) /* 413 if longer */
#define STATUS_PARAMS_MAX 256       /* exec: one for each argument */
#define STATUS_SEGMENTS_MAX 8

enum status_method { METHOD_GET = 1, METHOD_HEAD = 2, METHOD_POST = 4, METHOD_DELETE = 8, METHOD_OTHER = 16 };

struct status_param {
    const char *key, *value; /* value "" when there is none */
};

/* A request to change the protocol; "" if a header is absent or too long. */
struct status_upgrade {
    bool asked; /* "Connection: upgrade" and an Upgrade header */
    char protocol[64];
    char key[64], version[8], subprotocols[256]; /* Sec-WebSocket-Key, -Version, -Protocol */
};

struct status_request { /* strings live in the parser until status_parser_next() */
    enum status_method method;
    const char *segments[STATUS_SEGMENTS_MAX]; /* "/api/v1/pods" is {"api", "v1", "pods"} */
    size_t n_segments;
    struct status_param params[STATUS_PARAMS_MAX];
    size_t n_params;
    bool keep_alive; /* the client wants (and may have) another request on this connection */
    bool http10;     /* no chunked encoding */
    struct status_upgrade upgrade;
};

struct status_parser {
    enum { PARSE_MORE, PARSE_DONE, PARSE_FAILED } state;
    struct status_request request;
    int http_code; /* PARSE_FAILED */
    const char *error;
    bool begun; /* the first byte of a request has arrived */
    /* private */
    llhttp_t llhttp;
    struct buf url;
    char header[32]; /* name of the current header; "": too long to matter */
    bool header_too_long;
    size_t head_bytes, head_fed, body_bytes;
    bool head_done;
};

void status_parser_init(struct status_parser *p);
void status_parser_done(struct status_parser *p);
/* returns the number of bytes used */
size_t status_parser_feed(struct status_parser *p, const char *bytes, size_t n);
void status_parser_next(struct status_parser *p);

/* The (last) parameter of that name, or NULL. */
const char *status_param(const struct status_request *r, const char *key);
/* *ret is unchanged if absent or empty. ERR_INVALID has parameter and value. */
enum err_code status_param_flag(const struct status_request *r, const char *key, bool *ret,
                                struct err *e) MUST_CHECK;

enum status_route {
    ROUTE_NONE,
    ROUTE_HEALTHZ,
    ROUTE_READYZ,
    ROUTE_VERSION,
    ROUTE_METRICS,
    ROUTE_METRICS_CADVISOR,
    ROUTE_METRICS_RESOURCE,
    ROUTE_STATS,
    ROUTE_PODS,
    ROUTE_POD,
    ROUTE_POD_LOG,
    ROUTE_POD_EXEC,
    ROUTE_POD_ATTACH,
    ROUTE_POD_FORWARD,
    ROUTE_POD_ARCHIVE,
    ROUTE_POD_RESTART,
    ROUTE_EVENTS,
    ROUTE_NODES,
    ROUTE_CONFIG_MAPS,
    ROUTE_SECRETS,
    ROUTE_PRIORITY_CLASSES,
    ROUTE_EXPLAIN,
    ROUTE_MANIFESTS,
    ROUTE_CONFIG,
    ROUTE_DEVICES,
    ROUTE_EVICTIONS,
    ROUTE_IMAGES,
    ROUTE_IMAGE_TASK,
    ROUTE_OPERATIONS,
};

struct status_match {
    enum status_route route;       /* ROUTE_NONE: 404 */
    unsigned methods;              /* allowed ones; otherwise 405 */
    const char *namespace_, *name; /* NULL: not in the path */
};
struct status_match status_route(const struct status_request *r);

struct status_log_options {
    const char *container; /* NULL: not given */
    bool follow, previous, timestamps;
    bool has_tail;
    uint64_t tail_lines;
    int64_t since_ns;     /* wall clock; 0: all */
    uint64_t limit_bytes; /* 0: none */
};

struct status_exec_options {
    const char *container; /* NULL: not given */
    const char *command[STATUS_PARAMS_MAX + 1];
    bool stdin_, stdout_, stderr_, tty;
    uint64_t port;    /* forward */
    const char *path; /* archive */
};
/* Checked like PodExecOptions and PodAttachOptions in an apiserver; borrowed from the request. */
enum err_code status_exec_options(const struct status_request *r, struct status_exec_options *ret,
                                  struct err *e) MUST_CHECK;
enum err_code status_attach_options(const struct status_request *r, struct status_exec_options *ret,
                                    struct err *e) MUST_CHECK;
enum err_code status_forward_options(const struct status_request *r, struct status_exec_options *ret,
                                     struct err *e) MUST_CHECK;
enum err_code status_archive_options(const struct status_request *r, struct status_exec_options *ret,
                                     struct err *e) MUST_CHECK;
enum err_code status_log_options(const struct status_request *r, struct status_log_options *ret,
                                 struct err *e) MUST_CHECK;
#endif
