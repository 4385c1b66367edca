/* SPDX-License-Identifier: Apache-2.0 */
/* What the kinds of checks share: a verdict, and a plain TCP connection of a check. */
#ifndef AGENT_PROBE_INTERNAL_H
#define AGENT_PROBE_INTERNAL_H
#include "agent/probe/probe.h"
#include "agent/probe/text.h"
#include "base/process.h"
#include "base/scope.h"

struct probe_run { /* first member of each kind's own state */
    struct probe_check *check;
    struct probe_world world;
    op_done_fn done;
    void (*free)(struct probe_run *run); /* of the kind; NULL: free() */
    uint64_t timeout_ms;
};

/*
 * Begins a check whose state is `run` (size bytes, allocated here, zeroed).  `abort` has op.h's meaning; it
 * sets the verdict when the time is over.  NULL: no memory, the check has finished.
 */
void *probe_begin(struct probe_check *c, const struct probe_world *w, size_t size, const char *name,
                  const char *subject, uint64_t timeout_ms, op_abort_fn abort, op_done_fn done, void *owner);

/* The verdict; the check ends when its handles have closed.  Only the first one counts. */
void probe_verdict(struct probe_check *c, enum probe_outcome outcome, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* ---- link.c: one connection to an address ---- */
struct probe_link {
    struct probe_check *check;
    uv_tcp_t tcp;
    uv_connect_t connect;
    uv_write_t write;
    char *sent; /* what is being written */
    char host[256];
    unsigned port;
    bool open;
    void (*on_connect)(struct probe_link *l, int status);               /* 0 or a libuv error */
    void (*on_data)(struct probe_link *l, const char *data, ssize_t n); /* 0: end; < 0: a libuv error */
    void (*on_written)(struct probe_link *l);                           /* may be NULL */
    char in[16 * 1024];
};

/* Begins to connect; on_connect follows, also for an immediate failure. */
void probe_link_open(struct probe_link *l, struct probe_check *c, const char *host, unsigned port);
void probe_link_read(struct probe_link *l);
/* Takes the text; one write at a time. */
void probe_link_write(struct probe_link *l, char *text, size_t n);
/* The link's memory stays in use until the check is over. */
void probe_link_close(struct probe_link *l);
void probe_link_add_dial_error(const struct probe_link *l, int status, struct buf *out);
void probe_link_add_read_error(const struct probe_link *l, int status, struct buf *out);

/* ---- outside.c: the same by coracle-probe ---- */
struct probe_outside {
    struct proc proc;
    struct probe_check *check;
    void (*on_over)(struct probe_outside *o, const struct err *result);
};
/* kind: "https", "http", "tcp".  on_over: proc.out holds the response, proc.err_out an error's words. */
void probe_outside_start(struct probe_outside *o, struct probe_check *c, const char *kind, const char *host,
                         unsigned port, const char *request, size_t n,
                         void (*on_over)(struct probe_outside *o, const struct err *result));
/* What the helper said is wrong, on one line. */
void probe_outside_add_error(const struct probe_outside *o, const struct err *result, struct buf *out);
#endif
