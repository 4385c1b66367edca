/* SPDX-License-Identifier: Apache-2.0 */
/* isolation_tree - the cgroups that a plan of isolated processors is made for, read from the kernel, and the
 * plan carried out. */
#include "agent/pod/core/facts.h"
#include "agent/pod/limits/internal.h"
#include "agent/pod/placement/placement.h"
#include "cgroups/partition.h"

#include <stdlib.h>
#include <string.h>

#define PATH_SIZE 1024

void isolation_done(struct isolation_tree *t)
{
    strs_done(&t->paths);
    strs_done(&t->wanted);
    free(t->v);
    free(t->ctrs);
    *t = (struct isolation_tree){ 0 };
}

/* ---- the containers ---- */

static const struct pl_cpu_entry *own_cpus(const struct ctr *c)
{
    const struct pl_cpu_manager *m = placement_cpus(c->pod->node);

    return m != NULL ? pl_cpu_state_find(&m->state, c->pod->uid, c->spec->name) : NULL;
}

bool isolation_is_wanted(const struct ctr *c)
{
    return isolation_node(c->pod->node)->on && ctr_alive(c) && own_cpus(c) != NULL;
}

struct cpus isolation_cpus(const struct ctr *c)
{
    return own_cpus(c)->cpus;
}

/* t->wanted[i] is the cgroup of t->ctrs[i]. */
static enum err_code add_wanted(struct isolation_tree *t, struct ctr *c, struct err *e)
{
    struct rt_identity identity = { 0 };
    struct ctr **more;

    if (presence_is_unknown(rt_identity(c->pod->node->rt, c->cur.id, &identity, e)))
        return e->code;
    more = realloc(t->ctrs, (t->wanted.n + 1) * sizeof(struct ctr *));
    if (more == NULL)
        return err_nomem(e);
    t->ctrs = more;
    t->ctrs[t->wanted.n] = c;
    return strs_add(&t->wanted, identity.cgroup_path) ? ERR_OK : err_nomem(e);
}

static enum err_code read_wanted(struct node *n, struct isolation_tree *t, struct err *e)
{
    pods_each (n, p)
        for (size_t i = 0; i < p->n_ctrs; i++)
            if (isolation_is_wanted(p->ctrs[i]) && add_wanted(t, p->ctrs[i], e) != ERR_OK)
                return e->code;
    return ERR_OK;
}

/* The container of a cgroup; NULL: it is not to be isolated. */
static const struct ctr *container_at(const struct isolation_tree *t, const char *path)
{
    for (size_t i = 0; i < t->wanted.n; i++)
        if (strcmp(t->wanted.v[i], path) == 0)
            return t->ctrs[i];
    return NULL;
}

static bool has_wanted(const struct isolation_tree *t, const char *pod)
{
    for (size_t i = 0; i < t->wanted.n; i++)
        if (str_starts(t->wanted.v[i], pod) && t->wanted.v[i][strlen(pod)] == '/')
            return true;
    return false;
}

/* ---- the cgroups ---- */

static enum err_code add(struct isolation_tree *t, enum pl_iso_level level, const char *path,
                         const struct cpus *exclusive, struct err *e)
{
    struct pl_iso_cgroup *more = realloc(t->v, (t->n + 1) * sizeof(*more));

    if (more == NULL)
        return err_nomem(e);
    t->v = more;
    t->v[t->n++] = (struct pl_iso_cgroup){ .level = level, .exclusive = *exclusive };
    return strs_add(&t->paths, path) ? ERR_OK : err_nomem(e);
}

/* *ret_gone: the cgroup was removed meanwhile. */
static enum err_code read_exclusive(const struct node *n, const char *path, struct cpus *ret, bool *ret_gone,
                                    struct err *e)
{
    str_auto text = NULL;

    *ret_gone = false;
    if (cg_exclusive_read(n->o.cgroups, path, &text, e) == ERR_OK)
        return cpus_parse(ret, text, path, e);
    if (e->code != ERR_NOT_FOUND)
        return e->code;
    *ret_gone = true;
    *e = (struct err){ 0 };
    return ERR_OK;
}

static enum err_code add_container(const struct node *n, struct isolation_tree *t, const char *path,
                                   struct err *e)
{
    const struct ctr *c = container_at(t, path);
    enum cg_partition state = CG_PARTITION_MEMBER;
    char why[CG_PARTITION_WHY];
    struct cpus exclusive;
    bool gone;

    if (read_exclusive(n, path, &exclusive, &gone, e) != ERR_OK || gone)
        return e->code;
    if (cg_partition_read(n->o.cgroups, path, &state, why, e) != ERR_OK) {
        if (e->code == ERR_NOT_FOUND)
            *e = (struct err){ 0 };
        return e->code;
    }
    if (add(t, PL_ISO_CONTAINER, path, &exclusive, e) != ERR_OK)
        return e->code;
    t->v[t->n - 1].partition = state != CG_PARTITION_MEMBER;
    t->v[t->n - 1].isolated = state == CG_PARTITION_ISOLATED;
    if (c != NULL)
        t->v[t->n - 1].want = isolation_cpus(c);
    return ERR_OK;
}

/* Skips a pod that has and had no such containers. */
static enum err_code add_pod(const struct node *n, struct isolation_tree *t, const char *path, struct err *e)
{
    struct strs inside = { 0 };
    struct cpus exclusive;
    bool gone;

    if (read_exclusive(n, path, &exclusive, &gone, e) != ERR_OK || gone ||
        (cpus_is_empty(&exclusive) && !has_wanted(t, path)))
        return e->code;
    if (add(t, PL_ISO_POD, path, &exclusive, e) == ERR_OK)
        ERR_IGNORE(cg_list_in(n->o.cgroups, path, &inside, e));
    for (size_t i = 0; i < inside.n && e->code == ERR_OK; i++)
        ERR_IGNORE(add_container(n, t, inside.v[i], e));
    strs_done(&inside);
    return e->code;
}

static enum err_code add_paths(const struct node *n, struct isolation_tree *t, enum pl_iso_level level,
                               const struct strs *paths, struct err *e)
{
    struct cpus exclusive;
    bool gone;

    for (size_t i = 0; i < paths->n; i++)
        if (read_exclusive(n, paths->v[i], &exclusive, &gone, e) != ERR_OK ||
            (!gone && add(t, level, paths->v[i], &exclusive, e) != ERR_OK))
            return e->code;
    return ERR_OK;
}

static enum err_code read_all(struct node *n, struct isolation_tree *t, struct strs *paths, struct err *e)
{
    char all[PATH_SIZE];

    if (cg_above_pods(n->o.cgroups, paths, e) != ERR_OK || add_paths(n, t, PL_ISO_ABOVE, paths, e) != ERR_OK)
        return e->code;
    strs_done(paths);
    *paths = (struct strs){ 0 };
    if (cg_all_pods_path(n->o.cgroups, all, sizeof(all), e) != ERR_OK)
        return e->code;
    if (!strs_add(paths, all))
        return err_nomem(e);
    if (add_paths(n, t, PL_ISO_ALL, paths, e) != ERR_OK)
        return e->code;
    strs_done(paths);
    *paths = (struct strs){ 0 };
    if (cg_list_pods(n->o.cgroups, paths, e) != ERR_OK)
        return e->code;
    for (size_t i = 0; i < paths->n; i++)
        if (add_pod(n, t, paths->v[i], e) != ERR_OK)
            return e->code;
    return ERR_OK;
}

enum err_code isolation_read(struct node *n, struct isolation_tree *t, struct err *e)
{
    struct strs paths = { 0 };

    if (read_wanted(n, t, e) == ERR_OK)
        ERR_IGNORE(read_all(n, t, &paths, e));
    strs_done(&paths);
    t->want = pl_isolated(t->v, t->n);
    return e->code;
}

/* ---- writing ---- */

static enum err_code write_one(const struct node *n, const char *path, const struct pl_iso_write *w,
                               struct err *e)
{
    char text[CPUS_TEXT_SIZE];

    if (w->file == PL_ISO_PARTITION)
        return cg_partition_write(n->o.cgroups, path, w->isolated, e);
    cpus_print(&w->cpus, text);
    return cg_exclusive_write(n->o.cgroups, path, text, e);
}

void isolation_write(const struct node *n, const struct isolation_tree *t, struct err *e)
{
    struct pl_iso_write *writes = malloc(PL_ISO_WRITES(t->n) * sizeof(*writes));
    size_t n_writes = writes != NULL ? pl_isolate(t->v, t->n, writes) : 0;

    if (writes == NULL)
        err_nomem(e);
    for (size_t i = 0; i < n_writes; i++) {
        struct err one = { 0 };

        /* The others are still correct: processors in these files do no harm without a partition. */
        if (write_one(n, t->paths.v[writes[i].cgroup], &writes[i], &one) != ERR_OK &&
            one.code != ERR_NOT_FOUND && e->code == ERR_OK)
            *e = one;
    }
    free(writes);
}

void isolation_result(const struct isolation_tree *t, const struct ctr *c, const struct err *failed,
                      char why[ISOLATION_WHY])
{
    enum cg_partition state = CG_PARTITION_MEMBER;
    char reason[CG_PARTITION_WHY] = "";
    struct err e = { 0 };

    why[0] = '\0';
    for (size_t i = 0; i < t->wanted.n; i++)
        if (t->ctrs[i] == c &&
            cg_partition_read(c->pod->node->o.cgroups, t->wanted.v[i], &state, reason, &e) == ERR_OK &&
            state == CG_PARTITION_ISOLATED)
            return;
    snprintf(why, ISOLATION_WHY, "%s",
             failed->code != ERR_OK ? failed->text
             : reason[0] != '\0'    ? reason
             : e.code != ERR_OK     ? e.text
                                    : "its cgroup is no partition");
}
