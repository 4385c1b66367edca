/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exec_report - the interface between the agent and `coracle-exec`, the small program that starts a process
 * in a container and waits for it: command line, descriptors and reports.
 *
 *     coracle-exec FOLDER ROWSxCOLUMNS|- OOM_SCORE_ADJ|- RUNTIME ARG...
 *
 *     FOLDER         its working directory: `pid` (of the process, from the runtime), `leader` (pid and start
 *                    time, from coracle-exec), `console` (socket for the terminal); removed at the end
 *     OOM_SCORE_ADJ  of the process, like its container's; crun does not set it for exec, so the runtime
 *                    starts with it. If the kernel refuses it (lower than at the agent's start, without
 *                    CAP_SYS_RESOURCE), it is unchanged
 *     RUNTIME        the OCI runtime's `exec --detach` with all its options, run with --process and --log
 *                    on descriptors EXEC_FD_SPEC and EXEC_FD_LOG
 *
 * Standard input is the process specification. When the agent's side of EXEC_FD_CONTROL is closed,
 * coracle-exec kills the process and its whole session, so that no process outlives a killed agent.
 */
#ifndef AGENT_RUNTIME_EXEC_REPORT_H
#define AGENT_RUNTIME_EXEC_REPORT_H
#include "base/presence.h" /* only for a type: coracle-exec is linked without base */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    EXEC_FD_CONTROL = 3, /* SOCK_SEQPACKET; for reports to the agent */
    EXEC_FD_STDIN = 4,   /* the process's, absent if it gets a terminal */
    EXEC_FD_STDOUT = 5,
    EXEC_FD_STDERR = 6,
    EXEC_FD_SPEC = 7, /* in the runtime only */
    EXEC_FD_LOG = 8,
};

/* coracle-exec --streams FIRST[io] RUNTIME ARG... only runs the command, with standard streams for a pod
 * whose root is FIRST on the host: the pipes are chowned to that user; i: standard input becomes an empty
 * pipe, o: output is discarded. */
/* coracle-exec --forward NETNS PORT forwards one connection to a port of the loopback interface there ("":
 * of the host), between the descriptors EXEC_FORWARD_IN and EXEC_FORWARD_OUT, until both directions have
 * ended. */
#define EXEC_STREAMS "--streams"
#define EXEC_FORWARD "--forward"
enum { EXEC_FORWARD_IN = 3, EXEC_FORWARD_OUT = 4 };
int exec_forward(const char *netns, const char *port);

#define EXEC_FILE_PID "pid"
#define EXEC_FILE_LEADER "leader"
#define EXEC_FILE_CONSOLE "console"

enum exec_report_kind {
    EXEC_TERMINAL = 1, /* with the master side as SCM_RIGHTS; before EXEC_STARTED */
    EXEC_STARTED,      /* value: pid */
    EXEC_ENDED,        /* value: wait status; text: the runtime's log if its last step, execve, failed */
    EXEC_FAILED,       /* value: the runtime's wait status; text: its log, JSON lines */
    EXEC_BROKEN,       /* value: errno; text: what failed in coracle-exec itself */
};

enum { EXEC_REPORT_TEXT = 8192 };

struct exec_report { /* sent up to the end of the text */
    int32_t kind, value;
    char text[EXEC_REPORT_TEXT]; /* NUL-terminated */
};

/*
 * Kills the process and everything in its session (0: unknown), in one pass over /proc. Present: some were
 * alive; repeat until absent, because a process may have forked meanwhile. Unknown: errno has the reason why
 * some processes could not be examined; the others are killed. The process must not be reaped yet, so that
 * its ids are not reused. (With crun a process does not lead a session, but is in one started by its parent.)
 */
struct presence exec_session_kill(pid_t leader, pid_t session) MUST_CHECK;
/* Kills and reaps the children of this process until there are none, for at most grace_ms. waitpid() proves
 * that none is left; a listing of /proc that fails, or misses a process, is repeated. False: some are left.
 */
bool exec_children_end(unsigned grace_ms);
/* Fields of /proc/<pid>/stat, set if present. Absent: no such process, or a zombie; unknown: see errno. */
struct presence exec_read_process(pid_t pid, pid_t *ret_session, uint64_t *ret_start_time) MUST_CHECK;
#endif
