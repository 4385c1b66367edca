/* SPDX-License-Identifier: Apache-2.0 */
/* leaf - the two cgroups for our own processes: short-lived children (ops) and supervisors (conmon). They are
 * outside the agent's cgroup: ending or limiting the agent must not affect them, and a restarted agent must
 * find old children. */
#include "base/buf.h"
#include "base/files/fs.h"
#include "cgroups/internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SWEEP_TIMEOUT_MS 2000 /* a killed process that is not stuck ends within milliseconds */

static const char *const leaf_names[] = {
    [CG_LEAF_OPS] = "/coracle/ops", [CG_LEAF_CONMON] = "/coracle/conmon"
};

int cg_leaf_fd(struct cg_tree *t, enum cg_leaf leaf)
{
    return t->leaf_fd[leaf];
}

const char *cg_leaf_procs(struct cg_tree *t, enum cg_leaf leaf)
{
    return t->leaf_procs[leaf];
}

const char *const *cg_leaf_joins(struct cg_tree *t, enum cg_leaf leaf)
{
    return (const char *const *)t->leaf_joins[leaf].v;
}

/*
 * A child cannot be started in a leaf of v1. It joins by `tasks`, which moves one thread, and it has only
 * one: since Linux 5.5 a thread that moves itself needs no lock of the whole system. By cgroup.procs it would
 * wait 10 to 30 ms for that lock, unless another process was moved just before.
 */
static char *tasks_path(const struct cg_tree *t, const struct cg_hier *h, enum cg_leaf leaf)
{
    return str_printf("%s%s%s/tasks", h->point, t->root, leaf_names[leaf]);
}

static enum err_code open_joins(struct cg_tree *t, enum cg_leaf leaf, struct err *e)
{
    for (size_t i = 0; i < t->n_hiers; i++)
        if (!t->hiers[i].backend->v2 && !strs_take(&t->leaf_joins[leaf], tasks_path(t, &t->hiers[i], leaf)))
            return err_nomem(e);
    return ERR_OK;
}

enum err_code cg_open_leaves(struct cg_tree *t, struct err *e)
{
    const struct cg_hier *h = &t->hiers[0]; /* v2 or freezer, which are best for killing */

    if (t->layout != CG_V2 && open_joins(t, CG_LEAF_CONMON, e) != ERR_OK)
        return e->code;
    for (size_t i = 0; i < ARRAY_LEN(leaf_names); i++) {
        char path[CG_PATH_MAX + 32];

        snprintf(path, sizeof(path), "%s%s", t->root, leaf_names[i]);
        if (h->backend->v2 && (t->leaf_fd[i] = cg_open_dir(h, path)) < 0)
            return err_sys(e, errno, "open cgroup %s%s", h->point, path);
        if (!h->backend->v2 && t->leaf_joins[i].n == 0 &&
            (t->leaf_procs[i] = tasks_path(t, h, (enum cg_leaf)i)) == NULL)
            return err_nomem(e);
    }
    return ERR_OK;
}

void cg_close_leaves(struct cg_tree *t)
{
    for (size_t i = 0; i < ARRAY_LEN(t->leaf_fd); i++) {
        scope_close_p(&t->leaf_fd[i]);
        free(t->leaf_procs[i]);
        strs_done(&t->leaf_joins[i]);
    }
}

static enum err_code leaf_attach(struct cg_tree *t, const char *path, pid_t pid, struct err *e)
{
    char text[16];

    if (pid <= 0)
        return err_set(e, ERR_INVALID, "attach process %d to a cgroup: not a process", (int)pid);
    snprintf(text, sizeof(text), "%d", (int)pid);
    for (size_t i = 0; i < t->n_hiers; i++) {
        fd_auto dir = cg_open_dir(&t->hiers[i], path);
        if (dir < 0)
            return err_sys(e, errno, "attach process %d: open cgroup %s%s", (int)pid, t->hiers[i].point,
                           path);
        if (fs_write_control(dir, "cgroup.procs", text, e) != ERR_OK) {
            if (e->sys == ESRCH)
                return err_set(e, ERR_NOT_FOUND, "attach process %d to cgroup %s: it has ended", (int)pid,
                               path);
            return err_wrap(e, "attach process %d to cgroup %s%s", (int)pid, t->hiers[i].point, path);
        }
    }
    return ERR_OK;
}

enum err_code cg_place(struct cg_tree *t, const char *path, pid_t pid, struct err *e)
{
    bool fresh;

    if (!cg_path_is_ours(t, path))
        return err_set(e, ERR_INVALID, "cgroup %s does not belong to the agent", path);
    for (size_t i = 0; i < t->n_hiers; i++)
        if (cg_make(t, &t->hiers[i], path + strlen(t->root), false, &fresh, NULL, e) != ERR_OK)
            return e->code;
    return leaf_attach(t, path, pid, e);
}

enum err_code cg_ops_sweep(struct cg_tree *t, struct err *e)
{
    char path[CG_PATH_MAX];

    snprintf(path, sizeof(path), "%s%s", t->root, leaf_names[CG_LEAF_OPS]);
    if (presence_is_absent(cg_procs_left(t, path, ERR_IGNORED)))
        return ERR_OK;
    cg_kill_members(t, path); /* the leaf is reused */
    if (!cg_wait_empty(t, path, SWEEP_TIMEOUT_MS))
        return err_set(
            e, ERR_UNAVAILABLE,
            "cgroup %s: children of an earlier run are still there %d ms after SIGKILL (a path that hangs?)",
            path, SWEEP_TIMEOUT_MS);
    return ERR_OK;
}
