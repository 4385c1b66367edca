/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of the kernel's quota for the trees of a pod: set by a plan (local_plan.h), on the pool; a warning
 * leads to a check of the whole pod, at once. */
#include "agent/pod/core/events.h"
#include "agent/pod/core/facts.h"
#include "agent/pod/core/node_options.h"
#include "agent/pod/project/project.h"
#include "agent/pod/usage/internal.h"
#include "agent/pod/usage/local_storage.h"
#include "agent/pod/usage/storage_usage.h"
#include "base/clock.h"
#include "base/log.h"

#include <stdlib.h>
#include <string.h>

#define ROUNDS_MAX 8 /* usage grows while limits are set; a check follows anyway */

struct armed {                 /* beside its struct plan_tree */
    const struct quota_fs *fs; /* NULL: no project */
    uint32_t project;
};

struct arm {
    struct project_task task;
    struct node *node;
    char uid[140];
    bool enforce, clear;
    size_t n, n_limits;
    struct plan_tree *trees;
    struct armed *armed;
    struct plan_limit *limits;
    struct err e; /* of the pool */
};

static void arm_free(struct arm *a)
{
    free(a->trees);
    free(a->armed);
    free(a->limits);
    free(a);
}

/* ---- on the pool ---- */

static bool read_all(struct arm *a)
{
    bool above = false;

    for (size_t i = 0; i < a->n; i++) {
        struct quota_usage u;

        if (a->armed[i].fs == NULL || quota_get(a->armed[i].fs, a->armed[i].project, &u, &a->e) != ERR_OK)
            continue;
        a->trees[i].bytes = u.bytes;
        above = above || (a->trees[i].soft != 0 && u.bytes >= a->trees[i].soft);
    }
    return above;
}

static void set_all(struct arm *a)
{
    for (size_t i = 0; i < a->n; i++) {
        const struct plan_tree *t = &a->trees[i];
        struct quota_limits l = { .hard_bytes = t->hard, .soft_bytes = t->soft };

        if (a->armed[i].fs != NULL)
            ERR_IGNORE(quota_set(a->armed[i].fs, a->armed[i].project, &l, &a->e));
    }
}

/* A limit that is already exceeded when it is set causes no warning, so usage is read again afterwards. */
static void arm_run(struct project_task *task)
{
    struct arm *a = (struct arm *)task;

    if (a->clear) {
        set_all(a);
        return;
    }
    read_all(a);
    for (unsigned i = 0; i < ROUNDS_MAX; i++) {
        local_plan(a->trees, a->n, a->limits, a->n_limits, a->enforce);
        set_all(a);
        if (!read_all(a) || local_plan_exceeded(a->trees, a->n, a->limits, a->n_limits, a->enforce))
            return;
    }
}

/* ---- on the loop ---- */

static void arm_done(struct project_task *task, bool ran)
{
    struct arm *a = (struct arm *)task;
    struct pod *p = pods_by_uid(a->node, a->uid);
    struct local_pod *l = p != NULL ? usage_of_pod(p)->local : NULL;

    if (ran && a->e.code != ERR_OK)
        log_warn("cannot set limits of a pod's quotas", F_STR("podUID", a->uid), F_ERR(&a->e));
    if (l != NULL && l->arm == a) {
        bool again = l->arm_again;

        l->arm = NULL;
        l->arm_again = false;
        l->enforced = ran && a->enforce && a->e.code == ERR_OK;
        local_storage_judge(p);
        if (again && !a->node->closing)
            local_quota_arm(p);
    }
    arm_free(a);
}

static struct arm *arm_new(struct pod *p, size_t n)
{
    struct arm *a = calloc(1, sizeof(*a));
    size_t max = p->api->spec.n_volumes + p->n_ctrs + 1;

    if (a == NULL)
        return NULL;
    a->task = (struct project_task){ .run = arm_run, .done = arm_done };
    a->node = p->node;
    snprintf(a->uid, sizeof(a->uid), "%s", p->uid);
    a->trees = calloc(n + 1, sizeof(*a->trees));
    a->armed = calloc(n + 1, sizeof(*a->armed));
    a->limits = calloc(max, sizeof(*a->limits));
    if (a->trees != NULL && a->armed != NULL && a->limits != NULL) {
        a->n_limits = local_limits_list(p, a->limits, max);
        return a;
    }
    arm_free(a);
    return NULL;
}

/* Everything that may have a hard limit must have one, otherwise the pod is evicted as without. */
static void arm_add(struct arm *a, struct local_tree *t, bool *all_enforce)
{
    const struct local_tree *known = local_storage_find(t->pod, t->kind, t->index);
    struct plan_tree *plan = &a->trees[a->n];
    struct project_tree has;
    char path[1024];

    *plan = (struct plan_tree){ .kind = t->kind, .index = t->index };
    plan->bytes = known != NULL ? known->sum.bytes : 0;
    if (t->quota && local_storage_path(t->pod, t->kind, t->index, false, path, sizeof(path)) &&
        project_find(t->pod->node, path, &has)) {
        a->armed[a->n] = (struct armed){ .fs = has.fs, .project = has.id };
        plan->quota = true;
        plan->warns = project_warns(t->pod->node, &has);
        if (!quota_fs_enforces(has.fs))
            a->armed[a->n].fs = NULL; /* limits would do nothing */
    }
    if (t->kind != LOCAL_LOG && a->armed[a->n].fs == NULL &&
        (t->kind == LOCAL_VOLUME || ctr_alive(t->pod->ctrs[t->index])))
        *all_enforce = false;
    a->n++;
}

void local_quota_arm(struct pod *p)
{
    struct local_pod *l = usage_of_pod(p)->local;
    bool all_enforce = true, some = false;
    struct arm *a;

    if (l == NULL || p->node->closing || (p->state != POD_STARTING && p->state != POD_RUNNING))
        return;
    if (l->arm != NULL) {
        l->arm_again = true;
        return;
    }
    a = arm_new(p, l->n);
    if (a == NULL) {
        log_error("no memory to set quota limits", F_STR("pod", p->key));
        return;
    }
    for (size_t i = 0; i < l->n; i++) {
        arm_add(a, &l->trees[i], &all_enforce);
        some = some || a->armed[i].fs != NULL;
    }
    if (!some) {
        arm_free(a);
        return;
    }
    l->enforced = a->enforce = all_enforce && local_limits_enforced(p);
    l->arm = a;
    project_do(p->node, &a->task);
}

/* The project that a tree should have by now; 0: none. */
static uint32_t project_now(const struct local_tree *t, bool *ret_warns)
{
    struct project_tree has;
    char path[1024];

    *ret_warns = false;
    if (!local_storage_path(t->pod, t->kind, t->index, false, path, sizeof(path)) ||
        !project_find(t->pod->node, path, &has))
        return 0;
    *ret_warns = project_warns(t->pod->node, &has);
    return has.id;
}

static bool changed(struct local_tree *t)
{
    bool warns;
    uint32_t id = project_now(t, &warns);

    if (t->project == id)
        return false;
    t->project = id;
    t->quota = id != 0;
    t->due_ms = warns || !t->limited ? LOCAL_NEVER : clock_mono_ms() + (id != 0 ? LOCAL_PERIOD_MS : 0);
    if (t->quota) {
        disk_usage_free(t->scan);
        t->scan = NULL;
    }
    return true;
}

void local_quota_step(struct pod *p)
{
    struct local_pod *l = usage_of_pod(p)->local, *others = usage_of_pod(p)->others;
    bool new = false;

    for (size_t i = 0; others != NULL && i < others->n; i++)
        (void)changed(&others->trees[i]);
    for (size_t i = 0; l != NULL && i < l->n; i++)
        new = changed(&l->trees[i]) || new;
    if (!new)
        return;
    local_quota_arm(p);
    local_storage_now(p->node);
}

/* An ending pod writes on: its soft limits would warn with each block. Hard ones stay. */
void local_quota_forget(struct pod *p)
{
    struct local_pod *l = usage_of_pod(p)->local;
    struct arm *a = l != NULL && !p->node->closing ? arm_new(p, l->n) : NULL;
    bool some = false, ignored = false;

    if (a == NULL)
        return;
    for (size_t i = 0; i < l->n; i++)
        arm_add(a, &l->trees[i], &ignored);
    a->clear = true;
    if (l->enforced)
        local_plan(a->trees, a->n, a->limits, a->n_limits, true);
    for (size_t i = 0; i < a->n; i++) {
        a->trees[i].soft = 0;
        some = some || a->armed[i].fs != NULL;
    }
    if (some)
        project_do(p->node, &a->task);
    else
        arm_free(a);
}

/* ---- warnings ---- */

static void hard_limit_reached(struct pod *p, const char *path)
{
    struct local_pod *l = usage_of_pod(p)->local;
    char at[1024];

    for (size_t i = 0; i < l->n; i++) {
        const struct local_tree *t = &l->trees[i];
        const char *name =
            t->kind == LOCAL_VOLUME ? p->api->spec.volumes[t->index].name : p->ctrs[t->index]->spec->name;
        char what[400];

        if (!local_storage_path(p, t->kind, t->index, false, at, sizeof(at)) || strcmp(at, path) != 0)
            continue;
        snprintf(what, sizeof(what), "%s %.300s;", t->kind == LOCAL_VOLUME ? "emptyDir" : "files of", name);
        if (strstr(l->hard, what) != NULL || strlen(l->hard) + strlen(what) + 2 > sizeof(l->hard))
            return;
        strcat(strcat(l->hard, l->hard[0] != '\0' ? " " : ""), what);
        pod_event(p, t->kind == LOCAL_VOLUME ? NULL : p->ctrs[t->index], true, "StorageLimitReached",
                  "%s %s has reached its limit of local storage; writes are refused",
                  t->kind == LOCAL_VOLUME ? "emptyDir" : "container", name);
        return;
    }
}

/* A soft limit is exceeded, which causes no second warning on ext4, and endless ones on XFS. */
static bool is_above(const struct pod *p)
{
    const struct local_pod *l = usage_of_pod(p)->local;
    struct quota_usage u;
    char path[1024];

    for (size_t i = 0; i < l->n; i++)
        if (l->trees[i].quota &&
            local_storage_path(p, l->trees[i].kind, l->trees[i].index, false, path, sizeof(path)) &&
            project_usage(p->node, path, &u) && u.soft_bytes != 0 && u.bytes >= u.soft_bytes)
            return true;
    return false;
}

static void look_at(struct pod *p)
{
    struct local_pod *l = usage_of_pod(p)->local;

    if (l == NULL)
        return;
    local_storage_judge(p);
    if (is_above(p))
        local_quota_arm(p);
}

static void on_warning(struct node *n, const char *owner, const char *path, bool hard)
{
    struct usage_node *part = usage_node(n);
    struct pod *p = owner != NULL ? pods_by_uid(n, owner) : NULL;

    if (owner == NULL) {
        pods_each (n, each)
            look_at(each);
        return;
    }
    if (part->growth != NULL)
        part->growth(n, path);
    if (p == NULL || usage_of_pod(p)->local == NULL)
        return;
    if (hard && usage_of_pod(p)->local->enforced)
        hard_limit_reached(p, path);
    else
        look_at(p);
}

void local_quota_open(struct node *n)
{
    project_on_warning(n, on_warning);
}
