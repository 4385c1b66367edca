/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forks - when the kernel refuses a fork, because a pod or all pods have reached their limit of processes,
 * the process ids are measured. Each running container and the cgroup of all pods are watched
 * (cgroups/pids_watch.h explains why both).
 */
#include "agent/pod/core/explain_step.h"
#include "agent/pod/core/facts.h"
#include "agent/pod/eviction/internal.h"
#include "agent/pod/limits/limits.h"
#include "base/log.h"
#include "cgroups/meter.h"
#include "cgroups/pids_watch.h"

#include <stdlib.h>
#include <string.h>

struct forks {
    struct node *node;
    struct cg_pids_watch *watch; /* NULL: not possible */
    struct err error;            /* why */
};

static void on_refused(const char *path, void *arg)
{
    struct forks *f = arg;

    log_info("a fork was refused: a limit of processes is reached", F_STR("cgroup", path));
    eviction_wake(f->node, EV_PID_PRESSURE, "a refused fork");
}

/* ---- of a pod ---- */

static struct eviction_ctr *fork_of(const struct ctr *c)
{
    return c->parts[ROOM_EVICTION];
}

static bool path_of(const struct ctr *c, const char *id, char *ret, size_t size)
{
    struct err e = { 0 };
    char above[400];

    return resources_cgroup_path(c->pod, above, sizeof(above), &e) == ERR_OK &&
           (size_t)snprintf(ret, size, "%s/%s", above, id) < size;
}

static void forget(struct cg_pids_watch *w, const struct ctr *c)
{
    struct eviction_ctr *known = fork_of(c);
    char path[512];

    if (known->watched[0] == '\0')
        return;
    if (path_of(c, known->watched, path, sizeof(path)))
        cg_pids_watch_remove(w, path);
    known->watched[0] = '\0';
}

/* One that cannot be watched, as it has just ended, is tried again with the pod's next step. */
static void watch(struct cg_pids_watch *w, const struct ctr *c)
{
    struct eviction_ctr *known = fork_of(c);
    struct err e = { 0 };
    char path[512];

    if (!path_of(c, c->cur.id, path, sizeof(path)))
        return;
    if (cg_pids_watch_add(w, path, &e) == ERR_OK)
        snprintf(known->watched, sizeof(known->watched), "%s", c->cur.id);
    else
        log_debug("refused forks are not noticed", F_ERR(&e));
}

static struct cg_pids_watch *watch_of(const struct pod *p)
{
    const struct forks *f = eviction_node(p->node)->forks;

    return f != NULL ? f->watch : NULL;
}

void forks_step(struct pod *p)
{
    struct cg_pids_watch *w = watch_of(p);

    for (size_t i = 0; w != NULL && i < p->n_ctrs; i++) {
        const struct ctr *c = p->ctrs[i];
        const bool runs = c->state == CTR_RUNNING && c->cur.id[0] != '\0';

        if (runs && str_eq(fork_of(c)->watched, c->cur.id))
            continue;
        forget(w, c);
        if (runs)
            watch(w, c);
    }
}

void forks_rest(struct pod *p)
{
    struct cg_pids_watch *w = watch_of(p);

    for (size_t i = 0; w != NULL && i < p->n_ctrs; i++)
        forget(w, p->ctrs[i]);
}

/* ---- of the node ---- */

static void watch_all_pods(struct forks *f)
{
    struct cg_tree *tree = f->node->o.cgroups;
    char path[1024];

    if (cg_class_path(tree, CG_GUARANTEED, path, sizeof(path), &f->error) == ERR_OK)
        ERR_IGNORE(cg_pids_watch_add(f->watch, path, &f->error));
}

struct forks *forks_open(struct node *n)
{
    struct forks *f = calloc(1, sizeof(*f));

    if (f == NULL)
        return NULL;
    f->node = n;
    if (n->o.cgroups == NULL)
        return f;
    if (cg_pids_watch_open(&f->watch, n->o.cgroups, n->o.loop, on_refused, f, &f->error) == ERR_OK)
        watch_all_pods(f);
    if (f->error.code != ERR_OK)
        log_info("not all refused forks are noticed", F_ERR(&f->error));
    return f;
}

void forks_explain(const struct forks *f, json_t *steps)
{
    if (f->error.code != ERR_OK)
        explain_step(steps, "refused forks", "failed", 0, f->error.text, 0);
}

static void forks_on_closed(void *arg)
{
    free(arg);
}

void forks_close(struct forks *f)
{
    if (f == NULL)
        return;
    if (f->watch != NULL)
        cg_pids_watch_close(f->watch, forks_on_closed, f);
    else
        free(f);
}
