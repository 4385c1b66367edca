/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exec - an additional process in a running container (`crun exec`, `runc exec`): exec probes, lifecycle
 * hooks, and `coracle exec`.
 *
 * The process gets the container's user, capabilities, environment, working directory, seccomp filter and
 * cgroup (from the bundle's config.json), and no shell. There are two kinds:
 *   captured   output_max > 0: standard output and standard error are merged into one buffer. Output beyond
 *             output_max bytes is read and discarded. Standard input is empty.
 *   streamed   the caller's descriptors, or a terminal.
 * The operation ends when the process has ended and, if captured, its output was read; it does not wait for a
 * grandchild that holds the pipes (200 ms). Deadline and op_cancel() kill the process and all children in its
 * session, and so does any end of the agent: the process is the child of a `coracle-exec` (exec_report.h),
 * which detects that end. Loop thread only.
 */
#ifndef AGENT_RUNTIME_EXEC_H
#define AGENT_RUNTIME_EXEC_H
#include "agent/runtime/container.h"
#include "base/buf.h"

struct rt_exec_spec {        /* borrowed only during rt_exec_start() */
    const char *id;          /* must be in RT_RUNNING, otherwise ERR_PRECONDITION */
    const char *const *argv; /* NULL-terminated, at least one */
    size_t output_max;       /* captured; 0: streamed */
    uint64_t deadline_ms;    /* 0: none */
    /* streamed, without terminal: descriptors for the process (borrowed); -1: none */
    int stdin_fd, stdout_fd, stderr_fd;
    /* Use a terminal instead; `on_terminal` gets its master side, before `on_started`. */
    bool tty;
    unsigned short rows, columns;                    /* 0: the kernel's default */
    void (*on_terminal)(int master_fd, void *owner); /* the caller owns the descriptor */
    /* The process runs; may be NULL. A runtime that cannot start it writes its message, which is also in the
     * result, to stderr_fd: do not treat the pipes' content as output before this call. */
    void (*on_started)(void *owner);
};

struct rt_exec {
    struct op op;
    struct rt_exec_run *run; /* private */
    int exit_code;           /* if the result is ERR_OK: 0..255, 128+n for a signal; 126, 127: see below */
    struct buf output;       /* captured; the caller's after done (buf_done) */
};

/*
 * Result: ERR_OK if the process ran and ended, whatever its exit code; ERR_NOT_FOUND / ERR_PERMISSION with
 * the runtime's message if it could not be started (exit_code 127 / 126); ERR_DEADLINE, ERR_CANCELLED;
 * ERR_PRECONDITION if the container is not running; otherwise a failure of the runtime. (An executable file
 * that is not a program, such as a script without "#!", is only detected by runc's last step in the
 * container: the result is then an exit code, with runc's message on standard error.)
 */
void rt_exec_start(struct rt_exec *x, struct rt *rt, const struct rt_exec_spec *spec, op_done_fn done,
                   void *owner);
#endif
