/* SPDX-License-Identifier: Apache-2.0 */
/* internal - declarations shared by the files of base/process. */
#ifndef BASE_PROCESS_INTERNAL_H
#define BASE_PROCESS_INTERNAL_H
#include "base/process/process.h"

#include <stdbool.h>
#include <stddef.h>

/* ---- process_result.c ---- */
void proc_result_text(const struct proc *p, struct err *e); /* leaves *e alone if the process succeeded */

/* ---- spawn.c: from clone3 to execve ---- */
enum { SPAWN_FDS_MAX = 32, SPAWN_FD_NUMBER_MAX = 255 }; /* far below any rlimit */

enum spawn_step { SPAWN_GROUP = 1, SPAWN_CGROUP, SPAWN_CWD, SPAWN_FDS, SPAWN_RIGHTS, SPAWN_EXEC };

struct spawn_report { /* written to its report pipe by a child that could not exec */
    int step;         /* enum spawn_step */
    int sys;          /* errno */
};

/* landlock.c: both return an errno; *ret is -1 if the kernel has no Landlock. */
int child_landlock_ruleset(const char *const *read_paths, const char *const *write_paths, int *ret);
int child_landlock_enter(int ruleset);

struct spawn_plan {
    const char *const *argv, *const *env;
    const char *cwd;
    int std[3]; /* become 0, 1 and 2 */
    const struct proc_fd *fds;
    size_t n_fds;
    int cgroup_fd;                 /* -1: none */
    const char *cgroup_procs;      /* NULL: none */
    const char *const *join_procs; /* NULL: none */
    const char *const *read_paths, *const *write_paths;
    int report_fd; /* write end, O_CLOEXEC */
    uid_t uid;     /* 0: keep ours */
    gid_t gid;
    bool new_session, no_rights;
};

/* *ret_pidfd is set before the child runs, visible to other threads; -1 if there is none. */
enum err_code spawn_child(const struct spawn_plan *plan, pid_t *ret_pid, int *ret_pidfd,
                          struct err *e) MUST_CHECK;

/* ---- spawn_queue.c: the same on its own thread ---- */
struct spawn_job;
/* Copies the plan and everything that it points to; on success takes ownership of std and report_fd. The
 * report pipe delivers an all-zero report when the job is over, successful or not, and spawn_end() may be
 * called; and the report of a child that could not exec, before it or (if the thread does not wait for the
 * exec) after it. */
enum err_code spawn_begin(struct spawn_job **ret, const struct spawn_plan *plan, struct err *e) MUST_CHECK;
bool spawn_is_over(struct spawn_job *j);
/* Returns the outcome and frees the job. Only when the job is over. */
enum err_code spawn_end(struct spawn_job *j, pid_t *ret_pid, int *ret_pidfd, struct err *e) MUST_CHECK;
bool spawn_cancel(struct spawn_job *j); /* true: it had not started and was freed; otherwise it ends soon */
/* It takes too long: kill the child as soon as it exists. Returns false if the job is over already. */
bool spawn_abandon(struct spawn_job *j);
size_t spawn_abandoned(void); /* how many abandoned jobs are still starting */

/* For our children after fork: default signal dispositions, nothing blocked. Async-signal-safe. */
void child_reset_signals(void);
/* Writes "0" to <cgroup_fd>/cgroup.procs and to the file cgroup_procs, where given; 0 or an errno. */
int child_join_cgroup(int cgroup_fd, const char *cgroup_procs);

/* ---- call.c, call_thread.c ---- */
struct call_thread;
struct call_job {
    char name[64];
    pid_t pid;
    int pidfd;
    uv_poll_t exit_poll;
    uv_poll_t wire_poll;
    uv_timer_t timer;           /* for the move, then for the kill */
    struct call_thread *thread; /* instead of a child */
    const char *late_procs;
    bool moves_late;
    int late_fd;
    int wire_fd;
    struct buf wire;
    int step;
};
void call_run(proc_call_fn fn, const void *arg, struct buf *out, struct err *e); /* the function itself */
void call_end(struct proc_call *c, const struct err *e);                         /* NULL: success */
/* Creates c->job->thread; free() it when its handle is closed. */
enum err_code call_thread_start(struct proc_call *c, const struct proc_call_spec *spec,
                                struct err *e) MUST_CHECK;

/* ---- reaper.c: children that survive SIGKILL ---- */
/* Takes the pidfd; reaps the child whenever it dies. Neither the operation nor uv_run() waits for it. */
void reaper_adopt(uv_loop_t *loop, pid_t pid, int pidfd, const char *name, const char *subject);

/* Reaps an ended multi-threaded child a moment later; the descriptor is copied. The pidfd becomes readable
 * before the kernel has finished tearing down the last thread's /proc entry, and reaping immediately would
 * busy-wait for that, 2 ms on a busy machine. */
void reaper_later(uv_loop_t *loop, int pidfd);

/* How long a killed child may take to die before we stop waiting for it. */
#define KILL_GRACE_MS 2000
#endif
