/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probe - one check of a server: HTTP GET, TCP connect, gRPC health. Equivalent to kubelet's pkg/probe, with
 * the same verdicts and texts; the caller decides when to check and how to react.
 *
 * Plain connections to addresses run on the loop. TLS and names that need a resolver are left to a
 * short-lived child, coracle-probe: the daemon loads no TLS library and waits for no resolver. Everything a
 * server sends is hostile: it is bounded, and the whole check has one deadline. Loop thread only.
 */
#ifndef AGENT_PROBE_PROBE_H
#define AGENT_PROBE_PROBE_H
#include "base/buf.h"
#include "base/op.h"

enum probe_outcome { PROBE_SUCCESS, PROBE_WARNING, PROBE_FAILURE, PROBE_UNKNOWN };
const char *probe_outcome_name(enum probe_outcome o); /* "success", "warning", "failure", "unknown" */

#define PROBE_TEXT_MAX (12 * 1024) /* 10 KiB of output and the surrounding text */
#define PROBE_REDIRECTS_MAX 10     /* Go's default */

struct probe_world { /* the environment of checks; strings borrowed while a check runs */
    uv_loop_t *loop;
    const char *helper;       /* absolute path of coracle-probe; NULL or "": not available */
    int cgroup_fd;            /* for the helper, as in base/process/process.h; -1: none */
    const char *cgroup_procs; /* also for the helper; NULL: none */
};

struct probe_header {
    const char *name, *value;
};

struct probe_http { /* borrowed only during probe_http_start() */
    bool https;
    const char *host; /* address or name */
    unsigned port;
    const char *path; /* may hold "?query" */
    const struct probe_header *headers;
    size_t n_headers;
    const char *user_agent; /* unless set by a header: "kube-probe/1.36" */
    bool any_host;          /* follow redirects to other hosts, too; otherwise they are a warning */
};

struct probe_grpc { /* borrowed only during probe_grpc_start() */
    const char *host;
    unsigned port;
    const char *service; /* "" : the whole server */
    const char *user_agent;
};

struct probe_check {
    struct op op;
    enum probe_outcome outcome;
    bool errored;          /* the check could not be carried out, so the result is unrelated to the server */
    int status;            /* HTTP: of the last response; 0: there was none */
    bool plain_http;       /* HTTPS: the server answered in plain HTTP */
    struct buf text;       /* a message for the user; belongs to the caller after done (buf_done) */
    struct probe_run *run; /* private */
};

/* done gets ERR_OK and a verdict (a failure at the deadline), ERR_CANCELLED, or ERR_EXHAUSTED (out of
 * memory). timeout_ms 0: none. */
void probe_http_start(struct probe_check *c, const struct probe_world *w, const struct probe_http *spec,
                      const char *subject, uint64_t timeout_ms, op_done_fn done, void *owner);
void probe_tcp_start(struct probe_check *c, const struct probe_world *w, const char *host, unsigned port,
                     const char *subject, uint64_t timeout_ms, op_done_fn done, void *owner);
void probe_grpc_start(struct probe_check *c, const struct probe_world *w, const struct probe_grpc *spec,
                      const char *subject, uint64_t timeout_ms, op_done_fn done, void *owner);
#endif
