/* SPDX-License-Identifier: Apache-2.0 */
#include "base/process/internal.h"

#include "base/log.h"
#include "base/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

/* If a grandchild keeps a pipe open, the result waits this long after the exit. */
#define DRAIN_MS 200

enum { CHUNK = 16 * 1024, ERR_TAIL = 16 * 1024 };

enum proc_step {
    PROC_SPAWN = 0, /* nothing runs yet, as far as we know */
    PROC_RUN,
    PROC_TERM,  /* SIGTERM sent; SIGKILL follows */
    PROC_KILL,  /* killed; left behind if it does not die */
    PROC_DRAIN, /* exited; another process still holds its pipes */
    PROC_OVER,
};

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(take_fd(fd));
}

/* ---- the end ---- */

/* The output belongs to the caller only during done, which may take it (buf_detach), leave it, reuse the
 * struct or free it. So the buffers are lent (cap 0: detaching copies), and the memory is freed here without
 * accessing *p again. */
static void process_on_op_done(struct op *op, const struct err *result)
{
    struct proc *p = container_of(op, struct proc, op);
    char *out = p->out.cap > 0 ? p->out.p : NULL, *err_out = p->err_out.cap > 0 ? p->err_out.p : NULL;

    p->out.cap = 0;
    p->err_out.cap = 0;
    free(p->prog);
    p->prog = NULL;
    p->user_done(op, result);
    free(out);
    free(err_out);
}

static void process_close_poll(struct proc *p, uv_poll_t *poll, int *fd)
{
    if (*fd < 0)
        return;
    op_close_handle(&p->op, (uv_handle_t *)poll);
    close_fd(fd); /* libuv has forgotten it */
}

static void process_end(struct proc *p, const struct err *e)
{
    p->step = PROC_OVER;
    process_close_poll(p, &p->out_poll, &p->out_fd);
    process_close_poll(p, &p->err_poll, &p->err_fd);
    process_close_poll(p, &p->exit_poll, &p->pidfd);
    process_close_poll(p, &p->report_poll, &p->report_fd);
    op_close_handle(&p->op, (uv_handle_t *)&p->kill_timer);
    op_finish(&p->op, e);
}

static void read_reports(struct proc *p)
{
    struct spawn_report report;

    while (read(p->report_fd, &report, sizeof(report)) == sizeof(report)) {
        if (report.step == 0)
            continue; /* closed by its owner */
        p->report_step = report.step;
        p->report_sys = report.sys;
    }
}

static void end_with_status(struct proc *p)
{
    struct err e = { 0 };

    read_reports(p);
    proc_result_text(p, &e);
    process_end(p, e.code == ERR_OK ? NULL : &e);
}

/* ---- killing ---- */

/* Until the leader is reaped, its pid cannot become another group's. If there is no group yet, the child has
 * just started. */
static void signal_group(struct proc *p, int sig)
{
    if (kill(-p->pid, sig) != 0)
        syscall(SYS_pidfd_send_signal, p->pidfd, sig, NULL, 0);
}

static void process_on_kill_timer(uv_timer_t *timer);
static void started(struct proc *p);

static void terminate(struct proc *p)
{
    p->step = PROC_TERM;
    signal_group(p, SIGTERM);
    uv_timer_start(&p->kill_timer, process_on_kill_timer, KILL_GRACE_MS, 0);
}

static void abort_proc(struct op *op)
{
    struct proc *p = container_of(op, struct proc, op);

    switch ((enum proc_step)p->step) {
    case PROC_SPAWN:
        p->aborted = true;
        if (p->job == NULL || spawn_cancel(p->job))
            process_end(p, NULL);
        else
            uv_timer_start(&p->kill_timer, process_on_kill_timer, KILL_GRACE_MS, 0);
        return;
    case PROC_RUN:
        terminate(p);
        return;
    case PROC_DRAIN: /* the exit came first */
        op_set_why(op, &(struct err){ 0 });
        end_with_status(p);
        return;
    case PROC_TERM:
    case PROC_KILL:
    case PROC_OVER:
        return;
    }
}

/* ---- output ---- */

/* Reads at most a chunk. False: nothing more for now. */
static bool read_out(struct proc *p)
{
    size_t left = p->out.max - p->out.n, want = left < CHUNK ? left : CHUNK;
    char beyond = 0, *room = want == 0 ? &beyond : buf_room(&p->out, want);
    ssize_t n;

    if (room == NULL) { /* no memory: let the child fail on its closed output */
        process_close_poll(p, &p->out_poll, &p->out_fd);
        return false;
    }
    n = read(p->out_fd, room, want == 0 ? 1 : want);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return errno == EINTR;
    if (n > 0 && want > 0) {
        p->out.n += (size_t)n;
        p->out.p[p->out.n] = '\0';
        return true;
    }
    process_close_poll(p, &p->out_poll, &p->out_fd);
    if (n > 0) {
        p->overflow = true;
        if (p->step == PROC_RUN)
            terminate(p);
    }
    return false;
}

static bool read_err(struct proc *p)
{
    char chunk[ERR_TAIL];
    ssize_t n = read(p->err_fd, chunk, sizeof(chunk));

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return errno == EINTR;
    if (n <= 0) {
        process_close_poll(p, &p->err_poll, &p->err_fd);
        return false;
    }
    buf_add(&p->err_out, chunk, (size_t)n);
    if (p->err_out.n > ERR_TAIL)
        buf_remove_front(&p->err_out, p->err_out.n - ERR_TAIL);
    return true;
}

/* All output of the dead child is in the pipes; a grandchild that keeps writing is not followed forever. */
static void process_drain(struct proc *p)
{
    int i;

    for (i = 0; i < 64 && p->err_fd >= 0 && read_err(p); i++)
        ;
    while (p->out_fd >= 0 && read_out(p)) /* ends at the limit */
        ;
}

static void maybe_drained(struct proc *p)
{
    if (p->step == PROC_DRAIN && p->out_fd < 0 && p->err_fd < 0)
        end_with_status(p);
}

static void on_out(uv_poll_t *poll, int status, int events)
{
    struct proc *p = poll->data;

    (void)status; /* read() reports errors as well */
    (void)events;
    read_out(p);
    maybe_drained(p);
}

static void on_err(uv_poll_t *poll, int status, int events)
{
    struct proc *p = poll->data;

    (void)status;
    (void)events;
    read_err(p);
    maybe_drained(p);
}

/* ---- exit ---- */

static void process_on_kill_timer(uv_timer_t *timer)
{
    struct proc *p = timer->data;
    struct err e = { 0 };

    switch ((enum proc_step)p->step) {
    case PROC_TERM:
        p->step = PROC_KILL;
        signal_group(p, SIGKILL);
        uv_timer_start(&p->kill_timer, process_on_kill_timer, KILL_GRACE_MS, 0);
        return;
    case PROC_KILL:
        err_set(&e, ERR_DEADLINE, "%s: killed but does not die", p->name);
        op_close_handle(&p->op, (uv_handle_t *)&p->exit_poll);
        reaper_adopt(p->op.loop, p->pid, take_fd(&p->pidfd), p->name, p->op.subject);
        process_end(p, &e);
        return;
    case PROC_DRAIN:
        process_drain(p); /* the loop may have been busy all that time */
        end_with_status(p);
        return;
    case PROC_SPAWN: /* its program is on a file system that hangs */
        if (!spawn_abandon(p->job)) {
            started(p);
            return;
        }
        p->job = NULL;
        log_warn("child process does not start; abandoning it", F_STR("name", p->name),
                 F_STR("subject", p->op.subject));
        err_set(&e, ERR_DEADLINE, "%s: %s does not start", p->name, p->prog);
        process_end(p, &e);
        return;
    case PROC_RUN:
    case PROC_OVER:
        return;
    }
}

static void process_on_exit_event(uv_poll_t *poll, int status, int events)
{
    struct proc *p = poll->data;
    bool killed = p->step == PROC_TERM || p->step == PROC_KILL;
    siginfo_t info = { 0 };

    (void)status;
    (void)events;
    if (killed)
        signal_group(p, SIGKILL); /* kills the rest of the group while the zombie still holds its number */
    if (waitid(P_PIDFD, (id_t)p->pidfd, &info, WEXITED | WNOHANG | (killed ? 0 : WNOWAIT)) == 0) {
        if (info.si_pid == 0)
            return;
        if (!killed)
            reaper_later(p->op.loop, p->pidfd);
        p->exited = true;
        p->status = info.si_code == CLD_EXITED ? W_EXITCODE(info.si_status, 0)
                                               : info.si_status | (info.si_code == CLD_DUMPED ? 0x80 : 0);
    }
    process_close_poll(p, &p->exit_poll, &p->pidfd);
    p->step = PROC_DRAIN;
    process_drain(p);
    if (killed || (p->out_fd < 0 && p->err_fd < 0))
        end_with_status(p);
    else
        uv_timer_start(&p->kill_timer, process_on_kill_timer, DRAIN_MS, 0);
}

/* ---- the start ---- */

static enum err_code process_check_spec(const struct proc_spec *spec, struct err *e)
{
    size_t i, k;

    if (spec->argv == NULL || spec->argv[0] == NULL || spec->argv[0][0] != '/')
        return err_set(e, ERR_INVALID, "program is not an absolute path");
    if (spec->n_fds > SPAWN_FDS_MAX)
        return err_set(e, ERR_INVALID, "more than %d descriptors", SPAWN_FDS_MAX);
    for (i = 0; i < spec->n_fds; i++) {
        if (spec->fds[i].child_fd < 3 || spec->fds[i].child_fd > SPAWN_FD_NUMBER_MAX)
            return err_set(e, ERR_INVALID, "descriptor number %d is not between 3 and %d",
                           spec->fds[i].child_fd, SPAWN_FD_NUMBER_MAX);
        for (k = 0; k < i; k++)
            if (spec->fds[k].child_fd == spec->fds[i].child_fd)
                return err_set(e, ERR_INVALID, "descriptor number %d is given twice", spec->fds[i].child_fd);
    }
    return ERR_OK;
}

/* Passes standard input as a memory file: no pipe to feed, and no problem if the child never reads it. */
static int stdin_file(const struct proc_spec *spec, struct err *e)
{
    fd_auto fd = -1;
    size_t done = 0;

    if (spec->stdin_data == NULL) {
        fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            err_sys(e, errno, "open /dev/null");
        return take_fd(&fd);
    }
    fd = memfd_create("stdin", MFD_CLOEXEC | MFD_NOEXEC_SEAL); /* required by vm.memfd_noexec=2 */
    if (fd < 0 && errno == EINVAL)                             /* before Linux 6.3 */
        fd = memfd_create("stdin", MFD_CLOEXEC);
    if (fd < 0) {
        err_sys(e, errno, "create a file in memory");
        return -1;
    }
    while (done < spec->stdin_size) {
        ssize_t n = write(fd, (const char *)spec->stdin_data + done, spec->stdin_size - done);

        if (n < 0 && errno != EINTR) {
            err_sys(e, errno, "write its standard input");
            return -1;
        }
        done += n > 0 ? (size_t)n : 0;
    }
    if (lseek(fd, 0, SEEK_SET) < 0) {
        err_sys(e, errno, "rewind its standard input");
        return -1;
    }
    return take_fd(&fd);
}

/* A pipe whose read end the loop watches; the child gets the write end, which stays blocking. */
static enum err_code watched_pipe(struct proc *p, uv_poll_t *poll, int *ret_read, int *ret_write, int events,
                                  uv_poll_cb cb, struct err *e)
{
    int fds[2], status;

    if (pipe2(fds, O_CLOEXEC) != 0)
        return err_sys(e, errno, "create a pipe");
    status = uv_poll_init(p->op.loop, poll, fds[0]); /* sets O_NONBLOCK on this end */
    if (status == 0) {
        poll->data = p;
        *ret_read = fds[0];
        *ret_write = fds[1];
        status = uv_poll_start(poll, events, cb);
        if (status == 0)
            return ERR_OK;
    } else {
        close(fds[0]);
        close(fds[1]);
    }
    return err_sys(e, -status, "watch a pipe");
}

static enum err_code watch_exit(struct proc *p, struct err *e)
{
    int status = uv_poll_init(p->op.loop, &p->exit_poll, p->pidfd);

    if (status != 0) { /* no memory: take it back */
        signal_group(p, SIGKILL);
        reaper_adopt(p->op.loop, p->pid, take_fd(&p->pidfd), p->name, p->op.subject);
        err_sys(e, -status, "watch the child");
        e->sys = 0; /* an errno means that the program never ran */
        return e->code;
    }
    p->exit_poll.data = p;
    uv_poll_start(&p->exit_poll, UV_READABLE, process_on_exit_event);
    return ERR_OK;
}

/* The program runs, or the child reported why it does not, or there is no child. */
static void started(struct proc *p)
{
    struct err e = { 0 };

    uv_poll_stop(&p->report_poll); /* a child may still report why it cannot exec: read when it ends */
    uv_timer_stop(&p->kill_timer);
    if (spawn_end(take_ptr(&p->job), &p->pid, &p->pidfd, &e) != ERR_OK || watch_exit(p, &e) != ERR_OK) {
        err_wrap(&e, "%s", p->name);
        process_end(p, &e);
        return;
    }
    p->step = PROC_RUN;
    if (p->aborted || p->overflow)
        terminate(p);
}

static void on_report(uv_poll_t *poll, int status, int events)
{
    struct proc *p = poll->data;

    (void)status;
    (void)events;
    read_reports(p);
    if (spawn_is_over(p->job))
        started(p);
}

static enum err_code process_start(struct proc *p, const struct proc_spec *spec, struct err *e)
{
    static const char *const default_env[] = {
        "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", NULL
    };
    fd_auto in = -1;
    fd_auto out = -1;
    fd_auto err = -1;
    fd_auto report = -1;
    struct spawn_plan plan;

    if (process_check_spec(spec, e) != ERR_OK)
        return e->code;
    p->prog = strdup(spec->argv[0]);
    if (p->prog == NULL)
        return err_nomem(e);
    in = stdin_file(spec, e);
    if (in < 0)
        return e->code;
    if (spec->stdout_max == 0) {
        out = open("/dev/null", O_WRONLY | O_CLOEXEC);
        if (out < 0)
            return err_sys(e, errno, "open /dev/null");
    } else if (watched_pipe(p, &p->out_poll, &p->out_fd, &out, UV_READABLE, on_out, e) != ERR_OK) {
        return e->code;
    }
    if (watched_pipe(p, &p->err_poll, &p->err_fd, &err, UV_READABLE, on_err, e) != ERR_OK)
        return e->code;
    if (watched_pipe(p, &p->report_poll, &p->report_fd, &report, UV_READABLE, on_report, e) != ERR_OK)
        return e->code;

    plan = (struct spawn_plan){
        .argv = spec->argv,
        .env = spec->env == NULL ? default_env : spec->env,
        .cwd = spec->cwd == NULL ? "/" : spec->cwd,
        .std = { in, out, err },
        .fds = spec->fds,
        .n_fds = spec->n_fds,
        .cgroup_fd = spec->cgroup_fd,
        .cgroup_procs = spec->cgroup_procs,
        .join_procs = spec->join_procs,
        .report_fd = report,
        .new_session = spec->new_session,
        .read_paths = spec->read_paths,
        .write_paths = spec->write_paths,
        .uid = spec->uid,
        .gid = spec->gid,
        .no_rights = spec->no_rights,
    };
    if (spawn_begin(&p->job, &plan, e) != ERR_OK)
        return e->code;
    take_fd(&in), take_fd(&out), take_fd(&err), take_fd(&report);
    return ERR_OK;
}

void proc_start(struct proc *p, const struct proc_spec *spec, uv_loop_t *loop, op_done_fn done, void *owner)
{
    struct err e = { 0 };

    *p = (struct proc){
        .user_done = done,
        .pid = -1,
        .pidfd = -1,
        .out_fd = -1,
        .err_fd = -1,
        .report_fd = -1,
        .out = BUF_INIT(spec->stdout_max),
        .err_out = BUF_INIT(2 * ERR_TAIL),
    };
    snprintf(p->name, sizeof(p->name), "%s", spec->name);
    proc_defaults_capture();
    op_init(&p->op, loop, p->name, spec->deadline_ms, abort_proc, process_on_op_done, owner);
    if (spec->subject != NULL)
        op_set_subject(&p->op, spec->subject);
    uv_timer_init(loop, &p->kill_timer);
    p->kill_timer.data = p;

    if (process_start(p, spec, &e) != ERR_OK) {
        err_wrap(&e, "%s", p->name);
        process_end(p, &e);
    }
}

void proc_cancel(struct proc *p)
{
    op_cancel(&p->op);
}
