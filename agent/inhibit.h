/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inhibit - the lock that makes logind delay a shutdown until the pods have ended. coracle-shutdown, a
 * separate process because it loads libsystemd's sd-bus, holds the lock and reports PrepareForShutdown; this
 * is the agent's end of the connection.
 *
 *     coracle-shutdown ──► "held USEC"       the lock is held; logind waits at most that long
 *                          "preparing 0|1"   whether the machine is shutting down; first, and on changes
 *                          "warn TEXT"       to be logged as a warning
 *     coracle-shutdown ◄── "release"         the pods have ended
 *
 * It exits when the connection closes, which releases the lock, and is restarted when it ends, with growing
 * delays. Loop thread only.
 */
#ifndef AGENT_INHIBIT_H
#define AGENT_INHIBIT_H
#include "base/process/process.h"

#define INHIBIT_LINE_MAX 512 /* bytes, including the line end */

struct inhibit_options { /* strings borrowed while it exists */
    uv_loop_t *loop;
    const char *program; /* coracle-shutdown */
    uint64_t wait_ms;    /* the delay requested from logind */
    int cgroup_fd;       /* as in base/process/process.h */
    const char *cgroup_procs;
    void (*on_preparing)(bool preparing, void *arg);
    /* Called with the state of the lock, for display. */
    void (*on_state)(bool failed, const char *text, void *arg);
    void *arg;
};

struct inhibit {
    struct inhibit_options o;
    struct proc proc;
    uv_pipe_t line;
    uv_timer_t timer;
    uint64_t pause_ms; /* before it is restarted */
    char in[INHIBIT_LINE_MAX];
    size_t in_n;
    char said[256]; /* the last failure logged */
    bool open, line_open, closing;
};

enum inhibit_word { INHIBIT_HELD, INHIBIT_PREPARING, INHIBIT_WARN, INHIBIT_NONSENSE };
/* Parses one line without its end. *ret_value: HELD: microseconds, PREPARING: 0 or 1; *ret_text: WARN, points
 * into line. */
enum inhibit_word inhibit_parse(const char *line, uint64_t *ret_value, const char **ret_text);

/* Starts it; the caller's memory must stay valid until the loop has run after inhibit_close(). */
void inhibit_open(struct inhibit *i, const struct inhibit_options *o);
void inhibit_release(struct inhibit *i);
void inhibit_close(struct inhibit *i); /* fine if never opened */
#endif
