/* SPDX-License-Identifier: Apache-2.0 */
/* reaps - removing the leftovers of an ended run; tried again, with growing pauses, until nothing is left. */
#include "agent/pod/container/container.h"
#include "agent/pod/container/internal.h"
#include "agent/pod/core/explain_step.h"
#include "agent/pod/core/facts.h"
#include "agent/pod/limits/limits.h"
#include "agent/pod/project/project.h"
#include "agent/pod/usage/usage.h"
#include "base/backoff.h"
#include "base/clock.h"
#include "base/log.h"

#include <stdlib.h>
#include <string.h>

#define REAP_FIRST_MS 1000 /* between tries to remove the remains of a run, doubled */
#define REAP_MAX_MS 60000
/* The next run starts within this time, unless the machine is overloaded. The runtime's delete and the
 * removal of the files take a third of the processor time of that start, and would slow it down. */
#define REAP_CALM_MS 200

static void reap_pause(struct reap *r)
{
    r->pause_ms = backoff_next_ms(r->pause_ms, REAP_FIRST_MS, REAP_MAX_MS);
    r->again_at = clock_boot_in_ms(r->pause_ms);
}

static void reap_failed(struct reap *r, const struct err *e)
{
    if (strcmp(r->error, e->text) != 0)
        log_warn("cannot remove leftovers of a container; will retry", F_STR("pod", r->pod->key),
                 F_STR("containerID", r->id), F_ERR(e));
    snprintf(r->error, sizeof(r->error), "%s", e->text);
    reap_pause(r);
}

static void on_reaped(struct op *op, const struct err *result)
{
    struct reap *r = op->owner;
    struct pod *p = r->pod;

    if (result->code != ERR_OK && result->code != ERR_CANCELLED) {
        reap_failed(r, result);
    } else {
        TAILQ_REMOVE(&containers_of(p)->reaps, r, link);
        free(r);
        project_gone(p->node, p->uid);
    }
    pod_wake(p, "remains of a run were removed");
}

static void reap_forget(const struct reap *r)
{
    if (r->cgroup_path[0] == '\0')
        return;
    oom_forget(r->pod->node, r->cgroup_path);
    usage_forget(r->pod->node, r->cgroup_path);
}

/* Where its processes are: according to its meta.json or, if that is missing or damaged, where they must
 * be. */
static enum err_code reap_find_cgroup(struct reap *r, struct err *e)
{
    struct rt_identity identity = { 0 };
    char above[440];

    if (r->cgroup_path[0] != '\0')
        return ERR_OK;
    switch (presence_of(rt_identity(r->pod->node->rt, r->id, &identity, e))) {
    case PRESENCE_UNKNOWN:
        return e->code;
    case PRESENCE_ABSENT:
        if (resources_cgroup_path(r->pod, above, sizeof(above), ERR_IGNORED) == ERR_OK)
            snprintf(r->cgroup_path, sizeof(r->cgroup_path), "%s/%s", above, r->id);
        break;
    case PRESENCE_PRESENT:
        snprintf(r->cgroup_path, sizeof(r->cgroup_path), "%s", identity.cgroup_path);
        break;
    }
    reap_forget(r);
    return ERR_OK;
}

static void reap_begin(struct reap *r)
{
    struct err e = { 0 };

    if (reap_find_cgroup(r, &e) != ERR_OK) {
        reap_failed(r, &e);
        pod_wake(r->pod, "removal of a run could not begin");
        return;
    }
    r->again_at = CLOCK_BOOT_NONE;
    rt_delete_start(&r->action, r->pod->node->rt, r->id, r->cgroup_path[0] != '\0' ? r->cgroup_path : NULL,
                    on_reaped, r);
}

void reaps_step(struct pod *p)
{
    struct reap *r;

    TAILQ_FOREACH (r, &containers_of(p)->reaps, link) {
        if (!clock_boot_is_set(r->again_at) || p->node->closing)
            continue;
        if (clock_boot_is_due(r->again_at))
            reap_begin(r);
        else
            pod_wake_at(p, r->again_at, "removal of a run is tried again");
    }
}

bool reaps_hold(const struct pod *p)
{
    const struct reap *r;

    TAILQ_FOREACH (r, &containers_of(p)->reaps, link)
        if (!clock_boot_is_set(r->again_at) || !p->node->forced)
            return true;
    return false;
}

void reaps_clear(struct pod *p)
{
    struct reap *r, *tmp;

    TAILQ_FOREACH_SAFE (r, &containers_of(p)->reaps, link, tmp) {
        TAILQ_REMOVE(&containers_of(p)->reaps, r, link);
        free(r);
    }
}

static void reap(struct pod *p, const char *id, const char *cgroup_path, uint64_t calm_ms)
{
    struct reap *r = calloc(1, sizeof(*r));

    if (r == NULL) {
        log_error("no memory to remove a container; the next start will remove it", F_STR("containerID", id));
        return;
    }
    r->pod = p;
    r->action.calm_ms = calm_ms;
    snprintf(r->id, sizeof(r->id), "%s", id);
    if (cgroup_path != NULL)
        snprintf(r->cgroup_path, sizeof(r->cgroup_path), "%s", cgroup_path);
    reap_forget(r);
    TAILQ_INSERT_TAIL(&containers_of(p)->reaps, r, link);
    /* The agent is shutting down: no new operation starts, and the running ones are cancelled; the next start
     * removes the leftovers. */
    if (p->node->closing)
        r->again_at = clock_boot();
    else
        reap_begin(r);
}

void ctr_reap_run(struct ctr *c)
{
    bool starts = c->pod->state != POD_TERMINATING && ctr_restart_wanted(c);

    reap(c->pod, c->cur.id, NULL, starts ? REAP_CALM_MS : 0);
}

void ctr_reap(struct pod *p, const char *id, const char *cgroup_path)
{
    reap(p, id, cgroup_path, 0);
}

bool reaps_has(const struct pod *p, const char *id)
{
    const struct reap *r;

    TAILQ_FOREACH (r, &containers_of(p)->reaps, link)
        if (strcmp(r->id, id) == 0)
            return true;
    return false;
}

/* ---- for explain ---- */

bool reaps_named(const struct pod *p, const char *subject)
{
    const struct reap *r;

    TAILQ_FOREACH (r, &containers_of(p)->reaps, link)
        if (explain_names(subject, r->id))
            return true;
    return false;
}

void reaps_explain(const struct pod *p, json_t *steps)
{
    const struct reap *r;
    bool running = false;

    TAILQ_FOREACH (r, &containers_of(p)->reaps, link) {
        if (!clock_boot_is_set(r->again_at))
            running = true;
        else
            explain_step(steps, "clean-up", "failed", 0, r->error, clock_boot_to_wall_ns(r->again_at));
    }
    if (running)
        explain_step(steps, "clean-up", "running", p->state_since_ns, "removing the remains of containers",
                     0);
}
