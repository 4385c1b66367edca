/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the kinds of checks: the verdict, and a check's plain TCP connection. */
#ifndef AGENT_PROBE_INTERNAL_H
#define AGENT_PROBE_INTERNAL_H
#include "agent/probe/probe.h"
#include "agent/probe/text.h"
#include "base/process/process.h"
#include "base/scope.h"

struct probe_run { /* first member of each kind's state */
    struct probe_check *check;
    struct probe_world world;
    op_done_fn done;
    void (*free)(struct probe_run *run); /* of this kind; NULL: free() */
    uint64_t timeout_ms;
};

/* Begins a check with state `run` (size bytes, allocated here, zeroed). `abort` works as in op.h, and sets
 * the verdict at the deadline. NULL when out of memory; the check is then finished. */
void *probe_begin(struct probe_check *c, const struct probe_world *w, size_t size, const char *name,
                  const char *subject, uint64_t timeout_ms, op_abort_fn abort, op_done_fn done, void *owner);

/* Sets the verdict; the check ends when its handles are closed. Only the first call has an effect. */
void probe_verdict(struct probe_check *c, enum probe_outcome outcome, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* ---- link.c: one connection to an address ---- */
struct probe_link {
    struct probe_check *check;
    uv_tcp_t tcp;
    uv_connect_t connect;
    uv_write_t write;
    char *sent; /* being written */
    char host[256];
    unsigned port;
    bool open;
    void (*on_connect)(struct probe_link *l, int status);               /* 0 or a libuv error */
    void (*on_data)(struct probe_link *l, const char *data, ssize_t n); /* 0: end; < 0: a libuv error */
    void (*on_written)(struct probe_link *l);                           /* may be NULL */
    char in[16 * 1024];
};

/* Connects; on_connect follows, even for an immediate failure. */
void probe_link_open(struct probe_link *l, struct probe_check *c, const char *host, unsigned port);
void probe_link_read(struct probe_link *l);
/* Takes ownership of the text; one write at a time. */
void probe_link_write(struct probe_link *l, char *text, size_t n);
/* Its memory must stay valid until the check is over. */
void probe_link_close(struct probe_link *l);
void probe_link_add_dial_error(const struct probe_link *l, int status, struct buf *out);
void probe_link_add_read_error(const struct probe_link *l, int status, struct buf *out);

/* ---- outside.c: the same by coracle-probe ---- */
struct probe_outside {
    struct proc proc;
    struct probe_check *check;
    void (*on_over)(struct probe_outside *o, const struct err *result);
};
/* kind: "https", "http", "tcp". on_over: proc.out has the response, proc.err_out an error's text. */
void probe_outside_start(struct probe_outside *o, struct probe_check *c, const char *kind, const char *host,
                         unsigned port, const char *request, size_t n,
                         void (*on_over)(struct probe_outside *o, const struct err *result));
/* Adds the helper's error on one line. */
void probe_outside_add_error(const struct probe_outside *o, const struct err *result, struct buf *out);
#endif
