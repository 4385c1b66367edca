/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process - owned child processes: started with clone3 (with a pidfd; on v2 directly in their cgroup), with
 * an explicit environment, closed descriptors, default signals, umask 022, the original rlimits and
 * oom_score_adj, a deadline and an output limit.
 *
 *     struct proc p;                              embedded in the caller's operation
 *     proc_start(&p, &spec, loop, done, owner);   done(&p.op, result) exactly once
 *
 * Result: ERR_OK if the child exited with 0; otherwise ERR_UNKNOWN "<name>: exit status N: <tail of stderr>"
 * or "... killed by SIGX"; ERR_DEADLINE or ERR_CANCELLED after SIGTERM to the process group and SIGKILL 2 s
 * later; ERR_NOT_FOUND if the program does not exist. The result does not wait for a grandchild that holds
 * the pipes: they are closed 200 ms after the exit. The child is created on its own thread, soon after
 * proc_start(), so that a program on a hung file system blocks only its own operation. Loop thread only.
 */
#ifndef BASE_PROCESS_PROCESS_H
#define BASE_PROCESS_PROCESS_H
#include "base/buf.h"
#include "base/op.h"

#include <stdbool.h>
#include <sys/types.h>

struct proc_fd {   /* an extra descriptor for the child */
    int parent_fd; /* borrowed, stays open in the parent */
    int child_fd;  /* number in the child, 3 and up */
};

struct proc_spec {           /* borrowed only during proc_start() */
    const char *name;        /* for messages and op_each: "crun create" */
    const char *subject;     /* its purpose; may be NULL */
    const char *const *argv; /* argv[0] is an absolute path; NULL-terminated */
    const char *const *env;  /* "K=V"; NULL: PATH=/usr/local/sbin:...:/bin only */
    const char *cwd;         /* NULL: "/" */
    const void *stdin_data;  /* copied; NULL: /dev/null */
    size_t stdin_size;
    size_t stdout_max; /* ERR_EXHAUSTED if exceeded; 0: standard output is discarded */
    const struct proc_fd *fds;
    size_t n_fds;
    int cgroup_fd;            /* directory to start in (v2); -1: none */
    const char *cgroup_procs; /* or a file that the child writes "0" to, to join a cgroup (v1); NULL: none */
    const char *const *join_procs; /* more such files, NULL-terminated; NULL: none */
    /*
     * NULL-terminated lists of folders and files. With write_paths, Landlock (Linux 5.19) confines the child:
     * it may read and execute only below read_paths, and create and change, but not execute, only below
     * write_paths. Paths that do not exist are left out. Older kernels do not confine it: see
     * proc_landlock_version(). Needs no_rights.
     */
    const char *const *read_paths, *const *write_paths;
    uint64_t deadline_ms;
    bool new_session; /* setsid(): for conmon; otherwise only a new process group */
    /* With no_rights: run as this user, with no supplementary groups; needs CAP_SETUID and CAP_SETGID. 0: as
     * ourselves. */
    uid_t uid;
    gid_t gid;
    bool no_rights; /* no capabilities and no way to gain any (bounding set, no_new_privs), no core dumps */
};

struct proc {
    struct op op;
    int status; /* wait status, valid in done when `exited` */
    bool exited;
    struct buf out;     /* standard output; freed after done returns unless detached */
    struct buf err_out; /* the last 16 KiB of standard error */
    /* private */
    op_done_fn user_done;
    struct spawn_job *job; /* while it is being started */
    pid_t pid;
    int pidfd;
    char name[64]; /* op.name: the one in the specification is only borrowed */
    char *prog;
    uv_poll_t exit_poll;
    uv_poll_t out_poll, err_poll, report_poll;
    uv_timer_t kill_timer;
    int out_fd, err_fd, report_fd;
    int report_step, report_sys; /* why the exec failed; 0: it did not */
    int step;
    bool overflow, aborted;
};

void proc_start(struct proc *p, const struct proc_spec *spec, uv_loop_t *loop, op_done_fn done, void *owner);
void proc_cancel(struct proc *p);

/* Remembers the rlimits and the oom_score_adj that children get, and ignores SIGPIPE if it has its default
 * action. main() calls it before changing either; otherwise the first proc_start() does. */
void proc_defaults_capture(void);

/* Number of children, of processes and calls, that SIGKILL did not end within 2 s (stuck in the kernel). */
size_t proc_left_behind(void);
/* Before uv_loop_close(): stops watching this loop's children and reaps those that ended just now. The loop
 * must run again afterwards. */
void proc_forget(uv_loop_t *loop);

/* The kernel's version; 0: not supported or not enabled. Version 1 is unusable because it forbids all renames
 * to another folder. */
#define PROC_LANDLOCK_MIN 2
int proc_landlock_version(void);
#define PROC_LANDLOCK_MISSING                                                                                \
    "kernel has no usable Landlock (Linux 5.19, lsm=): coracle-unpack and skopeo are confined by dropped "   \
    "capabilities, limits and seccomp alone, and skopeo can read what its user can"

/*
 * call - runs a C function in a forked child, for work on paths that may hang (mount, umount, hostPath,
 * foreign file systems) or that needs other namespaces. The function may allocate, must not touch the loop or
 * take locks, and reports through *e and up to `out` bytes. It inherits only descriptors 0 to 2 (0 is
 * /dev/null) and opens everything else by path. The child is killed at the deadline; if it is stuck in the
 * kernel (D state), it is counted, logged and left behind, and the operation ends anyway. A short call on our
 * own files can run in a thread instead (in_thread, below).
 */
typedef enum err_code (*proc_call_fn)(const void *arg, struct buf *out, struct err *e);

/* fork() for a function that runs in such a (single-threaded) child. Not glibc's fork(), which would run the
 * libraries' fork handlers: libuv's closes descriptors by numbers that now belong to something else. -1:
 * errno. */
pid_t proc_call_fork(void);

/* A pipe in each direction between the two processes of a fork; owned by the process. */
struct proc_pipes {
    int from; /* reads what the other process writes; end of file when that has closed or ended */
    int to;
};
/* proc_call_fork() with such pipes, which close on exec. Sets *ret in both processes. -1: *e has the problem
 * and *ret is unchanged. */
pid_t proc_call_fork_piped(struct proc_pipes *ret, struct err *e);

struct call_job;
struct proc_call {
    struct op op;
    struct buf out; /* the function's output; freed after done returns unless detached */
    /* private */
    op_done_fn user_done;
    struct call_job *job; /* while the call runs */
};

#define PROC_CALL_MOVE_MS 200

struct proc_call_spec {
    const char *name, *subject;
    proc_call_fn fn;
    const void *arg; /* the child sees it through fork: not copied, valid during start */
    size_t out_max;
    uint64_t deadline_ms;
    int cgroup_fd;            /* as above, but the child moves there; -1: none */
    const char *cgroup_procs; /* as above; NULL: none */
    /*
     * For calls that are usually quick and neither change credentials nor fork: the child starts in the
     * caller's cgroup, dies with the thread that starts it, and is moved only when it runs longer than
     * PROC_CALL_MOVE_MS (cgroup_fd and cgroup_procs must be valid until then). A move takes the kernel 10 to
     * 30 ms, unless another one was made just before.
     */
    bool moves_late;
    /*
     * For calls that are quick, touch only our own files, and neither change credentials nor fork: run in a
     * thread instead of a child, saving the fork's page-table copy and the page faults after it. The thread
     * has its own working directory, may unshare() and setns(), and ends with the call; `arg` must be valid
     * until done. It cannot be killed: a cancel or the deadline changes the result, and done waits. Cgroups
     * are ignored.
     */
    bool in_thread;
};

void proc_call_start(struct proc_call *c, const struct proc_call_spec *spec, uv_loop_t *loop, op_done_fn done,
                     void *owner);

/* Finds one of our own programs: in `dir`; if `dir` is "", beside the running program, as in the build
 * folder, or below its installation PREFIX. False: *ret is the last path that was tried. */
bool proc_find_own(const char *dir, const char *name, char *ret, size_t size);

/* pid and start time identify a process across a restart of the agent; *ret is set when present. */
struct presence proc_start_time(pid_t pid, uint64_t *ret, struct err *e) MUST_CHECK;
/* A pidfd of the process. Absent: the pid is free, or belongs to a process with another start time. */
struct presence proc_open(pid_t pid, uint64_t start_time, int *ret_pidfd, struct err *e) MUST_CHECK;
#endif
