/* SPDX-License-Identifier: Apache-2.0 */
#include "base/process/internal.h"

#include "base/files/fs.h"
#include "base/log.h"
#include "base/scope.h"
#include "base/work.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum call_step {
    CALL_BEGIN = 0, /* also while a thread runs */
    CALL_RUN,
    CALL_KILL, /* killed; left behind if it does not die */
    CALL_OVER,
};

/* ---- in the child ---- */

static void call_write_all(int fd, const void *data, size_t n)
{
    const char *p = data;

    while (n > 0) {
        ssize_t done = write(fd, p, n);

        if (done < 0 && errno != EINTR)
            _exit(126);
        if (done > 0) {
            p += done;
            n -= (size_t)done;
        }
    }
}

/* Leaves 0 to 2 and the wire, which becomes descriptor 3. */
static void child_close_fds(int wire)
{
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

    if (null >= 0)
        dup2(null, STDIN_FILENO);
    if (wire != 3)
        dup3(wire, 3, O_CLOEXEC);
    if (close_range(4, ~0U, 0) != 0)
        _exit(126);
}

pid_t proc_call_fork(void)
{
    return (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
}

pid_t proc_call_fork_piped(struct proc_pipes *ret, struct err *e)
{
    int up[2], down[2];
    pid_t pid;

    if (pipe2(up, O_CLOEXEC) != 0) {
        err_sys(e, errno, "create a pipe");
        return -1;
    }
    fd_auto up_read = up[0], up_write = up[1];
    if (pipe2(down, O_CLOEXEC) != 0) {
        err_sys(e, errno, "create a pipe");
        return -1;
    }
    fd_auto down_read = down[0], down_write = down[1];
    pid = proc_call_fork();
    if (pid < 0)
        err_sys(e, errno, "fork");
    else if (pid == 0)
        *ret = (struct proc_pipes){ .from = take_fd(&down_read), .to = take_fd(&up_write) };
    else
        *ret = (struct proc_pipes){ .from = take_fd(&up_read), .to = take_fd(&down_write) };
    return pid;
}

void call_run(proc_call_fn fn, const void *arg, struct buf *out, struct err *e)
{
    if (fn(arg, out, e) != ERR_OK) {
        if (e->code == ERR_OK)
            err_set(e, ERR_INTERNAL, "failed without an error message");
        return;
    }
    *e = (struct err){ 0 };
    if (buf_check(out, e) != ERR_OK)
        err_wrap(e, "its output");
}

__attribute__((noreturn)) static void child_run(const struct proc_call_spec *spec, pid_t parent, int wire)
{
    struct buf out = BUF_INIT(spec->out_max);
    struct err e = { 0 };
    int sys;

    child_reset_signals();
    setpgid(0, 0);
    if (spec->moves_late) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(126);
    }
    sys = spec->moves_late ? 0 : child_join_cgroup(spec->cgroup_fd, spec->cgroup_procs);
    child_close_fds(wire);
    wire = 3;
    if (sys != 0) {
        err_sys(&e, sys, "join the cgroup");
        if (e.code == ERR_NOT_FOUND)
            e.code = ERR_PRECONDITION;
    } else {
        call_run(spec->fn, spec->arg, &out, &e);
    }
    call_write_all(wire, &e, sizeof(e));
    call_write_all(wire, out.p, out.n);
    _exit(0); /* no atexit handlers or leak checkers: they belong to the parent */
}

/* ---- in the parent ---- */

static void call_close_poll(struct proc_call *c, uv_poll_t *poll, int *fd)
{
    if (*fd < 0)
        return;
    op_close_handle(&c->op, (uv_handle_t *)poll);
    close(take_fd(fd));
}

static void call_on_op_done(struct op *op, const struct err *result) /* as in process.c: the output is lent */
{
    struct proc_call *c = container_of(op, struct proc_call, op);
    struct call_job *job = take_ptr(&c->job);
    char *out = c->out.cap > 0 ? c->out.p : NULL;

    c->out.cap = 0;
    if (job != NULL)
        free(job->thread);
    c->user_done(op, result); /* may start another call with *c */
    free(job);
    free(out);
}

void call_end(struct proc_call *c, const struct err *e)
{
    c->job->step = CALL_OVER;
    call_close_poll(c, &c->job->wire_poll, &c->job->wire_fd);
    call_close_poll(c, &c->job->exit_poll, &c->job->pidfd);
    buf_done(&c->job->wire);
    op_close_handle(&c->op, (uv_handle_t *)&c->job->timer);
    op_finish(&c->op, e);
}

static bool read_wire(struct proc_call *c)
{
    char chunk[4096];
    ssize_t n = read(c->job->wire_fd, chunk, sizeof(chunk));

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return errno == EINTR;
    if (n <= 0) {
        call_close_poll(c, &c->job->wire_poll, &c->job->wire_fd);
        return false;
    }
    buf_add(&c->job->wire, chunk, (size_t)n);
    return true;
}

static void on_wire(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    read_wire(poll->data);
}

/* The call takes long: from now on its cgroup identifies it, also for the next run of the agent. */
static void move_late(const struct proc_call *c)
{
    struct err e = { 0 };
    char text[16];

    snprintf(text, sizeof(text), "%d", (int)c->job->pid);
    if ((c->job->late_fd >= 0 && fs_write_control(c->job->late_fd, "cgroup.procs", text, &e) != ERR_OK) ||
        (c->job->late_procs != NULL && fs_write_control(AT_FDCWD, c->job->late_procs, text, &e) != ERR_OK))
        log_debug("cannot move a child to its cgroup", F_STR("name", c->job->name), F_ERR(&e));
}

static void on_move_timer(uv_timer_t *timer)
{
    move_late(timer->data);
}

static void call_on_kill_timer(uv_timer_t *timer)
{
    struct proc_call *c = timer->data;
    struct err e = { 0 };

    err_set(&e, ERR_DEADLINE, "%s: killed but does not die", c->job->name);
    op_close_handle(&c->op, (uv_handle_t *)&c->job->exit_poll);
    if (c->job->moves_late) /* it was killed before it took long */
        move_late(c);
    reaper_adopt(c->op.loop, c->job->pid, take_fd(&c->job->pidfd), c->job->name, c->op.subject);
    call_end(c, &e);
}

static void kill_group(struct proc_call *c)
{
    if (kill(-c->job->pid, SIGKILL) != 0) /* no group yet: it has just started */
        syscall(SYS_pidfd_send_signal, c->job->pidfd, SIGKILL, NULL, 0);
}

static void abort_call(struct op *op)
{
    struct proc_call *c = container_of(op, struct proc_call, op);

    if (c->job == NULL || c->job->step != CALL_RUN)
        return;
    c->job->step = CALL_KILL;
    kill_group(c);
    uv_timer_start(&c->job->timer, call_on_kill_timer, KILL_GRACE_MS, 0);
}

/* The wire's content comes from the child: accept it only if complete and well formed. */
static void call_result_of(struct proc_call *c, const siginfo_t *info, struct err *e)
{
    struct err told;

    if (c->job->wire.failed) {
        err_set(e, ERR_EXHAUSTED, "%s: no memory for its result", c->job->name);
        return;
    }
    if (info->si_code != CLD_EXITED || info->si_status != 0 || c->job->wire.n < sizeof(told)) {
        const char *sig = info->si_code == CLD_EXITED ? NULL : sigabbrev_np(info->si_status);

        if (sig != NULL)
            err_set(e, ERR_INTERNAL, "%s: killed by SIG%s", c->job->name, sig);
        else
            err_set(e, ERR_INTERNAL, "%s: ended without a result, status %d", c->job->name, info->si_status);
        return;
    }
    memcpy(&told, c->job->wire.p, sizeof(told));
    told.text[sizeof(told.text) - 1] = '\0';
    if ((unsigned)told.code > ERR_UNAUTHENTICATED)
        told.code = ERR_INTERNAL;
    buf_remove_front(&c->job->wire, sizeof(told));
    c->out = c->job->wire;
    c->out.max -= sizeof(told);
    buf_init(&c->job->wire, 0);
    if (told.code != ERR_OK) {
        *e = told;
        err_wrap(e, "%s", c->job->name);
    }
}

static void call_on_exit_event(uv_poll_t *poll, int status, int events)
{
    struct proc_call *c = poll->data;
    siginfo_t info = { 0 };
    struct err e = { 0 };

    (void)status;
    (void)events;
    if (c->job->step == CALL_KILL)
        kill_group(c); /* kills the rest of the group while the zombie still holds its number */
    if (waitid(P_PIDFD, (id_t)c->job->pidfd, &info, WEXITED | WNOHANG) == 0 && info.si_pid == 0)
        return;
    /* The child wrote everything before it ended; ignore a grandchild that holds the pipe. */
    while (c->job->wire_fd >= 0 && !c->job->wire.failed && read_wire(c))
        ;
    call_result_of(c, &info, &e);
    call_end(c, e.code == ERR_OK ? NULL : &e);
}

static enum err_code call_start(struct proc_call *c, const struct proc_call_spec *spec, struct err *e)
{
    int fds[2], status, sys;
    sigset_t all, before;
    fd_auto wire = -1;
    pid_t parent = getpid();
    bool paused;

    if (pipe2(fds, O_CLOEXEC) != 0)
        return err_sys(e, errno, "create a pipe");
    wire = fds[1];
    status = uv_poll_init(c->op.loop, &c->job->wire_poll, fds[0]);
    if (status != 0) {
        close(fds[0]);
        return err_sys(e, -status, "watch a pipe");
    }
    c->job->wire_poll.data = c;
    c->job->wire_fd = fds[0];
    uv_poll_start(&c->job->wire_poll, UV_READABLE, on_wire);

    /* glibc's fork(), not clone3: it keeps malloc usable in the child of a multi-threaded process. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    paused = work_pause();
    c->job->pid = fork();
    if (c->job->pid == 0)
        child_run(spec, parent, wire);
    sys = errno;
    work_go_on(paused);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (c->job->pid < 0)
        return err_sys(e, sys, "fork");

    c->job->pidfd = pidfd_open(c->job->pid, 0);
    sys = c->job->pidfd < 0 ? errno : -uv_poll_init(c->op.loop, &c->job->exit_poll, c->job->pidfd);
    if (sys != 0) {
        kill(c->job->pid, SIGKILL);
        waitpid(c->job->pid, NULL, 0);
        if (c->job->pidfd >= 0)
            close(take_fd(&c->job->pidfd));
        return err_sys(e, sys, "watch the child");
    }
    c->job->step = CALL_RUN;
    c->job->exit_poll.data = c;
    uv_poll_start(&c->job->exit_poll, UV_READABLE, call_on_exit_event);
    if (spec->moves_late)
        uv_timer_start(&c->job->timer, on_move_timer, PROC_CALL_MOVE_MS, 0);
    return ERR_OK;
}

static struct call_job *call_job_new(const struct proc_call_spec *spec)
{
    struct call_job *job = malloc(sizeof(*job));

    if (job == NULL)
        return NULL;
    *job = (struct call_job){
        .pid = -1,
        .pidfd = -1,
        .wire_fd = -1,
        .moves_late = spec->moves_late,
        .late_fd = spec->cgroup_fd,
        .late_procs = spec->cgroup_procs,
        .wire = BUF_INIT(spec->out_max + sizeof(struct err)),
    };
    snprintf(job->name, sizeof(job->name), "%s", spec->name);
    return job;
}

void proc_call_start(struct proc_call *c, const struct proc_call_spec *spec, uv_loop_t *loop, op_done_fn done,
                     void *owner)
{
    struct err e = { 0 };

    *c = (struct proc_call){ .user_done = done, .out = BUF_INIT(spec->out_max), .job = call_job_new(spec) };
    proc_defaults_capture();
    op_init(&c->op, loop, c->job != NULL ? c->job->name : "call", spec->deadline_ms, abort_call,
            call_on_op_done, owner);
    if (spec->subject != NULL)
        op_set_subject(&c->op, spec->subject);
    if (c->job == NULL) {
        err_nomem(&e);
        op_finish(&c->op, &e);
        return;
    }
    uv_timer_init(loop, &c->job->timer);
    c->job->timer.data = c;

    if ((spec->in_thread ? call_thread_start(c, spec, &e) : call_start(c, spec, &e)) != ERR_OK) {
        err_wrap(&e, "%s", c->job->name);
        call_end(c, &e);
    }
}
