/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exec_report - between the agent and `coracle-exec`, the small program that starts one process in a
 * container and waits for it: its command line, its descriptors, what it says.
 *
 *     coracle-exec FOLDER ROWSxCOLUMNS|- OOM_SCORE_ADJ|- RUNTIME ARG...
 *
 *     FOLDER    its working folder: `pid` (of the process, by the runtime), `leader` (pid and start time, by
 *               coracle-exec), `console` (socket for the terminal); removed at the end
 *     OOM_SCORE_ADJ  of the process, as of its container; crun sets none for exec.  The runtime begins with
 * it; where the kernel refuses it (lower than that of the agent's start without CAP_SYS_RESOURCE) the process
 * keeps the one that it has RUNTIME   the OCI runtime's `exec --detach` with all its options, run with
 * --process and --log on descriptors EXEC_FD_SPEC and EXEC_FD_LOG
 *
 * Standard input is the process specification.  The end of the agent's side of EXEC_FD_CONTROL means: kill
 * the process and everything in its session; so nothing outlives an agent that was killed.
 */
#ifndef AGENT_RUNTIME_EXEC_REPORT_H
#define AGENT_RUNTIME_EXEC_REPORT_H
#include "base/presence.h" /* as a type: coracle-exec is linked without base */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    EXEC_FD_CONTROL = 3, /* SOCK_SEQPACKET; reports go to the agent */
    EXEC_FD_STDIN = 4,   /* the process's own, absent when it gets a terminal */
    EXEC_FD_STDOUT = 5,
    EXEC_FD_STDERR = 6,
    EXEC_FD_SPEC = 7, /* in the runtime only */
    EXEC_FD_LOG = 8,
};

/*
 * coracle-exec --streams FIRST[io] RUNTIME ARG...   only runs that, with standard streams for a pod whose
 * root is FIRST on the host: pipes are given to it; i: input is an empty pipe, o: output goes nowhere,
 * instead of what they were.
 */
#define EXEC_STREAMS "--streams"

/*
 * coracle-exec --forward NETNS PORT   one connection to a port of the loopback interface there ("": of the
 * host), between the descriptors EXEC_FORWARD_IN and EXEC_FORWARD_OUT, until both ways are over.
 */
#define EXEC_FORWARD "--forward"
enum { EXEC_FORWARD_IN = 3, EXEC_FORWARD_OUT = 4 };
int exec_forward(const char *netns, const char *port);

#define EXEC_FILE_PID "pid"
#define EXEC_FILE_LEADER "leader"
#define EXEC_FILE_CONSOLE "console"

enum exec_report_kind {
    EXEC_TERMINAL = 1, /* with the master side as SCM_RIGHTS; before EXEC_STARTED */
    EXEC_STARTED,      /* value: pid */
    EXEC_ENDED,  /* value: wait status; text: what the runtime logged when its last step, execve, failed */
    EXEC_FAILED, /* value: the runtime's wait status; text: its log, JSON lines */
    EXEC_BROKEN, /* value: errno; text: what coracle-exec itself could not do */
};

enum { EXEC_REPORT_TEXT = 8192 };

struct exec_report { /* sent as far as the text goes */
    int32_t kind, value;
    char text[EXEC_REPORT_TEXT]; /* NUL-terminated */
};

/*
 * Kills the process and all that are in its session (0: unknown), in one pass over /proc.  Present: some
 * still lived; again until absent, since one may have forked meanwhile.  Unknown: errno says why some could
 * not be looked at; the others are killed.  The process must not have been reaped: its numbers are taken.
 * (crun lets a process lead no session of its own but stand in one that its parent began.)
 */
struct presence exec_session_kill(pid_t leader, pid_t session) MUST_CHECK;
/* Kills the children of this process, how many there were; they are still to be waited for. */
size_t exec_children_kill(void);
/* Fields of /proc/<pid>/stat, set when present.  Absent: no such process, or a zombie; unknown: see errno. */
struct presence exec_look_process(pid_t pid, pid_t *ret_session, uint64_t *ret_start_time) MUST_CHECK;
#endif
