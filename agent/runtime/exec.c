/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An additional process in a container, through `coracle-exec`.
 *
 *     EXEC_RUN     coracle-exec is running; its reports arrive on a socket
 *     EXEC_DRAIN   coracle-exec has ended; captured output may still be in the pipe, which a grandchild holds
 *     EXEC_OVER
 *
 * When our side of the socket is closed, coracle-exec kills the process; the kernel closes the socket of a
 * killed agent.
 */
#include "agent/runtime/exec.h"
#include "agent/runtime/container_internal.h"
#include "agent/runtime/exec_report.h"

#include "base/files/fs.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum exec_state { EXEC_RUN, EXEC_DRAIN, EXEC_OVER };

enum {
    DRAIN_MS = 200, /* as in base/process/process.c: for a grandchild that holds the pipe */
    CONFIG_MAX = 4 * 1024 * 1024,
    ARGS_MAX = RT_GLOBAL_ARGS + 16,
};

struct rt_exec_run {
    struct rt *rt;
    const struct rt_handler *handler; /* the one that created the container */
    op_done_fn done;
    char id[RT_ID_SIZE];
    struct rt_path folder; /* "": not created yet */
    struct proc proc;
    int control, output; /* our ends; -1: closed */
    uv_poll_t control_poll, output_poll;
    uv_timer_t timer;
    bool has_timer;
    void (*on_terminal)(int master_fd, void *owner);
    void (*on_started)(void *owner);
    bool started, ended; /* the process, as reported */
    struct err e;        /* the first failure */
};

static void rt_exec_fail(struct rt_exec_run *run, const struct err *e)
{
    if (run->e.code == ERR_OK)
        run->e = *e;
}

/* ---- the end ---- */

static void rt_exec_close_poll(struct rt_exec *x, uv_poll_t *poll, int *fd)
{
    if (*fd < 0)
        return;
    op_close_handle(&x->op, (uv_handle_t *)poll);
    close(take_fd(fd));
}

static void rt_exec_finish(struct rt_exec *x)
{
    struct rt_exec_run *run = x->run;
    struct err left = { 0 };

    x->op.state = EXEC_OVER;
    rt_exec_close_poll(x, &run->control_poll, &run->control);
    rt_exec_close_poll(x, &run->output_poll, &run->output);
    if (run->has_timer)
        op_close_handle(&x->op, (uv_handle_t *)&run->timer);
    if (run->folder.s[0] != '\0')
        if (rt_exec_clear(run->rt, run->id, run->folder.s, &left) != ERR_OK)
            log_warn(
                "cannot remove leftovers of a process in a container; the next start of the agent will retry",
                F_STR("containerID", run->id), F_ERR(&left));
    if (!run->ended && run->e.code != ERR_OK)
        buf_done(&x->output); /* the runtime's message, which is in the result */
    op_finish(&x->op, run->e.code == ERR_OK ? NULL : &run->e);
}

static void rt_exec_on_over(struct op *op, const struct err *result)
{
    struct rt_exec *x = container_of(op, struct rt_exec, op);
    struct rt_exec_run *run = take_ptr(&x->run);
    op_done_fn done = run->done;

    free(run);
    done(op, result);
}

/* ---- captured output ---- */

/* Reads the available bytes. False: nothing more now. */
static bool read_output(struct rt_exec *x)
{
    struct rt_exec_run *run = x->run;
    size_t left = x->output.max - x->output.n;
    char chunk[16 * 1024];
    ssize_t n = read(run->output, chunk, sizeof(chunk));

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return errno == EINTR;
    if (n <= 0) {
        rt_exec_close_poll(x, &run->output_poll, &run->output);
        return false;
    }
    buf_add(&x->output, chunk, (size_t)n < left ? (size_t)n : left);
    return true;
}

static void on_output(uv_poll_t *poll, int status, int events)
{
    struct rt_exec *x = poll->data;

    (void)status; /* read() reports errors as well */
    (void)events;
    read_output(x);
    if (x->op.state == EXEC_DRAIN && x->run->output < 0)
        rt_exec_finish(x);
}

static void rt_exec_on_timer(uv_timer_t *timer)
{
    struct rt_exec *x = timer->data;

    /* Drain the pipe, because the loop may have been busy; at most a pipe's worth, because the grandchild may
     * continue writing. */
    for (int i = 0; i < 64 && x->run->output >= 0 && read_output(x); i++)
        ;
    rt_exec_finish(x);
}

static void rt_exec_drain(struct rt_exec *x)
{
    struct rt_exec_run *run = x->run;

    x->op.state = EXEC_DRAIN;
    for (int i = 0; i < 64 && run->output >= 0 && read_output(x); i++)
        ;
    if (run->output < 0) {
        rt_exec_finish(x);
        return;
    }
    uv_timer_init(run->rt->loop, &run->timer);
    run->timer.data = x;
    run->has_timer = true;
    uv_timer_start(&run->timer, rt_exec_on_timer, DRAIN_MS, 0);
}

/* ---- reports ---- */

static void take_failure(struct rt_exec *x, const struct exec_report *r)
{
    struct rt_exec_run *run = x->run;
    struct err e = { 0 }, unknown = { 0 };
    struct rt_state s;

    if (!rt_exec_failure(r->text, &x->exit_code, &e))
        err_set(&e, ERR_UNKNOWN, "the container runtime failed without a message");
    if (rt_state(run->rt, run->id, &s, &unknown) == ERR_OK && s.phase != RT_RUNNING && x->exit_code == 0) {
        err_wrap(&e, "container %.12s is not running", run->id);
        e.code = ERR_PRECONDITION;
    }
    rt_exec_fail(run, &e);
}

static void take_end(struct rt_exec *x, const struct exec_report *r)
{
    struct rt_exec_run *run = x->run;
    struct err e = { 0 };

    if (rt_exec_failure(r->text, &x->exit_code, &e)) {
        rt_exec_fail(run, &e);
        return;
    }
    run->ended = true;
    x->exit_code = WIFSIGNALED(r->value) ? 128 + WTERMSIG(r->value) : WEXITSTATUS(r->value);
}

static void take_report(struct rt_exec *x, const struct exec_report *r, int fd)
{
    struct rt_exec_run *run = x->run;
    struct err e = { 0 };

    switch (r->kind) {
    case EXEC_TERMINAL:
        if (fd >= 0 && run->on_terminal != NULL && x->op.why.code == ERR_OK) {
            run->on_terminal(fd, x->op.owner);
            return;
        }
        break;
    case EXEC_STARTED:
        run->started = true;
        if (run->on_started != NULL && x->op.why.code == ERR_OK)
            run->on_started(x->op.owner);
        break;
    case EXEC_ENDED:
        take_end(x, r);
        break;
    case EXEC_FAILED:
        take_failure(x, r);
        break;
    case EXEC_BROKEN:
        err_sys(&e, r->value > 0 ? r->value : EIO, "coracle-exec: %s", r->text);
        e.code = ERR_INTERNAL; /* the error does not concern the program */
        rt_exec_fail(run, &e);
        break;
    }
    if (fd >= 0)
        close(fd);
}

/* Reads one report; false: none now. */
static bool read_report(struct rt_exec *x)
{
    struct rt_exec_run *run = x->run;
    char control[CMSG_SPACE(sizeof(int))];
    struct exec_report r;
    struct iovec piece = { .iov_base = &r, .iov_len = sizeof(r) - 1 };
    struct msghdr m = {
        .msg_iov = &piece, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)
    };
    const struct cmsghdr *c;
    int fd = -1;
    ssize_t n = recvmsg(run->control, &m, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return errno == EINTR;
    c = n > 0 ? CMSG_FIRSTHDR(&m) : NULL;
    if (c != NULL && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
        c->cmsg_len == CMSG_LEN(sizeof(int)))
        memcpy(&fd, CMSG_DATA(c), sizeof(fd));
    if (n < (ssize_t)offsetof(struct exec_report, text)) {
        rt_exec_close_poll(x, &run->control_poll, &run->control);
        return false;
    }
    ((char *)&r)[n] = '\0';
    take_report(x, &r, fd);
    return run->control >= 0; /* a callback may have cancelled the operation */
}

static void on_control(uv_poll_t *poll, int status, int events)
{
    struct rt_exec *x = poll->data;

    (void)status;
    (void)events;
    if (x->run->control >= 0)
        read_report(x);
}

static void on_helper(struct op *op, const struct err *result)
{
    struct rt_exec *x = op->owner;
    struct rt_exec_run *run = x->run;
    struct err e = *result;

    while (run->control >= 0 && read_report(x))
        ;
    if (!run->ended && e.code != ERR_OK) {
        if (e.code == ERR_NOT_FOUND || e.code == ERR_PERMISSION || e.code == ERR_UNKNOWN)
            e.code = ERR_INTERNAL; /* a failure of coracle-exec, not of the process */
        rt_exec_fail(run, &e);
    } else if (!run->ended) {
        err_set(&e, ERR_INTERNAL, "coracle-exec ended without an answer");
        rt_exec_fail(run, &e);
    }
    rt_exec_drain(x);
}

static void rt_exec_on_abort(struct op *op)
{
    struct rt_exec *x = container_of(op, struct rt_exec, op);
    struct rt_exec_run *run = x->run;

    switch ((enum exec_state)op->state) {
    case EXEC_RUN:
        rt_exec_close_poll(x, &run->control_poll, &run->control);
        if (op_live(&run->proc.op))
            proc_cancel(&run->proc); /* sends SIGTERM, then SIGKILL */
        return;
    case EXEC_DRAIN:
        rt_exec_finish(x);
        return;
    case EXEC_OVER:
        return;
    }
}

/* ---- the start ---- */

static enum err_code rt_exec_make_folder(struct rt_exec_run *run, struct err *e)
{
    struct rt_path all = rt_container_file(run->rt, run->id, RT_EXEC_FOLDER);
    char name[64];

    if (mkdir(all.s, 0700) != 0 && errno != EEXIST)
        return err_sys(e, errno, "create %s", all.s);
    snprintf(name, sizeof(name), RT_EXEC_FOLDER "/%d-%u", (int)getpid(), run->rt->execs++);
    run->folder = rt_container_file(run->rt, run->id, name);
    if (mkdir(run->folder.s, 0700) != 0) {
        err_sys(e, errno, "create %s", run->folder.s);
        run->folder.s[0] = '\0';
    }
    return e->code;
}

/* A pair or pipe whose end fds[0] the loop watches. */
static enum err_code rt_exec_watch(struct rt_exec *x, uv_poll_t *poll, int fds[2], int *ret, int *ret_theirs,
                                   uv_poll_cb cb, struct err *e)
{
    int status = uv_poll_init(x->run->rt->loop, poll, fds[0]); /* makes it non-blocking */

    if (status != 0) {
        close(fds[0]);
        close(fds[1]);
        return err_sys(e, -status, "watch a pipe");
    }
    poll->data = x;
    *ret = fds[0];
    *ret_theirs = fds[1];
    uv_poll_start(poll, UV_READABLE, cb);
    return ERR_OK;
}

static enum err_code read_spec(const struct rt_exec_run *run, const struct rt_exec_spec *spec, char **ret,
                               char oom_score[RT_OOM_SCORE_SIZE], struct err *e)
{
    struct rt_path path = rt_container_file(run->rt, run->id, "config.json");
    char *config = NULL;
    size_t n = 0;

    if (fs_read_at(AT_FDCWD, path.s, CONFIG_MAX, &config, &n, e) != ERR_OK)
        return e->code;
    ERR_IGNORE(rt_exec_process_build(config, n, spec, ret, oom_score, e));
    explicit_bzero(config, n);
    free(config);
    return e->code;
}

static size_t add_args(const struct rt_exec_run *run, const struct rt_exec_spec *spec, char size[32],
                       const char *oom_score, struct rt_runtime_args *global, const char *v[ARGS_MAX])
{
    size_t n = 0;

    snprintf(size, 32, spec->tty ? "%hux%hu" : "-", spec->rows, spec->columns);
    rt_runtime_args(run->rt, run->handler, NULL, global);
    v[n++] = run->rt->exec_path;
    v[n++] = run->folder.s;
    v[n++] = size;
    v[n++] = oom_score;
    v[n++] = run->handler->program;
    for (size_t i = 0; i < global->n; i++)
        v[n++] = global->v[i];
    v[n++] = "--log=/proc/self/fd/8"; /* EXEC_FD_LOG */
    v[n++] = "--log-format=json";
    v[n++] = "exec";
    v[n++] = "--detach";
    v[n++] = "--process=/proc/self/fd/7"; /* EXEC_FD_SPEC */
    v[n++] = "--pid-file=" EXEC_FILE_PID;
    if (spec->tty)
        v[n++] = "--console-socket=" EXEC_FILE_CONSOLE;
    v[n++] = run->id;
    v[n] = NULL;
    return n;
}

/* In a user namespace, /dev/stdout cannot be opened while the pipe belongs to the host's root. The bundle's
 * group is the pod's root (bundle.c). */
static void give_to_users(const struct rt_exec_run *run, int fd)
{
    struct rt_path dir = rt_container_dir(run->rt, run->id);
    struct stat bundle, st;

    if (stat(dir.s, &bundle) == 0 && bundle.st_gid != 0 && fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode) &&
        fchown(fd, bundle.st_gid, bundle.st_gid) != 0)
        log_debug("cannot give a pipe to a pod's root", F_STR("containerID", run->id));
}

static enum err_code start_helper(struct rt_exec *x, const struct rt_exec_spec *spec, struct err *e)
{
    struct rt_exec_run *run = x->run;
    fd_auto control = -1;
    fd_auto output = -1;
    fd_auto nothing = -1; /* a read returns end of file */
    struct rt_runtime_args global, bundle;
    const char *argv[ARGS_MAX];
    char size[32], oom_score[RT_OOM_SCORE_SIZE], *process = NULL;
    int fds[2];

    /* Never /dev/null: runtimes chown these descriptors to the container's user, and that would affect the
     * host's device. Unwanted output is read and discarded. */
    if (pipe2(fds, O_CLOEXEC) != 0)
        return err_sys(e, errno, "create a pipe");
    nothing = fds[0];
    close(fds[1]);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0)
        return err_sys(e, errno, "create a socket pair");
    if (rt_exec_watch(x, &run->control_poll, fds, &run->control, &control, on_control, e) != ERR_OK)
        return e->code;
    if (!spec->tty && (spec->output_max > 0 || spec->stdout_fd < 0 || spec->stderr_fd < 0)) {
        if (pipe2(fds, O_CLOEXEC) != 0)
            return err_sys(e, errno, "create a pipe");
        if (rt_exec_watch(x, &run->output_poll, fds, &run->output, &output, on_output, e) != ERR_OK)
            return e->code;
    }
    if (rt_exec_make_folder(run, e) != ERR_OK || read_spec(run, spec, &process, oom_score, e) != ERR_OK)
        return e->code;
    add_args(run, spec, size, oom_score, &global, argv);
    rt_runtime_args(run->rt, run->handler, run->id,
                    /* for its environment: leftovers of a killed runtime are removed with the bundle */
                    &bundle);

    bool captured = spec->output_max > 0;
    const struct proc_fd pass[] = {
        { .parent_fd = control, .child_fd = EXEC_FD_CONTROL },
        { .parent_fd = captured || spec->stdin_fd < 0 ? nothing : spec->stdin_fd, .child_fd = EXEC_FD_STDIN },
        { .parent_fd = captured || spec->stdout_fd < 0 ? output : spec->stdout_fd,
          .child_fd = EXEC_FD_STDOUT },
        { .parent_fd = captured || spec->stderr_fd < 0 ? output : spec->stderr_fd,
          .child_fd = EXEC_FD_STDERR },
    };
    for (size_t i = 1; !spec->tty && i < ARRAY_LEN(pass); i++)
        give_to_users(run, pass[i].parent_fd);
    const struct proc_spec proc = {
        .name = "coracle-exec",
        .subject = run->id,
        .argv = argv,
        .env = bundle.env,
        .cwd = run->folder.s,
        .stdin_data = process,
        .stdin_size = strlen(process),
        .fds = pass,
        .n_fds = spec->tty ? 1 : ARRAY_LEN(pass),
        CG_OPS(run->rt->cgroups),
    };
    proc_start(&run->proc, &proc, run->rt->loop, on_helper, x);
    explicit_bzero(process, strlen(process));
    free(process);
    return ERR_OK;
}

static enum err_code rt_exec_check_spec(const struct rt *rt, const struct rt_exec_spec *spec, struct err *e)
{
    if (!rt_id_valid(spec->id))
        return err_set(e, ERR_NOT_FOUND, "container id \"%.70s\" is not 64 hex digits", spec->id);
    if (spec->argv == NULL || spec->argv[0] == NULL || (spec->tty && spec->output_max > 0))
        return err_set(e, ERR_INVALID, "exec: no command, or a terminal whose output is to be captured");
    if (rt->exec_path == NULL)
        return err_set(e, ERR_PRECONDITION, "coracle-exec is missing");
    return ERR_OK;
}

void rt_exec_start(struct rt_exec *x, struct rt *rt, const struct rt_exec_spec *spec, op_done_fn done,
                   void *owner)
{
    struct rt_exec_run *run = calloc(1, sizeof(*run));
    struct err e = { 0 };
    struct rt_state s;

    x->run = run;
    x->exit_code = 0;
    buf_init(&x->output, spec->output_max);
    op_init(&x->op, rt->loop, "exec", spec->deadline_ms, rt_exec_on_abort,
            run != NULL ? rt_exec_on_over : done, owner);
    op_set_subject(&x->op, spec->id);
    if (run == NULL) {
        x->op.state = EXEC_OVER;
        err_nomem(&e);
        op_finish(&x->op, &e);
        return;
    }
    run->rt = rt;
    run->done = done;
    run->control = run->output = -1;
    run->on_terminal = spec->on_terminal;
    run->on_started = spec->on_started;
    x->op.state = EXEC_RUN;
    if (rt_exec_check_spec(rt, spec, &e) == ERR_OK) {
        snprintf(run->id, sizeof(run->id), "%s", spec->id);
        if (rt_state(rt, run->id, &s, &e) == ERR_OK && s.phase != RT_RUNNING)
            err_set(&e, ERR_PRECONDITION, "container %.12s is not running", run->id);
        else if (e.code == ERR_OK && rt_handler_of(rt, run->id, &run->handler, &e) == ERR_OK)
            ERR_IGNORE(start_helper(x, spec, &e));
    }
    if (e.code != ERR_OK) {
        rt_exec_fail(run, &e);
        rt_exec_finish(x);
    }
}
