/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removes a container in any state.
 *
 *     DELETE_STOP     kill conmon and all processes in the cgroup, until both have ended
 *     DELETE_CALM     wait calm_ms, if the caller asks for it
 *     DELETE_RUNTIME  `<runtime> delete --force`, if the runtime knows the container; a failure does not
 *                     matter, because the next states remove the same parts
 *     DELETE_CGROUP   remove the cgroup in all hierarchies
 *     DELETE_FILES    remove mount, writable layer, exit file and bundle, in a child
 *
 * For a container that ended by itself, the common case, the first state does not wait.
 */
#include "agent/runtime/action.h"

#include "base/backoff.h"
#include "base/clock.h"
#include "base/files/fs.h"
#include "base/log.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum delete_state { DELETE_STOP, DELETE_CALM, DELETE_RUNTIME, DELETE_CGROUP, DELETE_FILES, DELETE_OVER };

enum {
    DEADLINE_MS = 10 * 60 * 1000, /* enough for millions of files in a writable layer */
    RUNTIME_DEADLINE_MS = 30000,
    PAUSE_MAX_MS = 50,
    PAUSE_STUCK_MS = 2000, /* for long waits: processes stuck in the kernel */
    STUCK_AFTER_MS = 3000,
    CONMON_GRACE_MS = 500, /* for conmon to reap init and write the exit code; usually 1 ms */
};

static void rt_delete_step(struct rt_action *a);

static void rt_delete_finish(struct rt_action *a, const struct err *e)
{
    a->op.state = DELETE_OVER;
    if (a->run->has_timer)
        op_close_handle(&a->op, (uv_handle_t *)&a->run->timer);
    op_finish(&a->op, e);
}

static void rt_delete_on_timer(uv_timer_t *timer)
{
    rt_delete_step(timer->data);
}

/* 1, 2, 4, ... 50 ms; after 3 s up to 2 s: each check is expensive, and processes may be stuck in the kernel
 * for hours */
static void step_later(struct rt_action *a)
{
    struct rt_action_run *run = a->run;
    uint64_t max = clock_mono_ms() - run->started_ms > STUCK_AFTER_MS ? PAUSE_STUCK_MS : PAUSE_MAX_MS;

    run->pause_ms = backoff_next_ms(run->pause_ms, 1, max);
    uv_timer_start(&run->timer, rt_delete_on_timer, run->pause_ms, 0);
}

/* ---- processes ---- */

static bool conmon_has_ended(struct rt_action_run *run)
{
    bool overdue = run->never_created || clock_mono_ms() - run->started_ms > CONMON_GRACE_MS;

    if (run->conmon_fd >= 0 && rt_pidfd_ended(run->conmon_fd))
        close(take_fd(&run->conmon_fd));
    if (run->conmon_fd >= 0 && overdue)
        syscall(SYS_pidfd_send_signal, run->conmon_fd, SIGKILL, NULL, 0);
    return run->conmon_fd < 0;
}

static bool cgroup_is_empty(struct rt_action_run *run)
{
    struct err e = { 0 };

    if (run->cgroup_path[0] == '\0' ||
        presence_is_absent(cg_has_processes(run->rt->cgroups, run->cgroup_path, &e)))
        return true;
    e = (struct err){ 0 };
    if (cg_kill(run->rt->cgroups, run->cgroup_path, &e) != ERR_OK)
        log_debug("cannot kill the container's cgroup", F_STR("containerID", run->id), F_ERR(&e));
    return false;
}

static bool all_gone(struct rt_action_run *run)
{
    struct err e = { 0 };
    bool conmon_gone;
    size_t creators = 0;

    /* While the container may still be being created, removed parts could reappear. */
    if (run->being_created &&
        (rt_kill_creators(run->rt, run->handler, run->id, &creators, &e) != ERR_OK || creators > 0))
        return false;
    conmon_gone = conmon_has_ended(run);
    return cgroup_is_empty(run) && conmon_gone;
}

static enum err_code is_there(struct rt_path path, bool *ret, struct err *e)
{
    switch (presence_of(fs_look_at(AT_FDCWD, path.s, NULL, e))) {
    case PRESENCE_UNKNOWN:
        return e->code;
    case PRESENCE_ABSENT:
        *ret = false;
        break;
    case PRESENCE_PRESENT:
        *ret = true;
        break;
    }
    return ERR_OK;
}

static enum err_code find_conmon(struct rt_action_run *run, struct err *e)
{
    bool pid, supervised, bundle, exited;

    if (is_there(rt_container_file(run->rt, run->id, "pid"), &pid, e) != ERR_OK ||
        is_there(rt_container_file(run->rt, run->id, RT_SUPERVISED), &supervised, e) != ERR_OK ||
        presence_is_unknown(rt_conmon_open(run->rt, run->id, &run->conmon_fd, NULL, e)) ||
        is_there(rt_container_dir(run->rt, run->id), &bundle, e) != ERR_OK ||
        is_there(rt_exit_file(run->rt, run->id), &exited, e) != ERR_OK)
        return e->code;
    run->never_created = !pid;
    run->being_created = run->never_created && supervised;
    /* Neither a conmon nor an exit file: its pid may be lost or reused. */
    if (run->conmon_fd < 0 && bundle && !exited)
        run->being_created = true;
    return ERR_OK;
}

/* ---- files ---- */

static void rt_delete_on_removed(struct op *op, const struct err *result)
{
    struct rt_action *a = op->owner;

    rt_delete_finish(a, result->code == ERR_OK ? NULL : result);
}

static void remove_files(struct rt_action *a)
{
    struct rt_action_run *run = a->run;
    const struct rt_bundle_removal removal = {
        .bundle = rt_container_dir(run->rt, run->id),
        .rootfs = rt_container_file(run->rt, run->id, "rootfs"),
        .mapped = rt_container_file(run->rt, run->id, RT_MAPPED_MOUNTS),
        .layer = rt_layer_dir(run->rt, run->id),
        .exit_file = rt_exit_file(run->rt, run->id),
        .oci = rt_oci_dir(run->rt, run->id),
    };
    const struct proc_call_spec spec = {
        .name = "remove container",
        .subject = run->id,
        .fn = rt_bundle_remove,
        .arg = &removal,
        .deadline_ms = DEADLINE_MS,
        CG_OPS(run->rt->cgroups),
        .moves_late = true,
    };

    a->op.state = DELETE_FILES;
    proc_call_start(&run->files, &spec, run->rt->loop, rt_delete_on_removed, a);
}

/* ---- steps ---- */

static void on_runtime(struct op *op, const struct err *result)
{
    struct rt_action *a = op->owner;

    if (result->code != ERR_OK)
        log_debug("runtime delete failed; continuing without it", F_STR("containerID", a->run->id),
                  F_ERR(result));
    a->op.state = DELETE_CGROUP;
    a->run->pause_ms = 0;
    if (a->op.why.code != ERR_OK)
        rt_delete_finish(a, NULL);
    else
        rt_delete_step(a);
}

static void rt_delete_step(struct rt_action *a)
{
    struct rt_action_run *run = a->run;
    struct err e = { 0 };
    bool known_to_runtime = false;

    switch ((enum delete_state)a->op.state) {
    case DELETE_STOP:
        if (!all_gone(run)) {
            step_later(a);
            return;
        }
        a->op.state = DELETE_CALM;
        if (a->calm_ms > 0) {
            uv_timer_start(&run->timer, rt_delete_on_timer, a->calm_ms, 0);
            return;
        }
        /* fall through */
    case DELETE_CALM:
        if (is_there(rt_oci_dir(run->rt, run->id), &known_to_runtime, &e) != ERR_OK) {
            step_later(a);
            return;
        }
        if (known_to_runtime) {
            a->op.state = DELETE_RUNTIME;
            rt_action_call_runtime(a, "runtime delete", "delete", "--force", RUNTIME_DEADLINE_MS, on_runtime);
            return;
        }
        a->op.state = DELETE_CGROUP;
        run->pause_ms = 0;
        /* fall through */
    case DELETE_CGROUP:
        if (run->cgroup_path[0] != '\0' && cg_remove(run->rt->cgroups, run->cgroup_path, &e) != ERR_OK &&
            e.code != ERR_NOT_FOUND) {
            if (e.code != ERR_UNAVAILABLE)
                rt_delete_finish(a, &e);
            else /* the kernel releases the last process shortly after its end */
                step_later(a);
            return;
        }
        remove_files(a);
        return;
    case DELETE_RUNTIME:
    case DELETE_FILES:
    case DELETE_OVER:
        return;
    }
}

static void rt_delete_on_abort(struct op *op)
{
    struct rt_action *a = container_of(op, struct rt_action, op);
    struct err e = { 0 };

    switch ((enum delete_state)op->state) {
    case DELETE_STOP:
    case DELETE_CALM:
    case DELETE_CGROUP:
        err_set(&e, ERR_UNAVAILABLE, "container %.12s: its processes do not exit", a->run->id);
        rt_delete_finish(a, &e);
        return;
    case DELETE_RUNTIME:
        proc_cancel(&a->run->proc);
        return;
    case DELETE_FILES:
        op_cancel(&a->run->files.op);
        return;
    case DELETE_OVER:
        return;
    }
}

void rt_delete_start(struct rt_action *a, struct rt *rt, const char *id, const char *cgroup_path,
                     op_done_fn done, void *owner)
{
    struct rt_identity identity = { 0 };
    struct rt_action_run *run;
    struct err e = { 0 };

    if (!rt_action_begin(a, rt, id, "container delete", DEADLINE_MS, rt_delete_on_abort, done, owner)) {
        a->op.state = DELETE_OVER;
        return;
    }
    run = a->run;
    /* Without the cgroup's path, its processes would be left behind without their files. */
    if (cgroup_path == NULL && presence_is_unknown(rt_identity(rt, id, &identity, &e))) {
        rt_delete_finish(a, &e);
        return;
    }
    if (cgroup_path == NULL && identity.cgroup_path[0] != '\0')
        cgroup_path = identity.cgroup_path;
    /* All processes in the cgroup are killed, so it must be this container's own. */
    if (rt_cgroup_path_valid(cgroup_path, id))
        snprintf(run->cgroup_path, sizeof(run->cgroup_path), "%s", cgroup_path);
    else if (cgroup_path != NULL)
        log_warn("leaving a cgroup alone that is not the container's", F_STR("containerID", id),
                 F_STR("cgroup", cgroup_path));
    if (find_conmon(run, &e) != ERR_OK) {
        rt_delete_finish(a, &e);
        return;
    }
    rt_watch_remove(rt, id);
    run->started_ms = clock_mono_ms();
    uv_timer_init(rt->loop, &run->timer);
    run->timer.data = a;
    run->has_timer = true;
    a->op.state = DELETE_STOP;
    rt_delete_step(a);
}
