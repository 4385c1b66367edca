/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Creates a container: the bundle, then conmon, then its answer on the sync pipe.
 *
 *     CREATE_BUNDLE -> CREATE_CONMON (its first process ends, and it answers, in any order) -> CREATE_OVER
 */
#include "agent/runtime/container_internal.h"

#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum create_state { CREATE_BUNDLE, CREATE_CONMON, CREATE_OVER };

enum {
    SYNC_MAX = 64 * 1024, /* conmon's line: at most 8 KiB of the runtime's message, escaped */
    SYNC_PIPE = 4,        /* descriptor number in conmon */
};

struct rt_create_run {
    struct rt *rt;
    const struct rt_config *config;
    const struct rt_handler *handler;
    op_done_fn done;
    struct proc_call bundle;
    struct rt_bundle_job job; /* its argument */
    struct proc conmon;
    int sync_fd; /* our end; -1: closed */
    uv_poll_t sync_poll;
    struct buf sync;
    bool conmon_over;
    bool answered; /* or closed the pipe without answer */
    bool told;     /* conmon reported the result of the runtime's create */
    struct err e;  /* the first failure */
};

static void rt_create_fail(struct rt_create_run *run, const struct err *e)
{
    if (run->e.code == ERR_OK)
        run->e = *e;
}

/* ---- the end ---- */

static void close_sync(struct rt_create *c)
{
    if (c->run->sync_fd < 0)
        return;
    op_close_handle(&c->op, (uv_handle_t *)&c->run->sync_poll);
    close(take_fd(&c->run->sync_fd));
}

/* Only speeds up rt_delete, if conmon still runs. */
static void kill_conmon(const struct rt_create_run *run)
{
    struct err e = { 0 };
    fd_auto pidfd = -1;

    if (presence_is_unknown(rt_conmon_open(run->rt, run->config->id, &pidfd, NULL, &e)))
        return;
    if (pidfd >= 0)
        syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
}

static void rt_create_watch(struct rt_create_run *run)
{
    struct err e = { 0 };

    /* If conmon has ended already, the exit file or its absence shows the result, and the caller reads that
     * next. If it cannot be watched now, the next read of its state retries the watch. */
    if (rt_watch_conmon(run->rt, run->config->id, &e) != ERR_OK)
        log_debug("cannot watch conmon yet", F_STR("containerID", run->config->id), F_ERR(&e));
}

static void rt_create_finish(struct rt_create *c)
{
    struct rt_create_run *run = c->run;
    struct rt_path supervised = rt_container_file(run->rt, run->config->id, RT_SUPERVISED);

    c->op.state = CREATE_OVER;
    close_sync(c);
    if (run->told) /* no process is using it any more */
        unlink(supervised.s);
    if (run->e.code == ERR_OK && c->op.why.code == ERR_OK)
        rt_create_watch(run);
    else if (run->conmon_over)
        kill_conmon(run);
    op_finish(&c->op, run->e.code == ERR_OK ? NULL : &run->e);
}

static void rt_create_on_over(struct op *op, const struct err *result)
{
    struct rt_create *c = container_of(op, struct rt_create, op);
    struct rt_create_run *run = take_ptr(&c->run);
    op_done_fn done = run->done;

    buf_done(&run->sync);
    free(run);
    done(op, result);
}

/* ---- conmon ---- */

static void rt_create_no_answer(struct rt_create_run *run)
{
    str_auto words = rt_runtime_words(run->rt, run->config->id);
    struct err e = { 0 };

    if (words != NULL)
        err_set(&e, ERR_UNKNOWN, "%s", words);
    else
        err_set(&e, ERR_UNAVAILABLE, "conmon ended without an answer");
    rt_create_fail(run, &e);
}

static void conmon_step(struct rt_create *c)
{
    struct rt_create_run *run = c->run;

    if (!run->conmon_over || c->op.state == CREATE_OVER)
        return;
    if (run->answered && !run->told && run->e.code == ERR_OK)
        rt_create_no_answer(run);
    if (run->answered || run->e.code != ERR_OK || c->op.why.code != ERR_OK)
        rt_create_finish(c);
}

/* conmon forks before anything can fail, so its own failures are about its options. */
static void on_conmon(struct op *op, const struct err *result)
{
    struct rt_create *c = op->owner;
    struct err e = *result;

    c->run->conmon_over = true;
    if (e.code == ERR_UNKNOWN) /* not the runtime's message */
        e.code = ERR_INTERNAL;
    if (e.code == ERR_INVALID ||
        e.code == ERR_PRECONDITION) /* for example about its cgroup: not caused by the pod */
        e.code = ERR_UNAVAILABLE;
    if (e.code != ERR_OK)
        rt_create_fail(c->run, &e);
    conmon_step(c);
}

static void on_sync(uv_poll_t *poll, int status, int events)
{
    struct rt_create *c = poll->data;
    struct rt_create_run *run = c->run;
    struct err e = { 0 };
    char chunk[4096];
    const char *newline;
    pid_t pid;
    ssize_t n;

    (void)events;
    n = status < 0 ? 0 : read(run->sync_fd, chunk, sizeof(chunk));
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n > 0) {
        buf_add(&run->sync, chunk, (size_t)n);
        newline = memchr(run->sync.p, '\n', run->sync.n);
        if (run->sync.failed) {
            err_set(&e, ERR_UNAVAILABLE, "conmon's answer is longer than %d bytes", SYNC_MAX);
            rt_create_fail(run, &e);
        } else if (newline == NULL) {
            return;
        } else {
            run->told = true;
            if (rt_conmon_parse_sync(run->sync.p, (size_t)(newline - run->sync.p), &pid, &e) != ERR_OK)
                rt_create_fail(run, &e);
        }
    }
    run->answered = true;
    close_sync(c);
    conmon_step(c);
}

static enum err_code open_sync(struct rt_create *c, int *ret_child, struct err *e)
{
    struct rt_create_run *run = c->run;
    int fds[2], status;

    if (pipe2(fds, O_CLOEXEC) != 0)
        return err_sys(e, errno, "create a pipe");
    status = uv_poll_init(run->rt->loop, &run->sync_poll, fds[0]); /* makes it non-blocking */
    if (status != 0) {
        close(fds[0]);
        close(fds[1]);
        return err_sys(e, -status, "watch a pipe");
    }
    run->sync_fd = fds[0];
    run->sync_poll.data = c;
    uv_poll_start(&run->sync_poll, UV_READABLE, on_sync);
    *ret_child = fds[1];
    return ERR_OK;
}

static enum err_code start_conmon(struct rt_create *c, struct err *e)
{
    struct rt_create_run *run = c->run;
    struct cg_tree *cgroups = run->rt->cgroups;
    fd_auto sync_child = -1;
    struct rt_conmon_args args;
    char tmpdir[RT_ROOT_MAX + 16];

    if (open_sync(c, &sync_child, e) != ERR_OK)
        return e->code;
    rt_conmon_args(run->rt, run->handler, run->config, &args);
    /* For the terminal's socket: in the bundle its path would be too long. */
    snprintf(tmpdir, sizeof(tmpdir), "TMPDIR=%s/tty", run->rt->run_dir);
    const char *const env[] = {
        "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        tmpdir,
        args.runtime.clone_env.s,
        "_OCI_SYNCPIPE=4",
        NULL,
    };
    const struct proc_fd pass = { .parent_fd = sync_child, .child_fd = SYNC_PIPE };
    const struct proc_spec spec = {
        .name = "conmon",
        .subject = c->op.subject,
        .argv = args.v,
        .env = env,
        .cwd = args.bundle.s, /* it writes its file `oom` there */
        .fds = &pass,
        .n_fds = 1,
        .cgroup_fd = cg_leaf_fd(cgroups, CG_LEAF_CONMON),
        .join_procs = cg_leaf_joins(cgroups, CG_LEAF_CONMON),
        .deadline_ms = RT_CREATE_DEADLINE_MS,
        .new_session = true,
    };
    proc_start(&run->conmon, &spec, run->rt->loop, on_conmon, c);
    return ERR_OK;
}

/* ---- bundle ---- */

static void rt_create_on_bundle(struct op *op, const struct err *result)
{
    struct rt_create *c = op->owner;
    struct rt_create_run *run = c->run;
    struct err e = *result, outcome;

    if (e.code == ERR_OK && run->bundle.out.n == sizeof(outcome)) {
        memcpy(&outcome, run->bundle.out.p, sizeof(outcome));
        outcome.text[sizeof(outcome.text) - 1] = '\0';
        e = outcome;
    } else if (e.code == ERR_OK) {
        err_set(&e, ERR_INTERNAL, "bundle: no outcome");
    }
    if (c->op.why.code == ERR_OK && e.code == ERR_OK) {
        c->op.state = CREATE_CONMON;
        if (start_conmon(c, &e) == ERR_OK)
            return;
    }
    rt_create_fail(run, &e);
    rt_create_finish(c);
}

static void rt_create_on_abort(struct op *op)
{
    struct rt_create *c = container_of(op, struct rt_create, op);
    struct rt_create_run *run = c->run;

    switch ((enum create_state)op->state) {
    case CREATE_BUNDLE:
        op_cancel(&run->bundle.op);
        return;
    case CREATE_CONMON:
        if (!run->conmon_over)
            proc_cancel(&run->conmon);
        else
            conmon_step(c);
        return;
    case CREATE_OVER:
        return;
    }
}

static enum err_code check_config(const struct rt_config *c, struct err *e)
{
    if (!rt_id_valid(c->id))
        return err_set(e, ERR_INTERNAL, "container id is not 64 hex digits");
    if (!rt_cgroup_path_valid(c->cgroup_path, c->id))
        return err_set(e, ERR_INTERNAL, "cgroup path \"%s\" does not end in the container's id",
                       c->cgroup_path != NULL ? c->cgroup_path : "");
    if (strlen(c->log_path) >= PATH_MAX || strchr(c->log_path, ':') != NULL)
        return err_set(e, ERR_INTERNAL, "log path %s: too long, or with a colon, where conmon would cut it",
                       c->log_path);
    return ERR_OK;
}

static bool is_elsewhere(const char *path)
{
    return !str_starts(path, "/dev/") || strstr(path, "/../") != NULL;
}

/* Whether creating the bundle accesses file systems that are not ours: to map volumes, or to check sources of
 * mounts and device nodes. Paths in /dev cannot hang. */
static bool may_hang(const struct rt_config *c)
{
    bool may = c->userns != NULL;

    for (size_t i = 0; i < c->n_mounts; i++)
        may = may || c->mounts[i].make_source;
    for (size_t i = 0; i < c->n_devices; i++)
        may = may || is_elsewhere(c->devices[i].host_path);
    for (size_t i = 0; c->edits != NULL && i < c->edits->n_nodes; i++) {
        const struct rt_edit_node *node = &c->edits->nodes[i];
        may = may || is_elsewhere(node->host_path != NULL ? node->host_path : node->path);
    }
    return may;
}

void rt_create_start(struct rt_create *c, struct rt *rt, const struct rt_config *config, op_done_fn done,
                     void *owner)
{
    struct rt_create_run *run = calloc(1, sizeof(*run));
    struct err e = { 0 };

    c->run = run;
    op_init(&c->op, rt->loop, "container create", RT_CREATE_DEADLINE_MS, rt_create_on_abort,
            run != NULL ? rt_create_on_over : done, owner);
    str_auto subject =
        str_printf("%s/%s/%s", config->pod_namespace, config->pod_name, config->container_name);
    op_set_subject(&c->op, subject != NULL ? subject : config->container_name);
    if (run == NULL) {
        c->op.state = CREATE_OVER;
        err_nomem(&e);
        op_finish(&c->op, &e);
        return;
    }
    *run = (struct rt_create_run){
        .rt = rt, .config = config, .done = done, .sync_fd = -1, .sync = BUF_INIT(SYNC_MAX)
    };
    run->handler = rt_handler_find(rt, config->runtime_handler);
    if (run->handler == NULL)
        err_set(&e, ERR_NOT_FOUND, RT_NO_HANDLER, config->runtime_handler);
    if (run->handler == NULL || check_config(config, &e) != ERR_OK) {
        rt_create_fail(run, &e);
        rt_create_finish(c);
        return;
    }
    c->op.state = CREATE_BUNDLE;
    run->job = (struct rt_bundle_job){ .rt = rt, .handler = run->handler, .config = config };
    const struct proc_call_spec spec = {
        .name = "container bundle",
        .subject = c->op.subject,
        .fn = rt_bundle_make,
        .arg = &run->job,
        .out_max = sizeof(struct err),
        .deadline_ms = RT_CREATE_DEADLINE_MS,
        CG_OPS(rt->cgroups),
        .in_thread = !may_hang(config),
    };
    proc_call_start(&run->bundle, &spec, rt->loop, rt_create_on_bundle, c);
}
