/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/volume/live_sub_path.h"
#include "agent/api/on_change.h"
#include "agent/pod/core/events.h"
#include "agent/pod/core/explain_step.h"
#include "agent/pod/core/facts.h"
#include "agent/pod/core/pod.h"
#include "agent/pod/core/pod_look.h"
#include "agent/pod/env/env.h"
#include "agent/pod/sandbox/sandbox.h"
#include "agent/pod/volume/internal.h"
#include "agent/runtime/live_mount.h"
#include "base/backoff.h"
#include "base/clock.h"
#include "base/log.h"

#include <string.h>

#define DEADLINE_MS 30000
#define PATH_SIZE 1024
#define RETRY_FIRST_MS 200
#define RETRY_MAX_MS 10000

/* NULL: another kind of volume. */
static const struct api_volume *payload_of(const struct pod *p, const struct api_volume_mount *vm)
{
    const struct api_volume *v = api_volume_find(&p->api->spec, vm->name);

    return v != NULL && v->kind == API_VOL_PAYLOAD ? v : NULL;
}

static bool has_any(const struct ctr *c)
{
    for (size_t i = 0; i < c->spec->n_mounts; i++)
        if (api_mount_has_sub_path(&c->spec->mounts[i]) && payload_of(c->pod, &c->spec->mounts[i]) != NULL)
            return true;
    return false;
}

static enum err_code gather(const struct ctr *c, struct arena *a, struct live_mounts *l, struct err *e)
{
    const struct pod *p = c->pod;
    struct live_mount *v = arena_alloc(a, (c->spec->n_mounts + 1) * sizeof(*v));
    struct env env = { 0 };
    char path[PATH_SIZE];

    if (v == NULL)
        return err_nomem(e);
    for (size_t i = 0; i < c->spec->n_mounts && l->n < LIVE_MOUNTS_MAX; i++) {
        const struct api_volume_mount *vm = &c->spec->mounts[i];
        const struct api_volume *volume = payload_of(p, vm);
        const char *sub, *missing = NULL;

        if (volume == NULL || !api_mount_has_sub_path(vm))
            continue;
        if (vm->sub_path_expr != NULL && env.v == NULL && env_build(p, c->spec, a, &env, e) != ERR_OK)
            return e->code;
        sub = env_sub_path(vm, &env, a, &missing);
        if (missing != NULL || sub == NULL || sub[0] == '\0')
            continue;
        if (volumes_host_path(p, volume, path, sizeof(path), e) != ERR_OK)
            return e->code;
        v[l->n] = (struct live_mount){ .volume_path = arena_strdup(a, path),
                                       .sub = sub,
                                       .destination = vm->mount_path };
        if (v[l->n++].volume_path == NULL)
            return err_nomem(e);
    }
    l->v = v;
    return ERR_OK;
}

/* Runs in the child, with the pod's state at the time of the fork. */
static enum err_code live_sub_path_follow(const void *arg, struct buf *out, struct err *e)
{
    const struct ctr *c = arg;
    const struct pod *p = c->pod;
    struct arena a = { 0 }; /* freed when the process ends */
    struct live_mounts l = { .id = c->cur.id, .pid = live_of(c)->live_pid };
    char userns[300];

    (void)out;
    if (userns_wanted(p)) {
        snprintf(userns, sizeof(userns), "%s/user", sandbox_pins(p));
        l.userns = userns;
    }
    if (gather(c, &a, &l, e) != ERR_OK || l.n == 0)
        return e->code;
    return live_mounts_follow(&l, e);
}

/* Reports the first failure in a row, and any that differs from the one before. */
static void live_sub_path_report(struct pod *p, const struct ctr *c, const struct err *e)
{
    if (e->code == ERR_NOT_FOUND || strcmp(live_of(c)->live_retry.error, e->text) == 0)
        return; /* the container is just ending */
    log_warn("cannot update subPath mounts of a container", F_STR("pod", p->key),
             F_STR("containerName", c->spec->name), F_ERR(e));
    pod_event(p, c, true, "SubPathNotFollowed", "A subPath mount keeps its old content: %s", e->text);
}

static void live_sub_path_try_again(struct pod *p, struct ctr *c, const struct err *e)
{
    struct live_retry *r = &live_of(c)->live_retry;

    live_sub_path_report(p, c, e);
    if (r->wait_ms == 0)
        r->since_ns = clock_wall_ns();
    r->wait_ms = backoff_next_ms(r->wait_ms, RETRY_FIRST_MS, RETRY_MAX_MS);
    r->retry_at = clock_boot_in_ms(r->wait_ms);
    snprintf(r->error, sizeof(r->error), "%s", e->text);
    live_of(c)->live_due = true;
}

static void on_followed(struct op *op, const struct err *result)
{
    struct pod *p = op->owner;
    struct pod_volumes *vols = volumes_of(p);
    struct ctr *c = vols->live_ctr;

    vols->live_ctr = NULL;
    if (result->code == ERR_OK)
        live_of(c)->live_retry = (struct live_retry){ 0 };
    else if (result->code != ERR_CANCELLED)
        live_sub_path_try_again(p, c, result);
    pod_wake(p, "sub paths were checked");
}

void live_sub_path_begun(struct ctr *c)
{
    *live_of(c) = (struct live_ctr){ .live_due = true };
}

void live_sub_path_due(struct pod *p)
{
    for (size_t i = 0; i < p->n_ctrs; i++) {
        live_of(p->ctrs[i])->live_due = true;
        live_of(p->ctrs[i])->live_retry.retry_at =
            CLOCK_BOOT_NONE; /* retry now, then with the current back-off */
    }
}

static bool live_sub_path_is_wanted(const struct pod *p)
{
    bool live;

    return api_live_sub_path_parse(api_kvs_get(&p->api->meta.annotations, API_SUB_PATH), &live) && live;
}

void live_sub_path_step(struct pod *p)
{
    struct pod_volumes *vols = volumes_of(p);

    if (op_live(&vols->live_call.op) || vols->vols != VOLS_READY || !live_sub_path_is_wanted(p))
        return;
    for (size_t i = 0; i < p->n_ctrs; i++) {
        struct ctr *c = p->ctrs[i];
        struct proc_call_spec call = {
            .name = "follow sub paths",
            .subject = p->key,
            .fn = live_sub_path_follow,
            .arg = c,
            .deadline_ms = DEADLINE_MS,
            CG_OPS(p->node->o.cgroups),
        };
        struct err unknown = { 0 };
        struct rt_state s;

        if (!live_of(c)->live_due || c->state != CTR_RUNNING)
            continue;
        if (!has_any(c)) {
            live_of(c)->live_due = false;
            live_of(c)->live_retry = (struct live_retry){ 0 };
            continue;
        }
        if (!clock_boot_is_due(live_of(c)->live_retry.retry_at)) {
            pod_wake_at(p, live_of(c)->live_retry.retry_at, "sub paths are tried again");
            continue;
        }
        if (rt_state(p->node->rt, c->cur.id, &s, &unknown) != ERR_OK) {
            pod_look_again(p, &unknown);
            continue;
        }
        if (s.phase != RT_RUNNING)
            continue; /* stays due: the container is ending, or its state is unknown */
        live_of(c)->live_due = false;
        live_of(c)->live_pid = s.pid;
        vols->live_ctr = c;
        proc_call_start(&vols->live_call, &call, p->node->o.loop, on_followed, p);
        return;
    }
}

void live_sub_path_explain(const struct ctr *c, json_t *steps)
{
    char name[300];

    if (live_of(c)->live_retry.wait_ms == 0 || c->state != CTR_RUNNING || !live_sub_path_is_wanted(c->pod))
        return;
    snprintf(name, sizeof(name), "subPath of %.256s", c->spec->name);
    explain_step(steps, name, "failed", live_of(c)->live_retry.since_ns, live_of(c)->live_retry.error,
                 clock_boot_to_wall_ns(live_of(c)->live_retry.retry_at));
}
