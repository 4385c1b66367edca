/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exec - one more process in a running container (`crun exec`, `runc exec`): exec probes, lifecycle hooks,
 * and `coracle exec`.
 *
 * The process gets the container's own user, capabilities, environment, working folder, seccomp filter and
 * cgroup (they are read from the bundle's config.json), and no shell.  Two forms:
 *   captured   output_max > 0: standard output and standard error go, as they come, into one buffer; what is
 *              beyond output_max bytes is read and dropped.  Standard input is empty.
 *   streamed   the caller's descriptors, or a terminal.
 * The operation ends when the process has ended and, when captured, its output is read; a grandchild that
 * holds the pipes is not waited for (200 ms).  Deadline and op_cancel() kill the process and all of its
 * children that are still in its session, and so does the end of the agent, however it comes: the process is
 * the child of a `coracle-exec` (exec_report.h), which sees that.  Loop thread only.
 */
#ifndef AGENT_RUNTIME_EXEC_H
#define AGENT_RUNTIME_EXEC_H
#include "agent/runtime/container.h"
#include "base/buf.h"

struct rt_exec_spec {        /* everything borrowed only during rt_exec_start() */
    const char *id;          /* a container in RT_RUNNING, else ERR_PRECONDITION */
    const char *const *argv; /* NULL-terminated, at least one */
    size_t output_max;       /* captured; 0: streamed */
    uint64_t deadline_ms;    /* 0: none */
    /* streamed, without a terminal: borrowed descriptors for the process; -1: nothing */
    int stdin_fd, stdout_fd, stderr_fd;
    bool tty; /* a terminal instead; its master side arrives by `on_terminal`, before `on_started` */
    unsigned short rows, columns;                    /* 0: the kernel's default */
    void (*on_terminal)(int master_fd, void *owner); /* the caller owns the descriptor */
    /*
     * The process runs; may be NULL.  A runtime that cannot start it writes its words, which are also the
     * result's, to stderr_fd: who reads pipes should not believe them before this.
     */
    void (*on_started)(void *owner);
};

struct rt_exec {
    struct op op;
    struct rt_exec_run *run; /* private */
    int exit_code;           /* when the result is ERR_OK: 0..255, 128+n for a signal; 126, 127: see below */
    struct buf output;       /* captured; the caller's after done (buf_done) */
};

/*
 * Result: ERR_OK whenever the process ran and ended, whatever its exit code; ERR_NOT_FOUND / ERR_PERMISSION
 * with the runtime's words when it could not be started (exit_code 127 / 126); ERR_DEADLINE, ERR_CANCELLED;
 * ERR_PRECONDITION when the container does not run; anything else is the runtime's failure.  (A file that is
 * executable but no program, as a script without "#!", is only noticed by runc's last step in the container:
 * there it is an exit code, with runc's words on standard error.)
 */
void rt_exec_start(struct rt_exec *x, struct rt *rt, const struct rt_exec_spec *spec, op_done_fn done,
                   void *owner);
#endif
