/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inhibit - the lock that makes logind wait with a shutdown until the pods have ended.  coracle-shutdown, a
 * process of its own (it maps libsystemd's sd-bus, which the agent does not), holds it and tells of
 * PrepareForShutdown; this is the agent's end of the line to it.
 *
 *     coracle-shutdown ──► "held USEC"       it has the lock; logind waits that long at most
 *                          "preparing 0|1"   is the machine about to shut down?  first, and at changes
 *                          "warn TEXT"       worth a warning
 *     coracle-shutdown ◄── "release"         the pods have ended
 *
 * It ends when the line closes (so does the lock), and is started again when it ends, with growing pauses.
 * Loop thread only.
 */
#ifndef AGENT_INHIBIT_H
#define AGENT_INHIBIT_H
#include "base/process.h"

#define INHIBIT_LINE_MAX 512 /* bytes, the end of line included */

struct inhibit_options { /* strings borrowed for its life */
    uv_loop_t *loop;
    const char *program; /* coracle-shutdown */
    uint64_t wait_ms;    /* what logind is asked to wait */
    int cgroup_fd;       /* as in base/process.h */
    const char *cgroup_procs;
    void (*on_preparing)(bool preparing, void *arg);
    void (*on_state)(bool failed, const char *text, void *arg); /* for people: what is known of the lock */
    void *arg;
};

struct inhibit {
    struct inhibit_options o;
    struct proc proc;
    uv_pipe_t line;
    uv_timer_t timer;
    uint64_t pause_ms; /* before it is started again */
    char in[INHIBIT_LINE_MAX];
    size_t in_n;
    char said[256]; /* the last failure that was logged */
    bool open, line_open, closing;
};

enum inhibit_word { INHIBIT_HELD, INHIBIT_PREPARING, INHIBIT_WARN, INHIBIT_NONSENSE };
/* One line without its end.  *ret_value: HELD: microseconds, PREPARING: 0 or 1; *ret_text: WARN, into line.
 */
enum inhibit_word inhibit_parse(const char *line, uint64_t *ret_value, const char **ret_text);

/* Starts it; the caller's memory is in use until the loop has run after inhibit_close(). */
void inhibit_open(struct inhibit *i, const struct inhibit_options *o);
void inhibit_release(struct inhibit *i);
void inhibit_close(struct inhibit *i); /* one that was never opened is fine */
#endif
