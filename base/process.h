/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process - children that are owned: started with clone3 (pidfd; straight into a cgroup on v2), a
 * built environment, closed descriptors, default signals and umask 022, the daemon's own rlimits and
 * oom_score_adj undone, a deadline, an output limit.
 *
 *     struct proc p;                              embedded in the caller's operation
 *     proc_start(&p, &spec, loop, done, owner);   done(&p.op, result) exactly once
 *
 * Result: ERR_OK when the child exited with 0; ERR_UNKNOWN "<name>: exit status N: <tail of
 * stderr>" or "... killed by SIGX" otherwise; ERR_DEADLINE / ERR_CANCELLED after TERM to the process
 * group, 2 s later KILL; ERR_NOT_FOUND when the program is missing.  The result does not wait for
 * a grandchild that holds the pipes: 200 ms after the exit they are closed.  The child is made by a thread
 * of its own, soon after proc_start(): a program on a file system that hangs holds up nothing but its own
 * operation.  Loop thread only.
 */
#ifndef BASE_PROCESS_H
#define BASE_PROCESS_H
#include "base/buf.h"
#include "base/op.h"

#include <stdbool.h>
#include <sys/types.h>

struct proc_fd {   /* an extra descriptor for the child */
    int parent_fd; /* borrowed, stays open in the parent */
    int child_fd;  /* number in the child, 3 and up */
};

struct proc_spec {           /* everything borrowed only during proc_start() */
    const char *name;        /* for messages and op_each: "crun create" */
    const char *subject;     /* what it is for, may be NULL */
    const char *const *argv; /* argv[0] is an absolute path; NULL-terminated */
    const char *const *env;  /* "K=V"; NULL: PATH=/usr/local/sbin:...:/bin only */
    const char *cwd;         /* NULL: "/" */
    const void *stdin_data;  /* copied; NULL: /dev/null */
    size_t stdin_size;
    size_t stdout_max; /* ERR_EXHAUSTED past it; 0: standard output is discarded */
    const struct proc_fd *fds;
    size_t n_fds;
    int cgroup_fd;                 /* directory to start in (v2); -1: none */
    const char *cgroup_procs;      /* or a cgroup.procs file that the child joins first (v1); NULL: none */
    const char *const *join_procs; /* more of them, NULL-terminated; NULL: none */
    /*
     * Folders and files, each list NULL-terminated.  With write_paths the child reads and runs (Landlock,
     * Linux 5.19) only what is below the first, makes and changes only what is below the second, and never
     * runs that; what is not there is left out.  On an older kernel it is not confined so:
     * proc_landlock_version(). Needs no_rights.
     */
    const char *const *read_paths, *const *write_paths;
    uint64_t deadline_ms;
    bool new_session; /* setsid(): for conmon; otherwise only a process group of its own */
    /* With no_rights: the user it becomes, alone in its group; needs CAP_SETUID and CAP_SETGID.  0: as we. */
    uid_t uid;
    gid_t gid;
    bool no_rights; /* no capabilities, also none to gain (the bounding set, no_new_privs), no core dumps */
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
    char name[64]; /* op.name: the specification's is only borrowed */
    char *prog;
    uv_poll_t exit_poll;
    uv_poll_t out_poll, err_poll, report_poll;
    uv_timer_t kill_timer;
    int out_fd, err_fd, report_fd;
    int report_step, report_sys; /* why it could not exec; 0: it could */
    int step;
    bool overflow, aborted;
};

void proc_start(struct proc *p, const struct proc_spec *spec, uv_loop_t *loop, op_done_fn done, void *owner);
void proc_cancel(struct proc *p);

/*
 * Remembers the rlimits and the oom_score_adj that children get back, and ignores SIGPIPE where it has
 * its default action.  main() calls it before it changes either; else the first proc_start() does.
 */
void proc_defaults_capture(void);

/* Children that SIGKILL did not end within 2 s (stuck in the kernel), of processes and calls alike. */
size_t proc_left_behind(void);
/* Before uv_loop_close(): stops watching those of this loop, and reaps what has ended just now; a turn of the
 * loop must follow. */
void proc_forget(uv_loop_t *loop);

/* Of the kernel; 0: it has none, or it is not enabled.  The first version cannot be used: it forbids every
 * rename to another folder. */
#define PROC_LANDLOCK_MIN 2
int proc_landlock_version(void);
#define PROC_LANDLOCK_MISSING                                                                                \
    "kernel has no usable Landlock (Linux 5.19, lsm=): coracle-unpack and skopeo are confined by dropped "   \
    "capabilities, limits and seccomp alone, and skopeo can read what its user can"

/*
 * call - run a C function in a forked child: for work on paths that may hang (mount, umount, hostPath,
 * foreign file systems) or that needs other namespaces.  The function may allocate, must not touch
 * the loop or take locks, and reports through *e and up to `out` bytes.  Of the daemon's descriptors it
 * has only 0 to 2 (0 is /dev/null): it opens what it needs by path.  The child is killed at the
 * deadline; a child stuck in the kernel (D state) is left behind, counted and logged: the operation
 * ends all the same.  A short one on our own files can have a thread instead (in_thread, below).
 */
typedef enum err_code (*proc_call_fn)(const void *arg, struct buf *out, struct err *e);

/*
 * fork() for a function that runs in such a child (which has one thread).  Not glibc's: it would call the
 * handlers of libraries, and libuv's closes descriptors by numbers that mean something else by now.  -1:
 * errno.
 */
pid_t proc_call_fork(void);

struct call_thread;
struct proc_call {
    struct op op;
    struct buf out; /* what the function wrote; freed after done returns unless detached */
    /* private */
    op_done_fn user_done;
    char name[64];
    pid_t pid;
    int pidfd;
    uv_poll_t exit_poll;
    uv_poll_t wire_poll;
    uv_timer_t timer;           /* of its move, then of its killing */
    struct call_thread *thread; /* in place of the child */
    const char *late_procs;
    int late_fd;
    int wire_fd;
    struct buf wire;
    int step;
};

#define PROC_CALL_MOVE_MS 200

struct proc_call_spec {
    const char *name, *subject;
    proc_call_fn fn;
    const void *arg; /* seen by the child through fork: no copy needed, valid during start */
    size_t out_max;
    uint64_t deadline_ms;
    int cgroup_fd;            /* as above, but the child moves there; -1: none */
    const char *cgroup_procs; /* as above; NULL: none */
    /*
     * For what is short nearly always and neither changes its user nor forks: the child begins in the
     * caller's cgroup, dies with the thread that starts it, and is moved by it (by then cgroup_fd and
     * cgroup_procs are still there) when it takes longer than PROC_CALL_MOVE_MS.  For a move the kernel waits
     * 10 to 30 ms when none was made just before.
     */
    bool moves_late;
    /*
     * For what is short, touches none but our own files and neither changes its user nor forks: it runs in a
     * thread of its own, not in a child, which spares the copy of our memory and the faults that follow it.
     * The thread has a working folder of its own, may unshare() and setns(), and ends with the call; `arg`
     * is valid until done.  Nothing can kill it: a cancel or the deadline changes the result, and done
     * waits.  Cgroups do not matter to it.
     */
    bool in_thread;
};

void proc_call_start(struct proc_call *c, const struct proc_call_spec *spec, uv_loop_t *loop, op_done_fn done,
                     void *owner);

/* A program of ours: in `dir`; where that is "", beside this one, as in the build folder, or below the PREFIX
 * it was installed to.  False: *ret is where it was looked for last. */
bool proc_find_own(const char *dir, const char *name, char *ret, size_t size);

/* pid + start time identify a process over a restart; *ret is set when there is one. */
struct presence proc_start_time(pid_t pid, uint64_t *ret, struct err *e) MUST_CHECK;
/* A pidfd of the process.  Absent: the number is free, or another process with another start time has it. */
struct presence proc_open(pid_t pid, uint64_t start_time, int *ret_pidfd, struct err *e) MUST_CHECK;
#endif
