/* SPDX-License-Identifier: Apache-2.0 */
/* internal - what the files of base/ share among themselves. */
#ifndef BASE_INTERNAL_H
#define BASE_INTERNAL_H
#include "base/log.h"
#include "base/process.h"
#include "base/utf8.h"

#include <stdbool.h>
#include <stddef.h>

/* ---- process_result.c -------------------------------------------------------------------------- */
void proc_result_text(const struct proc *p, struct err *e); /* leaves *e alone when it ended well */

/* ---- spawn.c: from clone3 to execve ----------------------------------------------------------- */
enum { SPAWN_FDS_MAX = 32, SPAWN_FD_NUMBER_MAX = 255 }; /* a handful is used: far below any rlimit */

enum spawn_step { SPAWN_GROUP = 1, SPAWN_CGROUP, SPAWN_CWD, SPAWN_FDS, SPAWN_RIGHTS, SPAWN_EXEC };

struct spawn_report { /* what a child that could not exec says on its report pipe */
    int step;         /* enum spawn_step */
    int sys;          /* errno */
};

/* landlock.c: both return an errno; *ret -1: this kernel has none. */
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
    uid_t uid;     /* 0: as we */
    gid_t gid;
    bool new_session, no_rights;
};

/* *ret_pidfd is there before the child runs, for another thread to see; -1 when there is none. */
enum err_code spawn_child(const struct spawn_plan *plan, pid_t *ret_pid, int *ret_pidfd,
                          struct err *e) MUST_CHECK;

/* ---- spawn_queue.c: the same on a thread of its own --------------------------------------------- */
struct spawn_job;
/*
 * Copies the plan with what it points to; takes std and report_fd over when it succeeds.  What the report
 * pipe gives: one of zeros when it is over, one way or the other, and spawn_end() may be called; that of a
 * child that could not exec, before or (where its maker does not wait for the exec) after.
 */
enum err_code spawn_begin(struct spawn_job **ret, const struct spawn_plan *plan, struct err *e) MUST_CHECK;
bool spawn_is_over(struct spawn_job *j);
/* What became of it; frees it.  Only when it is over. */
enum err_code spawn_end(struct spawn_job *j, pid_t *ret_pid, int *ret_pidfd, struct err *e) MUST_CHECK;
bool spawn_cancel(struct spawn_job *j); /* true: it had not begun and is gone; else it is soon over */
/* It takes too long: what comes of it is killed.  False: it is over by now. */
bool spawn_abandon(struct spawn_job *j);
size_t spawn_abandoned(void); /* how many such are still starting */

/* For children of ours after fork: default dispositions, nothing blocked.  Async-signal-safe. */
void child_reset_signals(void);
/* Write "0" to <cgroup_fd>/cgroup.procs and to the file cgroup_procs, where given; 0 or an errno. */
int child_join_cgroup(int cgroup_fd, const char *cgroup_procs);

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#endif

/* ---- call.c, call_thread.c ---------------------------------------------------------------------- */
void call_run(proc_call_fn fn, const void *arg, struct buf *out, struct err *e); /* the function itself */
void call_end(struct proc_call *c, const struct err *e);                         /* NULL: it went well */
/* Makes c->thread: free() it when its handle is closed. */
enum err_code call_thread_start(struct proc_call *c, const struct proc_call_spec *spec,
                                struct err *e) MUST_CHECK;

/* ---- work.c ------------------------------------------------------------------------------------ */
/* Around a fork() whose child goes on without exec; see there.  Does nothing without a sanitizer. */
bool work_pause(void); /* what work_go_on() must be told */
void work_go_on(bool paused);

/* ---- log_journal.c ----------------------------------------------------------------------------- */
/* The datagram: its size; a field that does not fit is left out. */
size_t log_journal_format(enum log_level level, const char *text, const struct log_field *fields, size_t n,
                          const struct log_context *context, char *out, size_t size);
bool log_journal_send(const char *datagram, size_t n); /* false: the journal does not take it */

/* ---- log_recent.c ------------------------------------------------------------------------------ */
void log_recent_add(enum log_level level, int64_t at_ns, const char *text);

/* ---- reaper.c: children that do not even die from SIGKILL ------------------------------------- */
/* Takes the pidfd; the child is reaped whenever it dies.  Neither the operation nor uv_run() waits. */
void reaper_adopt(uv_loop_t *loop, pid_t pid, int pidfd, const char *name, const char *subject);

/*
 * Reaps an ended child of many threads a moment later; the descriptor is copied.  The last thread wakes us
 * while it still takes its files in /proc down; who reaps at once takes down the same and spins until that
 * thread, which we may have pushed off its processor, is through: two milliseconds of a busy machine.
 */
void reaper_later(uv_loop_t *loop, int pidfd);

/* How long a killed child may take to die before it is left behind. */
#define KILL_GRACE_MS 2000
#endif
